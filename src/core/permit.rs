//! The answer to a permission question: which of the options an agent offers it is, and who chose it.

use super::error::clip;
use super::event::{OptionKind, PermissionOption};
use serde_json::value::RawValue;

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The policy: by this rule, in its own words.
    Policy(String),
    /// The client, or the person behind it.
    Client,
    /// Another client than the one that is notified of the decision.
    OtherClient,
    /// Nobody in time: what the policy says for that case, if it does.
    Timeout(Option<String>),
    /// The agent: it withdrew its question, or went on without an answer.
    Agent,
    /// Whoever cancelled the turn.
    Cancel,
    /// Nobody: the turn, the session or the agent ended.
    End,
}

impl By {
    /// The word for it on the wire and in the ledger.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Policy(_) => "policy",
            Self::Client => "client",
            Self::OtherClient => "otherClient",
            Self::Timeout(_) => "timeout",
            Self::Agent => "agent",
            Self::Cancel => "cancel",
            Self::End => "end",
        }
    }

    /// The rule of the policy that decided.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Policy(rule) | Self::Timeout(Some(rule)) => Some(rule),
            Self::Timeout(None)
            | Self::Client
            | Self::OtherClient
            | Self::Agent
            | Self::Cancel
            | Self::End => None,
        }
    }

    fn phrase(&self) -> String {
        match self {
            Self::Policy(rule) => format!("by policy ({rule})"),
            Self::Client => "by the client".to_owned(),
            Self::OtherClient => "by another client".to_owned(),
            Self::Timeout(None) => "since nobody answered in time".to_owned(),
            Self::Timeout(Some(rule)) => format!("since nobody answered in time ({rule})"),
            Self::Agent => "since the agent did not wait for the answer".to_owned(),
            Self::Cancel => "since the turn was cancelled".to_owned(),
            Self::End => "since what asked has ended".to_owned(),
        }
    }
}

/// What a person said with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    pub words: String,
    /// Whether they go to the agent with the answer: not all protocols have a place for them.
    pub delivered: bool,
    /// Whether the client wants them sent with the next prompt where they are not delivered.
    pub next_prompt: bool,
}

impl Feedback {
    /// Words that are not delivered yet; `None` where nothing is said.
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

/// The text that delivers words after the answer that they belong to; `what` is the title of the call.
#[must_use]
pub fn late_words(what: Option<&str>, approved: bool, words: &str) -> String {
    let decided = if approved { "allowed" } else { "refused" };
    match what.filter(|what| !what.trim().is_empty()) {
        Some(what) => format!("I {decided} this tool call: {}\n\n{words}", clip(what)),
        None => format!("I {decided} a tool call.\n\n{words}"),
    }
}

/// An answer to a question, and why.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The chosen option; `None` answers "cancelled".
    pub choice: Option<PermissionOption>,
    /// What a person said with it.
    pub feedback: Option<Feedback>,
    /// What a person answered to the questions that the agent asked him: an object.
    pub content: Option<Box<RawValue>>,
    /// Why, for people.
    pub reason: String,
    pub by: By,
}

impl Decision {
    /// Allows or refuses with the option that fits, as far as there is one.
    #[must_use]
    pub fn of(allow: bool, prefers_always: bool, options: &[PermissionOption], by: By) -> Self {
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
                    format!("refused, since nothing offered allows it: {}", choice.name),
                ),
                None => (
                    None,
                    "cancelled, since no option offered could be chosen".to_owned(),
                ),
            },
            (None, false) => (
                None,
                format!("cancelled {}: no option offered refuses it", by.phrase()),
            ),
        };
        Self {
            choice: choice.cloned(),
            feedback: None,
            content: None,
            reason,
            by,
        }
    }

    /// The client's own choice.
    #[must_use]
    pub fn chosen(choice: PermissionOption, feedback: Option<Feedback>) -> Self {
        let word = if choice.kind.refuses() {
            "refused"
        } else {
            "approved"
        };
        Self {
            reason: format!("{word} {}: {}", By::Client.phrase(), choice.name),
            choice: Some(choice),
            feedback,
            content: None,
            by: By::Client,
        }
    }

    /// The answer to a question that nobody needs an answer to any more (ACP, prompt turn, cancellation).
    #[must_use]
    pub fn cancelled(by: By) -> Self {
        Self {
            choice: None,
            feedback: None,
            content: None,
            reason: format!("cancelled {}", by.phrase()),
            by,
        }
    }

    /// The words that the agent does not get with the answer.
    #[must_use]
    pub fn undelivered(&self) -> Option<&Feedback> {
        self.feedback
            .as_ref()
            .filter(|feedback| !feedback.delivered)
    }

    /// Whether the tool may run. What an option of an unknown kind means, only who chose it knows: it is no refusal.
    #[must_use]
    pub fn approved(&self) -> bool {
        self.choice
            .as_ref()
            .is_some_and(|option| !option.kind.refuses())
    }
}

/// The answers to a question that an agent asks its user without a permission, as if it had offered them.
#[must_use]
pub fn elicitation() -> Vec<PermissionOption> {
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

/// Chooses by kind, never by position, and never an option that was not offered. A refusal takes a reject option
/// where there is one: some agents end the turn when they hear "cancelled".
#[must_use]
pub fn choose(
    allow: bool,
    prefers_always: bool,
    options: &[PermissionOption],
) -> Option<&PermissionOption> {
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = match (allow, prefers_always) {
        (true, false) => [AllowOnce, AllowAlways],
        (true, true) => [AllowAlways, AllowOnce],
        (false, _) => [RejectOnce, RejectAlways],
    };
    let offered = |kind: OptionKind| options.iter().find(|option| option.kind == kind);
    kinds.into_iter().find_map(offered)
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
        let d = Decision::of(allow, always, &options, By::Policy("r".into()));
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
    fn always_goes_first_where_that_is_wished() {
        let kinds = [AllowOnce, AllowAlways, RejectOnce];
        assert_eq!(answer(true, true, &kinds), (Some(AllowAlways), true));
        assert_eq!(answer(true, true, &[AllowOnce]), (Some(AllowOnce), true));
        // What is refused for ever is never undone by a rule that changes.
        let kinds = [RejectAlways, RejectOnce];
        assert_eq!(answer(false, true, &kinds), (Some(RejectOnce), false));
    }

    #[test]
    fn deny_never_allows() {
        let kinds = [AllowOnce, RejectAlways];
        assert_eq!(answer(false, false, &kinds), (Some(RejectAlways), false));
        assert_eq!(answer(false, false, &[AllowOnce]), (None, false));
    }
}
