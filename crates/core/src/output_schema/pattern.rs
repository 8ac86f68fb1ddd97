//! Regular expressions of schemas: those of ECMA-262 in the syntax of the engine, with bounds.

use fancy_regex::{Regex, RegexBuilder};
use std::collections::HashMap;
use std::error::Error;
use std::iter::Peekable;
use std::str::Chars;

/// Maximum number of patterns: each is compiled whenever the schema is used.
const MAX_PATTERNS: usize = 64;

/// Maximum number of steps back in one match of a pattern.
const BACKTRACKS: usize = 100_000;

/// Maximum size of a compiled pattern, in bytes. Compiling one of this size takes milliseconds.
const PATTERN_BYTES: usize = 256 << 10;

const DIGITS: &str = "0-9";
const WORDS: &str = "0-9A-Za-z_";
const SPACES: &str =
    r"\t-\r\x20\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
const LINE_ENDS: &str = r"\n\r\x{2028}\x{2029}";

/// Compiled patterns of a schema.
#[derive(Debug, Default)]
pub struct Patterns<'s>(HashMap<&'s str, Regex>);

impl<'s> Patterns<'s> {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The pattern is not valid or too large, or there are too many.
    pub fn add(&mut self, pattern: &'s str) -> Result<(), String> {
        if self.0.contains_key(pattern) {
            return Ok(());
        }
        if self.0.len() == MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} patterns"));
        }
        let wrong = |why: String| format!("{pattern:?} is not a valid regex: {why}");
        let translated = translate(pattern).map_err(wrong)?;
        let built = RegexBuilder::new(&translated)
            .backtrack_limit(BACKTRACKS)
            .delegate_size_limit(PATTERN_BYTES)
            .build();
        let regex = built.map_err(|error| wrong(cause(&error)))?;
        self.0.insert(pattern, regex);
        Ok(())
    }

    /// Returns whether a pattern matches somewhere in a text.
    ///
    /// # Errors
    /// The match takes too many steps.
    pub fn find(&self, pattern: &str, text: &str) -> Result<bool, String> {
        let Some(regex) = self.0.get(pattern) else {
            return Ok(true);
        };
        let found = regex.is_match(text);
        found.map_err(|error| format!("cannot be compared with the pattern {pattern:?}: {error}"))
    }
}

/// Returns the last line of the innermost cause of an error: those around say only that a pattern is wrong.
fn cause(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let text = inner.to_string();
    text.lines().last().unwrap_or_default().to_owned()
}

/// Part of a class in brackets.
enum ClassMember {
    One(String),
    Many(String),
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    text: String,
}

/// Returns a pattern of ECMA-262 in the syntax of the engine.
fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        rest: pattern.chars().peekable(),
        text: String::with_capacity(pattern.len() + 16),
    };
    while let Some(next) = translator.rest.next() {
        match next {
            '\\' => translator.escape()?,
            '.' => translator.set("[^", LINE_ENDS),
            '[' => translator.class()?,
            '{' => translator.braces(),
            '}' => translator.text.push_str(r"\}"),
            other => translator.text.push(other),
        }
    }
    Ok(translator.text)
}

impl Translator<'_> {
    fn set(&mut self, open: &str, members: &str) {
        self.text.push_str(open);
        self.text.push_str(members);
        self.text.push(']');
    }

    /// Copies a quantifier. Other braces are literal.
    fn braces(&mut self) {
        let mut ahead = self.rest.clone();
        let inner: String = ahead.by_ref().take_while(|c| *c != '}').collect();
        let (least, most) = inner.split_once(',').unwrap_or((&inner, ""));
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let has_end = self.rest.clone().any(|c| c == '}');
        if has_end && !least.is_empty() && is_number(least) && is_number(most) {
            self.text.push('{');
            self.text.push_str(&inner);
            self.text.push('}');
            self.rest = ahead;
        } else {
            self.text.push_str(r"\{");
        }
    }

    /// Translates an escape outside of brackets.
    fn escape(&mut self) -> Result<(), String> {
        match self.rest.peek() {
            Some('b' | 'B' | 'k' | '1'..='9') => {
                let escaped = self.rest.next().unwrap_or_default();
                self.text.push('\\');
                self.text.push(escaped);
            }
            _ => match self.escaped()? {
                ClassMember::One(one) => self.text.push_str(&one),
                ClassMember::Many(many)
                    if many.starts_with(['[', '\\']) && !many.starts_with(r"\t") =>
                {
                    self.text.push_str(&many);
                }
                ClassMember::Many(many) => self.set("[", &many),
            },
        }
        Ok(())
    }

    /// Reads the rest of an escape that means the same inside and outside of brackets.
    fn escaped(&mut self) -> Result<ClassMember, String> {
        let Some(escaped) = self.rest.next() else {
            return Err(r"\ at the end".to_owned());
        };
        let many = |members: &str| Ok(ClassMember::Many(members.to_owned()));
        let none_of = |members: &str| Ok(ClassMember::Many(format!("[^{members}]")));
        match escaped {
            'd' => many(DIGITS),
            'D' => none_of(DIGITS),
            'w' => many(WORDS),
            'W' => none_of(WORDS),
            's' => many(SPACES),
            'S' => none_of(SPACES),
            'p' | 'P' => {
                let name: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                let name = name.strip_prefix('{').ok_or(r"\p without {…}")?;
                Ok(ClassMember::Many(format!(r"\{escaped}{{{name}}}")))
            }
            't' => Ok(character('\t')),
            'n' => Ok(character('\n')),
            'v' => Ok(character('\u{b}')),
            'f' => Ok(character('\u{c}')),
            'r' => Ok(character('\r')),
            '0' => Ok(character('\0')),
            'c' => match self.rest.next() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    Ok(character(char::from(letter as u8 % 32)))
                }
                _ => Err(r"\c without a letter".to_owned()),
            },
            'x' => self.code(2).and_then(scalar),
            'u' if self.rest.next_if_eq(&'{').is_some() => {
                let digits: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                scalar(hexadecimal(&digits)?)
            }
            'u' => {
                let first = self.code(4)?;
                let is_pair = (0xd800..0xdc00).contains(&first)
                    && self.rest.next_if_eq(&'\\').is_some()
                    && self.rest.next_if_eq(&'u').is_some();
                if !is_pair {
                    return scalar(first);
                }
                let low = self.code(4)?.checked_sub(0xdc00);
                match low.filter(|low| *low < 0x400) {
                    Some(low) => scalar(0x1_0000 + ((first - 0xd800) << 10) + low),
                    None => Err(r"\u of half a character".to_owned()),
                }
            }
            letter if letter.is_ascii_alphanumeric() => Err(format!(r"\{letter} has no meaning")),
            other => Ok(character(other)),
        }
    }

    fn code(&mut self, length: usize) -> Result<u32, String> {
        let digits: String = self.rest.by_ref().take(length).collect();
        if digits.chars().count() < length {
            return Err(format!(r"{digits:?} is not {length} hexadecimal digits"));
        }
        hexadecimal(&digits)
    }

    /// Translates a class in brackets.
    fn class(&mut self) -> Result<(), String> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut members = String::new();
        loop {
            let first = match self.member()? {
                Some(first) => first,
                None if members.is_empty() && negated => {
                    self.set("[", r"\x00-\x{10ffff}");
                    return Ok(());
                }
                None if members.is_empty() => {
                    self.set("[^", r"\x00-\x{10ffff}");
                    return Ok(());
                }
                None => break,
            };
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
            if !is_range {
                members.push_str(first.text());
                continue;
            }
            self.rest.next();
            match (first, self.member()?) {
                (ClassMember::One(first), Some(ClassMember::One(last))) => {
                    members.push_str(&first);
                    members.push('-');
                    members.push_str(&last);
                }
                // A hyphen beside a set such as `\w` is itself.
                (first, last) => {
                    members.push_str(first.text());
                    members.push_str(r"\-");
                    members.push_str(last.as_ref().map_or("", ClassMember::text));
                }
            }
        }
        self.set(if negated { "[^" } else { "[" }, &members);
        Ok(())
    }

    /// Reads a part of a class. Returns `None` at its end.
    fn member(&mut self) -> Result<Option<ClassMember>, String> {
        match self.rest.next() {
            None => Err("[ without ]".to_owned()),
            Some(']') => Ok(None),
            Some('\\') if self.rest.next_if_eq(&'b').is_some() => Ok(Some(character('\u{8}'))),
            Some('\\') => self.escaped().map(Some),
            Some(other) => Ok(Some(character(other))),
        }
    }
}

impl ClassMember {
    fn text(&self) -> &str {
        match self {
            Self::One(text) | Self::Many(text) => text,
        }
    }
}

/// Returns a character so that it means itself inside and outside of brackets.
fn character(c: char) -> ClassMember {
    ClassMember::One(if c.is_alphanumeric() {
        c.to_string()
    } else {
        format!(r"\x{{{:x}}}", u32::from(c))
    })
}

fn scalar(code: u32) -> Result<ClassMember, String> {
    char::from_u32(code)
        .map(character)
        .ok_or_else(|| format!(r"\u{code:x} is not a character"))
}

fn hexadecimal(digits: &str) -> Result<u32, String> {
    u32::from_str_radix(digits, 16).map_err(|_| format!("{digits:?} is not a hexadecimal number"))
}
