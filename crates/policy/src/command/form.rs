//! Validation of command patterns: a pattern that matches no command is an error, which suggests the intended
//! form.

use crate::invisible::visible;
use crate::line::is_language;

/// Maximum length of a pattern, in bytes.
const LONGEST: usize = 4096;

/// Rejects the text of a pattern that is too long, or matches no command whatever its words are.
pub fn check_text(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        let length = text.len();
        return Err(format!(
            "the pattern has {length} bytes, more than {LONGEST}; use several patterns"
        ));
    }
    if let Some(form) = visible(text) {
        return Err(format!(
            "{text:?} matches no command: it has an invisible character; use {form:?}"
        ));
    }
    if let Some(rest) = text.strip_prefix('^') {
        let rest = rest.strip_suffix('$').unwrap_or(rest).replace(".*", "*");
        return Err(format!(
            "{text:?} matches no command: a pattern must consist of words and *, not a regular expression; use \
                 {rest:?}"
        ));
    }
    Ok(())
}

/// Rejects a pattern whose words match no command, and suggests the intended form.
pub fn check_words(said: &str, words: &[String]) -> Result<(), String> {
    if let Some(forms) = without_braces(said, words) {
        return Err(format!(
            "{said:?} matches no command: braces are not supported in command patterns; use {forms:?}"
        ));
    }
    let text = words.join(" ");
    let start = text.strip_suffix(":*").unwrap_or(&text);
    let form = if start.is_empty() {
        "*".to_owned()
    } else if start.ends_with(' ') {
        format!("{}:*", start.trim_end())
    } else if start.contains(":* ") {
        start.replace(":* ", " * ")
    } else if start.ends_with(":*") {
        format!("{}:*", start.trim_end_matches(":*"))
    } else {
        return Ok(());
    };
    Err(format!(
        "{said:?} matches no command: `:*` must follow the last word without a space; use {form:?}"
    ))
}

/// Returns the patterns intended by an unquoted `{a,b}` in the position of a word.
fn without_braces(said: &str, words: &[String]) -> Option<Vec<String>> {
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_./+-*".contains(c);
        !name.is_empty() && name.chars().all(is_letter)
    };
    let names = |word: &String| {
        let inner = word.strip_prefix('{')?.strip_suffix('}')?;
        let names: Vec<String> = inner.split(',').map(str::to_owned).collect();
        (names.len() > 1 && names.iter().all(|name| is_name(name))).then_some(names)
    };
    let is_bare = |word: &String| said.split_whitespace().any(|part| part == word);
    let (at, names) = words.iter().enumerate().find_map(|(at, word)| {
        let names = names(word).filter(|_| is_bare(word));
        names.map(|names| (at, names))
    })?;
    let form = |name: String| {
        let (before, after) = (&words[..at], &words[at + 1..]);
        [before, &[name], after].concat().join(" ")
    };
    Some(names.into_iter().map(form).collect())
}

/// Rejects a pattern that cannot allow anything, because no line that matches it can be allowed; `program` is
/// its first word.
pub fn check_allowed(said: &str, program: &str) -> Result<(), String> {
    let never = |why: &str| {
        Err(format!(
            "{said:?} allows nothing: {why}; use it only in a rule that denies or asks"
        ))
    };
    if has_variable(said) {
        return never("lines with a variable are never allowed");
    }
    if program
        .split('*')
        .next()
        .is_some_and(|start| start.contains('='))
    {
        return never("lines with an assignment before the command are never allowed");
    }
    if is_language(program) {
        return never(&format!(
            "lines with the shell builtin or keyword {program:?} are never allowed"
        ));
    }
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_./+-*".contains(c);
    if program.starts_with(['+', '-']) || !program.chars().all(is_letter) {
        return never(
            "command names in allowed lines must consist of ASCII letters, digits and _ . / + -, and must not begin \
                 with + or -",
        );
    }
    Ok(())
}

/// Returns `true` if a text has a variable outside single quotes.
fn has_variable(text: &str) -> bool {
    let (mut chars, mut is_quoted) = (text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => {
                chars.next();
            }
            '$' if !is_quoted => {
                let is_name = |c: &char| c.is_ascii_alphanumeric() || "_{".contains(*c);
                if chars.peek().is_some_and(is_name) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::CommandPattern;
    use super::*;

    #[test]
    fn impossible_command_pattern_error_suggests_a_form() {
        for (pattern, form) in [
            ("rm :*", "rm:*"),
            ("git:* push", "git * push"),
            ("git:*:*", "git:*"),
            (":*", "*"),
            ("^rm .*$", "rm *"),
            ("^git push", "git push"),
            ("rm\u{200b} *", "rm *"),
            ("\u{feff}rm *", "rm *"),
            ("rm\0 *", "rm *"),
        ] {
            let error = CommandPattern::new(pattern).unwrap_err();
            assert!(error.ends_with(&format!("; use {form:?}")), "{error}");
            CommandPattern::new(form).unwrap();
        }
        let error = CommandPattern::new(&"a*".repeat(LONGEST)).unwrap_err();
        assert!(error.ends_with("use several patterns"), "{error}");
    }

    #[test]
    fn braces_in_a_pattern_of_commands_are_refused() {
        for (pattern, forms) in [
            ("{rm,mv} *", r#"["rm *", "mv *"]"#),
            ("{rm,mv}", r#"["rm", "mv"]"#),
            ("git {push,pull} *", r#"["git push *", "git pull *"]"#),
        ] {
            let error = CommandPattern::new(pattern).unwrap_err();
            assert!(error.ends_with(&format!("; use {forms}")), "{error}");
        }
        for pattern in [
            "find . -exec rm {} +",
            "git show HEAD@{1}",
            "jq '{a,b}' *",
            "xargs -I{} *",
        ] {
            CommandPattern::new(pattern).unwrap();
        }
    }

    #[test]
    fn pattern_that_can_allow_nothing_is_refused_in_a_rule_that_allows() {
        for (pattern, why) in [
            ("printf *", "keyword \"printf\""),
            ("printf:*", "keyword \"printf\""),
            ("test -f x", "keyword \"test\""),
            ("export A=*", "keyword \"export\""),
            ("[ *", "must consist of ASCII letters"),
            ("é *", "must consist of ASCII letters"),
            ("'a b' *", "must consist of ASCII letters"),
            ("~/bin/x *", "must consist of ASCII letters"),
            ("-x", "must consist of ASCII letters"),
            ("X=1 ls", "an assignment"),
            ("X=* ls", "an assignment"),
            ("ls $X", "a variable"),
            ("ls \"${X}\"", "a variable"),
        ] {
            let parsed = CommandPattern::new(pattern).unwrap();
            let error = parsed.check_allowed(pattern).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        for pattern in [
            "*",
            "e* x",
            "print*",
            "./x.sh:*",
            "g++ *",
            "grep end$",
            "grep 'a$b' *",
            "echo A=*",
            "cargo test -- [x]",
        ] {
            let parsed = CommandPattern::new(pattern).unwrap();
            parsed.check_allowed(pattern).unwrap();
        }
    }
}
