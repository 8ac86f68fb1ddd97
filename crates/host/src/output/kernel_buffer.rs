//! Size of the kernel's buffer of stdout. What it holds is ahead of everything that acpipe writes later.

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::stdio::stdout;

/// Size of a small pipe in bytes; by default a pipe has 64 KiB.
const SMALL_PIPE: usize = 32 * 1024;

/// Size of a small socket buffer in bytes. The kernel doubles it for its own overhead.
const SMALL_SOCKET: usize = 16 * 1024;

/// The kernel's buffer of stdout.
#[derive(Debug)]
pub struct KernelBuffer {
    is_socket: bool,
    is_small: bool,
    /// Size before it was made small.
    original: Option<usize>,
}

impl KernelBuffer {
    pub fn new(is_socket: bool) -> Self {
        Self {
            is_socket,
            is_small: false,
            original: None,
        }
    }

    /// Makes the buffer small, or as large as it was at first. A pipe that holds more than its new size has to be
    /// read first: the next call tries again.
    pub fn set_small(&mut self, small: bool) {
        if small == self.is_small {
            return;
        }
        let outcome = if self.is_socket {
            self.resize_socket(small)
        } else {
            self.resize_pipe(small)
        };
        // Other errors concern only the delay behind a slow reader.
        if outcome != Err(Errno::BUSY) {
            self.is_small = small;
        }
    }

    fn resize_pipe(&mut self, small: bool) -> Result<(), Errno> {
        let original = match self.original {
            Some(original) => original,
            None => *self.original.insert(fcntl_getpipe_size(stdout())?),
        };
        let size = if small {
            original.min(SMALL_PIPE)
        } else {
            original
        };
        fcntl_setpipe_size(stdout(), size).map(|_| ())
    }

    fn resize_socket(&mut self, small: bool) -> Result<(), Errno> {
        let original = match self.original {
            Some(original) => original,
            // The size that it reports is doubled already.
            None => *self.original.insert(socket_send_buffer_size(stdout())? / 2),
        };
        let size = if small {
            original.min(SMALL_SOCKET)
        } else {
            original
        };
        set_socket_send_buffer_size(stdout(), size)
    }
}
