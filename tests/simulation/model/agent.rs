//! Common parts of the agents of both dialects: lines on their way to the hub, and checks of the hub's
//! requests in each session.

use std::collections::{BTreeMap, BTreeSet};

/// A line of an agent, with its effect on the ledger.
#[derive(Debug)]
pub struct Line {
    pub text: Vec<u8>,
    pub mark: LineEffect,
}

impl Line {
    pub fn new(text: impl Into<Vec<u8>>, mark: LineEffect) -> Self {
        let text = text.into();
        Self { text, mark }
    }
}

/// Effect of a line on the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEffect {
    Nothing,
    /// The prompt with this key is answered.
    Answered(String),
    /// The agent sends a request with this id.
    Requested(String),
    /// The meaning of the line is unknown: it disables checks.
    Wild,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The hub is reading the response.
    Given,
    /// The hub has read the response; what it decided earlier may still arrive.
    Read,
    Answered,
}

/// Open prompts and requests in the sessions of one process.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Last prompt of each session: its key and state.
    prompts: BTreeMap<String, (String, State)>,
    /// Requests of the agent that the hub has read and not answered.
    questions: BTreeSet<String>,
    wild: bool,
}

impl Ledger {
    /// The hub sends a prompt.
    pub fn prompt(&mut self, session: &str, key: &str) {
        let before = self
            .prompts
            .insert(session.to_owned(), (key.to_owned(), State::Open));
        let twice = before.is_some_and(|(_, state)| state == State::Open);
        assert!(self.wild || !twice, "two prompts at once in {session}");
    }

    /// The hub cancels a session; `is_in_turn` if the client sees a turn in it.
    pub fn cancel(&self, session: &str, is_in_turn: bool) {
        let prompt = self.prompts.get(session);
        let runs = prompt.is_some_and(|(_, state)| *state != State::Answered);
        assert!(
            self.wild || runs || is_in_turn,
            "a cancel to {session}, which is idle"
        );
    }

    /// The hub answers a request of the agent.
    pub fn answer(&mut self, id: &str) {
        let asked = self.questions.remove(id);
        assert!(self.wild || asked, "an answer to {id}, which is not open");
    }

    /// The hub starts to read a line.
    pub fn given(&mut self, mark: &LineEffect) {
        match mark {
            LineEffect::Answered(key) => self.set(key, State::Given),
            LineEffect::Requested(id) => _ = self.questions.insert(id.clone()),
            LineEffect::Wild => self.wild = true,
            LineEffect::Nothing => {}
        }
    }

    /// The hub has read a line.
    pub fn read(&mut self, mark: &LineEffect) {
        if let LineEffect::Answered(key) = mark {
            self.set(key, State::Read);
        }
    }

    /// The hub has performed everything that followed from what it read.
    pub fn settle(&mut self) {
        for (_, state) in self.prompts.values_mut() {
            if *state == State::Read {
                *state = State::Answered;
            }
        }
    }

    fn set(&mut self, key: &str, to: State) {
        for (of, state) in self.prompts.values_mut() {
            if of == key {
                *state = to;
            }
        }
    }

    /// Returns `true` if a line of unknown meaning was sent.
    #[must_use]
    pub fn is_wild(&self) -> bool {
        self.wild
    }

    /// Returns the number of requests that the hub has read and not answered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        if self.wild { 0 } else { self.questions.len() }
    }
}
