//! Private keys in texts that are shown line by line: no single line after the first looks like a part of one.

use super::HIDDEN;
use super::patterns::{begins_private_key, private_key_end};
use std::borrow::Cow;

/// Maximum number of lines of a key whose end is missing.
const MOST_LINES: usize = 256;

/// Minimum length of a text between other text that is taken for a part of a key.
const SHORTEST_PART: usize = 16;

/// Place in a text that is shown line by line: whether the next line belongs to a private key.
#[derive(Debug, Default)]
pub struct KeyLines {
    /// Number of lines that may still belong to the key.
    left: usize,
}

impl KeyLines {
    /// Returns the next line, without what belongs to a private key that began in an earlier one.
    pub fn hide<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        let mut key = 0;
        if self.left > 0 {
            key = private_key_end(line).unwrap_or(line.len());
            self.left = if key < line.len() { 0 } else { self.left - 1 };
        }
        if begins_private_key(&line[key..]) {
            self.left = MOST_LINES;
        }
        if key == 0 {
            return Cow::Borrowed(line);
        }
        let (key, rest) = line.split_at(key);
        Cow::Owned(without_parts(key) + rest)
    }

    /// Returns `true` if the next line may belong to a private key.
    pub fn is_inside(&self) -> bool {
        self.left > 0
    }
}

/// Returns a whole text without the lines of private keys.
pub fn without_key_lines(text: &str) -> String {
    let mut lines = KeyLines::default();
    let shown = text.split_inclusive('\n').map(|line| lines.hide(line));
    shown.collect()
}

/// Returns a line of a key without the key. The program may have written other text around it.
fn without_parts(line: &str) -> String {
    let is_key = |text: &str| !text.is_empty() && text.chars().all(is_coded);
    if is_key(line.trim()) {
        return line.replace(line.trim(), HIDDEN);
    }
    let mut shown = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let part = rest.find(|c| !is_coded(c)).unwrap_or(rest.len());
        shown.push_str(if part < SHORTEST_PART {
            &rest[..part]
        } else {
            HIDDEN
        });
        rest = &rest[part..];
        let other = rest.find(is_coded).unwrap_or(rest.len());
        shown.push_str(&rest[..other]);
        rest = &rest[other..];
    }
    shown
}

fn is_coded(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mut lines = KeyLines::default();
        let hide = |line| lines.hide(line).into_owned();
        text.lines().map(hide).collect()
    }

    #[test]
    fn lines_of_a_private_key_are_hidden_until_its_end() {
        let key = "key:\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n\
                   c2Vjb25kTGluZU9mVGhlS2V5\nYWI=\n-----END RSA PRIVATE KEY-----\nc2Vjb25kTGluZU9mVGhlS2V5";
        let expected = "key:\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n\
                        [hidden]\n[hidden]\n-----END RSA PRIVATE KEY-----\nc2Vjb25kTGluZU9mVGhlS2V5";
        assert_eq!(shown(key).join("\n"), expected);
    }

    #[test]
    fn text_around_the_lines_of_a_key_is_shown() {
        let key = "12:00 -----BEGIN OPENSSH PRIVATE KEY-----\n12:00 c2Vjb25kTGluZU9mVGhlS2V5\n\
                   {\"line\":\"dGhpcmRMaW5lT2ZUaGVLZXk\"}\nbGFzdExpbmVPZlRoZUtleQ== -----END OPENSSH PRIVATE KEY-----";
        let expected = "12:00 -----BEGIN OPENSSH PRIVATE KEY-----\n12:00 [hidden]\n\
                        {\"line\":\"[hidden]\"}\n[hidden] -----END OPENSSH PRIVATE KEY-----";
        assert_eq!(shown(key).join("\n"), expected);
    }

    #[test]
    fn key_without_an_end_hides_a_limited_number_of_lines() {
        let line = "c2Vjb25kTGluZU9mVGhlS2V5\n";
        let text = "-----BEGIN PRIVATE KEY-----\n".to_owned() + &line.repeat(MOST_LINES + 1);
        let shown = shown(&text);
        assert_eq!(
            shown.iter().filter(|line| *line == HIDDEN).count(),
            MOST_LINES
        );
        assert_eq!(shown.last().unwrap(), line.trim());
    }

    #[test]
    fn key_ends_at_the_end_of_a_private_key_only() {
        let line = "c2Vjb25kTGluZU9mVGhlS2V5";
        for (begin, between, end) in [
            (
                "-----BEGIN RSA PRIVATE KEY-----",
                "-----END CERTIFICATE-----",
                "-----END RSA PRIVATE KEY-----",
            ),
            (
                "> ---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
                "Comment: \"key\"",
                "> ---- END SSH2 ENCRYPTED PRIVATE KEY ----",
            ),
            (
                "Private-Lines: 2",
                "-----END PUBLIC KEY-----",
                "Private-MAC: 01",
            ),
            (
                "-----BEGIN PRIVATE KEY----- -----",
                "",
                ": -----END PRIVATE KEY-----",
            ),
        ] {
            let text = [begin, line, between, line, end, line].join("\n");
            let expected = [begin, HIDDEN, between, HIDDEN, end, line];
            assert_eq!(shown(&text), expected, "{begin}");
            let whole = without_key_lines(&text);
            assert_eq!(whole, expected.join("\n"), "{begin}");
        }
    }

    #[test]
    fn public_keys_and_keys_in_one_line_begin_nothing() {
        let line = "c2Vjb25kTGluZU9mVGhlS2V5";
        for first in [
            "-----BEGIN PUBLIC KEY-----",
            "-----BEGIN PRIVATE KEY-----\\nabc\\n-----END PRIVATE KEY-----",
        ] {
            assert_eq!(shown(&format!("{first}\n{line}"))[1], line, "{first}");
        }
    }
}
