//! Calls without a permission request: open calls that a question can stand for, and calls that ran.

use super::Tools;
use super::call::{Call, ReportProgress};
use crate::core::policy::Subject;
use crate::proto::wire::AskedTool;

/// Maximum number of calls that may be judged before they are reported.
const MAX_JUDGED_EARLY: usize = 1024;

/// A call that ran, or may have run, without a permission request.
#[derive(Debug)]
pub struct UnapprovedRun {
    /// Id of the call and name of its tool.
    pub tool: AskedTool,
    /// `true` if the agent reported that the call ran; `false` if it never reported the end of the call.
    pub is_certain: bool,
    /// Subject of the call, as reported before its end.
    pub subject: Subject,
}

impl Tools {
    /// Returns `true` if the agent reported the call other than by a permission request.
    pub fn announced(&self, id: &str) -> bool {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        call.is_some_and(is_announced)
    }

    /// Iterates over the open calls without a permission request; a request that names no call can stand for
    /// them.
    pub fn open_without_request<'a>(
        &'a self,
        cwd: &'a str,
    ) -> impl Iterator<Item = (String, Subject)> + 'a {
        let calls = self.open.iter().map(|&at| &self.calls[at]);
        let calls = calls.filter(|call| {
            let state = call.permission_state;
            is_announced(call) && !state.asked && !state.noted_earlier
        });
        calls.map(move |call| (call.id().to_owned(), Subject::of_tool(&call.facts(), cwd)))
    }

    /// Marks a call that needs no permission request of its own. Returns `false` if the call is not known.
    pub fn note_permission_handled(&mut self, id: &str) -> bool {
        let call = self.by_id.get(id).map(|&at| &mut self.calls[at]);
        call.is_some_and(|call| {
            call.permission_state.asked = true;
            true
        })
    }

    /// Records that a call was judged before the agent or one of its subagents reported it.
    pub fn note_judged_early(&mut self, id: &str) {
        if self.judged_early.len() < MAX_JUDGED_EARLY {
            self.judged_early.insert(id.into());
        }
    }

    /// Returns `true` if a call was asked about or judged before it was reported.
    pub fn is_expected(&self, id: &str) -> bool {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        self.judged_early.contains(id)
            || call.is_some_and(|call| call.permission_state.asked && !is_announced(call))
    }

    /// Notes the open calls without a permission request, since no end of them will be reported: they may have
    /// run. `completes_input` is `true` if the agent reports the complete input of a call before it runs.
    pub fn note_open_calls(&mut self, completes_input: bool) {
        for &at in &self.open {
            let call = &mut self.calls[at];
            let is_suspect = is_announced(call) && call.may_run(completes_input);
            let state = &mut call.permission_state;
            if is_suspect && state.is_unjudged() {
                state.noted = true;
                self.unapproved_runs.push(at);
            }
        }
    }

    /// Returns `true` if calls ran without a permission request and have not been taken yet.
    pub fn has_unapproved_runs(&self) -> bool {
        !self.unapproved_runs.is_empty()
    }

    /// Forgets the calls that ran without a permission request, because no policy objects to them.
    pub fn forget_unapproved_runs(&mut self) {
        self.unapproved_runs.clear();
    }

    /// Takes the calls that ran without a permission request, each once.
    pub fn take_unapproved_runs(&mut self, cwd: &str) -> Vec<UnapprovedRun> {
        let ran = std::mem::take(&mut self.unapproved_runs).into_iter();
        let calls = ran.map(|at| &self.calls[at]);
        // A permission request that came after the start counts.
        let calls = calls.filter(|call| !call.permission_state.asked);
        let open_without_request = |call: &Call| UnapprovedRun {
            // The output can be huge and is not needed here.
            tool: AskedTool {
                tool_call_id: call.id().to_owned(),
                tool_name: call.name().to_owned(),
                ..AskedTool::default()
            },
            is_certain: call.has_run(),
            subject: Subject::of_tool(&call.facts_before_end(), cwd),
        };
        calls.map(open_without_request).collect()
    }
}

fn is_announced(call: &Call) -> bool {
    call.permission_state.progress > ReportProgress::Unannounced
}
