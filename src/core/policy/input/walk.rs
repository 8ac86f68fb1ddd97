//! Walk through the JSON of a call: each value is passed to [`ParsedInput`] with its position.

use super::{CommandText, DEEPEST, MOST, MOST_WORDS, ParsedInput};
use crate::core::policy::members::{Group, Role};
use crate::core::policy::patch::codex_files;
use crate::core::policy::path::uri_path;
use Position::Member;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Position of a value in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Value of a member with this role; the members of an input and of its wrappers are at the top level.
    Member(Role),
    /// Word of a command.
    Word,
    /// Argument beside a command.
    Argument,
    /// Part of the displayed content.
    Shown,
    /// Path in the displayed content, or in a parsed form of a command whose text is known otherwise.
    ShownPath,
    /// URI in the displayed content.
    ShownUri,
    /// Type of a displayed item.
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
    /// `true` if the value is an element of a list.
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

    /// Returns the position of a member of the current object.
    fn member(&mut self, key: &str) -> Position {
        let role = |is_top| Role::of(key, self.group, is_top);
        match self.place {
            Position::Shown | Position::ShownType | Position::ShownPath | Position::ShownUri => {
                match role(false) {
                    Role::Path | Role::Base | Role::Label => Position::ShownPath,
                    Role::Uri => Position::ShownUri,
                    _ if key == "type" => Position::ShownType,
                    _ => Position::Shown,
                }
            }
            Position::Word | Position::Argument => Member(Role::Unknown),
            Member(Role::Changes) => {
                self.found.keep_path(key);
                (self.found.edits, self.found.has_path) = (true, true);
                Member(Role::Items)
            }
            Member(around) => {
                let is_top = matches!(around, Role::Wrapper | Role::Arguments | Role::Command);
                let role = role(is_top);
                self.note_key(key, around, role);
                self.found.edits |= role == Role::Items && is_top;
                match (around, role) {
                    _ if self.is_below_unknown => {
                        self.found.edits |= role == Role::Edited;
                        Member(role.below_unknown())
                    }
                    (Role::Tree | Role::Parsed, Role::Path | Role::Base | Role::Label) => {
                        Position::ShownPath
                    }
                    (
                        Role::Tree,
                        Role::Unknown | Role::Text | Role::Written | Role::Pattern | Role::Items,
                    ) => Member(Role::Tree),
                    (
                        Role::Parsed,
                        Role::Unknown
                        | Role::Text
                        | Role::Written
                        | Role::Script
                        | Role::Pattern
                        | Role::Tree
                        | Role::Items,
                    ) => Member(Role::Parsed),
                    (_, role) => {
                        self.found.whole &= is_top || role != Role::Arguments;
                        Member(role)
                    }
                }
            }
        }
    }

    /// Keeps a key that may be a path: in changes by file, the keys are not names of members.
    fn note_key(&mut self, key: &str, around: Role, role: Role) {
        let is_by_path = matches!(around, Role::Path | Role::Base | Role::Items) && !self.is_listed;
        let is_unknown = role == Role::Unknown;
        if key.contains(['/', '\\']) || key.starts_with('~') || is_by_path && is_unknown {
            self.found.keep_unknown(key);
        } else if self.is_below_unknown && is_unknown {
            self.found.keep_string(key);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Shape of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    /// List or object.
    Tree,
    /// Number, `true`, `false` or `null`.
    Other,
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Shape, E> {
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
        Ok(Shape::Text)
    }

    fn visit_unit<E: Error>(self) -> Result<Shape, E> {
        self.no_text();
        Ok(Shape::Other)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Shape, E> {
        self.no_text();
        Ok(Shape::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Shape, E> {
        self.no_text();
        Ok(Shape::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Shape, E> {
        self.no_text();
        Ok(Shape::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Shape, E> {
        self.no_text();
        Ok(Shape::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        self.is_too_deep::<A::Error>()?;
        let place = match self.place {
            Member(Role::Command) => {
                self.found.keep_command(CommandText::Arguments(Vec::new()));
                Position::Word
            }
            Position::Word | Position::Argument | Member(Role::Directory) => {
                self.found.whole = false;
                self.place
            }
            Member(Role::Arguments) => Position::Argument,
            Member(Role::Text | Role::Wrapper) => Member(Role::Unknown),
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
            if let (Shape::Text, [word], 0..MOST_WORDS) = (shape, kept, words.len()) {
                words.push(word.clone());
            }
        }
        let names_nothing = matches!(place, Member(Role::Text | Role::Tree | Role::Edited));
        if matches!(place, Member(_)) && !names_nothing {
            self.found.keep_joined(&words);
        }
        Ok(Shape::Tree)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Shape, A::Error> {
        self.is_too_deep::<A::Error>()?;
        if matches!(
            self.place,
            Position::Word | Position::Argument | Member(Role::Command)
        ) {
            self.found.whole = false;
        }
        if self.place == Member(Role::Script) {
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
            if place == Member(Role::Unknown) && shape == Shape::Tree && !self.is_below_unknown {
                self.found.keep_string(&key);
            }
        }
        self.found.join_arguments(at);
        (self.found.arguments, self.found.programs) = (outer, programs);
        Ok(Shape::Tree)
    }
}
