//! Secrets in the value of a header, wherever it comes from: a variable, an MCP server, an endpoint.

use super::view::views;
use super::{address, names, patterns};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::borrow::Cow;

/// Separators of the headers in a variable.
const SEPARATORS: [char; 3] = [',', ';', '\n'];

/// Adds the value of a header and its parts that are secrets of their own: what follows a scheme, and the values in a list
/// of parameters or cookies.
pub fn header_values(value: &str, values: &mut Vec<String>) {
    for text in texts(value) {
        scheme_values(&text, values);
        let pairs = text.split([',', ';']);
        for (_, value) in pairs.filter_map(|pair| pair.split_once('=')) {
            scheme_values(value, values);
        }
    }
}

/// Adds the secrets in the value of a variable that may hold a header or a list of headers, by its name.
pub fn variable_values(name: &str, value: &str, values: &mut Vec<String>) {
    if names::is_list(name) || names::is_plural(name) {
        list_values(value, names::is_plural(name), values);
    }
    for text in texts(value) {
        let (scheme, rest) = split_scheme(without_name(&text));
        let is_token = !rest.is_empty() && !rest.contains(char::is_whitespace);
        if patterns::is_scheme(scheme) || (is_token && names::is_variable(name)) {
            header_values(without_name(&text), values);
        }
    }
}

/// Adds the values of a list: `Name: value` in lines, `a=b,c=d`, `a=b; c=d`, or JSON. Items without a name count if
/// `is_plural`.
fn list_values(list: &str, is_plural: bool, values: &mut Vec<String>) {
    if let Ok(json) = serde_json::from_str(list) {
        let mut found = Vec::new();
        strings(&json, &mut found);
        for value in &found {
            header_values(value, values);
        }
    }
    for item in list.lines().chain(list.split(SEPARATORS)) {
        match item.split_once(['=', ':']) {
            Some((_, value)) => header_values(value, values),
            None if is_plural => add(item, values),
            None => {}
        }
    }
}

/// Adds all strings in a value except those of `name` members.
pub fn strings(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(value) => values.push(value.clone()),
        Value::Array(all) => all.iter().for_each(|value| strings(value, values)),
        Value::Object(fields) => {
            for (_, value) in fields.iter().filter(|(name, _)| *name != "name") {
                strings(value, values);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Adds a value and what follows the scheme in it, decoded if that is `Basic`.
pub fn scheme_values(text: &str, values: &mut Vec<String>) {
    add(text, values);
    let (scheme, rest) = split_scheme(text);
    add(rest, values);
    if scheme.eq_ignore_ascii_case("basic")
        && let Ok(caller) = STANDARD.decode(rest)
        && let Ok(caller) = String::from_utf8(caller)
    {
        values.extend(login_secret(&caller).map(str::to_owned));
        values.push(caller);
    }
}

/// Returns the secret in `user:password`.
pub fn login_secret(login: &str) -> Option<&str> {
    address::secret_of_login(login).map(|range| login[range].trim())
}

/// Returns the first word and what follows it, which is empty if there is nothing.
fn split_scheme(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (scheme, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (scheme, rest.trim())
}

/// Returns the value of a header that has its name before it.
fn without_name(text: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match text.split_once(": ") {
        Some((name, value)) if name.trim().chars().all(is_name) => value,
        _ => text,
    }
}

/// Adds a value, also without its quotes.
fn add(value: &str, values: &mut Vec<String>) {
    let value = value.trim();
    if value.is_empty() {
        return;
    }
    values.push(value.to_owned());
    let unquoted = value.trim_matches(['"', '\'']);
    if unquoted != value {
        values.push(unquoted.to_owned());
    }
}

/// Returns a text with and without its escapes: a header in a variable is percent-encoded.
fn texts(text: &str) -> Vec<String> {
    let views = views(text);
    let texts = views
        .iter()
        .map(|view| String::from_utf8_lossy(view.bytes()));
    texts.map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Secrets;
    use acpipe_protocol::wire::Variables;

    const SECRET: &str = "qJ7vR2mXw9Lk4Tz";

    fn of_variable(name: &str, value: &str) -> Secrets {
        let variable = [(name.to_owned(), Some(value.to_owned()))];
        Secrets::of_environment(variable.into_iter().collect::<Variables>())
    }

    #[test]
    fn token_behind_any_scheme_is_known_in_variables() {
        for scheme in [
            "Bearer", "Token", "token", "Key", "ApiKey", "DPoP", "SSWS", "OAuth",
        ] {
            for (name, value) in [
                ("MY_AUTH", format!("{scheme} {SECRET}")),
                ("AUTHORIZATION", format!("{scheme}  {SECRET}")),
                ("MY_TOKEN", format!("'{scheme} {SECRET}'")),
                ("MY_KEY", format!("Authorization: {scheme} {SECRET}")),
                ("X_HEADERS", format!("Authorization: {scheme} {SECRET}")),
                (
                    "X_HEADERS",
                    format!("A: b\nAuthorization:{scheme} {SECRET}"),
                ),
                ("X_HEADERS", format!("a=b,authorization={scheme} {SECRET}")),
                (
                    "X_HEADERS",
                    format!("authorization={scheme}%20{SECRET},x=y"),
                ),
                ("X_HEADERS", format!(r#"{{"A":"{scheme} {SECRET}"}}"#)),
                (
                    "X_HEADERS",
                    format!(r#"[{{"name":"A","value":"{scheme} {SECRET}"}}]"#),
                ),
            ] {
                let secrets = of_variable(name, &value);
                let shown = secrets.hide("key qJ7vR2mXw9Lk4Tz.").into_owned();
                assert_eq!(shown, "key [hidden].", "{name}={value}");
            }
        }
    }

    #[test]
    fn values_of_cookies_and_parameters_are_known_in_variables() {
        for (name, value) in [
            ("X_HEADERS", "X-A: b\nCookie: sid=S"),
            ("X_HEADERS", "Cookie: p=q; s=S; t=u"),
            ("X_HEADERS", r#"{"Cookie":"s=S; p=q"}"#),
            ("X_HEADERS", "X-A: k=S"),
            ("X_HEADERS", "x-a=k%3DS"),
            ("X_HEADERS", r#"Authorization: Token token="S", a=b"#),
            (
                "X_HEADERS",
                r#"Authorization: Digest username="u", response="S""#,
            ),
            ("MY_COOKIE", "a=b; s=S"),
            ("MY_SECRETS", "a,S"),
            ("MY_TOKENS", r#"["a","S"]"#),
            ("MY_PASSWORDS", "a:b c;u:S"),
        ] {
            let secrets = of_variable(name, &value.replace('S', SECRET));
            let shown = secrets.hide("key qJ7vR2mXw9Lk4Tz.").into_owned();
            assert_eq!(shown, "key [hidden].", "{name}={value}");
        }
    }

    #[test]
    fn words_of_a_phrase_are_not_known() {
        for (name, value) in [
            ("MY_PASSPHRASE", "correct battery staple"),
            ("MY_KEY", "of battery staple"),
            ("GREETING", "Token battery"),
            ("LIST", "a=battery,staple"),
        ] {
            let secrets = of_variable(name, value);
            let text = "battery, staple";
            assert_eq!(secrets.hide(text), text, "{name}={value}");
        }
    }
}
