//! All sessions, with the set of those that may have work to do.
//!
//! Most of possibly thousands of sessions rest most of the time. Every change goes through mutable access,
//! which marks the session as awake. Only awake sessions are checked for due timers and pending writes, until
//! they have no more work.

use super::client::Token;
use super::ids::AgentRef;
use super::session::SessionMachine;
use std::collections::BTreeMap;

/// Sessions by the client's ids.
#[derive(Debug, Default)]
pub struct Sessions {
    all: BTreeMap<String, Entry>,
    awake: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    /// Boxed, because a node of the tree reserves room for several entries.
    session: Box<SessionMachine>,
    /// `true` if the id is in `awake`.
    awake: bool,
}

impl Sessions {
    pub fn get(&self, id: &str) -> Option<&SessionMachine> {
        self.all.get(id).map(|entry| &*entry.session)
    }

    /// Returns the session with this id for changes, and marks it as awake.
    #[inline]
    pub fn get_mut(&mut self, id: &str) -> Option<&mut SessionMachine> {
        let entry = self.all.get_mut(id)?;
        if !entry.awake {
            entry.awake = true;
            self.awake.push(id.to_owned());
        }
        Some(&mut entry.session)
    }

    pub fn contains_key(&self, id: &str) -> bool {
        self.all.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    pub fn values(&self) -> impl Iterator<Item = &SessionMachine> {
        self.all.values().map(|entry| &*entry.session)
    }

    pub fn of(&self, agent: AgentRef) -> impl Iterator<Item = &SessionMachine> {
        self.values().filter(move |session| session.agent == agent)
    }

    pub fn ids_of(&self, agent: AgentRef) -> Vec<String> {
        self.of(agent).map(|session| session.id.clone()).collect()
    }

    /// Returns `true` if any session of the same agent runs a turn.
    pub fn others_run(&self, id: &str) -> bool {
        let agent = self.get(id).map(|session| session.agent);
        let mut sessions = self.values();
        sessions.any(|s| Some(s.agent) == agent && s.turns.is_prompted())
    }

    /// Returns `true` if a session of the agent runs a turn or has queued prompts.
    pub fn are_busy(&self, agent: AgentRef) -> bool {
        let mut own = self.of(agent);
        own.any(|s| s.turns.is_prompted() || !s.queue.is_empty())
    }

    pub fn queued_prompts(&self, agent: AgentRef) -> Vec<Token> {
        let own = self.of(agent);
        own.flat_map(|s| s.queue.tokens()).collect()
    }

    /// Iterates over all sessions for changes, and marks all as awake.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut SessionMachine> {
        self.awake = self.all.keys().cloned().collect();
        self.all.values_mut().map(|entry| {
            entry.awake = true;
            &mut *entry.session
        })
    }

    pub fn awake(&self) -> impl Iterator<Item = &SessionMachine> {
        self.awake.iter().filter_map(|id| self.get(id))
    }

    pub fn for_each_awake(&mut self, mut act: impl FnMut(&mut SessionMachine)) {
        for id in &self.awake {
            if let Some(entry) = self.all.get_mut(id) {
                act(&mut entry.session);
            }
        }
    }

    /// Removes the awake mark from the sessions for which `busy` returns `false`.
    pub fn settle(&mut self, busy: impl Fn(&SessionMachine) -> bool) {
        let all = &mut self.all;
        self.awake.retain(|id| {
            let entry = all.get_mut(id);
            entry.is_some_and(|entry| {
                entry.awake = busy(&entry.session);
                entry.awake
            })
        });
    }

    /// Adds a session, marked as awake. It replaces a session with the same id.
    pub fn insert(&mut self, id: String, session: SessionMachine) {
        self.remove(&id);
        self.awake.push(id.clone());
        let entry = Entry {
            session: Box::new(session),
            awake: true,
        };
        self.all.insert(id, entry);
    }

    pub fn remove(&mut self, id: &str) {
        if self.all.remove(id).is_some() {
            self.awake.retain(|awake| awake != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::store::{MemoryStore, Store as _};

    fn session(id: &str) -> SessionMachine {
        let log = Log::open(MemoryStore.open(id).unwrap()).unwrap();
        SessionMachine::new(id.to_owned(), AgentRef(0), "/".to_owned(), log)
    }

    fn awake(sessions: &Sessions) -> Vec<&str> {
        sessions.awake().map(|s| s.id.as_str()).collect()
    }

    #[test]
    fn an_idle_session_is_small() {
        let size = size_of::<SessionMachine>();
        assert!(
            size <= 1984,
            "box what only a running turn needs: {size} bytes"
        );
    }

    #[test]
    fn only_touched_sessions_are_scheduled() {
        let mut sessions = Sessions::default();
        for id in ["a", "b", "c"] {
            sessions.insert(id.to_owned(), session(id));
        }
        assert_eq!(awake(&sessions), ["a", "b", "c"]);
        sessions.settle(|session| session.id == "b");
        assert_eq!(awake(&sessions), ["b"]);
        sessions.get_mut("c");
        sessions.get_mut("c");
        assert!(sessions.get("a").is_some());
        assert_eq!(awake(&sessions), ["b", "c"]);
        sessions.remove("b");
        sessions.insert("b".to_owned(), session("b"));
        assert_eq!(awake(&sessions), ["c", "b"]);
        sessions.settle(|_| false);
        assert_eq!(sessions.values_mut().count(), 3);
        assert_eq!(awake(&sessions), ["a", "b", "c"]);
        let mut seen = 0;
        sessions.for_each_awake(|_| seen += 1);
        assert_eq!(seen, 3);
    }
}
