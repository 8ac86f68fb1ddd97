//! Prompt retries within a turn: after a transient error, and in a new session that replaces a restored one
//! the agent turns out not to have.

use crate::agent::STOPPING;
use crate::agent::connection::Call;
use crate::cx::Cx;
use crate::retry::{MAX_ATTEMPTS, Pause, RETRY_PAUSE, RetryDecision};
use crate::session::one_shot::attempt_notice;
use crate::session::prompting::structured_answer::{schema_request, with_request};
use crate::session::prompting::turn_flow::set_waiting;
use crate::session::restore::{ListPage, PAGES};
use crate::session::{Conversation, Decisions, Prompting, SessionRequest, Stage};
use crate::turn::{TurnEvent, TurnView as _};
use crate::turn_ending::Ending;
use crate::view::chunks::ChunkSink as _;
use acpipe_dialects::traits;
use acpipe_json::{Raw, to_raw};
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind, out_of_order};
use acpipe_model::event::{StopReason, TurnEnd};
use acpipe_model::idle_timer::IdleTimer;
use acpipe_model::limits::Timeout;
use acpipe_model::prompt_parts::parts_for;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Protocol;
use serde_json::json;
use std::time::{Duration, Instant};
use tracing::{debug, info};

impl Prompting {
    /// Handles the answer to a prompt. Sends the prompt again if that may help; otherwise returns the outcome
    /// of the turn.
    pub fn try_again(
        &mut self,
        ending: Ending,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Option<Ending> {
        // Nothing is sent to an agent that is being stopped.
        let Some(info) = cx.agent.ready() else {
            return Some(ending);
        };
        let can_list = info.capabilities.list;
        let Some(running) = talk.turns.prompted_mut().filter(|r| !r.is_cancelled()) else {
            return Some(ending);
        };
        let attempts = &mut running.attempts;
        // An attempt that produced only its own error does not prove that the agent has the session.
        let is_silent = !running.turn.has_begun()
            || (attempts.sent > 1 && !attempts.had_output() && !running.turn.has_output());
        let doubtful = self.restored_by.is_some() && is_silent;
        let ending = match ending {
            Ending::Failed(error)
            | Ending::Answered(TurnEnd {
                error: Some(error), ..
            }) if doubtful
                && error.kind == ErrorKind::SessionNotFound
                && attempts.sent < MAX_ATTEMPTS =>
            {
                self.replace_stale(&error, talk, cx);
                return None;
            }
            Ending::Answered(end)
                if doubtful
                    && can_list
                    && end.stop_reason == StopReason::Refusal
                    && attempts.sent < MAX_ATTEMPTS =>
            {
                self.look_up(end, (0, None), talk, cx);
                return None;
            }
            other => other,
        };
        if let Some(pause) = self.pause_after_answer(&ending, cx.agent.spec.protocol) {
            self.pause_for_attempt(&ending, pause, decisions, talk, cx);
            return None;
        }
        let running = talk.turns.prompted_mut()?;
        let attempts = &mut running.attempts;
        let (class, error, ending) = match attempts.judge(&running.turn, ending, cx.now) {
            RetryDecision::Ends(ending) => return Some(ending),
            RetryDecision::Retry(class, error, ending) => (class, error, ending),
        };
        let id = &talk.id;
        info!(session = id, class, "retrying the prompt");
        debug!(session = id, %error, "reason for the retry");
        let seconds = RETRY_PAUSE.as_secs();
        let notice = to_raw(&json!({
            "severity": "warning",
            "title": format!("The AI service failed ({class}); retrying in {seconds} s"),
            "description": error.message,
        }));
        decisions.report_open_calls_of_attempt(talk, cx);
        talk.turns
            .with_turn(&mut talk.output, cx.clients, |turn, sink| {
                if let Ending::Answered(end) = &ending {
                    turn.account(end);
                }
                turn.end_attempt(sink);
                sink.chunk(&Chunk::DataNotice {
                    data: Raw(&notice),
                    transient: true,
                });
            });
        None
    }

    /// Pauses the turn after a malformed answer, until the prompt is sent again.
    pub fn pause_for_attempt(
        &mut self,
        ending: &Ending,
        pause: Duration,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if let Some(running) = talk.turns.prompted_mut() {
            let until = cx.now + pause;
            running.attempts.pause = Some(Pause::Transient { until });
        }
        let notice = ending.error().map(|error| attempt_notice(error, pause));
        decisions.report_open_calls_of_attempt(talk, cx);
        talk.turns
            .with_turn(&mut talk.output, cx.clients, |turn, sink| {
                if let Ending::Answered(end) = ending {
                    turn.account(end);
                }
                turn.end_attempt(sink);
                if let Some(notice) = &notice {
                    sink.chunk(&Chunk::DataNotice {
                        data: Raw(notice),
                        transient: true,
                    });
                }
            });
    }

    /// Sends the prompt of the running turn again, or the message that has its answer corrected.
    pub fn send_again(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let agent_session = talk.agent_session().map(str::to_owned);
        let call = cx.next_call();
        let limit = cx.limits().of(Timeout::Prompt);
        let protocol = cx.agent.spec.protocol;
        let running = talk.turns.prompted().filter(|r| !r.attempts.is_repair());
        let request =
            running.and_then(|r| schema_request(&talk.settings, protocol, r.attempts.message()));
        let (Some(running), Some(connection), Some(agent_session)) = (
            talk.turns.prompted_mut(),
            &mut cx.agent.connection,
            agent_session,
        ) else {
            self.end_turn(Ending::Failed(out_of_order(STOPPING)), decisions, talk, cx);
            return;
        };
        let degrade = running.attempts.prompt.degrade;
        // The parts were valid when the prompt was sent first.
        let (parts, _) = parts_for(protocol, running.attempts.message()).unwrap_or_default();
        let instructions = cx.agent.definition.instructions.as_deref();
        let preamble = std::mem::take(&mut talk.preamble);
        let parts = with_request(preamble.before(instructions, &parts), request);
        let waits = connection.is_busy(&agent_session);
        let prompt = AgentCall::prompt(call, &agent_session, &parts, degrade);
        if let Err(error) = connection.call(prompt) {
            self.end_turn(Ending::Failed(error), decisions, talk, cx);
            return;
        }
        running.call = call;
        running.attempts.next(&running.turn);
        running.turn.begin_attempt();
        talk.idle_timer = Some(IdleTimer::begin(cx.now, limit));
        let session = talk.id.clone();
        connection.calls.insert(call, Call::Prompt { session });
        set_waiting(talk, waits, cx);
    }

    /// Ends the pause of the turn: sends its prompt again, or ends it with the agent's refusal.
    pub fn end_pause(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let running = talk.turns.prompted_mut();
        match running.and_then(|running| running.attempts.pause.take()) {
            Some(Pause::Lookup { refusal, .. }) => {
                self.end_turn(Ending::Answered(refusal), decisions, talk, cx);
            }
            Some(Pause::Transient { .. } | Pause::Stale(_)) => self.send_again(decisions, talk, cx),
            None => {}
        }
    }

    /// Ends a turn whose prompt the agent does not have, on the client's cancel. Returns `true` if there was
    /// one.
    pub fn cancel_pause(
        &mut self,
        turn_id: Option<&str>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let meant = |turn: &str| turn_id.is_none_or(|wanted| wanted == turn);
        let running = talk.turns.prompted_mut();
        let Some(running) = running.filter(|r| r.attempts.pause.is_some() && meant(&r.turn_id))
        else {
            return false;
        };
        running.cancel_deadline = Some(cx.now);
        let end = TurnEnd {
            stop_reason: StopReason::Cancelled,
            reported: "cancelled".to_owned(),
            ..TurnEnd::default()
        };
        self.end_turn(Ending::Answered(end), decisions, talk, cx);
        true
    }

    /// Requests a page of the agent's session list, because the agent refused a prompt in a restored session.
    /// Without a cursor it is the first page.
    pub fn look_up(
        &mut self,
        refusal: TurnEnd,
        (pages, cursor): (u32, Option<&str>),
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let call = cx.next_call();
        let limit = cx.limits().of(Timeout::List);
        let Some(connection) = &mut cx.agent.connection else {
            return;
        };
        let session = talk.id.clone();
        connection.calls.insert(call, Call::LookUp { session });
        let cwd = Some(talk.cwd.as_str());
        connection.tell(AgentCall::List { call, cwd, cursor });
        if let Some(running) = talk.turns.prompted_mut() {
            running.call = call;
            running.attempts.pause = Some(Pause::Lookup {
                refusal,
                pages,
                until: cx.now + limit.unwrap_or_default(),
            });
        }
    }

    /// Handles a page of the agent's session list. Only a complete list without the session proves that the
    /// agent refused the prompt because it lacks the session.
    pub fn looked_up(
        &mut self,
        page: ListPage<'_>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let agent_session = talk.agent_session().map(str::to_owned);
        let Some(running) = talk.turns.prompted_mut() else {
            return;
        };
        let Some(Pause::Lookup { refusal, pages, .. }) = running.attempts.pause.take() else {
            return;
        };
        let pages = pages + 1;
        let silent = !running.turn.has_begun();
        match (page, agent_session) {
            (Some((ids, next)), Some(own)) if silent && !ids.contains(&own) => match next {
                Some(cursor) if pages < PAGES => {
                    self.look_up(refusal, (pages, Some(cursor)), talk, cx);
                }
                Some(_) => self.end_turn(Ending::Answered(refusal), decisions, talk, cx),
                None => {
                    let message = "the agent refused the prompt, and its list of sessions does not contain the session";
                    self.replace_stale(&Error::new(ErrorKind::SessionNotFound, message), talk, cx);
                }
            },
            _ => self.end_turn(Ending::Answered(refusal), decisions, talk, cx),
        }
    }

    /// Notes that the agent does not have the session, as a prompt has shown: it is to be replaced.
    pub fn replace_stale(&mut self, error: &Error, talk: &mut Conversation, cx: &mut Cx<'_>) {
        if cx.agent.ready().is_some()
            && let Some(running) = talk.turns.prompted_mut()
        {
            running.attempts.pause = Some(Pause::Stale(error.clone()));
        }
        self.gone = Some(Box::new(error.clone()));
    }

    /// Sends the prompt again that failed in the stale session, now that the new one is live. Returns `true`
    /// if there was one.
    pub fn resume_stale_turn(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let agent_session = talk.agent_session().unwrap_or_default().to_owned();
        let Some(running) = talk.turns.prompted_mut() else {
            return false;
        };
        let attempts = &mut running.attempts;
        if !matches!(attempts.pause, Some(Pause::Stale(_))) {
            return false;
        }
        let receipt = talk.receipt.take();
        attempts.recovery = receipt.as_deref().cloned();
        talk.turns
            .with_turn(&mut talk.output, cx.clients, |_, sink| {
                sink.event(&TurnEvent::AgentSessionReplaced {
                    agent_session: &agent_session,
                });
                if let Some(receipt) = receipt {
                    let data = to_raw(&receipt);
                    sink.chunk(&Chunk::DataRecovery { data: Raw(&data) });
                }
            });
        self.send_again(decisions, talk, cx);
        true
    }

    /// Ends the turn that waited for the replacement of a stale session, because no new session could be
    /// opened.
    pub fn fail_stale_turn(
        &mut self,
        error: &Error,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let running = talk.turns.prompted();
        if let Some(Pause::Stale(first)) = running.and_then(|r| r.attempts.pause.as_ref()) {
            let error = error.clone().with("before", first.message.as_str());
            self.end_turn(Ending::Failed(error), decisions, talk, cx);
        }
    }

    pub fn is_one_shot(&self) -> bool {
        self.one_shot.is_some()
    }

    /// When the session is opened for the next attempt; `None` if its call is answered meanwhile.
    pub fn reopen_at(&self, talk: &Conversation) -> Option<Instant> {
        let is_awaited = !talk.queue.is_empty() || self.is_between_sessions(talk);
        self.one_shot.as_ref().filter(|_| is_awaited)?.reopen_at
    }

    pub fn reopen_for_attempt(&mut self, cx: &mut Cx<'_>) {
        if let Some(one_shot) = &mut self.one_shot {
            one_shot.reopen_at = None;
            cx.requests.push(SessionRequest::NextPrompt);
        }
    }

    /// Handles a malformed answer, or the failure of an agent whose process serves one prompt. Returns the pause
    /// before the prompt is sent again, `None` if it is not.
    pub fn pause_after_answer(&mut self, ending: &Ending, protocol: Protocol) -> Option<Duration> {
        // The loss of another agent is handled apart from the answer (`survives_loss`).
        let is_whole = !traits(protocol).remembers;
        let error = ending
            .error()
            .filter(|e| is_whole || e.kind == ErrorKind::Malformed)?;
        self.one_shot.as_mut()?.pause_after(error)
    }

    /// Handles the loss of the agent during the turn. Returns `true` if the turn continues with a new session of
    /// the agent.
    pub fn survives_loss(
        &mut self,
        error: &Error,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let (Some(running), Some(one_shot)) = (talk.turns.prompted_mut(), &mut self.one_shot)
        else {
            return false;
        };
        if running.is_cancelled() || running.timed_out.is_some() {
            return false;
        }
        // The opening of the session for the next attempt fails on its own, if it has begun.
        if matches!(running.attempts.pause, Some(Pause::Stale(_))) {
            return true;
        }
        // A dialect may report the loss as the answer to the prompt first.
        let error = match &running.ended {
            None => error.clone(),
            Some(Ending::Failed(answer)) => answer.clone(),
            Some(Ending::Answered(_)) => return false,
        };
        let Some(pause) = one_shot.pause_after(&error) else {
            return false;
        };
        one_shot.reopen_at = Some(cx.now + pause);
        running.ended = None;
        running.late_output_until = None;
        running.attempts.begin_anew();
        running.attempts.pause = Some(Pause::Stale(error.clone()));
        talk.known.forget(&cx.agent.identity());
        let id = &talk.id;
        info!(session = id, %error, "trying the call again after the loss of its agent");
        talk.turns
            .show_terminals(&mut cx.hosting.host, &mut talk.output, cx.clients);
        let notice = attempt_notice(&error, pause);
        decisions.report_open_calls_of_attempt(talk, cx);
        talk.turns
            .with_turn(&mut talk.output, cx.clients, |turn, sink| {
                turn.end_attempt(sink);
                sink.chunk(&Chunk::DataNotice {
                    data: Raw(&notice),
                    transient: true,
                });
            });
        true
    }

    /// Handles a failed opening of the session. Returns `true` if it is opened again.
    pub fn retries_opening(
        &mut self,
        error: &Error,
        now: Instant,
        talk: &mut Conversation,
    ) -> bool {
        let is_awaited = !talk.queue.is_empty() || self.is_between_sessions(talk);
        let Some(one_shot) = self.one_shot.as_mut().filter(|_| is_awaited) else {
            return false;
        };
        let pause = one_shot.pause_after(error);
        one_shot.reopen_at = pause.map(|pause| now + pause);
        pause.is_some()
    }

    /// Returns `true` if the running turn waits for a new session of the agent.
    pub fn is_between_sessions(&self, talk: &Conversation) -> bool {
        let running = talk.turns.prompted();
        running.is_some_and(|r| matches!(r.attempts.pause, Some(Pause::Stale(_))))
    }

    /// Returns `true` if the session is not opened yet for its prompts because the next attempt has to wait.
    pub fn waits_for_attempt(&self, talk: &Conversation) -> bool {
        self.reopen_at(talk).is_some() && matches!(talk.stage, Stage::Resting)
    }
}
