//! Names of secrets: of variables, members, headers, options and query parameters.

/// Endings of the names of secrets, without separators.
const ENDINGS: &[&str] = &[
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "subscriptionkey",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "credential",
    "credentials",
];

/// Last words of the names of variables that hold a secret, in addition to [`ENDINGS`]. In other names, such as the
/// member `key` of an object, they are ordinary words.
const LAST_WORDS: &[&str] = &[
    "auth", "cookie", "cookies", "dsn", "headers", "jwt", "key", "keys", "pass", "pat", "pin",
    "secrets",
];

/// Last words of the names of headers and variables whose value is a list of names and values.
const LISTS: &[&str] = &["cookie", "cookies", "headers"];

/// Last words of the names of variables whose value may be a user and a password: `user:password`.
const LOGINS: &[&str] = &["auth", "credential", "credentials"];

/// Names of query parameters that hold a secret, in addition to those of variables.
const PARAMETERS: &[&str] = &["code", "sig", "signature"];

/// Returns `true` if the name of a member, a header or an option is the name of a secret, or if it has the form of a
/// variable and is the name of one that holds a secret.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    ends_as_secret(name) || (is_capital(name) && is_variable(name))
}

/// Returns `true` if a variable of this name holds a secret.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    is_one_of(last_word(name), LAST_WORDS) || ends_as_secret(name)
}

/// Returns `true` if the value of a header or a variable of this name is a list of names and values.
pub fn is_list(name: &str) -> bool {
    is_one_of(last_word(name), LISTS)
}

/// Returns `true` if the value of a variable of this name may be a user and a password.
pub fn is_login(name: &str) -> bool {
    is_one_of(last_word(name), LOGINS)
}

/// Returns `true` if a query parameter of this name holds a secret.
#[must_use]
pub fn is_parameter(name: &str) -> bool {
    is_variable(name) || is_one_of(name, PARAMETERS)
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

/// Returns `true` if the name has the form of a variable of several words: `DB_PASS`.
fn is_capital(name: &str) -> bool {
    name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase())
}
