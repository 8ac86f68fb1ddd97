//! Calls, notifications and requests, and their answers.

use super::{Framing, Id, Server};
use crate::harness::{LIMIT, calls};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::thread;
use std::time::Instant;

impl Server {
    /// Writes raw bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.note("→", &String::from_utf8_lossy(bytes));
        let stdin = self.stdin.as_mut().expect("stdin is closed");
        let written = stdin.write_all(bytes);
        if let Err(error) = written {
            self.fail(&format!("acpipe's stdin is closed: {error}"));
        }
    }

    /// Writes one framed message.
    pub fn raw(&mut self, message: &str) {
        let framed = match self.framing {
            Framing::Lines => format!("{message}\n"),
            Framing::ContentLength => {
                format!("Content-Length: {}\r\n\r\n{message}", message.len())
            }
        };
        self.write(framed.as_bytes());
    }

    /// Sends a call; its answer must be claimed.
    pub fn send(&mut self, method: &str, params: &Value) -> Id {
        self.last_id += 1;
        let id = Id(self.last_id.to_string());
        self.send_as(&id, method, params);
        id
    }

    pub fn send_as(&mut self, id: &Id, method: &str, params: &Value) {
        self.expect(id);
        self.raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":{},"params":{params}}}"#,
            id.0,
            json!(method)
        ));
    }

    /// Registers the id of a call that the test sends as raw text, so that its answer is expected.
    pub fn expect(&mut self, id: &Id) {
        self.answered.remove(id);
        assert!(self.unanswered.insert(id.clone()), "{id:?} is in use");
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.raw(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Waits for the complete answer to a call.
    pub fn answer(&mut self, id: &Id) -> Value {
        self.until(&format!("the answer to {id:?}"), |s| s.answers.remove(id))
    }

    pub fn result(&mut self, id: &Id) -> Value {
        let answer = self.answer(id);
        match answer.get("result") {
            Some(result) => result.clone(),
            None => self.fail(&format!("a result was expected: {answer}")),
        }
    }

    pub fn error(&mut self, id: &Id) -> Value {
        let answer = self.answer(id);
        match answer.get("error") {
            Some(error) => error.clone(),
            None => self.fail(&format!("an error was expected: {answer}")),
        }
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.result(&id)
    }

    pub fn call_error(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.error(&id)
    }

    /// Waits for the next answer with the id `null`, to a message without a usable id.
    pub fn null_answer(&mut self) -> Value {
        self.until("an answer with the id null", |s| s.nulls.pop_front())
    }

    /// Waits for the next answer to a batch.
    pub fn batch(&mut self) -> Vec<Value> {
        self.until("the answer to a batch", |s| s.batches.pop_front())
    }

    /// Waits for the next notification of this method and returns its params.
    #[track_caller]
    pub fn notification(&mut self, method: &str) -> Value {
        self.until(&format!("a notification {method}"), |s| {
            let at = s.notifications.iter().position(|(m, _)| m == method)?;
            s.notifications.remove(at).map(|(_, params)| params)
        })
    }

    /// Waits for the next reported wait (`waitingFor`).
    pub fn next_wait_notice(&mut self) -> Value {
        self.until("word of what is waited for", |s| s.waits.pop_front())
    }

    /// Returns the answer to a call, if it arrives before acpipe has written `messages` messages in total.
    pub fn answer_within(&mut self, id: &Id, messages: usize) -> Option<Value> {
        let since = Instant::now();
        while !self.answers.contains_key(id) && self.seen < messages && !self.over {
            if since.elapsed() > LIMIT {
                self.fail(&format!("hung without the answer to {id:?}"));
            }
            self.take_input();
        }
        self.answers.remove(id)
    }

    /// Waits until the agents' log contains a call of this method.
    pub fn await_agent_call(&self, method: &str) {
        let since = Instant::now();
        while calls(&self.world.log(), method).is_empty() {
            assert!(since.elapsed() < LIMIT, "the agent never got {method}");
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Waits for the next client request of this method and returns its id and its params.
    pub fn asked(&mut self, method: &str) -> (Value, Value) {
        let request = self.until(&format!("the request {method}"), |s| {
            let at = s.requests.iter().position(|r| r["method"] == method)?;
            s.requests.remove(at)
        });
        (request["id"].clone(), request["params"].clone())
    }

    /// Answers a client request.
    pub fn reply(&mut self, id: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.raw(&answer.to_string());
    }

    pub(super) fn settle(&mut self, id: &Id) {
        if id.0 == "null" && !self.unanswered.contains(id) {
            return;
        }
        if self.answered.contains(id) {
            self.fail(&format!("a second answer to {id:?}"));
        }
        if !self.unanswered.remove(id) {
            self.fail(&format!("an answer to {id:?}, which was never asked"));
        }
        self.answered.insert(id.clone());
    }

    pub(super) fn id_of(text: &str) -> Option<Id> {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
        fields.get("id").map(|id| Id(id.get().to_owned()))
    }
}
