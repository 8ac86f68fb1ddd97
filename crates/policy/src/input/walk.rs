//! Walk through the JSON of a call: each value is passed to [`ParsedInput`] with its position.

use super::{CommandText, DEEPEST, MOST, MOST_WORDS, ParsedInput};
use crate::members::{Group, MemberRole};
use crate::patch::codex_files;
use crate::path::uri_path;
use Position::Member;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Value of a member with this role; the members of an input and of its wrappers are at the top level.
    Member(MemberRole),
    Word,
    /// Argument beside a command.
    Argument,
    /// Part of the displayed content.
    Shown,
    /// Path in the displayed content, or in a parsed form of a command whose text is known otherwise.
    ShownPath,
    ShownUri,
    ShownType,
}

/// Walks a JSON text; returns `false` if it is not valid or too deep.
pub fn read(
    found: &mut ParsedInput,
    json: &str,
    place: Position,
    group: Group,
    deep: usize,
) -> bool {
    let mut json = serde_json::Deserializer::from_str(json);
    let is_below_unknown = found.is_below_unknown;
    let walk = Walk {
        found,
        place,
        group,
        deep,
        is_below_unknown,
        is_listed: false,
    };
    walk.deserialize(&mut json).is_ok() && json.end().is_ok()
}

struct Walk<'f> {
    found: &'f mut ParsedInput,
    place: Position,
    group: Group,
    deep: usize,
    /// `true` if a member around the value is not understood.
    is_below_unknown: bool,
    is_listed: bool,
}

impl Walk<'_> {
    /// Handles a value other than a text, which cannot be a word of a command.
    fn no_text(self) {
        let is_word = matches!(self.place, Position::Word | Position::Argument);
        self.found.whole &= !is_word;
    }

    fn is_too_deep<E: Error>(&self) -> Result<(), E> {
        if self.deep < DEEPEST {
            return Ok(());
        }
        Err(E::custom("nested too deep"))
    }

    fn member(&mut self, key: &str) -> Position {
        let role = |is_top| MemberRole::of(key, self.group, is_top);
        match self.place {
            Position::Shown | Position::ShownType | Position::ShownPath | Position::ShownUri => {
                match role(false) {
                    MemberRole::Path | MemberRole::Base | MemberRole::Label => Position::ShownPath,
                    MemberRole::Uri => Position::ShownUri,
                    _ if key == "type" => Position::ShownType,
                    _ => Position::Shown,
                }
            }
            Position::Word | Position::Argument => Member(MemberRole::Unknown),
            Member(MemberRole::Changes) => {
                self.found.keep_path(key);
                (self.found.edits, self.found.has_path) = (true, true);
                Member(MemberRole::Items)
            }
            Member(around) => {
                let is_top = matches!(
                    around,
                    MemberRole::Wrapper | MemberRole::Arguments | MemberRole::Command
                );
                let role = role(is_top);
                self.note_key(key, around, role);
                self.found.edits |= role == MemberRole::Items && is_top;
                match (around, role) {
                    _ if self.is_below_unknown => {
                        self.found.edits |= role == MemberRole::Edited;
                        Member(role.below_unknown())
                    }
                    (
                        MemberRole::Tree | MemberRole::Parsed,
                        MemberRole::Path | MemberRole::Base | MemberRole::Label,
                    ) => Position::ShownPath,
                    (
                        MemberRole::Tree,
                        MemberRole::Unknown
                        | MemberRole::Text
                        | MemberRole::Written
                        | MemberRole::Pattern
                        | MemberRole::Items,
                    ) => Member(MemberRole::Tree),
                    (
                        MemberRole::Parsed,
                        MemberRole::Unknown
                        | MemberRole::Text
                        | MemberRole::Written
                        | MemberRole::Script
                        | MemberRole::Pattern
                        | MemberRole::Tree
                        | MemberRole::Items,
                    ) => Member(MemberRole::Parsed),
                    (_, role) => {
                        self.found.whole &= is_top || role != MemberRole::Arguments;
                        Member(role)
                    }
                }
            }
        }
    }

    /// Keeps a key that may be a path: in changes by file, the keys are not names of members.
    fn note_key(&mut self, key: &str, around: MemberRole, role: MemberRole) {
        let is_by_path = matches!(
            around,
            MemberRole::Path | MemberRole::Base | MemberRole::Items
        ) && !self.is_listed;
        let is_unknown = role == MemberRole::Unknown;
        if key.contains(['/', '\\']) || key.starts_with('~') || is_by_path && is_unknown {
            self.found.keep_unknown(key);
        } else if self.is_below_unknown && is_unknown {
            self.found.keep_string(key);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ValueShape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ValueShape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueShape {
    Text,
    /// List or object.
    Tree,
    /// Number, `true`, `false` or `null`.
    Other,
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ValueShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ValueShape, E> {
        match self.place {
            Member(role) => {
                self.found.whole &= !self.is_below_unknown || text.trim().is_empty();
                let is_below =
                    std::mem::replace(&mut self.found.is_below_unknown, self.is_below_unknown);
                self.found.text(role, self.group, text, self.deep);
                self.found.is_below_unknown = is_below;
            }
            Position::Word => match self.found.commands.last_mut() {
                Some(CommandText::Arguments(words)) if words.len() < MOST => {
                    words.push(text.to_owned());
                }
                _ => self.found.mark_unread(),
            },
            Position::Argument => self.found.keep_argument(text),
            Position::ShownType => self.found.edits |= text == "diff",
            Position::ShownPath => self.found.keep_path(text),
            Position::ShownUri if uri_path(text).is_some() || !text.contains(':') => {
                self.found.keep_path(text);
            }
            Position::ShownUri => {}
            Position::Shown => {
                for file in codex_files(text) {
                    self.found.keep_path(file);
                }
            }
        }
        Ok(ValueShape::Text)
    }

    fn visit_unit<E: Error>(self) -> Result<ValueShape, E> {
        self.no_text();
        Ok(ValueShape::Other)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<ValueShape, E> {
        self.no_text();
        Ok(ValueShape::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<ValueShape, E> {
        self.no_text();
        Ok(ValueShape::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<ValueShape, E> {
        self.no_text();
        Ok(ValueShape::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<ValueShape, E> {
        self.no_text();
        Ok(ValueShape::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ValueShape, A::Error> {
        self.is_too_deep::<A::Error>()?;
        let place = match self.place {
            Member(MemberRole::Command) => {
                self.found.keep_command(CommandText::Arguments(Vec::new()));
                Position::Word
            }
            Position::Word | Position::Argument | Member(MemberRole::Directory) => {
                self.found.whole = false;
                self.place
            }
            Member(MemberRole::Arguments) => Position::Argument,
            Member(MemberRole::Text | MemberRole::Wrapper) => Member(MemberRole::Unknown),
            place => place,
        };
        let mut words = Vec::new();
        loop {
            let before = self.found.strings.len();
            let walk = Walk {
                found: &mut *self.found,
                place,
                group: self.group,
                deep: self.deep + 1,
                is_below_unknown: self.is_below_unknown,
                is_listed: true,
            };
            let Some(shape) = list.next_element_seed(walk)? else {
                break;
            };
            let kept = self.found.strings.get(before..).unwrap_or_default();
            if let (ValueShape::Text, [word], 0..MOST_WORDS) = (shape, kept, words.len()) {
                words.push(word.clone());
            }
        }
        let names_nothing = matches!(
            place,
            Member(MemberRole::Text | MemberRole::Tree | MemberRole::Edited)
        );
        if matches!(place, Member(_)) && !names_nothing {
            self.found.keep_joined(&words);
        }
        Ok(ValueShape::Tree)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<ValueShape, A::Error> {
        self.is_too_deep::<A::Error>()?;
        if matches!(
            self.place,
            Position::Word | Position::Argument | Member(MemberRole::Command)
        ) {
            self.found.whole = false;
        }
        if self.place == Member(MemberRole::Script) {
            (self.found.whole, self.found.runs) = (false, true);
        }
        if let Member(role) = self.place {
            self.is_below_unknown |= !role.holds_members();
        }
        let at = self.found.commands.len();
        let outer = std::mem::take(&mut self.found.arguments);
        let programs = std::mem::take(&mut self.found.programs);
        while let Some(key) = map.next_key::<String>()? {
            let place = self.member(&key);
            let shape = map.next_value_seed(Walk {
                found: &mut *self.found,
                place,
                group: self.group,
                deep: self.deep + 1,
                is_below_unknown: self.is_below_unknown,
                is_listed: false,
            })?;
            if place == Member(MemberRole::Unknown)
                && shape == ValueShape::Tree
                && !self.is_below_unknown
            {
                self.found.keep_string(&key);
            }
        }
        self.found.join_arguments(at);
        (self.found.arguments, self.found.programs) = (outer, programs);
        Ok(ValueShape::Tree)
    }
}
