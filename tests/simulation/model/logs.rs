//! Checks of the stored logs.

use super::stream;
use acpipe_json::value;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Parses an object with any content of an agent: what a [`Value`] cannot hold becomes a string, at the
/// deepest level possible.
pub fn read(json: &[u8]) -> Result<Value, String> {
    let raw: Result<&RawValue, _> = serde_json::from_slice(json);
    let raw = raw.map_err(|e| format!("{e}: {}", json.escape_ascii()))?;
    match value(raw) {
        Value::String(_) => {
            let members: BTreeMap<String, &RawValue> =
                serde_json::from_str(raw.get()).map_err(|e| format!("{e}: {raw}"))?;
            let read = |raw: &RawValue| {
                let is_object = raw.get().starts_with('{');
                is_object.then(|| self::read(raw.get().as_bytes()))
            };
            let read = |raw: &RawValue| read(raw).unwrap_or_else(|| Ok(value(raw)));
            let members = members.into_iter();
            members.map(|(key, raw)| Ok((key, read(raw)?))).collect()
        }
        value => Ok(value),
    }
}

/// Checks a log; `whole` unless the disk failed, which may cut turns off.
pub fn check(bytes: &[u8], whole: bool) -> Result<(), String> {
    let mut last = 0;
    let mut turns: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let mut record = read(line)?;
        match record["record"].as_str() {
            // An emptied log continues the numbers.
            Some("session") => last = record["seq"].as_u64().unwrap_or_default().max(last),
            Some("chunk") => {
                let seq = record["seq"].as_u64().unwrap_or_default();
                if seq != last + 1 {
                    return Err(format!("{seq} follows {last}"));
                }
                last = seq;
                if let Some(turn) = record["turnId"].as_str() {
                    let chunks = turns.entry(turn.to_owned()).or_default();
                    if record["chunk"]["type"] == "start" {
                        finished(turn, chunks, whole)?;
                        chunks.clear();
                    }
                    chunks.push(record["chunk"].take());
                }
            }
            Some("prompt" | "end" | "recovery" | "decision" | "message") => {}
            other => return Err(format!("there is no record {other:?}")),
        }
    }
    let mut turns = turns.iter();
    turns.try_for_each(|(turn, chunks)| finished(turn, chunks, whole))
}

fn finished(turn: &str, chunks: &[Value], whole: bool) -> Result<(), String> {
    if chunks.is_empty() || !whole {
        return Ok(());
    }
    stream::check(chunks).map_err(|why| format!("turn {turn}: {why} in {chunks:#?}"))
}
