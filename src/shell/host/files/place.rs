//! Which root a path lies in.

use crate::core::error::{Error, ErrorKind};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::path::{Path, PathBuf};

/// A path within a root.
#[derive(Debug)]
pub struct Place {
    pub root: Dir,
    /// Relative to the root, as it was given: what `..` and links in it mean is found out by whoever opens it.
    pub path: PathBuf,
}

/// Opens the root that a path lies in. A root within another one counts as a part of that: it may have been replaced
/// by a link since, which whoever may change the outer one could do.
pub fn find(path: &str, roots: &[String]) -> Result<Place, Error> {
    let wrong = |why: &str| {
        let message = format!("{path:?} {why}");
        Error::new(ErrorKind::InvalidParams, message).with("path", path)
    };
    if path.contains('\0') {
        return Err(wrong("holds a NUL, which no path does"));
    }
    let given = Path::new(path);
    if !given.is_absolute() {
        return Err(wrong("is not absolute: give the whole path"));
    }
    let outer = || outermost(roots);
    // Some give the real path of a root that is a link itself.
    let real = |root: &Path| given.strip_prefix(root.canonicalize().ok()?).ok();
    let found = outer()
        .find_map(|root| Some((root, given.strip_prefix(root).ok()?)))
        .or_else(|| outer().find_map(|root| Some((root, real(root)?))));
    let Some((root, rest)) = found else {
        let roots = roots.join(", ");
        let why =
            format!("lies in none of the session's directories ({roots}): only those are served");
        return Err(wrong(&why));
    };
    let opened = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| {
        let root = root.display();
        let message = format!("the session's directory {root} could not be opened: {error}");
        Error::new(ErrorKind::Resource, message).with("path", path)
    })?;
    Ok(Place {
        root: opened,
        path: if rest.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            rest.to_owned()
        },
    })
}

fn outermost(roots: &[String]) -> impl Iterator<Item = &Path> {
    let paths = || roots.iter().map(Path::new);
    paths().filter(move |root| {
        let within = |other: &Path| *root != other && root.starts_with(other);
        !paths().any(within)
    })
}
