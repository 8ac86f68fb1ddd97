//! Permission requests that a client answers with another input for the tool.

use super::SessionMachine;
use crate::core::answers::refusal;
use crate::core::client_requests::OpenRequest;
use crate::core::cx::Cx;
use crate::core::decision::{Decision, DecisionSource};
use crate::core::event::ToolUpdate;
use crate::core::policy::{Effect, Subject, ToolProperties};

impl SessionMachine {
    /// Checks that the call may run with the input that the client gives.
    ///
    /// # Errors
    /// The option refuses the call, the agent runs it only with its own input, or the policy denies it with
    /// the new input. The error is the decision to use if no other client can answer.
    pub(super) fn check_updated_input(
        &self,
        open: &OpenRequest,
        decision: Decision,
        cx: &Cx<'_>,
    ) -> Result<Decision, Box<Decision>> {
        if decision.updated_input.is_none() {
            return Ok(decision);
        }
        let options = open.about.options();
        let refused = |why: &str| Err(Box::new(refusal(options, why)));
        if !decision.approved() {
            return refused("updatedInput needs an option that allows the call");
        }
        let Some(call) = updated_call(open, &decision, cx) else {
            return refused(
                "updatedInput is not possible: the agent runs calls only with their own input",
            );
        };
        let verdict = self.verdict(&self.subject_of_call(&call), cx);
        if verdict.effect != Effect::Deny {
            return Ok(decision);
        }
        let by = format!("{}, for the input that the client gave", verdict.by);
        let by = DecisionSource::Policy(by);
        Err(Box::new(Decision::of(false, false, options, by)))
    }

    /// Returns the subject of a call that is described by an update alone.
    pub(super) fn subject_of_call(&self, call: &ToolUpdate<'_>) -> Subject {
        let tool = ToolProperties {
            name: call.name.as_deref(),
            title: call.title.as_deref(),
            kind: call.kind.as_deref(),
            input: call.input.as_deref(),
            locations: call.locations.as_deref(),
            content: None,
        };
        Subject::of_tool(&tool, &self.cwd)
    }
}

/// Returns the call of a request with the input of the decision; `None` if the decision has none, or the agent
/// runs the call only with its own input.
pub(super) fn updated_call(
    open: &OpenRequest,
    decision: &Decision,
    cx: &Cx<'_>,
) -> Option<ToolUpdate<'static>> {
    let input = decision.updated_input.as_deref()?;
    let connection = cx.agent.connection.as_ref();
    let connection = connection.filter(|connection| connection.number == open.agent)?;
    if open.ticket.is_some() {
        return None;
    }
    let rewrite = connection.request(&open.key)?.rewrite?;
    let mut call = rewrite(input)?;
    if let Some(id) = &open.about.question().tool {
        call.id = id.clone().into();
    }
    Some(call)
}
