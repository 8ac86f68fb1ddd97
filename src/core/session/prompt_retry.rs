//! Prompt retries within a turn: after a transient error, and in a new session that replaces a restored one
//! the agent turns out not to have.

use super::SessionMachine;
use super::one_shot::attempt_notice;
use super::restore::{ListPage, PAGES};
use super::structured_answer::with_request;
use crate::core::agent::STOPPING;
use crate::core::agent::connection::Call;
use crate::core::cx::Cx;
use crate::core::dialect::AgentCall;
use crate::core::error::{Error, ErrorKind, out_of_order};
use crate::core::event::{StopReason, TurnEnd};
use crate::core::idle_timer::IdleTimer;
use crate::core::limits::Timeout;
use crate::core::prompt_parts::parts_for;
use crate::core::retry::{MAX_ATTEMPTS, Pause, RETRY_PAUSE, RetryDecision};
use crate::core::turn::{TurnEvent, TurnView as _};
use crate::core::turn_ending::Ending;
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use serde_json::json;
use std::time::Duration;
use tracing::{debug, info};

impl SessionMachine {
    /// Handles the answer to a prompt. Sends the prompt again if that may help; otherwise returns the outcome
    /// of the turn.
    pub(super) fn try_again(&mut self, ending: Ending, cx: &mut Cx<'_>) -> Option<Ending> {
        // Nothing is sent to an agent that is being stopped.
        let Some(info) = cx.agent.ready() else {
            return Some(ending);
        };
        let can_list = info.capabilities.list;
        let Some(running) = self.running.as_mut().filter(|r| !r.is_cancelled()) else {
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
                self.replace_stale(&error, cx);
                return None;
            }
            Ending::Answered(end)
                if doubtful
                    && can_list
                    && end.stop_reason == StopReason::Refusal
                    && attempts.sent < MAX_ATTEMPTS =>
            {
                self.look_up(end, (0, None), cx);
                return None;
            }
            other => other,
        };
        if let Some(pause) = self.pause_after_answer(&ending, cx.agent.spec.protocol) {
            self.pause_for_attempt(&ending, pause, cx);
            return None;
        }
        let running = self.running.as_mut()?;
        let attempts = &mut running.attempts;
        let (class, error, ending) = match attempts.judge(&running.turn, ending, cx.now) {
            RetryDecision::Ends(ending) => return Some(ending),
            RetryDecision::Retry(class, error, ending) => (class, error, ending),
        };
        let id = &self.id;
        info!(session = id, class, "retrying the prompt");
        debug!(session = id, %error, "reason for the retry");
        let seconds = RETRY_PAUSE.as_secs();
        let notice = to_raw(&json!({
            "severity": "warning",
            "title": format!("The AI service failed ({class}); retrying in {seconds} s"),
            "description": error.message,
        }));
        self.report_open_calls_of_attempt(cx);
        self.with_turn(cx.clients, |turn, sink| {
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
    fn pause_for_attempt(&mut self, ending: &Ending, pause: Duration, cx: &mut Cx<'_>) {
        if let Some(running) = &mut self.running {
            let until = cx.now + pause;
            running.attempts.pause = Some(Pause::Transient { until });
        }
        let notice = ending.error().map(|error| attempt_notice(error, pause));
        self.report_open_calls_of_attempt(cx);
        self.with_turn(cx.clients, |turn, sink| {
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
    pub(super) fn send_again(&mut self, cx: &mut Cx<'_>) {
        let agent_session = self.agent_session().map(str::to_owned);
        let call = cx.next_call();
        let limit = cx.limits().of(Timeout::Prompt);
        let protocol = cx.agent.spec.protocol;
        let running = self.running.as_ref().filter(|r| !r.attempts.is_repair());
        let request = running.and_then(|r| self.schema_request(protocol, r.attempts.message()));
        let (Some(running), Some(connection), Some(agent_session)) =
            (&mut self.running, &mut cx.agent.connection, agent_session)
        else {
            self.end_turn(Ending::Failed(out_of_order(STOPPING)), cx);
            return;
        };
        let degrade = running.attempts.prompt.degrade;
        // The parts were valid when the prompt was sent first.
        let (parts, _) = parts_for(protocol, running.attempts.message()).unwrap_or_default();
        let instructions = cx.agent.definition.instructions.as_deref();
        let preamble = std::mem::take(&mut self.preamble);
        let parts = with_request(preamble.before(instructions, &parts), request);
        running.waits_for_background = connection.is_busy(&agent_session);
        let prompt = AgentCall::prompt(call, &agent_session, &parts, degrade);
        if let Err(error) = connection.call(prompt) {
            self.end_turn(Ending::Failed(error), cx);
            return;
        }
        running.call = call;
        running.attempts.next(&running.turn);
        running.turn.begin_attempt();
        self.idle_timer = Some(IdleTimer::begin(cx.now, limit));
        let session = self.id.clone();
        connection.calls.insert(call, Call::Prompt { session });
    }

    /// Ends the pause of the turn: sends its prompt again, or ends it with the agent's refusal.
    pub(super) fn end_pause(&mut self, cx: &mut Cx<'_>) {
        let running = self.running.as_mut();
        match running.and_then(|running| running.attempts.pause.take()) {
            Some(Pause::Lookup { refusal, .. }) => self.end_turn(Ending::Answered(refusal), cx),
            Some(Pause::Transient { .. } | Pause::Stale(_)) => self.send_again(cx),
            None => {}
        }
    }

    /// Ends a turn whose prompt the agent does not have, on the client's cancel. Returns `true` if there was
    /// one.
    pub(super) fn cancel_pause(&mut self, turn_id: Option<&str>, cx: &mut Cx<'_>) -> bool {
        let meant = |turn: &str| turn_id.is_none_or(|wanted| wanted == turn);
        let running = self.running.as_mut();
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
        self.end_turn(Ending::Answered(end), cx);
        true
    }

    /// Requests a page of the agent's session list, because the agent refused a prompt in a restored session.
    /// Without a cursor it is the first page.
    fn look_up(&mut self, refusal: TurnEnd, (pages, cursor): (u32, Option<&str>), cx: &mut Cx<'_>) {
        let call = cx.next_call();
        let limit = cx.limits().of(Timeout::List);
        let Some(connection) = &mut cx.agent.connection else {
            return;
        };
        let session = self.id.clone();
        connection.calls.insert(call, Call::LookUp { session });
        let cwd = Some(self.cwd.as_str());
        connection.tell(AgentCall::List { call, cwd, cursor });
        if let Some(running) = &mut self.running {
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
    pub fn looked_up(&mut self, page: ListPage<'_>, cx: &mut Cx<'_>) {
        let agent_session = self.agent_session().map(str::to_owned);
        let Some(running) = &mut self.running else {
            return;
        };
        let Some(Pause::Lookup { refusal, pages, .. }) = running.attempts.pause.take() else {
            return;
        };
        let pages = pages + 1;
        let silent = !running.turn.has_begun();
        match (page, agent_session) {
            (Some((ids, next)), Some(own)) if silent && !ids.contains(&own) => match next {
                Some(cursor) if pages < PAGES => self.look_up(refusal, (pages, Some(cursor)), cx),
                Some(_) => self.end_turn(Ending::Answered(refusal), cx),
                None => {
                    let message = "the agent refused the prompt, and its list of sessions does not contain the session";
                    self.replace_stale(&Error::new(ErrorKind::SessionNotFound, message), cx);
                }
            },
            _ => self.end_turn(Ending::Answered(refusal), cx),
        }
    }

    /// Replaces a session that the agent does not have, as a prompt has shown.
    fn replace_stale(&mut self, error: &Error, cx: &mut Cx<'_>) {
        if cx.agent.ready().is_some()
            && let Some(running) = &mut self.running
        {
            running.attempts.pause = Some(Pause::Stale(error.clone()));
        }
        self.replace_dead(error, cx);
    }

    /// Sends the prompt again that failed in the stale session, now that the new one is live. Returns `true`
    /// if there was one.
    pub(super) fn resume_stale_turn(&mut self, cx: &mut Cx<'_>) -> bool {
        let agent_session = self.agent_session().unwrap_or_default().to_owned();
        let Some(running) = &mut self.running else {
            return false;
        };
        let attempts = &mut running.attempts;
        if !matches!(attempts.pause, Some(Pause::Stale(_))) {
            return false;
        }
        let receipt = self.receipt.take();
        attempts.recovery = receipt.as_deref().cloned();
        self.with_turn(cx.clients, |_, sink| {
            let agent_session = &agent_session;
            sink.event(&TurnEvent::AgentSessionReplaced { agent_session });
            if let Some(receipt) = receipt {
                let data = to_raw(&receipt);
                sink.chunk(&Chunk::DataRecovery { data: Raw(&data) });
            }
        });
        self.send_again(cx);
        true
    }

    /// Ends the turn that waited for the replacement of a stale session, because no new session could be
    /// opened.
    pub(super) fn fail_stale_turn(&mut self, error: &Error, cx: &mut Cx<'_>) {
        let running = self.running.as_ref();
        if let Some(Pause::Stale(first)) = running.and_then(|r| r.attempts.pause.as_ref()) {
            let error = error.clone().with("before", first.message.as_str());
            self.end_turn(Ending::Failed(error), cx);
        }
    }
}
