//! A session machine with its surroundings: an ACP agent, a log in memory, a recording client.

use super::super::SessionMachine;
use super::disk::{self, Disk};
use super::event::On;
use super::output;
use crate::agent::{AgentAccess, Connection, Phase, Renewal};
use crate::agent_definition::AgentDefinition;
use crate::agent_spec::AgentSpec;
use crate::client::{ClientId, Token};
use crate::client_request::ClientRequestId;
use crate::clients::ClientDeclaration;
use crate::cx::{Cx, SessionRequest};
use crate::effect::Effect;
use crate::hosting::Hosting;
use crate::ids::AgentRef;
use crate::log::Log;
use crate::profile::Profile;
use crate::quirks::Quirks;
use crate::session::RestoreEvent;
use crate::shared::Shared;
use crate::store::{MemoryStore, Store as _};
use crate::subscribers::Participation;
use crate::testing::{RecordingClient, SettingsBuilder, SharedCell};
use acpipe_dialects::{DialectSetup, dialect};
use acpipe_model::asking::Asking;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::dialect::{AgentServices, Child, ProcessSpec, TransportOrder};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::AgentInfo;
use acpipe_model::host;
use acpipe_model::host::HostEffect;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::request_numbers::RequestNumbers;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::wire::{AgentCapabilities, ClientCapabilities, Protocol, Strategy, Variables};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A session machine and its surroundings.
pub(super) struct Fixture {
    pub session: SessionMachine,
    pub shared: Shared,
    pub connection: Option<Connection>,
    pub renewal: Option<Renewal>,
    pub hosting: Hosting,
    pub client: RecordingClient,
    pub now: Instant,
    /// `true` if another session of the agent runs a turn.
    pub others_run: bool,
    definition: AgentDefinition,
    spec: AgentSpec,
    pub requests: Vec<SessionRequest>,
    pub effects: Vec<Effect>,
    pub disk: SharedCell<disk::Answer>,
    pub tokens: u64,
    pub last_call: u64,
    pub last_ask: Option<ClientRequestId>,
    seen_asks: BTreeSet<ClientRequestId>,
    seen_withdrawn: usize,
    /// Tickets of the files that acpipe was asked to read.
    pub files: BTreeSet<u64>,
    /// Tokens of the commands that were answered.
    pub answered: BTreeSet<u64>,
    /// Number of unanswered requests of this connection under each key.
    pub open_keys: BTreeMap<String, i32>,
}

/// Returns all session capabilities of an agent.
pub(super) fn all() -> AgentCapabilities {
    AgentCapabilities {
        load: true,
        resume: true,
        list: true,
        close: true,
        ..AgentCapabilities::default()
    }
}

impl Fixture {
    /// Creates a resting session and a ready agent with these capabilities. The client answers permission
    /// requests and questions.
    pub fn new(capabilities: AgentCapabilities) -> Self {
        let now = Instant::now();
        let settings = SettingsBuilder::new(now).build();
        let definition = settings.default_agent.clone();
        let spec = definition.spec.clone();
        let mut shared = Shared::new(settings);
        let mut declaration = ClientDeclaration::new(Profile::V7);
        declaration.capabilities.permissions = true;
        declaration.capabilities.questions = true;
        let subscription = declaration.subscription;
        shared.clients.declare(ClientId::FIRST, declaration);
        let disk = SharedCell::default();
        let file = MemoryStore.open("s").expect("a log in memory");
        let answer = SharedCell::clone(&disk);
        let log = Log::open(Box::new(Disk { file, answer })).expect("an empty log");
        let mut session = SessionMachine::new("s".into(), AgentRef(0), "/w".into(), log);
        let mut client = RecordingClient::default();
        let part = Participation::default();
        session
            .output
            .subscribe(ClientId::FIRST, subscription, part, None, &mut client);
        let mut fixture = Self {
            session,
            shared,
            connection: None,
            renewal: None,
            hosting: Hosting::default(),
            client,
            now,
            others_run: false,
            definition,
            spec,
            requests: Vec::new(),
            effects: Vec::new(),
            disk,
            tokens: 0,
            last_call: 0,
            last_ask: None,
            seen_asks: BTreeSet::new(),
            seen_withdrawn: 0,
            files: BTreeSet::new(),
            answered: BTreeSet::new(),
            open_keys: BTreeMap::new(),
        };
        fixture.connect(capabilities);
        fixture
    }

    /// Creates a live session with agent session id `a1`.
    pub fn live(capabilities: AgentCapabilities) -> Self {
        let mut t = Self::new(capabilities);
        t.on(&On::Ensure(Strategy::Auto));
        t.on(&On::Answer(json!({ "sessionId": "a1" })));
        t
    }

    /// Creates a live session whose permission requests go to the client.
    pub fn asking() -> Self {
        let mut t = Self::live(all());
        t.shared.settings.policy = Policy::from(Mode::Ask);
        t
    }

    /// Creates a session with a stored turn and agent session id `a1`. A new connection of the agent is
    /// ready.
    pub fn stored(capabilities: AgentCapabilities) -> Self {
        let mut t = Self::live(capabilities);
        t.turn();
        t.on(&On::AgentLost);
        t.connect(capabilities);
        t
    }

    /// Connects a new, ready agent with these capabilities.
    pub fn connect(&mut self, capabilities: AgentCapabilities) {
        let setup = DialectSetup {
            launch: ProcessSpec::default(),
            offer: AgentServices {
                acp: None,
                questions: true,
                host: host::HostServices {
                    read_files: true,
                    write_files: true,
                    terminals: true,
                },
            },
            child_per_session: false,
            env: Variables::default(),
            requests: RequestNumbers::default(),
            seed: String::new(),
            has_rules: false,
            backend: BackendOptions::default(),
            limits: Limits::default(),
        };
        let info = AgentInfo {
            capabilities,
            ..AgentInfo::default()
        };
        let number = self.shared.ids.connection();
        let dialect = dialect(Protocol::Acp, setup);
        let phase = Phase::Ready(Box::new(info));
        let mut connection = Connection::start(number, dialect, phase, self.now);
        connection.take_orders();
        self.connection = Some(connection);
        self.last_call = 0;
        self.open_keys.clear();
    }

    /// Runs a whole turn.
    pub fn turn(&mut self) {
        self.on(&On::Prompt("hi"));
        self.on(&On::Text("ho"));
        self.on(&On::Stop("end_turn"));
        self.on(&On::Read);
    }

    /// Known faults of the agent.
    pub fn quirks(&mut self) -> &mut Quirks {
        &mut self.definition.quirks
    }

    /// When the agent asks for permission.
    pub fn asks(&mut self) -> &mut Option<Asking> {
        &mut self.definition.asks
    }

    /// Passes an event to the machine with its surroundings, which have no other session.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> T) -> T {
        let result = self.act_alone(act);
        // There is no other session whose claim could end.
        self.requests
            .retain(|request| !matches!(request, SessionRequest::EndOtherClaims));
        let is_check = |request: &mut SessionRequest| matches!(request, SessionRequest::CheckClaim);
        if self.requests.extract_if(.., is_check).next().is_some() {
            self.act_alone(|session, cx| session.restore(RestoreEvent::ClaimChecked(None), cx));
        }
        result
    }

    fn act_alone<T>(&mut self, act: impl FnOnce(&mut SessionMachine, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx {
            now: self.now,
            shared: &mut self.shared,
            agent: AgentAccess {
                definition: &self.definition,
                spec: &self.spec,
                connection: self.connection.as_mut(),
                renewal: self.renewal.as_ref(),
            },
            terms: self.session.terms.stricter(),
            hosting: &mut self.hosting,
            clients: &mut self.client,
            requests: &mut self.requests,
            effects: &mut self.effects,
        };
        act(&mut self.session, &mut cx)
    }

    /// Capabilities of the client.
    pub fn capabilities(&mut self) -> &mut ClientCapabilities {
        let declaration = self.shared.clients.get_mut(ClientId::FIRST);
        &mut declaration.expect("a client").capabilities
    }

    /// Ends the agent's connection.
    pub fn disconnect(&mut self) {
        self.connection = None;
        self.open_keys.clear();
    }

    /// Takes all output since the last call.
    pub fn output(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        let orders = self.connection.as_mut().map(Connection::take_orders);
        for order in orders.unwrap_or_default() {
            self.last_call = last_call(&order).unwrap_or(self.last_call);
            let lines = output::order(&order);
            for key in lines.iter().filter_map(|line| answered_key(line)) {
                *self.open_keys.entry(key.to_owned()).or_default() -= 1;
            }
            all.extend(lines);
        }
        for (id, request) in &self.client.open_requests {
            if self.seen_asks.insert(*id) {
                self.last_ask = Some(*id);
                all.push(format!("ask {}", output::asked(request)));
            }
        }
        for (_, by) in &self.client.withdrawn[self.seen_withdrawn..] {
            all.push(format!("withdraw by {}", by.word()));
        }
        self.seen_withdrawn = self.client.withdrawn.len();
        for (_, after) in self.client.retracted.drain(..) {
            all.push(format!("retract after {after}"));
        }
        all.extend(output::chunks(&self.client.take_chunks()));
        for (token, reply) in self.client.take_replies() {
            self.answered.insert(token.call);
            all.push(format!("reply {} {}", token.call, output::reply(&reply)));
        }
        all.extend(
            self.client
                .notices
                .drain(..)
                .filter_map(|n| output::notice(&n)),
        );
        all.extend(self.requests.drain(..).map(|r| output::request(&r)));
        for effect in self.effects.drain(..) {
            if let Effect::Host(HostEffect::File { ticket, .. }) = &effect {
                self.files.insert(ticket.0);
            }
            all.push(output::effect(&effect));
        }
        all
    }

    pub fn token(&mut self) -> Token {
        self.tokens += 1;
        Token::first(self.tokens)
    }

    /// Number of tokens issued so far.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    pub fn reply_error(&mut self, token: Token, done: Result<(), Error>) {
        if let Err(error) = done {
            use crate::client_sink::ClientSink as _;
            self.client.reply(token, Err(error));
        }
    }

    /// Sets a timeout.
    pub fn limit(&mut self, wait: Timeout, limit: Option<Duration>) {
        self.shared.settings.limits.set(wait, limit);
    }
}

/// Returns the id of the last request in the input of a process.
fn last_call((_, order): &(Child, TransportOrder)) -> Option<u64> {
    let TransportOrder::Lines(lines) = order else {
        return None;
    };
    let lines = lines.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let calls = messages.filter(|message| message["method"].is_string());
    calls.filter_map(|call| call["id"].as_u64()).next_back()
}

/// Returns the key of the request that a line answers.
fn answered_key(line: &str) -> Option<&str> {
    Some(line.strip_prefix("agent ")?.split_once(" = ")?.0)
}

/// Returns the error of an agent that exited.
pub(super) fn gone() -> Error {
    Error::new(ErrorKind::AgentExited, "the agent exited")
}
