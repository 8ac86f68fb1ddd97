//! Subagents of a turn: what each does makes a message of its own, shown whole as `data-subagent` and kept
//! out of the main text.

use super::{ChunkSink, Names, Question, Turn};
use crate::core::event::{Original, Permission, Update};
use crate::core::fold::Folding;
use crate::core::inquiry::Inquiry;
use crate::core::permit::Decision;
use crate::core::proportion::{Proportion, size};
use crate::proto::chunk::{Chunk, SubagentState};
use crate::proto::json::value;
use crate::proto::wire::OfferedOption;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The subagents of a turn.
#[derive(Debug, Default)]
pub struct Subagents {
    all: Vec<Subagent>,
    /// What was told of some of them in earlier turns.
    earlier: Arc<Names>,
}

#[derive(Debug)]
struct Subagent {
    id: String,
    info: Map<String, Value>,
    state: Map<String, Value>,
    /// Translates what the subagent says as if it were an agent.
    turn: Turn,
    folded: Folding,
    proportion: Proportion,
    /// About how large its message is, in bytes: what was shown last, and the chunks since.
    size: usize,
    /// The size of all chunks when it was shown last.
    folded_then: usize,
}

impl Subagents {
    pub fn new(earlier: Arc<Names>) -> Self {
        Self {
            all: Vec::new(),
            earlier,
        }
    }

    /// What was told of the subagents, taken out.
    pub fn take_infos(&mut self) -> impl Iterator<Item = (String, Map<String, Value>)> {
        let infos = self.all.iter_mut();
        infos.map(|s| (s.id.clone(), std::mem::take(&mut s.info)))
    }

    fn get(&mut self, id: &str, of: (&str, &'static str)) -> &mut Subagent {
        let known = self.all.iter().position(|known| known.id == id);
        let at = known.unwrap_or_else(|| {
            let (message, dialect) = of;
            let message = format!("{message}.sub{}", self.all.len() + 1);
            let mut folded = Folding::default();
            let about = json!({ "sessionId": id });
            let mut turn = Turn::start(message, dialect, &about, &Arc::default(), &mut folded);
            turn.is_subagent = true;
            self.all.push(Subagent {
                id: id.to_owned(),
                info: self.earlier.subagent(id),
                state: Map::new(),
                turn,
                folded,
                proportion: Proportion::default(),
                size: 0,
                folded_then: 0,
            });
            self.all.len() - 1
        });
        &mut self.all[at]
    }

    /// Takes what a subagent said, or what was said of it; `of` names the main message and its dialect.
    pub fn update(
        &mut self,
        id: &str,
        of: (&str, &'static str),
        update: &Update<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
    ) {
        let subagent = self.get(id, of);
        subagent.proportion.hear(original.line.len());
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
            _ => subagent.turn.update(update, original, &mut subagent.folded),
        }
        subagent.show_in_proportion(sink);
    }

    /// Shows a permission question of a subagent.
    pub fn ask(
        &mut self,
        id: &str,
        of: (&str, &'static str),
        permission: &Permission<'_>,
        (calls, automatic): (&[String], bool),
        sink: &mut impl ChunkSink,
    ) -> Question {
        let subagent = self.get(id, of);
        let folded = &mut subagent.folded;
        let mut question = subagent
            .turn
            .ask(None, permission, calls, automatic, folded);
        question.subagent = Some(id.to_owned());
        subagent.show(sink);
        question
    }

    /// Shows the answer to it.
    pub fn decide(&mut self, question: &Question, decision: &Decision, sink: &mut impl ChunkSink) {
        let id = question.subagent.as_deref();
        if let Some(subagent) = self.all.iter_mut().find(|s| Some(s.id.as_str()) == id) {
            let folded = &mut subagent.folded;
            subagent.turn.tools.decide(question, decision, folded);
            subagent.show(sink);
        }
    }

    /// Shows what the user is asked along with a permission question.
    pub fn inquire(
        &mut self,
        question: &mut Question,
        inquiry: Inquiry,
        options: Vec<OfferedOption>,
        sink: &mut impl ChunkSink,
    ) {
        let id = question.subagent.clone();
        if let Some(subagent) = self.all.iter_mut().find(|s| Some(&s.id) == id.as_ref()) {
            let folded = &mut subagent.folded;
            let tools = &mut subagent.turn.tools;
            tools.inquire(question, inquiry, options, folded);
            subagent.show(sink);
        }
    }

    /// Shows a question of a subagent to the user.
    pub fn pose(
        &mut self,
        id: &str,
        of: (&str, &'static str),
        tool: Option<&str>,
        inquiry: Inquiry,
        sink: &mut impl ChunkSink,
    ) -> Question {
        let subagent = self.get(id, of);
        let folded = &mut subagent.folded;
        let mut question = subagent.turn.pose(None, tool, inquiry, folded);
        question.subagent = Some(id.to_owned());
        subagent.show(sink);
        question
    }

    /// Shows that the user has been at an address to which a subagent sent him.
    pub fn visited(&mut self, id: &str, sink: &mut impl ChunkSink) -> bool {
        for subagent in &mut self.all {
            let tools = &mut subagent.turn.tools;
            if tools.visited(id, &mut subagent.folded) {
                subagent.show(sink);
                return true;
            }
        }
        false
    }

    /// The message of a subagent.
    pub fn turn(&self, id: &str) -> Option<&Turn> {
        let subagent = self.all.iter().find(|subagent| subagent.id == id);
        subagent.map(|subagent| &subagent.turn)
    }

    /// The messages of all of them.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.all.iter().map(|subagent| &subagent.turn)
    }

    /// The same, to be changed.
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

    /// Ends all of them and shows what was held back.
    pub fn close(&mut self, settle: super::Settle, sink: &mut impl ChunkSink) {
        for subagent in &mut self.all {
            subagent.turn.close(settle, &mut subagent.folded);
            subagent.show(sink);
        }
    }
}

impl Subagent {
    fn show_in_proportion(&mut self, sink: &mut impl ChunkSink) {
        let since = self.folded.size() - self.folded_then;
        if self.proportion.allows(self.size + since) {
            self.show(sink);
        }
    }

    fn show(&mut self, sink: &mut impl ChunkSink) {
        let message = self.folded.message();
        self.size = size(&message) + size(&self.info) + size(&self.state);
        self.folded_then = self.folded.size();
        self.proportion.show(self.size);
        sink.chunk(&Chunk::DataSubagent {
            id: &self.id,
            data: SubagentState {
                info: &self.info,
                state: &self.state,
                message: &message,
            },
        });
    }
}
