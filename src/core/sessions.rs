//! All sessions, and which of them may have something to do.
//!
//! Most sessions rest most of the time, and there may be thousands. Whatever comes up in one comes through a hand
//! that may change it: those that were touched are awake, and only they are asked what is due and what is to be
//! written, until they have nothing to do any more.

use super::ids::AgentRef;
use super::session::SessionMachine;
use std::collections::BTreeMap;

/// The sessions by the client's ids.
#[derive(Debug, Default)]
pub struct Sessions {
    all: BTreeMap<String, Entry>,
    awake: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    session: SessionMachine,
    /// Whether its id is among those that are awake.
    awake: bool,
}

impl Sessions {
    /// The session of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&SessionMachine> {
        self.all.get(id).map(|entry| &entry.session)
    }

    /// The session of this id, for changes: it is awake from now on.
    #[inline]
    pub fn get_mut(&mut self, id: &str) -> Option<&mut SessionMachine> {
        let entry = self.all.get_mut(id)?;
        if !entry.awake {
            entry.awake = true;
            self.awake.push(id.to_owned());
        }
        Some(&mut entry.session)
    }

    /// Whether there is a session of this id.
    #[must_use]
    pub fn contains_key(&self, id: &str) -> bool {
        self.all.contains_key(id)
    }

    /// Their ids.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    /// All of them.
    pub fn values(&self) -> impl Iterator<Item = &SessionMachine> {
        self.all.values().map(|entry| &entry.session)
    }

    /// Those of an agent.
    pub fn of(&self, agent: AgentRef) -> impl Iterator<Item = &SessionMachine> {
        self.values().filter(move |session| session.agent == agent)
    }

    /// All of them, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut SessionMachine> {
        self.awake = self.all.keys().cloned().collect();
        self.all.values_mut().map(|entry| {
            entry.awake = true;
            &mut entry.session
        })
    }

    /// Those that are awake.
    pub fn awake(&self) -> impl Iterator<Item = &SessionMachine> {
        self.awake.iter().filter_map(|id| self.get(id))
    }

    /// Does `act` to each of these.
    pub fn for_each_awake(&mut self, mut act: impl FnMut(&mut SessionMachine)) {
        for id in &self.awake {
            if let Some(entry) = self.all.get_mut(id) {
                act(&mut entry.session);
            }
        }
    }

    /// Those that have nothing to do rest.
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

    /// Takes a session in.
    pub fn insert(&mut self, id: String, session: SessionMachine) {
        self.remove(&id);
        self.awake.push(id.clone());
        let awake = true;
        self.all.insert(id, Entry { session, awake });
    }

    /// Lets a session go.
    pub fn remove(&mut self, id: &str) {
        if self.all.remove(id).is_some() {
            self.awake.retain(|awake| awake != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::log::Log;
    use crate::core::store::{Store as _, Volatile};

    fn session(id: &str) -> SessionMachine {
        let log = Log::open(Volatile.open(id).unwrap()).unwrap();
        SessionMachine::new(id.to_owned(), AgentRef(0), "/".to_owned(), log)
    }

    fn awake(sessions: &Sessions) -> Vec<&str> {
        sessions.awake().map(|s| s.id.as_str()).collect()
    }

    #[test]
    fn only_those_that_were_touched_are_awake() {
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
