//! Members of a text whose value is a list or an object, found without parsing it.

use super::super::names_secret;
use super::{ANSWERS, COMMANDS};

/// Returns `true` if a list or an object in the text may be secret by the name of its member, or a command line.
pub fn may_hold_secret(text: &str) -> bool {
    let is_known =
        |name: &str| ANSWERS.contains(&name) || COMMANDS.contains(&name) || names_secret(name);
    first(text, is_known).is_some()
}

/// Returns where the first list or object begins that is the value of a member with the name of a secret.
pub fn secret(text: &str) -> Option<usize> {
    first(text, names_secret)
}

/// Returns where the first list or object begins whose member has such a name. Of other names than words, the end counts.
fn first(text: &str, is: impl Fn(&str) -> bool) -> Option<usize> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    memchr::memchr2_iter(b'[', b'{', text.as_bytes()).find(|at| {
        let before = text[..*at].trim_end_matches(is_between);
        before.strip_suffix(':').is_some_and(|before| {
            let before = before.trim_end_matches(is_between);
            is(&before[before.trim_end_matches(is_part).len()..])
        })
    })
}
