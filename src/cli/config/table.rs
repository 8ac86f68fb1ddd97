//! Checked access to a TOML table: unknown keys and wrong types are errors with a position.

use crate::core::policy::unknown;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Error in the configuration.
#[derive(Debug)]
pub struct ConfigError {
    /// Position in bytes from the start of the file.
    pub at: usize,
    pub why: String,
}

/// Parses a TOML document.
pub fn parse(text: &str) -> Result<DeTable<'_>, ConfigError> {
    let parsed = DeTable::parse(text).map(Spanned::into_inner);
    parsed.map_err(|error| ConfigError {
        at: error.span().map_or(0, |span| span.start.min(text.len())),
        why: error.message().to_owned(),
    })
}

/// Table in which all keys are known.
pub struct Table<'t, 'i> {
    /// Path of the table with a trailing dot, such as `permissions.`; empty for the document.
    path: String,
    entries: &'t DeTable<'i>,
}

type Value<'t, 'i> = &'t Spanned<DeValue<'i>>;

impl<'t, 'i> Table<'t, 'i> {
    pub fn new(path: &str, entries: &'t DeTable<'i>, keys: &[&str]) -> Result<Self, ConfigError> {
        // `entries` is sorted by name; the unknown key that comes first in the file is reported.
        let strange = entries
            .keys()
            .filter(|key| !keys.contains(&key.as_ref().as_ref()));
        if let Some(key) = strange.min_by_key(|key| key.span().start) {
            return Err(ConfigError {
                at: key.span().start,
                why: format!(
                    "{path}{key}: {}",
                    unknown("key", key.as_ref(), keys),
                    key = key.as_ref()
                ),
            });
        }
        let path = path.to_owned();
        Ok(Self { path, entries })
    }

    fn get(&self, key: &str) -> Option<Value<'t, 'i>> {
        let mut entries = self.entries.iter();
        entries
            .find(|(known, _)| known.as_ref() == key)
            .map(|(_, value)| value)
    }

    fn fault(&self, key: &str, value: Value<'_, '_>, why: &str) -> ConfigError {
        ConfigError {
            at: value.span().start,
            why: format!("{}{key}: {why}", self.path),
        }
    }

    pub fn table(&self, key: &str, keys: &[&str]) -> Result<Option<Table<'t, 'i>>, ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let DeValue::Table(entries) = value.get_ref() else {
            return Err(self.fault(
                key,
                value,
                &format!("must be a table: [{}{key}]", self.path),
            ));
        };
        Table::new(&format!("{}{key}.", self.path), entries, keys).map(Some)
    }

    /// Returns the tables of an array, each with its position in the file.
    pub fn tables(
        &self,
        key: &str,
        keys: &[&str],
    ) -> Result<Vec<(usize, Table<'t, 'i>)>, ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = |value| {
            self.fault(
                key,
                value,
                &format!("must be a list of tables: [[{}{key}]]", self.path),
            )
        };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(wrong(value));
        };
        let table = |(n, value): (usize, Value<'t, 'i>)| match value.get_ref() {
            DeValue::Table(entries) => {
                let path = format!("{}{key}[{}].", self.path, n + 1);
                Ok((value.span().start, Table::new(&path, entries, keys)?))
            }
            _ => Err(wrong(value)),
        };
        list.iter().enumerate().map(table).collect()
    }

    pub fn bool(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Boolean(set) => Ok(Some(*set)),
            _ => Err(self.fault(key, value, "must be true or false")),
        }
    }

    /// Reads a string and converts it with `make`.
    pub fn text<T>(
        &self,
        key: &str,
        make: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let DeValue::String(text) = value.get_ref() else {
            return Err(self.fault(key, value, "must be a string"));
        };
        let faulty = |why: String| self.fault(key, value, &why);
        make(text).map(Some).map_err(faulty)
    }

    /// Reads a string or an array of strings and passes each to `take`.
    pub fn texts(
        &self,
        key: &str,
        mut take: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(());
        };
        let one = std::slice::from_ref(value);
        let texts = match value.get_ref() {
            DeValue::Array(list) => list,
            _ => one,
        };
        for value in texts {
            let DeValue::String(text) = value.get_ref() else {
                return Err(self.fault(key, value, "must be a string or a list of strings"));
            };
            take(text).map_err(|why| self.fault(key, value, &why))?;
        }
        Ok(())
    }

    /// Rejects an empty array.
    pub fn not_empty(&self, key: &str) -> Result<(), ConfigError> {
        match self.get(key) {
            Some(value) if matches!(value.get_ref(), DeValue::Array(list) if list.is_empty()) => {
                Err(self.fault(
                    key,
                    value,
                    "must not be an empty list; an empty list matches nothing",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Rejects two keys that exclude each other.
    pub fn not_both(&self, one: &str, other: &str) -> Result<(), ConfigError> {
        match (self.get(one), self.get(other)) {
            (Some(_), Some(value)) => Err(self.fault(
                other,
                value,
                &format!("cannot be combined with {one}; remove one of them"),
            )),
            _ => Ok(()),
        }
    }

    /// Creates an error about the table as a whole.
    pub fn wrong(&self, at: usize, why: &str) -> ConfigError {
        let path = self.path.trim_end_matches('.');
        ConfigError {
            at,
            why: format!("{path}: {why}"),
        }
    }
}
