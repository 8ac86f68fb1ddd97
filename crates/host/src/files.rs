//! Transports without processes: the lines of a file, one line about each file of a directory, the real path
//! of a directory, or the deletion of a file.
//!
//! Each is read by its own thread, as fast as the loop accepts its events.

use super::inbox::EventSender;
use super::ownership;
use super::regular::open_own;
use acpipe_core::hub::{AgentId, AgentInput, Exit};
use acpipe_dialects::claude::projects::SessionExcerpt;
use acpipe_json::frame::{Batch, LineBatches};
use acpipe_model::error::{Error, ErrorKind};
use bytes::{Bytes, BytesMut};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use memchr::{memchr, memrchr};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow::{self, Break, Continue};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tokio_util::codec::Decoder;
use tracing::warn;

/// Size of a read, and of the parts returned from each end of a listed file, in bytes.
const PIECE: usize = 64 * 1024;

/// Maximum number of files listed of a directory; the newest are listed.
const LISTED: usize = 1000;

/// Sends the events of a transport; `Break` if the loop has ended.
struct LineSender {
    id: AgentId,
    events: EventSender,
}

impl LineSender {
    fn send(&mut self, input: AgentInput) -> ControlFlow<()> {
        match self.events.blocking_send(self.id, input) {
            Ok(()) => Continue(()),
            Err(_) => Break(()),
        }
    }

    fn end(&mut self, read: Result<ControlFlow<()>, Error>) {
        // Fails only if the loop has ended; the event is not needed then.
        let _ = match read {
            Ok(Break(())) => return,
            Ok(Continue(())) => self.send(AgentInput::Exited(Exit {
                code: Some(0),
                ..Exit::default()
            })),
            Err(error) => self.send(AgentInput::StartFailed(error)),
        };
    }
}

/// Sends the lines of a file; an unreadable file is reported as a failed start.
pub fn read(id: AgentId, path: PathBuf, max_line: usize, events: EventSender) {
    in_thread(LineSender { id, events }, move |to| {
        lines(&path, max_line, to).map_err(|error| unreadable(&path, &error))
    });
}

/// Sends a line of JSON (a [`SessionExcerpt`]) for each `*.jsonl` file of a directory, newest first. A missing
/// directory counts as empty.
pub fn list(id: AgentId, dir: PathBuf, events: EventSender) {
    in_thread(LineSender { id, events }, move |to| {
        let files = newest(&dir).map_err(|error| unreadable(&dir, &error))?;
        for file in files {
            let Some(line) = file.line() else { continue };
            if to.send(AgentInput::Batch(Batch::Lines(line))).is_break() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    });
}

/// Sends the real path of a directory as a JSON string, or the given path if it cannot be resolved.
pub fn resolve(id: AgentId, dir: PathBuf, events: EventSender) {
    in_thread(LineSender { id, events }, move |to| {
        let real = fs::canonicalize(&dir).unwrap_or(dir);
        let mut line = json!(real.to_string_lossy()).to_string();
        line.push('\n');
        Ok(to.send(AgentInput::Batch(Batch::Lines(line.into()))))
    });
}

/// Deletes the file at a path below `root`.
pub fn remove(id: AgentId, root: PathBuf, path: PathBuf, events: EventSender) {
    in_thread(LineSender { id, events }, move |_| {
        delete(&root, &path).map_err(|error| {
            let at = root.join(&path).display().to_string();
            let message = format!(
                "cannot delete {at}: {error}; the session is cleared, and its file is left to you"
            );
            let error = Error::new(ErrorKind::Session, message).with("os", error.to_string());
            error.with("path", at)
        })?;
        Ok(Continue(()))
    });
}

/// The directory is opened from the handle of `root`, so that a link cannot lead out of it.
fn delete(root: &Path, path: &Path) -> io::Result<()> {
    let delete = || {
        let root = Dir::open_ambient_dir(root, ambient_authority())?;
        let dir = root.open_dir(path.parent().unwrap_or(Path::new(".")))?;
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::other("it is not a file"))?;
        if !dir.symlink_metadata(name)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        dir.remove_file(name)
    };
    match delete() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    }
}

fn in_thread(
    mut to: LineSender,
    read: impl FnOnce(&mut LineSender) -> Result<ControlFlow<()>, Error> + Send + 'static,
) {
    let (id, mut events) = (to.id, to.events.clone());
    let thread = std::thread::Builder::new().name("file".into());
    if let Err(error) = thread.spawn(move || {
        let read = read(&mut to);
        to.end(read);
    }) {
        let message = format!(
            "cannot start a thread to read a file: {error}; stop other processes and try again"
        );
        let failed = AgentInput::StartFailed(Error::new(ErrorKind::Internal, message));
        tokio::spawn(async move {
            let _ = events.send(id, failed).await;
        });
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let at = path.display();
    let message = format!("cannot read {at}: {error}; check the path and its permissions");
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::SessionNotFound,
        _ => ErrorKind::Session,
    };
    Error::new(kind, message)
        .with("path", at.to_string())
        .with("os", error.to_string())
}

/// Opens the file of a session. What another user wrote there would become messages of the session.
fn open(path: &Path) -> io::Result<File> {
    let file = open_own(path)?.file;
    ownership::check_file(&file)?;
    Ok(file)
}

fn lines(path: &Path, max_line: usize, to: &mut LineSender) -> io::Result<ControlFlow<()>> {
    let mut file = open(path)?;
    let mut frames = LineBatches::new(max_line);
    let mut buffer = BytesMut::new();
    let mut piece = vec![0; PIECE];
    loop {
        let n = match file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        buffer.extend_from_slice(&piece[..n]);
        while let Some(batch) = match n {
            0 => frames.decode_eof(&mut buffer)?,
            _ => frames.decode(&mut buffer)?,
        } {
            if to.send(AgentInput::Batch(batch)).is_break() {
                return Ok(Break(()));
            }
        }
        if n == 0 {
            return Ok(Continue(()));
        }
    }
}

struct ListedFile {
    path: PathBuf,
    name: String,
    modified_ms: i64,
    size: u64,
}

/// Returns the files to list, newest first.
fn newest(dir: &Path) -> io::Result<Vec<ListedFile>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    // Files that disappear meanwhile are skipped.
    let mut files: Vec<_> = entries.filter_map(|entry| found(&entry.ok()?)).collect();
    files.sort_by(|a, b| (b.modified_ms, &b.name).cmp(&(a.modified_ms, &a.name)));
    if files.len() > LISTED {
        warn!(dir = %dir.display(), files = files.len(), "listing only the newest {LISTED} files");
        files.truncate(LISTED);
    }
    Ok(files)
}

fn found(entry: &fs::DirEntry) -> Option<ListedFile> {
    let path = entry.path();
    // A file of a session has a name in UTF-8.
    let name = entry.file_name().into_string().ok()?;
    let about = fs::metadata(&path).ok()?;
    if path.extension()? != "jsonl" || !about.is_file() {
        return None;
    }
    let modified = about.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(ListedFile {
        path,
        name,
        modified_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        size: about.len(),
    })
}

impl ListedFile {
    /// Formats the file's line of the listing; `None` if the file cannot be read.
    fn line(self) -> Option<Bytes> {
        let (head, tail) = ends(&self.path)
            .inspect_err(|error| warn!(path = %self.path.display(), %error, "skipped in the list"))
            .ok()?;
        let listed = SessionExcerpt {
            file: self.name,
            modified_ms: self.modified_ms,
            size: self.size,
            head,
            tail,
        };
        let mut line = serde_json::to_vec(&listed).ok()?;
        line.push(b'\n');
        Some(line.into())
    }
}

/// Returns the first and the last complete lines of a file without overlap. The last line may still be
/// incomplete.
fn ends(path: &Path) -> io::Result<(String, String)> {
    let mut file = open(path)?;
    let size = file.metadata()?.len();
    let piece = PIECE as u64;
    let mut head = Vec::new();
    (&mut file).take(piece).read_to_end(&mut head)?;
    let mut tail = Vec::new();
    if size > piece {
        head.truncate(memrchr(b'\n', &head).map_or(0, |at| at + 1));
        // From one byte earlier: a line begins after the end of the line before it.
        let from = (size - piece).max(head.len() as u64) - 1;
        file.seek(SeekFrom::Start(from))?;
        file.take(piece + 1).read_to_end(&mut tail)?;
        let begin = memchr(b'\n', &tail).map_or(tail.len(), |at| at + 1);
        tail.drain(..begin);
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((text(head), text(tail)))
}

#[cfg(test)]
mod tests {
    use super::super::inbox;
    use super::*;
    use std::time::{Duration, SystemTime};

    const ID: AgentId = AgentId(7);

    /// Temporary directory, removed on drop.
    struct QueueSlot(PathBuf);

    impl QueueSlot {
        fn new(name: &str) -> Self {
            let name = format!("acpipe-files-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }

        fn file(&self, name: &str, content: &[u8], age: u64) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            let at = SystemTime::now() - Duration::from_secs(age);
            File::options()
                .append(true)
                .open(&path)
                .unwrap()
                .set_modified(at)
                .unwrap();
            path
        }
    }

    impl Drop for QueueSlot {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Returns all events as text.
    fn events_as_text(speak: impl FnOnce(EventSender)) -> Vec<String> {
        let (events, mut heard) = inbox::channel();
        speak(events);
        let mut said = Vec::new();
        while let Some((id, input)) = heard.blocking_next() {
            assert_eq!(id, ID);
            said.push(match input {
                AgentInput::Batch(Batch::Lines(lines)) => {
                    String::from_utf8_lossy(&lines).into_owned()
                }
                AgentInput::Batch(Batch::TooLong(line)) => format!("too long: {}", line.len),
                AgentInput::Exited(exit) => format!("exit {:?}", exit.code),
                AgentInput::StartFailed(error) => format!("failed: {}", error.message),
                other => panic!("{other:?}"),
            });
        }
        said
    }

    /// Its text would become messages of the user's session.
    #[test]
    #[cfg(unix)]
    fn file_of_another_user_is_not_read() {
        let place = QueueSlot::new("foreign");
        let file = place.file("a.jsonl", b"{}\n", 0);
        let Ok(()) = std::os::unix::fs::chown(&file, Some(65534), None) else {
            eprintln!("SKIPPED: only root can give a file to another user");
            return;
        };
        let said = events_as_text(|events| read(ID, file, 1000, events));
        let [failed] = &said[..] else {
            panic!("{said:?}");
        };
        assert!(failed.contains("belongs to user 65534"), "{failed}");
    }

    #[test]
    fn file_transport_sends_lines_then_an_end() {
        let place = QueueSlot::new("lines");
        let long = "x".repeat(3 * PIECE);
        let file = place.file("a.jsonl", format!("one\ntwo\n{long}\nlast").as_bytes(), 0);
        let said = events_as_text(|events| read(ID, file.clone(), 1000, events));
        assert_eq!(said.last().unwrap(), "exit Some(0)");
        let lines = said[..said.len() - 1].concat();
        assert_eq!(lines, format!("one\ntwo\ntoo long: {}last", long.len()));
        let whole = events_as_text(|events| read(ID, file, usize::MAX, events));
        assert_eq!(
            whole.concat(),
            format!("one\ntwo\n{long}\nlastexit Some(0)")
        );
    }

    #[test]
    fn unreadable_file_is_reported() {
        let place = QueueSlot::new("none");
        let missing = place.0.join("none.jsonl");
        for path in [missing, place.0.clone()] {
            let said = events_as_text(|events| read(ID, path.clone(), 10, events));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("failed: "), "{said:?}");
            assert!(said[0].contains(path.to_str().unwrap()), "{said:?}");
        }
        let none = events_as_text(|events| list(ID, place.0.join("none"), events));
        assert_eq!(none, ["exit Some(0)"]);
        let file = place.file("x", b"", 0);
        let wrong = events_as_text(|events| list(ID, file, events));
        assert!(wrong[0].starts_with("failed: "), "{wrong:?}");
    }

    #[test]
    fn only_regular_files_below_the_root_are_deleted() {
        let place = QueueSlot::new("delete");
        let outside = QueueSlot::new("outside");
        fs::create_dir(place.0.join("p")).unwrap();
        let kept = outside.file("a.jsonl", b"x", 0);
        std::os::unix::fs::symlink(&outside.0, place.0.join("out")).unwrap();
        std::os::unix::fs::symlink(&kept, place.0.join("p/link.jsonl")).unwrap();
        fs::create_dir(place.0.join("p/dir.jsonl")).unwrap();
        let own = place.file("p/a.jsonl", b"x", 0);
        let deleted = |path: &str| {
            events_as_text(|events| remove(ID, place.0.clone(), path.into(), events)).concat()
        };
        for path in ["out/a.jsonl", "p/link.jsonl", "p/dir.jsonl", "../a.jsonl"] {
            let said = deleted(path);
            assert!(said.starts_with("failed: cannot delete "), "{path}: {said}");
        }
        assert!(kept.exists() && own.exists());
        for _ in 0..2 {
            assert_eq!(deleted("p/a.jsonl"), "exit Some(0)");
            assert!(!own.exists());
        }
    }

    #[test]
    fn file_transport_stops_without_a_receiver() {
        let place = QueueSlot::new("deaf");
        let file = place.file("a.jsonl", &b"x\n".repeat(PIECE * 8), 0);
        let (events, mut heard) = inbox::channel();
        let watch = events.clone();
        read(ID, file, 10, events);
        assert!(heard.blocking_next().is_some());
        drop(heard);
        // The thread drops its sender when it ends.
        while watch.count() > 1 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn directory_transport_lists_files_newest_first() {
        let place = QueueSlot::new("list");
        let line = |n: usize| format!("{{\"line\":{n}}}\n");
        let long: String = (0..20_000).map(line).collect();
        place.file("old.jsonl", long.as_bytes(), 100);
        place.file("new.jsonl", b"one\n\xfftwo", 10);
        place.file("other.json", b"no", 0);
        fs::create_dir(place.0.join("dir.jsonl")).unwrap();
        let said = events_as_text(|events| list(ID, place.0.clone(), events));
        assert_eq!(said.len(), 3, "{said:?}");
        let listed = |n: usize| -> SessionExcerpt { serde_json::from_str(&said[n]).unwrap() };
        let (new, old) = (listed(0), listed(1));
        assert_eq!(
            (new.file.as_str(), old.file.as_str()),
            ("new.jsonl", "old.jsonl")
        );
        assert_eq!(
            (new.head.as_str(), new.tail.as_str()),
            ("one\n\u{fffd}two", "")
        );
        assert_eq!(old.size, long.len() as u64);
        assert!(new.modified_ms > old.modified_ms);
        for end in [&old.head, &old.tail] {
            assert!(
                end.len() > PIECE - 100 && end.len() <= PIECE,
                "{}",
                end.len()
            );
            assert!(end.starts_with("{\"line\":") && end.ends_with("}\n"));
        }
        assert!(old.head.starts_with(&line(0)) && old.tail.ends_with(&line(19_999)));
    }

    #[test]
    fn the_ends_of_a_file_meet_without_a_line_twice_or_lost() {
        let place = QueueSlot::new("ends");
        for lines in [8191, 8192, 8193, 9000, 16_383, 16_384] {
            let all: Vec<String> = (0..lines).map(|n| format!("{n:07}\n")).collect();
            let all = all.concat();
            let (head, tail) = ends(&place.file("a", all.as_bytes(), 0)).unwrap();
            assert_eq!(head + &tail, all, "{lines} lines");
        }
        let one = "x".repeat(2 * PIECE);
        let (head, tail) = ends(&place.file("a", one.as_bytes(), 0)).unwrap();
        assert_eq!((head.as_str(), tail.as_str()), ("", ""));
    }
}
