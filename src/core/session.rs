//! A session: a conversation by the client's id, and the turn that runs in it.

use super::client::{Notice, Outlet, Place, Token};
use super::event::{CallId, Permission};
use super::permit::Decision;
use super::profile::Profile;
use super::turn::{ChunkSink, Turn, other, permission_data};
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// A conversation.
#[derive(Debug)]
pub struct Session {
    pub id: String,
    pub cwd: String,
    pub mcp_servers: Vec<Value>,
    pub stage: Stage,
    /// The number of the last chunk.
    seq: u64,
    pub view: View,
    /// Modes, models, options, commands and title, by the agent's own names.
    pub state: Map<String, Value>,
    /// What the session cost so far; a new one cost nothing.
    pub cost: Option<f64>,
    pub running: Option<Running>,
    /// The prompt of a turn that was given up and that the agent has not answered yet.
    pub abandoned: Option<CallId>,
}

/// What the client wants to see of a session.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Whether it wants the chunks at all.
    pub chunks: bool,
    /// In which profile.
    pub profile: Profile,
}

/// How far a session is.
#[derive(Debug)]
pub enum Stage {
    /// Waits for its agent, or for its agent's answer.
    Opening {
        call: Option<CallId>,
        waiters: Vec<Token>,
        deadline: Option<Instant>,
    },
    /// The agent knows it by this id.
    Live { agent_session: String },
}

/// A turn that has not ended.
#[derive(Debug)]
pub struct Running {
    pub turn: Turn,
    pub turn_id: String,
    pub token: Token,
    pub call: CallId,
    pub started: Instant,
    /// How long the bridge had waited for agents when the turn began.
    pub waited_before: Duration,
    /// When a cancel that was sent is given up.
    pub cancel_deadline: Option<Instant>,
    pub skipped_parts: Vec<String>,
    /// The tool that the client was last told of: name and description.
    activity: Option<(String, String)>,
}

impl Running {
    #[must_use]
    pub fn new(turn: Turn, turn_id: String, token: Token, call: CallId, started: Instant) -> Self {
        Self {
            turn,
            turn_id,
            token,
            call,
            started,
            waited_before: Duration::ZERO,
            cancel_deadline: None,
            skipped_parts: Vec::new(),
            activity: None,
        }
    }

    /// Whether its cancel is on its way.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel_deadline.is_some()
    }
}

/// Numbers the chunks of a session and hands them on.
pub struct Numbered<'a, O> {
    session: &'a str,
    turn: Option<&'a str>,
    seq: &'a mut u64,
    view: View,
    outlet: &'a mut O,
}

impl<O: Outlet> ChunkSink for Numbered<'_, O> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.view.profile.adapt(chunk, |chunk| {
            *self.seq += 1;
            if self.view.chunks {
                let place = Place {
                    session: self.session,
                    turn: self.turn,
                    seq: *self.seq,
                };
                self.outlet.chunk(place, chunk);
            }
        });
    }
}

impl Session {
    #[must_use]
    pub fn new(id: String, cwd: String, mcp_servers: Vec<Value>, view: View) -> Self {
        Self {
            id,
            cwd,
            mcp_servers,
            stage: Stage::Opening {
                call: None,
                waiters: Vec::new(),
                deadline: None,
            },
            seq: 0,
            view,
            state: Map::new(),
            cost: Some(0.0),
            running: None,
            abandoned: None,
        }
    }

    /// Remembers who waits for the session.
    pub fn await_open(&mut self, token: Token) {
        if let Stage::Opening { waiters, .. } = &mut self.stage {
            waiters.push(token);
        }
    }

    /// The agent was asked for the session.
    pub fn opening(&mut self, asked: CallId, until: Instant) {
        if let Stage::Opening { call, deadline, .. } = &mut self.stage {
            *call = Some(asked);
            *deadline = Some(until);
        }
    }

    /// When something of this session is given up, and what.
    #[must_use]
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        match &self.stage {
            Stage::Opening { deadline, .. } => deadline.map(|at| (at, "session/new")),
            Stage::Live { .. } => {
                let running = self.running.as_ref()?;
                running.cancel_deadline.map(|at| (at, "session/cancel"))
            }
        }
    }

    /// Puts off what is to be given up.
    pub fn postpone(&mut self, by: Duration) {
        if let Stage::Opening {
            deadline: Some(deadline),
            ..
        } = &mut self.stage
        {
            *deadline += by;
        }
        if let Some(deadline) = self
            .running
            .as_mut()
            .and_then(|r| r.cancel_deadline.as_mut())
        {
            *deadline += by;
        }
    }

    /// The agent's id of the session, once it is live.
    #[must_use]
    pub fn agent_session(&self) -> Option<&str> {
        match &self.stage {
            Stage::Live { agent_session } => Some(agent_session),
            Stage::Opening { .. } => None,
        }
    }

    /// Where the chunks of turn `turn_id` go, before there is a running turn.
    pub fn sink<'a, O: Outlet>(
        &'a mut self,
        turn_id: Option<&'a str>,
        outlet: &'a mut O,
    ) -> Numbered<'a, O> {
        Numbered {
            session: &self.id,
            turn: turn_id,
            seq: &mut self.seq,
            view: self.view,
            outlet,
        }
    }

    /// Does `act` to the running turn, then tells the client if another tool runs now.
    pub fn with_turn<O: Outlet>(
        &mut self,
        outlet: &mut O,
        act: impl FnOnce(&mut Turn, &mut Numbered<'_, O>),
    ) {
        let Some(running) = &mut self.running else {
            return;
        };
        let mut sink = Numbered {
            session: &self.id,
            turn: Some(&running.turn_id),
            seq: &mut self.seq,
            view: self.view,
            outlet,
        };
        act(&mut running.turn, &mut sink);
        let now = running.turn.activity();
        let told = running.activity.as_ref();
        if now.map(|a| (a.tool_name, a.description)) != told.map(|(n, d)| (n.as_str(), d.as_str()))
        {
            running.activity = now.map(|a| (a.tool_name.to_owned(), a.description.to_owned()));
            outlet.notify(Notice::Activity(wire::ActivityParams {
                session_id: self.id.clone(),
                activity: running
                    .activity
                    .clone()
                    .map(|(tool_name, description)| wire::Activity {
                        tool_name,
                        description,
                    }),
            }));
        }
    }

    /// Whether the agent may do something here: not after a cancel, until it has taken note of it.
    #[must_use]
    pub fn may_act(&self) -> bool {
        let cancelled = self.running.as_ref().is_some_and(Running::is_cancelled);
        !cancelled && self.abandoned.is_none()
    }

    /// Shows a permission question that was asked and answered outside of any turn.
    pub fn stray_permission(
        &mut self,
        permission: &Permission<'_>,
        decision: &Decision,
        outlet: &mut impl Outlet,
    ) {
        let data = to_raw(&permission_data(permission, Some(decision)));
        let id = format!("{}.{}", self.id, permission.question);
        self.sink(None, outlet).chunk(&Chunk::DataPermission {
            id: &id,
            data: Raw(&data),
        });
    }

    /// Passes on what the agent said outside of any turn.
    pub fn stray(&mut self, raw: &RawValue, outlet: &mut impl Outlet) {
        other(raw, &mut self.sink(None, outlet));
    }

    /// Takes over news of modes, options, commands or title, and tells the client.
    pub fn set_state(&mut self, news: &[(&'static str, &RawValue)], outlet: &mut impl Outlet) {
        merge_state(&mut self.state, news);
        let state = Value::Object(self.state.clone());
        if self.running.is_some() {
            let data = to_raw(&state);
            self.with_turn(outlet, |_, sink| {
                sink.chunk(&Chunk::DataSession {
                    id: "session",
                    data: Raw(&data),
                    transient: true,
                });
            });
        }
        outlet.notify(Notice::SessionState(wire::StateParams {
            session_id: self.id.clone(),
            state,
        }));
    }
}

/// Takes over news of a session's state.
pub fn merge_state(state: &mut Map<String, Value>, news: &[(&'static str, &RawValue)]) {
    for (name, value) in news {
        let value = serde_json::from_str(value.get()).unwrap_or_default();
        state.insert((*name).to_owned(), value);
    }
}
