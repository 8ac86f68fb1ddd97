//! Clients of a world: at most three at a time; all but the first may join and leave.

use super::client::Client;
use super::dice::Dice;
use super::disk::StoredLog;
use acpipe_core::client::ClientId;
use acpipe_core::client_request::ClientRequestId;
use acpipe_core::client_sink::{ClientSink, ClientSinks};
use acpipe_core::fold::Fold;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

#[derive(Default)]
pub struct Clients {
    all: BTreeMap<ClientId, Client>,
    last: Option<u32>,
    /// Whether there was ever more than one client.
    several: Rc<Cell<bool>>,
    /// Sessions that were closed or cleared, as named in the calls.
    closed_sessions: Rc<RefCell<BTreeSet<String>>>,
    /// Replies to clients that have left.
    replies: u64,
}

impl ClientSinks for Clients {
    fn sink(&mut self, client: ClientId) -> Option<&mut dyn ClientSink> {
        Some(self.all.get_mut(&client)?)
    }
}

impl Clients {
    /// Connects another client.
    pub fn add(&mut self, client: Client) -> ClientId {
        let id = ClientId(self.last.map_or(0, |last| last + 1));
        self.last = Some(id.0);
        self.several.set(id != ClientId::FIRST);
        let several = Rc::clone(&self.several);
        let closed = Rc::clone(&self.closed_sessions);
        self.all.insert(id, client.with(id, several, closed));
        id
    }

    /// Disconnects a client.
    pub fn remove(&mut self, id: ClientId) {
        if let Some(client) = self.all.remove(&id) {
            self.replies += client.replies;
        }
    }

    /// Returns the number of replies that clients received.
    pub fn replies(&self) -> u64 {
        self.replies + self.iter().map(|client| client.replies).sum::<u64>()
    }

    pub fn get(&mut self, id: ClientId) -> &mut Client {
        self.all.get_mut(&id).expect("a connected client")
    }

    pub fn first(&mut self) -> &mut Client {
        self.get(ClientId::FIRST)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.all.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.all.values_mut()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns `true` if there was ever more than one client.
    pub fn were_several(&self) -> bool {
        self.several.get()
    }

    /// Returns a random client.
    pub fn any(&self, dice: &mut Dice) -> ClientId {
        let ids: Vec<ClientId> = self.all.keys().copied().collect();
        dice.pick(&ids)
    }

    /// Returns `true` if a client has to read before it accepts more.
    pub fn is_some_full(&self) -> bool {
        self.iter().any(ClientSink::is_full)
    }

    /// Returns `true` if all clients have to read before they accept more.
    pub fn are_all_full(&self) -> bool {
        self.iter().all(ClientSink::is_full)
    }

    /// Returns an open client request.
    pub fn next_ask(&self) -> Option<(ClientId, ClientRequestId)> {
        self.iter().find_map(Client::next_ask)
    }

    /// Returns all open client requests.
    pub fn open_requests(&self) -> BTreeSet<ClientRequestId> {
        let open_requests = self.iter().flat_map(|client| &client.open_requests);
        open_requests.copied().collect()
    }

    /// Returns `true` if a turn may be open in this agent session, or ended in this step. A client that has
    /// left may have been the only one that saw the turn.
    pub fn is_in_turn(&self, agent_session: &str) -> bool {
        let may_be = |client: &Client| client.slow_disk || client.is_in_turn(agent_session);
        self.were_several() || self.iter().any(may_be)
    }

    /// Checks that each client received the last chunk of each session that it received any chunk of.
    pub fn check_numbers(&self, logs: &BTreeMap<String, StoredLog>) {
        for client in self.iter().filter(|client| client.sees_all) {
            for (session, last) in client.last_numbers() {
                let Some(kept) = logs.get(session) else {
                    continue;
                };
                let stored = last_of(&kept.bytes);
                // A cleared session has no chunks.
                assert!(
                    stored == 0 || *last == stored,
                    "client {:?} was given {last} chunks of {stored} in {session}",
                    client.id
                );
            }
        }
    }

    /// Checks that the chunks of a turn build the same message for each client as in the log.
    pub fn check_messages(&self, logs: &BTreeMap<String, StoredLog>) {
        for client in self.iter() {
            for ((session, turn), chunks) in client.whole_turns() {
                let Some(kept) = logs.get(session) else {
                    continue;
                };
                let stored = turn_of(&kept.bytes, turn);
                if stored.is_empty() {
                    continue;
                }
                assert_eq!(
                    message(chunks),
                    message(&stored),
                    "client {:?} in turn {turn} of {session}: {chunks:#?} and {stored:#?}",
                    client.id
                );
            }
        }
    }
}

fn message(chunks: &[Value]) -> Value {
    let mut fold = Fold::default();
    for chunk in chunks {
        fold.push(chunk);
    }
    fold.message()
}

/// Returns the number of the last chunk in a log.
fn last_of(log: &[u8]) -> u64 {
    let lines = log.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let records = lines.filter_map(|line| super::logs::read(line).ok());
    let chunks = records.filter(|r| r["record"] == "chunk");
    let numbers = chunks.filter_map(|record| record["seq"].as_u64());
    numbers.max().unwrap_or_default()
}

/// Returns the chunks of a turn in a log.
fn turn_of(log: &[u8], turn: &str) -> Vec<Value> {
    let lines = log.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let records = lines.filter_map(|line| super::logs::read(line).ok());
    let own = records.filter(|r| r["record"] == "chunk" && r["turnId"] == turn);
    own.map(|mut record| record["chunk"].take()).collect()
}
