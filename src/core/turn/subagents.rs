//! Subagents of a turn: what each does makes a turn of its own, kept out of the main text.

use super::{Names, Question, Settle, Turn, TurnEvent, TurnView};
use crate::core::event::{Original, Permission, Update};
use crate::core::inquiry::Inquiry;
use crate::core::permit::Decision;
use crate::proto::json::value;
use crate::proto::wire::OfferedOption;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The subagents of a turn.
#[derive(Debug, Default)]
pub struct Subagents {
    all: Vec<Subagent>,
    /// What was reported of some of them in earlier turns.
    earlier: Arc<Names>,
}

/// A subagent: what was reported of it and of its session, and its turn.
#[derive(Debug)]
pub struct Subagent {
    pub(in crate::core) id: String,
    pub(in crate::core) info: Map<String, Value>,
    pub(in crate::core) state: Map<String, Value>,
    turn: Turn,
}

impl Subagents {
    pub fn new(earlier: Arc<Names>) -> Self {
        Self {
            all: Vec::new(),
            earlier,
        }
    }

    /// What was reported of the subagents, taken out.
    pub fn take_infos(&mut self) -> impl Iterator<Item = (String, Map<String, Value>)> {
        let infos = self.all.iter_mut();
        infos.map(|s| (s.id.clone(), std::mem::take(&mut s.info)))
    }

    /// The place of a subagent, which begins if it is not known; `message_id` is that of the main message.
    fn at(&mut self, id: &str, message_id: &str, view: &mut impl TurnView) -> usize {
        if let Some(at) = self.place(Some(id)) {
            return at;
        }
        let at = self.all.len();
        let message = format!("{message_id}.sub{}", at + 1);
        let about = json!({ "sessionId": id });
        let view = &mut ViewOfSubagent { at, view };
        let mut turn = Turn::start(message, &about, &Arc::default(), view);
        turn.is_subagent = true;
        self.all.push(Subagent {
            id: id.to_owned(),
            info: self.earlier.subagent(id),
            state: Map::new(),
            turn,
        });
        at
    }

    fn place(&self, id: Option<&str>) -> Option<usize> {
        self.all.iter().position(|s| Some(s.id.as_str()) == id)
    }

    /// Lets `act` change the turn of a subagent, then reports the change.
    fn change<T>(
        &mut self,
        at: usize,
        view: &mut impl TurnView,
        act: impl FnOnce(&mut Turn, &mut ViewOfSubagent<'_>) -> T,
    ) -> T {
        let subagent = &mut self.all[at];
        let done = act(&mut subagent.turn, &mut ViewOfSubagent { at, view });
        view.event(&TurnEvent::Subagent {
            at,
            subagent,
            reported: None,
        });
        done
    }

    /// Takes what a subagent reported, or what was reported of it.
    pub fn update(
        &mut self,
        id: &str,
        message_id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        let at = self.at(id, message_id, view);
        let subagent = &mut self.all[at];
        match update {
            Update::Subagent { .. } => {
                for (name, said) in original.fields().without(&["sessionId"]).iter() {
                    subagent.info.insert(name.to_owned(), value(said));
                }
            }
            Update::Session(news) => {
                for (name, said) in news.iter() {
                    subagent.state.insert(name.to_owned(), value(said));
                }
            }
            _ => {
                let view = &mut ViewOfSubagent { at, view };
                subagent.turn.update(update, original, view);
            }
        }
        view.event(&TurnEvent::Subagent {
            at,
            subagent,
            reported: Some(original.line.len()),
        });
    }

    /// Takes a permission question of a subagent.
    pub fn ask(
        &mut self,
        id: &str,
        message_id: &str,
        permission: &Permission<'_>,
        (calls, automatic): (&[String], bool),
        view: &mut impl TurnView,
    ) -> Question {
        let at = self.at(id, message_id, view);
        let mut question = self.change(at, view, |turn, view| {
            turn.ask(None, permission, calls, automatic, view)
        });
        question.subagent = Some(id.to_owned());
        question
    }

    /// Takes the answer to it.
    pub fn decide(&mut self, question: &Question, decision: &Decision, view: &mut impl TurnView) {
        if let Some(at) = self.place(question.subagent.as_deref()) {
            self.change(at, view, |turn, view| {
                turn.tools.decide(question, decision, view);
            });
        }
    }

    /// Takes what the user is asked along with a permission question.
    pub fn inquire(
        &mut self,
        question: &mut Question,
        inquiry: Inquiry,
        options: Vec<OfferedOption>,
        view: &mut impl TurnView,
    ) {
        if let Some(at) = self.place(question.subagent.as_deref()) {
            self.change(at, view, |turn, view| {
                turn.tools.inquire(question, inquiry, options, view);
            });
        }
    }

    /// Takes a question of a subagent to the user.
    pub fn pose(
        &mut self,
        id: &str,
        message_id: &str,
        tool: Option<&str>,
        inquiry: Inquiry,
        view: &mut impl TurnView,
    ) -> Question {
        let at = self.at(id, message_id, view);
        let mut question = self.change(at, view, |turn, view| turn.pose(None, tool, inquiry, view));
        question.subagent = Some(id.to_owned());
        question
    }

    /// The user has been at an address to which a subagent sent them.
    pub fn visited(&mut self, id: &str, view: &mut impl TurnView) -> bool {
        for at in 0..self.all.len() {
            let subagent = &mut self.all[at];
            let of_subagent = &mut ViewOfSubagent { at, view };
            if subagent.turn.tools.visited(id, of_subagent) {
                view.event(&TurnEvent::Subagent {
                    at,
                    subagent,
                    reported: None,
                });
                return true;
            }
        }
        false
    }

    /// The turn of a subagent.
    pub fn turn(&self, id: &str) -> Option<&Turn> {
        let subagent = self.all.iter().find(|subagent| subagent.id == id);
        subagent.map(|subagent| &subagent.turn)
    }

    /// The turns of all of them.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.all.iter().map(|subagent| &subagent.turn)
    }

    /// The turns of all of them, to be changed.
    pub fn turns_mut(&mut self) -> impl Iterator<Item = &mut Turn> {
        self.all.iter_mut().map(|subagent| &mut subagent.turn)
    }

    /// The subagent that made a call.
    pub fn caller(&self, call: &str) -> Option<&str> {
        let caller = self.all.iter().find(|s| s.turn.tools.knows(call));
        caller.map(|subagent| subagent.id.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a tool of one of them runs.
    pub fn are_working(&self) -> bool {
        self.all.iter().any(|s| s.turn.activity().is_some())
    }

    /// Ends all of them.
    pub fn close(&mut self, settle: Settle, view: &mut impl TurnView) {
        for at in 0..self.all.len() {
            self.change(at, view, |turn, view| turn.close(settle, view));
        }
    }
}

/// Delivers the events of a subagent's turn to the views of the turn that it belongs to.
///
/// The only dynamic dispatch between a turn and its views: a turn that contains turns would need an endless type else.
struct ViewOfSubagent<'a> {
    at: usize,
    view: &'a mut dyn TurnView,
}

impl TurnView for ViewOfSubagent<'_> {
    fn event(&mut self, event: &TurnEvent<'_>) {
        let at = self.at;
        self.view.event(&TurnEvent::OfSubagent { at, event });
    }
}
