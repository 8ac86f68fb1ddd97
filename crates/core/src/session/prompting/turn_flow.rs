//! Turns: sending a prompt, cancelling it, and ending its turn.

use crate::agent::connection::Call;
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::log::{Log, Record};
use crate::profile::Profile;
use crate::retry::{Attempts, Prompt, RetryConsent};
use crate::session::conversation::reports::note_begin;
use crate::session::preamble::Preamble;
use crate::session::prompting::structured_answer::{schema_request, with_request};
use crate::session::transcript::transcript_before;
use crate::session::turns::BackgroundEnd;
use crate::session::{Conversation, Decisions, Prompting, Queued, Running, SessionRequest};
use crate::turn::Turn;
use crate::turn_ending::Ending;
use crate::view::chunks::{ChunkSink as _, ChunkState};
use acpipe_json::{Raw, to_raw};
use acpipe_model::decision::DecisionSource;
use acpipe_model::dialect::{AgentCall, Outgoing};
use acpipe_model::error::{Error, ErrorKind, out_of_order};
use acpipe_model::event::{CallId, StopReason, TurnEnd};
use acpipe_model::idle_timer::IdleTimer;
use acpipe_model::limits::Timeout;
use acpipe_model::prompt_parts::{context_part, is_slash_command, parts_for, prompt_parts};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::UserMessage;
use serde_json::{Map, Value, json};

impl Prompting {
    /// Sends a prompt, which begins its turn.
    ///
    /// The turn is running before the prompt is passed on, so that a panic in between cannot lead to a second
    /// prompt.
    ///
    /// # Errors
    /// The agent cannot take the prompt, or the log cannot be written.
    pub fn begin_turn(
        &mut self,
        queued: Queued,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let (token, turn_id, caller) = (queued.token, queued.turn_id, queued.caller);
        let p = queued.prompt;
        if talk.output.log().is_waiting() {
            // A prompt that cannot be written leaves no record.
            talk.write(cx)?;
        }
        let (_, skipped) = prompt_parts(Some(&p.message.parts))?;
        let message_id = cx.shared.next_id("msg");
        let at = cx.time();
        let late = decisions.late_feedback.clone();
        let message = message_of_prompt(p.message, &p.context, &late, &message_id, talk)?;
        let (parts, _) = parts_for(cx.agent.spec.protocol, &message)?;
        let request = schema_request(&talk.settings, cx.agent.spec.protocol, &message);
        let call = cx.next_call();
        let (agent_session, asked) = (talk.agent_session().map(str::to_owned), talk.asked());
        self.give_transcript(&message, talk, cx)?;
        let (Some(connection), Some(agent_session)) = (&mut cx.agent.connection, agent_session)
        else {
            return Err(out_of_order(
                "no agent is connected; call agent/connect first",
            ));
        };
        let process = connection.process_of(Some(&agent_session), asked);
        let stderr_at = process.map_or(0, |process| process.health.stderr.end());
        let mut lines = Outgoing::default();
        let waits_for_background = connection.is_busy(&agent_session);
        let instructions = cx.agent.definition.instructions.as_deref();
        let sent = with_request(talk.preamble.before(instructions, &parts), request);
        let prompt = AgentCall::prompt(call, &agent_session, &sent, p.degrade);
        connection.prepare(prompt, &mut lines)?;
        // Open client requests of a background turn keep it open beside the prompt's turn.
        if !waits_for_background && talk.output.requests().is_empty() {
            self.end_unprompted(None, decisions, talk, cx);
        }
        let messages_before = talk.output.log().count();
        // The prompt must be known after a crash, so it is written before it is sent.
        talk.output.record(&Record::Prompt {
            at: &at,
            turn_id: &turn_id,
            message: &message,
        });
        if let Err(error) = talk.write(cx) {
            if let Some(connection) = &mut cx.agent.connection {
                let session = &*agent_session;
                connection.tell(AgentCall::WithdrawPrompt { call, session });
            }
            return Err(error);
        }
        talk.output.sync(0);
        talk.begin_terms(&caller, waits_for_background, cx);
        talk.preamble = Preamble::default();
        decisions.late_feedback.clear();
        decisions.approvals.begin_turn();
        let about = json!({ "sessionId": agent_session });
        let earlier = talk.turns.names_for_prompt();
        let protocol = cx.agent.protocol_name();
        let mut chunks = ChunkState::new(protocol);
        talk.output.number_unsent(cx.clients);
        talk.output.set_leader(token.client);
        talk.show_user_message(token.client, &turn_id, &message, cx.clients);
        let after_seq = talk.output.log().seq();
        let turn = Turn::start(
            message_id,
            &about,
            &earlier,
            &mut chunks.view(&mut talk.output.sink(Some(&turn_id), cx.clients)),
        );
        let consent = RetryConsent {
            transient: p.retry,
            after_output: p.retry_after_output,
        };
        let degrade = p.degrade;
        let attempts = Attempts::first(Prompt { message, degrade }, consent);
        let mut running =
            Running::new(turn, chunks, turn_id.clone(), token, call, attempts, cx.now);
        running.waits_for_background = waits_for_background;
        running.skipped_parts.clone_from(&skipped);
        running.waited_before = cx.shared.waited.total();
        running.messages_before = messages_before;
        running.stderr_at = stderr_at;
        running.after_seq = after_seq;
        note_begin(&mut running, cx.shared);
        // The client's own limit has begun with the call.
        running.limit = cx.until(Timeout::Turn).filter(|_| p.timeout_ms.is_none());
        talk.turns.begin(running);
        talk.idle_timer = Some(IdleTimer::begin(cx.now, cx.limits().of(Timeout::Prompt)));
        if let Some(connection) = &mut cx.agent.connection {
            let session = talk.id.clone();
            connection.calls.insert(call, Call::Prompt { session });
            connection.send(lines);
        }
        self.send_first_notices(&turn_id, &skipped, &late, talk, cx.clients);
        // Requests of a background turn are under the terms of the last prompt.
        decisions.judge_again(talk, cx);
        Ok(())
    }

    /// Sends the first chunks of a turn: notices of omitted prompt parts and of late feedback, the receipt of a restore,
    /// and what is to be known of the policy.
    pub fn send_first_notices(
        &mut self,
        turn_id: &str,
        skipped: &[String],
        late: &[String],
        talk: &mut Conversation,
        client: &mut dyn ClientSinks,
    ) {
        let receipt = talk.receipt.take();
        if let Some(running) = talk.turns.prompted_mut() {
            running.attempts.recovery = receipt.as_deref().cloned();
        }
        let mut sink = talk.output.sink(Some(turn_id), client);
        if !skipped.is_empty() {
            let notice = to_raw(&json!({
                "severity": "warning",
                "title": "Parts of the prompt were omitted",
                "description": format!("acpipe sends text, files and sources, not {}", skipped.join(", ")),
            }));
            sink.chunk(&Chunk::DataNotice {
                data: Raw(&notice),
                transient: true,
            });
        }
        if !late.is_empty() {
            let notice = to_raw(&json!({
                "severity": "info",
                "title": "Your messages to earlier answers are sent with this prompt",
                "description": late.join("\n\n"),
            }));
            sink.chunk(&Chunk::DataNotice {
                data: Raw(&notice),
                transient: true,
            });
        }
        if let Some(receipt) = receipt {
            let data = to_raw(&receipt);
            sink.chunk(&Chunk::DataRecovery { data: Raw(&data) });
        }
        drop(sink);
        let output = &mut talk.output;
        talk.terms.show_changed_terms(turn_id, output, client);
        talk.terms.show_asking_warning(turn_id, output, client);
    }

    /// Cancels the running turn, prompted or background, if it is turn `turn_id`. Returns `true` if it is.
    pub fn cancel_running(
        &mut self,
        turn_id: Option<&str>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let agent_session = talk.agent_session().map(str::to_owned);
        let limit = cx.limits().of(Timeout::Cancel);
        let (Some(connection), Some(agent_session)) = (&mut cx.agent.connection, agent_session)
        else {
            return false;
        };
        // An abandoned turn was cancelled already.
        if !talk.turns.is_prompted()
            && talk.abandoned.is_none()
            && let Some(background_turn) = talk.turns.background_mut()
        {
            let meant = turn_id.is_none_or(|t| t == background_turn.turn_id);
            if meant && !background_turn.cancelled {
                background_turn.cancelled = true;
                connection.tell(AgentCall::Cancel(&agent_session));
                decisions.cancel_requests(&DecisionSource::Cancel, talk, cx);
            }
            return meant;
        }
        let Some(running) = talk.turns.prompted_mut() else {
            return false;
        };
        // An ended turn is not cancelled: the agent would apply the cancel to the next one.
        if running.ended.is_some() || turn_id.is_some_and(|t| t != running.turn_id) {
            return false;
        }
        if running.cancel_deadline.is_none() {
            running.cancel_deadline = Some(cx.now + limit.unwrap_or_default());
            connection.tell(AgentCall::Cancel(&agent_session));
            decisions.cancel_requests(&DecisionSource::Cancel, talk, cx);
        }
        true
    }

    pub fn prompt_answered(
        &mut self,
        call: CallId,
        ending: Ending,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if self.was_abandoned(call, decisions, talk, cx) {
            return;
        }
        if matches!(ending, Ending::Answered(_)) {
            cx.requests.push(SessionRequest::TurnCompleted);
        }
        talk.answered(ending, cx);
    }

    pub fn end_turn(
        &mut self,
        ending: Ending,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let running = talk.turns.prompted();
        let Some(turn_id) = running.map(|running| running.turn_id.clone()) else {
            return;
        };
        decisions.cancel_requests_of(&turn_id, talk, cx);
        talk.turns
            .show_terminals(&mut cx.hosting.host, &mut talk.output, cx.clients);
        decisions.report_open_calls(&turn_id, talk, cx);
        let Some(running) = talk.turns.prompted_mut() else {
            return;
        };
        let cancelled = running.is_cancelled();
        // The agent's answer takes precedence over later events.
        let ending = running.ended.take().unwrap_or(ending);
        let ending = match running.timed_out.take() {
            Some(error) => ending.with_error(error),
            None => ending,
        };
        // Some agents answer a cancel with an error, but a requested cancel is not a failure.
        let ending = match ending {
            Ending::Failed(error) if cancelled && error.kind != ErrorKind::Timeout => {
                Ending::Answered(TurnEnd {
                    stop_reason: StopReason::Cancelled,
                    reported: "cancelled".to_owned(),
                    details: Some(to_raw(&json!({
                        "error": error.message,
                    }))),
                    ..TurnEnd::default()
                })
            }
            Ending::Answered(end) if cancelled => Ending::Answered(end.of_cancelled()),
            other => other,
        };
        if let Some(connection) = &mut cx.agent.connection {
            connection.calls.remove(&running.call);
        }
        let has_failed = matches!(ending, Ending::Failed(_)) && !cancelled;
        talk.end_acp_updates(has_failed, cx.clients);
        talk.turns
            .with_turn(&mut talk.output, cx.clients, |turn, sink| match &ending {
                Ending::Answered(end) => turn.finish(end, cancelled, sink),
                Ending::Failed(error) => turn.fail(error, sink),
            });
        match talk
            .output
            .commit((cx.now, &cx.shared.settings.limits), cx.clients)
        {
            Ok(()) => talk.close_turn(&ending, cx),
            Err(error) => talk.not_stored(error, cx),
        }
    }

    /// Ends the background turn and its client requests.
    pub fn end_background(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if let Some(turn_id) = talk.turns.background().map(|turn| turn.turn_id.clone()) {
            decisions.cancel_requests_of(&turn_id, talk, cx);
        }
        self.end_unprompted(None, decisions, talk, cx);
    }

    /// Ends the background turn after its quiet time. If a tool runs or a client request is open, the turn
    /// waits for that.
    pub fn end_quiet_turn(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let Some(background) = talk.turns.background_mut() else {
            return;
        };
        if background.turn.is_working() || !talk.output.requests().is_empty() {
            background.quiet_at = None;
        } else {
            self.end_unprompted(None, decisions, talk, cx);
        }
    }

    pub fn end_unprompted(
        &mut self,
        error: Option<&Error>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let end = error.map_or(BackgroundEnd::Unreported, BackgroundEnd::Failed);
        self.finish_background(end, decisions, talk, cx);
    }

    pub fn finish_background(
        &mut self,
        end: BackgroundEnd<'_>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if let Some(turn_id) = talk.turns.background().map(|turn| turn.turn_id.clone()) {
            decisions.report_open_calls(&turn_id, talk, cx);
        }
        talk.close_background(end, cx.clients);
    }

    /// Handles the agent's start of the prompt that waited for the background turn.
    pub fn begin_prompt(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.end_unprompted(None, decisions, talk, cx);
        set_waiting(talk, false, cx);
    }

    pub fn finish_unprompted(
        &mut self,
        end: &TurnEnd,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.finish_background(BackgroundEnd::Reported(end), decisions, talk, cx);
        talk.turns.note_cost(end.cost);
        self.begin_prompt(decisions, talk, cx);
    }

    /// Passes the stored conversation to an agent that does not remember it. The message of the prompt is not
    /// stored yet.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn give_transcript(
        &mut self,
        message: &Value,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let limit = cx.agent.spec.backend.history;
        let agent_session = talk.agent_session().map(str::to_owned);
        let (Some(connection), Some(agent_session)) = (&mut cx.agent.connection, agent_session)
        else {
            return Ok(());
        };
        if connection.facts().takes_transcript {
            let transcript = transcript_before(&mut talk.output, message, limit)?;
            connection.tell(AgentCall::Transcript {
                session: &agent_session,
                transcript,
            });
        }
        Ok(())
    }
}

/// Notes whether the running prompt waits for work of the turn before, for which the terms of that turn hold, too.
pub fn set_waiting(talk: &mut Conversation, waits: bool, cx: &mut Cx<'_>) {
    let Some(running) = talk.turns.prompted_mut() else {
        return;
    };
    running.waits_for_background = waits;
    if talk.terms.set_waiting(waits, cx) {
        talk.recheck_asking(cx);
        let turn = talk.turns.id().map(str::to_owned);
        talk.terms
            .show(turn.as_deref(), &mut talk.output, cx.clients);
    }
}

/// Returns `true` if the log has another message under the id of this one, as after an edit.
fn is_other_stored(log: &Log, message: &Value) -> Result<bool, Error> {
    let place = message["id"].as_str().and_then(|id| log.position(id));
    let Some(place) = place else {
        return Ok(false);
    };
    let stored = log.message(place, Profile::V7)?;
    Ok(stored.is_some_and(|stored| stored["parts"] != message["parts"]))
}

/// Returns the message of a prompt as it is sent and stored: with the context and the late feedback of the user.
fn message_of_prompt(
    mut message: UserMessage,
    context: &Map<String, Value>,
    late: &[String],
    answer_id: &str,
    talk: &Conversation,
) -> Result<Value, Error> {
    let first = message.parts.first().and_then(|part| part["text"].as_str());
    // Otherwise the agent would not know the command.
    let is_command = first.is_some_and(is_slash_command);
    let late_parts = late
        .iter()
        .map(|words| json!({ "type": "text", "text": words }));
    let added = late_parts.chain(context_part(context, is_command));
    let place = usize::from(is_command);
    message
        .parts
        .splice(place..place, added.collect::<Vec<_>>());
    let user_id = || answer_id.replacen("msg", "user", 1);
    let mut message = message.into_ui_message(user_id);
    if is_other_stored(talk.output.log(), &message)? {
        // The answers that are stored belong to the earlier message.
        message["id"] = user_id().into();
    }
    Ok(message)
}
