//! Secrets: their detection, and how they are hidden. Whatever acpipe writes for people to read and pass on goes through this
//! module: logs, tapes, errors, telemetry, responses with an agent's environment.
//!
//! `address` finds passwords in addresses, `arguments` shows command lines, `headers` reads what a header holds, `names` knows the names of secrets, `patterns` what a secret looks like, `key_lines` the later lines of a private key, `known` the values that acpipe got as
//! secrets, `shared` the list of them that threads share, `sources` where it gets them, `view` the escapes in which a value may be written, and `frame` the members
//! of a message that hold what the user typed.

mod address;
mod arguments;
mod frame;
mod headers;
mod key_lines;
mod known;
mod names;
mod patterns;
mod shared;
mod sources;
mod view;

use acpipe_protocol::wire::Variables;
pub use arguments::{shown_line, shown_words};
pub use frame::{Sender, hide_in_frame, hide_in_value, without_members};
pub use key_lines::{KeyLines, without_key_lines};
pub use names::{is_parameter, names_secret, shown_variable};
use shared::SharedList;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use view::views;

pub const HIDDEN: &str = "[hidden]";

/// Text that replaces the value of a variable in a response to a client.
pub const REDACTED: &str = "[redacted]";

/// Returns `true` if a variable holds a secret, by its name or value.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    let has_password = || names::is_address(name) && address::password(value).is_some();
    !value.is_empty()
        && (names::is_variable_with(name, value)
            || matches!(hide(value), Cow::Owned(_))
            || has_password()
            || address::lone_key(value).is_some())
}

/// Returns the text with everything that looks like a secret replaced.
#[must_use]
pub fn hide(text: &str) -> Cow<'_, str> {
    hidden(text, None)
}

/// Returns the text of an address with its password replaced, also if the address is not valid.
#[must_use]
pub fn shown_address(text: &str) -> Cow<'_, str> {
    match address::password(text) {
        Some(range) => replaced(text, vec![range]),
        None => hide(text),
    }
}

/// Returns arguments of a command line as they may be shown: names without the values of variables and headers, and
/// nothing that is or looks like a secret. The number of words stays.
#[must_use]
pub fn shown_arguments<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    arguments::shown(words, &|word| hide(&without_members(word)).into_owned())
}

/// Known secrets, shared by all clones and by the handles of all clients.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    list: Arc<SharedList>,
    /// acpipe's own environment, to which MCP servers and headers refer.
    environment: Arc<Variables>,
}

impl Secrets {
    /// Creates a list with the secrets of acpipe's own environment, which agents inherit.
    #[must_use]
    pub fn of_environment(environment: Variables) -> Self {
        let secrets = Self {
            list: Arc::default(),
            environment: Arc::new(environment),
        };
        let variables = secrets.environment.0.iter();
        let held = variables.filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let held = held.filter(|(name, value)| is_secret(name, value));
        secrets.add_named(held);
        secrets
    }

    /// Returns a handle for a client, whose values cannot displace those of others. All handles hide the same.
    #[must_use]
    pub fn of_client(&self) -> Self {
        Self {
            list: Arc::new(self.list.of_client()),
            environment: Arc::clone(&self.environment),
        }
    }

    /// Adds values that are hidden from now on.
    pub fn add_values<'a>(&self, values: impl IntoIterator<Item = &'a str>) {
        self.list.add(&sources::forms(values));
    }

    /// Replaces known secrets and text that looks like a secret, in whatever escapes it is written.
    #[must_use]
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hidden(text, Some(&self.list))
    }
}

fn hidden<'a>(text: &'a str, list: Option<&SharedList>) -> Cow<'a, str> {
    let mut found = Vec::new();
    for view in views(text) {
        let bytes = view.bytes();
        if let Some(list) = list {
            list.find(bytes, &mut |range| found.push(view.place(range)));
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            let seen = patterns::found(text);
            found.extend(seen.into_iter().map(|range| view.place(range)));
        }
    }
    replaced(text, found)
}

/// Replaces ranges of a text. They may overlap, and begin inside a character.
fn replaced(text: &str, mut found: Vec<Range<usize>>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable_by_key(|range| range.start);
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    let mut found = found.into_iter().peekable();
    while let Some(Range { mut start, mut end }) = found.next() {
        while let Some(next) = found.next_if(|next| next.start <= end) {
            end = end.max(next.end);
        }
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        // A character may belong to the range before.
        if let Some(between) = text.get(done..start) {
            shown.push_str(between);
        }
        if start >= done {
            shown.push_str(HIDDEN);
        }
        done = done.max(end);
    }
    shown.push_str(&text[done..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests;
