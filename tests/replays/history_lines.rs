//! Generates the lines of a history: those of its running turns, and those of its replay.
//!
//! Live, text comes in pieces, and a call comes as a first report and updates at any time until the turn
//! ends. A replay has only final states.

use crate::generate::{Dice, History, Item, Question, Tool, message};
use crate::live::SESSION;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Returns the lines of a running turn.
pub fn live(dice: &mut Dice, items: &[Item]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut later: Vec<VecDeque<String>> = Vec::new();
    for item in items {
        while !later.is_empty() && dice.percent(50) {
            let at = dice.below(later.len());
            lines.extend(later[at].pop_front());
        }
        noise(dice, &mut lines);
        match item {
            Item::Text { kind, id, text } => {
                pieces(dice, kind, id.as_deref(), text, &mut lines);
            }
            Item::Whole(update) => lines.push(whole(update)),
            Item::Plan(versions) => {
                let mut versions: VecDeque<_> = versions.iter().map(whole).collect();
                lines.extend(versions.pop_front());
                later.push(versions);
            }
            Item::Tool(tool) => {
                let mut told: VecDeque<_> = tool.live(dice).into();
                lines.extend(told.pop_front());
                later.push(told);
            }
        }
    }
    lines.extend(later.into_iter().flatten());
    lines
}

/// Returns the lines of the replay, once all turns have run.
pub fn replay(history: &mut History) -> Vec<String> {
    let History { turns, dice } = history;
    let mut lines = Vec::new();
    for turn in turns {
        for block in &turn.blocks {
            let id = turn.user_id.as_deref();
            if let Some(text) = block["text"].as_str() {
                pieces(dice, "user_message_chunk", id, text, &mut lines);
            } else {
                let mut update = message(id);
                update.insert("content".into(), block.clone());
                lines.push(line("user_message_chunk", update));
            }
        }
        let mut later = VecDeque::new();
        for item in &turn.items {
            noise(dice, &mut lines);
            if dice.percent(50) {
                lines.extend(later.pop_front());
            }
            match item {
                Item::Text { kind, id, text } => {
                    pieces(dice, kind, id.as_deref(), text, &mut lines);
                }
                Item::Whole(update) => lines.push(whole(update)),
                // A replay has the last version, or all of them.
                Item::Plan(versions) => {
                    let from = if dice.percent(50) {
                        0
                    } else {
                        versions.len() - 1
                    };
                    lines.extend(versions[from..].iter().map(whole));
                }
                Item::Tool(tool) => {
                    let mut told = tool.replayed(dice).into_iter();
                    lines.extend(told.next());
                    later.extend(told);
                }
            }
        }
        lines.extend(later);
    }
    lines
}

impl Tool {
    fn update(&self, kind: &str, mut facts: Map<String, Value>, status: Option<&str>) -> String {
        facts.insert("toolCallId".into(), self.id.as_str().into());
        if let Some(status) = status {
            facts.insert("status".into(), status.into());
        }
        line(kind, facts)
    }

    /// Returns the fields of the first report, which decide the tool's name.
    fn named(&self, more: impl Fn(&str) -> bool) -> Map<String, Value> {
        let all = self.facts.clone().into_iter();
        all.filter(|(name, _)| ["name", "kind"].contains(&name.as_str()) || more(name))
            .collect()
    }

    /// Returns the replay of a call, in one update or in two.
    fn replayed(&self, dice: &mut Dice) -> Vec<String> {
        if dice.percent(40) {
            return vec![self.update("tool_call", self.facts.clone(), self.status)];
        }
        let begin = |name: &str| ["title", "rawInput", "locations"].contains(&name);
        let mut rest = self.facts.clone();
        rest.retain(|name, _| !begin(name));
        let pending = self.status.map(|_| "pending");
        vec![
            self.update("tool_call", self.named(begin), pending),
            self.update("tool_call_update", rest, self.status),
        ]
    }

    /// Returns the live updates of a call: a first report, changes, perhaps a permission request, and the end
    /// if there is one.
    fn live(&self, dice: &mut Dice) -> Vec<String> {
        let pending = self.status.map(|_| "pending");
        let mut lines = Vec::new();
        // A refused call without further updates has to be complete in its first report.
        if self.question == Some(Question::Refused) && self.status == Some("pending") {
            lines.push(self.update("tool_call", self.facts.clone(), pending));
            lines.push(self.ask(dice, Question::Refused));
            return lines;
        }
        let draft = |dice: &mut Dice, name: &str, value: &Value| match (name, dice.below(4)) {
            (_, 0) => Some(value.clone()),
            ("rawInput", 1) => Some(json!({})),
            ("rawInput", 2) => Some(json!({ "co": 1 })),
            ("title", 1) => Some("…".into()),
            ("content", 1) => Some(json!([])),
            ("_meta", 1) => Some(json!({ "vendor": value["vendor"] })),
            _ => None,
        };
        let drafts = |dice: &mut Dice, mut facts: Map<String, Value>| {
            for (name, value) in &self.facts {
                if let Some(value) = draft(dice, name, value) {
                    facts.insert(name.clone(), value);
                }
            }
            facts
        };
        let mut first = self.named(|_| false);
        first.extend(
            drafts(dice, Map::new())
                .into_iter()
                .filter(|(name, _)| name != "kind"),
        );
        lines.push(self.update("tool_call", first, pending));
        let mut asked = self.question.is_none();
        for _ in 0..dice.below(4) {
            if !asked && dice.percent(30) {
                lines.extend(self.question.map(|question| self.ask(dice, question)));
                asked = true;
            }
            let runs = self.status.filter(|status| *status != "pending");
            let status = runs.filter(|_| dice.percent(50)).map(|_| "in_progress");
            let facts = drafts(dice, Map::new());
            lines.push(self.update("tool_call_update", facts, status));
        }
        if !asked {
            lines.extend(self.question.map(|question| self.ask(dice, question)));
        }
        let mut end = self.facts.clone();
        let mut late = Map::new();
        if dice.percent(20) {
            for name in ["locations", "_meta", "rawOutput"] {
                late.extend(end.remove_entry(name));
            }
        }
        lines.push(self.update("tool_call_update", end, self.status));
        if !late.is_empty() {
            // An ended call does not run again, whatever status follows.
            let ended = self
                .status
                .filter(|status| ["completed", "failed"].contains(status));
            let again = ended.filter(|_| dice.percent(20)).map(|_| "in_progress");
            lines.push(self.update("tool_call_update", late, again));
        }
        lines
    }

    fn ask(&self, dice: &mut Dice, question: Question) -> String {
        let mut call = json!({ "toolCallId": self.id });
        if let Some(input) = self.facts.get("rawInput").filter(|_| dice.percent(50)) {
            call["rawInput"] = input.clone();
        }
        if self.status.is_some() && dice.percent(50) {
            call["status"] = "pending".into();
        }
        let kinds: &[&str] = match question {
            Question::Allowed => &["allow_always", "allow_once", "reject_once"],
            Question::Refused => &["reject_once"],
        };
        let options: Value = kinds
            .iter()
            .map(|kind| json!({ "optionId": kind, "name": kind, "kind": kind }))
            .collect();
        json!({ "jsonrpc": "2.0", "id": 5, "method": "session/request_permission",
            "params": { "sessionId": SESSION, "toolCall": call, "options": options } })
        .to_string()
    }
}

fn line(kind: &str, mut update: Map<String, Value>) -> String {
    update.insert("sessionUpdate".into(), kind.into());
    whole(&update.into())
}

fn whole(update: &Value) -> String {
    told(&update.to_string())
}

/// Returns the line of an update.
fn told(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{SESSION}","update":{update}}}}}"#
    )
}

/// Writes a text as a whole or cut at any position, even inside a character.
fn pieces(dice: &mut Dice, kind: &str, id: Option<&str>, text: &str, lines: &mut Vec<String>) {
    let id = id.map_or(String::new(), |id| format!(r#","messageId":"{id}""#));
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut rest = &units[..];
    loop {
        let len = if dice.percent(50) {
            rest.len()
        } else {
            dice.below(rest.len() + 1)
        };
        let (piece, after) = rest.split_at(len);
        let json = match String::from_utf16(piece) {
            Ok(text) if dice.percent(70) => json!(text).to_string(),
            _ => {
                let escape = |json: String, unit: &u16| format!("{json}\\u{unit:04x}");
                piece.iter().fold("\"".to_owned(), escape) + "\""
            }
        };
        lines.push(told(&format!(
            r#"{{"sessionUpdate":"{kind}"{id},"content":{{"type":"text","text":{json}}}}}"#
        )));
        if after.is_empty() {
            return;
        }
        if kind != "user_message_chunk" {
            noise(dice, lines);
        }
        rest = after;
    }
}

/// Adds a session update that becomes no message, or nothing.
fn noise(dice: &mut Dice, lines: &mut Vec<String>) {
    let update = match dice.below(20) {
        0 => json!({ "sessionUpdate": "usage_update", "used": dice.below(9), "size": 9 }),
        1 => json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" }),
        2 => json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }),
        3 => json!({ "sessionUpdate": "notice", "title": "!" }),
        _ => return,
    };
    lines.push(whole(&update));
}
