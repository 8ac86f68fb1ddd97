//! A configuration file that was read and checked: its content, and the places of its keys.

use super::check::check;
use super::document::{SyntaxError, TextPosition, TomlDocument};
use super::fault::{ConfigFault, KeyPath, PathStep};
use super::file::ConfigFile;
use super::schema::schema;
use acpipe_json::{MemberStep, read_value};
use acpipe_model::error::{Error, ErrorKind};

/// Owner of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOwner {
    /// The user.
    User,
    /// The project that the agent works in.
    Project {
        /// Whether the user trusts the file as it is.
        is_trusted: bool,
    },
}

/// Configuration file with its content.
#[derive(Debug)]
pub struct ConfigSource<'t> {
    /// Path of the file, for messages; empty for a text without a file.
    pub file: String,
    /// Owner of the file.
    pub origin: FileOwner,
    /// Content of the file.
    pub content: ConfigFile,
    document: TomlDocument<'t>,
}

impl<'t> ConfigSource<'t> {
    /// Parses a configuration file and checks its keys and types.
    ///
    /// # Errors
    /// The text is not valid: place, key, reason and remedy.
    pub fn parse(file: &str, text: &'t str, origin: FileOwner) -> Result<Self, Error> {
        let file = file.to_owned();
        let document = TomlDocument::parse(text).map_err(|error| of_syntax(&file, &error))?;
        let wrong = |fault: ConfigFault| located(&file, document.place(&fault), &fault);
        check(&document.root, schema(), &KeyPath::default()).map_err(wrong)?;
        let value = document.to_json().map_err(wrong)?;
        let content = read_value(&value).map_err(|fault| {
            let steps = fault.path.into_iter().map(|step| match step {
                MemberStep::Field(key) => PathStep::Key(key),
                MemberStep::Item(index) => PathStep::Index(index),
            });
            wrong(ConfigFault::new(KeyPath(steps.collect()), fault.reason))
        })?;
        Ok(Self {
            file,
            origin,
            content,
            document,
        })
    }

    /// Creates the error for a fault in this file.
    #[must_use]
    pub fn error(&self, fault: &ConfigFault) -> Error {
        located(&self.file, self.document.place(fault), fault)
    }

    /// Returns the place of a key as `FILE:LINE`.
    #[must_use]
    pub fn place(&self, path: &KeyPath) -> String {
        format!("{}:{}", self.file, self.document.place_of_key(path).line)
    }

    /// Returns the position of a key, by which keys are ordered as in the file.
    #[must_use]
    pub fn order(&self, path: &KeyPath) -> usize {
        self.document.position_of_key(path)
    }

    /// Returns `true` for a project's file that the user does not trust.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.origin == FileOwner::Project { is_trusted: false }
    }

    /// Returns `true` for a project's file.
    #[must_use]
    pub fn is_of_project(&self) -> bool {
        self.origin != FileOwner::User
    }
}

fn located(file: &str, place: TextPosition, fault: &ConfigFault) -> Error {
    let path = fault.path.to_string();
    let colon = if path.is_empty() { "" } else { ": " };
    at(
        file,
        place,
        fault.kind,
        &format!("{path}{colon}{}", fault.why),
    )
}

fn at(file: &str, place: TextPosition, kind: ErrorKind, why: &str) -> Error {
    let colon = if file.is_empty() { "" } else { ":" };
    Error::new(kind, format!("{file}{colon}{place}: {why}"))
}

/// Creates the error for a text that is not TOML. A table `[agents.NAME]` that occurs twice is an agent that is
/// defined twice.
fn of_syntax(file: &str, error: &SyntaxError<'_>) -> Error {
    let header = error.line.trim().strip_prefix("[agents.");
    let name = header.and_then(|rest| rest.split(']').next());
    match name {
        Some(name) if error.why == "duplicate key" && !name.contains('.') => {
            let why = format!(
                "agents.{name}: the agent is defined twice; rename or remove one of the tables"
            );
            at(file, error.place, ErrorKind::DuplicateAgent, &why)
        }
        _ => at(file, error.place, ErrorKind::InvalidParams, &error.why),
    }
}
