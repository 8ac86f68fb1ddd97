//! Files that the user names on the command line. Their owners are the user's choice when they are read; what is
//! written may have secrets, and is not given to another user.

use super::ownership::check_file;
use super::regular::follow;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Time that a named pipe has until a program opens its other end.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Interval at which a pipe without a reader is tried again.
const RETRY: Duration = Duration::from_millis(10);

/// Opens a file for reading. A named pipe is waited for, as long as `LONGEST_WAIT`; then its writer has any time.
///
/// # Errors
/// The file cannot be opened, or is a pipe that no program writes.
pub fn open_input(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.file_type().is_fifo() {
        return File::open(path);
    }
    let (sender, opened) = sync_channel(1);
    let pipe = path.to_owned();
    // The system offers no such wait with a limit. Without a writer the thread is left behind.
    std::thread::Builder::new()
        .name("pipe".to_owned())
        .spawn(move || sender.send(File::open(pipe)))?;
    opened.recv_timeout(LONGEST_WAIT).unwrap_or_else(|_| {
        let why = "it is a pipe that no program opens for writing; start its writer first, or give a file";
        Err(io::Error::new(ErrorKind::TimedOut, why))
    })
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// As those of [`open_input`], or the file cannot be read or is larger.
pub fn read_input(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_input(path)?.take(most.saturating_add(1));
    io::copy(&mut { read }, &mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Opens a file for writing; the options must not truncate it. The reader of a pipe is waited for, as long as
/// `LONGEST_WAIT`.
///
/// # Errors
/// The file cannot be opened, is a pipe without a reader, or belongs to another user, as a link on the way may do.
pub fn open_output(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let begin = Instant::now();
    let opened = loop {
        match follow(options, path) {
            Err(error) if is_unread_pipe(path, &error) => {
                if begin.elapsed() >= LONGEST_WAIT {
                    let why = "it is a pipe that no program reads; start its reader first, or give a file";
                    return Err(io::Error::new(ErrorKind::TimedOut, why));
                }
                std::thread::sleep(RETRY);
            }
            opened => break opened?,
        }
    };
    let kind = opened.file.metadata()?.file_type();
    // Devices belong to the system, or to the user of the terminal.
    if !opened.is_descriptor && (kind.is_file() || kind.is_fifo()) {
        check_file(&opened.file)?;
    }
    // Writing waits for the reader of a pipe.
    let flags = fcntl_getfl(&opened.file)?;
    fcntl_setfl(&opened.file, flags - OFlags::NONBLOCK)?;
    Ok(opened.file)
}

/// Returns `true` if a pipe was not opened because it has no reader.
fn is_unread_pipe(path: &Path, error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
        && fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}
