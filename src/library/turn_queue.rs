//! Queue of a turn's chunks between the loop and the reader of the turn.

use super::error::{Error, Result};
use super::wake::Wake;
use acpipe_host::{BEHIND, FULL};
use acpipe_protocol::wire::TurnSummary;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Number of unread bytes of a client, in the queues of all its turns.
#[derive(Debug, Default)]
pub struct UnreadBytes(AtomicUsize);

impl UnreadBytes {
    /// Returns the number.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts read bytes; returns `true` if the client has room since then, or is not behind any more.
    fn subtract(&self, bytes: usize) -> bool {
        let before = self.0.fetch_sub(bytes, Ordering::Relaxed);
        let after = before - bytes;
        [FULL, BEHIND]
            .into_iter()
            .any(|limit| before > limit && after <= limit)
    }
}

/// Chunk in a queue: its sequence number and JSON.
#[derive(Debug)]
pub struct QueuedChunk {
    /// Sequence number of the chunk in its session.
    pub seq: u64,
    /// JSON text of the chunk.
    pub json: Vec<u8>,
}

/// Queue of one turn.
#[derive(Debug)]
pub struct TurnQueue {
    state: Mutex<TurnQueueState>,
    unread: Arc<UnreadBytes>,
    wake: Arc<Wake>,
}

#[derive(Debug, Default)]
struct TurnQueueState {
    chunks: VecDeque<QueuedChunk>,
    /// Result of the turn; taken by its reader.
    end: Option<Result<TurnSummary>>,
    has_ended: bool,
    /// `true` once the reader is gone.
    is_abandoned: bool,
    waker: Option<Waker>,
}

impl TurnQueue {
    /// Creates the queue of a turn of a client.
    pub fn new(unread: Arc<UnreadBytes>, wake: Arc<Wake>) -> Self {
        Self {
            state: Mutex::default(),
            unread,
            wake,
        }
    }

    fn state(&self) -> MutexGuard<'_, TurnQueueState> {
        // A panic leaves no state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a chunk. It is dropped if the turn has no reader.
    pub fn push(&self, chunk: QueuedChunk) {
        let mut state = self.state();
        if state.is_abandoned || state.has_ended {
            return;
        }
        self.unread.add(chunk.json.len());
        state.chunks.push_back(chunk);
        wake(&mut state);
    }

    /// Ends the turn. Only the first end counts.
    pub fn finish(&self, end: Result<TurnSummary>) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.has_ended, true) {
            state.end = Some(end);
            wake(&mut state);
        }
    }

    /// Takes the next chunk; `None` once the turn has ended and everything is read.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<QueuedChunk>> {
        let mut state = self.state();
        let Some(chunk) = state.chunks.pop_front() else {
            if state.has_ended {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        drop(state);
        if self.unread.subtract(chunk.json.len()) {
            self.wake.note_room();
        }
        Poll::Ready(Some(chunk))
    }

    /// Takes the result of the turn after its end.
    pub fn take_end(&self) -> Result<TurnSummary> {
        let end = self.state().end.take();
        end.unwrap_or_else(|| Err(Error::shut_down()))
    }

    /// Returns `true` once the turn has ended.
    pub fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Drops the unread chunks and all that follow.
    pub fn abandon(&self) {
        let mut state = self.state();
        state.is_abandoned = true;
        let bytes = state.chunks.drain(..).map(|chunk| chunk.json.len()).sum();
        drop(state);
        if self.unread.subtract(bytes) {
            self.wake.note_room();
        }
    }
}

fn wake(state: &mut TurnQueueState) {
    if let Some(waker) = state.waker.take() {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: usize) -> QueuedChunk {
        QueuedChunk {
            seq: 1,
            json: vec![b'x'; bytes],
        }
    }

    fn queue() -> (TurnQueue, Arc<UnreadBytes>) {
        let unread = Arc::<UnreadBytes>::default();
        (TurnQueue::new(unread.clone(), Arc::default()), unread)
    }

    fn next(queue: &TurnQueue) -> Poll<Option<usize>> {
        let chunk = queue.poll_next(&mut Context::from_waker(Waker::noop()));
        chunk.map(|chunk| chunk.map(|chunk| chunk.json.len()))
    }

    #[tokio::test]
    async fn reader_that_makes_room_wakes_the_loop() {
        let (queue, unread) = queue();
        queue.push(chunk(FULL));
        queue.push(chunk(1));
        assert_eq!(unread.get(), FULL + 1);
        assert_eq!(next(&queue), Poll::Ready(Some(FULL)));
        queue.wake.news().await;
        assert_eq!(next(&queue), Poll::Ready(Some(1)));
        assert_eq!(next(&queue), Poll::Pending);
        assert_eq!(unread.get(), 0);
    }

    #[tokio::test]
    async fn abandoned_queue_takes_no_more_chunks_and_makes_room() {
        let (queue, unread) = queue();
        queue.push(chunk(FULL + 1));
        queue.abandon();
        queue.wake.news().await;
        queue.push(chunk(FULL + 1));
        assert_eq!(unread.get(), 0);
    }

    #[test]
    fn end_follows_the_chunks() {
        let (queue, _) = queue();
        queue.push(chunk(3));
        queue.finish(Err(Error::shut_down()));
        assert_eq!(next(&queue), Poll::Ready(Some(3)));
        assert_eq!(next(&queue), Poll::Ready(None));
        assert_eq!(queue.take_end(), Err(Error::shut_down()));
    }
}
