//! Files of the answer in the directory of `--save-files`. Their names come from an agent, so they are only names in
//! that directory, and no file that exists is opened.

use acpipe_model::answer_file::ReceivedFile;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::AnswerFile;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Maximum length of a name without its extension, in characters.
const LONGEST_NAME: usize = 60;

/// Maximum length of an extension, in characters.
const LONGEST_EXTENSION: usize = 10;

/// Maximum number of files of one name.
const MOST_OF_A_NAME: u32 = 10_000;

/// Extensions of media types whose subtype is not the usual one.
const EXTENSIONS: [(&str, &str); 8] = [
    ("image/jpeg", "jpg"),
    ("image/svg+xml", "svg"),
    ("audio/mpeg", "mp3"),
    ("audio/x-wav", "wav"),
    ("text/plain", "txt"),
    ("text/markdown", "md"),
    ("text/javascript", "js"),
    ("application/octet-stream", "bin"),
];

/// Directory of `--save-files`, and the files that were written there.
#[derive(Debug)]
pub struct SavedFiles {
    /// Absolute path of the directory.
    path: PathBuf,
    directory: OwnedFd,
    /// Paths of the files of the turn, in their order; `None` for a link, and for a file that was not written.
    paths: Vec<Option<String>>,
    /// Reason why the first file of the turn that is missing was not written, and the number of such files.
    failed: Option<(String, u32)>,
    has_failed: bool,
}

impl SavedFiles {
    /// Opens the directory; one that does not exist is created for the user alone.
    ///
    /// # Errors
    /// `storage`: the directory cannot be created or opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let opened = || {
            let path = std::path::absolute(path)?;
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)?;
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&path, flags, Mode::empty())?;
            Ok((path, directory))
        };
        let (path, directory) = opened().map_err(|error: io::Error| {
            let message = format!(
                "cannot save files in {}: {error}; choose another directory with --save-files",
                path.display()
            );
            Error::new(ErrorKind::Storage, message)
        })?;
        Ok(Self {
            path,
            directory,
            paths: Vec::new(),
            failed: None,
            has_failed: false,
        })
    }

    /// Writes the data of a file. Returns a note of it; `None` for a link, and if the file cannot be written.
    pub fn save(&mut self, file: &ReceivedFile<'_>) -> Option<String> {
        if file.about.is_link {
            self.paths.push(None);
            return None;
        }
        let written = match file.bytes() {
            Some(bytes) => self.write(&file.about, &bytes),
            None => Err(io::Error::other("its data is not valid base64")),
        };
        let path = match written {
            Ok(name) => Some(self.path.join(name).to_string_lossy().into_owned()),
            Err(error) => {
                let (_, count) = self.failed.get_or_insert_with(|| (error.to_string(), 0));
                *count += 1;
                self.has_failed = true;
                None
            }
        };
        let note = path.as_ref().map(|path| format!("saved {path}"));
        self.paths.push(path);
        note
    }

    /// Ends a turn: adds the paths to the files of its summary, which are the last ones of the turn except the omitted ones.
    /// Returns the error of files that are missing.
    pub fn end_turn(&mut self, files: &mut [AnswerFile], omitted: u64) -> Option<String> {
        let paths = std::mem::take(&mut self.paths);
        let omitted = usize::try_from(omitted).unwrap_or(usize::MAX);
        let first = paths.len().checked_sub(files.len().saturating_add(omitted));
        if let Some(first) = first {
            for (file, path) in files.iter_mut().zip(paths.into_iter().skip(first)) {
                file.path = path;
            }
        }
        let (why, count) = self.failed.take()?;
        let these = match count {
            1 => "a file of the answer was".to_owned(),
            count => format!("{count} files of the answer were"),
        };
        let path = self.path.display();
        Some(format!(
            "{these} not saved in {path}: {why}; the chunks (-o chunks) have the data"
        ))
    }

    /// Returns `true` if a file of any turn was not written.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Writes a new file and returns its name.
    fn write(&self, about: &AnswerFile, bytes: &[u8]) -> io::Result<String> {
        let (stem, extension) = safe_name(about);
        for number in 1..=MOST_OF_A_NAME {
            let name = match number {
                1 => format!("{stem}.{extension}"),
                number => format!("{stem}-{number}.{extension}"),
            };
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = match openat(&self.directory, &*name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => file,
                Err(rustix::io::Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Err(error) = File::from(file).write_all(bytes) {
                // Part of a file looks like all of it.
                let _ = unlinkat(&self.directory, &*name, AtFlags::empty());
                return Err(error);
            }
            return Ok(name);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Returns the name of a file without its extension, and the extension: letters, digits, `-`, `_` and `.` of the agent's
/// name, which begins with none of these signs.
fn safe_name(about: &AnswerFile) -> (String, String) {
    let media_type = about.media_type.as_deref().unwrap_or_default();
    let name = about.name.as_deref().unwrap_or_default();
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if is_extension(extension) => (stem, Some(extension)),
        _ => (name, None),
    };
    let safe = |c: char| match c {
        '-' | '_' | '.' => c,
        c if c.is_alphanumeric() => c,
        _ => '_',
    };
    let stem: String = stem.chars().map(safe).collect();
    let stem = stem
        .trim_start_matches(['-', '_', '.'])
        .trim_end_matches('.');
    let mut stem: String = stem.chars().take(LONGEST_NAME).collect();
    if stem.is_empty() {
        let kind = media_type.split('/').next().unwrap_or_default();
        let kind = if ["image", "audio", "video"].contains(&kind) {
            kind
        } else {
            "file"
        };
        kind.clone_into(&mut stem);
    }
    let extension = extension.unwrap_or_else(|| extension_of(media_type));
    (stem, extension.to_owned())
}

/// Returns the usual extension of a media type.
fn extension_of(media_type: &str) -> &str {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if let Some((_, extension)) = EXTENSIONS.iter().find(|(known, _)| *known == media_type) {
        return extension;
    }
    let subtype = media_type.split_once('/').map(|(_, subtype)| subtype);
    subtype
        .filter(|subtype| is_extension(subtype))
        .unwrap_or("bin")
}

fn is_extension(text: &str) -> bool {
    (1..=LONGEST_EXTENSION).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("acpipe-saved-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn chunk(name: &str, data: &str) -> Value {
        json!({"type": "file", "filename": name, "mediaType": "image/jpeg", "url": format!("data:image/jpeg,{data}")})
    }

    fn save(saved: &mut SavedFiles, chunk: &Value) -> Option<String> {
        saved.save(&ReceivedFile::of_chunk(chunk).unwrap())
    }

    #[test]
    fn names_of_agents_are_only_names() {
        for (name, media_type, want) in [
            ("shot.PNG", "image/png", "shot.PNG"),
            ("../../etc/passwd", "text/plain", "passwd.txt"),
            ("..", "image/png", "image.png"),
            (".bashrc", "text/plain", "file.bashrc"),
            ("-rf x.sh", "text/plain", "rf_x.sh"),
            ("a\\b\\c.txt", "", "c.txt"),
            ("a\n\u{202e}\u{1b}b.pdf", "", "a___b.pdf"),
            ("", "image/svg+xml", "image.svg"),
            ("", "application/vnd.oasis.opendocument.text", "file.bin"),
            ("", "audio/wav; rate=8", "audio.wav"),
            ("", "", "file.bin"),
            ("\u{e9}t\u{e9}", "application/pdf", "\u{e9}t\u{e9}.pdf"),
        ] {
            let about = AnswerFile {
                media_type: Some(media_type.to_owned()),
                name: Some(name.to_owned()),
                uri: None,
                is_link: false,
                size: None,
                path: None,
            };
            let (stem, extension) = safe_name(&about);
            assert_eq!(format!("{stem}.{extension}"), want, "{name:?}");
        }
        let long = AnswerFile {
            name: Some("\u{e9}".repeat(1000)),
            ..ReceivedFile::of_chunk(&chunk("", "")).unwrap().about
        };
        assert!(safe_name(&long).0.len() <= 4 * LONGEST_NAME);
    }

    #[test]
    fn existing_files_stay_and_new_ones_are_private() {
        let path = scratch("names");
        let outside = scratch("outside");
        let mut saved = SavedFiles::open(&path.join("new")).unwrap();
        let path = path.join("new");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        fs::write(path.join("a.jpg"), "mine").unwrap();
        symlink(&outside, path.join("a-2.jpg")).unwrap();
        let note = save(&mut saved, &chunk("../a.jpg", "hello")).unwrap();
        assert_eq!(note, format!("saved {}/a-3.jpg", path.display()));
        assert_eq!(fs::read_to_string(path.join("a.jpg")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(path.join("a-3.jpg")).unwrap(), "hello");
        assert_eq!(mode(&path.join("a-3.jpg")), 0o600);
        assert!(!outside.exists());
        // The directory is the one that was opened, also if another one takes its place.
        let moved = scratch("moved");
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&outside).unwrap();
        symlink(&outside, &path).unwrap();
        save(&mut saved, &chunk("b.jpg", "x")).unwrap();
        assert!(moved.join("b.jpg").exists());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        for path in [path.parent().unwrap(), &outside, &moved] {
            fs::remove_dir_all(path).unwrap();
        }
    }

    #[test]
    fn paths_stand_beside_the_files_of_the_last_attempt() {
        let path = scratch("paths");
        let mut saved = SavedFiles::open(&path).unwrap();
        let link = json!({"type": "source-url", "url": "https://x"});
        let invalid = json!({"type": "file", "url": "data:image/png;base64,a"});
        let chunks = [
            chunk("earlier.jpg", "x"),
            link,
            invalid,
            chunk("b.jpg", "y"),
            chunk("omitted.jpg", "z"),
        ];
        let received = chunks
            .iter()
            .map(|chunk| ReceivedFile::of_chunk(chunk).unwrap());
        let received: Vec<_> = received.collect();
        for file in &received {
            saved.save(file);
        }
        let mut files: Vec<AnswerFile> = received[1..4]
            .iter()
            .map(|file| file.about.clone())
            .collect();
        let error = saved.end_turn(&mut files, 1).unwrap();
        assert!(
            error.contains("a file of the answer was not saved in"),
            "{error}"
        );
        assert!(error.contains("not valid base64"), "{error}");
        let paths: Vec<_> = files.iter().map(|file| file.path.as_deref()).collect();
        let b = path.join("b.jpg");
        assert_eq!(paths, [None, None, b.to_str()]);
        // The next turn begins without files and errors, but the run has failed.
        assert_eq!(saved.end_turn(&mut [], 0), None);
        assert!(saved.has_failed());
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        let error = SavedFiles::open(&path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Storage);
        fs::remove_file(&path).unwrap();
    }
}
