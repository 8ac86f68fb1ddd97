//! The client's stdin, on a thread of its own: the descriptor stays as the client made it.

use crate::proto::frame::{ClientFrame, ClientFrames, Framing, give_back};
use bytes::BytesMut;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder;

/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// How many messages may wait for the loop before the client is slowed: enough for a burst of small ones.
const QUEUE: usize = 64;

/// How many bytes of messages may wait for the loop: one message of the size that is allowed by default (`--max-line`). A
/// larger one is taken when no other waits.
const QUEUE_BYTES: usize = 64 << 20;

/// What comes from the client.
#[derive(Debug)]
pub enum ClientInput {
    /// A message, and how it was framed. It counts as waiting until the last is dropped.
    Frame(Framing, ClientFrame, Waiting),
    /// What was typed at the terminal in answer to the question of this number; `None` for its end (Ctrl-D).
    Typed(u64, Option<Vec<u8>>),
    /// Nothing more will come.
    End,
}

/// How many bytes of messages wait for the loop.
#[derive(Debug, Default)]
struct Budget {
    used: Mutex<usize>,
    freed: Condvar,
}

/// A message's part of the bytes that may wait.
#[derive(Debug, Default)]
pub struct Waiting(Option<(Arc<Budget>, usize)>);

impl Budget {
    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many bytes have room.
    fn reserve(self: &Arc<Self>, bytes: usize) -> Waiting {
        let mut used = self.used();
        while *used > 0 && used.saturating_add(bytes) > QUEUE_BYTES {
            used = self
                .freed
                .wait(used)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *used += bytes;
        Waiting(Some((Arc::clone(self), bytes)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((budget, bytes)) = self.0.take() {
            *budget.used() -= bytes;
            budget.freed.notify_one();
        }
    }
}

/// How many bytes of the client a frame holds.
fn size(frame: &ClientFrame) -> usize {
    match frame {
        ClientFrame::Message(message) => message.len(),
        // Its beginning and its end.
        ClientFrame::TooLong(_) => 0,
        ClientFrame::BadHeader(header) => header.len(),
    }
}

/// Reads stdin to its end.
///
/// # Errors
/// The thread could not be made.
pub fn read_stdin(max_message: usize) -> std::io::Result<mpsc::Receiver<ClientInput>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            pump(std::io::stdin().lock(), max_message, &sender);
            // The loop is gone only when nobody cares any more.
            let _ = sender.blocking_send(ClientInput::End);
        })?;
    Ok(receiver)
}

fn pump(mut stdin: impl Read, max_message: usize, sender: &mpsc::Sender<ClientInput>) {
    let mut frames = ClientFrames::new(max_message);
    let mut buffer = BytesMut::new();
    let mut piece = vec![0; READ_SIZE];
    let budget = Arc::<Budget>::default();
    loop {
        let n = match stdin.read(&mut piece) {
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        buffer.extend_from_slice(&piece[..n]);
        loop {
            let before = buffer.len();
            let frame = if n == 0 {
                frames.decode_eof(&mut buffer)
            } else {
                frames.decode(&mut buffer)
            };
            give_back(&mut buffer, before);
            let Ok(Some(frame)) = frame else { break };
            let waiting = budget.reserve(size(&frame));
            let input = ClientInput::Frame(frames.framing(), frame, waiting);
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
        if n == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A line of so many bytes.
    fn line(bytes: usize) -> Vec<u8> {
        let mut line = vec![b' '; bytes];
        line.push(b'\n');
        line[0] = b'1';
        line
    }

    #[test]
    fn messages_beyond_the_bytes_that_may_wait_are_not_read() {
        let most = QUEUE_BYTES / 2;
        let input = [line(most - 1), line(most - 1), line(1), line(most)].concat();
        let (sender, mut receiver) = mpsc::channel(QUEUE);
        let reader = std::thread::spawn(move || pump(input.as_slice(), 2 * most, &sender));
        let queued = |receiver: &mpsc::Receiver<ClientInput>| {
            std::thread::sleep(Duration::from_millis(200));
            receiver.len()
        };
        while receiver.len() < 3 {
            std::thread::yield_now();
        }
        assert_eq!(queued(&receiver), 3);
        let first = receiver.blocking_recv().unwrap();
        // The loop has it, but is not done with it.
        assert_eq!(queued(&receiver), 2);
        drop(first);
        while receiver.len() < 3 {
            std::thread::yield_now();
        }
        drop(receiver);
        reader.join().unwrap();
    }

    #[test]
    fn reader_ends_with_the_loop_though_its_queue_is_full() {
        let input = [line(QUEUE_BYTES), line(QUEUE_BYTES)].concat();
        let (sender, receiver) = mpsc::channel(QUEUE);
        let reader = std::thread::spawn(move || pump(input.as_slice(), 2 * QUEUE_BYTES, &sender));
        while receiver.is_empty() {
            std::thread::yield_now();
        }
        drop(receiver);
        reader.join().unwrap();
    }
}
