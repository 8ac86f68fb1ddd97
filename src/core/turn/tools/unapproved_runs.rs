//! Calls without a permission request: open calls that a question can stand for, and calls that ran.

use super::Tools;
use super::call::{Call, ReportProgress};
use crate::core::policy::Subject;
use crate::proto::wire::AskedTool;

/// A call that ran without a permission request.
#[derive(Debug)]
pub struct UnapprovedRun {
    /// Id of the call and name of its tool.
    pub tool: AskedTool,
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
        let calls = calls.filter(|call| is_announced(call) && !call.permission_state.asked);
        calls.map(move |call| (call.id().to_owned(), Subject::of_tool(&call.facts(), cwd)))
    }

    /// Marks calls that need no permission request of their own.
    pub fn note_permission_handled(&mut self, ids: &[String]) {
        for id in ids {
            if let Some(&at) = self.by_id.get(id.as_str()) {
                self.calls[at].permission_state.asked = true;
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
            subject: Subject::of_tool(&call.facts_before_end(), cwd),
        };
        calls.map(open_without_request).collect()
    }
}

fn is_announced(call: &Call) -> bool {
    call.permission_state.progress > ReportProgress::Unannounced
}
