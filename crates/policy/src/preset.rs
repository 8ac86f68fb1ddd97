//! Presets: defaults for subjects that no rule matches, modelled on other systems.

use super::{Effect, Subject};

/// Default that judges only by the kind and the name of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Name of the preset in the configuration.
    pub name: &'static str,
    /// Effects by kind; the first entry with the kind applies.
    kinds: &'static [(&'static [&'static str], Effect)],
    /// Effects by tool name, with precedence over those by kind.
    tools: &'static [(&'static str, Effect)],
    rest: Effect,
}

const READS: &[&str] = &["read", "search", "think"];
const EDITS: &[&str] = &["edit", "delete", "move"];

use Effect::{Allow, Ask, Deny};

/// All presets; `docs/guides/permissions.md` describes the origin of each and its differences from it.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "leashd",
        kinds: &[],
        tools: &[],
        rest: Ask,
    },
    Preset {
        name: "leashd-accept-edits",
        kinds: &[(READS, Allow), (EDITS, Allow)],
        tools: &[],
        rest: Ask,
    },
    Preset {
        name: "holodeck",
        kinds: &[(READS, Allow)],
        tools: &[],
        rest: Deny,
    },
    Preset {
        name: "holodeck-chat",
        kinds: &[(READS, Allow), (EDITS, Allow)],
        tools: &[],
        rest: Ask,
    },
    Preset {
        name: "discobot",
        kinds: &[(&["switch_mode"], Ask)],
        tools: &[("AskUserQuestion", Ask), ("ExitPlanMode", Ask)],
        rest: Allow,
    },
    Preset {
        name: "maverick",
        kinds: &[(READS, Allow), (EDITS, Allow)],
        tools: &[],
        rest: Deny,
    },
    Preset {
        name: "maverick-deny-dangerous",
        kinds: &[(EDITS, Deny), (&["execute"], Deny)],
        tools: &[],
        rest: Allow,
    },
];

impl Preset {
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns the effect on a subject, and whether enough of the subject could be read.
    pub(super) fn judge(&self, subject: &Subject) -> (Effect, bool) {
        let name = subject.name.as_deref();
        let of_tool = self.tools.iter().find(|(tool, _)| name == Some(tool));
        let effect = of_tool.map_or_else(|| self.of_kind(&subject.kind), |(_, effect)| *effect);
        // A contradictory call belongs to every kind that it may have.
        let others = subject.other_kinds.iter().map(|kind| self.of_kind(kind));
        let effect = others.fold(effect, Ord::max);
        // A kind that was derived from prose must not allow more than an unknown kind.
        let effect = if subject.derived {
            effect.max(self.of_kind("other"))
        } else {
            effect
        };
        let strongest = self.effects().max().unwrap_or(effect);
        if subject.opaque && strongest > effect {
            return (strongest, false);
        }
        (effect, true)
    }

    /// Returns `true` if the preset denies anything or asks about it.
    pub(super) fn may_restrict(&self) -> bool {
        self.effects().any(|effect| effect > Allow)
    }

    pub(super) fn may_ask(&self) -> bool {
        self.effects().any(|effect| effect == Ask)
    }

    fn of_kind(&self, kind: &str) -> Effect {
        let mut kinds = self.kinds.iter();
        let found = kinds.find(|(kinds, _)| kinds.contains(&kind));
        found.map_or(self.rest, |(_, effect)| *effect)
    }

    fn effects(&self) -> impl Iterator<Item = Effect> {
        let kinds = self.kinds.iter().map(|(_, effect)| *effect);
        let tools = self.tools.iter().map(|(_, effect)| *effect);
        kinds.chain(tools).chain([self.rest])
    }
}
