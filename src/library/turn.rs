//! A running turn.

use super::chunk::Chunk;
use super::error::{Error, Result};
use super::session_handle::SessionHandle;
use super::turn_queue::TurnQueue;
use super::wake::Departure;
use acpipe_protocol::wire::TurnSummary;
use futures_core::Stream;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A turn: a stream of [`Chunk`]s, and at its end a summary.
///
/// Dropping a turn before its end cancels it. A turn that is not read makes its agent wait, unless the agent
/// also works on a turn that is read.
///
/// ```no_run
/// # async fn example(session: acpipe::Session) -> acpipe::Result<()> {
/// let mut turn = session.prompt("What does this project do?").await?;
/// while let Some(chunk) = turn.next().await {
///     print!("{}", chunk.text().unwrap_or_default());
/// }
/// let summary = turn.summary().await?;
/// println!("\n{:?}", summary.usage);
/// # Ok(()) }
/// ```
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    id: String,
    queue: Arc<TurnQueue>,
    session: Arc<SessionHandle>,
}

impl Turn {
    pub(super) fn new(id: String, queue: Arc<TurnQueue>, session: Arc<SessionHandle>) -> Self {
        Self { id, queue, session }
    }

    /// Returns the id of the turn.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the next chunk; `None` at the end of the turn. Cancel safe.
    pub async fn next(&mut self) -> Option<Chunk> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Waits for the end of the turn and returns its summary. Chunks that were not read are dropped; the
    /// summary has their text, up to 4 MiB (`omitted` counts the rest).
    ///
    /// A cancelled turn has a summary, with the stop reason `cancelled`. A prompt that was cancelled while it was
    /// queued has none: the error has the kind `cancelled`.
    ///
    /// # Errors
    /// The turn failed: [`Error::kind`] is the kind of its first error, and [`Error::summary`] has what came
    /// before the failure.
    pub async fn summary(mut self) -> Result<TurnSummary> {
        while self.next().await.is_some() {}
        let summary = self.queue.take_end()?;
        match summary.errors.first() {
            Some(first) => Err(Error::of_turn(&first.clone(), summary)),
            None => Ok(summary),
        }
    }

    /// Cancels the turn. It ends when the agent has stopped, usually soon: read on until then.
    ///
    /// Returns `false` if the turn had ended before.
    ///
    /// # Errors
    /// acpipe was shut down.
    pub async fn cancel(&self) -> Result<bool> {
        self.session.cancel(Some(&self.id)).await
    }

    fn poll_chunk(&self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let next = self.queue.poll_next(cx);
        next.map(|chunk| chunk.map(|chunk| Chunk::parse(chunk.seq, chunk.json)))
    }
}

impl Stream for Turn {
    type Item = Chunk;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        self.poll_chunk(cx)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let has_ended = self.queue.has_ended();
        self.queue.abandon();
        if !has_ended {
            let departure = Departure::Turn(self.id.clone());
            self.session.hub().wake.note_departure(departure);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("id", &self.id)
            .field("session", &self.session.id())
            .finish_non_exhaustive()
    }
}
