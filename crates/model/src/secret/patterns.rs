//! Detection of text that looks like a secret: keys, tokens, passwords.

use super::HIDDEN;
use super::address;
use super::names::{self, names_secret};
use crate::cut::CUT;
use std::ops::Range;

/// Prefixes of keys of well-known services, with the minimum number of characters that follow.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("npm_", 30),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("xoxb-", 16),
    ("xoxa-", 16),
    ("xoxp-", 16),
    ("xapp-", 16),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ya29.", 16),
    ("eyJ", 20),
    ("SG.", 40),
    ("pypi-", 30),
    ("AGE-SECRET-KEY-1", 40),
    ("hooks.slack.com/services/", 20),
    ("hooks.slack.com/triggers/", 20),
    ("hooks.slack.com/workflows/", 20),
    // First lines of private keys, which an agent may write line by line: OpenSSH; PKCS #8 of Ed25519, P-256 and RSA;
    // SEC 1; PKCS #1.
    ("b3BlbnNzaC1rZXktdjE", 20),
    ("MC4CAQAwBQYDK2Vw", 20),
    ("MIGHAgEAMBMGByqGSM49", 20),
    ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 20),
    ("MIIJQgIBADANBgkqhkiG9w0BAQEFAASC", 20),
    ("MHcCAQEE", 30),
    ("MIIEowIBAAKCAQEA", 30),
    ("MIIEpAIBAAKCAQEA", 30),
    ("MIIEpQIBAAKCAQEA", 30),
];

/// Words of the lines before and after a private key, which the kind of the key follows.
const BEGIN: &str = "BEGIN";
const END: &str = "END";
const KEY_KIND: &str = "PRIVATE KEY";

/// Beginnings of these lines: of PEM, OpenSSH and PGP; of SSH2.
const LINE_BEGINNINGS: [&str; 2] = ["-----", "---- "];
const DASHES: &str = "----";

/// Names of the lines before and after the private part of a key of `PuTTY`.
const PUTTY_BEGIN: &str = "Private-Lines";
const PUTTY_END: &str = "Private-MAC";

const LONGEST_KIND: usize = 40;

/// Minimum length of a base64 text that is taken for a key.
const SHORTEST_KEY: usize = 20;

/// Length of the hexadecimal part of a key of Twilio, and minimum length of the second part of the token of a bot of
/// Telegram.
const TWILIO: usize = 32;
const TELEGRAM: usize = 35;

/// Authentication schemes in a header, which are followed by a secret.
const SCHEMES: &[&str] = &["bearer", "basic"];

/// Minimum length of a named secret that is hidden. A shorter text may be a description instead of a value.
const SHORTEST: usize = 6;

/// Returns the places of everything in the text that looks like a secret, in order.
pub fn found(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let word = run(text, at, is_word);
        if let Some(secret) = userinfo(text, at).or_else(|| after(text, &word)) {
            at = secret.end;
            if !text[secret.clone()].starts_with(HIDDEN.trim_end_matches(']')) {
                found.push(secret);
            }
        } else {
            at = if word.is_empty() {
                at + text[at..].chars().next().map_or(1, char::len_utf8)
            } else {
                word.end
            };
        }
    }
    found
}

/// Returns the secret that the word contains or that follows it.
fn after(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let said = &text[word.clone()];
    if said.ends_with(BEGIN) && line_start(text, word.end - BEGIN.len()).is_some() {
        return private_key(text, key_start(text, word.end)?);
    }
    if said == PUTTY_BEGIN {
        return private_key(text, putty_start(text, word.end)?);
    }
    if let Some(secret) = twilio_or_telegram(text, word) {
        return Some(secret);
    }
    for (prefix, least) in PREFIXES {
        if text[word.start..].starts_with(prefix) {
            let secret = run(text, word.start + prefix.len(), is_token);
            return (secret.len() >= *least || is_cut(text, &secret)).then_some(secret);
        }
    }
    if is_scheme(said) {
        return token(text, word.end);
    }
    let is_parameter = text[..word.start].ends_with(['?', '&'])
        && text[word.end..].starts_with('=')
        && names::is_parameter(said);
    if !is_parameter && !names_secret(said) {
        return None;
    }
    let is_quote = |c| matches!(c, '"' | '\'' | '\\');
    let is_option = said.starts_with("--");
    let separator = run(text, word.end, |c| {
        is_quote(c) || matches!(c, ' ' | ':' | '=') || (is_option && c == ',')
    });
    if !is_option && !text[separator.clone()].contains([':', '=']) {
        return None;
    }
    let kind = text[separator.end..].strip_prefix(LINE_BEGINNINGS[0]);
    if let Some(kind) = kind.and_then(|text| text.strip_prefix(BEGIN))
        && let Some(start) = key_start(text, text.len() - kind.len())
        && let Some(key) = private_key(text, start)
    {
        return Some(key);
    }
    let secret = run(text, separator.end, |c| {
        !is_quote(c) && !c.is_whitespace() && !matches!(c, ',' | ';' | '&' | ')' | '}' | ']' | '<')
    });
    let is_authorization = names::is_authorization(said);
    let said = &text[secret.clone()];
    if is_authorization
        && !is_scheme(said)
        && let Some(token) = token(text, secret.end)
    {
        // The first word is a scheme, or itself the key.
        return Some(secret.start..token.end);
    }
    let is_cut = said.len() > CUT.len() && said.contains(CUT);
    ((secret.len() >= SHORTEST || is_cut) && !is_scheme(said)).then_some(secret)
}

/// Returns the token that follows a scheme.
fn token(text: &str, scheme_end: usize) -> Option<Range<usize>> {
    let secret = run(text, run(text, scheme_end, |c| c == ' ').end, is_token);
    let is_random = text[secret.clone()].contains(|c: char| c.is_ascii_digit() || c == '=');
    let is_long = secret.len() >= 8 || is_cut(text, &secret);
    (is_long && is_random && secret.start > scheme_end).then_some(secret)
}

/// Returns `true` if a private key begins in the text and does not end in it.
pub fn begins_private_key(text: &str) -> bool {
    let putty = |(at, _)| putty_start(text, at + PUTTY_BEGIN.len());
    let start = key_lines(text, BEGIN).last().map(|line| line.end);
    let start = start.or_else(|| text.rmatch_indices(PUTTY_BEGIN).find_map(putty));
    start.is_some_and(|start| private_key_end(&text[start..]).is_none())
}

/// Returns the start of the line that ends a private key. That of something else, such as a certificate, does not count.
pub fn private_key_end(text: &str) -> Option<usize> {
    let line = key_lines(text, END).next();
    line.map_or_else(|| text.find(PUTTY_END), |line| Some(line.start))
}

/// Returns the lines with a word (`BEGIN` or `END`) around private keys, from their dashes to their dashes.
fn key_lines(text: &str, word: &'static str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(word)
        .filter_map(move |(at, _)| Some(line_start(text, at)?..key_start(text, at + word.len())?))
}

/// Returns where the dashes before this place begin; `None` if they are not those of a line around a key.
fn line_start(text: &str, at: usize) -> Option<usize> {
    let mut beginnings = LINE_BEGINNINGS.iter();
    let rest = beginnings.find_map(|dashes| text[..at].strip_suffix(dashes))?;
    Some(rest.len())
}

/// Returns where the line ends that has the kind of a key at this place; `None` if it is not a private key.
fn key_start(text: &str, at: usize) -> Option<usize> {
    let kind = run(text, at, |c| {
        c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' '
    });
    if kind.len() > LONGEST_KIND || !text[kind.clone()].contains(KEY_KIND) {
        return None;
    }
    let dashes = run(text, kind.end, |c| c == '-');
    (dashes.len() >= DASHES.len()).then_some(dashes.end)
}

/// Returns where the number of lines ends that follows the name of `PuTTY`'s line.
fn putty_start(text: &str, at: usize) -> Option<usize> {
    let number = run(text, at, |c| matches!(c, ':' | ' ') || c.is_ascii_digit());
    text[number.clone()]
        .contains(|c: char| c.is_ascii_digit())
        .then_some(number.end)
}

/// Returns the private key that begins here, with the headers of an encrypted one. Its end may be missing.
fn private_key(text: &str, start: usize) -> Option<Range<usize>> {
    let is_coded = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    // A backslash is that of an escaped line break.
    let body = run(text, start, |c| {
        is_coded(c) || c.is_whitespace() || matches!(c, '\\' | '-' | ':' | ',' | '.')
    });
    let said = &text[body.clone()];
    let end = said.find(DASHES).or_else(|| said.find(PUTTY_END));
    let end = end.map_or(said, |end| &said[..end]);
    let secret = start..start + end.trim_end_matches('\\').len();
    let mut words = end.split(|c| !is_coded(c));
    let is_key = words.any(|word| word.len() >= SHORTEST_KEY) || is_cut(text, &secret);
    is_key.then_some(secret)
}

/// Returns a key whose beginning is too short to be a prefix: `SK` and hexadecimal digits, or the number of a bot with a
/// token.
fn twilio_or_telegram(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let said = &text[word.clone()];
    if let Some(key) = said.strip_prefix("SK") {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let is_key = key.len() == TWILIO && key.chars().all(is_hex);
        return is_key.then_some(word.start + 2..word.end);
    }
    // Its address has it behind the word `bot`.
    let number = said.strip_prefix("bot").unwrap_or(said);
    let is_number = (8..=10).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit());
    let token = text[word.end..].strip_prefix(':').filter(|_| is_number)?;
    let token = run(token, 0, is_word);
    (token.len() >= TELEGRAM).then_some(word.end + 1..word.end + 1 + token.end)
}

/// Returns the password in a URL, or its user before an empty one.
fn userinfo(text: &str, at: usize) -> Option<Range<usize>> {
    let start = at + text[at..].strip_prefix("://").map(|_| 3)?;
    let user = run(text, start, is_userinfo);
    let password = user.start + text[user.clone()].find(':')? + 1;
    let cut = text[password..user.end].find(CUT).map(|at| password + at);
    let is_there = cut.is_some() || text[user.end..].starts_with('@');
    let end = cut.unwrap_or(user.end);
    let secret = address::secret_of_login(&text[user.start..end])?;
    is_there.then_some(user.start + secret.start..user.start + secret.end)
}

/// Returns `true` if acpipe cut the text after this part.
fn is_cut(text: &str, part: &Range<usize>) -> bool {
    !part.is_empty() && text[part.end..].starts_with(CUT)
}

/// Returns the range of characters from `at` on that satisfy `is`.
fn run(text: &str, at: usize, is: impl Fn(char) -> bool) -> Range<usize> {
    let rest = &text[at..];
    at..at + rest.find(|c| !is(c)).unwrap_or(rest.len())
}

pub fn is_scheme(word: &str) -> bool {
    SCHEMES
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_token(c: char) -> bool {
    is_word(c) || matches!(c, '.' | '~' | '+' | '/' | '=')
}

fn is_userinfo(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '/' | '@' | '"' | '\'' | '\\' | '<' | '>')
}
