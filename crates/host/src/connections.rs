//! Connections of clients to a loop that serves several clients.
//!
//! A listener opens a connection for each client that it accepts. The messages of all connections arrive in one
//! queue. The output of each connection waits in a queue of its own, so that a client that does not read slows no
//! other client.

mod output;

use super::client::ClientAction;
use super::input::{ClientInput, ReservedBytes};
use acpipe_core::client::ClientId;
use acpipe_core::metrics::HubMetrics;
use acpipe_json::frame::{ClientFrame, Framing};
pub use output::{ConnectionOutput, OutputQueue, QueuedOutput};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Capacity of the queue of all connections, in messages.
const QUEUE: usize = 256;

/// Maximum number of bytes in the queue of one connection. A larger message is accepted if the queue has none of
/// this connection.
const QUEUE_BYTES: u32 = 4 << 20;

/// Maximum number of open connections.
const MOST_CONNECTIONS: usize = 1024;

/// Event of a connection. `S` is what the client face needs to know of a new connection.
#[derive(Debug)]
pub enum ConnectionEvent<S> {
    /// A client has connected.
    Opened(ClientId, S),
    /// A message of a client.
    Input(ClientId, ClientInput, QueuedBytes),
    /// Action of a client in this process.
    Action(ClientId, ClientAction),
    /// A client has left, after all its messages.
    Closed(ClientId),
    /// A listener wants the metrics of the hub.
    Metrics(oneshot::Sender<HubMetrics>),
}

/// Share of a message in the bytes that a connection may queue, released on drop.
#[derive(Debug)]
pub struct QueuedBytes(
    #[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit,
);

/// Opens connections to the loop.
#[derive(Debug)]
pub struct Connector<S> {
    events: mpsc::Sender<ConnectionEvent<S>>,
    shared: Arc<ConnectionRegistry>,
    places: Arc<Semaphore>,
}

impl<S> Clone for Connector<S> {
    fn clone(&self) -> Self {
        Self {
            events: self.events.clone(),
            shared: Arc::clone(&self.shared),
            places: Arc::clone(&self.places),
        }
    }
}

/// Loop's end of all connections.
#[derive(Debug)]
pub struct ConnectionNews(Arc<ConnectionRegistry>);

/// State that connections share with the loop.
#[derive(Debug, Default)]
struct ConnectionRegistry {
    last: AtomicU32,
    /// Connections that were dropped without [`ConnectionInput::close`]. Bounded by the number of connections.
    dropped: Mutex<Vec<ClientId>>,
    notify: Notify,
}

/// A connection of one client.
#[derive(Debug)]
pub struct ClientChannel<S, B: QueuedOutput = Vec<u8>> {
    /// Messages of the client.
    pub input: ConnectionInput<S>,
    /// Output for the client.
    pub output: ConnectionOutput<B>,
}

/// Messages of a client to the loop. Dropping it means that the client has left.
#[derive(Debug)]
pub struct ConnectionInput<S> {
    id: ClientId,
    events: mpsc::Sender<ConnectionEvent<S>>,
    shared: Arc<ConnectionRegistry>,
    bytes: Arc<Semaphore>,
    is_closed: bool,
    _place: OwnedSemaphorePermit,
}

/// Reason why a connection cannot be opened or used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The loop has ended.
    #[error("acpipe is shutting down")]
    Ended,
    /// Too many connections are open.
    #[error("acpipe has too many open connections; close one, then connect again")]
    TooMany,
}

/// Creates the queue of all connections: the handle of listeners, the events for the loop, and the news that do not
/// wait for a place in the queue.
#[must_use]
pub fn connections<S>() -> (
    Connector<S>,
    mpsc::Receiver<ConnectionEvent<S>>,
    ConnectionNews,
) {
    let (events, receiver) = mpsc::channel(QUEUE);
    let shared = Arc::<ConnectionRegistry>::default();
    let news = ConnectionNews(Arc::clone(&shared));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let connector = Connector {
        events,
        shared,
        places,
    };
    (connector, receiver, news)
}

impl<S> Connector<S> {
    /// Opens a connection for a client, whose face writes to the queue that `setup` gets.
    ///
    /// # Errors
    /// The loop has ended, or too many connections are open.
    pub async fn open<B: QueuedOutput>(
        &self,
        setup: impl FnOnce(Arc<OutputQueue<B>>) -> S,
    ) -> Result<ClientChannel<S, B>, ConnectionError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| ConnectionError::TooMany)?;
        let id = ClientId(self.shared.last.fetch_add(1, Ordering::Relaxed) + 1);
        let shared = Arc::clone(&self.shared);
        let (queue, output) = output::output_queue(move || shared.notify.notify_one());
        let opened = ConnectionEvent::Opened(id, setup(queue));
        let sent = self.events.send(opened).await;
        sent.map_err(|_| ConnectionError::Ended)?;
        let input = ConnectionInput {
            id,
            events: self.events.clone(),
            shared: Arc::clone(&self.shared),
            bytes: Arc::new(Semaphore::new(QUEUE_BYTES as usize)),
            is_closed: false,
            _place: place,
        };
        Ok(ClientChannel { input, output })
    }

    /// Returns the metrics of the hub; `None` if the loop has ended.
    pub async fn metrics(&self) -> Option<HubMetrics> {
        let (sender, metrics) = oneshot::channel();
        self.events
            .send(ConnectionEvent::Metrics(sender))
            .await
            .ok()?;
        metrics.await.ok()
    }

    /// Waits until the loop has ended. Cancel safe.
    pub async fn ended(&self) {
        self.events.closed().await;
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        MOST_CONNECTIONS - self.places.available_permits()
    }
}

impl<S> ConnectionInput<S> {
    /// Returns the id of the client.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.id
    }

    /// Passes a frame of the client to the loop. Waits while too much of this connection is queued.
    ///
    /// # Errors
    /// The loop has ended.
    pub async fn send(&self, framing: Framing, frame: ClientFrame) -> Result<(), ConnectionError> {
        let size = match &frame {
            ClientFrame::Message(message) => message.len(),
            ClientFrame::BadHeader(header) => header.len(),
            ClientFrame::TooLong(_) => 0,
        };
        let size = u32::try_from(size).unwrap_or(QUEUE_BYTES).min(QUEUE_BYTES);
        let queued = Arc::clone(&self.bytes).acquire_many_owned(size).await;
        let queued = QueuedBytes(queued.map_err(|_| ConnectionError::Ended)?);
        let input = ClientInput::Frame(framing, frame, ReservedBytes::default());
        let event = ConnectionEvent::Input(self.id, input, queued);
        let sent = self.events.send(event).await;
        sent.map_err(|_| ConnectionError::Ended)
    }

    /// Passes a JSON message of the client to the loop.
    ///
    /// # Errors
    /// The loop has ended.
    pub async fn message(&self, message: Vec<u8>) -> Result<(), ConnectionError> {
        let frame = ClientFrame::Message(message.into());
        self.send(Framing::Lines, frame).await
    }

    /// Passes an action of a client in this process to the loop.
    ///
    /// # Errors
    /// The loop has ended.
    pub async fn act(&self, action: ClientAction) -> Result<(), ConnectionError> {
        let sent = self
            .events
            .send(ConnectionEvent::Action(self.id, action))
            .await;
        sent.map_err(|_| ConnectionError::Ended)
    }

    /// Closes the connection after all messages that were sent.
    pub async fn close(mut self) {
        // If the loop has ended, so have all connections.
        self.is_closed = self
            .events
            .send(ConnectionEvent::Closed(self.id))
            .await
            .is_ok();
    }
}

impl<S> Drop for ConnectionInput<S> {
    fn drop(&mut self) {
        if !self.is_closed {
            let dropped = self.shared.dropped.lock();
            dropped
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.id);
            self.shared.notify.notify_one();
        }
    }
}

impl ConnectionNews {
    /// Waits until a client may have room again or a connection was dropped. Cancel safe.
    pub async fn arrival(&self) {
        self.0.notify.notified().await;
    }

    /// Takes the connections that were dropped since the last call.
    #[must_use]
    pub fn dropped(&self) -> Vec<ClientId> {
        let dropped = self.0.dropped.lock();
        std::mem::take(&mut dropped.unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(connector: &Connector<()>) -> Result<ClientChannel<()>, ConnectionError> {
        connector.open(|_| ()).await
    }

    #[tokio::test]
    async fn messages_arrive_before_the_end_of_their_connection() {
        let (connector, mut events, _news) = connections::<()>();
        let connection = open(&connector).await.unwrap();
        let id = connection.input.id();
        connection.input.message(b"{}".to_vec()).await.unwrap();
        connection.input.close().await;
        assert!(matches!(events.recv().await, Some(ConnectionEvent::Opened(c, ())) if c == id));
        assert!(matches!(events.recv().await, Some(ConnectionEvent::Input(c, ..)) if c == id));
        assert!(matches!(events.recv().await, Some(ConnectionEvent::Closed(c)) if c == id));
    }

    #[tokio::test]
    async fn dropped_connection_is_reported_once() {
        let (connector, _events, news) = connections::<()>();
        let connection = open(&connector).await.unwrap();
        let id = connection.input.id();
        drop(connection);
        news.arrival().await;
        assert_eq!(news.dropped(), [id]);
        assert!(news.dropped().is_empty());
    }

    #[tokio::test]
    async fn number_of_connections_is_bounded() {
        let (connector, mut events, _news) = connections::<()>();
        let mut all = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            all.push(open(&connector).await.unwrap());
            events.recv().await;
        }
        assert_eq!(
            open(&connector).await.unwrap_err(),
            ConnectionError::TooMany
        );
        all.pop();
        assert!(open(&connector).await.is_ok());
    }

    #[tokio::test]
    async fn queued_bytes_of_a_connection_are_bounded() {
        let (connector, mut events, _news) = connections::<()>();
        let connection = open(&connector).await.unwrap();
        events.recv().await;
        let half = vec![b'1'; QUEUE_BYTES as usize / 2 + 1];
        connection.input.message(half.clone()).await.unwrap();
        let mut second = Box::pin(connection.input.message(half));
        assert!(futures_poll(&mut second).is_pending());
        drop(events.recv().await);
        assert!(futures_poll(&mut second).is_ready());
    }

    fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
        std::pin::Pin::new(future)
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
