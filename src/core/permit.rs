//! The permission policy: which of the options an agent offers is its answer.

use super::event::{OptionKind, PermissionOption};

/// What is done with permission questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Everything is approved.
    #[default]
    Approve,
    /// Everything is refused.
    Deny,
}

/// An answer to a question, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The chosen option; `None` answers "cancelled".
    pub choice: Option<PermissionOption>,
    /// Why, for the client.
    pub reason: String,
}

impl Decision {
    /// Whether the tool may run.
    #[must_use]
    pub fn approved(&self) -> bool {
        self.choice
            .as_ref()
            .is_some_and(|o| matches!(o.kind, OptionKind::AllowOnce | OptionKind::AllowAlways))
    }

    /// The answer to every open question of a turn that is cancelled (ACP, prompt turn, cancellation).
    #[must_use]
    pub fn cancelled() -> Self {
        Self {
            choice: None,
            reason: "the turn was cancelled".into(),
        }
    }
}

/// Chooses by kind, never by position, and never an option that was not offered.
#[must_use]
pub fn decide(policy: Policy, options: &[PermissionOption]) -> Decision {
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let pick = |kinds: &[OptionKind]| {
        kinds
            .iter()
            .find_map(|k| options.iter().find(|o| o.kind == *k))
            .cloned()
    };
    let (wanted, word) = match policy {
        Policy::Approve => (&[AllowOnce, AllowAlways][..], "approved"),
        Policy::Deny => (&[RejectOnce, RejectAlways][..], "refused"),
    };
    if let Some(choice) = pick(wanted) {
        let reason = format!("{word} by policy: {}", choice.name);
        return Decision {
            choice: Some(choice),
            reason,
        };
    }
    match pick(&[RejectOnce, RejectAlways]) {
        Some(choice) => Decision {
            reason: format!("refused, since nothing offered allows it: {}", choice.name),
            choice: Some(choice),
        },
        None => Decision {
            choice: None,
            reason: "cancelled, since no option offered could be chosen".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};

    fn answer(policy: Policy, kinds: &[OptionKind]) -> (Option<OptionKind>, bool) {
        let options: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(n, &kind)| PermissionOption {
                id: format!("o{n}"),
                name: "n".into(),
                kind,
            })
            .collect();
        let d = decide(policy, &options);
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
                answer(Policy::Approve, kinds),
                (*choice, *approved),
                "{kinds:?}"
            );
        }
    }

    #[test]
    fn deny_never_allows() {
        assert_eq!(
            answer(Policy::Deny, &[AllowOnce, RejectAlways]),
            (Some(RejectAlways), false)
        );
        assert_eq!(answer(Policy::Deny, &[AllowOnce]), (None, false));
    }
}
