//! Subagents of a turn. Each has a turn of its own, kept out of the main text.

use super::{AgentIds, Question, SettleReason, Turn, TurnEvent, TurnView};
use acpipe_json::value;
use acpipe_model::decision::Decision;
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::{Original, Permission, ToolUpdate, Update};
use acpipe_policy::Subject;
use acpipe_protocol::wire::OfferedOption;
use serde_json::{Map, Value, json};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Subagents {
    all: Vec<Subagent>,
    /// Information that was reported on subagents in earlier turns.
    earlier: Arc<AgentIds>,
}

/// A subagent: its id, the information on it, the state of its session, and its turn.
#[derive(Debug)]
pub struct Subagent {
    pub(crate) id: String,
    pub(crate) info: Map<String, Value>,
    pub(crate) state: Map<String, Value>,
    turn: Turn,
}

impl Subagent {
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

impl Subagents {
    pub fn new(earlier: Arc<AgentIds>) -> Self {
        Self {
            all: Vec::new(),
            earlier,
        }
    }

    pub fn take_infos(&mut self) -> impl Iterator<Item = (String, Map<String, Value>)> {
        let infos = self.all.iter_mut();
        infos.map(|s| (s.id.clone(), std::mem::take(&mut s.info)))
    }

    /// Returns the number of a subagent, which is created if it is unknown; `message_id` is the id of the
    /// main message.
    fn at(&mut self, id: &str, message_id: &str, view: &mut impl TurnView) -> usize {
        if let Some(at) = self.place(Some(id)) {
            return at;
        }
        let at = self.all.len();
        let message = format!("{message_id}.sub{}", at + 1);
        let about = json!({ "sessionId": id });
        let view = &mut ViewOfSubagent { at, view };
        let names = Arc::new(self.earlier.for_subagent());
        let mut turn = Turn::start(message, &about, &names, view);
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

    /// Applies an update that comes from a subagent or describes it.
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

    pub fn ask(
        &mut self,
        id: &str,
        message_id: &str,
        permission: &Permission<'_>,
        (subject, automatic): (&Subject, bool),
        view: &mut impl TurnView,
    ) -> Question {
        let at = self.at(id, message_id, view);
        let mut question = self.change(at, view, |turn, view| {
            turn.ask_own(permission, subject, automatic, view)
        });
        question.subagent = Some(id.to_owned());
        question
    }

    pub fn decide(&mut self, question: &Question, decision: &Decision, view: &mut impl TurnView) {
        if let Some(at) = self.place(question.subagent.as_deref()) {
            self.change(at, view, |turn, view| {
                turn.tools.decide(question, decision, view);
            });
        }
    }

    /// Replaces the input of the call of a subagent's permission request.
    pub fn rewrite(
        &mut self,
        question: &Question,
        tool: &ToolUpdate<'_>,
        subject: &Subject,
        view: &mut impl TurnView,
    ) {
        if let Some(at) = self.place(question.subagent.as_deref()) {
            self.change(at, view, |turn, view| {
                turn.tools.rewrite(question, tool, subject, view);
            });
        }
    }

    pub fn attach_elicitation(
        &mut self,
        question: &mut Question,
        elicitation: ElicitationDetails,
        options: Vec<OfferedOption>,
        view: &mut impl TurnView,
    ) {
        if let Some(at) = self.place(question.subagent.as_deref()) {
            self.change(at, view, |turn, view| {
                turn.tools
                    .attach_elicitation(question, elicitation, options, view);
            });
        }
    }

    pub fn elicit(
        &mut self,
        id: &str,
        message_id: &str,
        tool: Option<&str>,
        elicitation: ElicitationDetails,
        view: &mut impl TurnView,
    ) -> Question {
        let at = self.at(id, message_id, view);
        let mut question = self.change(at, view, |turn, view| {
            turn.elicit(None, tool, elicitation, view)
        });
        question.subagent = Some(id.to_owned());
        question
    }

    /// Records that a URL elicitation was completed. Returns `false` if no subagent knows the id.
    pub fn url_completed(&mut self, id: &str, view: &mut impl TurnView) -> bool {
        for at in 0..self.all.len() {
            let subagent = &mut self.all[at];
            let of_subagent = &mut ViewOfSubagent { at, view };
            if subagent.turn.tools.url_completed(id, of_subagent) {
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

    pub fn turn(&self, id: &str) -> Option<&Turn> {
        let subagent = self.all.iter().find(|subagent| subagent.id == id);
        subagent.map(|subagent| &subagent.turn)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Subagent> {
        self.all.iter()
    }

    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.all.iter().map(|subagent| &subagent.turn)
    }

    pub fn turns_mut(&mut self) -> impl Iterator<Item = &mut Turn> {
        self.all.iter_mut().map(|subagent| &mut subagent.turn)
    }

    /// Returns the id of the subagent that made a call.
    pub fn caller(&self, call: &str) -> Option<&str> {
        let caller = self.all.iter().find(|s| s.turn.tools.knows(call));
        caller.map(|subagent| subagent.id.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns `true` if a tool of a subagent runs.
    pub fn are_working(&self) -> bool {
        self.all.iter().any(|s| s.turn.activity().is_some())
    }

    pub fn close(&mut self, settle: SettleReason, view: &mut impl TurnView) {
        for at in 0..self.all.len() {
            self.change(at, view, |turn, view| turn.close(settle, view));
        }
    }
}

/// Forwards the events of a subagent's turn to the view of the main turn.
///
/// This is the only dynamic dispatch between a turn and its views: static dispatch would need an infinitely
/// nested type, because a turn contains turns.
struct ViewOfSubagent<'a> {
    at: usize,
    view: &'a mut dyn TurnView,
}

impl TurnView for ViewOfSubagent<'_> {
    fn event(&mut self, event: &TurnEvent<'_>) {
        let at = self.at;
        self.view.event(&TurnEvent::FromSubagent { at, event });
    }
}
