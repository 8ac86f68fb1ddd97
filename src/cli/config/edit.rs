//! Changes of the user's configuration file that keep its comments and format.

use super::agents::{ResolutionContext, resolve};
use super::source::{ConfigSource, FileOwner};
use super::{UserFile, user_policy, write};
use acpipe_core::agent_names::check_name;
use acpipe_host::check_owner;
use acpipe_model::error::{Error, ErrorKind, invalid};
use serde_json::{Map, Value as Json};
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

/// Configuration file that is changed in memory and then written.
pub struct Edit<'a> {
    file: PathBuf,
    /// The file behind its links.
    target: PathBuf,
    document: DocumentMut,
    is_builtin: &'a dyn Fn(&str) -> bool,
}

impl<'a> Edit<'a> {
    /// Opens the user's file; a missing file is empty.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid configuration.
    pub fn open(user_file: &UserFile, is_builtin: &'a dyn Fn(&str) -> bool) -> Result<Self, Error> {
        let file = &*user_file.path;
        let (target, text) = match user_file.read() {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (file.to_owned(), String::new())
            }
            Err(error) => {
                let message = format!("cannot read the configuration {}: {error}", file.display());
                return Err(Error::new(ErrorKind::InvalidParams, message));
            }
        };
        check(file, &text, is_builtin)?;
        let document = text.parse::<DocumentMut>().map_err(|error| {
            let message = format!("{}: {}", file.display(), error.message());
            Error::new(ErrorKind::InvalidParams, message)
        })?;
        Ok(Self {
            file: file.to_owned(),
            target,
            document,
            is_builtin,
        })
    }

    /// Adds an agent with the keys of `[agents.NAME]`.
    ///
    /// # Errors
    /// `duplicateAgent` if the file has an agent of this name.
    pub fn add_agent(&mut self, name: &str, keys: &Map<String, Json>) -> Result<(), Error> {
        check_name(name).map_err(|why| invalid(&format!("agents.{name}"), why))?;
        let head = self.take_lone_comments();
        let mut all = Table::new();
        all.set_implicit(true);
        let agents = self.document.entry("agents").or_insert(Item::Table(all));
        let agents = agents.as_table_like_mut();
        let agents = agents.ok_or_else(|| invalid("agents", "must be a table"))?;
        if agents.contains_key(name) {
            let message = format!(
                "{}: agents.{name}: the agent exists; remove it first, or choose another name",
                self.file.display()
            );
            return Err(Error::new(ErrorKind::DuplicateAgent, message));
        }
        let mut table = table(keys);
        if !head.is_empty() {
            table.decor_mut().set_prefix(head);
        }
        agents.insert(name, Item::Table(table));
        Ok(())
    }

    /// Removes an agent, and the default if it names the agent. Returns `false` if the file has no agent of
    /// this name.
    pub fn remove_agent(&mut self, name: &str) -> bool {
        let agents = self.document.get_mut("agents");
        let agents = agents.and_then(Item::as_table_like_mut);
        let is_removed = agents.is_some_and(|agents| agents.remove(name).is_some());
        if is_removed && self.default_agent() == Some(name) {
            self.set_default(None);
        }
        is_removed
    }

    /// Returns the name of the default agent.
    #[must_use]
    pub fn default_agent(&self) -> Option<&str> {
        self.document.get("agent").and_then(Item::as_str)
    }

    /// Sets or removes the default agent.
    pub fn set_default(&mut self, name: Option<&str>) {
        let Some(name) = name else {
            self.document.remove("agent");
            return;
        };
        if let Some(Item::Value(old)) = self.document.get_mut("agent") {
            let decor = old.decor().clone();
            *old = Value::from(name);
            *old.decor_mut() = decor;
            return;
        }
        let head = self.take_head();
        self.document.insert("agent", value(name));
        if let Some(mut key) = self.document.key_mut("agent") {
            key.leaf_decor_mut().set_prefix(head);
        }
    }

    /// Takes the comments of a file without keys; otherwise they would follow a new key.
    fn take_lone_comments(&mut self) -> String {
        if !self.document.is_empty() {
            return String::new();
        }
        let comments = self.document.trailing().as_str().unwrap_or_default();
        let comments = comments.trim_end().to_owned();
        self.document.set_trailing("");
        if comments.is_empty() {
            comments
        } else {
            comments + "\n\n"
        }
    }

    /// Takes the comments at the head of a file without root keys, up to an empty line, from the first
    /// table. A new root key comes before that table, and the comments must stay at the head.
    fn take_head(&mut self) -> String {
        if self.document.is_empty() {
            return self.take_lone_comments();
        }
        let root = self.document.as_table_mut();
        if root.iter().any(|(_, item)| item.is_value()) {
            return String::new();
        }
        let first = root.iter_mut().find_map(|(_, item)| {
            let table = match item {
                Item::Table(table) => Some(table),
                _ => None,
            }?;
            first_printed(table)
        });
        let Some(table) = first else {
            return String::new();
        };
        let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
        let Some((head, rest)) = prefix.and_then(|prefix| prefix.split_once("\n\n")) else {
            return String::new();
        };
        let (head, rest) = (format!("{head}\n\n"), format!("\n{rest}"));
        table.decor_mut().set_prefix(rest);
        head
    }

    /// Checks the changed configuration and writes the file. What is written may be a secret, which the owner of the file can
    /// read.
    ///
    /// # Errors
    /// The changed configuration is not valid, or the file belongs to another user or cannot be written.
    pub fn write(self) -> Result<(), Error> {
        let text = self.document.to_string();
        check(&self.file, &text, self.is_builtin)?;
        let is_own = [&self.file, &self.target]
            .into_iter()
            .try_for_each(|file| match check_owner(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            });
        let is_own = is_own
            .map_err(|error| io::Error::new(error.kind(), format!("{error}; choose another file")));
        let written = is_own.and_then(|()| write::replace(&self.target, &text));
        written.map_err(|error| {
            let message = format!(
                "cannot write the configuration {}: {error}",
                self.file.display()
            );
            Error::new(ErrorKind::InvalidParams, message)
        })
    }
}

/// Returns the first table that is printed with a header.
fn first_printed(table: &mut Table) -> Option<&mut Table> {
    if !table.is_implicit() {
        return Some(table);
    }
    table.iter_mut().find_map(|(_, item)| match item {
        Item::Table(table) => first_printed(table),
        _ => None,
    })
}

/// Checks a text as the user's configuration.
fn check(file: &Path, text: &str, is_builtin: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    let source = ConfigSource::parse(&file.to_string_lossy(), text, FileOwner::User)?;
    let policy = user_policy(Some(&source), super::home(), None)?;
    let context = ResolutionContext {
        policy: &policy,
        is_builtin,
    };
    let sources = [source];
    let agents = resolve(&sources, context)?;
    super::default_of(&sources[0], &agents, is_builtin).map(|_| ())
}

/// Converts an object to a table; members without a value are left out.
fn table(keys: &Map<String, Json>) -> Table {
    let mut table = Table::new();
    for (key, json) in keys {
        let item = match json {
            Json::Null => continue,
            Json::Object(keys) => Item::Table(self::table(keys)),
            json => Item::Value(inline(json)),
        };
        table.insert(key, item);
    }
    table
}

/// Converts JSON to a TOML value; `null` becomes an empty string, and is left out of objects.
fn inline(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(""),
        Json::Bool(set) => Value::from(*set),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number),
            None => Value::from(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::Array(items.iter().map(inline).collect::<Array>()),
        Json::Object(keys) => {
            let keys = keys.iter().filter(|(_, value)| !value.is_null());
            let keys = keys.map(|(key, value)| (key.as_str(), inline(value)));
            Value::InlineTable(keys.collect::<InlineTable>())
        }
    }
}

#[cfg(test)]
mod tests;
