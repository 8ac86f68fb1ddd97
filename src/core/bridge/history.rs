//! What the client asks of a session's history: its chunks, its messages.

use super::Bridge;
use super::commands::invalid;
use super::reading::{Reading, Wanted};
use crate::core::client::{History, Outlet, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::log::Record;
use crate::core::session::{Ask, Session};
use crate::proto::json::value;
use crate::proto::wire;
use serde_json::{Map, Value};
use std::ops::Range;
use std::time::Instant;

/// How many chunks and messages a page has at most, and where nothing is said.
const CHUNKS: (u32, u32) = (10_000, 1000);
const MESSAGES: (u32, u32) = (1000, 100);

/// How large a page of messages may become, in bytes of JSON, beyond its first message.
pub(super) const PAGE_BYTES: usize = 4 << 20;

impl Bridge {
    pub(super) fn ask_history(
        &mut self,
        token: Token,
        asked: History,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        match asked {
            History::ListSessions(p) => self.ask_for_sessions(token, p, now, outlet)?,
            History::GetSession(p) => {
                let info = self.session_info(&p, now)?;
                outlet.reply(token, Ok(Reply::SessionInfo(Box::new(info))));
            }
            History::CloseSession(p) => {
                self.close_session(&p, now, outlet)?;
                outlet.reply(token, Ok(Reply::Done(wire::Done {})));
            }
            History::ClearSession(p) => {
                self.clear_session(&p, now, outlet)?;
                outlet.reply(token, Ok(Reply::Done(wire::Done {})));
            }
            History::Replay(p) => {
                let page = self.replay(&p)?;
                outlet.reply(token, Ok(Reply::Replay(page)));
            }
            History::ListMessages(p) => {
                self.list_messages(token, &p, now, outlet)?;
            }
            History::LastMessage(p) => {
                self.last_message(token, &p, now, outlet)?;
            }
            History::AddMessage(p) => {
                let added = self.add_message(p, now)?;
                outlet.reply(token, Ok(Reply::Message(added)));
            }
            History::UpdateMessage(p) => {
                let updated = self.update_message(p, now)?;
                outlet.reply(token, Ok(Reply::Message(updated)));
            }
            History::ClearMessages(p) => {
                self.clear_messages(&p, now, outlet)?;
                outlet.reply(token, Ok(Reply::Done(wire::Done {})));
            }
        }
        Ok(())
    }

    /// The session that a call names.
    fn history(&mut self, id: Option<&str>) -> Result<&mut Session, Error> {
        let id = self.session_id(id)?;
        self.session(&id)
    }

    fn replay(&mut self, p: &wire::ReplayParams) -> Result<wire::ReplayResult, Error> {
        let limit = limit(p.limit, CHUNKS)?;
        let session = self.history(p.session_id.as_deref())?;
        let profile = session.view.profile;
        let page = session.log.page(p.after_seq, limit)?;
        let next = page
            .chunks
            .last()
            .filter(|_| page.more)
            .map(|last| last.seq);
        let mut entries = Vec::with_capacity(page.chunks.len());
        let is_open = |id: &str| {
            let open = |ask: &Ask| ask.about.question().id == id;
            session.asks.iter().any(open)
        };
        for stored in page.chunks {
            profile.adapt_replayed(value(&stored.chunk), is_open, |chunk| {
                entries.push(wire::ReplayEntry {
                    seq: stored.seq,
                    turn_id: stored.turn_id.clone(),
                    chunk,
                });
            });
        }
        Ok(wire::ReplayResult { entries, next })
    }

    fn list_messages(
        &mut self,
        token: Token,
        p: &wire::ListMessagesParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let limit = limit(p.limit, MESSAGES)?;
        let session = self.history(p.session_id.as_deref())?;
        let place = |id: &Option<String>| match id {
            Some(id) => session.place(id).map(Some),
            None => Ok(None),
        };
        let (after, before) = (place(&p.after)?, place(&p.before)?);
        let total = usize::try_from(session.log.count()).unwrap_or(usize::MAX);
        let begin = after.map_or(0, |at| at + 1);
        let places = begin..before.unwrap_or(total);
        let backwards = before.is_some() && after.is_none();
        let id = session.id.clone();
        let reading = Reading::new(token, id, places, backwards, Wanted::Page(limit));
        self.begin_reading(reading, now, outlet);
        Ok(())
    }

    fn last_message(
        &mut self,
        token: Token,
        p: &wire::SessionParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let session = self.history(p.session_id.as_deref())?;
        let total = usize::try_from(session.log.count()).unwrap_or(usize::MAX);
        let id = session.id.clone();
        let reading = Reading::new(token, id, 0..total, true, Wanted::Last);
        self.begin_reading(reading, now, outlet);
        Ok(())
    }

    fn add_message(
        &mut self,
        p: wire::AddMessageParams,
        now: Instant,
    ) -> Result<wire::MessageResult, Error> {
        let message = checked(p.message)?;
        let at = self.time(now);
        let session = self.history(p.session_id.as_deref())?;
        let id = message["id"].as_str().unwrap_or_default();
        if session.log.position(id).is_some() {
            let text = format!("there is a message {id:?} already: message/update changes it");
            return Err(Error::new(ErrorKind::MessageExists, text));
        }
        session.take_down_message(&message, &at)?;
        Ok(wire::MessageResult {
            message: Some(message),
        })
    }

    fn update_message(
        &mut self,
        p: wire::UpdateMessageParams,
        now: Instant,
    ) -> Result<wire::MessageResult, Error> {
        let at = self.time(now);
        let session = self.history(p.session_id.as_deref())?;
        let place = session.place(&p.message_id)?;
        let running = session.running.as_ref().map(|r| r.turn.message_id());
        let unasked = session.unprompted.as_ref().map(|u| u.turn.message_id());
        if [running, unasked].contains(&Some(p.message_id.as_str())) {
            let text = "the message is still being made: update it when its turn has ended";
            return Err(Error::new(ErrorKind::Busy, text));
        }
        let known = session.log.message(place, session.view.profile)?;
        let mut message = match known {
            Some(Value::Object(message)) => message,
            _ => Map::new(),
        };
        message.extend(p.message);
        message.insert("id".to_owned(), p.message_id.into());
        let message = checked(message)?;
        session.take_down_message(&message, &at)?;
        Ok(wire::MessageResult {
            message: Some(message),
        })
    }

    fn clear_messages(
        &mut self,
        p: &wire::ClearParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let at = self.time(now);
        let id = &self.session_id(p.session_id.as_deref())?;
        self.session(id)?.must_be_idle()?;
        self.end_unprompted(id, now, outlet);
        self.write(id, now, outlet)?;
        let session = self.session(id)?;
        session.log.clear(&at, p.archive)?;
        session.log.describe();
        Ok(())
    }
}

impl Session {
    /// The place of a message in their order.
    fn place(&self, id: &str) -> Result<usize, Error> {
        self.log.position(id).ok_or_else(|| {
            let text = format!("there is no message {id:?}: message/list shows what there is");
            Error::new(ErrorKind::MessageNotFound, text)
        })
    }

    fn take_down_message(&mut self, message: &Value, at: &str) -> Result<(), Error> {
        self.log.append(&Record::Message { at, message });
        self.log.commit()?;
        self.log.describe();
        self.log.sync(0);
        Ok(())
    }

    /// Whether no prompt runs or is about to.
    pub(super) fn must_be_idle(&self) -> Result<(), Error> {
        if self.running.is_none() && self.queue.is_empty() && self.abandoned.is_none() {
            return Ok(());
        }
        let text = format!(
            "session {:?} is in a turn, or prompts wait for it: try again when that has ended, or call session/cancel",
            self.id
        );
        Err(Error::new(ErrorKind::Busy, text))
    }

    /// The last `limit` characters of what was said in these messages, as text; `None` where that is nothing.
    pub(super) fn transcript(
        &self,
        messages: Range<u64>,
        limit: usize,
    ) -> Result<Option<String>, Error> {
        let mut said: Vec<String> = Vec::new();
        let mut left = limit;
        for at in messages.rev() {
            if left == 0 {
                break;
            }
            let place = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(message) = self.log.message(place, self.view.profile)? else {
                continue;
            };
            let parts = message["parts"].as_array().into_iter().flatten();
            let texts = parts.filter(|part| part["type"] == "text");
            let text: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
            if text.is_empty() {
                continue;
            }
            let role = message["role"].as_str().unwrap_or_default();
            let text = format!("{role}: {}", text.join("\n"));
            let excess = text.chars().count().saturating_sub(left);
            left -= text.chars().count() - excess;
            said.push(text.chars().skip(excess).collect());
        }
        said.reverse();
        Ok(Some(said.join("\n\n")).filter(|text| !text.is_empty()))
    }
}

/// A message that can be stored.
fn checked(message: Map<String, Value>) -> Result<Value, Error> {
    let id = message.get("id").and_then(Value::as_str);
    if id.is_none_or(str::is_empty) {
        return Err(invalid("message.id", "a string is needed"));
    }
    let role = message.get("role").and_then(Value::as_str);
    if !role.is_some_and(|role| ["user", "assistant", "system"].contains(&role)) {
        return Err(invalid(
            "message.role",
            "user, assistant or system is needed",
        ));
    }
    if !message.get("parts").is_some_and(Value::is_array) {
        return Err(invalid("message.parts", "a list is needed"));
    }
    Ok(Value::Object(message))
}

/// How many a page may have at most.
pub(super) fn limit(given: Option<u32>, (most, usual): (u32, u32)) -> Result<usize, Error> {
    match given {
        Some(0) => Err(invalid("limit", "it must be at least 1")),
        given => Ok(given.unwrap_or(usual).min(most) as usize),
    }
}
