//! Names of secrets: of variables, members, headers, options and query parameters.

use super::view::without_percents;
use super::{HIDDEN, hide};
use crate::shell_words;
use std::borrow::Cow;

/// Endings of the names of secrets, without separators.
const ENDINGS: &[&str] = &[
    "apikey",
    "accesskey",
    "accountkey",
    "secretkey",
    "privatekey",
    "subscriptionkey",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "authorization",
    "credential",
    "credentials",
];

/// Last words of the names of variables that hold a secret, in addition to [`ENDINGS`]. In other names, such as the
/// member `key` of an object, they are ordinary words.
const LAST_WORDS: &[&str] = &[
    "auth",
    "cookie",
    "cookies",
    "dsn",
    "headers",
    "jwt",
    "key",
    "keys",
    "pass",
    "passphrases",
    "passwords",
    "pat",
    "pin",
    "secrets",
];

/// Last word of the names of variables that hold secrets, unless the value is a count: `MAX_OUTPUT_TOKENS`.
const TOKENS: &[&str] = &["tokens"];

/// Endings of the last words of variables that hold a password, without a separator before them: `SSHPASS`, `MYSQL_PWD`.
const GLUED: [&str; 2] = ["pass", "pwd"];

/// Words with such an ending that are no passwords: ordinary words, and programs that ask for one.
const NO_PASSWORDS: &[&str] = &[
    "allpass",
    "askpass",
    "bandpass",
    "bypass",
    "compass",
    "encompass",
    "highpass",
    "lowpass",
    "multipass",
    "onepass",
    "overpass",
    "singlepass",
    "subpass",
    "surpass",
    "trespass",
    "underpass",
];

/// Words before `PWD` in the names of variables that hold a directory.
const DIRECTORIES: &[&str] = &[
    "", "caller", "current", "init", "initial", "logical", "old", "orig", "original", "physical",
    "start",
];

/// Last words of the names of headers and variables whose value is a list of names and values.
const LISTS: &[&str] = &["cookie", "cookies", "headers"];

/// Last words of the names of variables whose value may be a list of secrets.
const PLURALS: &[&str] = &["keys", "passphrases", "passwords", "secrets", "tokens"];

/// Last words of the names of variables whose value may be a user and a password: `user:password`.
const LOGINS: &[&str] = &["auth", "credential", "credentials"];

/// Endings of the names of variables and members whose value is an address.
const ADDRESSES: &[&str] = &["url", "proxy", "endpoint", "dsn"];

/// Names of query parameters that hold a secret, in addition to those of variables.
const PARAMETERS: &[&str] = &["code"];

/// Last words of the names of query parameters that hold a signature, by which an address is allowed: `X-Amz-Signature`.
const SIGNATURES: &[&str] = &["sig", "signature"];

/// Returns `true` if the name of a member, a header or an option is the name of a secret, or if it has the form of a
/// variable and is the name of one that holds a secret.
pub fn names_secret(name: &str) -> bool {
    ends_as_secret(name)
        || (is_capital(name) && is_variable(name))
        || (is_one_word(name) && holds_password(name))
}

/// Returns `true` if a variable of this name holds a secret.
pub fn is_variable(name: &str) -> bool {
    is_one_of(last_word(name), LAST_WORDS) || ends_as_secret(name) || holds_password(name)
}

/// Returns `true` if a variable with this name and value holds a secret by its name.
pub fn is_variable_with(name: &str, value: &str) -> bool {
    is_variable(name) || (is_one_of(last_word(name), TOKENS) && !is_count(value))
}

/// Returns `true` for a number, also with a unit: `32000`, `32_000`, `32k`.
fn is_count(value: &str) -> bool {
    let number = value.trim().trim_end_matches(['k', 'K', 'm', 'M']);
    number
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '_' | ',' | '.' | '-'))
}

/// Returns the name of a variable as an error may show it: a user may have written the key itself in its place, which
/// does not look like a name.
pub fn shown_variable(name: &str) -> &str {
    let has = |is: fn(&char) -> bool| name.chars().any(|c| is(&c));
    let is_separated = name.contains('_');
    let is_upper = !has(char::is_ascii_lowercase) && (is_separated || !has(char::is_ascii_digit));
    let is_lower = !has(char::is_ascii_uppercase) && is_separated;
    let is_name = shell_words::is_variable(name) && (is_upper || is_lower);
    if is_name && matches!(hide(name), Cow::Borrowed(_)) {
        name
    } else {
        HIDDEN
    }
}

/// Returns `true` if the value of a header or a variable of this name is a list of names and values.
pub fn is_list(name: &str) -> bool {
    is_one_of(last_word(name), LISTS)
}

/// Returns `true` if the value of a variable of this name may be a list of secrets.
pub fn is_plural(name: &str) -> bool {
    is_one_of(last_word(name), PLURALS)
}

/// Returns `true` if the value of a variable of this name may be a user and a password.
pub fn is_login(name: &str) -> bool {
    is_one_of(last_word(name), LOGINS)
}

/// Returns `true` if the value of a variable or a member of this name is an address.
pub fn is_address(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ADDRESSES.iter().any(|ending| name.ends_with(ending))
}

/// Returns `true` if the value of a header of this name is a scheme and a token: `Proxy-Authorization`.
pub fn is_authorization(name: &str) -> bool {
    is_one_of(last_word(name), &["authorization"])
}

/// Returns `true` if a query parameter of this name holds a secret.
pub fn is_parameter(name: &str) -> bool {
    let name = &without_percents(name);
    is_variable(name) || is_one_of(name, PARAMETERS) || is_one_of(last_word(name), SIGNATURES)
}

fn last_word(name: &str) -> &str {
    name.rsplit(['_', '-', '.']).next().unwrap_or_default()
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn ends_as_secret(name: &str) -> bool {
    let name = name.replace(['_', '-'], "").to_ascii_lowercase();
    ENDINGS.iter().any(|known| name.ends_with(known))
}

/// Returns `true` if the last word of a name ends with that of a password.
fn holds_password(name: &str) -> bool {
    let word = last_word(name).to_ascii_lowercase();
    let whole = name.replace(['_', '-', '.'], "").to_ascii_lowercase();
    let before = whole.strip_suffix("pwd").unwrap_or("other");
    GLUED.iter().any(|ending| word.ends_with(ending))
        && !NO_PASSWORDS.contains(&word.as_str())
        && !DIRECTORIES.contains(&before)
}

/// Returns `true` if the name has the form of a variable of one word with an ending: `SSHPASS`.
fn is_one_word(name: &str) -> bool {
    name.len() > 4 && name.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Returns `true` if the name has the form of a variable of several words: `DB_PASS`.
fn is_capital(name: &str) -> bool {
    name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase())
}
