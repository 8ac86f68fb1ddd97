//! State that every machine uses: the configuration, the client's declaration, ids, open requests to the client.

use super::ask::AskId;
use super::client::Token;
use super::config::Settings;
use super::host::Offer;
use super::ids::{AgentRef, Ids};
use super::subscription::Subscription;
use crate::proto::wire::{ClientCapabilities, ListSessionsParams, TurnSummary, UnknownFields};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// State that every machine uses.
#[derive(Debug)]
pub struct Shared {
    pub settings: Settings,
    pub client: ClientDeclaration,
    pub ids: Ids,
    /// The files and terminals that acpipe serves where the client does not.
    pub served: Offer,
    /// Replies that wait for the store, by the ticket that the store was given.
    pub store_waits: HashMap<u64, StoreWait>,
    /// Open requests to the client, and which machine sent each.
    pub client_requests: BTreeMap<AskId, RequestOwner>,
    pub waited: WaitClock,
}

/// What the client declared in `initialize`.
#[derive(Debug)]
pub struct ClientDeclaration {
    pub initialized: bool,
    pub capabilities: ClientCapabilities,
    pub unknown_fields: UnknownFields,
    /// The subscription of sessions that are opened from now on.
    pub subscription: Subscription,
}

/// The machine that sent a request to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOwner {
    Session(String),
    Agent(AgentRef),
}

/// A reply that waits for the store.
#[derive(Debug)]
pub enum StoreWait {
    /// The summary of a turn, until it is on the disk.
    Turn(Token, Box<TurnSummary>),
    /// A list of sessions.
    List(Token, ListSessionsParams),
}

impl Shared {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            client: ClientDeclaration {
                initialized: false,
                capabilities: ClientCapabilities::default(),
                unknown_fields: UnknownFields::default(),
                subscription: Subscription {
                    chunks: true,
                    profile: settings.profile,
                },
            },
            settings,
            ids: Ids::default(),
            served: Offer::default(),
            store_waits: HashMap::new(),
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

    /// Opens a request to the client.
    pub fn next_ask(&mut self, owner: RequestOwner) -> AskId {
        let ask = self.ids.ask();
        self.client_requests.insert(ask, owner);
        ask
    }

    /// The files and terminals that agents may ask for.
    #[must_use]
    pub fn offer(&self) -> Offer {
        self.client_offer().or(self.served)
    }

    /// The files and terminals that the client serves.
    #[must_use]
    pub fn client_offer(&self) -> Offer {
        let can = &self.client.capabilities;
        Offer {
            read_files: can.fs.read_text_file,
            write_files: can.fs.write_text_file,
            terminals: can.terminal,
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
