//! Turns: prompts, cancels, and how they end.

use super::commands::{invalid, no_session, out_of_order};
use super::{Bridge, Call};
use crate::core::client::Outlet;
use crate::core::dialect::Outgoing;
use crate::core::dialect::PromptPart;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{CallId, StopReason, TurnEnd};
use crate::core::limits::Wait;
use crate::core::log::Record;
use crate::core::permit::By;
use crate::core::retry::{Attempts, Prompt, Wish};
use crate::core::session::{Granted, Queued, Running, Session};
use crate::core::silence::Silence;
use crate::core::summary::{Ending, Timing, summarize};
use crate::core::turn::{ChunkSink as _, Turn};
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For how long an answered turn may wait for the rest of what was received with its answer, where the
/// client does not read.
const DRAIN_LIMIT: Duration = Duration::from_millis(50);

impl Bridge {
    /// Sends a prompt: its turn begins.
    pub(super) fn begin_turn(
        &mut self,
        id: &str,
        queued: Queued,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let Queued {
            token,
            turn_id,
            prompt: mut p,
        } = queued;
        let (_, skipped) = prompt_parts(Some(&p.message.parts))?;
        let late = self.sessions.get(id).map(|s| s.late_words.clone());
        let late = late.unwrap_or_default();
        let late_parts = late
            .iter()
            .map(|words| json!({ "type": "text", "text": words }));
        p.message.parts.splice(0..0, late_parts);
        let message_id = self.next_id("msg");
        let waited = self.waited;
        let at = self.time(now);
        let user_id = || message_id.replacen("msg", "user", 1);
        let message = p.message.into_ui_message(user_id);
        let (parts, _) = prompt_parts(message["parts"].as_array())?;
        let process = self.sessions.get(id).and_then(|s| self.process_of(s));
        let stderr_at = process.map_or(0, |process| process.vitals.stderr_at());
        let session = self.sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        let (Some(agent), Some(agent_session)) = (&mut self.agent, session.agent_session()) else {
            return Err(out_of_order("there is no agent: call agent/connect first"));
        };
        let call = CallId(self.last_call + 1);
        let dialect = &mut agent.dialect;
        let mut lines = Outgoing::default();
        let waits = dialect.is_busy(agent_session);
        let sent = with_history(session.reinject.clone(), &parts);
        dialect.prompt(call, agent_session, &sent, p.degrade, &mut lines)?;
        let agent_session = agent_session.to_owned();
        // What was asked in a message that nobody asked for keeps it open beside the prompt's.
        if !waits && session.asks.is_empty() {
            session.end_unprompted(None, outlet);
        }
        let messages_before = session.log.count();
        // After a crash it must be known that this was asked: it is written before it is sent.
        session.log.append(&Record::Prompt {
            at: &at,
            turn_id: &turn_id,
            message: &message,
        });
        if let Err(error) = self.write(id, now, outlet) {
            if let Some(agent) = &mut self.agent {
                agent.dialect.unsend(call, &agent_session);
            }
            return Err(error);
        }
        let session = self.sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        let agent = self
            .agent
            .as_mut()
            .ok_or_else(|| out_of_order("there is no agent"))?;
        session.log.sync(0);
        agent.out.append(&mut lines);
        session.reinject = None;
        session.late_words.clear();
        session.granted = Granted::default();
        self.last_call += 1;
        let prompt = Call::Prompt {
            session: id.to_owned(),
        };
        self.calls.insert(call, prompt);
        let about = json!({ "sessionId": agent_session });
        let dialect = agent.dialect.name();
        let last = session.last.as_ref();
        let earlier = last.map(|last| Arc::new(last.names.of_subagents()));
        let turn = Turn::start(
            message_id,
            dialect,
            &about,
            &earlier.unwrap_or_default(),
            &mut session.sink(Some(&turn_id), outlet),
        );
        session.tell_first(&turn_id, &skipped, &late, outlet);
        let wish = Wish {
            transient: p.retry,
            after_output: p.retry_after_output,
        };
        let degrade = p.degrade;
        let attempts = Attempts::first(Prompt { message, degrade }, wish);
        let mut running = Running::new(turn, turn_id, token, call, attempts, now);
        running.waits = waits;
        running.skipped_parts = skipped;
        running.waited_before = waited;
        running.messages_before = messages_before;
        running.stderr_at = stderr_at;
        let own = p.timeout_ms.map(Duration::from_millis);
        let limit = own.or_else(|| self.settings.limits.of(Wait::Turn));
        running.limit = limit.and_then(|limit| Some((now.checked_add(limit)?, limit)));
        session.running = Some(running);
        session.silence = Some(Silence::begin(now, self.settings.limits.of(Wait::Prompt)));
        Ok(())
    }

    /// Cancels one turn: that which is named, or else that which runs, or else the first that waits. Without a name and
    /// without a turn it cancels the opening of the session. True when there was something to cancel.
    pub(super) fn cancel(
        &mut self,
        id: &str,
        turn_id: Option<&str>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        if self.cancel_pause(id, turn_id, now, outlet) || self.cancel_waiting(id, turn_id, outlet) {
            return true;
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        if turn_id.is_none() && session.is_opening() && session.running.is_none() {
            let message = "session/cancel came before the session was open";
            let error = Error::new(ErrorKind::Cancelled, message);
            self.opening_failed(id, &error, now, outlet);
            return true;
        }
        let agent_session = session.agent_session().map(str::to_owned);
        // A turn that was given up was cancelled already.
        if session.running.is_none()
            && session.abandoned.is_none()
            && let (Some(unprompted), Some(agent), Some(agent_session)) =
                (&mut session.unprompted, &mut self.agent, &agent_session)
        {
            let meant = turn_id.is_none_or(|t| t == unprompted.turn_id);
            if meant && !unprompted.cancelled {
                unprompted.cancelled = true;
                agent.dialect.cancel(agent_session, &mut agent.out);
                self.end_asks(id, &By::Cancel, now, outlet);
            }
            return meant;
        }
        let (Some(running), Some(agent), Some(agent_session)) =
            (&mut session.running, &mut self.agent, agent_session)
        else {
            return false;
        };
        // One that has ended is not cancelled: the agent would take that for the next.
        if running.ended.is_some() || turn_id.is_some_and(|t| t != running.turn_id) {
            return false;
        }
        if running.cancel_deadline.is_none() {
            let limit = self.settings.limits.of(Wait::Cancel);
            running.cancel_deadline = Some(now + limit.unwrap_or_default());
            agent.dialect.cancel(&agent_session, &mut agent.out);
            self.end_asks(id, &By::Cancel, now, outlet);
        }
        true
    }

    /// The agent answered a prompt.
    pub(super) fn turn_ended(
        &mut self,
        call: CallId,
        end: TurnEnd,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        if let Some(Call::Prompt { session }) = self.calls.remove(&call)
            && !self.was_abandoned(&session, call, outlet)
        {
            self.crashes = 0;
            self.answered(&session, Ending::Answered(end), now);
        }
    }

    /// A turn is over as soon as what was received together with its answer is read.
    pub(super) fn answered(&mut self, id: &str, ending: Ending, now: Instant) {
        if let Some(running) = self.sessions.get_mut(id).and_then(|s| s.running.as_mut()) {
            running.ended = Some(ending);
            self.ended.push((id.to_owned(), now));
        }
    }

    /// What was received is read, or with `all` false only a part of it: ends the turns that were answered.
    pub fn drained(&mut self, all: bool, now: Instant, outlet: &mut impl Outlet) {
        let due = |at: &Instant| all || now.saturating_duration_since(*at) >= DRAIN_LIMIT;
        for (id, at) in std::mem::take(&mut self.ended) {
            if !due(&at) {
                self.ended.push((id, at));
                continue;
            }
            self.mending(now, outlet, |bridge, outlet| {
                bridge.end_answered(&id, now, outlet);
            });
        }
        self.mending(now, outlet, |bridge, outlet| bridge.go_on(now, outlet));
    }

    /// Does what had to wait for the end of a turn.
    pub(super) fn go_on(&mut self, now: Instant, outlet: &mut impl Outlet) {
        if !self.freed.is_empty() {
            self.recover_overdue(now, outlet);
            self.next_prompts(now, outlet);
        }
        self.sweep_asks(now, outlet);
        self.go_on_hosting(now, outlet);
        self.renew(now, outlet);
    }

    /// The turn of a session is over; does nothing when there is none.
    pub(super) fn end_turn(
        &mut self,
        id: &str,
        ending: Ending,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let running = self.sessions.get(id).and_then(|s| s.running.as_ref());
        let Some(turn_id) = running.map(|running| running.turn_id.clone()) else {
            return;
        };
        self.end_asks_of(id, &turn_id, now, outlet);
        self.show_terminals_of(id, outlet);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Some(running) = &mut session.running else {
            return;
        };
        let cancelled = running.is_cancelled();
        // What the agent answered counts, whatever came after it.
        let ending = running.ended.take().unwrap_or(ending);
        let ending = match running.timed_out.take() {
            Some(error) => ending.with_error(error),
            None => ending,
        };
        // Some agents answer a cancel with an error: what was asked for is no failure.
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
            Ending::Answered(end) if cancelled => Ending::Answered(end.without_error()),
            other => other,
        };
        self.calls.remove(&running.call);
        session.with_turn(outlet, |turn, sink| match &ending {
            Ending::Answered(end) => turn.finish(end, cancelled, sink),
            Ending::Failed(error) => turn.fail(error, sink),
        });
        if self.write(id, now, outlet).is_ok() {
            self.close_turn(id, &ending, now, outlet);
        }
    }

    /// The last chunk of a turn was given: now its summary is.
    pub(super) fn close_turn(
        &mut self,
        id: &str,
        ending: &Ending,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Some(mut running) = session.running.take() else {
            return;
        };
        session.silence = None;
        session.used = Some(now);
        let cancelled = running.is_cancelled();
        let timing = Timing {
            total: now.saturating_duration_since(running.started),
            waited: self.waited.saturating_sub(running.waited_before),
        };
        let summary = summarize(id, &mut running, ending, timing, session.cost);
        session.remember(&mut running.turn, cancelled);
        self.acknowledge(id, running.token, Box::new(summary), now, outlet);
        self.freed.push(id.to_owned());
    }
}

impl Session {
    /// What a turn begins with: parts of the prompt that were left out, how the session was brought back.
    fn tell_first(
        &mut self,
        turn_id: &str,
        skipped: &[String],
        late: &[String],
        outlet: &mut impl Outlet,
    ) {
        let receipt = self.receipt.take();
        let mut sink = self.sink(Some(turn_id), outlet);
        if !skipped.is_empty() {
            let notice = to_raw(&json!({
                "severity": "warning",
                "title": "Parts of the prompt were left out",
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
                "title": "Your words to earlier answers are sent with this prompt",
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
    }
}

/// A prompt, with what was said before for an agent that has lost its memory of it.
pub(super) fn with_history<'a>(
    said: Option<String>,
    parts: &'a [PromptPart<'a>],
) -> Cow<'a, [PromptPart<'a>]> {
    let Some(said) = said else {
        return Cow::Borrowed(parts);
    };
    let told = PromptPart::Text(Cow::Owned(format!(
        "What was said in this conversation before, of which you have no memory:\n\n{said}\n\n\
         (End of what was said before. The next message follows.)"
    )));
    std::iter::once(told).chain(parts.iter().cloned()).collect()
}

/// The parts of a prompt that can be sent, and the types of those that cannot.
pub(super) fn prompt_parts(
    message: Option<&Vec<Value>>,
) -> Result<(Vec<PromptPart<'_>>, Vec<String>), Error> {
    let mut parts = Vec::new();
    let mut skipped = Vec::new();
    for (n, part) in message.into_iter().flatten().enumerate() {
        let said = |name: &str| part.get(name).and_then(Value::as_str);
        let field = |name: &str| said(name).map(str::to_owned);
        let need = |name: &str| {
            said(name)
                .ok_or_else(|| invalid(&format!("message.parts[{n}].{name}"), "a string is needed"))
        };
        match need("type")? {
            "text" => parts.push(PromptPart::Text(need("text")?.into())),
            "file" => parts.push(PromptPart::File {
                url: need("url")?.into(),
                media_type: field("mediaType"),
                name: field("filename"),
            }),
            "source-url" => parts.push(PromptPart::File {
                url: need("url")?.into(),
                media_type: None,
                name: field("title"),
            }),
            "source-document" => parts.push(PromptPart::File {
                url: need("sourceId")?.into(),
                media_type: field("mediaType"),
                name: field("filename").or_else(|| field("title")),
            }),
            other => skipped.push(other.to_owned()),
        }
    }
    if parts.is_empty() {
        return Err(invalid("message.parts", "there is no text or file part"));
    }
    Ok((parts, skipped))
}
