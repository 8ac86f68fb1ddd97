//! Invariants of the chunks of every turn, whatever the agent does.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Chunk types without rules of their own in this check.
const PLAIN_CHUNK_TYPES: &[&str] = &[
    "message-metadata",
    "source-url",
    "source-document",
    "file",
    "reasoning-file",
    "data-plan",
    "data-permission",
    "data-question",
    "data-terminal",
    "data-tool-call",
    "data-user-message",
    "data-session",
    "data-notice",
    "data-compaction",
    "data-subagent",
    "data-session-message",
    "data-recovery",
    "data-acp",
    "data-command",
    "data-claude",
    "data-command",
    "data-openai",
    "data-ui-stream",
    "data-structured-output",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Announced,
    Available,
    Preliminary,
    Completed,
    Failed,
    Denied,
}

#[derive(Default)]
struct Message {
    step_open: bool,
    /// Open blocks: id → `text` or `reasoning`.
    open: BTreeMap<String, &'static str>,
    used: BTreeSet<String>,
    tools: BTreeMap<String, (Tool, String)>,
    /// Open approvals: approval id → tool call id; removed when answered.
    asked: BTreeMap<String, String>,
    /// Tool calls with an approval request, and the answer if there is one.
    approvals: BTreeMap<String, Option<bool>>,
    text: String,
    ending: Option<String>,
}

/// Checks the chunks of one turn. The error names the first violation.
pub fn check(chunks: &[Value]) -> Result<(), String> {
    read(chunks).map(|_| ())
}

/// Checks the chunks of one turn, and that its summary agrees with them.
pub fn check_with_summary(chunks: &[Value], summary: &Value) -> Result<(), String> {
    let message = read(chunks)?;
    let same = |what: &str, told: &Value, seen: &Value| {
        (told == seen).then_some(()).ok_or(format!(
            "summary's {what} is {told}, the chunks say {seen}: {summary}"
        ))
    };
    // After a retry of the prompt, the summary holds only the text of the last attempt, or its error.
    let told = summary["text"].as_str().ok_or("text is missing")?;
    let last = message.text.ends_with(told) || summary["errors"][0]["message"] == told;
    if summary["attempts"] == 1 || !last {
        same("text", &told.into(), &message.text.into())?;
    }
    same("messageId", &summary["messageId"], &chunks[0]["messageId"])?;
    let failed = summary["errors"].as_array().is_some_and(|e| !e.is_empty());
    same("isError", &summary["isError"], &failed.into())?;
    let finish = chunks.last().unwrap();
    match message.ending.as_deref() {
        Some("error") => {
            same("stopReason", &summary["stopReason"], &"error".into())?;
            same("finishReason", &summary["finishReason"], &"error".into())?;
            same(
                "errors",
                &summary["errors"][0]["message"],
                &finish["errorText"],
            )?;
        }
        Some("abort") => same("stopReason", &summary["stopReason"], &"cancelled".into())?,
        _ => same(
            "finishReason",
            &summary["finishReason"],
            &finish["finishReason"],
        )?,
    }
    let told: BTreeMap<String, String> = summary["toolCalls"]
        .as_array()
        .ok_or("toolCalls is no list")?
        .iter()
        .map(|c| (text(c, "callId"), text(c, "name")))
        .collect();
    let shown = message.tools.iter();
    let shown: BTreeMap<String, String> = shown
        .map(|(id, (_, name))| (id.clone(), name.clone()))
        .collect();
    if told != shown {
        return Err(format!("summary's toolCalls {told:?}, chunks' {shown:?}"));
    }
    for (id, (tool, _)) in &message.tools {
        let results = summary["toolResults"].as_array().ok_or("no toolResults")?;
        let of: Vec<_> = results.iter().filter(|r| r["callId"] == **id).collect();
        let is_error = *tool != Tool::Completed;
        if of.len() != 1 || of[0]["isError"] != is_error {
            return Err(format!("tool {id} is {tool:?}, its results are {of:?}"));
        }
    }
    if !(summary["overheadMs"].as_f64().is_some_and(|ms| ms >= 0.0)
        && summary["durationMs"].is_u64())
    {
        return Err(format!("times are missing: {summary}"));
    }
    Ok(())
}

fn read(chunks: &[Value]) -> Result<Message, String> {
    let mut message = Message::default();
    for (n, chunk) in chunks.iter().enumerate() {
        message
            .take(n, chunk)
            .map_err(|why| format!("chunk {n}: {why}: {chunk}"))?;
    }
    match message.ending {
        Some(_) => Ok(message),
        None => Err(format!(
            "the stream of {} chunks has no ending",
            chunks.len()
        )),
    }
}

fn text(chunk: &Value, field: &str) -> String {
    chunk[field].as_str().unwrap_or_default().to_owned()
}

fn need(chunk: &Value, field: &str) -> Result<String, String> {
    let found = chunk[field].as_str().filter(|s| !s.is_empty());
    found
        .map(str::to_owned)
        .ok_or_else(|| format!("{field} is missing"))
}

fn holds(what: &str, is: bool) -> Result<(), String> {
    is.then_some(()).ok_or_else(|| what.to_owned())
}

impl Message {
    fn take(&mut self, n: usize, chunk: &Value) -> Result<(), String> {
        let kind = need(chunk, "type")?;
        holds("something follows the ending", self.ending.is_none())?;
        holds(
            "start is the first chunk and only that",
            (n == 0) == (kind == "start"),
        )?;
        holds(
            "start-step is the second chunk, or begins another step",
            if n == 1 {
                kind == "start-step"
            } else {
                kind != "start-step" || !self.step_open
            },
        )?;
        for (field, value) in chunk.as_object().ok_or("no object")? {
            holds(
                &format!("{field} is null"),
                !value.is_null() || ["input", "output"].contains(&field.as_str()),
            )?;
        }
        let is_ending = matches!(kind.as_str(), "finish" | "abort" | "error");
        if n > 1 {
            holds(
                "after finish-step only metadata and the ending come",
                self.step_open
                    || is_ending
                    || ["message-metadata", "start-step"].contains(&kind.as_str()),
            )?;
        }
        match kind.as_str() {
            "start" => need(chunk, "messageId").map(|_| ()),
            "start-step" => {
                self.step_open = true;
                Ok(())
            }
            "finish-step" => self.finish_step(),
            "finish" | "abort" | "error" => {
                holds("the step is not finished", !self.step_open)?;
                self.is_settled()?;
                need(
                    chunk,
                    match kind.as_str() {
                        "finish" => "finishReason",
                        "abort" => "reason",
                        _ => "errorText",
                    },
                )?;
                self.ending = Some(kind);
                Ok(())
            }
            "text-start" => self.block_start(chunk, "text"),
            "text-delta" => self.block_delta(chunk, "text"),
            "text-end" => self.block_end(chunk, "text"),
            "reasoning-start" => self.block_start(chunk, "reasoning"),
            "reasoning-delta" => self.block_delta(chunk, "reasoning"),
            "reasoning-end" => self.block_end(chunk, "reasoning"),
            tool if tool.starts_with("tool-") => self.tool(&kind, chunk),
            other => holds("no such type", PLAIN_CHUNK_TYPES.contains(&other)),
        }
    }

    fn finish_step(&mut self) -> Result<(), String> {
        self.step_open = false;
        holds(
            &format!("blocks are open: {:?}", self.open),
            self.open.is_empty(),
        )
    }

    /// A tool call may outlast its step, but not the message.
    fn is_settled(&self) -> Result<(), String> {
        holds("a question is not answered", self.asked.is_empty())?;
        let open = self
            .tools
            .iter()
            .find(|(_, (t, _))| !matches!(t, Tool::Completed | Tool::Failed | Tool::Denied));
        holds(&format!("a tool is not settled: {open:?}"), open.is_none())
    }

    fn block_start(&mut self, chunk: &Value, kind: &'static str) -> Result<(), String> {
        let id = need(chunk, "id")?;
        holds("another block is open", self.open.is_empty())?;
        holds("the id was used before", self.used.insert(id.clone()))?;
        self.open.insert(id, kind);
        Ok(())
    }

    fn block_delta(&mut self, chunk: &Value, kind: &str) -> Result<(), String> {
        let id = need(chunk, "id")?;
        holds(
            "no such block is open",
            self.open.get(&id).is_some_and(|k| *k == kind),
        )?;
        let delta = chunk["delta"].as_str().ok_or("delta is no text")?;
        if kind == "text" {
            self.text.push_str(delta);
        }
        Ok(())
    }

    fn block_end(&mut self, chunk: &Value, kind: &str) -> Result<(), String> {
        let id = need(chunk, "id")?;
        holds(
            "no such block is open",
            self.open.remove(&id).is_some_and(|k| k == kind),
        )
    }

    fn tool(&mut self, kind: &str, chunk: &Value) -> Result<(), String> {
        if kind == "tool-approval-response" {
            let id = need(chunk, "approvalId")?;
            let tool = self.asked.remove(&id).ok_or("nothing was asked")?;
            let approved = chunk["approved"].as_bool().ok_or("approved is missing")?;
            self.approvals.insert(tool, Some(approved));
            return need(chunk, "reason").map(|_| ());
        }
        let id = need(chunk, "toolCallId")?;
        let now = self.tools.get(&id).map(|(t, _)| *t);
        if !matches!(
            kind,
            "tool-input-delta" | "tool-output-denied" | "tool-approval-request"
        ) {
            let flags = chunk["dynamic"] == true && chunk["providerExecuted"] == true;
            holds("dynamic and providerExecuted are true", flags)?;
            if let Some(metadata) = chunk.get("toolMetadata") {
                holds("toolMetadata is no object", metadata.is_object())?;
            }
        }
        let refused = self.approvals.get(&id) == Some(&Some(false));
        let next = match kind {
            "tool-input-start" => {
                holds("the call was shown before", now.is_none())?;
                Tool::Announced
            }
            "tool-input-available" => {
                holds("input is missing", chunk.get("input").is_some())?;
                holds("input after a question", !self.approvals.contains_key(&id))?;
                holds(
                    "input after an output",
                    matches!(now, None | Some(Tool::Announced | Tool::Available)),
                )?;
                Tool::Available
            }
            "tool-approval-request" => {
                holds(
                    "a question before the input or after an output",
                    now == Some(Tool::Available),
                )?;
                let first = self.approvals.insert(id.clone(), None).is_none();
                holds("a second question", first)?;
                let approval = need(chunk, "approvalId")?;
                // In profile 6 the client sets the answer itself: no chunk follows.
                if chunk.get("isAutomatic").is_some() {
                    self.asked.insert(approval, id);
                }
                return Ok(());
            }
            "tool-output-available" => {
                holds("output is missing", chunk.get("output").is_some())?;
                holds("the tool was refused", !refused)?;
                if chunk["preliminary"] == true {
                    holds(
                        "a preliminary output out of order",
                        matches!(now, Some(Tool::Available | Tool::Preliminary)),
                    )?;
                    Tool::Preliminary
                } else {
                    holds(
                        "an output out of order",
                        matches!(
                            now,
                            Some(Tool::Available | Tool::Preliminary | Tool::Completed)
                        ),
                    )?;
                    Tool::Completed
                }
            }
            "tool-input-delta" => {
                need(chunk, "inputTextDelta")?;
                holds("no input is written", now == Some(Tool::Announced))?;
                Tool::Announced
            }
            "tool-input-error" => {
                need(chunk, "errorText")?;
                holds("no input is written", now == Some(Tool::Announced))?;
                Tool::Failed
            }
            "tool-output-error" => {
                need(chunk, "errorText")?;
                holds("the tool was refused", !refused)?;
                holds(
                    "an error out of order",
                    matches!(
                        now,
                        Some(Tool::Available | Tool::Preliminary | Tool::Completed)
                    ),
                )?;
                Tool::Failed
            }
            "tool-output-denied" => {
                let by_client = self.approvals.get(&id) == Some(&None)
                    && !self.asked.values().any(|tool| *tool == id);
                holds("denied without a refusal", refused || by_client)?;
                holds("denied out of order", now == Some(Tool::Available))?;
                Tool::Denied
            }
            _ => return Err("no such type".to_owned()),
        };
        let name = match self.tools.get(&id) {
            Some((_, name)) => name.clone(),
            None => need(chunk, "toolName")?,
        };
        holds(
            "the tool's name changed",
            chunk.get("toolName").is_none_or(|n| *n == *name),
        )?;
        self.tools.insert(id, (next, name));
        Ok(())
    }
}

/// The check itself must be able to fail.
#[test]
fn stream_check_finds_each_violation() {
    const T: &str = "toolCallId=t dynamic=true providerExecuted=true";
    let lines = |body: &str| -> Vec<Value> {
        let chunk = |words: &str| {
            let mut words = words.split(' ');
            let mut chunk = serde_json::json!({"type": words.next()});
            for word in words {
                let (name, value) = word.split_once('=').unwrap();
                chunk[name] = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            }
            chunk
        };
        body.split("; ").map(chunk).collect()
    };
    let good = format!(
        "start messageId=m; start-step; text-start id=a; text-delta id=a delta=x; text-end id=a; \
         tool-input-available toolName=n input=1 {T}; tool-approval-request approvalId=q toolCallId=t isAutomatic=true; \
         tool-approval-response approvalId=q approved=true reason=r; tool-output-available output=2 {T}; \
         finish-step; finish finishReason=stop"
    );
    check(&lines(&good)).unwrap();
    let bad = [
        (
            good.replace("; finish finishReason=stop", ""),
            "has no ending",
        ),
        (good.replace("; text-end id=a", ""), "blocks are open"),
        (good.replace("id=a delta", "id=b delta"), "no such block"),
        (
            good.replace("start messageId=m; ", ""),
            "start is the first",
        ),
        (
            good.replace(&format!("; tool-output-available output=2 {T}"), ""),
            "not settled",
        ),
        (
            good.replace("approved=true", "approved=false"),
            "the tool was refused",
        ),
        (good.replace("reason=r", "reason=null"), "reason is null"),
        (
            good.replace(
                "; tool-approval-response approvalId=q approved=true reason=r",
                "",
            ),
            "not answered",
        ),
        (format!("{good}; abort reason=x"), "follows the ending"),
        (good.replace("finish-step; ", ""), "step is not finished"),
        (
            good.replace("finish-step; ", "finish-step; data-plan id=p data=1; "),
            "after finish-step",
        ),
    ];
    for (stream, why) in bad {
        let found = check(&lines(&stream)).unwrap_err();
        assert!(found.contains(why), "{found} for {stream}");
    }
}
