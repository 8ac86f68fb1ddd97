//! Faults in a configuration file, and the paths of the keys that have them.

use acpipe_model::error::ErrorKind;
use std::fmt;

/// Step of a path into a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// Key of a table.
    Key(String),
    /// Table in a list of tables.
    Index(usize),
    /// String in a list of strings; not shown.
    Item(usize),
}

/// Path of a key in a configuration file, such as `permissions.rules[1].path`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPath(pub Vec<PathStep>);

impl KeyPath {
    /// Creates a path of keys.
    #[must_use]
    pub fn of(keys: &[&str]) -> Self {
        let step = |key: &&str| PathStep::Key((*key).to_owned());
        Self(keys.iter().map(step).collect())
    }

    /// Returns this path with one more step.
    #[must_use]
    pub fn then(&self, step: PathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Returns this path with one more key.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(PathStep::Key(key.to_owned()))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        for (n, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) => {
                    let dot = if n > 0 { "." } else { "" };
                    if !key.is_empty() && key.chars().all(is_plain) {
                        write!(f, "{dot}{key}")?;
                    } else {
                        write!(f, "{dot}{key:?}")?;
                    }
                }
                PathStep::Index(n) => write!(f, "[{}]", n + 1)?,
                PathStep::Item(_) => {}
            }
        }
        Ok(())
    }
}

/// Fault of a key or its value.
#[derive(Debug)]
pub struct ConfigFault {
    /// Path of the key.
    pub path: KeyPath,
    /// Reason and remedy.
    pub why: String,
    /// Whether the key is wrong, not its value.
    pub at_key: bool,
    /// Kind of the error.
    pub kind: ErrorKind,
}

impl ConfigFault {
    /// Creates a fault of a value.
    pub fn new(path: KeyPath, why: impl Into<String>) -> Self {
        Self {
            path,
            why: why.into(),
            at_key: false,
            kind: ErrorKind::InvalidParams,
        }
    }

    /// Creates a fault of a key.
    pub fn of_key(path: KeyPath, why: impl Into<String>) -> Self {
        Self {
            at_key: true,
            ..Self::new(path, why)
        }
    }

    /// Returns this fault with its path below another one.
    #[must_use]
    pub fn below(mut self, path: &KeyPath) -> Self {
        self.path.0.splice(0..0, path.0.iter().cloned());
        self
    }
}
