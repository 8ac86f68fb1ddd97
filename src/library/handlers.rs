//! Requests of agents to the program, and its answers.

use acpipe_model::option_choice::choose;
use acpipe_protocol::wire::{
    AskedTool, OfferedOption, PermissionParams, QuestionKind, QuestionParams,
};
use serde_json::{Map, Value, json};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Handlers of the program.
#[derive(Clone, Default)]
pub struct Handlers {
    /// Handler of permission requests.
    pub permission: Option<Handler<PermissionRequest, PermissionReply>>,
    /// Handler of questions.
    pub question: Option<Handler<QuestionRequest, QuestionReply>>,
}

/// Asynchronous function from a request to its reply.
pub type Handler<Q, A> = Arc<dyn Fn(Q) -> ReplyFuture<A> + Send + Sync>;

/// Future of a reply.
pub type ReplyFuture<A> = Pin<Box<dyn Future<Output = A> + Send>>;

/// Boxes a handler.
pub fn boxed<Q, A, F>(handler: impl Fn(Q) -> F + Send + Sync + 'static) -> Handler<Q, A>
where
    F: Future<Output = A> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handler(request)))
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("permission", &self.permission.is_some())
            .field("question", &self.question.is_some())
            .finish()
    }
}

/// Permission request: an agent wants to run a tool, and the [`Policy`](super::Policy) leaves the decision to
/// the program.
///
/// ```
/// use acpipe::{PermissionReply, PermissionRequest};
///
/// fn decide(request: &PermissionRequest) -> PermissionReply {
///     match request.command() {
///         Some("cargo test") => request.allow(),
///         Some(_) => request.deny_because("run only the tests"),
///         None => request.deny(),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct PermissionRequest(Box<PermissionParams>);

impl PermissionRequest {
    pub(super) fn new(params: Box<PermissionParams>) -> Self {
        Self(params)
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// Returns the id of the turn; `None` outside of a turn.
    #[must_use]
    pub fn turn_id(&self) -> Option<&str> {
        self.0.turn_id.as_deref()
    }

    /// Returns the tool call.
    #[must_use]
    pub fn tool(&self) -> &AskedTool {
        &self.0.tool_call
    }

    /// Returns the command line that the tool runs; `None` if it is unknown.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        self.0.command.as_deref()
    }

    /// Returns the paths that the tool works on; empty if they are unknown.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.0.paths
    }

    /// Returns the options that the agent offers.
    #[must_use]
    pub fn options(&self) -> &[OfferedOption] {
        &self.0.options
    }

    /// Returns the rule of the policy that left the decision to the program.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.0.rule
    }

    /// Allows this action once.
    #[must_use]
    pub fn allow(&self) -> PermissionReply {
        self.answer(true, false, None)
    }

    /// Allows this action, and lets the agent remember that if it offers to.
    #[must_use]
    pub fn allow_always(&self) -> PermissionReply {
        self.answer(true, true, None)
    }

    /// Rejects this action once.
    #[must_use]
    pub fn deny(&self) -> PermissionReply {
        self.answer(false, false, None)
    }

    /// Rejects this action once, and gives the agent the reason if its protocol can carry one.
    #[must_use]
    pub fn deny_because(&self, reason: &str) -> PermissionReply {
        self.answer(false, false, Some(reason))
    }

    /// Chooses an option of the agent by its id.
    #[must_use]
    pub fn select(&self, option_id: &str) -> PermissionReply {
        selected(option_id, None)
    }

    /// Dismisses the request without a choice. Some agents then end the turn.
    #[must_use]
    pub fn dismiss(&self) -> PermissionReply {
        dismissed(None)
    }

    fn answer(&self, allow: bool, prefers_always: bool, message: Option<&str>) -> PermissionReply {
        match choose(allow, prefers_always, &self.0.options) {
            Some(option) => selected(&option.option_id, message),
            None => dismissed(message),
        }
    }
}

fn selected(option_id: &str, message: Option<&str>) -> PermissionReply {
    let outcome = json!({ "outcome": "selected", "optionId": option_id, "message": message });
    PermissionReply(json!({ "outcome": outcome }))
}

fn dismissed(message: Option<&str>) -> PermissionReply {
    PermissionReply(json!({ "outcome": { "outcome": "cancelled", "message": message } }))
}

/// Answer to a [`PermissionRequest`], made by its methods.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionReply(pub(super) Value);

/// Question of an agent to its user: a form, an address to open, or a plan to approve.
#[derive(Debug, Clone)]
pub struct QuestionRequest(Box<QuestionParams>);

impl QuestionRequest {
    pub(super) fn new(params: Box<QuestionParams>) -> Self {
        Self(params)
    }

    /// Returns the id of the session; `None` if the question belongs to none, for example during a sign-in.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.0.session_id.as_deref()
    }

    /// Returns the id of the turn; `None` outside of a turn.
    #[must_use]
    pub fn turn_id(&self) -> Option<&str> {
        self.0.turn_id.as_deref()
    }

    /// Returns the kind of the question.
    #[must_use]
    pub fn kind(&self) -> QuestionKind {
        self.0.kind
    }

    /// Returns the question; with [`QuestionKind::Plan`] the plan.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the JSON schema of the answer to a form.
    #[must_use]
    pub fn schema(&self) -> Option<&Value> {
        self.0.schema.as_ref()
    }

    /// Returns the address that the user should open, with [`QuestionKind::Url`].
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.0.url.as_deref()
    }

    /// Returns the options of the agent, with [`QuestionKind::Plan`].
    #[must_use]
    pub fn options(&self) -> &[OfferedOption] {
        &self.0.options
    }

    /// Answers or approves. `content` has the values of a form, or `optionId` of a plan; it may be empty
    /// otherwise.
    #[must_use]
    pub fn accept(&self, content: &Map<String, Value>) -> QuestionReply {
        QuestionReply(json!({ "action": "accept", "content": content }))
    }

    /// Refuses to answer.
    #[must_use]
    pub fn decline(&self) -> QuestionReply {
        QuestionReply(json!({ "action": "decline" }))
    }

    /// Dismisses the question. Claude Code then ends the turn.
    #[must_use]
    pub fn dismiss(&self) -> QuestionReply {
        QuestionReply(json!({ "action": "cancel" }))
    }
}

/// Answer to a [`QuestionRequest`], made by its methods.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionReply(pub(super) Value);

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_protocol::wire::OfferedKind;

    fn request(kinds: &[OfferedKind]) -> PermissionRequest {
        let options = kinds.iter().enumerate().map(|(n, kind)| OfferedOption {
            option_id: n.to_string(),
            name: n.to_string(),
            kind: *kind,
        });
        PermissionRequest::new(Box::new(PermissionParams {
            session_id: "s".into(),
            turn_id: None,
            question_id: "q".into(),
            tool_call: AskedTool::default(),
            options: options.collect(),
            command: None,
            paths: Vec::new(),
            stands_for: Vec::new(),
            rule: String::new(),
            deadline_ms: None,
        }))
    }

    #[test]
    fn answers_choose_the_nearest_option_and_never_the_opposite() {
        let all = request(&[
            OfferedKind::AllowAlways,
            OfferedKind::AllowOnce,
            OfferedKind::RejectOnce,
        ]);
        let option = |reply: PermissionReply| reply.0["outcome"]["optionId"].clone();
        assert_eq!(option(all.allow()), "1");
        assert_eq!(option(all.allow_always()), "0");
        assert_eq!(option(all.deny()), "2");
        let reply = all.deny_because("no").0;
        assert_eq!(reply["outcome"]["message"], "no");
        let only_allows = request(&[OfferedKind::AllowOnce]);
        assert_eq!(only_allows.deny().0["outcome"]["outcome"], "cancelled");
        assert_eq!(request(&[]).allow().0["outcome"]["outcome"], "cancelled");
    }
}
