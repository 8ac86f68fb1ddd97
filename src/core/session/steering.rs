//! Messages of the user that are sent into the running turn.

use super::{Running, SessionMachine};
use crate::core::cx::Cx;
use crate::core::dialect::AgentCall;
use crate::core::error::{Error, out_of_order};
use crate::core::prompt_parts::{parts_for, prompt_parts};
use crate::core::terms::CallerTerms;
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire::{SteerParams, SteerResult};
use serde_json::json;

impl SessionMachine {
    /// Sends a message into the running turn, and shows it in the turn's message.
    ///
    /// # Errors
    /// `outOfOrder` if no turn runs, another one runs, or the agent takes no messages during a turn;
    /// `invalidParams` if the agent does not accept a part.
    pub fn steer(
        &mut self,
        p: SteerParams,
        caller: Option<&CallerTerms>,
        cx: &mut Cx<'_>,
    ) -> Result<SteerResult, Error> {
        let (_, skipped_parts) = prompt_parts(Some(&p.message.parts))?;
        let message = p.message.into_ui_message(|| cx.shared.next_id("user"));
        let (parts, _) = parts_for(cx.agent.spec.protocol, &message)?;
        let turn_id = self.steered_turn(p.turn_id.as_deref())?;
        let takes = cx.agent.ready().is_some_and(|info| info.capabilities.steer);
        let (true, Some(agent_session), Some(connection)) =
            (takes, self.talk.agent_session(), &mut cx.agent.connection)
        else {
            return Err(out_of_order(
                "the agent takes no messages during a turn; call session/prompt, which queues the message, or \
                 session/cancel first",
            ));
        };
        connection.call(AgentCall::Steer {
            session: agent_session,
            parts: &parts,
            degrade: p.degrade,
        })?;
        self.talk.add_terms(caller, cx);
        let message_id = message["id"].as_str().unwrap_or_default().to_owned();
        let data = to_raw(&json!({
            "messageId": message_id, "message": message, "steering": true,
        }));
        self.talk
            .turns
            .with_turn(&mut self.talk.output, cx.clients, |turn, sink| {
                turn.end_text(sink);
                sink.chunk(&Chunk::DataUserMessage { data: Raw(&data) });
            });
        Ok(SteerResult {
            turn_id,
            message_id,
            skipped_parts,
        })
    }

    /// Returns the id of the running turn, if the agent works on its prompt.
    fn steered_turn(&self, wanted: Option<&str>) -> Result<String, Error> {
        let id = &self.talk.id;
        let takes = |running: &&Running| {
            !running.is_cancelled()
                && running.ended.is_none()
                && !running.waits_for_background
                && running.attempts.pause.is_none()
        };
        let Some(running) = self.talk.turns.prompted().filter(takes) else {
            let message = format!(
                "session {id:?} has no running turn to send a message into; call session/prompt"
            );
            return Err(out_of_order(&message));
        };
        match wanted.filter(|wanted| *wanted != running.turn_id) {
            None => Ok(running.turn_id.clone()),
            Some(wanted) => {
                let message =
                    format!("turn {wanted:?} of session {id:?} does not run; call session/prompt");
                Err(out_of_order(&message).with("turnId", running.turn_id.as_str()))
            }
        }
    }
}
