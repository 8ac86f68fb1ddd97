//! History of a session: its stored chunks and messages. Functions over the log and the output.

use super::SessionOutput;
use crate::log::{Log, Record};
use crate::profile::Profile;
use acpipe_json::value;
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_protocol::wire;
use serde_json::{Map, Value};
use std::ops::Range;

/// Returns up to `limit` chunks after number `after`, in a profile.
///
/// # Errors
/// The log cannot be read.
pub fn replay(
    log: &Log,
    is_open: impl Fn(&str) -> bool,
    after: u64,
    limit: usize,
    profile: Profile,
) -> Result<wire::ReplayResult, Error> {
    let page = log.page(after, limit)?;
    let next = page
        .chunks
        .last()
        .filter(|_| page.more)
        .map(|last| last.seq);
    let mut entries = Vec::with_capacity(page.chunks.len());
    for stored in page.chunks {
        profile.adapt_replayed(value(&stored.chunk), &is_open, |chunk| {
            entries.push(wire::ReplayEntry {
                seq: stored.seq,
                turn_id: stored.turn_id.clone(),
                chunk,
            });
        });
    }
    Ok(wire::ReplayResult { entries, next })
}

/// Returns the positions of the messages between two others.
///
/// # Errors
/// `messageNotFound`.
pub fn places(log: &Log, after: Option<&str>, before: Option<&str>) -> Result<Range<usize>, Error> {
    let place = |id: Option<&str>| id.map(|id| place_of(log, id)).transpose();
    let (after, before) = (place(after)?, place(before)?);
    let total = usize::try_from(log.count()).unwrap_or(usize::MAX);
    let begin = after.map_or(0, |at| at + 1);
    Ok(begin..before.unwrap_or(total))
}

fn place_of(log: &Log, id: &str) -> Result<usize, Error> {
    log.position(id).ok_or_else(|| {
        let text = format!("message {id:?} not found; list the messages with message/list");
        Error::new(ErrorKind::MessageNotFound, text)
    })
}

/// Adds a message.
///
/// # Errors
/// `invalidParams`, `messageExists`, `storage`.
pub fn add_message(
    output: &mut SessionOutput,
    message: Map<String, Value>,
    at: &str,
) -> Result<wire::MessageResult, Error> {
    let message = checked(message)?;
    let id = message["id"].as_str().unwrap_or_default();
    if output.log().position(id).is_some() {
        let text = format!("message {id:?} already exists; change it with message/update");
        return Err(Error::new(ErrorKind::MessageExists, text));
    }
    log_message(output, &message, at)?;
    Ok(wire::MessageResult {
        message: Some(message),
    })
}

/// Changes fields of a message, which belongs to no open turn. `profile` is the one in which the client knows the message.
///
/// # Errors
/// `messageNotFound`, `busy` if it `is_writing` the message, `invalidParams`, `storage`.
pub fn update_message(
    output: &mut SessionOutput,
    is_writing: impl FnOnce(&str) -> bool,
    p: wire::UpdateMessageParams,
    at: &str,
    profile: Profile,
) -> Result<wire::MessageResult, Error> {
    let place = place_of(output.log(), &p.message_id)?;
    if is_writing(&p.message_id) {
        let text = "the message is not complete; update it after its turn";
        return Err(Error::new(ErrorKind::Busy, text));
    }
    let known = output.log().message(place, profile)?;
    let mut message = match known {
        Some(Value::Object(message)) => message,
        _ => Map::new(),
    };
    message.extend(p.message);
    message.insert("id".to_owned(), p.message_id.into());
    let message = checked(message)?;
    log_message(output, &message, at)?;
    Ok(wire::MessageResult {
        message: Some(message),
    })
}

fn log_message(output: &mut SessionOutput, message: &Value, at: &str) -> Result<(), Error> {
    output.record(&Record::Message { at, message });
    output.write()?;
    output.save(0);
    Ok(())
}

/// Returns the last `limit` characters of the text in these messages; `None` if there is no text.
pub(super) fn transcript(
    log: &Log,
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
        let Some(message) = log.message(place, Profile::V7)? else {
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

/// Checks that a message can be stored.
fn checked(message: Map<String, Value>) -> Result<Value, Error> {
    let id = message.get("id").and_then(Value::as_str);
    if id.is_none_or(str::is_empty) {
        return Err(invalid("message.id", "must be a string"));
    }
    let role = message.get("role").and_then(Value::as_str);
    if !role.is_some_and(|role| ["user", "assistant", "system"].contains(&role)) {
        return Err(invalid("message.role", "must be user, assistant or system"));
    }
    if !message.get("parts").is_some_and(Value::is_array) {
        return Err(invalid("message.parts", "must be a list"));
    }
    Ok(Value::Object(message))
}
