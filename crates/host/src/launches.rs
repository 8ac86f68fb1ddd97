//! Launch records, which map processes to the acpipe that started them, so that a later acpipe can end the
//! leftovers of a killed one.
//!
//! ```text
//! <state directory>/launches/<id>.json    a record, locked while its acpipe runs
//! ```
//!
//! Every process that acpipe starts has a mark in its environment, `ACPIPE_LAUNCH=<id>/<number>`, and passes
//! it on to all its descendants. A supervisor ends its processes when acpipe ends; the record is for the case
//! that the supervisor was killed, too. If the lock of a record is free and its process does not exist, its
//! acpipe was killed: the processes with its mark are ended, then the record is removed. Process ids alone
//! are never trusted, since they are reused.

mod ending;

use super::regular;
use super::supervisor::tree;
use acpipe_json::read_bytes;
pub use ending::{EndedLaunch, LaunchedProcess, end_left, kill_marked, launched};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tracing::{info, warn};

/// Variable that marks the processes of a launch.
pub const MARK: &str = "ACPIPE_LAUNCH";

/// Directory of the records within the state directory.
const DIRECTORY: &str = "launches";

/// File extensions of a record and of one that is being written.
const RECORD: &str = "json";
const NEW: &str = "new";

/// Maximum number of attempts to create the directory for a record.
const ATTEMPTS: u32 = 3;

/// Maximum number of records that are read.
const MAX_RECORDS: usize = 1024;

/// Maximum size of a record in bytes; the rest is not read.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// Age after which an incomplete record is removed as a leftover.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Maximum number of processes in a log line.
const NAMED: usize = 8;

/// Content of a launch record; all defaults if the record cannot be read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LaunchRecord {
    /// Version of the format.
    format: u32,
    /// Process id of acpipe.
    pub pid: u32,
    /// Start time of acpipe in clock ticks since boot; absent if the system does not provide it.
    started: Option<u64>,
    /// Id of the boot; absent if the system does not provide it.
    boot: Option<String>,
    /// Grace period of the supervisors between SIGTERM and SIGKILL, in milliseconds.
    grace_ms: u64,
    /// Start time of acpipe in milliseconds since 1970.
    pub at: u64,
}

/// Launch of this acpipe: its record and the marks of its processes.
#[derive(Debug)]
pub struct Launch {
    id: String,
    /// Number of marks issued.
    marks: AtomicU64,
    start: Mutex<LaunchStart>,
    /// Whether processes may be left when acpipe ends.
    keep_record: AtomicBool,
}

/// Start of a launch, which a thread performs because it takes as long as the rest of the start of acpipe.
#[derive(Debug, Default)]
struct LaunchStart {
    /// The thread, until its result is needed.
    thread: Option<JoinHandle<Started>>,
    started: Started,
}

/// Result of the start of a launch.
#[derive(Debug, Default)]
struct Started {
    record: Option<OwnRecord>,
    /// Thread that ends the leftovers of earlier launches.
    cleaner: Option<JoinHandle<()>>,
}

/// Record of this acpipe. The lock is released when the handle is dropped.
#[derive(Debug)]
struct OwnRecord {
    path: PathBuf,
    /// State directory, if it was created only for this record.
    made: Option<PathBuf>,
    _lock: File,
}

impl Launch {
    /// Starts to write the record of this acpipe, and to end the leftovers of killed ones. If the record cannot
    /// be written, acpipe works without it.
    #[must_use]
    pub fn begin(state: Option<&Path>, grace: Duration) -> Arc<Self> {
        let id = random_id();
        let start = state.map(|state| LaunchStart::begin(state, &id, grace));
        Arc::new(Self {
            id,
            marks: AtomicU64::new(0),
            start: Mutex::new(start.unwrap_or_default()),
            keep_record: AtomicBool::new(false),
        })
    }

    /// Returns a new mark for the processes of one supervisor. Waits until the record is written, without which
    /// the next acpipe would not find these processes.
    pub fn next_mark(&self) -> String {
        self.start().done();
        let number = self.marks.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}/{number}", self.id)
    }

    fn start(&self) -> MutexGuard<'_, LaunchStart> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of processes of this launch that run.
    pub fn processes(&self) -> usize {
        launch_processes(&self.id).len()
    }

    /// Keeps the record after the end of acpipe if processes are left then.
    pub fn keep_record(&self) {
        self.keep_record.store(true, Ordering::Relaxed);
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let Started { record, cleaner } = mem::take(self.start().done());
        if let Some(cleaner) = cleaner {
            let _ = cleaner.join();
        }
        let left =
            self.keep_record.load(Ordering::Relaxed) && !launch_processes(&self.id).is_empty();
        if let Some(record) = record.filter(|_| !left) {
            // A later acpipe removes a record that cannot be removed now.
            let _ = fs::remove_file(&record.path);
            // Directories that are not empty stay, because they hold other data.
            if let Some(state) = &record.made {
                let _ = fs::remove_dir(state.join(DIRECTORY)).and_then(|()| fs::remove_dir(state));
            }
        }
    }
}

impl LaunchStart {
    fn begin(state: &Path, id: &str, grace: Duration) -> Self {
        let thread = std::thread::Builder::new().name("launch".to_owned());
        let begin = (state.to_owned(), id.to_owned());
        let thread = thread.spawn(move || Started::begin(&begin.0, &begin.1, grace));
        let started = match &thread {
            Ok(_) => Started::default(),
            Err(_) => Started::begin(state, id, grace),
        };
        let thread = thread.ok();
        Self { thread, started }
    }

    /// Waits until the launch has started.
    fn done(&mut self) -> &mut Started {
        if let Some(thread) = self.thread.take() {
            // A panic leaves the launch without a record.
            self.started = thread.join().unwrap_or_default();
        }
        &mut self.started
    }
}

impl Started {
    fn begin(state: &Path, id: &str, grace: Duration) -> Self {
        let record = match OwnRecord::write(state, id, grace) {
            Ok(record) => Some(record),
            Err(error) => {
                let dir = state.join(DIRECTORY);
                info!(dir = %dir.display(), %error, "cannot write the launch record");
                None
            }
        };
        let cleaner = has_other_records(state, id).then(|| state.to_owned());
        let cleaner = cleaner.and_then(|state| {
            let thread = std::thread::Builder::new().name("launches".to_owned());
            thread.spawn(move || report(&end_left(&state))).ok()
        });
        Self { record, cleaner }
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

    /// Writes the record. It is locked before it gets its name, because an unlocked record counts as that of
    /// a killed acpipe.
    fn write_once(state: &Path, id: &str, grace: Duration) -> io::Result<Self> {
        let dir = state.join(DIRECTORY);
        super::ownership::make_private(&dir)?;
        let own = rustix::process::getpid();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let record = LaunchRecord {
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
        let mut file = regular::create(&new)?;
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

/// Record found in the state directory.
#[derive(Debug)]
struct FoundRecord {
    id: String,
    path: PathBuf,
    record: LaunchRecord,
    /// Set if the acpipe of the record has ended. Holds the lock, so that no other acpipe ends the same
    /// processes meanwhile.
    left: Option<File>,
}

/// Returns the records in a state directory, sorted by name.
fn records(state: &Path) -> Vec<FoundRecord> {
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

fn find(path: PathBuf) -> Option<FoundRecord> {
    let id = path.file_stem()?.to_str()?.to_owned();
    let mut json = Vec::new();
    let file = regular::open_to_read(&path).ok()?;
    (&file).take(MAX_RECORD_BYTES).read_to_end(&mut json).ok()?;
    let record: LaunchRecord = read_bytes(&json).unwrap_or_default();
    let locked = file.try_lock().is_ok();
    // Its acpipe, or another one that ended its leftovers, may have removed the record before the lock was
    // acquired.
    if locked && !path.exists() {
        return None;
    }
    let left = (locked && !record.lives()).then_some(file);
    Some(FoundRecord {
        id,
        path,
        record,
        left,
    })
}

/// Removes an incomplete record that a crash left behind, unless it is so new that it may be in progress.
fn remove_if_abandoned(path: &Path) {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    if age.is_some_and(|age| age > ABANDONED) && path.extension().is_some_and(|e| e == NEW) {
        let _ = fs::remove_file(path);
    }
}

impl LaunchRecord {
    /// Returns `true` if the acpipe of the record runs, by its process. The lock is not enough, because some
    /// file systems have no locks.
    fn lives(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let now = pid.and_then(tree::look).map(tree::Member::started);
        self.is_of_this_boot() && now.is_some() && now == self.started
    }

    /// Returns `true` if the record is from this boot, or its boot is unknown. No process survives a reboot.
    fn is_of_this_boot(&self) -> bool {
        self.boot.is_none() || self.boot == boot_id()
    }
}

/// Returns all processes of a launch.
fn launch_processes(id: &str) -> Vec<tree::Member> {
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

/// Returns the id of this boot; `None` except on Linux.
fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns 128 random bits.
fn random_id() -> String {
    let last = random_number() ^ u64::from(std::process::id());
    format!("{:016x}{last:016x}", random_number())
}

/// Returns a random number, from the seed of the standard library's hash maps.
#[must_use]
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn report(ended: &[EndedLaunch]) {
    for EndedLaunch {
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
        warn!("ended {count} orphaned {verb} of the killed acpipe {acpipe}: {lines}{more}");
        if *remaining > 0 {
            warn!("{remaining} of them did not end; list them with acpipe processes");
        }
    }
}
