//! Output of one connection, between the loop and the task that sends it.

use crate::direct_client::BEHIND;
use crate::output::{FULL, Pressure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Number of unread bytes behind which no more is queued and the connection is closed: replies and notifications
/// cannot be left out, so a client that never reads would otherwise use memory without limit. Output of any size is
/// accepted before that, since a single message can be larger.
const MOST_UNREAD: usize = 64 << 20;

/// Output that may be queued: bytes, or values of a client in this process.
pub trait QueuedOutput: Default {
    /// Returns `true` if there is nothing.
    fn is_empty(&self) -> bool;

    /// Returns the number of bytes.
    fn size(&self) -> usize;

    /// Moves more output to the end.
    fn append(&mut self, more: Self);
}

impl QueuedOutput for Vec<u8> {
    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn size(&self) -> usize {
        self.len()
    }

    fn append(&mut self, mut more: Self) {
        Self::append(self, &mut more);
    }
}

/// Output of one connection, as the loop sees it.
pub struct OutputQueue<B = Vec<u8>> {
    state: Mutex<OutputState<B>>,
    readable: Notify,
    note_room: Box<dyn Fn() + Send + Sync>,
}

impl<B> std::fmt::Debug for OutputQueue<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputQueue").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct OutputState<B> {
    unread: B,
    /// Number of bytes that the reader has taken but not sent yet.
    taken: usize,
    is_closed: bool,
    /// `true` if the connection was closed because its client does not read.
    is_abandoned: bool,
}

/// Output of one connection, as its task sees it. Dropping it drops all output.
#[derive(Debug)]
pub struct ConnectionOutput<B: QueuedOutput = Vec<u8>>(Arc<OutputQueue<B>>);

/// Creates the queue of a connection; `note_room` is called when its client may have room again.
pub(super) fn output_queue<B: QueuedOutput>(
    note_room: impl Fn() + Send + Sync + 'static,
) -> (Arc<OutputQueue<B>>, ConnectionOutput<B>) {
    let queue = Arc::new(OutputQueue {
        state: Mutex::default(),
        readable: Notify::new(),
        note_room: Box::new(note_room),
    });
    (Arc::clone(&queue), ConnectionOutput(queue))
}

impl<B: QueuedOutput> OutputQueue<B> {
    fn state(&self) -> MutexGuard<'_, OutputState<B>> {
        // A panic leaves no state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves output into the queue. Returns `false` if the connection is closed, or is closed now because its client
    /// does not read.
    pub fn push(&self, output: B) -> bool {
        let mut state = self.state();
        if state.is_closed {
            return false;
        }
        if state.unread() >= MOST_UNREAD {
            *state = OutputState {
                is_closed: true,
                is_abandoned: true,
                ..OutputState::default()
            };
        } else if state.unread.is_empty() {
            state.unread = output;
        } else {
            state.unread.append(output);
        }
        let is_open = !state.is_closed;
        drop(state);
        self.readable.notify_one();
        is_open
    }

    /// Closes the connection: its task gets the rest of the output, then the end.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.readable.notify_one();
    }

    /// Returns the number of bytes that the client has not read.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.state().unread()
    }

    /// Returns the backpressure of the client.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        match self.unread() {
            unread if unread > FULL => Pressure::Full,
            unread if unread > BEHIND => Pressure::Behind,
            _ => Pressure::None,
        }
    }
}

impl<B: QueuedOutput> OutputState<B> {
    fn unread(&self) -> usize {
        self.unread.size() + self.taken
    }
}

impl<B: QueuedOutput> ConnectionOutput<B> {
    /// Waits for output and returns all of it; `None` after the end. What the previous call returned counts as read
    /// by the client from now on. Cancel safe.
    pub async fn next(&mut self) -> Option<B> {
        self.note_sent();
        loop {
            {
                let mut state = self.0.state();
                if !state.unread.is_empty() {
                    state.taken = state.unread.size();
                    return Some(std::mem::take(&mut state.unread));
                }
                if state.is_closed {
                    return None;
                }
            }
            self.0.readable.notified().await;
        }
    }

    /// Waits until the connection is closed because its client does not read: what [`ConnectionOutput::next`] returned
    /// need not be sent any more. Cancel safe.
    pub async fn abandoned(&self) {
        while !self.0.state().is_abandoned {
            // `next` looks at the state first, so it needs no notification that this takes.
            self.0.readable.notified().await;
        }
    }

    /// Records that the client has read what the last call of [`ConnectionOutput::next`] returned.
    fn note_sent(&self) {
        let mut state = self.0.state();
        let before = state.unread();
        state.taken = 0;
        let after = state.unread();
        drop(state);
        if [FULL, BEHIND]
            .into_iter()
            .any(|limit| before > limit && after <= limit)
        {
            (self.0.note_room)();
        }
    }
}

impl<B: QueuedOutput> Drop for ConnectionOutput<B> {
    fn drop(&mut self) {
        *self.0.state() = OutputState {
            is_closed: true,
            ..OutputState::default()
        };
        (self.0.note_room)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn queue() -> (Arc<OutputQueue>, ConnectionOutput, Arc<AtomicUsize>) {
        let count = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&count);
        let (queue, output) = output_queue(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (queue, output, count)
    }

    #[tokio::test]
    async fn output_counts_as_unread_until_it_is_sent() {
        let (queue, mut output, room) = queue();
        assert!(queue.push(vec![b'x'; FULL + 1]));
        assert_eq!(queue.pressure(), Pressure::Full);
        assert_eq!(output.next().await.map(|bytes| bytes.len()), Some(FULL + 1));
        assert_eq!(queue.unread(), FULL + 1);
        assert!(queue.push(vec![b'y'; 3]));
        assert_eq!(output.next().await, Some(vec![b'y'; 3]));
        assert_eq!(queue.unread(), 3);
        assert_eq!(room.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn closed_queue_delivers_the_rest_and_takes_no_more() {
        let (queue, mut output, _) = queue();
        queue.push(b"rest".to_vec());
        queue.close();
        assert!(!queue.push(b"more".to_vec()));
        assert_eq!(output.next().await, Some(b"rest".to_vec()));
        assert_eq!(output.next().await, None);
    }

    #[tokio::test]
    async fn client_that_never_reads_is_disconnected() {
        let (queue, mut output, _) = queue();
        assert!(queue.push(vec![b'x'; MOST_UNREAD]));
        assert!(!queue.push(vec![b'x'; 1]));
        assert_eq!(queue.unread(), 0);
        output.abandoned().await;
        assert_eq!(output.next().await, None);
    }

    #[tokio::test]
    async fn message_above_the_limit_passes_to_a_client_that_reads() {
        let (queue, mut output, _) = queue();
        for size in [1, MOST_UNREAD - 2, MOST_UNREAD + 1] {
            assert!(queue.push(vec![b'x'; size]));
        }
        let size = output.next().await.map(|bytes| bytes.len());
        assert_eq!(size, Some(2 * MOST_UNREAD));
        assert!(!queue.push(vec![b'x'; 1]));
    }

    #[test]
    fn dropped_output_takes_no_more() {
        let (queue, output, room) = queue();
        drop(output);
        assert!(!queue.push(b"more".to_vec()));
        assert_eq!(room.load(Ordering::Relaxed), 1);
    }
}
