//! A reading of a shell line: the commands that one shell may find in it.
//!
//! Nothing is run or expanded. A reading also finds commands in substitutions, here-documents and groups. It
//! must miss no command, but need not be exact, because only rules that deny or ask use it.

mod documents;
mod level;

use super::dialect::{Braces, ShellDialect};
use level::NestingLevel;

#[derive(Debug, Default)]
pub struct Reading {
    /// Commands, each as its words without quotes, and again including the redirections between the words.
    pub commands: Vec<Vec<String>>,
    /// Files of redirections.
    pub files: Vec<String>,
    /// `true` if the line has only commands: no substitution, redirection to or from a file, open quote or
    /// comment.
    pub simple: bool,
    /// `true` if all quotes and groups are closed.
    pub closed: bool,
}

struct ShellReader<'a> {
    rest: &'a str,
    dialect: ShellDialect,
    outer: Vec<NestingLevel>,
    frame: NestingLevel,
    /// Delimiters of the here-documents that begin on the next line.
    documents: Vec<String>,
    found: Reading,
}

impl Reading {
    #[must_use]
    pub fn of(text: &str, dialect: ShellDialect) -> Self {
        let mut found = Self {
            simple: !text.chars().any(is_odd),
            closed: true,
            ..Self::default()
        };
        found.read(text, dialect, NestingLevel::default());
        found
    }

    fn read(&mut self, text: &str, dialect: ShellDialect, frame: NestingLevel) {
        self.read_part(text, dialect, frame, false);
    }

    /// Reads a text, or with `is_line` its first line and everything that is open at the end of that line;
    /// returns the number of bytes read.
    fn read_part(
        &mut self,
        text: &str,
        dialect: ShellDialect,
        frame: NestingLevel,
        is_line: bool,
    ) -> usize {
        let begins_quoted = frame.quoted;
        let mut reader = ShellReader {
            rest: text,
            dialect,
            outer: Vec::new(),
            frame,
            documents: Vec::new(),
            found: std::mem::take(self),
        };
        while let Some(c) = reader.next() {
            let is_open = !reader.outer.is_empty() || reader.frame.quoted && !begins_quoted;
            if is_line && c == '\n' && !is_open {
                break;
            }
            if reader.frame.quoted {
                reader.in_quotes(c);
            } else {
                reader.bare(c);
            }
        }
        let read = text.len() - reader.rest.len();
        *self = reader.finish();
        read
    }
}

/// Returns `true` for a character that usual commands do not contain, so that the displayed text may differ
/// from the command that runs.
fn is_odd(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}

impl ShellReader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Consumes this text if it comes next.
    fn consume(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn push(&mut self, c: char) {
        self.frame.word.get_or_insert_default().push(c);
    }

    fn in_quotes(&mut self, c: char) {
        match c {
            '"' if self.frame.document => self.push(c),
            '"' => self.frame.quoted = false,
            '\\' if self.consume("\n") => {}
            '\\' if self.rest.starts_with(['$', '`', '"', '\\']) => {
                let escaped = self.next().unwrap_or(c);
                self.push(escaped);
            }
            '`' => self.backticks(),
            '$' if self.consume("(") => self.substitute(')'),
            '$' if self.rest.starts_with('{') => self.variable(),
            '}' if self.frame.literal => self.close(),
            _ => self.push(c),
        }
    }

    fn bare(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            // For most shells `\r` and non-ASCII spaces are literal characters; for yash they are blanks.
            _ if c.is_whitespace() && c != '\n' => {
                self.found.simple = false;
                self.end_word();
            }
            '#' if self.dialect.comments
                && self.frame.word.is_none()
                && self.frame.close != Some('}') =>
            {
                self.comment();
            }
            '&' if self.dialect.ampersand && self.consume(">") => self.redirect('>'),
            '\n' => {
                self.end_command();
                self.here_documents();
            }
            ';' | '|' | '&' => {
                self.end_command();
                // `&!` is one operator in zsh: `!` is not part of the next word.
                if c == '&' && self.consume("!") {
                    self.push('!');
                    self.end_word();
                }
            }
            '"' => {
                self.frame.word.get_or_insert_default();
                self.frame.quoted = true;
            }
            '\'' => self.single_quotes(),
            '\\' if self.consume("\n") => {}
            '\\' => match self.next() {
                Some(escaped) => self.push(escaped),
                None => self.found.simple = false,
            },
            '`' => self.backticks(),
            '$' | '<' | '>' if self.consume("(") => self.substitute(')'),
            '$' if self.dialect.dollar_quotes && self.consume("'") => self.escaped_quotes(),
            '$' if self.rest.starts_with('"') => {
                self.found.simple = false;
                if !self.dialect.dollar_quotes {
                    self.push(c);
                }
            }
            '$' if self.rest.starts_with('{') => self.variable(),
            '<' | '>' => self.redirect(c),
            '(' => {
                self.end_command();
                self.open(')', false);
            }
            ')' => {
                // The word may be `esac`.
                self.end_word();
                if self.frame.close == Some(')') && self.frame.cases == 0 {
                    self.close();
                } else {
                    self.found.simple = false;
                    self.end_command();
                }
            }
            '}' if self.frame.close == Some('}') => self.close(),
            _ => self.push(c),
        }
    }

    fn single_quotes(&mut self) {
        let word = self.frame.word.get_or_insert_default();
        if let Some((text, rest)) = self.rest.split_once('\'') {
            word.push_str(text);
            self.rest = rest;
        } else {
            word.push_str(self.rest);
            self.rest = "";
            self.found.simple = false;
            self.found.closed = false;
        }
    }

    /// Reads `$'...'` with its escapes.
    fn escaped_quotes(&mut self) {
        self.found.simple = false;
        self.frame.word.get_or_insert_default();
        loop {
            match self.next() {
                Some('\'') => return,
                Some('\\') => self.escape(),
                Some(c) => self.push(c),
                None => {
                    self.found.closed = false;
                    return;
                }
            }
        }
    }

    fn escape(&mut self) {
        let Some(c) = self.next() else { return };
        let mut digits = String::new();
        let (radix, most) = match c {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => {
                digits.push(c);
                (8, 3)
            }
            'a' | 'b' | 'e' | 'E' | 'f' | 'v' => return self.push('\u{1}'),
            'n' => return self.push('\n'),
            'r' => return self.push('\r'),
            't' => return self.push('\t'),
            _ => return self.push(c),
        };
        while let Some(digit) = self.rest.chars().next().filter(|c| c.is_digit(radix))
            && digits.len() < most
        {
            digits.push(digit);
            self.next();
        }
        let code = u32::from_str_radix(&digits, radix).ok();
        self.push(code.and_then(char::from_u32).unwrap_or(c));
    }

    /// Reads `${...}`: shells differ in how they read quotes in it, and some run its content.
    fn variable(&mut self) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let inner = &self.rest[1..];
        let name = &inner[..inner.len() - inner.trim_start_matches(is_name).len()];
        if let Some(rest) = inner[name.len()..].strip_prefix('}') {
            let word = self.frame.word.get_or_insert_default();
            word.extend(["${", name, "}"]);
            self.rest = rest;
            return;
        }
        self.found.simple = false;
        self.push('$');
        let literal = match self.dialect.braces {
            Braces::Flat => return,
            Braces::Quoting => false,
            Braces::Literal => self.frame.quoted,
        };
        self.consume("{");
        self.open('}', literal);
    }

    /// Skips a comment; some shells have no comments in interactive mode.
    fn comment(&mut self) {
        self.found.simple = false;
        self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]);
    }

    /// Reads a substitution in backticks. It ends with the next backtick, whatever quotes are in it, and its
    /// content is read separately, without the `\` before `` ` ``, `$` and `\`.
    fn backticks(&mut self) {
        self.found.simple = false;
        self.begin_substitution();
        let (mut inner, mut is_closed) = (String::new(), false);
        while let Some(c) = self.next() {
            match c {
                '`' => {
                    is_closed = true;
                    break;
                }
                '\\' if self.rest.starts_with(['`', '$', '\\']) => inner.extend(self.next()),
                '\\' if self.frame.quoted && self.rest.starts_with('"') => {
                    inner.extend(self.next());
                }
                _ => inner.push(c),
            }
        }
        self.found.closed &= is_closed;
        self.found
            .read(&inner, self.dialect, NestingLevel::default());
    }

    /// Opens a substitution, whose output is part of the word around it.
    fn substitute(&mut self, close: char) {
        self.begin_substitution();
        self.open(close, false);
    }

    /// After a substitution, a file name continues as after a variable.
    fn begin_substitution(&mut self) {
        let is_file = self.frame.before_file;
        let word = self.frame.word.get_or_insert_default();
        word.extend(is_file.then_some('$'));
    }

    fn open(&mut self, close: char, literal: bool) {
        self.found.simple = false;
        let inner = NestingLevel {
            close: Some(close),
            quoted: literal,
            literal,
            ..NestingLevel::default()
        };
        self.outer.push(std::mem::replace(&mut self.frame, inner));
    }

    fn close(&mut self) {
        self.end_command();
        self.frame = self.outer.pop().unwrap_or_default();
    }

    /// Reads a redirection after its first character.
    fn redirect(&mut self, sign: char) {
        let is_stream = |word: &String| {
            let name = word
                .strip_prefix('{')
                .and_then(|word| word.strip_suffix('}'));
            word.bytes().all(|b| b.is_ascii_digit())
                || name.is_some_and(|name| {
                    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                })
        };
        if self.frame.word.as_ref().is_some_and(is_stream) {
            self.found.simple &= !self
                .frame
                .word
                .take()
                .is_some_and(|word| word.starts_with('{'));
        }
        self.end_word();
        let length = self.rest.len() - self.rest.trim_start_matches(['<', '>', '|', '&']).len();
        let (more, rest) = self.rest.split_at(length);
        self.rest = rest;
        let is_end = |c: char| " \t\n;|&)".contains(c);
        let ends = |rest: &&str| rest.is_empty() || rest.starts_with(is_end);
        // ksh93 writes to a file for `>; file`; for other shells the command ends there.
        if let Some(rest) = rest.strip_prefix(';') {
            let rest = rest.trim_start_matches([' ', '\t']);
            let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
            self.found.files.push(word.replace(['"', '\'', '\\'], ""));
        }
        if more.ends_with('&') {
            let other = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            if let Some(after) = other.strip_prefix('-') {
                // `>&-x` is `>&-` and the word `x` in bash, and a file in other shells.
                if other.len() < rest.len() || !ends(&after) {
                    let file = &rest[..rest.find(is_end).unwrap_or(rest.len())];
                    self.found.files.push(file.to_owned());
                    self.found.simple = false;
                    self.frame.may_end_file = self.frame.words.is_empty();
                }
                self.rest = after;
                return;
            }
            if other.len() < rest.len() && ends(&other) {
                self.rest = other;
                return;
            }
        }
        self.rest = rest.trim_start_matches([' ', '\t']);
        let nowhere = self.rest.strip_prefix("/dev/null");
        if let Some(rest) = nowhere.filter(ends) {
            self.rest = rest;
            return;
        }
        self.found.simple = false;
        let frame = &mut self.frame;
        if frame.words_and_redirections.is_empty() {
            frame.words_and_redirections.clone_from(&frame.words);
        }
        frame.words_and_redirections.push(format!("{sign}{more}"));
        frame.in_redirection = true;
        // The delimiter of a here-document is not a file name.
        frame.before_file = !more.starts_with('<');
        frame.before_delimiter = sign == '<' && more == "<";
    }

    fn end_word(&mut self) {
        let frame = &mut self.frame;
        let Some(word) = frame.word.take() else {
            return;
        };
        if !frame.words_and_redirections.is_empty() {
            frame.words_and_redirections.push(word.clone());
        }
        // zsh also writes to a file for `>! file` and `>!file`.
        let is_sign = frame.before_file && word == "!";
        if frame.before_file {
            let forced = word.strip_prefix('!').filter(|file| !file.is_empty());
            self.found.files.extend(forced.map(str::to_owned));
            self.found.files.push(word.clone());
            frame.before_file = is_sign;
        }
        if std::mem::take(&mut frame.before_delimiter) && self.dialect.documents {
            self.documents.push(word.clone());
        }
        if std::mem::take(&mut frame.in_redirection) {
            return;
        }
        if self.dialect.cases && frame.close == Some(')') {
            match word.as_str() {
                "case" => frame.cases += 1,
                "esac" => frame.cases = frame.cases.saturating_sub(1),
                _ => {}
            }
        }
        let is_first = frame.close == Some('}') && frame.words.is_empty();
        let default = default_of(&word).filter(|_| is_first).map(str::to_owned);
        frame.words.push(default.unwrap_or(word));
        if std::mem::take(&mut frame.may_end_file) {
            self.end_command();
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let frame = &mut self.frame;
        (
            frame.before_file,
            frame.before_delimiter,
            frame.in_redirection,
        ) = (false, false, false);
        for words in [&mut frame.words, &mut frame.words_and_redirections] {
            let words = std::mem::take(words);
            if !words.is_empty() {
                self.found.commands.push(words);
            }
        }
    }

    fn finish(mut self) -> Reading {
        self.found.closed &= self.outer.is_empty();
        loop {
            let is_open = self.frame.quoted && !self.frame.document;
            self.found.closed &= !is_open;
            self.found.simple &= !is_open;
            self.end_command();
            match self.outer.pop() {
                Some(frame) => self.frame = frame,
                None => return self.found,
            }
        }
    }
}

/// Returns the default value in the text of `${…}`, which a shell may use for the variable: `${x:-rm}` is
/// `rm` if `x` is empty.
fn default_of(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = text.trim_start_matches(is_name);
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let word = rest.strip_prefix(['-', '+', '=', '?'])?;
    (!word.is_empty()).then_some(word)
}
