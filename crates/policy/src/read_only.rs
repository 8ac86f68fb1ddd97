//! Commands that only read, with the safe options of each: `<read-only>` in place of a command pattern.
//!
//! A command only reads if its program is in the table and every word of it that begins with `-` is an option
//! of that row. The table has no options that write, run a program or are unknown. Programs that are run
//! because of a program's configuration (git's `core.fsmonitor`, `diff.external`, a pager) are not visible in
//! a command.

mod table;
#[cfg(test)]
mod tests;

use super::line::ShellLines;
use table::{COMMIT_FORMATS, DIFF, LOG, Operands, PROGRAMS, REFS, ReadOnlyProgram, VALUES, Values};

/// Returns `true` if a line consists only of commands that only read.
pub fn covers(text: &str) -> bool {
    let line = ShellLines::of(text);
    let are_read_only = || line.commands.iter().all(|words| is_read_only(words));
    line.plain && !line.commands.is_empty() && !expands(text) && are_read_only()
}

/// Returns `true` if a command, given as its words without quotes, only reads. The caller must check first
/// that the shell does not expand its words: [`expands`].
pub fn is_read_only(words: &[String]) -> bool {
    // git's own options are before the command, and only this one is harmless.
    let is_git = words.first().is_some_and(|program| program == "git");
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if is_git && words.get(1) == Some(&"--no-pager") {
        words.remove(1);
    }
    if words.first() == Some(&"sed") {
        return prints_lines(&words[1..]);
    }
    let rows = PROGRAMS.iter().filter(|row| words.starts_with(row.words));
    let row = rows.max_by_key(|row| row.words.len());
    row.is_some_and(|row| {
        let mut words = words[row.words.len()..].iter();
        words.all(|word| row.takes(word) && !(is_git && row.runs_configured(word)))
    })
}

/// Returns `true` if a word is in a list separated by spaces.
fn contains(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

impl ReadOnlyProgram {
    /// Returns `true` if a word after the program is safe.
    fn takes(&self, word: &str) -> bool {
        if self.prints || contains(self.exact, word) {
            return true;
        }
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            return long.is_empty() || self.long.iter().any(|names| contains(names, name));
        }
        match word.strip_prefix('-') {
            Some(letters) if !letters.is_empty() => self.takes_letters(letters),
            _ => match self.operands {
                Operands::Any => true,
                Operands::None => false,
                Operands::Format => word.starts_with('+'),
            },
        }
    }

    /// Returns `true` if a word makes git run a program that its configuration names.
    fn runs_configured(&self, word: &str) -> bool {
        let has_values = self.long.contains(&DIFF) || self.long.contains(&LOG);
        self.verifies(word) || has_values && !has_safe_value(word)
    }

    /// Returns `true` if a word makes git run gpg, which its configuration can replace: `%G?` in the format
    /// of a commit, also with a sign before the `G`, and `signature` in the format or the order of
    /// references.
    fn verifies(&self, word: &str) -> bool {
        let mut placeholders = word.split('%').skip(1);
        let is_verified = |text: &str| text.trim_start_matches(['+', '-', ' ']).starts_with('G');
        placeholders.any(is_verified) || self.long.contains(&REFS) && word.contains("signature")
    }

    /// Returns `true` if a group of short options is safe. The text after an option with a value is its
    /// value. Options may follow a number: `tail -5f` is `-5 -f`.
    fn takes_letters(&self, letters: &str) -> bool {
        for letter in letters.chars() {
            if self.valued.contains(letter) {
                return true;
            }
            let is_number = self.numbers && letter.is_ascii_digit();
            if !is_number && !self.short.contains(letter) {
                return false;
            }
        }
        true
    }
}

/// Returns `true` if the value of an option of [`VALUES`] is safe.
fn has_safe_value(word: &str) -> bool {
    let long = word.strip_prefix("--").unwrap_or_default();
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let Some((_, values)) = VALUES.iter().find(|(option, _)| *option == name) else {
        return true;
    };
    match (values, value) {
        // The next word is the value.
        (Values::Named(_), None) => false,
        (Values::OptionalNamed(_) | Values::CommitFormat, None) => true,
        (Values::Named(known) | Values::OptionalNamed(known), Some(value)) => {
            contains(known, value)
        }
        (Values::CommitFormat, Some(value)) => {
            let is_own = value.contains('%')
                || value.starts_with("format:")
                || value.starts_with("tformat:");
            value.is_empty() || is_own || contains(COMMIT_FORMATS, value)
        }
    }
}

/// Returns `true` if `sed` only prints lines by number: `sed -n 1,20p file`.
fn prints_lines(words: &[&str]) -> bool {
    let ["-n", script, files @ ..] = words else {
        return false;
    };
    let numbers = script.strip_suffix('p').unwrap_or_default();
    let is_number = |part: &str| part == "$" || part.parse::<u32>().is_ok();
    let are_numbers = numbers.split(',').all(is_number) && numbers.split(',').count() <= 2;
    are_numbers && !files.iter().any(|file| file.starts_with('-'))
}

/// Returns `true` if a shell may expand a word to an option: by a variable, by a file pattern or an
/// alternative at the start of a word, or by one in an option. The working directory may have a file named
/// `--output=x`.
pub fn expands(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    let mut is_single = false;
    let mut is_double = false;
    let mut words = OptionWords::default();
    while let Some(c) = chars.next() {
        match c {
            '\'' if !is_double => is_single = !is_single,
            '"' if !is_single => is_double = !is_double,
            _ if is_single => words.word.push(c),
            '\\' => words.word.push(chars.next().unwrap_or(c)),
            '$' => {
                let is_name = |c: &char| c.is_alphanumeric() || "_{(@*#?$!-[".contains(*c);
                if chars.peek().is_some_and(is_name) {
                    return true;
                }
                words.word.push(c);
            }
            '`' => return true,
            _ if is_double => words.word.push(c),
            '*' | '?' | '[' | '{' | '^' | '=' | '<' if words.word.is_empty() => return true,
            '*' | '?' | '[' | '{' if words.is_option() => return true,
            c if c.is_whitespace() || ";&|()<>".contains(c) => words.end(c),
            _ => words.word.push(c),
        }
    }
    false
}

/// Words of a command, as far as they decide whether a file pattern can become an option.
#[derive(Default)]
struct OptionWords {
    /// The word so far, without quotes.
    word: String,
    /// Whether the command has the word `git`.
    is_git: bool,
    /// Whether the word is the value of an option by which git may run gpg.
    is_value: bool,
}

impl OptionWords {
    /// Returns `true` if a pattern here can become another option: in the name of a long option, or anywhere in
    /// an option of git or the value of a format or an order, which can make git run gpg.
    fn is_option(&self) -> bool {
        let is_long = self.word.starts_with("--") && !self.word.contains('=');
        is_long || self.is_git && (self.is_value || self.word.starts_with('-'))
    }

    /// Ends the word at a character between words.
    fn end(&mut self, c: char) {
        if ";&|()\n".contains(c) {
            *self = Self::default();
        } else if !self.word.is_empty() {
            self.is_git |= self.word == "git";
            self.is_value = ["--format", "--pretty", "--sort"].contains(&self.word.as_str());
            self.word.clear();
        }
    }
}
