//! Loopback transport: delivers the lines that are written to it, in order.

use super::inbox::EventSender;
use acpipe_core::hub::{AgentId, AgentInput, Exit};
use acpipe_json::frame::Batch;
use bytes::Bytes;
use tokio::sync::mpsc;

/// Maximum number of writes that are not delivered yet.
const QUEUE: usize = 1024;

/// The loop's handle of a loopback. It ends when the handle is dropped.
pub struct Loopback(mpsc::Sender<Bytes>);

/// Error: too many writes are not delivered yet.
pub struct LoopbackFull;

impl Loopback {
    /// Queues whole lines.
    ///
    /// # Errors
    /// The queue is full.
    pub fn send(&self, lines: Vec<u8>) -> Result<(), LoopbackFull> {
        self.0.try_send(lines.into()).map_err(|_| LoopbackFull)
    }
}

/// Starts a loopback. Its lines and its end arrive through `events`.
pub fn start(id: AgentId, mut events: EventSender) -> Loopback {
    let (sender, mut written) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        while let Some(lines) = written.recv().await {
            let delivered = AgentInput::Batch(Batch::Lines(lines));
            if events.send(id, delivered).await.is_err() {
                return;
            }
        }
        let end = Exit {
            code: Some(0),
            ..Exit::default()
        };
        // Fails only if the loop has ended; the event is not needed then.
        let _ = events.send(id, AgentInput::Exited(end)).await;
    });
    Loopback(sender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox;

    #[tokio::test]
    async fn lines_return_in_order_before_the_end() {
        let (events, mut inbox) = inbox::channel();
        let loopback = start(AgentId(3), events);
        assert!(loopback.send(b"a\nb\n".to_vec()).is_ok());
        assert!(loopback.send(b"c\n".to_vec()).is_ok());
        drop(loopback);
        let mut lines = Vec::new();
        let end = loop {
            inbox.receive();
            match inbox.next_whole() {
                Some((AgentId(3), AgentInput::Batch(Batch::Lines(bytes)))) => lines.extend(bytes),
                Some((_, other)) => break other,
                None => inbox.arrival().await,
            }
        };
        assert_eq!(lines, b"a\nb\nc\n");
        assert!(matches!(
            end,
            AgentInput::Exited(Exit { code: Some(0), .. })
        ));
    }
}
