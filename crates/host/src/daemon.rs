//! The place of a daemon: its Unix socket, its lock, and its process.
//!
//! Windows would have a named pipe with the same two operations, [`DaemonListener::accept`] and
//! [`DaemonPlace::connect`]; everything above them only reads and writes bytes.

mod process;

use super::regular;
use acpipe_core::session_id::fnv1a;
pub use process::{StartedDaemon, detach};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

/// Maximum length of the path of a socket in bytes: the system's limit on Linux and macOS, without the final zero.
const LONGEST_PATH: usize = 103;

/// Advice where another user has the place of the socket.
const ELSEWHERE: &str = "choose another state directory with --state-dir, or set XDG_RUNTIME_DIR to a directory of yours";

/// Place of the daemon of a state directory. All of it is readable by its owner only.
#[derive(Debug, Clone)]
pub struct DaemonPlace {
    dir: PathBuf,
    socket: PathBuf,
}

/// Socket on which a daemon accepts connections. The daemon holds the lock of its place as long as this exists.
#[derive(Debug)]
pub struct DaemonListener {
    listener: UnixListener,
    socket: PathBuf,
    _lock: File,
}

impl DaemonPlace {
    /// Returns the place of the daemon of a state directory.
    #[must_use]
    pub fn of(state_dir: &Path) -> Self {
        let dir = state_dir.join("daemon");
        let socket = dir.join("socket");
        if socket.as_os_str().len() <= LONGEST_PATH {
            return Self { dir, socket };
        }
        let hash = fnv1a(state_dir.as_os_str().as_bytes());
        let runtime = dirs::runtime_dir().unwrap_or_else(std::env::temp_dir);
        let user = geteuid().as_raw();
        let name = format!("acpipe-{user}/{hash:016x}");
        Self {
            dir,
            socket: runtime.join(name),
        }
    }

    /// Returns the file to which the daemon logs.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Opens the log for reading. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, is a link, or belongs to another user.
    pub fn read_log(&self) -> io::Result<Option<File>> {
        match regular::open_to_read(&self.log()) {
            Ok(log) => Ok(Some(log)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the log for appending. A log that is longer than `longest` bytes is kept as an older one.
    ///
    /// # Errors
    /// It cannot be written, is a link, or belongs to another user.
    pub fn append_log(&self, longest: u64) -> io::Result<File> {
        let path = self.log();
        let open = || {
            let mut options = File::options();
            options.create(true).append(true).read(true).mode(0o600);
            regular::open(&mut options, &path)
        };
        let log = open()?;
        if log.metadata()?.len() <= longest {
            return Ok(log);
        }
        fs::rename(&path, path.with_extension("old"))?;
        open()
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Creates the directories.
    ///
    /// # Errors
    /// A directory cannot be created, or belongs to another user.
    pub fn create(&self) -> io::Result<()> {
        own_directory(&self.dir)?;
        match self.socket.parent() {
            Some(parent) => own_directory(parent),
            None => Ok(()),
        }
    }

    /// Waits until no other process starts a daemon here, and keeps others from it as long as the result exists.
    ///
    /// # Errors
    /// The directory or the file of the lock cannot be used.
    pub fn begin_start(&self) -> io::Result<File> {
        self.create()?;
        let lock = self.open_lock("start-lock")?;
        lock.lock()?;
        Ok(lock)
    }

    fn open_lock(&self, name: &str) -> io::Result<File> {
        let path = self.dir.join(name);
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        regular::open(options, &path).map_err(|error| named(&path, &error))
    }

    /// Opens the socket. Returns `None` if another daemon has it.
    ///
    /// # Errors
    /// The directory or the socket cannot be created.
    pub fn listen(&self) -> io::Result<Option<DaemonListener>> {
        self.create()?;
        let lock = self.open_lock("lock")?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The lock shows that no daemon has this socket any more.
        match fs::remove_file(&self.socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&self.socket)?;
        fs::set_permissions(&self.socket, Permissions::from_mode(0o600))?;
        Ok(Some(DaemonListener {
            listener,
            socket: self.socket.clone(),
            _lock: lock,
        }))
    }

    /// Connects to the daemon. Returns `None` if none is running.
    ///
    /// # Errors
    /// The socket cannot be used, or belongs to another user.
    pub async fn connect(&self) -> io::Result<Option<UnixStream>> {
        let stream = match UnixStream::connect(&self.socket).await {
            Ok(stream) => stream,
            Err(error) => {
                return match error.kind() {
                    // A file in place of the directory is the error of the next start.
                    ErrorKind::NotFound
                    | ErrorKind::ConnectionRefused
                    | ErrorKind::NotADirectory => Ok(None),
                    // The directory may be that of another user.
                    _ => Err(self
                        .socket
                        .parent()
                        .and_then(|parent| open_directory(parent).err())
                        .unwrap_or(error)),
                };
            }
        };
        check_peer(&stream)?;
        Ok(Some(stream))
    }
}

impl DaemonListener {
    /// Accepts the next connection of a process of the same user. Cancel safe.
    ///
    /// # Errors
    /// The system has no room for another connection.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match check_peer(&stream) {
                Ok(()) => return Ok(stream),
                Err(error) => warn!(%error, "connection refused"),
            }
        }
    }
}

impl Drop for DaemonListener {
    fn drop(&mut self) {
        // A remaining file is removed by the next daemon.
        let _ = fs::remove_file(&self.socket);
    }
}

/// Checks that the process at the other end belongs to the same user.
fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (stream.peer_cred()?.uid(), geteuid().as_raw());
    if peer == own {
        return Ok(());
    }
    let why = format!(
        "the process at the other end of the socket belongs to user {peer}, not {own}; {ELSEWHERE}"
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

/// Creates a directory that only its owner can use, or checks an existing one.
fn own_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        // Something else has the name.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => created?,
    }
    open_directory(path)?.set_permissions(Permissions::from_mode(0o700))
}

/// Opens a directory of the user.
fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    match opened {
        Ok(dir) if dir.metadata()?.uid() == geteuid().as_raw() => Ok(dir),
        _ => {
            let own = geteuid().as_raw();
            let owner = fs::symlink_metadata(path).map_or(own, |found| found.uid());
            let why = if owner == own {
                "must be a directory of the user who runs acpipe; remove it".to_owned()
            } else {
                format!("belongs to user {owner}, not {own}; {ELSEWHERE}")
            };
            Err(named(
                path,
                &io::Error::new(ErrorKind::PermissionDenied, why),
            ))
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> (PathBuf, DaemonPlace) {
        let dir = std::env::temp_dir().join(format!("acpipe-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        (dir.clone(), DaemonPlace::of(&dir))
    }

    #[tokio::test]
    async fn one_daemon_has_the_socket() {
        let (dir, place) = place("one");
        assert!(place.connect().await.unwrap().is_none());
        let first = place.listen().unwrap().unwrap();
        assert!(place.listen().unwrap().is_none());
        assert!(place.connect().await.unwrap().is_some());
        first.accept().await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&dir.join("daemon")), 0o700);
        assert_eq!(mode(place.socket()), 0o600);
        drop(first);
        assert!(place.connect().await.unwrap().is_none());
        assert!(place.listen().unwrap().is_some());
        fs::remove_dir_all(dir).unwrap();
    }

    #[tokio::test]
    async fn one_process_starts_the_daemon_at_a_time() {
        let (dir, place) = place("start");
        let begun = place.begin_start().unwrap();
        let others = File::open(dir.join("daemon/start-lock")).unwrap();
        let refused = others.try_lock();
        assert!(matches!(refused, Err(TryLockError::WouldBlock)));
        // The daemon itself has another lock.
        assert!(place.listen().unwrap().is_some());
        drop(begun);
        others.try_lock().unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[tokio::test]
    async fn socket_of_a_killed_daemon_is_replaced() {
        let (dir, place) = place("stale");
        place.create().unwrap();
        drop(std::os::unix::net::UnixListener::bind(place.socket()).unwrap());
        assert!(place.connect().await.unwrap().is_none());
        assert!(place.listen().unwrap().is_some());
        fs::remove_dir_all(dir).unwrap();
    }

    #[tokio::test]
    async fn file_in_place_of_the_directory_of_the_socket_is_named() {
        let dir = std::env::temp_dir().join(format!("acpipe-no-dir-{}", std::process::id()));
        let short = dir.join("short");
        let place = DaemonPlace {
            dir: dir.join("daemon"),
            socket: short.join("socket"),
        };
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        drop(File::create(&short).unwrap());
        assert!(place.connect().await.unwrap().is_none());
        let error = place.create().unwrap_err().to_string();
        let wanted = format!("{}: must be a directory", short.display());
        assert!(
            error.starts_with(&wanted) && error.ends_with("remove it"),
            "{error}"
        );
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn long_state_directory_has_a_short_socket() {
        let place = DaemonPlace::of(&PathBuf::from(format!("/{}", "x".repeat(200))));
        assert!(place.socket().as_os_str().len() <= LONGEST_PATH);
        let other = DaemonPlace::of(&PathBuf::from(format!("/{}", "y".repeat(200))));
        assert_ne!(place.socket(), other.socket());
    }
}
