//! Messages between acpipe and a supervisor, over a private socket.

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Order from acpipe to a supervisor. The end of the socket stands for the end of acpipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorOrder {
    /// SIGTERM to the agent's process group; the agent ends its tools itself.
    Terminate,
    /// SIGKILL to all descendants of the supervisor.
    Kill,
}

impl SupervisorOrder {
    pub fn byte(self) -> u8 {
        match self {
            Self::Terminate => b't',
            Self::Kill => b'k',
        }
    }

    pub fn of(byte: u8) -> Option<Self> {
        match byte {
            b't' => Some(Self::Terminate),
            b'k' => Some(Self::Kill),
            _ => None,
        }
    }
}

/// Message from a supervisor to acpipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorEvent {
    /// The agent runs, with this process id.
    Running(i32),
    /// The agent could not be started; the value is the errno.
    Failed(i32),
    /// The agent exited with this `wait` status. Its remaining processes are being ended.
    Ended(i32),
}

impl SupervisorEvent {
    /// Length of an encoded message in bytes.
    pub const SIZE: usize = 5;

    pub fn bytes(self) -> [u8; Self::SIZE] {
        let (kind, value) = match self {
            Self::Running(pid) => (b'r', pid),
            Self::Failed(errno) => (b'f', errno),
            Self::Ended(status) => (b'e', status),
        };
        let [a, b, c, d] = value.to_ne_bytes();
        [kind, a, b, c, d]
    }

    pub fn of([kind, a, b, c, d]: [u8; Self::SIZE]) -> Option<Self> {
        let value = i32::from_ne_bytes([a, b, c, d]);
        match kind {
            b'r' => Some(Self::Running(value)),
            b'f' => Some(Self::Failed(value)),
            b'e' => Some(Self::Ended(value)),
            _ => None,
        }
    }
}

/// Sends the pipes for the agent's stdin, stdout and stderr.
pub fn send_pipes(socket: &UnixStream, pipes: [BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&pipes));
    sendmsg(
        socket,
        &[IoSlice::new(b"s")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives the pipes; `None` if acpipe has ended.
pub fn receive_pipes(socket: &UnixStream) -> io::Result<Option<[OwnedFd; 3]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::empty();
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let mut pipes = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            for pipe in fds {
                // Only the agent gets the pipes, as its standard streams; no other process inherits them.
                fcntl_setfd(&pipe, FdFlags::CLOEXEC)?;
                pipes.push(pipe);
            }
        }
    }
    Ok(pipes.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;

    #[test]
    fn orders_and_reports_survive_encoding() {
        for news in [
            SupervisorEvent::Running(7),
            SupervisorEvent::Failed(2),
            SupervisorEvent::Ended(-1),
        ] {
            assert_eq!(SupervisorEvent::of(news.bytes()), Some(news));
        }
        for order in [SupervisorOrder::Terminate, SupervisorOrder::Kill] {
            assert_eq!(SupervisorOrder::of(order.byte()), Some(order));
        }
        assert_eq!(
            (SupervisorOrder::of(b's'), SupervisorEvent::of([0; 5])),
            (None, None)
        );
    }

    #[test]
    fn pipes_are_passed_over_the_socket() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send_pipes(&ours, [writer.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
        drop(writer);
        let [one, two, three] = receive_pipes(&theirs).unwrap().unwrap();
        std::fs::File::from(two).write_all(b"here").unwrap();
        drop((one, three));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "here");
        drop(ours);
        assert!(receive_pipes(&theirs).unwrap().is_none());
    }
}
