//! Background turns: what an agent reports and does without a prompt.
//!
//! An agent may continue after it has answered a prompt, for example when a background task ends or a
//! subagent reports. Updates that would be part of a message then form a message of their own, with its own
//! turn id and `unprompted` in its metadata. ACP does not report the end of such a turn. It ends before the
//! next prompt, with the agent, or when the agent has been quiet for a while and no tool runs. If the agent
//! does report the end, a prompt that arrives meanwhile waits. Late updates of an earlier tool call form a
//! background turn beside the prompt's turn.

use super::{BackgroundTurn, EndedMessage, SessionOutput, SessionSink, SessionTurns};
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::turn::Turn;
use crate::view::chunks::{ChunkState, ChunkView, notice, other, transient_update, user_message};
use acpipe_model::error::Error;
use acpipe_model::event::{Content, MessagePiece, MessageRole, Original, TurnEnd, Update};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// Time without updates after which a background turn ends.
pub const BACKGROUND_QUIET_LIMIT: Duration = Duration::from_secs(10);

/// Returns `true` if an update does not keep a background turn open.
pub fn is_passing(update: &Update<'_>) -> bool {
    matches!(
        update,
        Update::Context { .. } | Update::Notice | Update::TransientUpdate | Update::Session(_)
    )
}

impl SessionTurns {
    /// Shows an update without a turn, if it needs none. Returns `false` if it belongs to a background turn.
    pub fn show_beside_turns(
        &self,
        update: &Update<'_>,
        original: Original<'_>,
        output: &mut SessionOutput,
        cx: &mut Cx<'_>,
    ) -> bool {
        if self.background.is_some() {
            return false;
        }
        let protocol = cx.agent.protocol_name();
        match update {
            Update::Context { .. } | Update::Other => {
                other(protocol, original, &mut output.sink(None, cx.clients));
            }
            Update::Notice => notice(original, &mut output.sink(None, cx.clients)),
            Update::TransientUpdate => {
                transient_update(protocol, original, &mut output.sink(None, cx.clients));
            }
            Update::Message(MessagePiece {
                role: MessageRole::User,
                ..
            }) => user_message(original, &mut output.sink(None, cx.clients)),
            // An empty text starts no message.
            Update::Message(MessagePiece {
                content: Content::Text(text),
                about,
                ..
            }) => return text.is_empty() && about.is_empty(),
            Update::Step | Update::TextEnd { provider: None } => {}
            _ => return false,
        }
        true
    }

    /// Begins a background turn if none is open, else extends the open one. `begins_with` is the agent's id of its first
    /// message or tool call.
    pub fn begin_background(
        &mut self,
        begins_with: Option<&str>,
        agent_session: Option<&str>,
        output: &mut SessionOutput,
        cx: &mut Cx<'_>,
    ) {
        if let Some(background) = &mut self.background {
            background.quiet_at = Some(cx.now + BACKGROUND_QUIET_LIMIT);
            return;
        }
        let (turn_id, message_id) = (cx.shared.next_id("turn"), cx.shared.next_id("msg"));
        if cx.agent.connection.is_none() {
            return;
        }
        let mut about = json!({ "sessionId": agent_session, "unprompted": true });
        let last = self.last.as_ref();
        let goes_on = |last: &&EndedMessage| begins_with.is_some_and(|id| last.names.knows(id));
        if let Some(last) = last.filter(goes_on) {
            about["continues"] = last.message_id.as_str().into();
        }
        let names = last.map(|last| Arc::clone(&last.names)).unwrap_or_default();
        let protocol = cx.agent.protocol_name();
        let after_seq = output.log().seq();
        let mut sink = output.sink(Some(&turn_id), cx.clients);
        let mut chunks = ChunkState::new(protocol);
        let view = &mut chunks.view(&mut sink);
        let turn = Turn::start(message_id, &about, &names, view);
        drop(sink);
        debug!(session = output.session(), %turn_id, "background turn begins");
        self.background = Some(Box::new(BackgroundTurn {
            turn,
            chunks,
            turn_id,
            after_seq,
            quiet_at: Some(cx.now + BACKGROUND_QUIET_LIMIT),
            cancelled: false,
        }));
    }

    /// Calls `act` on the background turn, which may be open beside a prompt's turn.
    pub fn with_background(
        &mut self,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        if self.prompted.is_none() {
            self.with_turn(output, clients, act);
        } else if let Some(background) = &mut self.background {
            let mut sink = output.sink(Some(&background.turn_id), clients);
            act(&mut background.turn, &mut background.chunks.view(&mut sink));
        }
    }

    /// Ends the background turn, if there is one: with the agent's report of its end, with an error, or without both.
    /// Returns its figures of the context.
    pub fn close_background(
        &mut self,
        end: BackgroundEnd<'_>,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) -> Option<Value> {
        let cancelled = self.background.as_ref()?.cancelled;
        self.with_background(output, clients, |turn, sink| match end {
            BackgroundEnd::Unreported => turn.finish_unreported(sink),
            BackgroundEnd::Failed(error) => turn.fail(error, sink),
            BackgroundEnd::Reported(end) => turn.finish(end, cancelled, sink),
        });
        let mut over = self.background.take()?;
        self.remember(&mut over.turn, over.cancelled)
    }
}

#[derive(Debug, Clone, Copy)]
pub enum BackgroundEnd<'a> {
    Unreported,
    Failed(&'a Error),
    Reported(&'a TurnEnd),
}
