//! Execution of a turn by the fake CLI: performs its steps.

use crate::sessions::Stored;
use crate::{Cli, complain, exit, frames, or_die, send, write};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// State of one turn.
pub(crate) struct Turn {
    cli: Arc<Cli>,
    uuid: Option<String>,
    /// Id of the control request that steps outside of turns answer.
    pub(crate) request: String,
    /// Number of control requests that had arrived when the turn began.
    since: usize,
    /// Id and text of the unfinished message.
    message: Option<(String, String)>,
    /// Id of the last request that the fake CLI sent.
    asked: String,
    ended: bool,
    round: u64,
}

fn xs(length: &Value) -> String {
    let length = length.as_u64().and_then(|n| usize::try_from(n).ok());
    "x".repeat(length.unwrap_or_default())
}

fn next() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Turn {
    pub(crate) fn of(cli: &Arc<Cli>, uuid: Option<String>) -> Self {
        let since = cli.state().requests.len();
        Self {
            cli: Arc::clone(cli),
            uuid,
            request: String::new(),
            since,
            message: None,
            asked: String::new(),
            ended: false,
            round: 0,
        }
    }

    /// State for steps outside of turns.
    pub(crate) fn outside(cli: &Arc<Cli>) -> Self {
        Self::of(cli, None)
    }

    /// Runs the turn from its start to its end.
    pub(crate) fn go(mut self, steps: &[Value], text: &str) {
        let cli = Arc::clone(&self.cli);
        if let Some(uuid) = &self.uuid {
            frames::lifecycle(&cli, uuid, "started");
            Stored::of(&cli).append(&cli, "user", &json!(text));
        }
        frames::init(&cli);
        self.perform(steps);
        if !self.ended {
            self.result(&json!({}));
        }
        if let Some(uuid) = &self.uuid {
            frames::lifecycle(&cli, uuid, "completed");
        }
    }

    pub(crate) fn perform(&mut self, steps: &[Value]) {
        for step in steps {
            if let Some((name, arg)) = step.as_object().and_then(|step| step.iter().next()) {
                let raw = matches!(name.as_str(), "repeat" | "once" | "background");
                let arg = if raw { arg.clone() } else { self.fill(arg) };
                let went_on = !self.ended;
                self.step(name, &arg);
                if name == "once" && went_on && self.ended {
                    return;
                }
            }
        }
    }

    fn step(&mut self, name: &str, arg: &Value) {
        let cli = Arc::clone(&self.cli);
        let text = arg.as_str().unwrap_or_default();
        let list = || arg[1].as_array().cloned().unwrap_or_default();
        match name {
            "say" => {
                self.delta(text);
                self.end_message();
            }
            "delta" => self.delta(text),
            "frame" => send(arg),
            "ask" => {
                self.ask(arg);
                let answer = self.answer()["response"].clone();
                let denied = answer["behavior"] != "allow";
                let said = answer["message"].as_str().unwrap_or("done");
                let id = arg["tool_use_id"].as_str().unwrap_or_default();
                frames::tool_result(&cli, id, said, denied);
                self.step("say", &json!(answer.to_string()));
            }
            "asked" => self.ask(arg),
            "withdraw" => {
                send(&json!({"type": "control_cancel_request", "request_id": self.asked}));
            }
            "request" => {
                self.send_request(arg);
                let answer = self.answer();
                self.step("say", &json!(answer.to_string()));
            }
            "wait" => {
                let since = self.since;
                cli.until(|state| {
                    let since = &state.requests[since..];
                    since.iter().any(|subtype| subtype == text).then_some(())
                });
            }
            "steered" => self.steered(),
            "interrupted" => {
                self.step("wait", &json!("interrupt"));
                self.end_message();
                send(
                    &json!({"type": "user", "session_id": cli.session(), "parent_tool_use_id": null, "message":
                    {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}}),
                );
                self.result(&json!({"subtype": "error_during_execution", "is_error": true, "stop_reason": null,
                    "terminal_reason": "aborted_streaming"}));
            }
            "result" => self.result(arg),
            "silent" => self.ended = true,
            "background" => {
                let steps = arg.as_array().cloned().unwrap_or_default();
                let turn = (None, steps, String::new());
                cli.state().queue.push_front(turn);
            }
            "clear" => {
                send(
                    &json!({"type": "conversation_reset", "new_conversation_id": "other", "trigger": "clear",
                    "session_id": cli.session()}),
                );
                text.clone_into(&mut cli.state().session);
                frames::init(&cli);
                self.result(
                    &json!({"local_command": "clear", "total_cost_usd": 0, "num_turns": 0, "stop_reason": null,
                    "result": ""}),
                );
            }
            "line" => write(format!("{text}\n").as_bytes()),
            "bytes" => {
                let bytes: Vec<u8> = or_die(serde_json::from_value(arg.clone()));
                write(&bytes);
            }
            "huge" => self.result(&json!({ "result": xs(arg) })),
            "novel" => send(&json!({"type": "novel", "session_id": cli.session(), "x": xs(arg)})),
            "repeat" => {
                for round in 0..arg[0].as_u64().unwrap_or(0) {
                    self.round = round;
                    self.perform(&list());
                }
            }
            "once" => {
                if File::create_new(arg[0].as_str().unwrap_or_default()).is_ok() {
                    self.perform(&list());
                }
            }
            "stderr" => complain(text),
            "exit" => exit(
                arg.as_i64()
                    .and_then(|c| i32::try_from(c).ok())
                    .unwrap_or(1),
            ),
            "hang" => loop {
                thread::park();
            },
            "closeStdout" => {
                let null = or_die(File::options().write(true).open("/dev/null"));
                let mut stdout = io::stdout().lock();
                or_die(stdout.flush());
                or_die(rustix::stdio::dup2_stdout(null));
            }
            other => crate::die(&format!("unknown step {other:?}")),
        }
    }

    /// Takes another prompt into the turn.
    fn steered(&mut self) {
        let (uuid, _, text) = self.cli.until(|state| state.queue.pop_front());
        let uuid = uuid.unwrap_or_default();
        frames::lifecycle(&self.cli, &uuid, "started");
        frames::lifecycle(&self.cli, &uuid, "completed");
        self.delta(&text);
        self.end_message();
    }

    fn delta(&mut self, text: &str) {
        let (_, said) = self.message.get_or_insert_with(|| {
            let id = format!("msg-{}-{}", std::process::id(), next());
            frames::begin_message(&self.cli, &id);
            (id, String::new())
        });
        said.push_str(text);
        frames::delta(&self.cli, text);
    }

    fn end_message(&mut self) {
        if let Some((id, text)) = self.message.take() {
            frames::end_message(&self.cli, &id, &text);
            let block = json!([{"type": "text", "text": text}]);
            Stored::of(&self.cli).append(&self.cli, "assistant", &block);
        }
    }

    fn ask(&mut self, tool: &Value) {
        let block = json!({"type": "tool_use", "id": tool["tool_use_id"], "name": tool["tool_name"], "input": tool["input"]});
        frames::assistant(&self.cli, &format!("msg-tool-{}", next()), &block);
        let mut request = tool.clone();
        request["subtype"] = json!("can_use_tool");
        self.send_request(&request);
    }

    fn send_request(&mut self, request: &Value) {
        self.asked = format!("ask-{}", next());
        send(&json!({"type": "control_request", "request_id": self.asked, "request": request}));
    }

    fn answer(&self) -> Value {
        self.cli.until(|state| state.answers.remove(&self.asked))
    }

    fn result(&mut self, more: &Value) {
        self.end_message();
        self.ended = true;
        let mut frame = json!({"duration_ms": 5, "stop_reason": "end_turn", "session_id": self.cli.session(),
            "usage": {"input_tokens": 3, "output_tokens": 4}, "permission_denials": [], "terminal_reason": "completed",
            "is_error": false, "num_turns": 1, "subtype": "success", "result": "", "type": "result"});
        match &self.uuid {
            Some(uuid) => frame["user_message_uuids"] = json!([uuid]),
            None => {
                frame["origin"] = json!({"kind": "task-notification"});
            }
        }
        if more.get("total_cost_usd").is_none() {
            frame["total_cost_usd"] = json!(Stored::of(&self.cli).cost());
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            frame[name] = value.clone();
        }
        send(&frame);
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let text = text
                    .replace("{uuid}", self.uuid.as_deref().unwrap_or_default())
                    .replace("{session}", &self.cli.session())
                    .replace("{request}", &self.request)
                    .replace("{i}", &self.round.to_string());
                Value::String(text)
            }
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(map) => {
                let filled = map
                    .iter()
                    .map(|(key, value)| (key.clone(), self.fill(value)));
                filled.collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}
