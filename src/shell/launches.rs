//! Launch records: which processes belong to which acpipe, so that a later acpipe can end what a killed one left.
//!
//! ```text
//! <state directory>/launches/<id>.json    a record, locked while its acpipe lives
//! ```
//!
//! Every process that acpipe starts has a mark in its environment, `ACPIPE_LAUNCH=<id>/<number>`, and passes it on to all
//! that it starts. A supervisor ends its processes when acpipe ends; the record is for the case that the supervisor was
//! killed too. A record whose lock is free, and whose process does not live, belongs to an acpipe that was killed: what has
//! its mark is ended, then the record is removed. Process ids alone are never trusted, since they are used again.

mod ending;

use super::keeper::tree;
use super::regular;
pub use ending::{Ended, LaunchedProcess, end_left, kill_marked, launched};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tracing::{info, warn};

/// The variable that marks the processes of a launch.
pub const MARK: &str = "ACPIPE_LAUNCH";

/// The directory of the records, in the state directory.
const DIRECTORY: &str = "launches";

/// The extension of a record, and of one that is being written.
const RECORD: &str = "json";
const NEW: &str = "new";

/// How often the directory is made for a record.
const ATTEMPTS: u32 = 3;

/// How many records are looked at.
const MAX_RECORDS: usize = 1024;

/// The largest record that is read, in bytes.
const LONGEST: u64 = 64 << 10;

/// After this time a file that was to become a record belongs to nobody.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How many processes a log line names.
const NAMED: usize = 8;

/// What is known of a launch. Of one whose record cannot be read only the id is, which is the name of the file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// Version of the form.
    format: u32,
    /// The process id of acpipe.
    pub pid: u32,
    /// When acpipe was started, in clock ticks since the boot; absent where the system does not tell.
    started: Option<u64>,
    /// The id of the boot; absent where the system does not tell.
    boot: Option<String>,
    /// For how long the supervisors wait between SIGTERM and SIGKILL, in milliseconds.
    grace_ms: u64,
    /// When acpipe was started, in milliseconds since 1970.
    pub at: u64,
}

/// The launch of this acpipe.
#[derive(Debug)]
pub struct Launch {
    id: String,
    /// How many marks were given.
    marks: AtomicU64,
    record: Option<OwnRecord>,
    /// Whether processes may be left when acpipe ends.
    keep_record: AtomicBool,
    /// Ends what earlier launches left.
    cleaner: Mutex<Option<JoinHandle<()>>>,
}

/// The record of this acpipe. The lock ends with the handle.
#[derive(Debug)]
struct OwnRecord {
    path: PathBuf,
    /// The state directory, where it was made for this record alone.
    made: Option<PathBuf>,
    _lock: File,
}

impl Launch {
    /// Writes the record of this acpipe, and begins to end what killed ones left. Where no record can be written, all else
    /// works without.
    #[must_use]
    pub fn begin(state: Option<&Path>, grace: Duration) -> Arc<Self> {
        let id = random_id();
        let record = state.and_then(|state| match OwnRecord::write(state, &id, grace) {
            Ok(record) => Some(record),
            Err(error) => {
                let dir = state.join(DIRECTORY);
                info!(dir = %dir.display(), %error, "cannot write the launch record");
                None
            }
        });
        let cleaner = state.filter(|state| has_other_records(state, &id));
        let cleaner = cleaner.map(Path::to_owned).and_then(|state| {
            let thread = std::thread::Builder::new().name("launches".to_owned());
            thread.spawn(move || report(&end_left(&state))).ok()
        });
        Arc::new(Self {
            id,
            marks: AtomicU64::new(0),
            record,
            keep_record: AtomicBool::new(false),
            cleaner: Mutex::new(cleaner),
        })
    }

    /// A mark for the processes of one more supervisor.
    pub fn next_mark(&self) -> String {
        let number = self.marks.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}/{number}", self.id)
    }

    /// Processes may be left when acpipe ends: then the record stays.
    pub fn keep_record(&self) {
        self.keep_record.store(true, Ordering::Relaxed);
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let cleaner = self
            .cleaner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(cleaner) = cleaner {
            let _ = cleaner.join();
        }
        let left = self.keep_record.load(Ordering::Relaxed) && !of_launch(&self.id).is_empty();
        if let Some(record) = self.record.as_ref().filter(|_| !left) {
            // One that cannot be removed is removed by a later acpipe.
            let _ = fs::remove_file(&record.path);
            // Directories that are not empty stay: others have something in them.
            if let Some(state) = &record.made {
                let _ = fs::remove_dir(state.join(DIRECTORY)).and_then(|()| fs::remove_dir(state));
            }
        }
    }
}

impl OwnRecord {
    fn write(state: &Path, id: &str, grace: Duration) -> io::Result<Self> {
        let made = (!state.exists()).then(|| state.to_owned());
        for _ in 0..ATTEMPTS {
            match Self::write_once(state, id, grace) {
                // Another acpipe that ended has removed the directory.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                written => return Ok(Self { made, ..written? }),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// A record is locked before it has its name: without its lock it would be that of a killed acpipe.
    fn write_once(state: &Path, id: &str, grace: Duration) -> io::Result<Self> {
        let dir = state.join(DIRECTORY);
        super::store::make_private(&dir)?;
        let own = rustix::process::getpid();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let record = Record {
            format: 1,
            pid: own.as_raw_nonzero().get().unsigned_abs(),
            started: tree::look(own).map(tree::Member::started),
            boot: boot_id(),
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
            at: since.map_or(0, |since| {
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
        };
        let (new, path) = (
            dir.join(id).with_extension(NEW),
            dir.join(id).with_extension(RECORD),
        );
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        let json = serde_json::to_vec(&record).unwrap_or_default();
        let written = file
            .try_lock()
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(&json))
            .and_then(|()| fs::rename(&new, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        Ok(Self {
            path,
            made: None,
            _lock: file,
        })
    }
}

/// Another acpipe's record.
#[derive(Debug)]
struct Found {
    id: String,
    path: PathBuf,
    record: Record,
    /// Held where its acpipe does not live: no other acpipe ends the same processes meanwhile.
    left: Option<File>,
}

/// The records in a state directory, in the order of their names.
fn records(state: &Path) -> Vec<Found> {
    let entries = fs::read_dir(state.join(DIRECTORY))
        .into_iter()
        .flatten()
        .flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .take(MAX_RECORDS)
        .collect();
    paths.sort();
    let is_record = |path: &PathBuf| path.extension().is_some_and(|e| e == RECORD);
    for path in paths.iter().filter(|path| !is_record(path)) {
        remove_if_abandoned(path);
    }
    paths
        .into_iter()
        .filter(is_record)
        .filter_map(find)
        .collect()
}

fn find(path: PathBuf) -> Option<Found> {
    let id = path.file_stem()?.to_str()?.to_owned();
    let mut json = Vec::new();
    let file = regular::open_to_read(&path).ok()?;
    (&file).take(LONGEST).read_to_end(&mut json).ok()?;
    let record: Record = serde_json::from_slice(&json).unwrap_or_default();
    let locked = file.try_lock().is_ok();
    // Its acpipe, or another that ended what was left, may have removed it before the lock was had.
    if locked && !path.exists() {
        return None;
    }
    let left = (locked && !record.lives()).then_some(file);
    Some(Found {
        id,
        path,
        record,
        left,
    })
}

/// A crash left it half-way, unless it is being written now.
fn remove_if_abandoned(path: &Path) {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    if age.is_some_and(|age| age > ABANDONED) && path.extension().is_some_and(|e| e == NEW) {
        let _ = fs::remove_file(path);
    }
}

impl Record {
    /// Whether its acpipe lives, by what else than the lock is known: some file systems have no locks.
    fn lives(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let now = pid.and_then(tree::look).map(tree::Member::started);
        self.is_of_this_boot() && now.is_some() && now == self.started
    }

    /// Whether the machine was not started anew meanwhile: then nothing of the launch can be left.
    fn is_of_this_boot(&self) -> bool {
        self.boot.is_none() || self.boot == boot_id()
    }
}

/// All processes of a launch.
fn of_launch(id: &str) -> Vec<tree::Member> {
    let is_of_launch = |mark: &str| mark.split_once('/').is_some_and(|(launch, _)| launch == id);
    tree::marked(MARK, is_of_launch)
}

fn has_other_records(state: &Path, own: &str) -> bool {
    let entries = fs::read_dir(state.join(DIRECTORY))
        .into_iter()
        .flatten()
        .flatten();
    let mut others = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with(own));
    others.next().is_some()
}

/// The id of this boot of the machine, as Linux tells.
fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// 128 bits of which the standard library's hash maps take their seed.
fn random_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!(
        "{:016x}{:016x}",
        random(),
        random() ^ u64::from(std::process::id())
    )
}

fn report(ended: &[Ended]) {
    for Ended {
        acpipe,
        processes,
        remaining,
    } in ended
    {
        let lines = processes.iter().take(NAMED);
        let lines: Vec<String> = lines
            .map(|process| format!("{} ({})", process.command, process.pid))
            .collect();
        let more = processes.len().saturating_sub(NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let (count, lines) = (processes.len(), lines.join(", "));
        let verb = if count == 1 { "process" } else { "processes" };
        warn!(
            "ended {count} {verb} that acpipe {acpipe}, which was killed, left behind: {lines}{more}"
        );
        if *remaining > 0 {
            warn!("{remaining} of them do not end: acpipe processes shows them");
        }
    }
}
