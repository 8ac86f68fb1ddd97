//! Calls without an approval: open calls that a question can stand for, and calls that ran.

use super::call::{Call, Noted, ReportProgress, terminals};
use super::{Judgement, RunEvidence, RunKind, Tools};
use crate::turn::call_ids::CallState;
use acpipe_model::decision::Decision;
use acpipe_policy::Subject;
use acpipe_protocol::wire::AskedTool;

/// Maximum number of calls that may be judged before they are reported.
const MAX_JUDGED_EARLY: usize = 1024;

/// A call that ran, or may have run, and that was not approved as it ran.
#[derive(Debug)]
pub struct UnapprovedRun {
    pub tool: AskedTool,
    pub kind: RunKind,
    /// Subject by which the run was judged before, if it only says more now, or less.
    pub before: Option<Box<Subject>>,
    /// `true` if the agent reported that the call ran; `false` if it failed, or its end was never reported.
    pub is_certain: bool,
    pub has_started: bool,
    /// Ids of the terminals that the call shows.
    pub terminals: Vec<String>,
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
            is_announced(call) && !state.asked && state.noted != Noted::Earlier
        });
        calls.map(move |call| (call.id().to_owned(), Subject::of_tool(&call.facts(), cwd)))
    }

    fn known(&mut self, id: &str) -> Option<&mut Call> {
        let at = *self.by_id.get(id)?;
        Some(&mut self.calls[at])
    }

    /// Adds to the judgement of a call. Returns `false` if the call is not known.
    pub fn note_judgement(&mut self, id: &str, judgement: &Judgement) -> bool {
        let call = self.known(id);
        call.is_some_and(|call| {
            if judgement.is_asking() {
                call.await_start();
            }
            call.judge(|known| known.add(judgement.clone()));
            true
        })
    }

    /// Records that a call was judged before the agent or one of its subagents reported it.
    pub fn note_judged_early(&mut self, id: &str, judgement: Judgement) {
        if self.judged_early.len() < MAX_JUDGED_EARLY {
            self.judged_early
                .entry(id.into())
                .or_default()
                .add(judgement);
        }
    }

    pub fn decide_calls(&mut self, calls: &[String], question: &str, decision: &Decision) {
        for id in calls {
            if let Some(call) = self.known(id) {
                call.judge(|judgement| judgement.decide(question, decision));
            } else if let Some(judgement) = self.judged_early.get_mut(id.as_str()) {
                judgement.decide(question, decision);
            }
        }
    }

    /// Returns `true` if a call was asked about or judged before it was reported.
    pub fn is_expected(&self, id: &str) -> bool {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        self.judged_early.contains_key(id)
            || call.is_some_and(|call| call.permission_state.asked && !is_announced(call))
    }

    /// Returns the judgement of a call that was asked about or judged before it was reported.
    pub fn expected(&self, id: &str) -> Option<&Judgement> {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        let call = call.filter(|call| call.permission_state.asked && !is_announced(call));
        let early = || self.judged_early.get(id);
        call.and_then(|call| call.judgement.as_deref())
            .or_else(early)
    }

    /// Notes the calls without an end that are not approved as they are: no end of them will be reported, and they
    /// may have run. A refused call may if the agent started it afterwards. `completes_input` is `true` if the agent
    /// reports the complete input of a call before it runs.
    pub fn note_open_calls(&mut self, completes_input: bool) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            let may_run = match call.state() {
                CallState::Open => is_announced(call) && call.may_run(completes_input),
                CallState::Denied => call.has_started(),
                CallState::Ended => false,
            };
            if may_run && !call.permission_state.is_settled {
                call.note_run();
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

    /// Takes over the judgements of calls that were judged before they were reported here.
    pub fn adopt_expected(&mut self, asker: &Self) {
        for &at in &self.unapproved_runs {
            let call = &mut self.calls[at];
            if let Some(judgement) = asker.expected(call.id()) {
                call.judge(|known| known.add(judgement.clone()));
            }
        }
    }

    /// Takes the calls that ran and were not approved as they ran, each once.
    pub fn take_unapproved_runs(&mut self, cwd: &str) -> Vec<UnapprovedRun> {
        let ran = std::mem::take(&mut self.unapproved_runs).into_iter();
        let calls = &mut self.calls;
        ran.filter_map(|at| calls[at].unapproved_run(cwd)).collect()
    }
}

impl Call {
    /// Changes the judgement of the call: a run has to be compared with it.
    pub(super) fn judge(&mut self, change: impl FnOnce(&mut Judgement)) {
        change(self.judgement.get_or_insert_default());
        let state = &mut self.permission_state;
        state.asked = true;
        state.is_settled = false;
    }

    /// Records that a permission request was received: a report that the call runs counts from now on.
    pub(super) fn await_start(&mut self) {
        let state = &mut self.permission_state;
        state.progress = state.progress.min(ReportProgress::Announced);
    }

    /// Records that the call is passed on to be judged.
    pub(super) fn note_run(&mut self) {
        self.permission_state.noted = Noted::Now;
        self.permission_state.is_settled = true;
    }

    fn unapproved_run(&mut self, cwd: &str) -> Option<UnapprovedRun> {
        let subject = self.subject_before_end(cwd);
        self.forget_replaced_facts();
        let evidence = RunEvidence {
            is_complete: self.has_succeeded(),
            has_started: self.has_started(),
        };
        let input = self.input.as_deref();
        let judgement = self.judgement.get_or_insert_default();
        let run = judgement.note_run(&subject, input, evidence)?;
        Some(UnapprovedRun {
            // The output can be huge and is not needed here.
            tool: AskedTool {
                tool_call_id: self.id().to_owned(),
                tool_name: self.name().to_owned(),
                ..AskedTool::default()
            },
            kind: run.kind,
            before: run.before,
            is_certain: self.has_run(),
            has_started: self.has_started(),
            terminals: terminals(self.content.as_deref()),
            subject,
        })
    }
}

fn is_announced(call: &Call) -> bool {
    call.permission_state.progress > ReportProgress::Unannounced
}
