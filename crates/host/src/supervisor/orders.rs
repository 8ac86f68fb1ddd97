//! Delivery of orders to a supervisor: one slot per kind, so that no order is dropped because a queue or a
//! pipe is full.

use super::codec::SupervisorOrder;
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tracing::warn;

/// Number of orders issued by kind. Orders are idempotent: pending ones of a kind are delivered as one.
#[derive(Debug, Clone, Copy, Default)]
struct Issued {
    terminate: u64,
    kill: u64,
}

/// Issues orders without waiting and without a limit.
#[derive(Debug)]
pub struct OrderSender(watch::Sender<Issued>);

/// Receives the orders of an [`OrderSender`].
#[derive(Debug)]
pub struct OrderReceiver {
    issued: watch::Receiver<Issued>,
    taken: Issued,
}

/// Creates a sender of orders and its receiver.
pub fn channel() -> (OrderSender, OrderReceiver) {
    let (sender, issued) = watch::channel(Issued::default());
    let taken = Issued::default();
    (OrderSender(sender), OrderReceiver { issued, taken })
}

impl OrderSender {
    /// Issues an order. It has no effect once the receiver is gone.
    pub fn send(&self, order: SupervisorOrder) {
        self.0.send_modify(|issued| match order {
            SupervisorOrder::Terminate => issued.terminate += 1,
            SupervisorOrder::Kill => issued.kill += 1,
        });
    }
}

impl OrderReceiver {
    /// Receives the next order; a kill comes before a termination, which it makes pointless. `None` once the
    /// sender is dropped and every order was received. Cancel safe.
    pub async fn recv(&mut self) -> Option<SupervisorOrder> {
        loop {
            let issued = *self.issued.borrow_and_update();
            let taken = std::mem::replace(&mut self.taken, issued);
            if issued.kill != taken.kill {
                return Some(SupervisorOrder::Kill);
            }
            if issued.terminate != taken.terminate {
                return Some(SupervisorOrder::Terminate);
            }
            self.issued.changed().await.ok()?;
        }
    }
}

/// Writes orders to the supervisor's socket until the sender is dropped or the supervisor has ended. Waits
/// while the socket is full.
pub async fn deliver(mut orders: OrderReceiver, mut socket: impl AsyncWrite + Unpin) {
    while let Some(order) = orders.recv().await {
        if let Err(error) = socket.write_all(&[order.byte()]).await {
            if error.kind() != io::ErrorKind::BrokenPipe {
                warn!(%error, ?order, "cannot send the request to the agent's supervisor");
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::next_order;
    use super::*;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    #[tokio::test]
    async fn waiting_orders_of_one_kind_are_received_once() {
        let (sender, mut receiver) = channel();
        for _ in 0..10_000 {
            sender.send(SupervisorOrder::Terminate);
        }
        assert_eq!(receiver.recv().await, Some(SupervisorOrder::Terminate));
        sender.send(SupervisorOrder::Terminate);
        sender.send(SupervisorOrder::Kill);
        sender.send(SupervisorOrder::Terminate);
        drop(sender);
        assert_eq!(receiver.recv().await, Some(SupervisorOrder::Kill));
        assert_eq!(receiver.recv().await, None);
    }

    #[tokio::test]
    async fn orders_reach_the_supervisor_once_its_full_socket_has_room() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.writable().await.unwrap();
        let mut filled = 0;
        // The supervisor skips bytes that are not orders.
        while let Ok(written) = ours.try_write(&[b'.'; 4096]) {
            filled += written;
        }
        let (sender, receiver) = channel();
        let delivery = tokio::spawn(deliver(receiver, ours));
        for order in [SupervisorOrder::Terminate, SupervisorOrder::Kill].repeat(100) {
            sender.send(order);
            tokio::task::yield_now().await;
        }
        assert!(!delivery.is_finished());
        let mut skipped = vec![0; filled - 1];
        theirs.read_exact(&mut skipped).await.unwrap();
        let mut supervisor = Some(theirs);
        assert_eq!(
            next_order(&mut supervisor).await,
            Some(SupervisorOrder::Terminate)
        );
        assert_eq!(
            next_order(&mut supervisor).await,
            Some(SupervisorOrder::Kill)
        );
        // Orders that were issued before the sender is dropped arrive before the end of the socket.
        sender.send(SupervisorOrder::Kill);
        drop(sender);
        assert_eq!(
            next_order(&mut supervisor).await,
            Some(SupervisorOrder::Kill)
        );
        assert_eq!(next_order(&mut supervisor).await, None);
        delivery.await.unwrap();
    }

    #[tokio::test]
    async fn delivery_ends_with_the_supervisor() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let (sender, receiver) = channel();
        sender.send(SupervisorOrder::Kill);
        deliver(receiver, ours).await;
        sender.send(SupervisorOrder::Kill);
    }
}
