//! Roots of a session: lookup of the root that contains a path, and root handles, which stay valid when
//! another file takes the root's path.

use acpipe_model::error::{Error, ErrorKind};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::path::{Path, PathBuf};

/// Directories of a session.
#[derive(Debug)]
pub struct Roots {
    /// All directories as given.
    pub given: Vec<String>,
    /// Outermost directories.
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// Path with links resolved, because some agents send that.
    real: Option<PathBuf>,
    /// Handle, or the reason why the directory could not be opened.
    dir: Result<Dir, String>,
}

/// Path within a root.
#[derive(Debug)]
pub struct RootPath<'r> {
    pub root: &'r Dir,
    /// Path relative to the root, as given. `..` and links in it are resolved when it is opened.
    pub path: PathBuf,
}

impl Roots {
    /// Opens the directories. A directory within another one counts as a part of it.
    #[must_use]
    pub fn open(given: Vec<String>) -> Self {
        let open = |path: &Path| Root {
            path: path.to_owned(),
            real: path.canonicalize().ok(),
            dir: Dir::open_ambient_dir(path, ambient_authority()).map_err(|e| e.to_string()),
        };
        let roots = outermost(&given).map(open).collect();
        Self { given, roots }
    }

    /// Returns the directories as given, for messages.
    #[must_use]
    pub fn list(&self) -> String {
        self.given.join(", ")
    }

    /// Finds the root that contains a path.
    ///
    /// # Errors
    /// No root contains the path, or its root could not be opened.
    pub fn find(&self, path: &str) -> Result<RootPath<'_>, Error> {
        let wrong = |why: &str| {
            let message = format!("{path:?} {why}");
            Error::new(ErrorKind::InvalidParams, message).with("path", path)
        };
        if path.contains('\0') {
            return Err(wrong("must not contain NUL"));
        }
        let given = Path::new(path);
        if !given.is_absolute() {
            return Err(wrong("must be an absolute path"));
        }
        let roots = || self.roots.iter();
        let by_path = || roots().find_map(|root| Some((root, within(given, &root.path)?)));
        let by_real = || roots().find_map(|root| Some((root, within(given, root.real.as_ref()?)?)));
        let Some((root, rest)) = by_path().or_else(by_real) else {
            let roots = self.list();
            let why = format!(
                "is outside of the session's directories ({roots}); use a path inside them"
            );
            return Err(wrong(&why));
        };
        let dir = root.dir.as_ref().map_err(|error| {
            let root = root.path.display();
            let message = format!(
                "cannot access the session's directory {root}: it could not be opened with the session: {error}; \
                     close the session and open it again when the directory exists"
            );
            Error::new(ErrorKind::Resource, message).with("path", path)
        })?;
        Ok(RootPath {
            root: dir,
            path: if rest.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                rest.to_owned()
            },
        })
    }
}

fn within<'p>(path: &'p Path, root: &Path) -> Option<&'p Path> {
    path.strip_prefix(root).ok()
}

fn outermost(roots: &[String]) -> impl Iterator<Item = &Path> {
    let paths = || roots.iter().map(Path::new);
    paths().filter(move |root| {
        let within = |other: &Path| *root != other && root.starts_with(other);
        !paths().any(within)
    })
}
