//! Prompts that are sent again within their turn: after an error that may pass by itself, and to a new session
//! in the place of one that was brought back but that the agent does not have after all.

use super::commands::{STOPPING, out_of_order};
use super::recovery::PAGES;
use super::turns::{prompt_parts, with_history};
use super::{Bridge, Call, Phase};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{CallId, StopReason, TurnEnd};
use crate::core::ladder::{Knowledge, Ladder};
use crate::core::limits::Wait;
use crate::core::retry::{ATTEMPTS, Pause, Prompt, Verdict, WAIT};
use crate::core::session::Stage;
use crate::core::silence::Silence;
use crate::core::summary::Ending;
use crate::core::turn::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire::{Rung, Strategy};
use serde_json::json;
use std::time::Instant;
use tracing::{debug, info};

impl Bridge {
    /// A prompt was answered: sends it again where that may help, else gives back how the turn ends.
    pub(super) fn try_again(
        &mut self,
        id: &str,
        ending: Ending,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<Ending> {
        let can_list = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.list,
            // Nothing is sent to an agent that is being stopped.
            _ => return Some(ending),
        };
        let Some(session) = self.sessions.get_mut(id) else {
            return Some(ending);
        };
        let Some(running) = session.running.as_mut().filter(|r| !r.is_cancelled()) else {
            return Some(ending);
        };
        let attempts = &mut running.attempts;
        let doubtful = session.revived.is_some() && !running.turn.has_begun();
        let ending = match ending {
            Ending::Failed(error)
            | Ending::Answered(TurnEnd {
                error: Some(error), ..
            }) if doubtful
                && error.kind == ErrorKind::SessionNotFound
                && attempts.sent < ATTEMPTS =>
            {
                self.replace(id, error, now, outlet);
                return None;
            }
            Ending::Answered(end)
                if doubtful
                    && can_list
                    && end.stop_reason == StopReason::Refusal
                    && attempts.sent < ATTEMPTS =>
            {
                self.look(id, end, (0, None), now);
                return None;
            }
            other => other,
        };
        let (class, error, ending) = match attempts.judge(&running.turn, ending, now) {
            Verdict::Ends(ending) => return Some(ending),
            Verdict::Again(class, error, ending) => (class, error, ending),
        };
        info!(session = id, class, "the prompt is sent again");
        debug!(session = id, %error, "what failed");
        let seconds = WAIT.as_secs();
        let notice = to_raw(&json!({
            "severity": "warning",
            "title": format!("The AI service failed ({class}); the prompt is sent again in {seconds} s"),
            "description": error.message,
        }));
        session.with_turn(outlet, |turn, sink| {
            if let Ending::Answered(end) = &ending {
                turn.account(end);
            }
            turn.break_off(sink);
            sink.chunk(&Chunk::DataNotice {
                data: Raw(&notice),
                transient: true,
            });
        });
        None
    }

    /// Sends the prompt of the running turn once more.
    fn send_again(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let agent_session = session.agent_session().map(str::to_owned);
        let (Some(running), Some(agent), Some(agent_session)) =
            (&mut session.running, &mut self.agent, agent_session)
        else {
            self.end_turn(id, Ending::Failed(out_of_order(STOPPING)), now, outlet);
            return;
        };
        let call = CallId(self.last_call + 1);
        let Prompt { message, degrade } = &running.attempts.prompt;
        // It was sent before.
        let (parts, _) = prompt_parts(message["parts"].as_array()).unwrap_or_default();
        let parts = with_history(session.reinject.take(), &parts);
        let dialect = &mut agent.dialect;
        running.waits = dialect.is_busy(&agent_session);
        if let Err(error) = dialect.prompt(call, &agent_session, &parts, *degrade, &mut agent.out) {
            self.end_turn(id, Ending::Failed(error), now, outlet);
            return;
        }
        self.last_call += 1;
        running.call = call;
        running.attempts.next(&running.turn);
        running.turn.begin_attempt();
        session.silence = Some(Silence::begin(now, self.settings.limits.of(Wait::Prompt)));
        let session = id.to_owned();
        self.calls.insert(call, Call::Prompt { session });
    }

    /// Ends the pause of a turn whose time came; true when there was one.
    pub(super) fn pause_over(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) -> bool {
        let running = self.sessions.get_mut(id).and_then(|s| s.running.as_mut());
        let Some(attempts) = running.map(|running| &mut running.attempts) else {
            return false;
        };
        if attempts.paused_until().is_none_or(|(at, _)| at > now) {
            return false;
        }
        match attempts.pause.take() {
            Some(Pause::Doubt { refusal, .. }) => {
                self.end_turn(id, Ending::Answered(refusal), now, outlet);
            }
            _ => self.send_again(id, now, outlet),
        }
        true
    }

    /// Ends a turn whose prompt is not with the agent, since the client wants no more of it; true when there
    /// was one.
    pub(super) fn cancel_pause(
        &mut self,
        id: &str,
        turn_id: Option<&str>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        let running = self.sessions.get_mut(id).and_then(|s| s.running.as_mut());
        let meant = |turn: &str| turn_id.is_none_or(|wanted| wanted == turn);
        let Some(running) = running.filter(|r| r.attempts.pause.is_some() && meant(&r.turn_id))
        else {
            return false;
        };
        running.cancel_deadline = Some(now);
        let end = TurnEnd {
            stop_reason: StopReason::Cancelled,
            reported: "cancelled".to_owned(),
            ..TurnEnd::default()
        };
        self.end_turn(id, Ending::Answered(end), now, outlet);
        true
    }

    /// The agent refused a prompt in a session that was brought back: asks for a page of its list, the first
    /// or that at the cursor.
    fn look(&mut self, id: &str, refusal: TurnEnd, page: (u32, Option<&str>), now: Instant) {
        let call = self.next_call(Call::Look {
            session: id.to_owned(),
        });
        let (Some(agent), Some(session)) = (&mut self.agent, self.sessions.get_mut(id)) else {
            return;
        };
        let (pages, cursor) = page;
        agent
            .dialect
            .list(call, Some(&session.cwd), cursor, &mut agent.out);
        if let Some(running) = &mut session.running {
            running.call = call;
            running.attempts.pause = Some(Pause::Doubt {
                refusal,
                pages,
                until: now + self.settings.limits.of(Wait::List).unwrap_or_default(),
            });
        }
    }

    /// The agent told a page of its sessions, or with `None` that it will not. Only a list without the
    /// session is evidence that the refusal was for want of it.
    pub(super) fn looked(
        &mut self,
        id: &str,
        page: Option<(&[String], Option<&str>)>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let agent_session = session.agent_session().map(str::to_owned);
        let Some(running) = &mut session.running else {
            return;
        };
        let Some(Pause::Doubt { refusal, pages, .. }) = running.attempts.pause.take() else {
            return;
        };
        let pages = pages + 1;
        let silent = !running.turn.has_begun();
        match (page, agent_session) {
            (Some((ids, next)), Some(own)) if silent && !ids.contains(&own) => match next {
                Some(cursor) if pages < PAGES => self.look(id, refusal, (pages, Some(cursor)), now),
                Some(_) => self.end_turn(id, Ending::Answered(refusal), now, outlet),
                None => {
                    let message =
                        "the agent refused the prompt, and its list does not hold the session";
                    let error = Error::new(ErrorKind::SessionNotFound, message);
                    self.replace(id, error, now, outlet);
                }
            },
            _ => self.end_turn(id, Ending::Answered(refusal), now, outlet),
        }
    }

    /// The agent does not have a session that it seemed to bring back: drops its id and asks for a new one.
    fn replace(&mut self, id: &str, error: Error, now: Instant, outlet: &mut impl Outlet) {
        let can = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities,
            _ => return,
        };
        let key = self.agent_key();
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        info!(
            session = id,
            "the session is stale: a new one takes its place"
        );
        debug!(session = id, %error, "what the agent says");
        let new = Strategy::Only(Rung::New);
        let mut ladder = Ladder::plan(&new, can, Knowledge::default());
        if let Some(rung) = session.revived.take() {
            ladder.note(rung, &error);
        }
        session.known.forget(&key);
        session.begin_opening(new, Vec::new());
        if let Stage::Opening { climb, .. } = &mut session.stage {
            climb.ladder = Some(ladder);
        }
        if let Some(running) = &mut session.running {
            running.attempts.pause = Some(Pause::Stale(error));
        }
        self.climb(id, now, outlet);
    }

    /// The session is live: sends the prompt again that found it stale; true when there is one.
    pub(super) fn reopened(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let agent_session = session.agent_session().unwrap_or_default().to_owned();
        let Some(running) = &mut session.running else {
            return false;
        };
        let attempts = &mut running.attempts;
        if !matches!(attempts.pause, Some(Pause::Stale(_))) {
            return false;
        }
        let receipt = session.receipt.take();
        attempts.recovery.clone_from(&receipt);
        session.with_turn(outlet, |turn, sink| {
            turn.moved(&agent_session, sink);
            if let Some(receipt) = receipt {
                let data = to_raw(&receipt);
                sink.chunk(&Chunk::DataRecovery { data: Raw(&data) });
            }
        });
        self.send_again(id, now, outlet);
        true
    }

    /// There is no new session in the place of a stale one: ends the turn that waited for it.
    pub(super) fn not_reopened(
        &mut self,
        id: &str,
        error: &Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let running = self.sessions.get(id).and_then(|s| s.running.as_ref());
        if let Some(Pause::Stale(first)) = running.and_then(|r| r.attempts.pause.as_ref()) {
            let error = error.clone().with("before", first.message.as_str());
            self.end_turn(id, Ending::Failed(error), now, outlet);
        }
    }
}
