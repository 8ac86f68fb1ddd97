//! The calls that open a session at its agent, one strategy after the other, and what the agent's responses mean.
//!
//! Owns what the agent is given to open the session, beside its options: the MCP servers, the extra members that a client
//! which speaks ACP gave, whether the next opening is a fork, and during a hand-over the agent that had the session before.
//! How far an opening has come is kept by `Restore`, the settings to set by
//! `SessionSettings`. It makes the calls to the agent and writes the receipt: what the
//! agent remembers of the session. It may not end turns, answer clients or touch queued prompts: a function handles one
//! event and returns a [`RestoreStep`], and the machine does the rest.

pub mod agent_ids;
pub mod dead_session;
pub mod doubts;
mod receipt;
pub mod setting_calls;
mod taking;
pub mod timeouts;

use super::restore::{Adoption, ListPage, load_quiet};
use super::terms::asking::opening_options;
use super::{Conversation, Stage};
use crate::agent::connection::Call;
use crate::agent_spec::AgentSpec;
use crate::config::OnLost;
use crate::cx::Cx;
use crate::ids::AgentRef;
use crate::replay::Replay;
use crate::restore_plan::RestoreFacts;
use crate::session::output::pass_early_updates;
use crate::session_id::fnv1a;
use crate::shared_value::SharedValue;
use acpipe_json::Members;
use acpipe_model::dialect::{AgentCall, Opening, SessionSetup};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;
use acpipe_protocol::wire::{McpServer, NotRestored, Rung, SessionOptions, SettingValue};
use agent_ids::{awaits_claim, id_given_to, wait_for_close};
use doubts::nothing_left;
use serde_json::{Map, Value};
pub use taking::Taken;

/// Lower bound for the limit on the stored conversation that the next agent receives, in characters.
const TRANSCRIPT: usize = 32 << 10;

pub enum RestoreEvent<'a> {
    /// The agent is ready, or has closed the session that is to be opened again.
    Ready,
    Opened(String, &'a Members<'a>),
    Refused(Error),
    /// A page of the agent's session list; `None` if the agent did not send it.
    Listed(ListPage<'a>),
    /// Result of the check of the session's claim: the session with a later claim, if there is one.
    ClaimChecked(Option<String>),
}

#[must_use]
pub enum RestoreStep {
    Waits,
    /// Call the agent with the next strategy.
    Next,
    /// The agent has or claims to have the session, under this agent session id.
    Claimed(String, Adoption),
    /// The agent has the session; a turn of the session that it replaces ends first.
    Take(Box<Taken>),
    /// The settings are restored as far as possible: the session is live.
    Restored,
    /// Fail the opening because a required setting could not be set. The session is closed at the agent and
    /// gets no prompt.
    Refused(Error),
    Failed(Error),
}

/// The previous agent of a session that is being handed over.
#[derive(Debug)]
struct Handover {
    agent: AgentRef,
    name: String,
    /// Options and MCP servers that the session had there.
    options: SharedValue<SessionOptions>,
    mcp_servers: Option<Box<NamedServers>>,
}

/// MCP servers that a client named for a session.
#[derive(Debug, Clone)]
pub struct NamedServers {
    servers: Vec<McpServer>,
    /// Hash of the command line of the agent that got them first.
    program: Option<u64>,
    /// `true` once the session has another agent or program, which does not get them: their secrets are those of the client.
    is_withheld: bool,
}

/// Returns the error for a session of the agent that is open already as another session.
pub fn already_open(other: &str) -> Error {
    let message = format!(
        "the agent's session is already open as session {other:?}; use that one, or call session/close for it first"
    );
    Error::new(ErrorKind::SessionExists, message)
}

/// Opening of a session at its agent.
#[derive(Debug, Default)]
pub struct Restoring {
    /// Set from the hand-over to another agent until the session is live there.
    handover: Option<Handover>,
    /// MCP servers that the session gets, as the client declared them.
    mcp_servers: Option<Box<NamedServers>>,
    /// Members that a client which speaks ACP adds to the calls that open the session.
    acp_setup: Map<String, Value>,
    /// `true` if the next opening forks the agent's session instead of continuing it.
    forks: bool,
    /// `true` once the session was live, until it is released: then the next client opens it at an agent of its own.
    was_open: bool,
    /// `true` after a hand-over has failed: the next opening is at the agent of before, whichever client asks for it.
    keeps_agent: bool,
}

impl Restoring {
    pub fn mcp_servers(&self) -> &[McpServer] {
        let named = self
            .mcp_servers
            .as_deref()
            .filter(|named| !named.is_withheld);
        named.map_or(&[], |named| &named.servers)
    }

    /// Returns the servers that an agent with this specification gets from a session of the daemon, which has been at
    /// another agent if `moves`: their secrets are those of the client that named them.
    pub fn servers_for(&self, spec: &AgentSpec, moves: bool) -> &[McpServer] {
        let named = self.mcp_servers.as_deref();
        let program = named.and_then(|named| named.program);
        if moves || program.is_some_and(|program| program != program_of(spec)) {
            return &[];
        }
        self.mcp_servers()
    }

    /// Keeps the servers from the next agent of the session.
    pub fn withhold_mcp_servers(&mut self) {
        if let Some(named) = &mut self.mcp_servers {
            named.is_withheld = true;
        }
    }

    /// Describes the servers that the agent of the session did not get.
    fn withheld_servers(&self) -> Option<NotRestored> {
        let withheld = self.mcp_servers.as_deref();
        let withheld = withheld.filter(|named| named.is_withheld)?;
        let names = withheld.servers.iter();
        let names = names.map(|server| server.name.as_str());
        let names: Vec<&str> = names.collect();
        Some(NotRestored {
            setting: "mcpServers".to_owned(),
            value: SettingValue::Id(names.join(", ")),
            message: "the session has another agent or program now, which does not get the servers that a client named; \
                      name them in session/ensure"
                .to_owned(),
        })
    }

    pub fn set_mcp_servers(&mut self, servers: Vec<McpServer>) {
        let named = NamedServers {
            servers,
            program: None,
            is_withheld: false,
        };
        self.mcp_servers = (!named.servers.is_empty()).then(|| Box::new(named));
    }

    /// Takes the MCP servers out of a session that leaves memory.
    pub fn take_mcp_servers(&mut self) -> Option<Box<NamedServers>> {
        self.mcp_servers.take()
    }

    /// Puts back what [`take_mcp_servers`](Self::take_mcp_servers) returned.
    pub fn put_mcp_servers(&mut self, servers: Option<Box<NamedServers>>) {
        self.mcp_servers = servers;
    }

    /// Withholds the servers if the agent that would get them is another program than the one that had them.
    fn withhold_servers_from_others(&mut self, spec: &AgentSpec) {
        let Some(named) = &mut self.mcp_servers else {
            return;
        };
        let program = program_of(spec);
        named.is_withheld |= *named.program.get_or_insert(program) != program;
    }

    pub fn set_acp_setup(&mut self, members: Map<String, Value>) {
        self.acp_setup = members;
    }

    pub fn fork_next(&mut self, forks: bool) {
        self.forks = forks;
    }

    /// Notes the agent that the session leaves, until the session is live at the next one.
    pub fn hand_over(
        &mut self,
        agent: AgentRef,
        name: String,
        options: SharedValue<SessionOptions>,
    ) {
        let mcp_servers = self.mcp_servers.clone();
        self.handover = Some(Handover {
            agent,
            name,
            options,
            mcp_servers,
        });
    }

    /// Notes that the session is live, which ends a hand-over.
    pub fn note_live(&mut self) {
        self.handover = None;
        self.was_open = true;
        self.keeps_agent = false;
    }

    pub fn note_released(&mut self) {
        self.was_open = false;
        self.keeps_agent = false;
    }

    /// Returns `true` if the next opening is at the agent of the session, whichever client asks for it.
    pub fn keeps_agent(&self) -> bool {
        self.keeps_agent
    }

    /// Returns `false` for a session that was only loaded, or released since it was live: no client has it at an agent.
    pub fn was_open(&self) -> bool {
        self.was_open
    }

    /// Ends the hand-over, because the session could not be opened at the new agent. Returns the previous one, with the options
    /// that the session had there. The session stays that of the client that opened it there.
    pub fn take_previous_agent(&mut self) -> Option<(AgentRef, SharedValue<SessionOptions>)> {
        let previous = self.handover.take()?;
        self.was_open = true;
        self.keeps_agent = true;
        self.mcp_servers = previous.mcp_servers;
        Some((previous.agent, previous.options))
    }

    /// Returns how to treat the history if the agent does not know it. A hand-over keeps it and passes it on.
    fn on_lost(&self, configured: OnLost) -> OnLost {
        match self.handover {
            Some(_) => OnLost {
                clear: false,
                reinject: configured.reinject.max(TRANSCRIPT),
            },
            None => configured,
        }
    }

    pub fn handle(
        &mut self,
        event: RestoreEvent<'_>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> RestoreStep {
        match event {
            RestoreEvent::Ready => RestoreStep::Next,
            RestoreEvent::Opened(agent_session, state) => opened(agent_session, state, talk, cx),
            RestoreEvent::Refused(error) => doubts::open_refused(error, talk, cx),
            RestoreEvent::Listed(page) => doubts::listed(page, talk, cx),
            RestoreEvent::ClaimChecked(later) => {
                if let Stage::Opening(restore) = &mut talk.stage
                    && restore.claim_mut().checked(later)
                {
                    RestoreStep::Next
                } else {
                    RestoreStep::Waits
                }
            }
        }
    }

    /// Calls the agent with the next remaining strategy. Does nothing until the agent is ready.
    pub fn call_next(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) -> RestoreStep {
        talk.note_opening(cx.now);
        if awaits_claim(talk, cx) {
            return RestoreStep::Waits;
        }
        let Some(info) = cx.agent.ready().filter(|_| talk.is_opening()) else {
            return RestoreStep::Waits;
        };
        let can = info.capabilities;
        let key = cx.agent.identity();
        if cx.shared.is_resident {
            self.withhold_servers_from_others(cx.agent.spec);
        }
        let servers = match cx.servers(self.mcp_servers()) {
            Ok(servers) => servers,
            Err(error) => return RestoreStep::Failed(error),
        };
        let known = talk.known.id_of(&key).map(str::to_owned);
        let given_to = known.as_ref().and_then(|id| id_given_to(id, talk, cx));
        let known = known.filter(|_| given_to.is_none());
        let other = talk.known.other_than(&key).filter(|_| known.is_none());
        let stored = talk.output.log().count();
        let Stage::Opening(restore) = &mut talk.stage else {
            return RestoreStep::Waits;
        };
        let knowledge = RestoreFacts {
            id: known.is_some(),
            history: stored > 0,
            other: other.as_deref(),
            given_to: given_to.as_deref(),
        };
        restore.plan(can, knowledge, cx.until(Timeout::Restore));
        if wait_for_close(known.as_deref(), talk, cx) {
            return RestoreStep::Waits;
        }
        let Stage::Opening(restore) = &mut talk.stage else {
            return RestoreStep::Waits;
        };
        let Some(rung) = restore.take_next() else {
            let error = nothing_left(&talk.id, restore.failed());
            return RestoreStep::Failed(error);
        };
        let way = match (rung, &known) {
            (Rung::Resume, Some(known)) => Opening::Resume(known),
            (Rung::Load, Some(known)) => Opening::Load(known),
            _ => Opening::New,
        };
        let routed = |known: &String| cx.agent.connection.as_ref()?.directory.session(known);
        if way != Opening::New
            && let Some(other) = known.as_ref().and_then(routed)
            && *other != talk.id
        {
            return RestoreStep::Failed(already_open(other));
        }
        let before = restore.try_strategy(rung);
        let (options, mode) = opening_options(&talk.settings, cx);
        restore.start_in(mode);
        let call = cx.next_call();
        talk.hold_roots(cx);
        let Some(connection) = &mut cx.agent.connection else {
            return RestoreStep::Waits;
        };
        connection.directory.remove(&talk.id);
        if let (Some(known), true, Stage::Opening(restore)) =
            (&known, way != Opening::New, &mut talk.stage)
        {
            // The prefix contains the number of stored messages. Adopting messages increases it, so their ids
            // are not reused.
            let prefix = format!("{}-replayed-{stored}", talk.id);
            let facts = connection.facts();
            let repeats = rung == Rung::Load
                || facts.repeats_on_resume
                || cx.agent.definition.quirks.replays_on_resume;
            restore
                .history_mut()
                .expect(repeats.then(|| Replay::new(facts.name, prefix)));
            connection.directory.add(known.clone(), talk.id.clone());
        }
        let session = talk.id.clone();
        connection.calls.insert(call, Call::Open { session });
        if let Some(before) = before {
            connection.tell(AgentCall::Forget(before));
        }
        let place = SessionSetup {
            cwd: &talk.cwd,
            mcp_servers: &servers,
            options: &options,
            acp: &self.acp_setup,
            fork: self.forks,
        };
        let place = &place;
        connection.tell(AgentCall::Open { call, way, place });
        let limit = cx.limits().of(Timeout::Open);
        talk.opening(call, cx.now, limit);
        RestoreStep::Waits
    }
}

/// Returns a hash of the command line of an agent.
fn program_of(spec: &AgentSpec) -> u64 {
    let line = format!("{:?} {:?} {:?}", spec.protocol, spec.command, spec.args);
    fnv1a(line.as_bytes())
}

fn opened(
    agent_session: String,
    state: &Members<'_>,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> RestoreStep {
    let Some(connection) = &mut cx.agent.connection else {
        return RestoreStep::Waits;
    };
    let routed = connection.directory.session(&agent_session);
    if let Some(other) = routed.filter(|other| **other != talk.id) {
        let id = &talk.id;
        let message = format!(
            "the agent gave session {id:?} the id of session {other:?} ({agent_session:?}); their updates cannot \
                 be distinguished"
        );
        return RestoreStep::Failed(Error::new(ErrorKind::Malformed, message));
    }
    let early = connection.directory.take_early(&agent_session);
    let Stage::Opening(restore) = &mut talk.stage else {
        return RestoreStep::Waits;
    };
    restore.answered();
    if restore.rung() == Some(Rung::New) {
        talk.settings.clear_state();
    }
    talk.settings.extend_state(&early.state);
    talk.settings.merge(state);
    restore.report_earlier(&early.state, early.cost);
    restore.report(state, None);
    pass_early_updates(&early.updates, &agent_session, &mut talk.output, cx.clients);
    let replays_late =
        restore.rung() == Some(Rung::Resume) && cx.agent.definition.quirks.replays_on_resume;
    if restore.rung() == Some(Rung::Load) || replays_late {
        restore.wait_for_quiet(agent_session, cx.now + load_quiet(cx));
        return RestoreStep::Waits;
    }
    RestoreStep::Claimed(agent_session, Adoption::Unknown)
}
