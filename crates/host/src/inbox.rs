//! Queue of events from agent processes and files to the loop, and their order.
//!
//! A source (an agent process or a file) has at most one event in the queue, so a flooding agent cannot fill
//! it. Large batches are handled in slices, round robin, and all small events that arrive meanwhile are
//! handled between two slices.

use acpipe_core::hub::{AgentId, AgentInput};
use acpipe_json::frame::Batch;
use bytes::Bytes;
use memchr::{memchr, memrchr};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};

/// Capacity of the queue in events; sources beyond this number wait for a place.
const QUEUE: usize = 16;

/// Number of bytes of one agent that are handled before other agents are: about 50 µs of work.
const SLICE: usize = 16 * 1024;

/// Creates the queue between agents and loop.
pub fn channel() -> (EventSender, Inbox) {
    let (events, receiver) = mpsc::channel(QUEUE);
    let inbox = Inbox {
        receiver,
        small: VecDeque::new(),
        round: VecDeque::new(),
        next_round: VecDeque::new(),
        held: BTreeMap::new(),
    };
    let unhandled = None;
    (EventSender { events, unhandled }, inbox)
}

/// Event of a source.
#[derive(Debug)]
pub struct SourceEvent {
    pub id: AgentId,
    pub input: AgentInput,
    /// Dropped once the event is handled.
    _handled: oneshot::Sender<Infallible>,
}

/// Sends the events of one source in order, each once the preceding one is handled.
#[derive(Debug)]
pub struct EventSender {
    events: mpsc::Sender<SourceEvent>,
    unhandled: Option<oneshot::Receiver<Infallible>>,
}

/// Each clone is a separate source.
impl Clone for EventSender {
    fn clone(&self) -> Self {
        Self {
            events: self.events.clone(),
            unhandled: None,
        }
    }
}

/// Error: the loop no longer receives events.
#[derive(Debug)]
pub struct InboxClosed;

impl EventSender {
    /// Waits until the last event is handled and the queue has room. Cancel safe.
    ///
    /// # Errors
    /// The loop has ended.
    pub async fn ready(&mut self) -> Result<QueueSlot<'_>, InboxClosed> {
        if let Some(unhandled) = &mut self.unhandled {
            let _ = unhandled.await;
            self.unhandled = None;
        }
        let permit = self.events.reserve().await.map_err(|_| InboxClosed)?;
        let unhandled = &mut self.unhandled;
        Ok(QueueSlot { permit, unhandled })
    }

    /// Sends an event.
    ///
    /// # Errors
    /// The loop has ended.
    pub async fn send(&mut self, id: AgentId, input: AgentInput) -> Result<(), InboxClosed> {
        self.ready().await?.send(id, input);
        Ok(())
    }

    /// Returns the number of senders.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.events.strong_count()
    }

    /// Sends an event from a thread outside the runtime; blocks.
    ///
    /// # Errors
    /// The loop has ended.
    pub fn blocking_send(&mut self, id: AgentId, input: AgentInput) -> Result<(), InboxClosed> {
        if let Some(unhandled) = self.unhandled.take() {
            let _ = unhandled.blocking_recv();
        }
        let (handled, unhandled) = oneshot::channel();
        self.unhandled = Some(unhandled);
        let event = SourceEvent {
            id,
            input,
            _handled: handled,
        };
        self.events
            .blocking_send(event)
            .map_err(|SendError(_)| InboxClosed)
    }
}

/// Reserved place in the queue for one event.
pub struct QueueSlot<'a> {
    permit: mpsc::Permit<'a, SourceEvent>,
    unhandled: &'a mut Option<oneshot::Receiver<Infallible>>,
}

impl QueueSlot<'_> {
    pub fn send(self, id: AgentId, input: AgentInput) {
        let (handled, unhandled) = oneshot::channel();
        *self.unhandled = Some(unhandled);
        self.permit.send(SourceEvent {
            id,
            input,
            _handled: handled,
        });
    }
}

/// Receiving end: events that the loop has not handled.
#[derive(Debug)]
pub struct Inbox {
    receiver: mpsc::Receiver<SourceEvent>,
    small: VecDeque<SourceEvent>,
    /// Batches handled in slices. A new one waits for the next round, so that each round ends.
    round: VecDeque<SourceEvent>,
    next_round: VecDeque<SourceEvent>,
    /// Events of sources that are held: they are not handled until the source is released.
    held: BTreeMap<AgentId, VecDeque<SourceEvent>>,
}

impl Inbox {
    /// Waits for an event. Cancel safe.
    pub async fn arrival(&mut self) {
        match self.receiver.recv().await {
            Some(event) => self.add(event),
            // Unreachable: the loop owns a sender.
            None => std::future::pending().await,
        }
    }

    /// Waits for the next event; `None` once all senders are dropped.
    #[cfg(test)]
    pub fn blocking_next(&mut self) -> Option<(AgentId, AgentInput)> {
        if self.is_empty() {
            let event = self.receiver.blocking_recv()?;
            self.add(event);
        }
        self.next_whole()
    }

    /// Accepts all events that have arrived.
    pub fn receive(&mut self) {
        while let Ok(event) = self.receiver.try_recv() {
            self.add(event);
        }
    }

    /// Holds the events of a source, also those that have arrived.
    pub fn hold(&mut self, id: AgentId) {
        let Entry::Vacant(entry) = self.held.entry(id) else {
            return;
        };
        let held = entry.insert(VecDeque::new());
        for list in [&mut self.round, &mut self.small, &mut self.next_round] {
            for event in std::mem::take(list) {
                let to = if event.id == id {
                    &mut *held
                } else {
                    &mut *list
                };
                to.push_back(event);
            }
        }
    }

    /// Releases the events of a source.
    pub fn release(&mut self, id: AgentId) {
        for event in self.held.remove(&id).into_iter().flatten() {
            self.add(event);
        }
    }

    fn add(&mut self, event: SourceEvent) {
        if let Some(held) = self.held.get_mut(&event.id) {
            held.push_back(event);
            return;
        }
        // An event of a source with a pending batch waits behind the batch to keep the order.
        let mut large = self.round.iter().chain(&self.next_round);
        if is_large(&event.input) || large.any(|other| other.id == event.id) {
            self.next_round.push_back(event);
        } else {
            self.small.push_back(event);
        }
    }

    /// Returns `true` if no received event is pending, apart from those of held sources.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty() && self.is_round_over() && self.next_round.is_empty()
    }

    /// Returns `true` if no batch is handled in part.
    pub fn is_round_over(&self) -> bool {
        self.round.is_empty()
    }

    /// Takes the next small event.
    pub fn next_small(&mut self) -> Option<(AgentId, AgentInput)> {
        self.small.pop_front().map(|event| (event.id, event.input))
    }

    /// Takes the next slice of a large batch; batches take turns.
    pub fn next_slice(&mut self) -> Option<(AgentId, AgentInput)> {
        if self.round.is_empty() {
            self.begin_round();
        }
        let mut event = self.round.pop_front()?;
        let id = event.id;
        match cut(&mut event.input) {
            Some(slice) => {
                self.round.push_back(event);
                Some((id, AgentInput::Batch(Batch::Lines(slice))))
            }
            None => Some((id, event.input)),
        }
    }

    /// Begins a round with one event per source, because a later event must not overtake the slices of an
    /// earlier one.
    fn begin_round(&mut self) {
        for event in std::mem::take(&mut self.next_round) {
            let is_later = self.round.iter().any(|other| other.id == event.id);
            let list = if is_later {
                &mut self.next_round
            } else {
                &mut self.round
            };
            list.push_back(event);
        }
    }

    /// Takes the next event as a whole.
    pub fn next_whole(&mut self) -> Option<(AgentId, AgentInput)> {
        let lists = [&mut self.round, &mut self.small, &mut self.next_round];
        let event = lists.into_iter().find_map(VecDeque::pop_front)?;
        Some((event.id, event.input))
    }
}

fn is_large(input: &AgentInput) -> bool {
    matches!(input, AgentInput::Batch(Batch::Lines(lines)) if lines.len() > SLICE)
}

/// Cuts complete lines off the front of a large batch: up to [`SLICE`] bytes, or a single longer line.
fn cut(input: &mut AgentInput) -> Option<Bytes> {
    let AgentInput::Batch(Batch::Lines(lines)) = input else {
        return None;
    };
    let head = lines.get(..SLICE)?;
    let end = memrchr(b'\n', head).or_else(|| Some(SLICE + memchr(b'\n', &lines[SLICE..])?))?;
    (end + 1 < lines.len()).then(|| lines.split_to(end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_core::hub::Exit;

    const FIRST: AgentId = AgentId(1);
    const SECOND: AgentId = AgentId(2);

    fn batch(lines: usize) -> AgentInput {
        AgentInput::Batch(Batch::Lines(b"0123456\n".repeat(lines).into()))
    }

    /// Returns source and length of an event; length 0 if it is not a batch.
    fn length((id, input): (AgentId, AgentInput)) -> (u64, usize) {
        let AgentInput::Batch(Batch::Lines(lines)) = input else {
            return (id.0, 0);
        };
        (id.0, lines.len())
    }

    fn next(inbox: &mut Inbox) -> Option<(u64, usize)> {
        let next = inbox.next_small().or_else(|| inbox.next_slice());
        next.map(length)
    }

    #[tokio::test]
    async fn small_events_are_handled_between_the_slices_of_a_batch() {
        let (first, mut inbox) = channel();
        let mut second = first.clone();
        first.clone().send(FIRST, batch(SLICE / 4)).await.unwrap();
        inbox.receive();
        assert_eq!(next(&mut inbox), Some((1, SLICE)));
        assert!(!inbox.is_round_over());
        second.send(SECOND, batch(1)).await.unwrap();
        inbox.receive();
        assert_eq!(next(&mut inbox), Some((2, 8)));
        assert_eq!(next(&mut inbox), Some((1, SLICE)));
        assert!(inbox.is_round_over() && inbox.is_empty());
    }

    #[tokio::test]
    async fn large_batches_take_turns_and_a_new_one_waits_for_the_next_round() {
        let (sender, mut inbox) = channel();
        sender.clone().send(FIRST, batch(SLICE / 4)).await.unwrap();
        sender.clone().send(SECOND, batch(SLICE / 4)).await.unwrap();
        inbox.receive();
        assert_eq!(next(&mut inbox), Some((1, SLICE)));
        sender.clone().send(FIRST, batch(SLICE / 4)).await.unwrap();
        inbox.receive();
        for source in [2, 1, 2] {
            assert!(!inbox.is_round_over());
            assert_eq!(next(&mut inbox), Some((source, SLICE)));
        }
        assert!(inbox.is_round_over() && !inbox.is_empty());
    }

    #[tokio::test]
    async fn events_of_a_source_keep_their_order() {
        let (sender, mut inbox) = channel();
        sender.clone().send(FIRST, batch(SLICE / 4)).await.unwrap();
        let exited = AgentInput::Exited(Exit::default());
        sender.clone().send(FIRST, exited).await.unwrap();
        inbox.receive();
        for length in [SLICE, SLICE, 0] {
            assert_eq!(next(&mut inbox), Some((1, length)));
        }
        assert!(inbox.is_empty());
    }

    #[tokio::test]
    async fn a_source_sends_its_next_event_once_the_last_is_handled() {
        let (mut sender, mut inbox) = channel();
        sender.send(FIRST, batch(1)).await.unwrap();
        inbox.receive();
        let ready = async { sender.ready().await.is_ok() };
        tokio::pin!(ready);
        tokio::select! {
            biased;
            _ = &mut ready => panic!("the event is not handled yet"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(next(&mut inbox), Some((1, 8)));
        assert!(ready.await);
    }

    #[tokio::test]
    async fn events_of_a_held_source_wait_until_it_is_released() {
        let (sender, mut inbox) = channel();
        let (mut first, mut second) = (sender.clone(), sender.clone());
        first.send(FIRST, batch(SLICE / 4)).await.unwrap();
        inbox.receive();
        assert_eq!(next(&mut inbox), Some((1, SLICE)));
        inbox.hold(FIRST);
        assert!(inbox.is_empty());
        let exited = AgentInput::Exited(Exit::default());
        sender.clone().send(FIRST, exited).await.unwrap();
        second.send(SECOND, batch(1)).await.unwrap();
        inbox.receive();
        assert_eq!(next(&mut inbox), Some((2, 8)));
        assert_eq!(next(&mut inbox), None);
        inbox.release(FIRST);
        assert_eq!(next(&mut inbox), Some((1, SLICE)));
        assert_eq!(next(&mut inbox), Some((1, 0)));
        assert!(inbox.is_empty());
    }

    #[test]
    fn a_line_longer_than_a_slice_is_not_cut() {
        let mut long = vec![b'x'; 2 * SLICE];
        long.extend(b"\nshort\n");
        let mut input = AgentInput::Batch(Batch::Lines(long.into()));
        assert_eq!(cut(&mut input).map(|line| line.len()), Some(2 * SLICE + 1));
        assert_eq!(cut(&mut input), None);
        let mut whole = AgentInput::Batch(Batch::Lines(vec![b'x'; 2 * SLICE].into()));
        assert_eq!(cut(&mut whole), None);
    }
}
