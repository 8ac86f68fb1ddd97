//! Validation of path patterns: a pattern that matches no path is an error, and leading braces stand for
//! several patterns.

use super::{is_absolute, slashes};
use crate::invisible::visible;

/// Maximum length of a pattern, in bytes: its compiled automaton is about a hundred times as large.
pub const LONGEST: usize = 4096;

const DEEPEST_BRACES: usize = 8;

/// Rejects patterns that match no path, suggesting the intended form, and patterns that are too large to
/// compile.
pub fn check_form(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        let length = text.len();
        return Err(format!(
            "the pattern has {length} bytes, more than {LONGEST}; use several patterns"
        ));
    }
    let commas = Commas::of(text);
    if commas.deepest > DEEPEST_BRACES {
        let deepest = commas.deepest;
        return Err(format!(
            "the pattern nests braces {deepest} deep, more than {DEEPEST_BRACES}; use several patterns"
        ));
    }
    let never = |why: &str, form: String| never(text, why, &form);
    if text.trim() != text {
        return never("it has spaces around it", text.trim().to_owned());
    }
    let form = |is_out: fn(char) -> bool| text.chars().filter(|c| !is_out(*c)).collect();
    if text.contains(char::is_control) {
        return never("it has a control character", form(char::is_control));
    }
    if let Some(form) = visible(text) {
        return never("it has an invisible character", form);
    }
    for quote in ['"', '\'', '`'] {
        let inner = text.strip_prefix(quote);
        if let Some(inner) = inner.and_then(|inner| inner.strip_suffix(quote)) {
            return never("it has quotes around it", inner.to_owned());
        }
    }
    if commas.is_list {
        return never(
            "a pattern must not be a list",
            format!("{{{}}}", text.replace(", ", ",")),
        );
    }
    if text.contains("[/]") {
        return never(
            "a character class matches only one character of a name",
            text.replace("[/]", "/"),
        );
    }
    check_origin(text)?;
    if let Some(rest) = text.strip_prefix('~')
        && !rest.is_empty()
        && !rest.starts_with('/')
    {
        let (user, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let home = if user == "root" {
            "/root"
        } else {
            "/home/USER"
        };
        let form = format!("{}/{rest}", home.replace("USER", user));
        return never("only ~ itself is expanded", form);
    }
    if cfg!(not(windows)) && has_idle_backslash(text) {
        let form = tidy(&text.replace('\\', "/"));
        return never("a backslash is not a separator", form);
    }
    if commas.has_empty_part {
        let form = text.replace("{/", "{").replace(",/", ",");
        return never("it has an empty path component", form);
    }
    let said = slashes(text);
    let inner = said.strip_prefix("./").unwrap_or(&said);
    if said.contains("//") || inner.split(['/', '{', ',', '}']).any(|part| part == ".") {
        return never("it has an empty component or a .", tidy(&said));
    }
    Ok(())
}

/// Rejects a pattern that begins with a URL or a variable.
fn check_origin(text: &str) -> Result<(), String> {
    let lower = text.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("file:") {
        let rest = &text[text.len() - rest.len()..];
        let rest = rest.strip_prefix("//localhost").unwrap_or(rest);
        let form = format!("/{}", rest.trim_start_matches('/'));
        return never(text, "a pattern must be a path, not a URL", &form);
    }
    if has_scheme(text) {
        return Err(format!(
            "{text:?} matches no path: a pattern must be a path, not a URL; use kind = \"fetch\", or title"
        ));
    }
    for name in ["$HOME", "${HOME}", "%HOME%", "%USERPROFILE%"] {
        if let Some(rest) = text.strip_prefix(name) {
            return never(text, "variables are not expanded", &format!("~{rest}"));
        }
    }
    let is_percent = |rest: &str| {
        let name = rest.split_once('%').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    if text.starts_with('$') || text.strip_prefix('%').is_some_and(is_percent) {
        return Err(format!(
            "{text:?} matches no path: variables are not expanded; write the path itself"
        ));
    }
    Ok(())
}

fn never(text: &str, why: &str, form: &str) -> Result<(), String> {
    Err(format!("{text:?} matches no path: {why}; use {form:?}"))
}

struct Commas {
    /// Nesting depth of braces.
    deepest: usize,
    /// `true` if the text looks like several patterns separated by commas.
    is_list: bool,
    /// `true` if an alternative begins with a separator and another separator is before the braces.
    has_empty_part: bool,
}

impl Commas {
    fn of(text: &str) -> Self {
        // For each open brace, whether it follows a separator.
        let (mut open, mut deepest) = (Vec::new(), 0);
        let (mut is_list, mut has_empty_part) = (false, false);
        for (at, c) in text.char_indices() {
            let (before, next) = (&text[..at], &text[at + c.len_utf8()..]);
            match c {
                '{' => open.push(before.ends_with('/')),
                '}' => drop(open.pop()),
                ',' if open.is_empty() => {
                    is_list |= before.ends_with("**") || next.trim_start().starts_with(['/', '~']);
                }
                _ => {}
            }
            has_empty_part |=
                "{,".contains(c) && next.starts_with('/') && open.last() == Some(&true);
            deepest = deepest.max(open.len());
        }
        // A comma in a class or after a backslash is not a separator.
        is_list &= !text.contains(['[', '\\']);
        Self {
            deepest,
            is_list,
            has_empty_part,
        }
    }
}

fn has_scheme(text: &str) -> bool {
    let (scheme, _) = text.split_once("://").unwrap_or_default();
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_letter)
}

/// Returns `true` if a backslash is before a character that needs no escape.
fn has_idle_backslash(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && !chars.next().is_some_and(|c| r"\*?[]{}!,-~$ ".contains(c)) {
            return true;
        }
    }
    false
}

/// Removes empty parts and `.` from a pattern.
fn tidy(pattern: &str) -> String {
    let rooted = if pattern.starts_with('/') { "/" } else { "" };
    let last = if pattern.ends_with('/') { "/" } else { "" };
    let pattern = pattern.replace("{./", "{").replace(",./", ",");
    let parts = pattern.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts = parts.collect::<Vec<_>>().join("/");
    if parts.is_empty() {
        return format!("{rooted}**");
    }
    format!("{rooted}{parts}{last}")
}

/// Limits for the expansion of leading braces: steps, and bytes of the result.
const MOST_STEPS: usize = 4096;
const MOST_BYTES: usize = 4 * LONGEST;

/// Expands the leading braces of a pattern: `/etc/**` and `~/x/**` for `{/etc,~/x}/**`. A pattern is left as
/// it is if all alternatives are relative to the working directory.
///
/// # Errors
/// There are too many alternatives.
pub fn alternatives(text: &str) -> Result<Vec<String>, String> {
    let too_many = || {
        Err(format!(
            "{text:?} has too many alternatives in its beginning; use several patterns"
        ))
    };
    if text.len() > LONGEST {
        return Ok(vec![text.to_owned()]);
    }
    // The remaining parts of each alternative, in reverse order.
    let (mut open, mut found, mut steps) = (vec![vec![text]], Vec::new(), 0);
    while let Some(mut parts) = open.pop() {
        steps += 1;
        if steps > MOST_STEPS {
            return too_many();
        }
        let head = parts.pop();
        if let Some((inner, rest)) = head.and_then(group) {
            parts.push(rest);
            let of = |alternative| [parts.as_slice(), &[alternative]].concat();
            open.extend(inner.into_iter().rev().map(of));
        } else if head == Some("") && !parts.is_empty() {
            open.push(parts);
        } else {
            parts.extend(head);
            found.push(parts.into_iter().rev().collect::<String>());
        }
    }
    // Alternatives that match no path are returned separately, so that each reports its error.
    let is_anchored = |text: &String| {
        let (said, mut starts) = (slashes(text), ["~", "./", "../"].iter());
        is_absolute(&said)
            || starts.any(|start| said.starts_with(start))
            || check_form(text).is_err()
    };
    if found == [text] || !found.iter().any(is_anchored) {
        return Ok(vec![text.to_owned()]);
    }
    if found.iter().map(String::len).sum::<usize>() > MOST_BYTES {
        return too_many();
    }
    Ok(found)
}

/// Returns the alternatives of the braces with which a text begins, and the text after the braces.
fn group(text: &str) -> Option<(Vec<&str>, &str)> {
    let inner = text.strip_prefix('{')?;
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if cfg!(not(windows)) => {
                chars.next();
            }
            // The first character of a class never ends it.
            '[' => {
                let mut inside = chars
                    .by_ref()
                    .skip_while(|(_, c)| "!^".contains(*c))
                    .skip(1);
                inside.find(|(_, c)| *c == ']')?;
            }
            '{' => depth += 1,
            ',' if depth == 0 => {
                found.push(&inner[start..at]);
                start = at + 1;
            }
            '}' if depth == 0 => {
                found.push(&inner[start..at]);
                return Some((found, &inner[at + 1..]));
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::PathPattern;
    use super::*;

    #[test]
    fn impossible_path_pattern_error_suggests_a_form() {
        for (pattern, form) in [
            ("//etc/**", "/etc/**"),
            ("/etc/./**", "/etc/**"),
            ("/etc/.", "/etc"),
            ("a//b/**", "a/b/**"),
            ("./a//b", "a/b"),
            (".", "**"),
            ("$HOME/.ssh/**", "~/.ssh/**"),
            ("${HOME}/.ssh/**", "~/.ssh/**"),
            ("~root/.ssh/**", "/root/.ssh/**"),
            ("~me/x", "/home/me/x"),
            ("file:///etc/**", "/etc/**"),
            ("FILE://localhost/etc/**", "/etc/**"),
            ("/etc/** ", "/etc/**"),
            (" src/**", "src/**"),
            ("src/**\n", "src/**"),
            ("a\0b", "ab"),
            (r"src\main.rs", "src/main.rs"),
            (r"\/etc/**", "/etc/**"),
            ("/etc/**,/usr/**", "{/etc/**,/usr/**}"),
            ("src/**,docs/**", "{src/**,docs/**}"),
            ("/etc/x, ~/y", "{/etc/x,~/y}"),
            ("src/{/a,b}", "src/{a,b}"),
            ("src/{a,/b/**}", "src/{a,b/**}"),
            ("\"/etc/**\"", "/etc/**"),
            ("'~/.ssh/**'", "~/.ssh/**"),
            ("\u{200b}/etc/**", "/etc/**"),
            ("/etc/\u{feff}**", "/etc/**"),
            ("[/]etc/**", "/etc/**"),
            ("%HOME%/x", "~/x"),
            ("%USERPROFILE%/x", "~/x"),
            ("{./a,b}/**", "{a,b}/**"),
        ] {
            let error = PathPattern::new(pattern, Some("/home/me")).unwrap_err();
            let wanted = format!("; use {form:?}");
            assert!(error.ends_with(&wanted), "{pattern:?}: {error}");
            PathPattern::new(form, Some("/home/me")).unwrap();
        }
        for pattern in ["$PWD/src", "%TEMP%/src"] {
            let error = PathPattern::new(pattern, None).unwrap_err();
            assert!(error.contains("write the path itself"), "{error}");
        }
        let error = PathPattern::new("https://x/**", None).unwrap_err();
        assert!(error.contains("kind = \"fetch\""), "{error}");
        for pattern in [
            "*.rs,v",
            "a,b",
            "%20/x",
            "it's",
            "100%",
            "a:b/c",
            "\"a",
            "é\u{200d}",
        ] {
            PathPattern::new(pattern, None).unwrap();
        }
        let escaped = PathPattern::new(r"a\*b\ c", None).unwrap();
        assert!(escaped.matches("/w/a*b c", "/w", false));
    }

    #[test]
    fn large_pattern_is_an_error_and_never_a_panic() {
        let nested = |n: usize| format!("{}b{}", "{a,".repeat(n), "}".repeat(n));
        PathPattern::new(&nested(DEEPEST_BRACES), None).unwrap();
        for pattern in [
            nested(DEEPEST_BRACES + 1),
            nested(200),
            nested(1000),
            "*".repeat(LONGEST + 1),
        ] {
            let error = PathPattern::new(&pattern, None).unwrap_err();
            assert!(error.ends_with("use several patterns"), "{error}");
        }
        // The largest valid patterns compile.
        let pieces = [
            "*",
            "**/",
            "?",
            "[!a]",
            "[a-zA-Z]",
            "{a,b}",
            "{,a*}",
            "é",
            "\\*",
            "{a,{b,{c,d}}}",
        ];
        for piece in pieces {
            let pattern = piece.repeat(LONGEST / piece.len());
            let compiled = PathPattern::new(&pattern, None);
            assert!(compiled.is_ok(), "{piece}: {compiled:?}");
        }
    }

    #[test]
    fn alternative_that_fits_no_path_is_refused() {
        for (pattern, why) in [
            ("{$HOME/.ssh,a}/**", "use \"~/.ssh/**\""),
            ("{a,//etc}", "use"),
            ("{a, /etc}/**", "use \"/etc/**\""),
            ("{/etc/,/usr/}/**", "use \"/etc/**\""),
            ("{a,~root}/x", "use \"/root/x\""),
            ("{,/x}", "is empty after"),
        ] {
            let error = PathPattern::new(pattern, Some("/home/me")).unwrap_err();
            assert!(error.contains(why), "{pattern}: {error}");
        }
        for pattern in [
            "{,/a}".repeat(800),
            format!("{{{}}}{}", "/a,".repeat(500), "b".repeat(2000)),
        ] {
            let error = PathPattern::new(&pattern, None).unwrap_err();
            assert!(error.ends_with("use several patterns"), "{error}");
        }
    }
}
