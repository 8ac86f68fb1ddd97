//! Answers that must match an output schema: the request for one, its check, and its one repair.

use crate::cx::Cx;
use crate::output_schema::{OutputSchema, Violation, first_request, json_in, mismatch};
use crate::retry::{Forgotten, printed_failure};
use crate::session::failures::is_command;
use crate::session::settings::SessionSettings;
use crate::session::turns::Running;
use crate::session::{Conversation, Decisions, Prompting};
use crate::turn_ending::Ending;
use crate::view::chunks::ChunkSink as _;
use acpipe_dialects::traits;
use acpipe_json::{Raw, to_raw, value};
use acpipe_model::cause::cause;
use acpipe_model::dialect::{AgentText, PromptPart, TextMeaning};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{StopReason, TurnEnd};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Protocol;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use tracing::info;

/// Returns the request for an answer that matches the output schema, as the last part of a prompt. `None`
/// without a schema, for a command of the agent, and for an agent that was given the schema.
pub fn schema_request(
    settings: &SessionSettings,
    protocol: Protocol,
    message: &Value,
) -> Option<String> {
    let schema = settings.options().output_schema.as_ref()?;
    let is_needed = !traits(protocol).takes_output_schema && !is_command(message, settings.state());
    is_needed.then(|| first_request(schema))
}

impl Prompting {
    /// Ends an answered turn, or sends its prompt again.
    pub fn end_answered(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let ending = talk.turns.prompted_mut().and_then(|r| r.ended.take());
        if let Some(ending) = ending {
            let ending = self.find_failure(ending, talk, cx);
            let ending = self.try_again(ending, decisions, talk, cx);
            if let Some(ending) =
                ending.and_then(|ending| self.check_answer(ending, decisions, talk, cx))
            {
                self.end_turn(ending, decisions, talk, cx);
            }
        }
    }

    /// Adds the error that an agent's answer to a prompt does not report: the agent reported a failure
    /// separately, ended the turn with a stop reason such as `error`, or produced no output.
    pub fn find_failure(&self, ending: Ending, talk: &Conversation, cx: &Cx<'_>) -> Ending {
        let Ending::Answered(end) = &ending else {
            return ending;
        };
        let Some(running) = talk.turns.prompted().filter(|r| !r.is_cancelled()) else {
            return ending;
        };
        if end.error.is_some() || end.stop_reason == StopReason::Cancelled {
            return ending;
        }
        let error = self
            .reported_failure(running, end, talk, cx)
            .or_else(|| printed_failure(running.attempts.said(&running.turn), end))
            .or_else(|| self.empty_turn(running, end, talk, cx));
        match error {
            Some(error) => ending.with_error(error),
            None => ending,
        }
    }

    /// Returns the failure that the agent reported in the turn. The text after the report is the reason.
    pub fn reported_failure(
        &self,
        running: &Running,
        end: &TurnEnd,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Option<Error> {
        let said = running.turn.failure_text(end)?;
        if said.is_empty() {
            let message = "the agent reported a failed turn without a reason";
            let error = Error::new(ErrorKind::Session, message);
            return Some(self.with_stderr(error, running, talk, cx));
        }
        let connection = cx.agent.connection.as_ref()?;
        match connection.meaning(AgentText::Error(said)) {
            TextMeaning::Error(error) => Some(error),
            _ => None,
        }
    }

    pub fn empty_turn(
        &self,
        running: &Running,
        end: &TurnEnd,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Option<Error> {
        let silent = end.stop_reason == StopReason::EndTurn
            && end.structured_output.is_none()
            && !running.turn.has_output();
        if !silent
            || end.of_command
            || is_command(&running.attempts.prompt.message, talk.settings.state())
        {
            return None;
        }
        let error = Error::new(
            ErrorKind::EmptyTurn,
            "The agent ended its turn without any output.",
        );
        Some(self.with_stderr(error, running, talk, cx))
    }

    /// Adds the agent's stderr of the turn to an error, and a line that looks like the cause to its message.
    pub fn with_stderr(
        &self,
        mut error: Error,
        running: &Running,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Error {
        let connection = cx.agent.connection.as_ref();
        let process = connection.and_then(|c| c.process_of(talk.agent_session(), talk.asked()));
        let secrets = &cx.shared.settings.secrets;
        let stderr = process.map(|p| p.health.stderr_since(running.stderr_at, secrets));
        let stderr = stderr.unwrap_or_default();
        if stderr.trim().is_empty() {
            return error;
        }
        if let Some(line) = cause(&stderr) {
            let message = error.message.trim_end_matches('.');
            error.message = format!("{message}; stderr: {line}");
        }
        error.with_end("stderr", &stderr)
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
