//! One turn: a thought, a plan and a tool call if the prompt asks for them, and the text of the answer.

use super::client::Client;
use super::words::{self, PromptIntent};
use super::{Session, fresh};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

/// Pause after each piece of text: long enough for visible streaming in a terminal, short enough not to delay
/// the answer.
const PACE: Duration = Duration::from_millis(8);

/// Pause in the slow turn.
const SLOW_PACE: Duration = Duration::from_millis(100);

/// Context size in tokens that is reported. Without a model there is no limit, but clients draw a bar with
/// it.
const NOMINAL_CONTEXT: usize = 200_000;

/// Maximum number of names of a directory that are shown.
const SHOWN: usize = 20;

/// Maximum number of names that are read, so that a huge directory cannot block the turn.
const READ: usize = 10_000;

/// Turn in progress.
pub struct Turn {
    client: Client,
    session: Arc<Session>,
    prompt: String,
    /// Number of parts of the prompt that are not text.
    attachments: usize,
    /// Id of the tool call.
    call: String,
    /// Whether the call was announced and has no final update yet.
    is_calling: AtomicBool,
}

impl Turn {
    pub fn new(client: Client, session: Arc<Session>, prompt: String, attachments: usize) -> Self {
        Self {
            client,
            session,
            prompt,
            attachments,
            call: fresh("call"),
            is_calling: AtomicBool::new(false),
        }
    }

    /// Plays the turn until it ends or is cancelled, and responds to its prompt.
    pub async fn play(self, request: Value, cancel: Arc<Notify>) {
        self.count(&self.prompt);
        let reason = tokio::select! {
            reason = self.script() => reason,
            () = cancel.notified() => "cancelled",
        };
        if self.is_calling.load(Ordering::SeqCst) {
            self.end_call("failed", json!({})).await;
        }
        // Without a model, four characters per token is the usual estimate.
        let used = self.session.chars.load(Ordering::SeqCst).div_ceil(4);
        let size = NOMINAL_CONTEXT.max(used);
        self.update(json!({ "sessionUpdate": "usage_update", "used": used, "size": size }))
            .await;
        if !self.session.titled.swap(true, Ordering::SeqCst) {
            let title = words::title(&self.prompt);
            self.update(json!({ "sessionUpdate": "session_info_update", "title": title }))
                .await;
        }
        self.session.busy.store(false, Ordering::SeqCst);
        self.client
            .answer(&request, Ok(json!({ "stopReason": reason })))
            .await;
    }

    /// Plays the turn and returns its stop reason.
    async fn script(&self) -> &'static str {
        let asked = PromptIntent::of(&self.prompt);
        self.stream("agent_thought_chunk", words::deltas(words::THOUGHT), PACE)
            .await;
        if asked.plan {
            self.plan(asked.tool, ["in_progress", "pending"]).await;
        }
        if asked.tool {
            self.say(words::BEFORE_TOOL).await;
            match self.call_tool().await {
                Some(text) => self.say(&text).await,
                None => return "cancelled",
            }
        }
        if asked.slow {
            self.say(words::SLOWLY).await;
            let end = |number| if number % 20 == 0 { '\n' } else { ' ' };
            let numbers = (1..=100).map(|number| format!("{number}{}", end(number)));
            self.stream("agent_message_chunk", numbers.collect(), SLOW_PACE)
                .await;
        } else if !asked.tool {
            self.say(&words::greeting(&self.prompt, self.attachments))
                .await;
        }
        if asked.plan {
            self.plan(asked.tool, ["completed"; 2]).await;
        }
        "end_turn"
    }

    async fn say(&self, text: &str) {
        self.stream("agent_message_chunk", words::deltas(text), PACE)
            .await;
    }

    /// Streams a new message.
    async fn stream(&self, kind: &str, deltas: Vec<String>, pace: Duration) {
        let message = fresh("message");
        for delta in deltas {
            self.count(&delta);
            let content = json!({ "type": "text", "text": delta });
            self.update(json!({ "sessionUpdate": kind, "messageId": message, "content": content }))
                .await;
            sleep(pace).await;
        }
    }

    fn count(&self, text: &str) {
        self.session
            .chars
            .fetch_add(text.chars().count(), Ordering::SeqCst);
    }

    /// Sends the plan with the status of the current step and of the later ones; each plan replaces the
    /// preceding one.
    async fn plan(&self, has_tool: bool, [now, later]: [&str; 2]) {
        let entry = |text: &str, status: &str| json!({ "content": text, "priority": "medium", "status": status });
        let mut entries = vec![entry("Read the prompt", "completed")];
        if has_tool {
            entries.push(entry("List the working directory", now));
        }
        entries.push(entry(
            "Answer without a model",
            if has_tool { later } else { now },
        ));
        entries.push(entry("Show how a plan is completed", later));
        self.update(json!({ "sessionUpdate": "plan", "entries": entries }))
            .await;
    }

    /// Announces the tool call, requests permission, and runs it. Returns the text about the result; `None`
    /// if the client cancelled the request.
    async fn call_tool(&self) -> Option<String> {
        let cwd = &self.session.cwd;
        let call = json!({
            "toolCallId": self.call,
            "title": format!("List files in {cwd}"),
            "kind": "read",
            "status": "pending",
            "locations": [{ "path": cwd }],
            "rawInput": { "path": cwd, "limit": SHOWN },
        });
        let mut announced = call.clone();
        announced["sessionUpdate"] = "tool_call".into();
        self.update(announced).await;
        self.is_calling.store(true, Ordering::SeqCst);
        match self.permission(call).await {
            Some(true) => {}
            Some(false) => {
                self.end_call("failed", content("permission refused")).await;
                return Some(words::REFUSED.to_owned());
            }
            None => return None,
        }
        self.update_call("in_progress", json!({})).await;
        match list(Path::new(cwd)) {
            Ok(listing) => {
                let mut fields = content(&listing.text());
                fields["rawOutput"] = json!({ "names": listing.names, "total": listing.total });
                self.end_call("completed", fields).await;
                Some(words::found(cwd, listing.total, &listing.text()))
            }
            Err(error) => {
                let error = error.to_string();
                let mut fields = content(&error);
                fields["rawOutput"] = json!({ "error": error });
                self.end_call("failed", fields).await;
                Some(words::failed(cwd, &error))
            }
        }
    }

    /// Returns whether the tool may run; `None` if the client cancelled the turn.
    async fn permission(&self, call: Value) -> Option<bool> {
        if self.session.always.load(Ordering::SeqCst) {
            return Some(true);
        }
        let option = |id: &str, name: &str| json!({ "optionId": id, "kind": id, "name": name });
        let options = [
            option("allow_once", "Allow once"),
            option("allow_always", "Allow for this session"),
            option("reject_once", "Reject"),
        ];
        let params = json!({ "sessionId": self.session.id, "toolCall": call, "options": options });
        let answer = self
            .client
            .request("session/request_permission", &params)
            .await;
        let outcome = &answer["outcome"];
        match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("cancelled"), _) => None,
            (Some("selected"), Some("allow_once")) => Some(true),
            (Some("selected"), Some("allow_always")) => {
                self.session.always.store(true, Ordering::SeqCst);
                Some(true)
            }
            // Any other response is a refusal.
            _ => Some(false),
        }
    }

    /// Sends the last update of the tool call.
    async fn end_call(&self, status: &str, fields: Value) {
        self.update_call(status, fields).await;
        self.is_calling.store(false, Ordering::SeqCst);
    }

    async fn update_call(&self, status: &str, mut fields: Value) {
        fields["sessionUpdate"] = "tool_call_update".into();
        fields["toolCallId"] = self.call.as_str().into();
        fields["status"] = status.into();
        self.update(fields).await;
    }

    async fn update(&self, update: Value) {
        let mut params = json!({ "sessionId": self.session.id });
        params["update"] = update;
        self.client.notify("session/update", &params).await;
    }
}

/// Formats a text as content of a tool call.
fn content(text: &str) -> Value {
    json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] })
}

/// Names in a directory.
#[derive(Debug)]
struct Listing {
    /// First names in alphabetical order; directories end in a slash.
    names: Vec<String>,
    /// Number of all names read.
    total: usize,
}

impl Listing {
    /// Formats the listing with one name per line.
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.names.iter().map(|name| format!("- {name}")).collect();
        let more = self.total - self.names.len();
        if more > 0 {
            lines.push(format!("- … and {more} more"));
        }
        lines.join("\n")
    }
}

fn list(dir: &Path) -> io::Result<Listing> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(READ) {
        let entry = entry?;
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        // A file name may contain any characters, including control sequences of a terminal.
        let name = entry
            .file_name()
            .to_string_lossy()
            .replace(char::is_control, "?");
        names.push(name + slash);
    }
    names.sort();
    let total = names.len();
    names.truncate(SHOWN);
    Ok(Listing { names, total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::Scratch;

    #[test]
    fn listed_names_are_sorted_limited_and_counted() {
        let scratch = Scratch::new();
        for number in 0..23 {
            std::fs::write(scratch.0.join(format!("f{number:02}")), "").unwrap();
        }
        std::fs::create_dir(scratch.0.join("a")).unwrap();
        let listing = list(&scratch.0).unwrap();
        assert_eq!((listing.total, listing.names.len()), (24, SHOWN));
        assert_eq!(listing.names[..2], ["a/", "f00"]);
        assert!(listing.text().ends_with("- f18\n- … and 4 more"));
        assert!(list(&scratch.0.join("none")).is_err());
    }
}
