//! Queue of lines to an agent's stdin, bounded in number and in bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Maximum number of queued messages. An agent that reads accepts thousands in a second; a thousand unread
/// ones mean that it does not read.
const MESSAGES: usize = 1024;

/// Maximum number of queued bytes: four of the largest messages that a client can send by default
/// (`--max-line`), so that prompts with attachments in several sessions do not fail an agent that only reads
/// slowly.
const BYTES: usize = 256 << 20;

/// Sending half, owned by the loop.
#[derive(Debug)]
pub struct StdinSender {
    lines: mpsc::Sender<Vec<u8>>,
    bytes: Arc<AtomicUsize>,
}

/// Receiving half, owned by the task that writes to stdin.
#[derive(Debug)]
pub struct StdinReceiver {
    lines: mpsc::Receiver<Vec<u8>>,
    bytes: Arc<AtomicUsize>,
}

/// Error: the process does not read its stdin, and the queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct StdinFull;

/// Creates an empty queue.
pub fn channel() -> (StdinSender, StdinReceiver) {
    let (sender, receiver) = mpsc::channel(MESSAGES);
    let bytes = Arc::new(AtomicUsize::new(0));
    let sender = StdinSender {
        lines: sender,
        bytes: Arc::clone(&bytes),
    };
    let receiver = StdinReceiver {
        lines: receiver,
        bytes,
    };
    (sender, receiver)
}

impl StdinSender {
    /// Queues lines. An empty queue accepts a message of any size. Lines for a process whose stdin is closed
    /// are dropped: the closing is reported elsewhere.
    ///
    /// # Errors
    /// The queue is full.
    pub fn send(&self, lines: Vec<u8>) -> Result<(), StdinFull> {
        let (queued, len) = (self.bytes.load(Ordering::Relaxed), lines.len());
        if queued > 0 && queued.saturating_add(len) > BYTES {
            return Err(StdinFull);
        }
        // Counted before the message can be received: only the receiver subtracts.
        self.bytes.fetch_add(len, Ordering::Relaxed);
        match self.lines.try_send(lines) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.bytes.fetch_sub(len, Ordering::Relaxed);
                Err(StdinFull)
            }
        }
    }
}

impl StdinReceiver {
    /// Receives the next lines; `None` once the sender is dropped and the queue is empty. The lines count as
    /// queued until [`StdinReceiver::written`].
    pub async fn recv(&mut self) -> Option<Vec<u8>> {
        self.lines.recv().await
    }

    /// Subtracts received bytes once they are written.
    pub fn written(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn queue_is_bounded_in_bytes_until_they_are_written() {
        let (sender, mut receiver) = channel();
        let half = vec![b'x'; BYTES / 2];
        sender.send(half.clone()).unwrap();
        sender.send(half).unwrap();
        assert_eq!(sender.send(vec![b'x']), Err(StdinFull));
        let lines = receiver.recv().await.unwrap();
        // Lines count while they are being written, which is where an agent that does not read blocks.
        assert_eq!(sender.send(vec![b'x']), Err(StdinFull));
        receiver.written(lines.len());
        assert_eq!(sender.send(vec![b'x']), Ok(()));
    }

    #[tokio::test]
    async fn message_above_the_bound_is_taken_when_nothing_else_is_queued() {
        let (sender, mut receiver) = channel();
        let large = vec![b'x'; BYTES + 1];
        sender.send(large).unwrap();
        assert_eq!(sender.send(b"next".to_vec()), Err(StdinFull));
        let lines = receiver.recv().await.unwrap();
        receiver.written(lines.len());
        assert_eq!(sender.send(b"next".to_vec()), Ok(()));
    }

    #[test]
    fn queue_is_bounded_in_number_and_a_refused_message_does_not_count() {
        let (sender, _receiver) = channel();
        for _ in 0..MESSAGES {
            sender.send(b"x".to_vec()).unwrap();
        }
        assert_eq!(sender.send(b"x".to_vec()), Err(StdinFull));
        assert_eq!(sender.bytes.load(Ordering::Relaxed), MESSAGES);
    }

    #[test]
    fn lines_for_a_closed_stdin_are_dropped() {
        let (sender, receiver) = channel();
        drop(receiver);
        assert_eq!(sender.send(b"x".to_vec()), Ok(()));
    }
}
