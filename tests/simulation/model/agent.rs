//! What both dialects' agents have in common: lines on their way, and what the hub may do in which session.

use std::collections::{BTreeMap, BTreeSet};

/// A line of an agent, and what it means once the hub has read it.
#[derive(Debug)]
pub struct Line {
    pub text: Vec<u8>,
    pub mark: Mark,
}

impl Line {
    pub fn new(text: impl Into<Vec<u8>>, mark: Mark) -> Self {
        let text = text.into();
        Self { text, mark }
    }
}

/// What a line does to the order of things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Nothing,
    /// The prompt of this key is answered.
    Answered(String),
    /// A question is asked, by this id.
    Asked(String),
    /// Nobody knows what it means.
    Wild,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Its answer is being read.
    Given,
    /// It was read: what the hub decided before may still come.
    Read,
    Answered,
}

/// What the hub was asked, and asked, in the sessions of one process.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The last prompt of each session: its key, and how far it is.
    prompts: BTreeMap<String, (String, State)>,
    /// Questions that were read, and not answered.
    questions: BTreeSet<String>,
    wild: bool,
}

impl Ledger {
    /// The hub prompts.
    pub fn prompt(&mut self, session: &str, key: &str) {
        let before = self
            .prompts
            .insert(session.to_owned(), (key.to_owned(), State::Open));
        let twice = before.is_some_and(|(_, state)| state == State::Open);
        assert!(self.wild || !twice, "two prompts at once in {session}");
    }

    /// The hub cancels a session in which it shows a turn, or does not.
    pub fn cancel(&self, session: &str, is_in_turn: bool) {
        let prompt = self.prompts.get(session);
        let runs = prompt.is_some_and(|(_, state)| *state != State::Answered);
        assert!(
            self.wild || runs || is_in_turn,
            "a cancel to {session}, which is idle"
        );
    }

    /// The hub answers a question.
    pub fn answer(&mut self, id: &str) {
        let asked = self.questions.remove(id);
        assert!(self.wild || asked, "an answer to {id}, which is not open");
    }

    /// The hub begins to read a line.
    pub fn given(&mut self, mark: &Mark) {
        match mark {
            Mark::Answered(key) => self.set(key, State::Given),
            Mark::Asked(id) => _ = self.questions.insert(id.clone()),
            Mark::Wild => self.wild = true,
            Mark::Nothing => {}
        }
    }

    /// The hub has read a line.
    pub fn read(&mut self, mark: &Mark) {
        if let Mark::Answered(key) = mark {
            self.set(key, State::Read);
        }
    }

    /// The hub has done all that followed from what it read.
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

    /// Whether nobody knows what was said.
    #[must_use]
    pub fn is_wild(&self) -> bool {
        self.wild
    }

    /// How many questions the hub has read and not answered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        if self.wild { 0 } else { self.questions.len() }
    }
}
