//! Passwords in addresses, also in those that are not valid: where an address is expected, what stands between the first
//! colon and an `@` is a password. A user before an empty password is a key, one without a password if it looks like a key.

use std::ops::Range;

/// Word that services expect in place of a password if the user is the key.
const NO_PASSWORD: &str = "x-oauth-basic";

/// Shortest user without a password that is taken for a key, as a token behind `Bearer`.
const SHORTEST_KEY: usize = 8;

/// Returns the place of the secret in `user:password`: the password, or the user if that is empty or stands for none.
/// `None` without a colon.
pub fn secret_of_login(login: &str) -> Option<Range<usize>> {
    let colon = login.find(':')?;
    let is_key = matches!(&login[colon + 1..], "" | NO_PASSWORD);
    let secret = if is_key {
        0..colon
    } else {
        colon + 1..login.len()
    };
    (!secret.is_empty()).then_some(secret)
}

/// Returns the place of the password in a text that is meant as an address: `https://user:PASSWORD@host`, but also
/// `htp:/user:PASSWORD@host` and `user:PASSWORD@host`; that of the user in `https://USER:@host`.
pub fn password(text: &str) -> Option<Range<usize>> {
    let start = scheme_len(text);
    let rest = &text[start..];
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let caller = match authority.rsplit_once('@') {
        Some((caller, _)) => caller,
        None if is_host(authority) => return None,
        // The password has a slash.
        None => rest.rsplit_once('@')?.0,
    };
    let Some(secret) = secret_of_login(caller) else {
        return lone_key(text);
    };
    Some(start + secret.start..start + secret.end)
}

/// Returns the place of the user in `https://USER@host` if there is no password and the user looks like a key. Most users
/// are names: `git`, `postgres`.
pub fn lone_key(text: &str) -> Option<Range<usize>> {
    let start = text.find("://")? + 3;
    let authority = text[start..].split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let is_scheme = scheme_len(text) == start;
    let is_key = user.len() >= SHORTEST_KEY
        && !user.contains([':', '@'])
        && user.contains(|c: char| c.is_ascii_digit())
        && user.contains(|c: char| c.is_ascii_alphabetic());
    (is_scheme && is_key).then(|| start..start + user.len())
}

/// Returns the length of a scheme with its slashes, of which there may be too few or too many.
fn scheme_len(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let rest = text.trim_start_matches(is_part);
    let path = rest.strip_prefix(':').map_or("", |rest| rest);
    let after = path.trim_start_matches('/');
    if after.len() < path.len() {
        text.len() - after.len()
    } else {
        0
    }
}

/// Returns `true` for a host with or without a port, or nothing.
fn is_host(authority: &str) -> bool {
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    port.bytes().all(|byte| byte.is_ascii_digit()) || authority.starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_of_an_address_is_found_where_the_address_is_not_valid() {
        for (text, want) in [
            ("https://u:pw@h/x?a=b@c", "pw"),
            ("htp:/u:pw@h", "pw"),
            ("http:///u:pw@h", "pw"),
            ("u:pw@h:80", "pw"),
            ("http:u:pw@h", "u:pw"),
            ("https://u:p/w@h", "p/w"),
            ("https://u:p@w@h:99999999/", "p@w"),
            (":pw@h", "pw"),
            ("https://h:80/a@b", ""),
            ("https://h/@scope/x:y@z", ""),
            ("https://user@h/", ""),
            ("http://[::1]:80/a@b", ""),
            ("git@h:o/r", ""),
            ("https://h/?mail=a:b@c", ""),
            ("u:@h", "u"),
            ("https://qJ7vR2mX@h/x", "qJ7vR2mX"),
            ("qJ7vR2mX@h", ""),
            ("postgres://postgres@h/db", ""),
            ("https://a/qJ7vR2mX@h", ""),
            ("https://key:x-oauth-basic@h", "key"),
            (":@h", ""),
            ("", ""),
        ] {
            let found = password(text).map_or("", |range| &text[range]);
            assert_eq!(found, want, "{text}");
        }
    }
}
