//! Runs one turn, from its prompt to the response.

use crate::connection::AgentConnection;
use crate::erased::catch;
use crate::error::{AgentError, FailureKind};
use crate::output::{SharedOutput, TurnResults};
use crate::prompt::Prompt;
use crate::session::{Message, Session};
use crate::sessions::TurnSignals;
use crate::turn::{StopReason, Turn};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::sleep;

/// Turn that is registered with its session.
pub struct StartedTurn {
    session: Arc<Session>,
    signals: TurnSignals,
    output: Arc<SharedOutput>,
    turn: Turn,
}

impl StartedTurn {
    /// Registers the turn of a prompt. `request` is the id of its request.
    ///
    /// # Errors
    /// The prompt is not valid, or its session is not open or runs another turn.
    pub fn start(
        connection: &AgentConnection,
        number: u64,
        request: Value,
        params: &Value,
    ) -> Result<Self, AgentError> {
        let Some(id) = params["sessionId"].as_str() else {
            let message = "`sessionId` must be a string";
            return Err(AgentError::new(FailureKind::InvalidParams, message));
        };
        let prompt = Prompt::of_blocks(&params["prompt"])?;
        let (session, signals) = connection.sessions.start_turn(id, request)?;
        let context = params["_meta"].as_object().cloned().unwrap_or_default();
        let facts = &connection.facts;
        let output = Arc::new(SharedOutput::new(
            connection.client.clone(),
            Arc::clone(&session),
            signals.cancel.clone(),
            facts.keeps_history,
        ));
        let (prompt, facts) = ((prompt, context), Arc::clone(facts));
        let turn = Turn::new(prompt, number, facts, Arc::clone(&output));
        Ok(Self {
            session,
            signals,
            output,
            turn,
        })
    }

    /// Plays the turn, and responds to its prompt.
    pub async fn play(self, connection: Arc<AgentConnection>, request: Box<RawValue>) {
        // Reports the end also if the task is aborted.
        let _ended = self.signals.ended.clone().drop_guard();
        let stopped = self.run(&connection).await;
        let results = self.output.end().await;
        if let Some(answer) = &results.answer {
            let prompt = Message::user(self.turn.prompt().text());
            // Models reject empty messages.
            let answer = (!answer.is_empty()).then(|| Message::agent(answer));
            self.session
                .add_messages([prompt].into_iter().chain(answer));
        }
        connection.sessions.end_turn(self.session.id());
        match stopped {
            Err(error) if error.is_fatal() => {
                // Fails only if another turn has reported one.
                connection.fatal.try_send(error).ok();
            }
            stopped => {
                let result = stopped.map(|reason| result(reason, results));
                connection.client.respond(&request, &result).await;
            }
        }
    }

    /// Runs the agent until the turn ends, or until it is cancelled and the agent did not react in time.
    async fn run(&self, connection: &AgentConnection) -> Result<StopReason, AgentError> {
        let agent = &connection.agent;
        let stopped = async { catch(agent.run(&self.turn)).await.and_then(|result| result) };
        let cancelled = async {
            self.signals.cancel.cancelled().await;
            let interrupt = catch(agent.interrupt(&self.session));
            let grace = sleep(connection.facts.cancel_grace);
            // The grace runs also while the agent handles the cancel. A panic there has been reported by the
            // panic hook, and the turn ends anyway.
            let _ = tokio::join!(interrupt, grace);
        };
        let stopped = tokio::select! {
            biased;
            stopped = stopped => stopped,
            () = cancelled => Ok(StopReason::Cancelled),
        };
        match stopped {
            Err(error) if error.is_fatal() => Err(error),
            // A failure that the cancel caused is not a failure of the turn.
            _ if self.signals.cancel.is_cancelled() => Ok(StopReason::Cancelled),
            stopped => stopped,
        }
    }
}

/// Returns the result of a prompt.
fn result(reason: StopReason, results: TurnResults) -> Value {
    let mut result = json!({ "stopReason": reason.name() });
    if let Some(usage) = results.usage {
        result["usage"] = usage;
    }
    if let Some(output) = results.structured_output {
        result["_meta"] = json!({ "acpipe": { "structuredOutput": output } });
    }
    result
}
