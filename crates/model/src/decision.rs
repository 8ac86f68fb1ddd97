//! Decisions on permission requests: the option that is chosen, by whom, and why.

use super::client_answer::ClientAnswer;
use super::error::clip;
use super::event::{OptionKind, PermissionOption};
use super::option_choice::choose;
use acpipe_protocol::wire::DecidingClient;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Effect of a rule on a request of an agent. Later variants have precedence over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The request is allowed.
    Allow,
    /// The client is asked.
    Ask,
    /// The request is denied.
    Deny,
}

impl Effect {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the name, as used in configuration and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionSource {
    /// The policy, with the text of the rule that decided.
    Policy(String),
    /// The client, or its user.
    Client,
    /// A message that the user sent instead of an answer.
    Message,
    /// Another client than the one that is notified of the decision.
    OtherClient(DecidingClient),
    /// A timeout, with the policy's rule for that case, if there is one.
    Timeout(Option<String>),
    /// The agent, which withdrew its request or continued without a response.
    Agent,
    Cancel,
    /// The end of the turn, the session or the agent.
    End,
}

impl DecisionSource {
    /// Returns the name of the source on the wire and in the ledger.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Policy(_) => "policy",
            Self::Client => "client",
            Self::Message => "message",
            Self::OtherClient(_) => "otherClient",
            Self::Timeout(_) => "timeout",
            Self::Agent => "agent",
            Self::Cancel => "cancel",
            Self::End => "end",
        }
    }

    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Policy(rule) | Self::Timeout(Some(rule)) => Some(rule),
            Self::Timeout(None)
            | Self::Client
            | Self::Message
            | Self::OtherClient(_)
            | Self::Agent
            | Self::Cancel
            | Self::End => None,
        }
    }

    fn phrase(&self) -> String {
        match self {
            Self::Policy(rule) => format!("by policy ({rule})"),
            Self::Client => "by the client".to_owned(),
            Self::Message => "because the user sent a new message".to_owned(),
            Self::OtherClient(_) => "by another client".to_owned(),
            Self::Timeout(None) => "because no client answered in time".to_owned(),
            Self::Timeout(Some(rule)) => format!("because no client answered in time ({rule})"),
            Self::Agent => "because the agent did not wait for the answer".to_owned(),
            Self::Cancel => "because the turn was cancelled".to_owned(),
            Self::End => "because the agent or the session ended".to_owned(),
        }
    }
}

/// Text that the user sent with a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    pub words: String,
    /// Whether the agent receives the text with the response. Not all protocols have a field for it.
    pub delivered: bool,
    /// Whether the client requests to send the text with the next prompt if it is not delivered with the
    /// response.
    pub next_prompt: bool,
}

impl Feedback {
    /// Creates feedback that is not delivered yet; `None` if the text is empty.
    #[must_use]
    pub fn of(words: Option<String>, next_prompt: bool) -> Option<Self> {
        let words = words.filter(|words| !words.trim().is_empty())?;
        Some(Self {
            words,
            delivered: false,
            next_prompt,
        })
    }
}

/// Returns the text of a prompt that delivers feedback after its decision; `what` is the title of the tool
/// call.
pub fn late_feedback(what: Option<&str>, approved: bool, words: &str) -> String {
    let decided = if approved { "allowed" } else { "refused" };
    match what.filter(|what| !what.trim().is_empty()) {
        Some(what) => format!("I {decided} this tool call: {}\n\n{words}", clip(what)),
        None => format!("I {decided} a tool call.\n\n{words}"),
    }
}

/// Response to a permission request, with the reason.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Chosen option; `None` responds "cancelled".
    pub choice: Option<PermissionOption>,
    pub feedback: Option<Feedback>,
    /// The user's answer to an elicitation, a JSON object.
    pub content: Option<Box<RawValue>>,
    /// Input with which the tool runs in place of its own, a JSON object.
    pub updated_input: Option<Box<RawValue>>,
    pub reason: String,
    pub by: DecisionSource,
    /// Response of a client that speaks ACP, which an ACP agent gets as it is.
    pub acp: Option<ClientAnswer>,
}

impl Decision {
    /// Allows or refuses with the best matching option. If nothing can allow the request, it is refused; if
    /// nothing can refuse it either, it is cancelled.
    #[must_use]
    pub fn of(
        allow: bool,
        prefers_always: bool,
        options: &[PermissionOption],
        by: DecisionSource,
    ) -> Self {
        let chosen = choose(allow, prefers_always, options);
        let refusal = || choose(false, prefers_always, options);
        let (choice, reason) = match (chosen, allow) {
            (Some(choice), true) => (
                Some(choice),
                format!("approved {}: {}", by.phrase(), choice.name),
            ),
            (Some(choice), false) => (
                Some(choice),
                format!("refused {}: {}", by.phrase(), choice.name),
            ),
            (None, true) => match refusal() {
                Some(choice) => (
                    Some(choice),
                    format!(
                        "refused, because no offered option allows it: {}",
                        choice.name
                    ),
                ),
                None => (
                    None,
                    "cancelled, because no offered option can be chosen".to_owned(),
                ),
            },
            (None, false) => (
                None,
                format!("cancelled {}: no offered option refuses it", by.phrase()),
            ),
        };
        Self {
            acp: None,
            choice: choice.cloned(),
            feedback: None,
            content: None,
            updated_input: None,
            reason,
            by,
        }
    }

    #[must_use]
    pub fn chosen(choice: PermissionOption, feedback: Option<Feedback>) -> Self {
        let word = if choice.kind.refuses() {
            "refused"
        } else {
            "approved"
        };
        Self {
            reason: format!(
                "{word} {}: {}",
                DecisionSource::Client.phrase(),
                choice.name
            ),
            acp: None,
            choice: Some(choice),
            feedback,
            content: None,
            updated_input: None,
            by: DecisionSource::Client,
        }
    }

    /// Creates the decision for a request that no longer needs a response (ACP, prompt turn, cancellation).
    #[must_use]
    pub fn cancelled(by: DecisionSource) -> Self {
        Self {
            acp: None,
            choice: None,
            feedback: None,
            content: None,
            updated_input: None,
            reason: format!("cancelled {}", by.phrase()),
            by,
        }
    }

    pub fn undelivered(&self) -> Option<&Feedback> {
        self.feedback
            .as_ref()
            .filter(|feedback| !feedback.delivered)
    }

    /// Returns `true` if the tool may run. An option of an unknown kind counts as an approval, since only the
    /// person who chose it knows its meaning.
    pub fn approved(&self) -> bool {
        self.choice
            .as_ref()
            .is_some_and(|option| !option.kind.refuses())
    }
}

/// Returns the options with which an elicitation outside a permission request is answered: accept, then
/// decline. The agent offers none itself.
pub fn elicitation_options() -> Vec<PermissionOption> {
    let option = |id: &str, name: &str, kind| PermissionOption {
        id: id.to_owned(),
        name: name.to_owned(),
        kind,
    };
    vec![
        option("accept", "Answer", OptionKind::AllowOnce),
        option("decline", "Leave it unanswered", OptionKind::RejectOnce),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};

    fn answer(allow: bool, always: bool, kinds: &[OptionKind]) -> (Option<OptionKind>, bool) {
        let options: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(n, &kind)| PermissionOption {
                id: format!("o{n}"),
                name: "n".into(),
                kind,
            })
            .collect();
        let d = Decision::of(allow, always, &options, DecisionSource::Policy("r".into()));
        (d.choice.as_ref().map(|o| o.kind), d.approved())
    }

    #[test]
    fn options_are_chosen_by_kind() {
        let cases: &[(&[OptionKind], Option<OptionKind>, bool)] = &[
            (&[RejectOnce, AllowAlways, AllowOnce], Some(AllowOnce), true),
            (&[RejectOnce, AllowAlways], Some(AllowAlways), true),
            (
                &[Unknown, RejectAlways, RejectOnce],
                Some(RejectOnce),
                false,
            ),
            (&[RejectAlways], Some(RejectAlways), false),
            (&[Unknown], None, false),
            (&[], None, false),
        ];
        for (kinds, choice, approved) in cases {
            assert_eq!(
                answer(true, false, kinds),
                (*choice, *approved),
                "{kinds:?}"
            );
        }
    }

    #[test]
    fn always_option_is_preferred_on_request() {
        let kinds = [AllowOnce, AllowAlways, RejectOnce];
        assert_eq!(answer(true, true, &kinds), (Some(AllowAlways), true));
        assert_eq!(answer(true, true, &[AllowOnce]), (Some(AllowOnce), true));
        // A permanent refusal cannot be undone by a change of the rules.
        let kinds = [RejectAlways, RejectOnce];
        assert_eq!(answer(false, true, &kinds), (Some(RejectOnce), false));
    }

    #[test]
    fn deny_never_selects_an_allow_kind() {
        let kinds = [AllowOnce, RejectAlways];
        assert_eq!(answer(false, false, &kinds), (Some(RejectAlways), false));
        assert_eq!(answer(false, false, &[AllowOnce]), (None, false));
    }
}
