//! Detection of text that looks like a secret: keys, tokens, passwords.

use std::borrow::Cow;
use std::ops::Range;

/// Text that replaces a secret.
pub const HIDDEN: &str = "[hidden]";

/// Text that replaces the value of a variable in a response to a client.
pub const REDACTED: &str = "[redacted]";

/// Last parts of the names of variables that hold a secret, in addition to [`NAMES`].
const LAST_WORDS: &[&str] = &[
    "auth",
    "cookie",
    "cookies",
    "dsn",
    "jwt",
    "key",
    "keys",
    "pass",
    "passphrase",
    "pat",
    "pin",
    "secrets",
];

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
];

/// Authentication schemes in a header, which are followed by a secret.
const SCHEMES: &[&str] = &["bearer", "basic"];

/// Endings of the names of secrets, without separators.
const NAMES: &[&str] = &[
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "password",
    "passwd",
    "secret",
    "token",
    "authorization",
    "credential",
    "credentials",
];

/// Minimum length of a named secret that is hidden. A shorter text may be a description instead of a value.
const SHORTEST: usize = 6;

/// Returns the text with everything that looks like a secret replaced.
pub fn hide(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut done = 0;
    let mut at = 0;
    while at < text.len() {
        let word = run(text, at, is_word);
        if let Some(secret) = userinfo(text, at).or_else(|| after(text, &word)) {
            shown.push_str(&text[done..secret.start]);
            shown.push_str(HIDDEN);
            done = secret.end;
            at = secret.end;
        } else {
            at = if word.is_empty() {
                at + text[at..].chars().next().map_or(1, char::len_utf8)
            } else {
                word.end
            };
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[done..]);
    Cow::Owned(shown)
}

/// Returns the secret that the word contains or that follows it.
fn after(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let said = &text[word.clone()];
    for (prefix, least) in PREFIXES {
        if said.starts_with(prefix.trim_end_matches('.')) && text[word.start..].starts_with(prefix)
        {
            let secret = run(text, word.start + prefix.len(), is_token);
            return (secret.len() >= *least).then_some(secret);
        }
    }
    if is_scheme(said) {
        let secret = run(text, run(text, word.end, |c| c == ' ').end, is_token);
        let is_random = text[secret.clone()].contains(|c: char| c.is_ascii_digit() || c == '=');
        return (secret.len() >= 8 && is_random).then_some(secret);
    }
    if !names_secret(said) {
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
    let secret = run(text, separator.end, |c| {
        !is_quote(c) && !c.is_whitespace() && !matches!(c, ',' | ';' | '&' | ')' | '}' | ']' | '<')
    });
    let said = &text[secret.clone()];
    (secret.len() >= SHORTEST && !is_scheme(said)).then_some(secret)
}

/// Returns `true` if the name is the name of a secret.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    let name = name.replace(['_', '-'], "").to_ascii_lowercase();
    NAMES.iter().any(|known| name.ends_with(known))
}

/// Returns `true` if a variable holds a secret, by its name or value.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let by_last = LAST_WORDS
        .iter()
        .any(|known| last.eq_ignore_ascii_case(known));
    let by_name = by_last || names_secret(name);
    !value.is_empty() && (by_name || matches!(hide(value), Cow::Owned(_)))
}

/// Returns the password in a URL.
fn userinfo(text: &str, at: usize) -> Option<Range<usize>> {
    let start = at + text[at..].strip_prefix("://").map(|_| 3)?;
    let user = run(text, start, is_userinfo);
    let colon = text[user.clone()].find(':')?;
    let is_there = text[user.end..].starts_with('@') && user.start + colon + 1 < user.end;
    is_there.then(|| user.start + colon + 1..user.end)
}

/// Returns the range of characters from `at` on that satisfy `is`.
fn run(text: &str, at: usize, is: impl Fn(char) -> bool) -> Range<usize> {
    let rest = &text[at..];
    at..at + rest.find(|c| !is(c)).unwrap_or(rest.len())
}

fn is_scheme(word: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_a_secret_is_hidden() {
        let cases = [
            (
                "key sk-ant-api03-AbCdEf0123456789, ok",
                "key sk-[hidden], ok",
            ),
            ("ghp_0123456789abcdefABCDEF", "ghp_[hidden]"),
            (
                "(github_pat_11ABCDE_0123456789abc)",
                "(github_pat_[hidden])",
            ),
            ("/AKIAIOSFODNN7EXAMPLE/", "/AKIA[hidden]"),
            ("ya29.a0AfH6SMBx_0123456789", "ya29.[hidden]"),
            ("jwt=eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "jwt=eyJ[hidden]"),
            (
                "Authorization: Bearer abc.DEF-123",
                "Authorization: Bearer [hidden]",
            ),
            (
                "authorization: basic dXNlcjpwYXNz=",
                "authorization: basic [hidden]",
            ),
            (
                r#"{"apiKey":"abcdef","a":1}"#,
                r#"{"apiKey":"[hidden]","a":1}"#,
            ),
            (
                r#"{\"api_key\": \"abcdef\"}"#,
                r#"{\"api_key\": \"[hidden]\"}"#,
            ),
            (
                "ANTHROPIC_API_KEY=päßwörd x",
                "ANTHROPIC_API_KEY=[hidden] x",
            ),
            ("X-Api-Key: abcdef", "X-Api-Key: [hidden]"),
            ("--token abcdef --x", "--token [hidden] --x"),
            (
                r#"["--auth-token", "abcdef"]"#,
                r#"["--auth-token", "[hidden]"]"#,
            ),
            ("?access_token=abcdef&b=1", "?access_token=[hidden]&b=1"),
            ("https://me:hunter2@host/x", "https://me:[hidden]@host/x"),
            (
                "password=first1 and secret=second",
                "password=[hidden] and secret=[hidden]",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(hide(text), want);
        }
    }

    #[test]
    fn variables_hold_secrets_by_name_or_by_value() {
        for (name, value) in [
            ("GITHUB_TOKEN", "x"),
            ("OPENAI_KEY", "x"),
            ("openai_api_key", "x"),
            ("GITHUB_PAT", "x"),
            ("DB_PASSWORD", "1"),
            ("SENTRY_DSN", "x"),
            ("DATABASE_URL", "postgres://me:hunter2@host/db"),
            ("EXTRA_ARGS", "--token abcdef1"),
            ("ANYTHING", "ghp_0123456789abcdefABCDEF"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("TOKEN", ""),
            ("PATH", "/usr/bin:/bin"),
            ("PWD", "/home/me"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("MAX_OUTPUT_TOKENS", "32000"),
            ("MONKEY", "x"),
            ("RUST_LOG", "debug"),
            ("HTTPS_PROXY", "http://proxy:8080"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }

    #[test]
    fn ordinary_text_is_not_hidden() {
        let texts = [
            "task-runner-of-many-words",
            "sk-short",
            "max_tokens=100000 inputTokens: 123456",
            "the token was refused",
            "a bearer authentication is needed",
            "token: none",
            "https://host:8080/a@b",
            "see ://",
            "ends in token=",
            "a secret",
            "é😀 unicode \u{2028}",
            "",
        ];
        for text in texts {
            assert!(
                matches!(hide(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }
}
