//! The messages of a session as people read them: texts, tools with their results, plans, decisions and errors.

use crate::cli::columns::one_line;
use acpipe_core::log::MessageFacts;
use acpipe_model::answer_file::ReceivedFile;
use acpipe_protocol::wire::AnswerFile;
use serde_json::Value;
use std::collections::HashMap;

/// Message as it is read.
#[derive(Debug, Default)]
pub struct ConversationEntry {
    pub role: Author,
    /// Time, RFC 3339.
    pub at: Option<String>,
    pub items: Vec<ConversationItem>,
}

/// Author of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Author {
    User,
    #[default]
    Agent,
    /// Any other, such as `system`.
    Other(String),
}

/// Part of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum ConversationItem {
    Text(String),
    Thought(String),
    File(AnswerFile),
    Tool(ConversationCall),
    /// Entries of a plan, with their states.
    Plan(Vec<(PlanEntryStatus, String)>),
    /// Decision about a request that belongs to no tool call that is shown.
    Decision(PermissionDecision),
    /// Question of the agent, and its outcome.
    Question(String, String),
    /// Note of acpipe.
    Note(String),
    Error(String),
}

/// Call of a tool.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConversationCall {
    pub name: String,
    /// Empty if it repeats the name.
    pub title: String,
    pub outcome: CallStatus,
    /// Command, or arguments as JSON; empty if the title has it.
    pub input: String,
    pub output: String,
    /// Files of the call, with the line if there is one.
    pub locations: Vec<(String, Option<u64>)>,
    pub decision: Option<PermissionDecision>,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallStatus {
    Done,
    Failed,
    Refused,
    #[default]
    Unfinished,
}

impl CallStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Unfinished => "not finished",
        }
    }
}

/// State of an entry of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanEntryStatus {
    Pending,
    Running,
    Done,
}

impl PlanEntryStatus {
    /// Returns the mark of a list item.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::Running => "[~]",
            Self::Done => "[x]",
        }
    }
}

/// Decision about a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionDecision {
    pub is_allowed: bool,
    /// Reason in a sentence.
    pub reason: String,
}

impl ConversationEntry {
    /// Reads a UI message.
    pub fn of(message: &Value, facts: MessageFacts) -> Self {
        let parts = || message["parts"].as_array().into_iter().flatten();
        let mut decisions: HashMap<&str, PermissionDecision> = HashMap::new();
        for part in parts().filter(|part| part["type"] == "data-permission") {
            if let Some(decision) = decision(&part["data"]) {
                let call = part["data"]["toolCallId"].as_str().unwrap_or_default();
                decisions.insert(call, decision);
            }
        }
        let mut items: Vec<ConversationItem> = Vec::new();
        for part in parts() {
            let call = part["toolCallId"].as_str().unwrap_or_default();
            items.extend(match part["type"].as_str() {
                Some("dynamic-tool") => {
                    let decision = decisions.remove(call);
                    Some(ConversationItem::Tool(ConversationCall::of(part, decision)))
                }
                _ => item(part),
            });
        }
        for part in parts().filter(|part| part["type"] == "data-permission") {
            let call = part["data"]["toolCallId"].as_str().unwrap_or_default();
            items.extend(decisions.remove(call).map(ConversationItem::Decision));
        }
        let errors = facts.summary["errors"].as_array().into_iter().flatten();
        let errors = errors.filter_map(|error| error["message"].as_str());
        items.extend(errors.map(|error| ConversationItem::Error(error.to_owned())));
        if facts.summary["stopReason"] == "cancelled" {
            items.push(ConversationItem::Note("the turn was cancelled".to_owned()));
        }
        Self {
            role: match message["role"].as_str().unwrap_or_default() {
                "user" => Author::User,
                "assistant" => Author::Agent,
                other => Author::Other(other.to_owned()),
            },
            at: facts.at,
            items,
        }
    }
}

/// Reads a part other than a tool call; `None` for parts that are not shown.
fn item(part: &Value) -> Option<ConversationItem> {
    let text = |field: &str| part[field].as_str().unwrap_or_default();
    let data = &part["data"];
    match text("type") {
        "text" => some_text(text("text")).map(ConversationItem::Text),
        "reasoning" => some_text(text("text")).map(ConversationItem::Thought),
        "file" | "source-url" | "source-document" => {
            ReceivedFile::of_chunk(part).map(|file| ConversationItem::File(file.about))
        }
        "data-plan" => {
            let entries = plan_entries(data);
            (!entries.is_empty()).then_some(ConversationItem::Plan(entries))
        }
        "data-question" => {
            let question = data["message"].as_str()?.to_owned();
            let outcome = data["reason"].as_str().or(data["action"].as_str());
            Some(ConversationItem::Question(
                question,
                outcome.unwrap_or("not answered").to_owned(),
            ))
        }
        "data-recovery" if data["memory"] == "lost" => {
            let note = "the agent does not remember the messages above";
            Some(ConversationItem::Note(note.to_owned()))
        }
        _ => None,
    }
}

fn some_text(text: &str) -> Option<String> {
    let text = text.trim_end();
    (!text.trim_start().is_empty()).then(|| text.to_owned())
}

/// Returns the entries of a plan; none if the plan has another form, or does not exist any more.
pub fn plan_entries(data: &Value) -> Vec<(PlanEntryStatus, String)> {
    let entries = data["entries"].as_array().into_iter().flatten();
    entries.map(plan_entry).collect()
}

fn plan_entry(entry: &Value) -> (PlanEntryStatus, String) {
    let progress = match entry["status"].as_str() {
        Some("completed") => PlanEntryStatus::Done,
        Some("in_progress") => PlanEntryStatus::Running,
        _ => PlanEntryStatus::Pending,
    };
    let text = entry["content"].as_str().unwrap_or_default();
    (progress, one_line(text))
}

fn decision(data: &Value) -> Option<PermissionDecision> {
    let is_allowed = data["approved"].as_bool()?;
    let reason = match data["reason"].as_str() {
        Some(reason) => one_line(reason),
        None if is_allowed => "allowed".to_owned(),
        None => "refused".to_owned(),
    };
    Some(PermissionDecision { is_allowed, reason })
}

impl ConversationCall {
    fn of(part: &Value, decision: Option<PermissionDecision>) -> Self {
        let line = |field: &str| one_line(part[field].as_str().unwrap_or_default());
        let (name, mut title) = (line("toolName"), line("title"));
        if title == name {
            title.clear();
        }
        let outcome = match part["state"].as_str() {
            Some("output-available") if part["preliminary"] != true => CallStatus::Done,
            Some("output-error") => CallStatus::Failed,
            Some("output-denied") => CallStatus::Refused,
            _ => CallStatus::Unfinished,
        };
        let input = input_text(&part["input"]);
        let locations = part["toolMetadata"]["acp"]["locations"].as_array();
        let location = |location: &Value| {
            let path = location["path"].as_str()?.to_owned();
            Some((path, location["line"].as_u64()))
        };
        Self {
            input: if one_line(&input) == title {
                String::new()
            } else {
                input
            },
            output: match outcome {
                CallStatus::Failed => part["errorText"].as_str().unwrap_or_default().to_owned(),
                _ => output_text(&part["output"]),
            },
            locations: locations
                .into_iter()
                .flatten()
                .filter_map(location)
                .collect(),
            name,
            title,
            outcome,
            decision,
        }
    }
}

/// Returns the command of an input, else its arguments as JSON.
fn input_text(input: &Value) -> String {
    match (&input["command"], input) {
        (Value::String(command), _) => command.clone(),
        (_, Value::Null) => String::new(),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Object(members)) if members.is_empty() => String::new(),
        (_, input) => input.to_string(),
    }
}

/// Returns the text of a result: its content, else its raw output.
fn output_text(output: &Value) -> String {
    let content = output["content"].as_array().into_iter().flatten();
    let content = content.filter_map(|block| match block["type"].as_str()? {
        "content" => block["content"]["text"].as_str().map(str::to_owned),
        "diff" => Some(format!("changed {}", block["path"].as_str()?)),
        _ => None,
    });
    let content: Vec<String> = content.collect();
    if !content.is_empty() {
        return content.join("\n");
    }
    let raw = &output["rawOutput"];
    let texts = [&output["terminalOutput"], raw, &raw["output"], output];
    if let Some(text) = texts.into_iter().find_map(Value::as_str) {
        return text.to_owned();
    }
    match raw {
        Value::Null => String::new(),
        raw => raw.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_become_items() {
        let cases = [
            (
                json!({"type": "text", "text": "hi\n"}),
                Some(ConversationItem::Text("hi".to_owned())),
            ),
            (json!({"type": "text", "text": " \n"}), None),
            (
                json!({"type": "reasoning", "text": "hm"}),
                Some(ConversationItem::Thought("hm".to_owned())),
            ),
            (
                json!({"type": "file", "filename": "a.png", "mediaType": "image/png"}),
                Some(ConversationItem::File(AnswerFile {
                    media_type: Some("image/png".to_owned()),
                    name: Some("a.png".to_owned()),
                    uri: None,
                    is_link: true,
                    size: None,
                    path: None,
                })),
            ),
            (
                json!({"type": "data-recovery", "data": {"memory": "kept"}}),
                None,
            ),
            (
                json!({"type": "data-plan", "data": {"entries": [
                    {"content": "a", "status": "completed"}, {"content": "b\nc", "status": "in_progress"}, {}]}}),
                Some(ConversationItem::Plan(vec![
                    (PlanEntryStatus::Done, "a".to_owned()),
                    (PlanEntryStatus::Running, "b c".to_owned()),
                    (PlanEntryStatus::Pending, String::new()),
                ])),
            ),
            (json!({"type": "data-plan", "data": {"entries": []}}), None),
            (
                json!({"type": "data-question", "data": {"message": "Which?", "action": "decline"}}),
                Some(ConversationItem::Question(
                    "Which?".to_owned(),
                    "decline".to_owned(),
                )),
            ),
            (json!(7), None),
        ];
        for (part, want) in cases {
            assert_eq!(item(&part), want, "{part}");
        }
    }

    #[test]
    fn tool_call_has_its_input_output_and_decision() {
        let message = json!({"role": "assistant", "parts": [
            {"type": "data-permission", "id": "q", "data": {"toolCallId": "t", "approved": true, "reason": "allowed by you"}},
            {"type": "dynamic-tool", "toolCallId": "t", "toolName": "bash", "title": "bash", "state": "output-available",
             "input": {"command": "ls"}, "output": {"content": [{"type": "content", "content": {"type": "text", "text": "a\nb"}}]},
             "toolMetadata": {"acp": {"locations": [{"path": "/a", "line": 3}, {"path": "/b"}]}}},
            {"type": "dynamic-tool", "toolCallId": "u", "toolName": "read", "title": "a\nb", "state": "output-error",
             "input": {}, "errorText": "no"},
            {"type": "data-permission", "id": "r", "data": {"toolCallId": "v", "approved": false}},
        ]});
        let facts = MessageFacts {
            at: None,
            summary: json!({"stopReason": "cancelled", "errors": [{"message": "broken"}]}),
        };
        let entry = ConversationEntry::of(&message, facts);
        let want = [
            ConversationItem::Tool(ConversationCall {
                name: "bash".to_owned(),
                outcome: CallStatus::Done,
                input: "ls".to_owned(),
                output: "a\nb".to_owned(),
                locations: vec![("/a".to_owned(), Some(3)), ("/b".to_owned(), None)],
                decision: Some(PermissionDecision {
                    is_allowed: true,
                    reason: "allowed by you".to_owned(),
                }),
                ..ConversationCall::default()
            }),
            ConversationItem::Tool(ConversationCall {
                name: "read".to_owned(),
                title: "a b".to_owned(),
                outcome: CallStatus::Failed,
                output: "no".to_owned(),
                ..ConversationCall::default()
            }),
            ConversationItem::Decision(PermissionDecision {
                is_allowed: false,
                reason: "refused".to_owned(),
            }),
            ConversationItem::Error("broken".to_owned()),
            ConversationItem::Note("the turn was cancelled".to_owned()),
        ];
        assert_eq!(entry.items, want);
    }

    #[test]
    fn outputs_of_agents_are_read() {
        let cases = [
            (json!(null), ""),
            (json!("a"), "a"),
            (json!({"rawOutput": "a"}), "a"),
            (json!({"rawOutput": {"output": "a", "exit": 0}}), "a"),
            (json!({"rawOutput": {"n": 1}}), r#"{"n":1}"#),
            (json!({"content": [], "terminalOutput": "a"}), "a"),
            (
                json!({"content": [{"type": "diff", "path": "/a", "newText": "x"}]}),
                "changed /a",
            ),
        ];
        for (output, want) in cases {
            assert_eq!(output_text(&output), want, "{output}");
        }
    }
}
