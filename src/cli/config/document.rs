//! A parsed TOML document: its values without their places for the types, and the place of each key.

use super::fault::{ConfigFault, KeyPath, PathStep};
use serde_json::{Map, Number, Value};
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Position in a file; both numbers begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value with its position.
pub type Located<'i> = Spanned<DeValue<'i>>;

/// Text with the positions of its lines, so that places are found without reading the text again.
#[derive(Debug)]
struct LineStarts<'i> {
    text: &'i str,
    /// Position of the first byte of each line.
    starts: Vec<usize>,
}

impl<'i> LineStarts<'i> {
    fn new(text: &'i str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes());
        let starts = std::iter::once(0).chain(breaks.map(|at| at + 1));
        Self {
            text,
            starts: starts.collect(),
        }
    }

    /// Returns the place of a byte.
    fn place(&self, byte: usize) -> TextPosition {
        let line = self.starts.partition_point(|start| *start <= byte).max(1);
        let before = self.text.get(self.starts[line - 1]..byte);
        TextPosition {
            line,
            column: 1 + before.unwrap_or_default().chars().count(),
        }
    }
}

/// TOML document with the positions of its keys and values.
#[derive(Debug)]
pub struct TomlDocument<'i> {
    lines: LineStarts<'i>,
    /// The root table.
    pub root: Located<'i>,
}

/// Error of the TOML syntax.
#[derive(Debug)]
pub struct SyntaxError<'i> {
    /// Place of the error.
    pub place: TextPosition,
    /// Reason of the parser.
    pub why: String,
    /// Line of the text.
    pub line: &'i str,
}

impl<'i> TomlDocument<'i> {
    /// Parses a document.
    ///
    /// # Errors
    /// The text is not valid TOML.
    pub fn parse(text: &'i str) -> Result<Self, SyntaxError<'i>> {
        let lines = LineStarts::new(text);
        match DeTable::parse(text) {
            Ok(root) => {
                let span = root.span();
                let root = Spanned::new(span, DeValue::Table(root.into_inner()));
                Ok(Self { lines, root })
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start.min(text.len()));
                let place = lines.place(at);
                Err(SyntaxError {
                    place,
                    why: error.message().trim().to_owned(),
                    line: text.lines().nth(place.line - 1).unwrap_or_default(),
                })
            }
        }
    }

    /// Returns the place of a fault: of its key, or of its value.
    #[must_use]
    pub fn place(&self, fault: &ConfigFault) -> TextPosition {
        let (key, value) = self.spans(&fault.path);
        let span = if fault.at_key { key } else { value };
        self.lines.place(span.start)
    }

    /// Returns the place of a key.
    #[must_use]
    pub fn place_of_key(&self, path: &KeyPath) -> TextPosition {
        self.lines.place(self.position_of_key(path))
    }

    /// Returns the position of a key in bytes.
    #[must_use]
    pub fn position_of_key(&self, path: &KeyPath) -> usize {
        self.spans(path).0.start
    }

    /// Returns the positions of the key and the value of a path, or of its last part that exists.
    fn spans(&self, path: &KeyPath) -> (Range<usize>, Range<usize>) {
        let mut value = &self.root;
        let mut key = value.span();
        for step in &path.0 {
            let next = match (step, value.get_ref()) {
                (PathStep::Key(name), DeValue::Table(table)) => {
                    table.iter().find(|(known, _)| known.as_ref() == name)
                }
                (PathStep::Index(n) | PathStep::Item(n), DeValue::Array(list)) => {
                    let Some(item) = list.get(*n) else {
                        break;
                    };
                    key = item.span();
                    value = item;
                    continue;
                }
                _ => None,
            };
            let Some((name, next)) = next else { break };
            key = name.span();
            value = next;
        }
        (key, value.span())
    }

    /// Converts the document to JSON.
    ///
    /// # Errors
    /// A value is a date, or a number that JSON does not have.
    pub fn to_json(&self) -> Result<Value, ConfigFault> {
        to_json(&self.root, &KeyPath::default())
    }
}

fn to_json(value: &Located<'_>, path: &KeyPath) -> Result<Value, ConfigFault> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(set) => Value::Bool(*set),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            let why = "the number is too large; write it as a string";
            parsed
                .map_err(|_| ConfigFault::new(path.clone(), why))?
                .into()
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse().ok().and_then(Number::from_f64);
            let why = "must be a finite number";
            Value::Number(parsed.ok_or_else(|| ConfigFault::new(path.clone(), why))?)
        }
        DeValue::Datetime(_) => {
            let why = "must not be a date; write it as a string, in quotes";
            return Err(ConfigFault::new(path.clone(), why));
        }
        DeValue::Array(list) => {
            let items = list.iter().enumerate();
            let item = |(n, item)| to_json(item, &path.then(PathStep::Index(n)));
            Value::Array(items.map(item).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<_>, &Located<'_>)| {
                let key: &str = key_text(key);
                Ok((key.to_owned(), to_json(value, &path.key(key))?))
            };
            Value::Object(
                table
                    .iter()
                    .map(entry)
                    .collect::<Result<Map<_, _>, ConfigFault>>()?,
            )
        }
    })
}

/// Returns the text of a key.
fn key_text<T: AsRef<str>>(key: &Spanned<T>) -> &str {
    key.get_ref().as_ref()
}
