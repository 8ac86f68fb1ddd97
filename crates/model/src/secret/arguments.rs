//! Arguments of a command line as acpipe shows them. All commands and writers that show one get it from here.

use super::names::is_variable;
use super::{HIDDEN, hide, is_secret, shown_arguments};

/// Options that set a variable or a header: their own and the names in other programs, such as container runtimes.
const OPTIONS: [(&str, char); 4] = [("-e", '='), ("--env", '='), ("-H", ':'), ("--header", ':')];

/// Flags that may stand before `e` in one word: `-ve NAME=VALUE`, `-itde NAME=VALUE`.
const FLAGS: [char; 5] = ['d', 'i', 'q', 't', 'v'];

/// Program whose first arguments set variables.
const ENV: &str = "env";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Any,
    /// A name and a value behind this separator.
    Pair(char),
    /// The value of an option with the name of a secret.
    Secret,
    /// Options and variables of the program `env`.
    Variables,
}

/// Returns arguments as they may be shown. `plain` hides what a word shows as secret by itself.
pub fn shown<S: AsRef<str>>(words: &[S], plain: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut next = Next::Any;
    let shown = words.iter().map(|word| {
        let (text, following) = shown_word(word.as_ref(), next, plain);
        next = following;
        text
    });
    shown.collect()
}

/// Returns words that are joined by spaces, without quotes, as they may be shown. A value may have spaces: it ends before
/// the next option.
pub fn shown_words(line: &str) -> String {
    let mut words = line.split(char::is_whitespace).peekable();
    let mut joined: Vec<String> = Vec::new();
    let mut is_behind_option = false;
    while let Some(word) = words.next() {
        let mut text = word.to_owned();
        let is_value = is_behind_option && !word.starts_with('-');
        if is_value || has_value(word) {
            while let Some(next) = words.next_if(|next| !next.starts_with('-')) {
                text = text + " " + next;
            }
        }
        is_behind_option = takes_value(word);
        joined.push(text);
    }
    let shown = shown_arguments(&joined);
    if shown == joined {
        return line.to_owned();
    }
    shown.join(" ")
}

/// Returns `true` if the word behind this option is hidden.
pub(super) fn takes_value(word: &str) -> bool {
    option_of_pair(word).is_some() || is_secret_option(word)
}

/// Returns `true` if this is an option whose value is hidden in the same word.
fn has_value(word: &str) -> bool {
    let named = word
        .strip_prefix("--")
        .and_then(|word| word.split_once('='));
    attached_pair(word).is_some() || named.is_some_and(|(name, value)| is_secret(name, value))
}

/// Returns `true` for an option with the name of a secret, without its value.
fn is_secret_option(word: &str) -> bool {
    let option = word.strip_prefix("--");
    option.is_some_and(|name| !name.contains('=') && is_variable(name))
}

/// Hides what a word shows as secret by itself, and in the command line that it may be: the text of a shell, the title of
/// a process.
fn alone(word: &str, plain: &dyn Fn(&str) -> String) -> String {
    let text = plain(word);
    let is_line = text.contains(char::is_whitespace) && !text.starts_with(['{', '[']);
    if is_line { shown_words(&text) } else { text }
}

/// Returns a command line in one text as it may be shown. One with an open quote is hidden as a whole.
pub fn shown_line(line: &str) -> String {
    match shlex::split(line) {
        Some(words) => {
            let words = shown_arguments(&words);
            crate::shell_words::join(words.iter().map(String::as_str))
        }
        None => HIDDEN.to_owned(),
    }
}

/// Returns a text in place of a list of arguments as it may be shown; `None` if it has no values. It may have quotes: with an
/// open one it is hidden as a whole.
pub(super) fn shown_text(line: &str) -> Option<String> {
    let shown = shown_words(line);
    let is_changed = shown != line;
    if !line.contains(['"', '\'', '\\']) {
        return is_changed.then_some(shown);
    }
    let Some(words) = shlex::split(line) else {
        return is_changed.then(|| HIDDEN.to_owned());
    };
    let split = shown_arguments(&words);
    if split == words {
        return is_changed.then_some(shown);
    }
    let split = crate::shell_words::join(split.iter().map(String::as_str));
    Some(shown_words(&split))
}

/// Returns a word as it may be shown, and the meaning of the word behind it.
fn shown_word(word: &str, meaning: Next, plain: &dyn Fn(&str) -> String) -> (String, Next) {
    match meaning {
        Next::Pair(separator) => return (without_value(word, separator), Next::Any),
        Next::Secret if !word.starts_with("--") => return (HIDDEN.to_owned(), Next::Any),
        Next::Variables if word.starts_with('-') => return (plain(word), Next::Variables),
        Next::Variables if word.contains('=') => {
            return (without_value(word, '='), Next::Variables);
        }
        Next::Any | Next::Secret | Next::Variables => {}
    }
    if let Some(separator) = option_of_pair(word) {
        return (word.to_owned(), Next::Pair(separator));
    }
    if let Some(shown) = attached_pair(word) {
        return (shown, Next::Any);
    }
    let next = if is_secret_option(word) {
        Next::Secret
    } else if word.rsplit('/').next() == Some(ENV) {
        Next::Variables
    } else {
        Next::Any
    };
    let named = word.split_once('=');
    let is_secret =
        named.is_some_and(|(name, value)| is_secret(name.trim_start_matches('-'), value));
    if is_secret {
        return (without_value(word, '='), next);
    }
    (alone(word, plain), next)
}

/// Returns the separator of the pair that follows an option.
fn option_of_pair(word: &str) -> Option<char> {
    let known = OPTIONS.iter().find(|(option, _)| *option == word);
    let cluster = || {
        let flags = word.strip_prefix('-')?.strip_suffix('e')?;
        flags
            .chars()
            .all(|flag| FLAGS.contains(&flag))
            .then_some('=')
    };
    known.map(|(_, separator)| *separator).or_else(cluster)
}

/// Shows an option with its pair in one word: `--env=NAME=VALUE`, `-eNAME=VALUE`, `-e=NAME=VALUE`.
fn attached_pair(word: &str) -> Option<String> {
    let long = |(option, separator): &(&str, char)| {
        let pair = word.strip_prefix(option)?;
        let pair = pair
            .strip_prefix('=')
            .or((!option.starts_with("--")).then_some(pair))?;
        Some((pair, *separator))
    };
    let cluster = || {
        let flags = word.strip_prefix('-')?.trim_start_matches(FLAGS);
        let pair = flags.strip_prefix('e')?;
        Some((pair.strip_prefix('=').unwrap_or(pair), '='))
    };
    let (pair, separator) = OPTIONS.iter().find_map(long).or_else(cluster)?;
    let before = &word[..word.len() - pair.len()];
    Some(format!("{before}{}", without_value(pair, separator)))
}

/// Hides what follows the separator. A pair without a separator is a name.
fn without_value(pair: &str, separator: char) -> String {
    match pair.split_once(separator) {
        Some((name, value)) if !value.is_empty() => format!("{}{separator}{HIDDEN}", hide(name)),
        _ => hide(pair).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_arguments_are_hidden_and_names_are_shown() {
        for (line, want) in [
            ("-e A=x --max-sessions 7", "-e A=[hidden] --max-sessions 7"),
            ("--env A=x=y -e B -e C=", "--env A=[hidden] -e B -e C="),
            (
                "--env=A=x -eB=x -e=C=x",
                "--env=A=[hidden] -eB=[hidden] -e=C=[hidden]",
            ),
            ("-vve A=x -vveA=x -it", "-vve A=[hidden] -vveA=[hidden] -it"),
            ("-- agent -e A=x", "-- agent -e A=[hidden]"),
            (
                "docker run -itde A=x image",
                "docker run -itde A=[hidden] image",
            ),
            (
                "/usr/bin/env -i A=x B=y agent C=z",
                "/usr/bin/env -i A=[hidden] B=[hidden] agent C=z",
            ),
            ("MY_KEY=x agent KEY=x", "MY_KEY=[hidden] agent KEY=[hidden]"),
            (
                "--token x --api-key=y --verbose",
                "--token [hidden] --api-key=[hidden] --verbose",
            ),
            ("--token --verbose x", "--token --verbose x"),
            (
                "--header X-A:x -H Y:x",
                "--header X-A:[hidden] -H Y:[hidden]",
            ),
            (
                "http://u:x@h/ sk-ant-api03-AbCdEf0123456789",
                "http://u:[hidden]@h/ sk-[hidden]",
            ),
            (r#"{"env":{"A":"x"}}"#, r#"{"env":{"A":"[hidden]"}}"#),
            (
                "--timeout initialize=5s --mode=x",
                "--timeout initialize=5s --mode=x",
            ),
            ("--permissions deny -model=x", "--permissions deny -model=x"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(shown_arguments(&words).join(" "), want);
        }
    }

    #[test]
    fn joined_line_shows_no_part_of_a_value_with_spaces() {
        for (line, want) in [
            (
                "agent -e N=x y --token x y --header X-Key: x --verbose",
                "agent -e N=[hidden] --token [hidden] --header X-Key:[hidden] --verbose",
            ),
            (
                "agent --header=A: Bearer x -HB: x y --api-key=x y -v acp",
                "agent --header=A:[hidden] -HB:[hidden] --api-key=[hidden] -v acp",
            ),
            ("env A=x agent acp", "env A=[hidden] agent acp"),
            ("agent  acp\n--verbose", "agent  acp\n--verbose"),
            ("--token --header X: y z", "--token --header X:[hidden]"),
        ] {
            assert_eq!(shown_words(line), want);
        }
    }

    #[test]
    fn line_in_one_word_is_shown_as_a_line() {
        let words = [
            "sh",
            "-c",
            "exec agent --token x -e A=x",
            "--header",
            "A: x",
        ];
        let want = [
            "sh",
            "-c",
            "exec agent --token [hidden] -e A=[hidden]",
            "--header",
            "A:[hidden]",
        ];
        assert_eq!(shown_arguments(&words), want);
        let prompt = ["Please explain\nthe option --verbose"];
        assert_eq!(shown_arguments(&prompt), prompt);
    }

    #[test]
    fn line_that_cannot_be_split_is_hidden() {
        assert_eq!(
            shown_line("agent --token 'a b' c"),
            "agent --token '[hidden]' c"
        );
        assert_eq!(shown_line("agent 'a"), HIDDEN);
    }
}
