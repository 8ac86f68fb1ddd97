//! Calls and the questions about them: which open calls a question can stand for, and which calls ran without one.

use super::Tools;
use super::call::{Call, Progress};
use crate::core::policy::Subject;
use crate::proto::wire::AskedTool;

/// A call that ran without having been asked about.
#[derive(Debug)]
pub struct RanUnasked {
    /// Its id and the name of its tool.
    pub tool: AskedTool,
    /// What it was about, as far as it was told before its end.
    pub subject: Subject,
}

impl Tools {
    /// Whether the agent told of a call of this id otherwise than by a question about it.
    pub fn announced(&self, id: &str) -> bool {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        call.is_some_and(is_announced)
    }

    /// The calls that are open and that nothing was asked about yet: a question that names none can stand for them.
    pub fn unasked<'a>(&'a self, cwd: &'a str) -> impl Iterator<Item = (String, Subject)> + 'a {
        let calls = self.open.iter().map(|&at| &self.calls[at]);
        let calls = calls.filter(|call| is_announced(call) && !call.consent.asked);
        calls.map(move |call| (call.id().to_owned(), Subject::of_tool(&call.facts(), cwd)))
    }

    /// These calls need no question of their own.
    pub fn note_asked(&mut self, ids: &[String]) {
        for id in ids {
            if let Some(&at) = self.by_id.get(id.as_str()) {
                self.calls[at].consent.asked = true;
            }
        }
    }

    /// Whether calls ran without having been asked about that were not taken yet.
    pub fn has_ran_unasked(&self) -> bool {
        !self.ran_unasked.is_empty()
    }

    /// Forgets the calls that ran without having been asked about: no policy objects to them.
    pub fn forget_ran_unasked(&mut self) {
        self.ran_unasked.clear();
    }

    /// The calls that ran without having been asked about, each once.
    pub fn take_ran_unasked(&mut self, cwd: &str) -> Vec<RanUnasked> {
        let ran = std::mem::take(&mut self.ran_unasked).into_iter();
        let calls = ran.map(|at| &self.calls[at]);
        // What was asked about meanwhile was asked late, but asked.
        let calls = calls.filter(|call| !call.consent.asked);
        let unasked = |call: &Call| RanUnasked {
            // Its output can be huge, and nobody needs that here.
            tool: AskedTool {
                tool_call_id: call.id().to_owned(),
                tool_name: call.name().to_owned(),
                ..AskedTool::default()
            },
            subject: Subject::of_tool(&call.facts_before_end(), cwd),
        };
        calls.map(unasked).collect()
    }
}

fn is_announced(call: &Call) -> bool {
    call.consent.progress > Progress::Unannounced
}
