//! Call of a permission request with the input that a client gave.

use crate::client_requests::OpenRequest;
use crate::cx::Cx;
use acpipe_model::decision::Decision;
use acpipe_model::event::ToolUpdate;

/// Returns the call of a request with the input of the decision; `None` if the decision has none, or the agent
/// runs the call only with its own input.
pub fn updated_call(
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
