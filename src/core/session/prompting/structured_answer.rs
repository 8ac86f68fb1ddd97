//! Answers that must match an output schema: the request for one, its check, and its one repair.

use crate::core::cx::Cx;
use crate::core::dialect::PromptPart;
use crate::core::dialects::traits;
use crate::core::event::{StopReason, TurnEnd};
use crate::core::output_schema::{OutputSchema, Violation, first_request, json_in, mismatch};
use crate::core::retry::Forgotten;
use crate::core::session::Conversation;
use crate::core::session::Decisions;
use crate::core::session::Prompting;
use crate::core::session::failures::is_command;
use crate::core::turn_ending::Ending;
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw, value};
use crate::proto::wire::Protocol;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use tracing::info;

impl Prompting {
    /// Returns the request for an answer that matches the output schema, as the last part of a prompt. `None`
    /// without a schema, for a command of the agent, and for an agent that was given the schema.
    pub fn schema_request(
        &self,
        protocol: Protocol,
        message: &Value,
        talk: &Conversation,
    ) -> Option<String> {
        let schema = talk.settings.options().output_schema.as_ref()?;
        let is_needed =
            !traits(protocol).takes_output_schema && !is_command(message, talk.settings.state());
        is_needed.then(|| first_request(schema))
    }

    /// Compares the answer of an attempt with the output schema. Returns the outcome of the turn, or `None` if
    /// the agent is asked to correct its answer.
    pub fn check_answer(
        &mut self,
        ending: Ending,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Option<Ending> {
        let Ending::Answered(mut end) = ending else {
            return Some(ending);
        };
        let violations = self.compare(&mut end, talk);
        if violations.is_empty() {
            return Some(Ending::Answered(end));
        }
        let may_repair = cx.agent.is_serving() && talk.agent_session().is_some();
        let forgotten = self.forgotten(cx.agent.spec.protocol, talk);
        if let Some(running) = talk.turns.prompted_mut().filter(|_| may_repair)
            && running.attempts.begin_repair(&violations, forgotten)
        {
            let id = &talk.id;
            info!(
                session = id,
                "the answer does not match the output schema; asking for a correction"
            );
            let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let notice = to_raw(&json!({
                "severity": "warning",
                "title": "The answer does not match the output schema; the agent is asked to correct it",
                "description": all.join("\n"),
            }));
            decisions.report_open_calls_of_attempt(talk, cx);
            talk.turns
                .with_turn(&mut talk.output, cx.clients, |turn, sink| {
                    turn.account(&end);
                    turn.end_attempt(sink);
                    sink.chunk(&Chunk::DataNotice {
                        data: Raw(&notice),
                        transient: true,
                    });
                });
            self.send_again(decisions, talk, cx);
            return None;
        }
        let running = talk.turns.prompted();
        let said = running.map_or("", |running| running.attempts.said(&running.turn));
        let raw = end.structured_output.as_deref();
        let error = mismatch(&violations, raw.map_or(said, RawValue::get));
        end.error = Some(error);
        Some(Ending::Answered(end))
    }

    /// Returns what an agent without memory needs to correct its answer; `None` for any other agent.
    pub fn forgotten(&self, protocol: Protocol, talk: &Conversation) -> Option<Forgotten> {
        let running = talk.turns.prompted()?;
        let schema = talk.settings.options().output_schema.as_ref()?;
        (!traits(protocol).remembers).then(|| Forgotten {
            schema: first_request(schema),
            answer: running.attempts.said(&running.turn).to_owned(),
        })
    }

    /// Compares an answer with the output schema. An answer in the agent's text becomes the structured answer.
    pub fn compare(&self, end: &mut TurnEnd, talk: &Conversation) -> Vec<Violation> {
        let Some(running) = talk.turns.prompted() else {
            return Vec::new();
        };
        let answers = end.stop_reason == StopReason::EndTurn
            && end.error.is_none()
            && !end.of_command
            && !running.is_cancelled()
            && !is_command(&running.attempts.prompt.message, talk.settings.state());
        let schema = talk
            .settings
            .options()
            .output_schema
            .as_ref()
            .filter(|_| answers);
        // The schema was valid when the session was opened.
        let Some(Ok(schema)) = schema.map(OutputSchema::compile) else {
            return Vec::new();
        };
        let own = end.structured_output.as_deref().map(value);
        let in_text = || json_in(running.attempts.said(&running.turn));
        let Some(answer) = own.or_else(in_text) else {
            return vec![Violation::no_json()];
        };
        if end.structured_output.is_none() {
            end.structured_output = Some(to_raw(&answer));
        }
        schema.violations(&answer)
    }
}

/// Appends the request for a structured answer to the parts of a prompt.
pub fn with_request<'a>(
    parts: Cow<'a, [PromptPart<'a>]>,
    request: Option<String>,
) -> Cow<'a, [PromptPart<'a>]> {
    let Some(request) = request else {
        return parts;
    };
    let mut parts = parts.into_owned();
    parts.push(PromptPart::Text(Cow::Owned(request)));
    Cow::Owned(parts)
}
