//! Clients that are subscribed to a session, and how far each has received its chunks.
//!
//! A client that does not read fast enough lags: it receives nothing live. When it has read what it was
//! given, it is sent the missed chunks from the log. Notifications, requests and replies that follow chunks
//! it has not received are deferred.

mod lag;
mod participation;
mod unloaded;

use super::client::{ClientId, Notice, Reply, Token};
use super::client_request::{ClientRequest, ClientRequestId};
use super::client_sink::{ClientSink, ClientSinks};
use super::profile::Profile;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::{OnDisconnect, Role};
use lag::{Deferred, Lag};
pub use participation::Participation;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    pub chunks: bool,
    /// `true` if the client receives ACP updates.
    pub updates: bool,
    pub profile: Profile,
}

#[derive(Debug)]
pub struct Subscriber {
    pub client: ClientId,
    pub subscription: Subscription,
    pub participation: Participation,
    lag: Option<Box<Lag>>,
    /// `true` for the leader: the client that the session works for.
    leads: bool,
}

#[derive(Debug, Default)]
pub struct Subscribers {
    all: Vec<Subscriber>,
    /// Whether a client has left or detached whose departure does not end its work: requests that no client can
    /// answer then wait for a client that attaches.
    are_awaited: bool,
}

impl Subscriber {
    /// Returns `true` if the client receives chunks as they are created.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.subscription.chunks && self.lag.is_none()
    }

    /// Returns the sink for chunk `seq`; `None` if the client does not receive chunks live. A client whose
    /// sink is full starts to lag, except for a leader for which the agent waits.
    #[inline]
    pub fn sink<'a>(
        &mut self,
        seq: u64,
        clients: &'a mut dyn ClientSinks,
    ) -> Option<&'a mut dyn ClientSink> {
        if !self.is_live() {
            return None;
        }
        let sink = clients.sink(self.client)?;
        if !self.delays_agent() && sink.is_full() {
            self.begin_lag(seq - 1);
            return None;
        }
        Some(sink)
    }

    /// Returns `true` if the agent waits while the client does not read. A client whose departure would not
    /// matter delays no agent, nor does an observer: it lags.
    #[inline]
    fn delays_agent(&self) -> bool {
        let own = self.participation;
        // A client that speaks ACP cannot lag.
        let waits = own.on_disconnect == OnDisconnect::Cancel || self.subscription.updates;
        self.leads && own.role == Role::Controller && waits
    }

    /// Starts the lag: the client is sent everything after chunk `sent` from the log.
    #[cold]
    pub fn begin_lag(&mut self, sent: u64) {
        self.lag.get_or_insert_with(|| {
            Box::new(Lag {
                sent,
                deferred: VecDeque::new(),
            })
        });
    }

    /// Sends the client everything after chunk `sent` from the log, whatever it received before; `last` is the
    /// number of the last chunk.
    pub fn resume_after(&mut self, sent: u64, last: u64) {
        match &mut self.lag {
            Some(lag) => lag.sent = sent,
            None if sent < last => self.begin_lag(sent),
            None => {}
        }
    }

    /// Lowers the position of a lagging client, because chunks after a number were retracted.
    fn take_back(&mut self, after: u64) {
        if let Some(lag) = &mut self.lag {
            lag.sent = lag.sent.min(after);
        }
    }

    fn send(&mut self, seq: u64, message: Deferred, clients: &mut dyn ClientSinks) {
        match &mut self.lag {
            None => message.send(self.client, clients),
            Some(lag) => lag.defer(seq, message),
        }
    }

    /// Records that the client has received the chunks up to `sent`, and sends the messages deferred behind
    /// them.
    pub fn note_sent(&mut self, sent: u64, clients: &mut dyn ClientSinks) {
        let Some(lag) = &mut self.lag else { return };
        lag.sent = sent;
        while let Some((seq, _)) = lag.deferred.front()
            && *seq <= sent
            && let Some((_, message)) = lag.deferred.pop_front()
        {
            message.send(self.client, clients);
        }
    }

    /// Sends all deferred messages, although the client has not received the chunks before them.
    pub fn send_deferred(&mut self, clients: &mut dyn ClientSinks) {
        let lag = self.lag.as_mut();
        let deferred = lag.map(|lag| std::mem::take(&mut lag.deferred));
        for (_, message) in deferred.into_iter().flatten() {
            message.send(self.client, clients);
        }
    }

    /// Ends the lag: the client has received all chunks, or must not receive the rest.
    pub fn end_lag(&mut self, clients: &mut dyn ClientSinks) {
        self.send_deferred(clients);
        self.lag = None;
    }

    /// Returns the number of the last chunk that a lagging client received; `None` if the client does not
    /// lag.
    pub fn lag(&self) -> Option<u64> {
        self.lag.as_ref().map(|lag| lag.sent)
    }
}

impl Subscribers {
    /// Subscribes a client. Returns `false` if it was already subscribed.
    pub fn add(
        &mut self,
        client: ClientId,
        subscription: Subscription,
        participation: Participation,
    ) -> bool {
        if self.has(client) {
            return false;
        }
        self.all.push(Subscriber {
            client,
            subscription,
            participation,
            lag: None,
            leads: self.all.is_empty(),
        });
        true
    }

    /// Removes a client that has left or detached, with its deferred messages.
    pub fn remove(&mut self, client: ClientId) {
        let left = self.get_mut(client).map(|left| left.participation);
        self.are_awaited |= left.is_some_and(Participation::continues);
        self.all.retain(|subscriber| subscriber.client != client);
        if self.leader().is_none()
            && let Some(first) = self.all.first_mut()
        {
            first.leads = true;
        }
    }

    /// Returns `true` if a client has left or detached whose departure does not end its work.
    pub fn are_awaited(&self) -> bool {
        self.are_awaited
    }

    /// Returns `true` if a subscribed controller can leave without an end of its work.
    pub fn any_continues(&self) -> bool {
        self.all.iter().any(|s| s.participation.continues())
    }

    pub fn participation(&self, client: ClientId) -> Option<Participation> {
        let subscriber = self.all.iter().find(|s| s.client == client)?;
        Some(subscriber.participation)
    }

    /// Returns the leader if the agent waits while it does not read.
    pub fn awaited_leader(&self) -> Option<ClientId> {
        self.all.iter().find(|s| s.delays_agent()).map(|s| s.client)
    }

    /// Iterates over the clients that may answer requests and serve the agent.
    pub fn controllers(&self) -> impl Iterator<Item = ClientId> + '_ {
        let is_controller = |s: &&Subscriber| s.participation.role == Role::Controller;
        self.all.iter().filter(is_controller).map(|s| s.client)
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Subscriber> {
        self.all.iter()
    }

    pub fn has(&self, client: ClientId) -> bool {
        self.clients().any(|other| other == client)
    }

    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.all.iter().map(|subscriber| subscriber.client)
    }

    /// Returns the leader, the client that the session works for: the client of the last prompt, or before
    /// any prompt the first subscriber. The agent waits when the leader does not read; other clients lag.
    pub fn leader(&self) -> Option<ClientId> {
        self.all.iter().find(|s| s.leads).map(|s| s.client)
    }

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

    pub fn are_lagging(&self) -> bool {
        self.all.iter().any(|subscriber| subscriber.lag.is_some())
    }

    pub fn is_lagging(&self, client: ClientId) -> bool {
        self.all
            .iter()
            .any(|s| s.client == client && s.lag.is_some())
    }

    /// Returns `true` if every client that receives chunks live is behind with reading, so that merging
    /// chunks before they are sent delays no client. `false` without such clients.
    #[inline]
    pub fn are_behind(&self, clients: &mut dyn ClientSinks) -> bool {
        let mut live = self.all.iter().filter(|subscriber| subscriber.is_live());
        match live.next() {
            None => false,
            Some(first) => {
                clients.is_client_lagging(first.client)
                    && live.all(|other| clients.is_client_lagging(other.client))
            }
        }
    }

    /// Sends an ACP update to the clients that speak ACP.
    pub fn update(
        &mut self,
        session: &str,
        seq: u64,
        update: AcpNotification<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let speaking = self.all.iter().filter(|s| s.subscription.updates);
        for subscriber in speaking {
            if let Some(sink) = clients.sink(subscriber.client) {
                sink.update(session, seq, update);
            }
        }
    }

    /// Sends a run of ACP updates to the clients that speak ACP.
    pub fn update_run(
        &mut self,
        session: &str,
        seq: u64,
        run: &UpdateRun<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        for client in self.clients_of_acp() {
            if let Some(sink) = clients.sink(client) {
                sink.update_run(session, seq, run);
            }
        }
    }

    /// Returns `true` if every client that receives output of the session speaks ACP.
    pub fn only_speak_acp(&self) -> bool {
        let mut all = self.all.iter().map(|subscriber| subscriber.subscription);
        all.all(|subscription| subscription.updates || !subscription.chunks)
    }

    pub fn clients_of_acp(&self) -> impl Iterator<Item = ClientId> + '_ {
        let speaking = self.all.iter().filter(|s| s.subscription.updates);
        speaking.map(|subscriber| subscriber.client)
    }

    /// Returns `true` if a subscribed client speaks ACP.
    pub fn speak_acp(&self) -> bool {
        self.all.iter().any(|s| s.subscription.updates)
    }

    /// Sends a notification to all clients, after the chunks up to `seq`.
    pub fn notify(&mut self, seq: u64, notice: &Notice, clients: &mut dyn ClientSinks) {
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

    /// Sends each client but `except` its own notification, after the chunks up to `seq`.
    pub fn notify_each(
        &mut self,
        seq: u64,
        except: Option<ClientId>,
        notice: impl Fn(ClientId) -> Notice,
        clients: &mut dyn ClientSinks,
    ) {
        for subscriber in &mut self.all {
            let client = subscriber.client;
            if Some(client) != except {
                subscriber.send(seq, Deferred::Notice(notice(client)), clients);
            }
        }
    }

    /// Sends a request to a client, after the chunks up to `seq`.
    pub fn request(
        &mut self,
        client: ClientId,
        seq: u64,
        (ask, request): (ClientRequestId, &Arc<ClientRequest>),
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(subscriber) = self.get_mut(client) {
            let message = Deferred::Request(ask, Arc::clone(request));
            subscriber.send(seq, message, clients);
        }
    }

    /// Withdraws a request to a client. A request that is still deferred is dropped.
    pub fn withdraw(
        &mut self,
        client: ClientId,
        ask: ClientRequestId,
        by: &DecisionSource,
        clients: &mut dyn ClientSinks,
    ) {
        let lag = self.get_mut(client).and_then(|s| s.lag.as_mut());
        if lag.is_some_and(|lag| lag.drop_request(ask)) {
            return;
        }
        if let Some(sink) = clients.sink(client) {
            sink.withdraw(ask, by);
        }
    }

    /// Answers a call. The reply follows the chunks up to `seq` if the client is subscribed and lags.
    pub fn reply(
        &mut self,
        seq: u64,
        token: Token,
        answer: Result<Reply, Error>,
        clients: &mut dyn ClientSinks,
    ) {
        match self.get_mut(token.client) {
            Some(subscriber) if subscriber.lag.is_some() => {
                subscriber.send(seq, Deferred::Reply(token, Box::new(answer)), clients);
            }
            _ => clients.reply(token, answer),
        }
    }

    /// Retracts the chunks of a session after number `after` from all clients.
    pub fn retract(&mut self, session: &str, after: u64, clients: &mut dyn ClientSinks) {
        for subscriber in &mut self.all {
            subscriber.take_back(after);
            if let Some(sink) = clients.sink(subscriber.client) {
                sink.retract(session, after);
            }
        }
    }

    /// Withholds the chunks of a session after number `after` from all clients, because the disk has not
    /// answered. The clients lag. Output to a client that cannot lag is held, unless `may_hold` is `false`.
    pub fn hold_back(
        &mut self,
        session: &str,
        after: u64,
        may_hold: bool,
        clients: &mut dyn ClientSinks,
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

    /// Releases held output, because the disk has answered.
    pub fn release(&mut self, clients: &mut dyn ClientSinks) {
        for subscriber in &self.all {
            if let Some(sink) = clients.sink(subscriber.client) {
                sink.hold(false);
            }
        }
    }

    /// Sends deferred messages without the chunks before them, because the wait for the disk was given up.
    /// Clients that cannot lag lose the chunks after number `after`.
    pub fn give_up(&mut self, session: &str, after: u64, clients: &mut dyn ClientSinks) {
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

    /// Ends the lag of all clients: no more chunks will follow.
    pub fn end_lags(&mut self, clients: &mut dyn ClientSinks) {
        for subscriber in &mut self.all {
            subscriber.end_lag(clients);
        }
    }
}
