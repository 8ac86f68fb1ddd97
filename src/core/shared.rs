//! State that every machine uses: the configuration, the clients' declarations, ids, open requests to clients.

use super::ask::AskId;
use super::client::{ClientId, Notice, Token};
use super::client_sink::{ClientSink as _, ClientSinks};
use super::clients::Clients;
use super::config::Settings;
use super::host::Offer;
use super::ids::{AgentRef, Ids};
use super::profile::Profile;
use crate::proto::wire::{ListSessionsParams, TurnSummary};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// State that every machine uses.
#[derive(Debug)]
pub struct Shared {
    pub settings: Settings,
    pub clients: Clients,
    pub ids: Ids,
    /// The files and terminals that acpipe serves where no client does.
    pub served: Offer,
    /// Replies that wait for the store, by the ticket that the store was given.
    pub store_waits: BTreeMap<u64, StoreWait>,
    /// Open requests to clients, and which machine sent each.
    pub client_requests: BTreeMap<AskId, RequestOwner>,
    pub waited: WaitClock,
}

/// The machine that sent a request to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOwner {
    Session(String),
    Agent(AgentRef),
}

/// A reply that waits for the store.
#[derive(Debug)]
pub struct StoreWait {
    /// When the call is answered without the store.
    pub until: Option<Instant>,
    pub call: StoreCall,
}

/// A call that waits for an answer of the store.
#[derive(Debug)]
pub enum StoreCall {
    /// The summary of a turn of a session, until it is on the disk.
    Turn(String, Token, Box<TurnSummary>),
    /// A list of sessions.
    List(Token, ListSessionsParams),
}

impl Shared {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            clients: Clients::default(),
            settings,
            ids: Ids::default(),
            served: Offer::default(),
            store_waits: BTreeMap::new(),
            client_requests: BTreeMap::new(),
            waited: WaitClock::default(),
        }
    }

    /// The wall clock at a running time, RFC 3339.
    #[must_use]
    pub fn time(&self, now: Instant) -> String {
        let (at, unix) = self.settings.clock;
        let since = now.saturating_duration_since(at).as_millis();
        let unix = unix.saturating_add(i64::try_from(since).unwrap_or(i64::MAX));
        jiff::Timestamp::from_millisecond(unix)
            .map_or_else(|_| String::new(), |t| format!("{t:.3}"))
    }

    /// A new id for a message, turn or question: `kind-prefix-number`.
    pub fn next_id(&mut self, kind: &str) -> String {
        format!("{kind}-{}-{}", self.settings.id_prefix, self.ids.name())
    }

    /// Opens a request to clients.
    pub fn next_ask(&mut self, owner: RequestOwner) -> AskId {
        let ask = self.ids.ask();
        self.client_requests.insert(ask, owner);
        ask
    }

    /// The files and terminals that agents may ask for.
    #[must_use]
    pub fn offer(&self) -> Offer {
        self.clients.offer().or(self.served)
    }

    /// The chunk profile of a client.
    #[must_use]
    pub fn profile(&self, client: ClientId) -> Profile {
        let declaration = self.clients.get(client);
        declaration.map_or(self.settings.profile, |d| d.subscription.profile)
    }

    /// Notifies all clients.
    pub fn notify_all(&self, notice: &Notice, clients: &mut impl ClientSinks) {
        for client in self.clients.ids() {
            if let Some(sink) = clients.sink(client) {
                sink.notify(notice);
            }
        }
    }
}

/// Measures the time in which the core had nothing to do: it waited for agents.
#[derive(Debug, Default)]
pub struct WaitClock {
    total: Duration,
    since: Option<Instant>,
}

impl WaitClock {
    /// The core has nothing to do until the next input.
    pub fn begin(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// The next input has come.
    pub fn end(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_duration_since(since);
        }
    }

    /// The total so far.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.total
    }
}
