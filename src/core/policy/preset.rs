//! What holds where no rule says anything, as other systems have it.

use super::{Effect, Subject};

/// Judges by the kind and the name of a tool alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    /// Effects of kinds; the first that names the kind holds.
    kinds: &'static [(&'static [&'static str], Effect)],
    /// Effects of tools by their names, before those of kinds.
    tools: &'static [(&'static str, Effect)],
    /// The effect on all else.
    rest: Effect,
}

const READS: &[&str] = &["read", "search", "think"];
const EDITS: &[&str] = &["edit", "delete", "move"];

use Effect::{Allow, Ask, Deny};

/// All of them; `docs/guides/permissions.md` tells what each was made after, and where it differs.
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
    /// The preset of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// What it says of a subject, and whether enough of that could be read.
    pub(super) fn judge(&self, subject: &Subject) -> (Effect, bool) {
        let name = subject.name.as_deref();
        let of_tool = self.tools.iter().find(|(tool, _)| name == Some(tool));
        let effect = of_tool.map_or_else(|| self.of_kind(&subject.kind), |(_, effect)| *effect);
        // A call that contradicts itself is of each kind that it may be of.
        let others = subject.other_kinds.iter().map(|kind| self.of_kind(kind));
        let effect = others.fold(effect, Ord::max);
        // A kind that was read from prose is no reason to allow more than without one.
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

    /// Whether it refuses anything or asks about it.
    pub(super) fn may_object(&self) -> bool {
        self.effects().any(|effect| effect > Allow)
    }

    /// Whether it asks about anything.
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
