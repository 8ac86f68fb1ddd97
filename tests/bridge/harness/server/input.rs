//! Messages that acpipe writes: sorted, counted and checked.

use super::Server;
use crate::harness::LIMIT;
use crate::harness::output::Input;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

impl Server {
    /// Pauses or resumes reading acpipe's output.
    pub fn set_reading(&self, on: bool) {
        *self.gate.0.lock().unwrap() = on;
        self.gate.1.notify_all();
    }

    /// Returns the number of messages that the test has read.
    pub fn seen(&self) -> usize {
        self.seen
    }

    pub(super) fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let begun = Instant::now();
        let (mut since, mut seen) = (begun, self.seen);
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            if self.over {
                self.fail(&format!("acpipe's output ended without {what}"));
            }
            // A long stream of messages takes time on a busy machine.
            if self.seen > seen {
                (since, seen) = (Instant::now(), self.seen);
            }
            if since.elapsed() > LIMIT || begun.elapsed() > 4 * LIMIT {
                self.fail(&format!("hung without {what}"));
            }
            self.take_input();
        }
    }

    /// Takes one more input, if one arrives within a second.
    pub(super) fn take_input(&mut self) {
        match self.inputs.recv_timeout(std::time::Duration::from_secs(1)) {
            Ok(Input::Message(text)) => self.message(&text),
            Ok(Input::Fault(_)) if self.killed => {}
            Ok(Input::Fault(fault)) => self.fail(&fault),
            Ok(Input::Eof) | Err(RecvTimeoutError::Disconnected) => self.over = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }

    fn message(&mut self, text: &str) {
        self.note("←", text);
        self.seen += 1;
        if text.starts_with('[') {
            let parts: Vec<&RawValue> = match serde_json::from_str(text) {
                Ok(parts) => parts,
                Err(e) => self.fail(&format!("no JSON: {e}: {text}")),
            };
            for part in &parts {
                if let Some(id) = Self::id_of(part.get()) {
                    self.settle(&id);
                }
            }
            let values = parts.iter().map(|p| serde_json::from_str(p.get()).unwrap());
            self.batches.push_back(values.collect());
            return;
        }
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(e) => self.fail(&format!("no JSON: {e}: {text}")),
        };
        if value["jsonrpc"] != "2.0" {
            self.fail(&format!("no JSON-RPC 2.0: {text}"));
        }
        match value["method"].as_str() {
            Some("session/chunk") => self.chunk(&value["params"]),
            Some("session/state") if self.record_queue(&value["params"]) => {}
            Some(method) if value.get("id").is_none() => {
                let params = value["params"].clone();
                if !self.record_wait(method, &params) && !self.waived.contains(method) {
                    self.notifications.push_back((method.to_owned(), params));
                }
            }
            Some(_) => self.requests.push_back(value),
            None => {
                let one = value.get("result").is_some() != value.get("error").is_some();
                if !one {
                    self.fail(&format!("neither result nor error, or both: {text}"));
                }
                match Self::id_of(text) {
                    Some(id) if id.0 == "null" && !self.unanswered.contains(&id) => {
                        self.nulls.push_back(value);
                    }
                    Some(id) => {
                        self.settle(&id);
                        self.answers.insert(id, value);
                    }
                    None => self.fail(&format!("an answer without an id: {text}")),
                }
            }
        }
    }

    /// Records the queued prompts of a session. Returns `true` if the queue has changed; such a notification
    /// needs no claim.
    fn record_queue(&mut self, params: &Value) -> bool {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let told = params["queue"].clone();
        if !told.is_array() {
            self.fail(&format!("a state without a queue: {params}"));
        }
        let before = self.queues.insert(session, told.clone());
        before.unwrap_or_else(|| json!([])) != told
    }

    /// Records the start or end of a reported wait. Returns `true` if the notification needs no claim.
    fn record_wait(&mut self, method: &str, params: &Value) -> bool {
        let told = match method {
            "agent/state" | "session/activity" => &params["waitingFor"],
            _ => return false,
        };
        let session = params["sessionId"].as_str().unwrap_or_default();
        if !told.is_null() {
            let activity = params["activity"].clone();
            self.waiting.insert(session.to_owned(), activity);
            self.waits.push_back(told.clone());
            return true;
        }
        // A notification that only ends the wait, with unchanged activity, needs no claim.
        method == "session/activity"
            && self.waiting.remove(session).as_ref() == Some(&params["activity"])
    }

    pub(super) fn note(&mut self, direction: &str, text: &str) {
        let start: String = text.trim_end().chars().take(600).collect();
        self.transcript.push_back(format!("{direction} {start}"));
        if self.transcript.len() > 100 {
            self.transcript.pop_front();
        }
    }

    /// Fails with a dump of the last messages.
    #[track_caller]
    pub fn fail(&mut self, why: &str) -> ! {
        let mut dump = String::new();
        for line in &self.transcript {
            let _ = writeln!(dump, "{line}");
        }
        for line in self.world.log() {
            let line: String = line.to_string().chars().take(300).collect();
            let _ = writeln!(dump, "agent got {line}");
        }
        self.world.kill_all();
        panic!("{why}\nthe last of {} messages:\n{dump}", self.seen);
    }
}
