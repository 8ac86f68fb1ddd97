//! Tool calls of one turn: partial updates are merged into the state of a call.
//!
//! A call is created by the first report that names it: a call, an update or a permission request.

mod call;
mod judgement;
mod question;
mod unapproved_runs;

use super::call_ids::CallState;
use super::{AgentIds, TurnEvent, TurnView};
use acpipe_json::JsonStr;
use acpipe_model::event::{ToolStatus, ToolUpdate};
use acpipe_protocol::wire::{ToolCall, ToolResult};
pub use call::{Call, CallChange};
use call::{Noted, ReportProgress};
pub use judgement::{Judgement, RunEvidence, RunKind};
use question::UrlElicitation;
pub use question::{Question, written};
use std::collections::HashMap;
use std::sync::Arc;
pub use unapproved_runs::UnapprovedRun;

/// The running tool, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity<'a> {
    pub tool_name: &'a str,
    /// Title of the call, or the tool name if the call has no title.
    pub description: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleReason {
    /// The agent ended the turn without a result of the call.
    TurnEnded,
    Cancelled,
    /// The turn or the attempt failed.
    Failed,
    /// The model is called again without having finished the call.
    ModelCalledAgain,
}

impl SettleReason {
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::TurnEnded => {
                "The agent ended its turn without reporting a result of this tool call"
            }
            Self::Cancelled => "Cancelled before it finished",
            Self::Failed => "The turn failed before this tool reported a result",
            Self::ModelCalledAgain => "The agent restarted its message before it called this tool",
        }
    }
}

/// All calls of a turn.
#[derive(Debug)]
pub struct Tools {
    message_id: String,
    /// Ids of the message that this one may continue.
    earlier: Arc<AgentIds>,
    calls: Vec<Call>,
    by_id: HashMap<Box<str>, usize>,
    /// Indices of the unsettled calls, in the order of their first appearance.
    open: Vec<usize>,
    asked: u32,
    url_elicitations: Vec<UrlElicitation>,
    failed_last: Option<usize>,
    /// Indices of the calls that ran without a permission request, until they are judged.
    unapproved_runs: Vec<usize>,
    /// Judgements of calls that were judged before the agent reported them, by id.
    judged_early: HashMap<Box<str>, Judgement>,
}

impl Tools {
    pub fn new(message_id: String, earlier: Arc<AgentIds>) -> Self {
        Self {
            message_id,
            earlier,
            calls: Vec::new(),
            by_id: HashMap::new(),
            open: Vec::new(),
            asked: 0,
            url_elicitations: Vec::new(),
            failed_last: None,
            unapproved_runs: Vec::new(),
            judged_early: HashMap::new(),
        }
    }

    fn call(&mut self, update: &ToolUpdate<'_>) -> usize {
        if let Some(&at) = self.by_id.get(update.id.as_ref()) {
            return at;
        }
        let earlier = self.earlier.call(&update.id).filter(|_| !update.begins);
        let mut call = Call::new(update, earlier.map(|call| call.name.as_str()));
        if let Some(judgement) = self.judged_early.remove(update.id.as_ref()) {
            call.judge(|known| known.add(judgement));
        }
        if let Some(earlier) = earlier {
            // Known facts of the call need no further permission request.
            let state = &mut call.permission_state;
            state.asked = earlier.asked;
            if earlier.noted {
                state.noted = Noted::Earlier;
            }
            state.is_settled = earlier.is_settled();
            call.judgement.clone_from(&earlier.judgement);
        }
        self.calls.push(call);
        let at = self.calls.len() - 1;
        self.by_id.insert(update.id.as_ref().into(), at);
        self.open.push(at);
        at
    }

    pub fn is_open(&self, id: &str) -> Option<bool> {
        Some(self.state(id)? == CallState::Open)
    }

    pub fn state(&self, id: &str) -> Option<CallState> {
        Some(self.calls[*self.by_id.get(id)?].state())
    }

    /// Returns `true` if an update has nothing that is not known of a call.
    pub fn repeats(&self, id: &str, update: &ToolUpdate<'_>) -> bool {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        call.is_some_and(|call| call.is_repeated_by(update))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter()
    }

    /// Iterates over the ids of the calls, and of those that were judged before they are reported.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.by_id.keys().chain(self.judged_early.keys());
        ids.map(|id| &**id)
    }

    pub fn knows(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Returns the id of the last call that shows a terminal with this name.
    pub fn showing(&self, terminal: &str) -> Option<&str> {
        let mut calls = self.calls.iter().rev();
        Some(calls.find(|call| call.shows(terminal))?.id())
    }

    fn note_settled(&mut self, at: usize) {
        if !self.calls[at].is_open() {
            self.open.retain(|&open| open != at);
        }
    }

    pub fn update(&mut self, update: &ToolUpdate<'_>, view: &mut impl TurnView) {
        let at = self.call(update);
        let call = &mut self.calls[at];
        let change = call.update(update);
        let status = update.status.as_deref().and_then(ToolStatus::of);
        let progress = match status {
            Some(ToolStatus::InProgress) => ReportProgress::Started,
            _ => ReportProgress::Announced,
        };
        let state = &mut call.permission_state;
        state.progress = state.progress.max(progress);
        if state.noted == Noted::Earlier {
            let earlier = self.earlier.call(&update.id);
            let changes = earlier.is_none_or(|earlier| earlier.facts.are_changed_by(update));
            if changes {
                state.noted = Noted::No;
                state.is_settled = false;
            }
        } else if change.facts {
            state.is_settled = false;
        }
        if !call.permission_state.is_settled && call.may_have_run() {
            call.note_run();
            self.unapproved_runs.push(at);
        }
        let mut mended = None;
        let delta = update
            .input_delta
            .filter(|delta| call.write(*delta, &mut mended));
        let mended = mended.as_deref().and_then(JsonStr::new);
        view.event(&TurnEvent::Tool {
            at,
            call,
            change,
            input_delta: delta.map(|delta| mended.unwrap_or(delta)),
        });
        self.failed_last = call.has_failed().then_some(at);
        self.note_settled(at);
    }

    /// Ends the step in which the calls so far were made.
    pub fn end_step(&mut self, view: &mut impl TurnView) {
        for &at in &self.open {
            self.calls[at].end_step();
        }
        self.open.retain(|&at| self.calls[at].is_open());
        view.event(&TurnEvent::Step { calls: &self.calls });
    }

    /// Sets the output of a call's terminals. It becomes part of the call's result if the call itself reports
    /// no text.
    pub fn set_terminal_output(&mut self, id: &str, output: String, view: &mut impl TurnView) {
        if let Some(&at) = self.by_id.get(id)
            && self.calls[at].set_terminal_output(output)
        {
            let call = &self.calls[at];
            view.event(&TurnEvent::TerminalOutput { at, call });
        }
    }

    pub fn settle(&mut self, why: SettleReason, view: &mut impl TurnView) {
        self.open.clear();
        for call in &mut self.calls {
            call.settle(why);
        }
        let calls = &self.calls;
        view.event(&TurnEvent::Settled { why, calls });
    }

    pub fn activity(&self) -> Option<Activity<'_>> {
        let call = &self.calls[*self.open.last()?];
        Some(Activity {
            tool_name: call.name(),
            description: call.title().unwrap_or(call.name()),
        })
    }

    /// Takes out the ids of the calls and the names of their tools.
    pub fn take_agent_ids(&mut self) -> AgentIds {
        let earlier = &self.earlier;
        let calls = self.calls.iter_mut();
        let ended = calls.map(|call| call.take_ended(earlier.call(call.id())));
        AgentIds::of_tools(std::mem::take(&mut self.by_id), ended.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the calls with arguments of up to `room` bytes in total, and the number of bytes that did not
    /// fit.
    pub fn calls(&self, mut room: usize) -> (Vec<ToolCall>, u64) {
        let mut omitted = 0;
        let calls = self.calls.iter();
        let calls = calls.map(|call| call.summary(&mut room, &mut omitted));
        (calls.collect(), omitted)
    }

    /// Returns the results of up to `room` bytes in total, and the number of bytes that did not fit.
    pub fn results(&self, mut room: usize) -> (Vec<ToolResult>, u64) {
        let mut omitted = 0;
        let calls = self.calls.iter();
        let results = calls.filter_map(|call| call.result(&mut room, &mut omitted));
        (results.collect(), omitted)
    }

    pub fn failed_last(&self) -> Option<&str> {
        self.failed_last.map(|at| self.calls[at].name())
    }

    /// Records an event other than a tool's: the last failure did not end the turn.
    pub fn clear_last_failure(&mut self) {
        self.failed_last = None;
    }
}
