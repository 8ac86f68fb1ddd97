//! The clients that are subscribed to a session, and how far each has received what is said in it.
//!
//! A client that does not read fast enough lags: it receives nothing live, and is sent what it missed from the log once it
//! has read what it was given. Notifications, requests and replies that follow chunks which it has not received wait with it.

use super::ask::{AskId, ClientRequest};
use super::client::{ClientId, Notice, Reply, Token};
use super::client_sink::{ClientSink, ClientSinks};
use super::error::Error;
use super::permit::By;
use super::profile::Profile;
use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::Arc;

/// What a client receives of a session.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    /// Whether the client receives chunks at all.
    pub chunks: bool,
    /// The chunk profile.
    pub profile: Profile,
}

/// A client that is subscribed to a session.
#[derive(Debug)]
pub struct Subscriber {
    pub client: ClientId,
    pub subscription: Subscription,
    lag: Option<Box<Lag>>,
    /// Whether it is the client that the session works for.
    leads: bool,
}

/// What a lagging client has not received.
#[derive(Debug)]
struct Lag {
    /// The number of the last chunk that it received.
    sent: u64,
    /// Messages that come after the chunks up to a number.
    deferred: VecDeque<(u64, Deferred)>,
}

/// A message that comes after chunks that the client has not received.
#[derive(Debug)]
enum Deferred {
    Notice(Notice),
    Request(AskId, Arc<ClientRequest>),
    Reply(Token, Box<Result<Reply, Error>>),
}

/// The clients that are subscribed to a session.
#[derive(Debug, Default)]
pub struct Subscribers {
    all: Vec<Subscriber>,
}

impl Subscriber {
    /// Whether the client receives chunks as they are made.
    #[inline]
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.subscription.chunks && self.lag.is_none()
    }

    /// The sink for the chunk of this number, where the client receives chunks as they are made. A client that has to read
    /// first lags from now on, unless it is the one that the session works for: there the agent waits.
    #[inline]
    pub fn sink<'a, C: ClientSinks>(
        &mut self,
        seq: u64,
        clients: &'a mut C,
    ) -> Option<&'a mut C::Sink> {
        if !self.is_live() {
            return None;
        }
        let sink = clients.sink(self.client)?;
        if !self.leads && sink.is_full() {
            self.begin_lag(seq - 1);
            return None;
        }
        Some(sink)
    }

    /// From now on the client is sent what follows the chunk of this number from the log.
    #[cold]
    pub fn begin_lag(&mut self, sent: u64) {
        self.lag.get_or_insert_with(|| {
            Box::new(Lag {
                sent,
                deferred: VecDeque::new(),
            })
        });
    }

    /// Chunks after a number were taken back from a lagging client.
    fn take_back(&mut self, after: u64) {
        if let Some(lag) = &mut self.lag {
            lag.sent = lag.sent.min(after);
        }
    }

    fn send(&mut self, seq: u64, message: Deferred, clients: &mut impl ClientSinks) {
        match &mut self.lag {
            None => message.send(self.client, clients),
            Some(lag) => lag.defer(seq, message),
        }
    }

    /// The client has received the chunks up to this number: sends what was deferred behind them.
    pub fn note_sent(&mut self, sent: u64, clients: &mut impl ClientSinks) {
        let Some(lag) = &mut self.lag else { return };
        lag.sent = sent;
        while let Some((seq, _)) = lag.deferred.front()
            && *seq <= sent
            && let Some((_, message)) = lag.deferred.pop_front()
        {
            message.send(self.client, clients);
        }
    }

    /// Sends all that was deferred, though the client has not received the chunks before it.
    pub fn send_deferred(&mut self, clients: &mut impl ClientSinks) {
        let deferred = self
            .lag
            .as_mut()
            .map(|lag| std::mem::take(&mut lag.deferred));
        for (_, message) in deferred.into_iter().flatten() {
            message.send(self.client, clients);
        }
    }

    /// Ends the lag: the client has received all chunks, or is to receive no more of those that it has not received.
    pub fn end_lag(&mut self, clients: &mut impl ClientSinks) {
        self.send_deferred(clients);
        self.lag = None;
    }

    /// The number of the last chunk that a lagging client received.
    #[must_use]
    pub fn lag(&self) -> Option<u64> {
        self.lag.as_ref().map(|lag| lag.sent)
    }
}

impl Lag {
    /// Keeps a message; a notification replaces an earlier one of its kind, so that few of them wait.
    fn defer(&mut self, seq: u64, message: Deferred) {
        if let Deferred::Notice(notice) = &message {
            let kind = discriminant(notice);
            self.deferred.retain(|(_, earlier)| {
                !matches!(earlier, Deferred::Notice(earlier) if discriminant(earlier) == kind)
            });
        }
        self.deferred.push_back((seq, message));
    }

    /// Drops a request that was not sent yet; false where it was.
    fn drop_request(&mut self, ask: AskId) -> bool {
        let before = self.deferred.len();
        self.deferred
            .retain(|(_, message)| !matches!(message, Deferred::Request(id, _) if *id == ask));
        self.deferred.len() < before
    }
}

impl Deferred {
    fn send(self, client: ClientId, clients: &mut impl ClientSinks) {
        let Some(sink) = clients.sink(client) else {
            return;
        };
        match self {
            Self::Notice(notice) => sink.notify(&notice),
            Self::Request(ask, request) => sink.ask(ask, &request),
            Self::Reply(token, answer) => ClientSink::reply(sink, token, *answer),
        }
    }
}

impl Subscribers {
    /// Subscribes a client that is not subscribed yet; false where it was.
    pub fn add(&mut self, client: ClientId, subscription: Subscription) -> bool {
        if self.has(client) {
            return false;
        }
        self.all.push(Subscriber {
            client,
            subscription,
            lag: None,
            leads: self.all.is_empty(),
        });
        true
    }

    /// Removes a client that has left, with what waited for it.
    pub fn remove(&mut self, client: ClientId) {
        self.all.retain(|subscriber| subscriber.client != client);
        if self.leader().is_none()
            && let Some(first) = self.all.first_mut()
        {
            first.leads = true;
        }
    }

    #[must_use]
    pub fn has(&self, client: ClientId) -> bool {
        self.clients().any(|other| other == client)
    }

    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.all.iter().map(|subscriber| subscriber.client)
    }

    /// The client that the session works for: the one of the last prompt, or before any prompt the first subscriber. Its agent
    /// waits where it does not read; the others lag.
    #[must_use]
    pub fn leader(&self) -> Option<ClientId> {
        let leader = self.all.iter().find(|subscriber| subscriber.leads)?;
        Some(leader.client)
    }

    /// Makes a subscribed client the one that the session works for.
    pub fn set_leader(&mut self, client: ClientId) {
        if self.has(client) {
            for subscriber in &mut self.all {
                subscriber.leads = subscriber.client == client;
            }
        }
    }

    #[must_use]
    pub fn get_mut(&mut self, client: ClientId) -> Option<&mut Subscriber> {
        self.all
            .iter_mut()
            .find(|subscriber| subscriber.client == client)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subscriber> {
        self.all.iter_mut()
    }

    /// Whether a client lags.
    #[must_use]
    pub fn are_lagging(&self) -> bool {
        self.all.iter().any(|subscriber| subscriber.lag.is_some())
    }

    /// Whether this client lags.
    #[must_use]
    pub fn is_lagging(&self, client: ClientId) -> bool {
        let mut lagging = self
            .all
            .iter()
            .filter(|subscriber| subscriber.lag.is_some());
        lagging.any(|subscriber| subscriber.client == client)
    }

    /// Whether all clients that receive chunks as they are made are behind with reading: nobody minds if chunks are merged
    /// before they are sent.
    #[inline]
    pub fn are_behind(&self, clients: &mut impl ClientSinks) -> bool {
        let mut live = self.all.iter().filter(|subscriber| subscriber.is_live());
        match live.next() {
            None => false,
            Some(first) => {
                clients.is_client_behind(first.client)
                    && live.all(|other| clients.is_client_behind(other.client))
            }
        }
    }

    /// Notifies all clients, behind the chunks up to a number.
    pub fn notify(&mut self, seq: u64, notice: &Notice, clients: &mut impl ClientSinks) {
        for subscriber in &mut self.all {
            match &subscriber.lag {
                None => {
                    if let Some(sink) = clients.sink(subscriber.client) {
                        sink.notify(notice);
                    }
                }
                Some(_) => subscriber.send(seq, Deferred::Notice(notice.clone()), clients),
            }
        }
    }

    /// Sends a request to a client, behind the chunks up to a number.
    pub fn request(
        &mut self,
        client: ClientId,
        seq: u64,
        (ask, request): (AskId, &Arc<ClientRequest>),
        clients: &mut impl ClientSinks,
    ) {
        if let Some(subscriber) = self.get_mut(client) {
            let message = Deferred::Request(ask, Arc::clone(request));
            subscriber.send(seq, message, clients);
        }
    }

    /// Withdraws a request to a client; one that still waits to be sent is dropped.
    pub fn withdraw(
        &mut self,
        client: ClientId,
        ask: AskId,
        by: &By,
        clients: &mut impl ClientSinks,
    ) {
        let lag = self.get_mut(client).and_then(|s| s.lag.as_mut());
        if lag.is_some_and(|lag| lag.drop_request(ask)) {
            return;
        }
        if let Some(sink) = clients.sink(client) {
            sink.withdraw(ask, by);
        }
    }

    /// Answers a call, behind the chunks up to a number where its client is subscribed.
    pub fn reply(
        &mut self,
        seq: u64,
        token: Token,
        answer: Result<Reply, Error>,
        clients: &mut impl ClientSinks,
    ) {
        match self.get_mut(token.client) {
            Some(subscriber) if subscriber.lag.is_some() => {
                subscriber.send(seq, Deferred::Reply(token, Box::new(answer)), clients);
            }
            _ => clients.reply(token, answer),
        }
    }

    /// Retracts the chunks of a session after a number from all clients.
    pub fn retract(&mut self, session: &str, after: u64, clients: &mut impl ClientSinks) {
        for subscriber in &mut self.all {
            subscriber.take_back(after);
            if let Some(sink) = clients.sink(subscriber.client) {
                sink.retract(session, after);
            }
        }
    }

    /// The disk has not answered: no client receives the chunks of a session after a number. They lag, and what one that
    /// cannot lag was said is held back, unless `may_hold` is false.
    pub fn hold_back(
        &mut self,
        session: &str,
        after: u64,
        may_hold: bool,
        clients: &mut impl ClientSinks,
    ) {
        for subscriber in self.all.iter_mut().filter(|s| s.subscription.chunks) {
            let Some(sink) = clients.sink(subscriber.client) else {
                continue;
            };
            if sink.can_lag() {
                sink.retract(session, after);
                subscriber.begin_lag(after);
                subscriber.take_back(after);
            } else if may_hold {
                sink.hold(true);
            }
        }
    }

    /// The disk has answered: nothing is held back any more.
    pub fn release(&mut self, clients: &mut impl ClientSinks) {
        for subscriber in &self.all {
            if let Some(sink) = clients.sink(subscriber.client) {
                sink.hold(false);
            }
        }
    }

    /// Nobody waits for the disk any more: messages that wait for chunks of a session after a number are sent without them.
    pub fn give_up(&mut self, session: &str, after: u64, clients: &mut impl ClientSinks) {
        for subscriber in &mut self.all {
            subscriber.send_deferred(clients);
            if let Some(sink) = clients.sink(subscriber.client)
                && !sink.can_lag()
            {
                sink.retract(session, after);
                sink.hold(false);
            }
        }
    }

    /// Ends the lag of all clients: there are no more chunks to wait for.
    pub fn end_lags(&mut self, clients: &mut impl ClientSinks) {
        for subscriber in &mut self.all {
            subscriber.end_lag(clients);
        }
    }
}
