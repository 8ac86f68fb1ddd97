//! Prompts that the agent repeats at the beginning of its turn: a replay has each of them once.

use crate::acp_history::updates_of;
use acpipe_model::acp_notification::AcpNotification;
use serde_json::{Value, json};

/// Maximum size of the updates that are held back, in bytes.
const MAX_HELD: usize = 1 << 20;

/// A prompt before the first updates of its turn, and those of them that may repeat it.
#[derive(Debug)]
pub(super) struct PromptEcho {
    prompt: Value,
    held: Vec<HeldUpdate>,
    size: usize,
}

#[derive(Debug)]
struct HeldUpdate {
    text: String,
    /// `None` for an update object; otherwise `true` if the session of the line is the client's.
    line: Option<bool>,
    /// Content block of a message of the user.
    block: Option<Value>,
    /// Metadata of the stored message, which its first update has.
    metadata: Value,
}

/// How an agent has repeated a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repetition {
    None,
    /// With all its blocks.
    Whole,
    /// With other text around it, or without some of its blocks.
    Partial,
}

impl PromptEcho {
    /// Takes the stored message of a prompt.
    pub(super) fn new(prompt: Value) -> Self {
        Self {
            prompt,
            held: Vec::new(),
            size: 0,
        }
    }

    /// Holds an update back, unless it is the first one of the answer.
    pub(super) fn holds(&mut self, update: AcpNotification<'_>) -> bool {
        let (text, line, at) = match update {
            AcpNotification::Update(json) => (std::str::from_utf8(json).ok(), None, ""),
            AcpNotification::Line { line, session } => {
                (Some(line), Some(session.is_some()), "/params/update")
            }
        };
        let Some(text) = text.filter(|text| self.size + text.len() <= MAX_HELD) else {
            return false;
        };
        let mut message: Value = serde_json::from_str(text).unwrap_or_default();
        let Some(update) = message.pointer_mut(at) else {
            return false;
        };
        let block = match update["sessionUpdate"].as_str().unwrap_or_default() {
            "user_message_chunk" if line != Some(false) => Some(update["content"].take()),
            // The state of the session may be reported before the prompt is repeated.
            "available_commands_update"
            | "config_option_update"
            | "current_mode_update"
            | "session_info_update"
            | "usage_update" => None,
            _ => return false,
        };
        self.size += text.len();
        self.held.push(HeldUpdate {
            text: text.to_owned(),
            line,
            block,
            metadata: update["_meta"]["acpipe"]["metadata"].take(),
        });
        true
    }

    /// Sends the prompt, and the updates that were held back: what the agent has repeated is left out. A prompt that is
    /// repeated as a whole is sent as the agent did.
    pub(super) fn send(self, put: &mut dyn FnMut(AcpNotification<'_>)) {
        let repetition = self.repetition();
        if repetition != Repetition::Whole {
            updates_of(&self.prompt, &mut |json| put(AcpNotification::Update(json)));
        }
        for update in &self.held {
            let text = &update.text;
            if repetition == Repetition::Partial && update.block.is_some() {
                if !update.metadata.is_null() {
                    let meta = json!({ "acpipe": { "metadata": update.metadata } });
                    let rest = json!({ "sessionUpdate": "session_info_update", "_meta": meta });
                    put(AcpNotification::Update(rest.to_string().as_bytes()));
                }
                continue;
            }
            put(match update.line {
                None => AcpNotification::Update(text.as_bytes()),
                Some(is_own) => AcpNotification::Line {
                    line: text,
                    session: is_own.then_some(""),
                },
            });
        }
    }

    fn repetition(&self) -> Repetition {
        let parts = self.prompt["parts"].as_array();
        let parts = parts.map_or(&[][..], Vec::as_slice);
        let (own, own_others) = joined(parts);
        let blocks: Vec<&Value> = self
            .held
            .iter()
            .filter_map(|held| held.block.as_ref())
            .collect();
        if blocks.is_empty() {
            return Repetition::None;
        }
        let (repeated, others) = joined(blocks);
        let (own, repeated) = (own.trim(), repeated.trim());
        if own == repeated && own_others == others {
            return Repetition::Whole;
        }
        // Instructions and the earlier conversation precede a prompt, files that it names follow it.
        let is_within = repeated.ends_with(own) || repeated.starts_with(own);
        if !own.is_empty() && is_within {
            return Repetition::Partial;
        }
        Repetition::None
    }
}

/// Returns the joined text of content blocks or parts, and the number of those without text.
fn joined<'v>(blocks: impl IntoIterator<Item = &'v Value>) -> (String, usize) {
    let (mut text, mut others) = (String::new(), 0);
    for block in blocks {
        match block["text"].as_str().filter(|_| block["type"] == "text") {
            Some(piece) => text.push_str(piece),
            None => others += 1,
        }
    }
    (text, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kinds and texts of a replay of the prompt `hello` with these updates in its turn.
    fn replayed(parts: &Value, updates: &[Value]) -> Vec<String> {
        let mut sent = Vec::new();
        let mut put = |update: AcpNotification<'_>| {
            let mut text = Vec::new();
            update.write("\"s\"", &mut text);
            let message: Value = serde_json::from_slice(&text).unwrap();
            let update = &message["params"]["update"];
            let kind = update["sessionUpdate"].as_str().unwrap();
            let shown = update["content"]["text"].as_str().unwrap_or_default();
            let id = update["messageId"].as_str().unwrap_or_default();
            sent.push(format!("{kind} {shown}{id}"));
        };
        let mut echo = Some(PromptEcho::new(json!({ "role": "user", "parts": parts })));
        for update in updates {
            let text = update.to_string();
            let update = AcpNotification::Update(text.as_bytes());
            if echo.as_mut().is_some_and(|echo| echo.holds(update)) {
                continue;
            }
            if let Some(echo) = echo.take() {
                echo.send(&mut put);
            }
            put(update);
        }
        if let Some(echo) = echo {
            echo.send(&mut put);
        }
        sent
    }

    fn piece(kind: &str, text: &str) -> Value {
        json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text }, "messageId": "#" })
    }

    #[test]
    fn prompt_is_replayed_once() {
        let text = json!([{ "type": "text", "text": "hello" }]);
        let picture = json!([{ "type": "text", "text": "hello" }, { "type": "data-acp", "data": { "type": "image" } }]);
        let (user, answer) = ("user_message_chunk", piece("agent_message_chunk", "a"));
        let usage = json!({ "sessionUpdate": "usage_update" });
        let (own, theirs) = ("user_message_chunk hello", "user_message_chunk hello#");
        let end = "agent_message_chunk a#";
        let cases: [(&Value, &[Value], &[&str]); 9] = [
            (&text, &[], &[own]),
            (&text, std::slice::from_ref(&answer), &[own, end]),
            (
                &text,
                &[piece(user, "hello"), answer.clone()],
                &[theirs, end],
            ),
            (&text, &[piece(user, "hello")], &[theirs]),
            (
                &text,
                &[
                    piece(user, "hel"),
                    usage.clone(),
                    piece(user, "lo"),
                    answer.clone(),
                ],
                &[
                    "user_message_chunk hel#",
                    "usage_update ",
                    "user_message_chunk lo#",
                    end,
                ],
            ),
            // The agent repeats the conversation that precedes the prompt, too.
            (
                &text,
                &[usage, piece(user, "before\nhello"), answer.clone()],
                &[own, "usage_update ", end],
            ),
            // Another message of the user.
            (
                &text,
                &[piece(user, "other"), answer.clone()],
                &[own, "user_message_chunk other#", end],
            ),
            (
                &text,
                &[answer.clone(), piece(user, "hello")],
                &[own, end, theirs],
            ),
            (
                &picture,
                &[piece(user, "hello"), answer.clone()],
                &[own, "user_message_chunk ", end],
            ),
        ];
        for (parts, updates, want) in cases {
            assert_eq!(replayed(parts, updates), want, "{updates:?}");
        }
    }

    #[test]
    fn metadata_of_a_repetition_that_is_left_out_stays() {
        let mut echo = PromptEcho::new(json!({ "parts": [{ "type": "text", "text": "b" }] }));
        let mut update = piece("user_message_chunk", "a b");
        update["_meta"] = json!({ "acpipe": { "metadata": { "m": 1 } } });
        assert!(echo.holds(AcpNotification::Update(update.to_string().as_bytes())));
        let mut sent = Vec::new();
        echo.send(&mut |update| update.write("\"s\"", &mut sent));
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.contains(r#""metadata":{"m":1}"#), "{sent}");
    }
}
