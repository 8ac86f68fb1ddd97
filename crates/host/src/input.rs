//! The client's stdin, read on its own thread so that the descriptor's flags stay unchanged.

use acpipe_json::frame::{ClientFrame, ClientFrames, Framing, release_memory};
use bytes::BytesMut;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder;

/// Size of a read in bytes.
const READ_SIZE: usize = 64 * 1024;

/// Capacity of the queue in messages before the client is slowed: enough for a burst of small ones.
const QUEUE: usize = 64;

/// Capacity of the queue in bytes: one message of the default maximum size (`--max-line`). A larger message
/// is accepted if the queue is empty.
const QUEUE_BYTES: usize = 64 << 20;

/// Input of the client.
#[derive(Debug)]
pub enum ClientInput {
    /// Message and its framing. The message counts as queued until the last field is dropped.
    Frame(Framing, ClientFrame, ReservedBytes),
    /// Line typed at the terminal for the question of this number; `None` for end of input (Ctrl-D).
    Typed(u64, Option<Vec<u8>>),
}

/// Counter of queued bytes.
#[derive(Debug, Default)]
struct Budget {
    used: Mutex<usize>,
    freed: Condvar,
}

/// A message's share of the queued bytes, released on drop.
#[derive(Debug, Default)]
pub struct ReservedBytes(Option<(Arc<Budget>, usize)>);

impl Budget {
    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until `bytes` more can be queued.
    fn reserve(self: &Arc<Self>, bytes: usize) -> ReservedBytes {
        let mut used = self.used();
        while *used > 0 && used.saturating_add(bytes) > QUEUE_BYTES {
            used = self
                .freed
                .wait(used)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *used += bytes;
        ReservedBytes(Some((Arc::clone(self), bytes)))
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        if let Some((budget, bytes)) = self.0.take() {
            *budget.used() -= bytes;
            budget.freed.notify_one();
        }
    }
}

/// Returns the number of bytes that a frame holds.
fn size(frame: &ClientFrame) -> usize {
    match frame {
        ClientFrame::Message(message) => message.len(),
        // Only the head and tail of the message are held.
        ClientFrame::TooLong(_) => 0,
        ClientFrame::BadHeader(header) => header.len(),
    }
}

/// Starts a thread that reads stdin to its end, at which the channel closes.
///
/// # Errors
/// The thread could not be started.
pub fn read_stdin(max_message: usize) -> std::io::Result<mpsc::Receiver<ClientInput>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            pump(std::io::stdin().lock(), max_message, &sender);
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
            release_memory(&mut buffer, before);
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

    /// Returns a line of `bytes` bytes.
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
        // Received by the loop, but not released.
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
