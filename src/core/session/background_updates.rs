//! Background turns: what an agent reports and does without a prompt.
//!
//! An agent may continue after it has answered a prompt, for example when a background task ends or a
//! subagent reports. Updates that would be part of a message then form a message of their own, with its own
//! turn id and `background_turn` in its metadata. ACP does not report the end of such a turn. It ends before the
//! next prompt, with the agent, or when the agent has been quiet for a while and no tool runs. If the agent
//! does report the end, a prompt that arrives meanwhile waits. Late updates of an earlier tool call form a
//! background turn beside the prompt's turn.

use super::{BackgroundTurn, EndedMessage, SessionMachine, SessionSink};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::event::{Content, MessagePiece, MessageRole, Original, TurnEnd, Update};
use crate::core::turn::Turn;
use crate::core::view::chunks::{
    ChunkState, ChunkView, notice, other, transient_update, user_message,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// Time without updates after which a background turn ends.
pub const BACKGROUND_QUIET_LIMIT: Duration = Duration::from_secs(10);

impl SessionMachine {
    /// Applies an update that is not part of a prompt's turn.
    pub(super) fn background_update(
        &mut self,
        subagent: Option<&str>,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut Cx<'_>,
    ) {
        if self.output.log().is_append_abandoned() {
            debug!(session = self.id, "cannot store an update outside of turns");
            return;
        }
        let protocol = cx.agent.protocol_name();
        if self.background_turn.is_none() {
            match update {
                Update::Context { .. } if subagent.is_some() => {
                    other(protocol, original, &mut self.output.sink(None, cx.clients));
                    return;
                }
                Update::Context { cost, figures } => {
                    let figures = figures.clone().unwrap_or_else(|| original.fields());
                    self.set_context(&figures, *cost, cx.clients);
                    return;
                }
                Update::Notice => {
                    notice(original, &mut self.output.sink(None, cx.clients));
                    return;
                }
                Update::TransientUpdate => {
                    transient_update(protocol, original, &mut self.output.sink(None, cx.clients));
                    return;
                }
                Update::Other => {
                    other(protocol, original, &mut self.output.sink(None, cx.clients));
                    return;
                }
                Update::Message(MessagePiece {
                    role: MessageRole::User,
                    ..
                }) => {
                    user_message(original, &mut self.output.sink(None, cx.clients));
                    return;
                }
                // An empty text starts no message.
                Update::Message(MessagePiece {
                    content: Content::Text(text),
                    about,
                    ..
                }) if text.is_empty() && about.is_empty() => return,
                Update::Step | Update::TextEnd { provider: None } => return,
                _ => {}
            }
        }
        // Figures and notices do not keep the background turn alive.
        let is_passing = matches!(
            update,
            Update::Context { .. } | Update::Notice | Update::TransientUpdate | Update::Session(_)
        );
        if !is_passing || self.background_turn.is_none() {
            let begins_with = match update {
                Update::Message(piece) => piece.message_id.as_deref(),
                Update::Tool(tool) => Some(tool.id.as_ref()),
                _ => None,
            };
            self.begin_unprompted(begins_with, cx);
        }
        self.with_unprompted(cx.clients, |turn, sink| match subagent {
            None => turn.update(update, original, sink),
            Some(id) => turn.subagent(id, update, original, sink),
        });
    }

    /// Begins a background turn if none is open. `begins_with` is the agent's id of its first message or tool
    /// call.
    pub(super) fn begin_unprompted(&mut self, begins_with: Option<&str>, cx: &mut Cx<'_>) {
        self.used = Some(cx.now);
        if let Some(background_turn) = &mut self.background_turn {
            background_turn.quiet_at = Some(cx.now + BACKGROUND_QUIET_LIMIT);
            return;
        }
        let (turn_id, message_id) = (cx.shared.next_id("turn"), cx.shared.next_id("msg"));
        if cx.agent.connection.is_none() {
            return;
        }
        let mut about = json!({ "sessionId": self.agent_session(), "unprompted": true });
        let last = self.last.as_ref();
        let goes_on = |last: &&EndedMessage| begins_with.is_some_and(|id| last.names.knows(id));
        if let Some(last) = last.filter(goes_on) {
            about["continues"] = last.message_id.as_str().into();
        }
        let names = last.map(|last| Arc::clone(&last.names)).unwrap_or_default();
        let protocol = cx.agent.protocol_name();
        let after_seq = self.output.log().seq();
        let mut sink = self.output.sink(Some(&turn_id), cx.clients);
        let mut chunks = ChunkState::new(protocol);
        let view = &mut chunks.view(&mut sink);
        let turn = Turn::start(message_id, &about, &names, view);
        drop(sink);
        debug!(session = self.id, %turn_id, "background turn begins");
        self.background_turn = Some(Box::new(BackgroundTurn {
            turn,
            chunks,
            turn_id,
            after_seq,
            quiet_at: Some(cx.now + BACKGROUND_QUIET_LIMIT),
            cancelled: false,
        }));
    }

    /// Ends the background turn and its client requests.
    pub fn end_background(&mut self, cx: &mut Cx<'_>) {
        if let Some(turn_id) = self.background_turn.as_ref().map(|u| u.turn_id.clone()) {
            self.cancel_requests_of(&turn_id, cx);
        }
        self.end_unprompted(None, cx);
    }

    /// Handles the agent's start of background work: a prompt that is on its way, or that is to be sent
    /// again, waits meanwhile.
    pub fn background_begins(&mut self, cx: &mut Cx<'_>) {
        // The answered turn receives no more updates.
        if self.running.as_ref().is_some_and(|r| r.ended.is_some()) {
            self.end_answered(cx);
        }
        if let Some(running) = &mut self.running {
            running.waits_for_background = true;
        }
    }

    /// Ends the background turn after its quiet time. If a tool runs or a client request is open, the turn
    /// waits for that.
    pub(super) fn end_quiet_turn(&mut self, cx: &mut Cx<'_>) {
        let Some(background_turn) = &mut self.background_turn else {
            return;
        };
        if background_turn.turn.is_working() || !self.client_requests.is_empty() {
            background_turn.quiet_at = None;
        } else {
            self.end_unprompted(None, cx);
        }
    }

    /// Calls `act` on the background turn, which may be open beside a prompt's turn.
    pub fn with_unprompted(
        &mut self,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        if self.running.is_none() {
            self.with_turn(clients, act);
        } else if let Some(u) = &mut self.background_turn {
            let mut sink = self.output.sink(Some(&u.turn_id), clients);
            act(&mut u.turn, &mut u.chunks.view(&mut sink));
        }
    }

    /// Ends the background turn, if there is one.
    pub fn end_unprompted(&mut self, error: Option<&Error>, cx: &mut Cx<'_>) {
        self.report_open_background_calls(cx);
        self.close_unprompted(error, cx.clients);
    }

    fn report_open_background_calls(&mut self, cx: &mut Cx<'_>) {
        if let Some(turn_id) = self.background_turn.as_ref().map(|u| u.turn_id.clone()) {
            self.report_open_calls(&turn_id, cx);
        }
    }

    /// Like [`Self::end_unprompted`], without judging its open calls.
    pub(super) fn close_unprompted(
        &mut self,
        error: Option<&Error>,
        clients: &mut dyn ClientSinks,
    ) {
        if self.background_turn.is_none() {
            return;
        }
        self.with_unprompted(clients, |turn, sink| match error {
            None => turn.finish_unreported(sink),
            Some(error) => turn.fail(error, sink),
        });
        self.forget_unprompted();
    }

    /// Handles the agent's start of the prompt that waited for the background turn.
    pub fn begin_prompt(&mut self, cx: &mut Cx<'_>) {
        self.end_unprompted(None, cx);
        if let Some(running) = &mut self.running {
            running.waits_for_background = false;
        }
    }

    /// Handles the agent's report that the background turn ended.
    pub fn finish_unprompted(&mut self, end: &TurnEnd, cx: &mut Cx<'_>) {
        self.report_open_background_calls(cx);
        let cancelled = self.background_turn.as_ref().is_some_and(|u| u.cancelled);
        self.with_unprompted(cx.clients, |turn, sink| turn.finish(end, cancelled, sink));
        self.forget_unprompted();
        self.cost = end.cost.or(self.cost);
        self.begin_prompt(cx);
    }

    fn forget_unprompted(&mut self) {
        if let Some(mut over) = self.background_turn.take() {
            self.remember(&mut over.turn, over.cancelled);
        }
    }
}
