//! Tool calls that a policy may forbid and of which acpipe knows no more than that they exist: it could not read the
//! message, or does not know the session. They may have run without a permission request.

use super::SessionMachine;
use super::hook_policy::judges_calls;
use super::policy_notices::PolicyNotice;
use super::unapproved_runs::MAY_HAVE_RUN;
use crate::core::cx::Cx;
use crate::core::event::LostCall;
use tracing::info;

impl SessionMachine {
    /// Reports a call whose message cannot be read. An update of a known call is not reported: that call is judged by
    /// its other messages.
    pub fn report_lost_call(&mut self, lost: &LostCall, cx: &mut Cx<'_>) {
        if let Some(id) = &lost.updates {
            let own = self.talk.turns.call_named(id, self.talk.output.log());
            let id = own.as_ref().unwrap_or(id);
            if self.talk.turns.has_call(id) {
                return;
            }
        }
        let fault = &lost.fault;
        self.report_unknown_call(&format!("a line about a tool call {fault}"), cx);
    }

    /// Reports a call of which acpipe knows nothing else, in the turn that runs. Returns `false` without a turn, and if
    /// the policy forbids nothing.
    pub fn report_unknown_call(&mut self, why: &str, cx: &mut Cx<'_>) -> bool {
        let connection = cx.agent.connection.as_ref();
        // The rules are applied to another message about each call.
        let asks = judges_calls(&self.talk.settings, cx)
            && connection.is_some_and(|connection| connection.facts().reports_before_run);
        if asks || !cx.policy().may_restrict(self.talk.settings.options()) {
            return false;
        }
        let Some(turn_id) = self.talk.turns.id().map(str::to_owned) else {
            return false;
        };
        info!(
            session = self.talk.id,
            why, "a tool may have run without asking for permission"
        );
        let description = format!("{why}; the policy could not judge it");
        let notice = PolicyNotice {
            severity: "warning",
            title: MAY_HAVE_RUN,
            description: &description,
            call: None,
        };
        notice.show(Some(&turn_id), &mut self.talk.output, cx.clients);
        true
    }
}
