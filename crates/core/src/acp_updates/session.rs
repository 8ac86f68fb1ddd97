//! State of the session, plans, usage, notices and compactions.

use super::writer::{Put, Writer};
use crate::notice_data::notice_data;
use acpipe_json::{Members, non_null, text, to_raw, value};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// State that was sent, so that repeated reports of the agent do not become updates.
#[derive(Debug, Default)]
pub struct SessionState {
    mode: Option<String>,
    /// Members without a field in ACP.
    others: Option<Box<RawValue>>,
}

impl SessionState {
    pub fn update(&mut self, writer: &Writer, news: &Members<'_>, put: &mut Put<'_>) {
        let modes = news.get("modes").map(Members::of);
        let mode = text(news.get("currentModeId"))
            .or_else(|| text(modes.as_ref()?.get("currentModeId")))
            .map(std::borrow::Cow::into_owned);
        if let Some(mode) = mode.filter(|mode| self.mode.as_ref() != Some(mode)) {
            let mut members = Members::default();
            members.set_owned("currentModeId", &mode);
            writer.update("current_mode_update", &members, &Members::default(), put);
            self.mode = Some(mode);
        }
        for (kind, name) in [
            ("available_commands_update", "availableCommands"),
            ("config_option_update", "configOptions"),
        ] {
            if let Some(list) = news.get(name) {
                let mut members = Members::default();
                members.set(name, list);
                writer.update(kind, &members, &Members::default(), put);
            }
        }
        let mut info = Members::default();
        for name in ["title", "updatedAt"] {
            info.set_some(name, news.get(name));
        }
        let mut others = news.clone().without(&[
            "currentModeId",
            "availableCommands",
            "configOptions",
            "title",
            "updatedAt",
        ]);
        let text = to_raw(&others);
        let same = |known: &RawValue| known.get() == text.get();
        if self.others.as_deref().is_some_and(same) {
            others = Members::default();
        } else if !others.is_empty() {
            self.others = Some(text);
        }
        if !info.is_empty() || !others.is_empty() {
            writer.update("session_info_update", &info, &others, put);
        }
    }
}

/// Converts a plan. A removed plan is an empty one; the entries are those that ACP defines.
pub fn plan(writer: &Writer, data: &Members<'_>, put: &mut Put<'_>) {
    let removed = data.get("removed").is_some();
    let entries = match data.get("entries").map(value) {
        Some(Value::Array(entries)) => entries.into_iter().map(|it| entry(writer, it)).collect(),
        _ if removed => Vec::new(),
        _ => return writer.aside("plan", &to_raw(data), put),
    };
    let mut members = Members::default();
    members.set_owned("entries", &entries);
    let about = data.clone().without(&["entries", "removed"]);
    writer.update("plan", &members, &about, put);
}

/// Converts an entry of a plan; the members that ACP does not define go to its `_meta`.
fn entry(writer: &Writer, entry: Value) -> Value {
    let mut rest = match entry {
        Value::Object(members) => members,
        other => Map::from_iter([("content".to_owned(), other)]),
    };
    let mut word = |name: &str, known: &[&str]| {
        let is_known = |value: &Value| value.as_str().is_some_and(|word| known.contains(&word));
        let value = rest.get(name).filter(|value| is_known(value)).cloned();
        if value.is_some() {
            rest.remove(name);
        }
        value.unwrap_or_else(|| known[0].into())
    };
    let priority = word("priority", &["medium", "high", "low"]);
    let status = word("status", &["pending", "in_progress", "completed"]);
    let content = match rest.remove("content") {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let mut entry = json!({ "content": content, "priority": priority, "status": status });
    if !rest.is_empty() {
        entry["_meta"] = json!({ writer.meta(): rest });
    }
    entry
}

pub fn usage(writer: &Writer, figures: &Members<'_>, cost: Option<f64>, put: &mut Put<'_>) {
    let count = |name: &str| figures.get(name).filter(|raw| is_count(raw));
    let (Some(used), Some(size)) = (count("used"), count("size")) else {
        let mut about = figures.clone();
        if let Some(cost) = cost {
            about.set_owned("cost", &cost);
        }
        let data = to_raw(&about);
        return writer.aside("usage", &data, put);
    };
    let mut members = Members::default();
    members.set("used", used);
    members.set("size", size);
    match (non_null(figures.get("cost")), cost) {
        (Some(cost), _) => members.set("cost", cost),
        (None, Some(cost)) => {
            members.set_owned("cost", &json!({ "amount": cost, "currency": "USD" }));
        }
        (None, None) => {}
    }
    let about = figures.clone().without(&["used", "size", "cost"]);
    writer.update("usage_update", &members, &about, put);
}

fn is_count(raw: &RawValue) -> bool {
    serde_json::from_str::<u64>(raw.get()).is_ok()
}

/// Writes a notice; one without text is passed on beside the protocol.
pub fn notice(writer: &Writer, fields: &Members<'_>, put: &mut Put<'_>) {
    match notice_data(fields) {
        Some((members, about)) => writer.update("notice", &members, &about, put),
        None => writer.aside("notice", &to_raw(fields), put),
    }
}

pub fn compaction(writer: &Writer, id: &str, fields: &Members<'_>, put: &mut Put<'_>) {
    let result = text(non_null(fields.get("compact_result")));
    let status = match (result.as_deref(), text(fields.get("status")).as_deref()) {
        (Some("success"), _) => "completed",
        (Some(_), _) => "failed",
        (None, Some("compacting")) => "in_progress",
        (None, _) => "completed",
    };
    let mut members = Members::default();
    members.set_owned("compactionId", &id);
    members.set_owned("status", &status);
    if status == "failed" {
        let error = text(fields.get("compact_error")).or(result);
        members.set_owned("error", &error);
    }
    let about = fields.clone().without(&["status"]).without_null();
    writer.update("compaction_update", &members, &about, put);
}
