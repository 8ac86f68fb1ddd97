//! The demo's session files: one append-only NDJSON file per session, a [`Header`] and then, a line each,
//! the ACP updates in the form in which they were sent. Replaying a session is reading it back.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place;

/// The longest header that is read; anything longer is no file of ours.
const HEADER_LIMIT: u64 = 64 << 10;

/// The first line of a session's file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The session's id, which is also the file's name.
    pub session_id: String,
    /// The directory the session began in.
    pub cwd: PathBuf,
    /// The first prompt in one short line.
    pub title: String,
}

/// Where a session's updates are kept.
pub enum Log {
    /// Nowhere yet: the file is made at the first prompt, so that an unused session leaves nothing behind.
    Unborn,
    /// In the session's file.
    Disk,
    /// Only here, because the file could not be written.
    Memory(Vec<Value>),
}

/// A session found on disk.
pub struct Saved {
    /// Its first line.
    pub header: Header,
    /// When its file last changed.
    pub changed: SystemTime,
}

type Say = Box<dyn FnOnce(&str) + Send>;

/// The directory with the session files.
///
/// Its calls block. Each writes or reads a few kilobytes, which is not worth a thread in a demo.
pub struct Store {
    dir: Option<PathBuf>,
    /// Tells the user something, and is gone once it has.
    say: Option<Say>,
}

impl Store {
    /// The store in `dir`; without one, sessions last as long as the process, which `say` then tells the user.
    pub fn new(dir: Option<PathBuf>, say: impl FnOnce(&str) + Send + 'static) -> Self {
        let say: Say = Box::new(say);
        Self {
            dir,
            say: Some(say),
        }
    }

    /// Begins the file of a session.
    pub fn create(&mut self, header: &Header) -> Log {
        match self.try_create(header) {
            Ok(()) => Log::Disk,
            Err(error) => {
                self.warn(&error);
                Log::Memory(Vec::new())
            }
        }
    }

    /// Adds one update. A full or vanished disk must not end the conversation: it goes on in memory.
    pub fn append(&mut self, id: &str, log: &mut Log, update: &Value) {
        let error = match log {
            Log::Unborn => return,
            Log::Memory(updates) => return updates.push(update.clone()),
            Log::Disk => match self.try_append(id, update) {
                Ok(()) => return,
                Err(error) => error,
            },
        };
        self.warn(&error);
        let mut updates = self.read(id).ok().flatten().unwrap_or_default();
        updates.push(update.clone());
        *log = Log::Memory(updates);
    }

    /// Everything kept of a session, oldest first; `None` if there is no such session on disk.
    pub fn read(&self, id: &str) -> io::Result<Option<Vec<Value>>> {
        let text = match self.path(id).and_then(fs::read) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut lines = text.lines();
        let header = lines
            .next()
            .and_then(|line| serde_json::from_str::<Header>(line).ok());
        // The file system may not tell names apart as we do, so the file itself has to say whose it is.
        if header.is_none_or(|header| header.session_id != id) {
            return Ok(None);
        }
        if !text.ends_with('\n') {
            // The process died in the middle of a line: close it, or the next update would be lost with it.
            let closed = self.open(id).and_then(|mut file| file.write_all(b"\n"));
            closed.unwrap_or_else(
                |error| tracing::debug!(%error, id, "cannot mend the session file"),
            );
        }
        Ok(Some(
            lines
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
        ))
    }

    /// The sessions on disk, newest first.
    pub fn list(&self) -> Vec<Saved> {
        let entries = self.dir.as_ref().and_then(|dir| fs::read_dir(dir).ok());
        let saved = |path: &Path| {
            let id = path.file_name()?.to_str()?.strip_suffix(".ndjson")?;
            let file = File::open(path).ok().filter(|_| place::is_session(id))?;
            let changed = file.metadata().and_then(|data| data.modified()).ok()?;
            let mut line = String::new();
            BufReader::new(file.take(HEADER_LIMIT))
                .read_line(&mut line)
                .ok()?;
            let header = serde_json::from_str::<Header>(&line).ok()?;
            (header.session_id == id).then_some(Saved { header, changed })
        };
        let mut list: Vec<Saved> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| saved(&entry.ok()?.path()))
            .collect();
        // An id begins with the time of its session's birth: the order where the clock is too coarse.
        let age = |saved: &Saved| (saved.changed, saved.header.session_id.clone());
        list.sort_by_key(|saved| std::cmp::Reverse(age(saved)));
        list
    }

    fn path(&self, id: &str) -> io::Result<PathBuf> {
        match &self.dir {
            Some(dir) if place::is_session(id) => Ok(dir.join(format!("{id}.ndjson"))),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn try_create(&self, header: &Header) -> io::Result<()> {
        let path = self.path(&header.session_id)?;
        if let Some(dir) = &self.dir {
            private_dir(dir)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        // Prompts are nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        write_line(&mut options.open(path)?, header)
    }

    fn try_append(&self, id: &str, update: &Value) -> io::Result<()> {
        write_line(&mut self.open(id)?, update)
    }

    fn open(&self, id: &str) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path(id)?)
    }

    /// Says once that sessions will not outlive the process.
    fn warn(&mut self, error: &io::Error) {
        if let Some(say) = self.say.take() {
            let why = match &self.dir {
                Some(dir) => format!("cannot write to {}: {error}", dir.display()),
                None => "there is no directory for sessions; set ACPIPE_DEMO_DIR".to_owned(),
            };
            say(&format!("{why}. Sessions will end with this process."));
        }
    }
}

/// Writes one line in one call, so that two processes which share a session do not mix theirs.
fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
