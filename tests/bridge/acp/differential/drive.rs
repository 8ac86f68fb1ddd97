//! Plays the client's side of a recording.

use super::recording::{Recording, Side};
use crate::acp::peer::{Answer, Peer, is_response};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// Longest wait for a message that the recording has.
const PATIENCE: Duration = Duration::from_secs(3);

/// Number of messages that are waited for in vain before the client no longer waits.
const MISSES: usize = 2;

/// Messages that both sides of a conversation received, with the recording's session ids.
#[derive(Debug)]
pub struct Exchange {
    pub client: Vec<Value>,
    pub agent: Vec<Value>,
    /// Messages of the recording that did not arrive in time.
    pub misses: Vec<String>,
    /// Other faults of the processes.
    pub faults: Vec<String>,
}

struct Driver {
    peer: Peer,
    /// Positions of received messages that were matched with a message of the recording.
    claimed: BTreeSet<usize>,
    /// Recorded session ids → session ids of this conversation.
    sessions: BTreeMap<String, String>,
    /// Recorded ids of the agent's requests → ids of the requests that arrived.
    requests: BTreeMap<String, Value>,
    misses: Vec<String>,
    faults: Vec<String>,
}

/// Plays the client's side of a recording to an agent. `log` returns the lines that the agent received.
pub fn drive(recording: &Recording, agent: Command, log: impl Fn() -> Vec<Value>) -> Exchange {
    let mut driver = Driver {
        peer: Peer::start(agent),
        claimed: BTreeSet::new(),
        sessions: BTreeMap::new(),
        requests: BTreeMap::new(),
        misses: Vec::new(),
        faults: Vec::new(),
    };
    driver.peer.set_deadline(PATIENCE);
    driver.peer.answer_with(|_| Answer::Later);
    for entry in &recording.entries {
        match entry.from {
            Side::Agent => driver.await_message(&entry.frame),
            Side::Client => driver.send(&entry.frame),
        }
    }
    driver.finish(&log)
}

impl Driver {
    /// Waits for a message of the recording's agent.
    fn await_message(&mut self, recorded: &Value) {
        if self.misses.len() >= MISSES {
            return;
        }
        let (mut at, claimed) = (0, &self.claimed);
        let found = self.peer.find(0, |message| {
            at += 1;
            !claimed.contains(&(at - 1)) && is_same_step(recorded, message)
        });
        match found {
            Ok(at) => {
                self.claimed.insert(at);
                let received = self.peer.received[at].clone();
                self.matched(recorded, &received);
            }
            Err(why) => self.misses.push(format!("{}: {why}", step(recorded))),
        }
    }

    fn matched(&mut self, recorded: &Value, received: &Value) {
        if recorded.get("method").is_some() && recorded.get("id").is_some() {
            self.requests
                .insert(recorded["id"].to_string(), received["id"].clone());
        }
        let ids = [recorded, received].map(|message| message["result"]["sessionId"].as_str());
        if let [Some(recorded), Some(received)] = ids {
            self.sessions
                .insert(recorded.to_owned(), received.to_owned());
        }
    }

    /// Sends a message of the recording's client.
    fn send(&mut self, recorded: &Value) {
        let mut frame = replaced(recorded, &self.sessions);
        if recorded.get("method").is_none() {
            let Some(id) = self.requests.get(&recorded["id"].to_string()) else {
                self.misses
                    .push(format!("request {} was not received", recorded["id"]));
                return;
            };
            frame["id"] = id.clone();
        }
        self.peer.send(&frame);
    }

    fn finish(mut self, log: &dyn Fn() -> Vec<Value>) -> Exchange {
        let ended = self.peer.close().and_then(|()| self.peer.wait());
        match ended {
            Ok((status, stderr)) if !status.success() || stderr.contains("panicked") => {
                self.faults.push(format!("exit with {status}: {stderr}"));
            }
            Ok(_) => {}
            Err(why) => self.faults.push(why),
        }
        self.faults.append(&mut self.peer.faults);
        let recorded = self.sessions.into_iter();
        let recorded: BTreeMap<String, String> =
            recorded.map(|(key, value)| (value, key)).collect();
        let received = self.peer.received.iter();
        Exchange {
            client: received
                .map(|message| replaced(message, &recorded))
                .collect(),
            agent: log(),
            misses: self.misses,
            faults: self.faults,
        }
    }
}

/// Returns `true` if two messages of the agent are the same step of the conversation.
fn is_same_step(recorded: &Value, received: &Value) -> bool {
    if recorded.get("method").is_none() {
        return is_response(received, &recorded["id"]);
    }
    let kind = |message: &Value| message["params"]["update"]["sessionUpdate"].clone();
    recorded.get("method") == received.get("method")
        && recorded.get("id").is_some() == received.get("id").is_some()
        && kind(recorded) == kind(received)
}

fn step(message: &Value) -> String {
    let method = message["method"].as_str();
    method.map_or_else(|| format!("response to {}", message["id"]), str::to_owned)
}

/// Replaces strings that are equal to a key.
fn replaced(value: &Value, by: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => by.get(text).unwrap_or(text).as_str().into(),
        Value::Array(items) => items.iter().map(|item| replaced(item, by)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, member)| (name.clone(), replaced(member, by)));
            members.collect()
        }
        other => other.clone(),
    }
}
