//! Choice among the options that an agent offers with a permission request: by their kinds, never by their positions.

use super::asking_words::{allows_more_than_once, changes_mode};
use super::event::{OptionKind, PermissionOption};
use acpipe_protocol::wire::{OfferedKind, OfferedOption};

/// Option of a permission request.
pub trait Choosable {
    fn kind(&self) -> OptionKind;
    /// Returns the agent's id of the option, and its label for people.
    fn texts(&self) -> [&str; 2];
}

impl Choosable for PermissionOption {
    fn kind(&self) -> OptionKind {
        self.kind
    }

    fn texts(&self) -> [&str; 2] {
        [&self.id, &self.name]
    }
}

impl Choosable for OfferedOption {
    fn kind(&self) -> OptionKind {
        match self.kind {
            OfferedKind::AllowOnce => OptionKind::AllowOnce,
            OfferedKind::AllowAlways => OptionKind::AllowAlways,
            OfferedKind::RejectOnce => OptionKind::RejectOnce,
            OfferedKind::RejectAlways => OptionKind::RejectAlways,
            OfferedKind::Unknown => OptionKind::Unknown,
        }
    }

    fn texts(&self) -> [&str; 2] {
        [&self.option_id, &self.name]
    }
}

/// Chooses the option that allows or refuses, never one that was not offered.
///
/// To allow, an option must be the only one of its kind, apart from those that allow more than what was asked about
/// (`allows_more`): it is unknown which of several is meant. If several allow once, none that allows always is taken
/// in their place. To refuse, any option of the kind is right: each of them refuses. A refusal takes an option if there
/// is one, since some agents end the turn on "cancelled". An id that options of several kinds share is never taken.
pub fn choose<O: Choosable>(allow: bool, prefers_always: bool, options: &[O]) -> Option<&O> {
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let of_kind = |kind| options.iter().filter(move |option| option.kind() == kind);
    // The agent would take one of the options with that id.
    let is_clear = |option: &&O| {
        let means_other =
            |other: &O| other.texts()[0] == option.texts()[0] && other.kind() != option.kind();
        !options.iter().any(means_other)
    };
    if !allow {
        return of_kind(RejectOnce)
            .chain(of_kind(RejectAlways))
            .find(is_clear);
    }
    let usable = |kind| of_kind(kind).filter(|option| !allows_more(*option));
    let only = |kind| {
        let mut usable = usable(kind);
        let first = usable.next().filter(is_clear);
        first.filter(|_| usable.next().is_none())
    };
    if prefers_always {
        return only(AllowAlways).or_else(|| only(AllowOnce));
    }
    match usable(AllowOnce).count() {
        0 => only(AllowAlways),
        _ => only(AllowOnce),
    }
}

/// Returns `true` if the id or the label of an option says that the agent asks less in general afterwards, or switches
/// to another mode: that is not what was asked about.
fn allows_more(option: &impl Choosable) -> bool {
    let [id, label] = option.texts();
    let says = match option.kind() {
        OptionKind::AllowOnce => allows_more_than_once,
        _ => changes_mode,
    };
    says(id, false) || says(label, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};

    type Offer = (&'static str, OptionKind, &'static str);

    fn chosen(allow: bool, always: bool, offers: &[Offer]) -> Option<String> {
        let options = offers.iter().map(|(id, kind, name)| PermissionOption {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            kind: *kind,
        });
        let options: Vec<_> = options.collect();
        choose(allow, always, &options).map(|option| option.id.clone())
    }

    /// Option lists of real agents: to allow, to allow with "always" preferred, and to refuse.
    #[test]
    fn options_of_real_agents_are_chosen_by_kind() {
        let plan: &[Offer] = &[
            (
                "exit-plan-clear-auto",
                AllowAlways,
                "Yes, clear context and use auto mode",
            ),
            ("exit-plan-auto", AllowAlways, "Yes, and use auto mode"),
            (
                "exit-plan-bypass",
                AllowAlways,
                "Yes, and bypass permissions",
            ),
            (
                "exit-plan-default",
                AllowOnce,
                "Yes, manually approve edits",
            ),
            ("reject", RejectOnce, "No, keep planning"),
        ];
        let only_elevated = &plan[..3];
        let cases: &[(&[Offer], [Option<&str>; 3])] = &[
            (
                &[
                    ("once", AllowOnce, "Allow once"),
                    ("always", AllowAlways, "Always allow"),
                    ("reject", RejectOnce, "Reject"),
                ],
                [Some("once"), Some("always"), Some("reject")],
            ),
            (
                &[
                    ("proceed_always", AllowAlways, "Allow for this session"),
                    ("proceed_once", AllowOnce, "Allow"),
                    ("cancel", RejectOnce, "Reject"),
                ],
                [Some("proceed_once"), Some("proceed_always"), Some("cancel")],
            ),
            (
                &[
                    ("approved", AllowOnce, "Yes, proceed"),
                    (
                        "approved-execpolicy-amendment",
                        AllowAlways,
                        "Yes, and don't ask again for commands that start with `auto bypass`",
                    ),
                    (
                        "abort",
                        RejectOnce,
                        "No, and tell Codex what to do differently",
                    ),
                ],
                [
                    Some("approved"),
                    Some("approved-execpolicy-amendment"),
                    Some("abort"),
                ],
            ),
            (
                plan,
                [
                    Some("exit-plan-default"),
                    Some("exit-plan-default"),
                    Some("reject"),
                ],
            ),
            (
                &[
                    ("proceed_once", AllowOnce, "Allow"),
                    (
                        "proceed_once_and_switch_to_default",
                        AllowOnce,
                        "Switch to Default Mode and allow once (recommended)",
                    ),
                    ("cancel", RejectOnce, "Reject"),
                ],
                [Some("proceed_once"), Some("proceed_once"), Some("cancel")],
            ),
            (only_elevated, [None, None, None]),
            (
                &[
                    ("acceptEdits", AllowAlways, "Yes"),
                    ("allow-once", AllowOnce, "Yes, enter plan mode"),
                ],
                [Some("allow-once"), Some("allow-once"), None],
            ),
        ];
        for (offers, want) in cases {
            let got = [(true, false), (true, true), (false, false)]
                .map(|(allow, always)| chosen(allow, always, offers));
            assert_eq!(got.each_ref().map(Option::as_deref), *want, "{offers:?}");
        }
    }

    #[test]
    fn none_of_several_options_that_allow_is_taken() {
        let project = ("project", AllowAlways, "Always allow in this project");
        let user = ("user", AllowAlways, "Always allow for the user");
        let once = ("once", AllowOnce, "Yes");
        let changed = ("changed", AllowOnce, "Yes, with the changes");
        let reject = ("no", RejectAlways, "No");
        assert_eq!(chosen(true, false, &[project, user, reject]), None);
        assert_eq!(chosen(true, false, &[project]).as_deref(), Some("project"));
        assert_eq!(
            chosen(true, true, &[project, user, once]).as_deref(),
            Some("once")
        );
        // An option that allows more is not a substitute.
        assert_eq!(chosen(true, false, &[once, changed, project]), None);
        assert_eq!(
            chosen(false, false, &[reject, ("n", RejectOnce, "No")]).as_deref(),
            Some("n")
        );
        assert_eq!(chosen(true, false, &[("x", Unknown, "Yes")]), None);
    }

    #[test]
    fn option_that_ends_the_asking_or_shares_its_id_is_not_taken() {
        for (id, name) in [
            ("a", "Yes, and never ask"),
            ("a", "Yes, don't ask again"),
            ("a", "Disable the questions"),
            ("a", "Allow everything"),
            ("a", "Approve automatically"),
            ("automode", "Yes"),
            ("yolomode", "Yes"),
            ("full-auto", "Yes"),
            ("fullauto", "Yes"),
            ("`bypass`", "Yes"),
        ] {
            assert_eq!(
                chosen(true, false, &[(id, AllowOnce, name)]),
                None,
                "{id} {name}"
            );
        }
        let quoted = ("a", AllowOnce, "Run `bypass`");
        assert_eq!(chosen(true, false, &[quoted]).as_deref(), Some("a"));
        let shared = [
            ("x", AllowOnce, "Yes"),
            ("x", RejectOnce, "No"),
            ("y", RejectAlways, "Never"),
        ];
        assert_eq!(chosen(false, false, &shared).as_deref(), Some("y"));
        assert_eq!(chosen(false, false, &shared[..2]), None);
        assert_eq!(chosen(true, false, &shared), None);
    }
}
