//! State that all machines use: configuration, declarations of the clients, ids, open client requests.

use super::agent_command::AgentCommand;
use super::client::{ClientId, Notice, Token};
use super::client_request::ClientRequestId;
use super::client_sink::ClientSinks;
use super::clients::Clients;
use super::config::Settings;
use super::ids::{AgentRef, Ids};
use super::metrics::Counters;
use super::profile::Profile;
use super::shared_value::SharedValue;
use acpipe_model::host::HostServices;
use acpipe_protocol::wire::{ListSessionsParams, TurnSummary};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// State that all machines use.
#[derive(Debug)]
pub struct Shared {
    pub settings: Settings,
    pub clients: Clients,
    pub ids: Ids,
    /// `true` in a daemon, whose clients may have settings of their own.
    pub is_resident: bool,
    /// `true` if turns and openings of sessions are reported.
    pub reports: bool,
    /// Files and terminals that acpipe serves if no client does.
    pub served: HostServices,
    /// Replies that wait for the store, by the ticket of the call to the store.
    pub pending_store_replies: BTreeMap<u64, PendingStoreReply>,
    /// Open client requests, each with the machine that sent it.
    pub client_requests: BTreeMap<ClientRequestId, RequestOwner>,
    /// Counters of turns, updates and chunks.
    pub counters: Counters,
    pub waited: InputWaitClock,
    /// Command that [`Shared::share_command`] returned last.
    pub last_command: SharedValue<AgentCommand>,
}

/// Machine that sent a client request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOwner {
    Session(String),
    Agent(AgentRef),
    /// The hub, which passed on a request of an agent.
    Hub,
}

#[derive(Debug)]
pub struct PendingStoreReply {
    /// Deadline after which the call is answered without the store.
    pub until: Option<Instant>,
    pub call: StoreCall,
}

/// Call that waits for a response of the store.
#[derive(Debug)]
pub enum StoreCall {
    /// Prompt of a session, whose summary is sent when it is on the disk.
    Turn(String, Token, Box<TurnSummary>),
    /// List of sessions, with the number of sessions that were open when the cards were requested.
    List(Token, ListSessionsParams, usize),
    /// Check of the claim of a session that is being restored.
    Claim(String),
}

impl Shared {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            clients: Clients::default(),
            settings,
            ids: Ids::default(),
            is_resident: false,
            reports: false,
            served: HostServices::default(),
            pending_store_replies: BTreeMap::new(),
            client_requests: BTreeMap::new(),
            counters: Counters::default(),
            waited: InputWaitClock::default(),
            last_command: SharedValue::default(),
        }
    }

    /// Returns the command so that the sessions of an agent share it.
    pub fn share_command(&mut self, command: AgentCommand) -> SharedValue<AgentCommand> {
        if *self.last_command != command {
            self.last_command = command.into();
        }
        self.last_command.clone()
    }

    /// Converts a running time to wall clock time, as RFC 3339.
    #[must_use]
    pub fn time(&self, now: Instant) -> String {
        let (at, unix) = self.settings.clock;
        let since = now.saturating_duration_since(at).as_millis();
        let unix = unix.saturating_add(i64::try_from(since).unwrap_or(i64::MAX));
        jiff::Timestamp::from_millisecond(unix)
            .map_or_else(|_| String::new(), |t| format!("{t:.3}"))
    }

    /// Converts a running time to nanoseconds since 1970.
    #[must_use]
    pub fn unix_nanos(&self, at: Instant) -> u64 {
        let (known, unix_ms) = self.settings.clock;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let known_nanos = u64::try_from(unix_ms)
            .unwrap_or(0)
            .saturating_mul(1_000_000);
        let after = nanos(at.saturating_duration_since(known));
        let before = nanos(known.saturating_duration_since(at));
        known_nanos.saturating_add(after).saturating_sub(before)
    }

    /// Returns a new id for a message, turn or question: `kind-prefix-number`.
    pub fn next_id(&mut self, kind: &str) -> String {
        format!("{kind}-{}-{}", self.settings.id_prefix, self.ids.name())
    }

    /// Opens a client request.
    pub fn next_ask(&mut self, owner: RequestOwner) -> ClientRequestId {
        let ask = self.ids.ask();
        self.client_requests.insert(ask, owner);
        ask
    }

    #[must_use]
    pub fn profile(&self, client: ClientId) -> Profile {
        let declaration = self.clients.get(client);
        declaration.map_or(self.settings.profile, |d| d.subscription.profile)
    }

    pub fn notify_all(&self, notice: &Notice, clients: &mut dyn ClientSinks) {
        for client in self.clients.ids() {
            if let Some(sink) = clients.sink(client) {
                sink.notify(notice);
            }
        }
    }
}

/// Measures the time in which the core waited for input.
#[derive(Debug, Default)]
pub struct InputWaitClock {
    total: Duration,
    since: Option<Instant>,
}

impl InputWaitClock {
    /// Starts to count: the core has nothing to do until the next input.
    pub fn begin(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Stops to count: the next input has arrived.
    pub fn end(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_duration_since(since);
        }
    }

    #[must_use]
    pub fn total(&self) -> Duration {
        self.total
    }
}
