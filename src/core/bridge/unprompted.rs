//! What agents say unasked: to whom it belongs, and the messages it makes.
//!
//! An agent may go on after it has answered a prompt (a task in the background ends, a subagent reports).
//! Whatever would be part of a message then makes a message of its own, with a turn id of its own and
//! `unprompted` in its metadata. With ACP nothing tells its end: it ends before the next prompt, with the agent, or
//! when the agent has been quiet for a while and no tool runs. Where the agent tells it, a prompt that comes
//! meanwhile waits beside it. What comes late while the next prompt runs (an
//! update of an earlier tool call) makes one beside that prompt's.

use super::{Agent, Bridge};
use crate::core::client::Outlet;
use crate::core::event::{Content, MessagePiece, Original, Update, Voice};
use crate::core::session::{Last, Session, Unprompted};
use crate::core::turn::{Turn, notice, other, passing, user_message};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::debug;

/// After how long without news a message that nobody asked for is over.
pub const QUIET_LIMIT: Duration = Duration::from_secs(10);

/// How many subagents of an agent are known by their session ids.
const SUBAGENTS: usize = 4096;

/// Whose words: the session's own, or those of a subagent of it.
pub(super) struct Route {
    /// The client's id of the session.
    pub session: String,
    pub subagent: Option<String>,
}

impl Bridge {
    /// Where the words of an agent's session belong. Subagents have sessions that no client opened, but the
    /// agent announced.
    pub(super) fn route(&self, agent_session: &str) -> Option<Route> {
        if let Some(session) = self.routes.get(agent_session) {
            return Some(Route {
                session: session.clone(),
                subagent: None,
            });
        }
        Some(Route {
            session: self.subagents.get(agent_session)?.clone(),
            subagent: Some(agent_session.to_owned()),
        })
    }

    /// Remembers whose subagent an update announces.
    pub(super) fn note_subagent(&mut self, route: &Route, update: &Update<'_>) {
        if let Update::Subagent { id } = update
            && self.subagents.len() < SUBAGENTS
            && !self.routes.contains_key(id.as_ref())
        {
            let owner = || route.session.clone();
            self.subagents
                .entry(id.clone().into_owned())
                .or_insert_with(owner);
        }
    }

    /// Takes an update of a session in which no prompt runs, or that goes on with what was said before it.
    pub(super) fn unasked(
        &mut self,
        route: &Route,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let dialect = self.agent.as_ref().map_or("", |a| a.dialect.name());
        let Some(session) = self.sessions.get_mut(&route.session) else {
            return;
        };
        if session.unprompted.is_none() {
            match update {
                Update::Context { .. } if route.subagent.is_some() => {
                    other(dialect, original, &mut session.sink(None, outlet));
                    return;
                }
                Update::Context { cost, figures } => {
                    let figures = figures.clone().unwrap_or_else(|| original.fields());
                    session.set_context(&figures, *cost, outlet);
                    return;
                }
                Update::Notice => {
                    notice(original, &mut session.sink(None, outlet));
                    return;
                }
                Update::Passing => {
                    passing(dialect, original, &mut session.sink(None, outlet));
                    return;
                }
                Update::Other => {
                    other(dialect, original, &mut session.sink(None, outlet));
                    return;
                }
                Update::Message(MessagePiece {
                    voice: Voice::User, ..
                }) => {
                    user_message(original, &mut session.sink(None, outlet));
                    return;
                }
                // Nothing is said: no reason for a message.
                Update::Message(MessagePiece {
                    content: Content::Text(text),
                    about,
                    ..
                }) if text.is_empty() && about.is_empty() => return,
                Update::Step | Update::WordsEnd { provider: None } => return,
                _ => {}
            }
        }
        // Figures and notices are no sign that the agent goes on.
        let is_passing = matches!(
            update,
            Update::Context { .. } | Update::Notice | Update::Passing | Update::Session(_)
        );
        if !is_passing || session.unprompted.is_none() {
            let begins_with = match update {
                Update::Message(piece) => piece.message_id.as_deref(),
                Update::Tool(tool) => Some(tool.id.as_ref()),
                _ => None,
            };
            self.begin_unprompted(&route.session, begins_with, now, outlet);
        }
        if let Some(session) = self.sessions.get_mut(&route.session) {
            let subagent = route.subagent.as_deref();
            session.with_unprompted(outlet, |turn, sink| match subagent {
                None => turn.update(update, original, sink),
                Some(id) => turn.subagent(id, update, original, sink),
            });
        }
    }

    /// Begins a message that nobody asked for, if none is open; `begins_with` is the agent's id of the
    /// message or tool call that it begins with.
    pub(super) fn begin_unprompted(
        &mut self,
        id: &str,
        begins_with: Option<&str>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.used = Some(now);
        if let Some(unprompted) = &mut session.unprompted {
            unprompted.quiet_at = Some(now + QUIET_LIMIT);
            return;
        }
        let (turn_id, message_id) = (self.next_id("turn"), self.next_id("msg"));
        let (Some(agent), Some(session)) = (&self.agent, self.sessions.get_mut(id)) else {
            return;
        };
        let mut about = json!({ "sessionId": session.agent_session(), "unprompted": true });
        let last = session.last.as_ref();
        let goes_on = |last: &&Last| begins_with.is_some_and(|id| last.names.knows(id));
        if let Some(last) = last.filter(goes_on) {
            about["continues"] = last.message_id.as_str().into();
        }
        let names = last.map(|last| Arc::clone(&last.names)).unwrap_or_default();
        let dialect = agent.dialect.name();
        let mut sink = session.sink(Some(&turn_id), outlet);
        let turn = Turn::start(message_id, dialect, &about, &names, &mut sink);
        drop(sink);
        debug!(session = id, %turn_id, "the agent speaks unasked");
        session.unprompted = Some(Unprompted {
            turn,
            turn_id,
            quiet_at: Some(now + QUIET_LIMIT),
            cancelled: false,
        });
    }

    /// Ends the message that nobody asked for, and what was asked in it.
    pub(super) fn end_unprompted(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let unprompted = self.sessions.get(id).and_then(|s| s.unprompted.as_ref());
        if let Some(turn_id) = unprompted.map(|u| u.turn_id.clone()) {
            self.end_asks_of(id, &turn_id, now, outlet);
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.end_unprompted(None, outlet);
        }
    }

    /// The agent says that it begins with something unasked: a prompt that is on its way to it, or that is to be
    /// sent again, waits meanwhile.
    pub(super) fn unprompted_begins(
        &mut self,
        agent_session: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.end_before(agent_session, now, outlet);
        let id = self.routes.get(agent_session);
        let session = id.and_then(|id| self.sessions.get_mut(id));
        if let Some(running) = session.and_then(|session| session.running.as_mut()) {
            running.waits = true;
        }
    }

    /// Nothing more comes of the turn that was answered: what follows in the same breath is not part of it.
    fn end_before(&mut self, agent_session: &str, now: Instant, outlet: &mut impl Outlet) {
        let id = self.routes.get(agent_session);
        let at = id.and_then(|id| self.ended.iter().position(|(ended, _)| ended == id));
        if let Some(at) = at {
            let (id, _) = self.ended.remove(at);
            self.end_answered(&id, now, outlet);
        }
    }

    /// Ends a turn that was answered, or sends its prompt again.
    pub(super) fn end_answered(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let running = self.sessions.get_mut(id).and_then(|s| s.running.as_mut());
        if let Some(ending) = running.and_then(|r| r.ended.take()) {
            let ending = self.find_failure(id, ending);
            if let Some(ending) = self.try_again(id, ending, now, outlet) {
                self.end_turn(id, ending, now, outlet);
            }
        }
    }

    /// Whether the agent may still do something: not while it is being stopped.
    pub(super) fn is_serving(&self) -> bool {
        !self.agent.as_ref().is_none_or(Agent::is_stopping)
    }
}

impl Session {
    /// Ends a message that nobody asked for if its time came; one whose tool runs waits for it.
    pub(super) fn quieten(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(unprompted) = &mut self.unprompted else {
            return;
        };
        if unprompted.quiet_at.is_none_or(|at| at > now) {
            return;
        }
        if unprompted.turn.is_working() || !self.asks.is_empty() {
            unprompted.quiet_at = None;
        } else {
            self.end_unprompted(None, outlet);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::bridge::tests_settings::settings;
    use crate::core::bridge::{AgentId, AgentInput, Bridge, Effect};
    use crate::core::client::{Command, Notice, Outlet, Place, Reply, Token};
    use crate::core::error::Error;
    use crate::core::store::Volatile;
    use crate::proto::chunk::Chunk;
    use crate::proto::frame::Batch;
    use crate::proto::wire::{EnsureParams, Protocol};
    use std::time::{Duration, Instant};

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Outlet for Seen {
        fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
            answer.unwrap();
        }
        fn chunk(&mut self, _: Place<'_>, _: &Chunk<'_>, json: &[u8]) {
            let chunk: serde_json::Value = serde_json::from_slice(json).unwrap();
            self.0.push(chunk["type"].as_str().unwrap().to_owned());
        }
        fn stored_chunk(&mut self, _: Place<'_>, _: &serde_json::Value) {}
        fn retract(&mut self, _: &str, _: u64) {}
        fn notify(&mut self, _: Notice) {}
    }

    fn say(bridge: &mut Bridge, line: &str, now: Instant, seen: &mut Seen) {
        let lines = Batch::Lines(format!("{line}\n").into());
        let rest = bridge.agent(AgentId(1), AgentInput::Batch(lines), now, seen);
        assert!(rest.is_none());
        bridge.drained(true, now, seen);
    }

    #[test]
    fn a_message_that_nobody_asked_for_ends_when_the_agent_is_quiet_and_no_tool_runs() {
        let (mut now, seen) = (Instant::now(), &mut Seen::default());
        let mut bridge = Bridge::new(settings(now), Box::new(Volatile));
        bridge.command(
            Token(1),
            Command::Initialize(serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap()),
            now,
            seen,
        );
        let ensure = Command::Ensure(EnsureParams::default());
        bridge.command(Token(2), ensure, now, seen);
        assert!(matches!(bridge.effects(now)[..], [Effect::Spawn(..), ..]));
        let answer = |id, result| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        say(
            &mut bridge,
            &answer(1, r#"{"protocolVersion":1}"#),
            now,
            seen,
        );
        say(&mut bridge, &answer(2, r#"{"sessionId":"a"}"#), now, seen);
        let update = |update: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"a","update":{update}}}}}"#
            )
        };
        let text = update(
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#,
        );
        let tool = |status| {
            update(&format!(
                r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"{status}"}}"#
            ))
        };
        assert!(bridge.deadline().is_none());
        say(&mut bridge, &text, now, seen);
        say(&mut bridge, &tool("in_progress"), now, seen);
        let (at, _) = bridge.deadline().unwrap();
        assert_eq!(at, now + super::QUIET_LIMIT);

        // A tool that runs is waited for, however long.
        now = at;
        bridge.tick(now, seen);
        assert!(bridge.deadline().is_none());
        now += Duration::from_secs(3600);
        say(&mut bridge, &tool("completed"), now, seen);
        let (at, _) = bridge.deadline().unwrap();
        bridge.tick(at, seen);
        assert!(bridge.deadline().is_none());
        let kinds: Vec<&str> = seen.0.iter().map(String::as_str).collect();
        assert_eq!(
            kinds,
            [
                "start",
                "start-step",
                "text-start",
                "text-delta",
                "text-end",
                "tool-input-available",
                "tool-output-available",
                "finish-step",
                "finish"
            ]
        );
    }

    /// The words of each turn.
    #[derive(Default)]
    struct Words(Vec<(String, String)>);

    impl Outlet for Words {
        fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
            answer.unwrap();
        }
        fn chunk(&mut self, place: Place<'_>, _: &Chunk<'_>, json: &[u8]) {
            let chunk: serde_json::Value = serde_json::from_slice(json).unwrap();
            let said = match chunk["type"].as_str().unwrap() {
                "text-delta" => chunk["delta"].as_str().unwrap().to_owned(),
                kind @ ("start" | "finish") => kind.to_owned(),
                _ => return,
            };
            self.0.push((place.turn.unwrap().to_owned(), said));
        }
        fn stored_chunk(&mut self, _: Place<'_>, _: &serde_json::Value) {}
        fn retract(&mut self, _: &str, _: u64) {}
        fn notify(&mut self, _: Notice) {}
    }

    #[test]
    fn a_prompt_waits_for_what_is_done_unasked_where_its_end_is_told() {
        let (now, seen) = (Instant::now(), &mut Words::default());
        let mut settings = settings(now);
        settings.default_agent.protocol = Protocol::Claude;
        let mut bridge = Bridge::new(settings, Box::new(Volatile));
        let initialize = serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap();
        bridge.command(Token(1), Command::Initialize(initialize), now, seen);
        let ensure = Command::Ensure(EnsureParams::default());
        bridge.command(Token(2), ensure, now, seen);
        bridge.effects(now);
        let mut cli = AgentId(1);
        let mut sent = String::new();
        let mut world = |bridge: &mut Bridge, line: &str, seen: &mut Words| {
            let lines = Batch::Lines(format!("{line}\n").into());
            let input = AgentInput::Batch(lines);
            assert!(bridge.agent(cli, input, now, seen).is_none());
            bridge.drained(true, now, seen);
            for effect in bridge.effects(now) {
                match effect {
                    Effect::Spawn(id, _) => cli = id,
                    Effect::Send(_, bytes) => sent = String::from_utf8(bytes).unwrap(),
                    _ => {}
                }
            }
            sent.clone()
        };
        world(&mut bridge, "2.1.330 (Claude Code)", seen);
        let handshake = r#"{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{}}}"#;
        world(&mut bridge, handshake, seen);
        let text = |id: &str, text: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null}}"#
            )
        };
        let init = r#"{"type":"system","subtype":"init"}"#;
        world(&mut bridge, init, seen);
        world(&mut bridge, &text("m1", "a task ended"), seen);
        let prompt = serde_json::from_str(r#"{"message":"hello","turnId":"mine"}"#).unwrap();
        bridge.command(Token(3), Command::Prompt(prompt), now, seen);
        let frame = world(&mut bridge, r#"{"type":"keep_alive"}"#, seen);
        let frame: serde_json::Value = serde_json::from_str(&frame).unwrap();
        let uuid = frame["uuid"].as_str().unwrap();
        world(&mut bridge, &text("m2", "as I said"), seen);
        let origin = r#"{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"task-notification"}}"#;
        world(&mut bridge, origin, seen);
        let state = |state: &str| {
            format!(r#"{{"type":"command_lifecycle","command_uuid":"{uuid}","state":"{state}"}}"#)
        };
        world(&mut bridge, &state("started"), seen);
        world(&mut bridge, init, seen);
        world(&mut bridge, &text("m3", "hello too"), seen);
        let result = format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"user_message_uuids":["{uuid}"]}}"#
        );
        world(&mut bridge, &result, seen);
        let of = |mine: bool| -> Vec<&str> {
            let words = seen.0.iter().filter(|(turn, _)| (turn == "mine") == mine);
            words.map(|(_, word)| word.as_str()).collect()
        };
        assert_eq!(of(true), ["start", "hello too", "finish"]);
        assert_eq!(of(false), ["start", "a task ended", "as I said", "finish"]);
    }
}
