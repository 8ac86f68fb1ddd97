//! Keys with which the user selects one of the options that an agent offers.

use super::prompt_view::{PromptView, short};
use acpipe_protocol::wire::{OfferedKind, OfferedOption};

/// Maximum length in characters of an option's name.
const NAME: usize = 200;

/// Words with which the names of options begin.
const ALLOWING: [&str; 10] = [
    "accept", "allow", "always", "approve", "approved", "continue", "ok", "proceed", "run", "yes",
];
const REFUSING: [&str; 10] = [
    "abort", "cancel", "decline", "deny", "disallow", "never", "no", "refuse", "reject", "skip",
];

/// Returns key and word of an option kind.
fn letters(kind: OfferedKind) -> Option<(&'static str, &'static str)> {
    match kind {
        OfferedKind::AllowOnce => Some(("y", "yes")),
        OfferedKind::AllowAlways => Some(("a", "always")),
        OfferedKind::RejectOnce => Some(("n", "no")),
        OfferedKind::RejectAlways => Some(("v", "never")),
        OfferedKind::Unknown => None,
    }
}

/// Options with their keys: a letter, or a number if several options are of the same kind. The first of
/// several options that allow or reject once has the letter; options that hold for ever must be selected by
/// number.
#[derive(Debug)]
pub struct Keys {
    rows: Vec<(String, OfferedOption)>,
}

/// Selected option.
#[derive(Debug, PartialEq, Eq)]
pub struct ChosenOption<'a> {
    /// `None` for a refusal if no offered option refuses.
    pub option: Option<&'a OfferedOption>,
    pub refuses: bool,
    /// Feedback typed with a refusal.
    pub words: Option<String>,
}

impl Keys {
    pub fn new(options: &[OfferedOption]) -> Self {
        let of = |kind| {
            options
                .iter()
                .enumerate()
                .filter(move |(_, o)| o.kind == kind)
        };
        let has_letter = |n: usize, kind| match kind {
            OfferedKind::AllowOnce | OfferedKind::RejectOnce => {
                of(kind).next().is_some_and(|(first, _)| first == n)
            }
            OfferedKind::AllowAlways | OfferedKind::RejectAlways | OfferedKind::Unknown => {
                of(kind).count() == 1
            }
        };
        let key = |(n, option): (usize, &OfferedOption)| {
            let letter = letters(option.kind).filter(|_| has_letter(n, option.kind));
            let key = letter.map_or_else(|| (n + 1).to_string(), |(key, _)| key.to_owned());
            (key, option.clone())
        };
        Self {
            rows: options.iter().enumerate().map(key).collect(),
        }
    }

    /// Shows the options.
    pub fn show(&self, view: &mut PromptView) {
        for (key, option) in &self.rows {
            let name = short(&option.name, NAME);
            match effect(option) {
                Some(effect) => view.choice(key, &format!("{name} ({effect})")),
                None => view.choice(key, &name),
            }
        }
        if self.refusal().is_none() {
            view.choice("n", "(refuse; the agent offers no such option)");
        }
    }

    /// Returns the keys, separated by slashes.
    pub fn list(&self) -> String {
        let mut keys: Vec<&str> = self.rows.iter().map(|(key, _)| key.as_str()).collect();
        if self.refusal().is_none() {
            keys.push("n");
        }
        keys.join("/")
    }

    /// Parses a line to the selected option, or returns why it selects none.
    pub fn read(&self, line: &str) -> Result<ChosenOption<'_>, String> {
        let line = line.trim();
        let (key, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let words = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
        let option = self.named(&key.to_lowercase())?;
        let refuses = option.is_none_or(|option| refuses(option.kind));
        if words.is_some() && !refuses {
            return Err("add text only to a refusal".to_owned());
        }
        Ok(ChosenOption {
            option,
            refuses,
            words,
        })
    }

    /// Finds the option of a key; `Ok(None)` for a refusal if no option refuses.
    fn named(&self, key: &str) -> Result<Option<&OfferedOption>, String> {
        let is_it = |(shown, option): &&(String, OfferedOption)| {
            let word = letters(option.kind).filter(|(letter, _)| letter == shown);
            shown == key || word.is_some_and(|(_, word)| word == key)
        };
        match self.rows.iter().find(is_it) {
            Some((_, option)) => Ok(Some(option)),
            // "No" always refuses once, whatever is offered.
            None if ["", "n", "no"].contains(&key) => Ok(self.refusal().map(|at| &self.rows[at].1)),
            None => Err(format!(
                "{:?} is not one of {}",
                short(key, 20),
                self.list()
            )),
        }
    }

    /// Returns the index of the option that refuses: once if offered, else always.
    fn refusal(&self) -> Option<usize> {
        let of = |kind| self.rows.iter().position(|(_, option)| option.kind == kind);
        of(OfferedKind::RejectOnce).or_else(|| of(OfferedKind::RejectAlways))
    }
}

/// Returns the effect of an option whose name does not begin with it: the name is the agent's own.
fn effect(option: &OfferedOption) -> Option<&'static str> {
    let (effect, words): (_, &[&str]) = match option.kind {
        OfferedKind::AllowOnce => ("allows once", &ALLOWING),
        OfferedKind::AllowAlways => ("allows always", &ALLOWING),
        OfferedKind::RejectOnce => ("refuses once", &REFUSING),
        OfferedKind::RejectAlways => ("refuses always", &REFUSING),
        OfferedKind::Unknown => return Some("the agent does not say what it does"),
    };
    let mut said = option.name.split(|c: char| !c.is_alphanumeric());
    let first = said.find(|word| !word.is_empty()).unwrap_or_default();
    let is_said = words.iter().any(|word| word.eq_ignore_ascii_case(first));
    (!is_said).then_some(effect)
}

fn refuses(kind: OfferedKind) -> bool {
    matches!(kind, OfferedKind::RejectOnce | OfferedKind::RejectAlways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use OfferedKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};

    fn keys(kinds: &[OfferedKind]) -> Keys {
        let option = |(n, kind): (usize, &OfferedKind)| OfferedOption {
            option_id: format!("o{}", n + 1),
            name: format!("Name {}", n + 1),
            kind: *kind,
        };
        let options: Vec<_> = kinds.iter().enumerate().map(option).collect();
        Keys::new(&options)
    }

    #[test]
    fn name_that_does_not_say_what_its_option_does_is_shown_with_the_effect() {
        for (kind, name, want) in [
            (AllowOnce, "Yes, proceed", None),
            (AllowOnce, "Reject", Some("allows once")),
            (AllowAlways, "Always allow", None),
            (AllowAlways, "Auto", Some("allows always")),
            (RejectOnce, "Allow", Some("refuses once")),
            (RejectOnce, "No, keep planning", None),
            (RejectAlways, "", Some("refuses always")),
            (
                Unknown,
                "Allow",
                Some("the agent does not say what it does"),
            ),
        ] {
            let option = OfferedOption {
                option_id: "o".to_owned(),
                name: name.to_owned(),
                kind,
            };
            assert_eq!(effect(&option), want, "{kind:?} {name}");
        }
    }

    /// Returns the id of the selected option; `-` for a refusal without an option, `!` for an invalid line.
    fn chosen(keys: &Keys, line: &str) -> String {
        match keys.read(line) {
            Ok(chosen) => chosen
                .option
                .map_or("-".to_owned(), |o| o.option_id.clone()),
            Err(_) => "!".to_owned(),
        }
    }

    /// Offered kinds, their keys, and lines with the option each selects.
    type Case<'a> = (&'a [OfferedKind], &'a str, &'a [(&'a str, &'a str)]);

    #[test]
    fn kinds_have_letters_and_several_of_one_numbers() {
        let cases: &[Case<'_>] = &[
            (
                &[AllowAlways, AllowOnce, RejectOnce],
                "a/y/n",
                &[
                    ("y", "o2"),
                    ("YES", "o2"),
                    (" a \n", "o1"),
                    ("always", "o1"),
                    ("n", "o3"),
                    ("no", "o3"),
                    ("", "o3"),
                    ("\n", "o3"),
                    ("x", "!"),
                    ("2", "!"),
                    ("nope", "!"),
                    ("yess", "!"),
                    ("v", "!"),
                ],
            ),
            (
                &[AllowOnce, AllowAlways, AllowAlways, RejectOnce],
                "y/2/3/n",
                &[("2", "o2"), ("3", "o3"), ("a", "!"), ("1", "!"), ("", "o4")],
            ),
            (
                &[RejectOnce, RejectOnce, AllowOnce],
                "n/2/y",
                &[("", "o1"), ("n", "o1"), ("no", "o1"), ("2", "o2")],
            ),
            (
                &[AllowOnce, RejectAlways],
                "y/v",
                &[("", "o2"), ("n", "o2"), ("never", "o2")],
            ),
            (
                &[RejectAlways, RejectOnce, AllowOnce],
                "v/n/y",
                &[("", "o2"), ("v", "o1")],
            ),
            (
                &[Unknown, AllowOnce],
                "1/y/n",
                &[("1", "o1"), ("", "-"), ("n", "-"), ("y", "o2")],
            ),
            (
                &[AllowOnce, RejectOnce, AllowAlways, AllowOnce],
                "y/n/a/4",
                &[
                    ("y", "o1"),
                    ("Y", "o1"),
                    ("yes", "o1"),
                    ("4", "o4"),
                    ("1", "!"),
                ],
            ),
            (&[], "n", &[("", "-"), ("y", "!")]),
        ];
        for (kinds, list, lines) in cases {
            let keys = keys(kinds);
            assert_eq!(keys.list(), *list, "{kinds:?}");
            for (line, want) in *lines {
                assert_eq!(chosen(&keys, line), *want, "{kinds:?} {line:?}");
            }
        }
    }

    #[test]
    fn refusal_accepts_feedback() {
        let keys = keys(&[AllowOnce, RejectOnce]);
        let refused = keys.read("n  use the other file \n").unwrap();
        assert!(refused.refuses);
        assert_eq!(refused.words.as_deref(), Some("use the other file"));
        assert!(keys.read("y use the other file").is_err());
        assert_eq!(keys.read("n").unwrap().words, None);
    }
}
