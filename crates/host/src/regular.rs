//! Opening of files by their names, without a moment between check and use: what is open is checked, and read from
//! the same descriptor.
//!
//! Files of the state directory are no links. Configuration files may be, if each link belongs to a trusted user. None
//! of them can block: a pipe, device or directory in their place is an error.

use super::ownership::{self, check_file, check_mode};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of links that lead to a file, as on Linux.
const MOST_LINKS: usize = 40;

/// File behind the links of trusted users.
#[derive(Debug)]
pub struct FollowedFile {
    pub file: File,
    /// Path of the file without a link in its last part.
    pub path: PathBuf,
    /// `true` if the path means an open descriptor, as `/dev/stderr` does: the process that started acpipe chose it.
    pub is_descriptor: bool,
}

/// Opens a file of the state directory with the given options.
///
/// # Errors
/// The file cannot be opened, is a link or not regular, belongs to another user, or can be written by every user.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let Some(file) = open_itself(options, path)? else {
        return Err(invalid("a symbolic link is in its place; remove it"));
    };
    check_regular(&file)?;
    check_mode(&file)?;
    Ok(file)
}

/// Creates a file of the state directory that only its owner can access. What has its name, such as a leftover of a
/// crash or a link of another user, is removed.
///
/// # Errors
/// The file cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

/// Opens a file of the state directory for reading.
///
/// # Errors
/// As those of [`open`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Reads a file of the state directory, of at most `most` bytes.
///
/// # Errors
/// As those of [`open`], or the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Opens a file of the user in its usual place for reading: a configuration, or the session file of an agent.
///
/// # Errors
/// The file cannot be opened or is not regular, or a file or link on the way belongs to another user.
pub fn open_own(path: &Path) -> io::Result<FollowedFile> {
    let followed = follow(OpenOptions::new().read(true), path)?;
    check_regular(&followed.file)?;
    Ok(followed)
}

/// Opens a directory of the state directory, which may be a link of a trusted user.
///
/// # Errors
/// It cannot be opened, or it or the link belongs to another user.
pub fn open_directory(path: &Path) -> io::Result<File> {
    ownership::check_link(path)?;
    // A directory may be one that its owner cannot list.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    let directory = File::from(opened);
    check_file(&directory)?;
    Ok(directory)
}

/// Opens a file of another program for reading, with any owner; pipes and devices are refused.
///
/// # Errors
/// The file cannot be opened, or is not regular.
pub fn open_foreign(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(bits(OFlags::NONBLOCK));
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(file)
}

/// Opens a file and follows links of trusted users only. A pipe is not waited for, and its descriptor does not block.
///
/// # Errors
/// The file cannot be opened, or a link belongs to another user.
pub fn follow(options: &mut OpenOptions, path: &Path) -> io::Result<FollowedFile> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Some(file) = open_itself(options, &path)? {
            return Ok(FollowedFile {
                file,
                path,
                is_descriptor: false,
            });
        }
        let Some(target) = target_of(&path)? else {
            let file = options.custom_flags(bits(OFlags::NONBLOCK)).open(&path)?;
            return Ok(FollowedFile {
                file,
                path,
                is_descriptor: true,
            });
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(invalid("too many symbolic links"))
}

/// Opens a file without following a link in the last part of its path; returns `None` if it is a link.
fn open_itself(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    let opened = options
        .custom_flags(bits(OFlags::NONBLOCK | OFlags::NOFOLLOW))
        .open(path);
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => Ok(None),
        // Something that cannot be opened, such as a socket or a file with mode 0600, is reported as that of another user.
        Err(error) => match ownership::check(path) {
            Err(foreign) if ownership::is_foreign(&foreign) => Err(foreign),
            _ => Err(error),
        },
    }
}

/// Returns the target of a link of a trusted user; `None` if the system leads to an open descriptor.
#[cfg(target_os = "linux")]
fn target_of(link: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::ffi::OsStringExt as _;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let link = File::from(rustix::fs::open(link, flags, rustix::fs::Mode::empty())?);
    check_file(&link)?;
    if rustix::fs::fstatfs(&link)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
        return Ok(None);
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
    let target = std::ffi::OsString::from_vec(target.into_bytes());
    Ok(Some(target.into()))
}

/// These systems cannot open a link, so that its owner could exchange it between the two calls.
#[cfg(not(target_os = "linux"))]
fn target_of(link: &Path) -> io::Result<Option<PathBuf>> {
    ownership::check_link(link)?;
    fs::read_link(link).map(Some)
}

/// Checks that an open file is a regular one of a trusted user.
fn check_regular(file: &File) -> io::Result<()> {
    check_file(file)?;
    if !file.metadata()?.is_file() {
        return Err(invalid("not a regular file; remove it"));
    }
    Ok(())
}

fn bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}
