//! The grammar that all shells share: only its lines can be allowed by a rule.
//!
//! The grammar lists what is allowed, rather than known differences. sh, bash, dash, zsh, busybox ash, mksh
//! and ksh93 read a line of it in the same way: as simple commands, each with exactly the words that are
//! returned here. Any other line is unreadable. `tests/shells` runs lines of the grammar in each of these
//! shells.
//!
//! - A line is a list of pipelines, separated by `;`, a line end, `&`, `&&`, `||` or `|`.
//! - A command begins with a bare name that is not a word of the shell language ([`LANGUAGE`]).
//! - Its arguments are bare words of a few ASCII characters, single quotes, double quotes without
//!   substitutions, and `\` before punctuation. `*` and `?` may not begin a word, nor be in an option,
//!   because files may have names like options.
//! - Redirections connect standard streams to each other or to `/dev/null`.

/// Words that belong to the shell language at the start of a command: reserved words, and builtins that
/// change the shell or evaluate their arguments (`printf`, `test` and `exit` run `a[$(…)]` in some shells).
#[rustfmt::skip]
pub const LANGUAGE: &[&str] = &[
    ".", "..", "alias", "always", "autoload", "bg", "bind", "bindkey", "break", "builtin", "bye", "caller", "case",
    "chdir", "command", "compadd", "compctl", "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs",
    "disown", "do", "done", "echotc", "echoti", "elif", "else", "emulate", "enable", "end", "enum", "esac", "eval",
    "exec", "exit", "export", "fc", "fg", "fi", "float", "for", "foreach", "function", "functions", "getln", "getopts",
    "global", "hash", "hist", "history", "if", "in", "integer", "jobs", "let", "limit", "local", "log", "login",
    "logout", "mapfile", "nameref", "namespace", "newgrp", "nocorrect", "noglob", "popd", "print", "printf", "private",
    "pushd", "pushln", "r", "read", "readarray", "readonly", "redirect", "rehash", "rename", "repeat", "return",
    "sched", "select", "set", "setopt", "shift", "shopt", "source", "stop", "suspend", "test", "then", "time", "times",
    "trap", "ttyctl", "type", "typeset", "ulimit", "umask", "unalias", "unfunction", "unhash", "unlimit", "unset",
    "unsetopt", "until", "vared", "wait", "whence", "where", "while", "zcompile", "zformat", "zle", "zmodload",
    "zparseopts", "zprof", "zregexparse", "zstyle",
];

/// Returns the commands of a line, each as its words; `None` if the line is not in the grammar.
pub fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut parser = Parser {
        text,
        at: 0,
        commands: Vec::new(),
    };
    parser.list()?;
    Some(parser.commands)
}

/// Returns `true` if a command name belongs to the shell language.
pub fn is_language(name: &str) -> bool {
    LANGUAGE.binary_search(&name).is_ok()
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next byte, at a character boundary.
    at: usize,
    commands: Vec<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `;`, `&` or a line end: no further command is required.
    List,
    /// `&&` or `||`.
    AndOr,
    Pipe,
    End,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn previous(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// Consumes this text if it comes next.
    fn consume(&mut self, text: &str) -> bool {
        let is_next = self.text[self.at..].starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn list(&mut self) -> Option<()> {
        let mut before = Separator::List;
        loop {
            while matches!(self.peek(), Some(' ' | '\t' | '\n')) || self.continuation()? {
                self.next();
            }
            if self.peek().is_none() {
                return (before == Separator::List).then_some(());
            }
            before = self.command(before == Separator::Pipe)?;
            if before == Separator::End {
                return Some(());
            }
        }
    }

    /// Consumes a `\` before a line end; returns `true` if it was there. It may only be between words.
    fn continuation(&mut self) -> Option<bool> {
        if self.peek() != Some('\\') || !self.text[self.at..].starts_with("\\\n") {
            return Some(false);
        }
        let is_between = matches!(self.previous(), Some(' ' | '\t' | '\n'));
        is_between.then(|| self.at += 1)?;
        Some(true)
    }

    /// Parses a simple command; returns the separator after it.
    fn command(&mut self, is_piped: bool) -> Option<Separator> {
        let mut words = vec![self.name()?];
        let mut streams = [is_piped, false, false];
        let separator = loop {
            match self.peek() {
                None => break Separator::End,
                Some(' ' | '\t') => {
                    self.next();
                }
                Some('\\') if self.continuation()? => {
                    self.next();
                }
                Some('\n' | ';') => {
                    self.next();
                    break Separator::List;
                }
                Some('&') => {
                    self.next();
                    if self.consume("&") {
                        break Separator::AndOr;
                    }
                    // `&>`, `&|` and `&!` are single operators in some shells.
                    matches!(self.peek(), None | Some(' ' | '\t' | '\n')).then_some(())?;
                    break Separator::List;
                }
                Some('|') => {
                    self.next();
                    if self.consume("|") {
                        break Separator::AndOr;
                    }
                    break Separator::Pipe;
                }
                Some(_) if self.is_redirection() => self.redirection(&mut streams)?,
                Some(_) => words.push(self.word()?),
            }
        };
        // zsh writes to the pipe as well as to the file.
        if separator == Separator::Pipe && streams[1] {
            return None;
        }
        self.commands.push(words);
        Some(separator)
    }

    fn name(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
        let name = &rest[..rest.find(|c| !is_letter(c)).unwrap_or(rest.len())];
        let is_plain = name.starts_with(|c: char| is_letter(c) && c != '+' && c != '-');
        self.at += name.len();
        (is_plain && self.is_word_end() && !is_language(name)).then(|| name.to_owned())
    }

    fn is_word_end(&self) -> bool {
        matches!(
            self.peek(),
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|')
        )
    }

    fn is_redirection(&self) -> bool {
        let rest = &self.text[self.at..];
        let rest = rest.strip_prefix(['0', '1', '2']).unwrap_or(rest);
        rest.starts_with(['<', '>']) && matches!(self.previous(), Some(' ' | '\t'))
    }

    /// Parses the redirection of a stream that was not redirected before.
    fn redirection(&mut self, streams: &mut [bool; 3]) -> Option<()> {
        let number = self.peek().filter(char::is_ascii_digit);
        number.and_then(|_| self.next());
        let reads = self.next()? == '<';
        let usual = u32::from(!reads);
        let stream = number.and_then(|c| c.to_digit(10)).unwrap_or(usual);
        let stream = usize::try_from(stream).ok()?;
        if reads != (stream == 0) || std::mem::replace(&mut streams[stream], true) {
            return None;
        }
        let other = if stream == 1 { "&2" } else { "&1" };
        if reads || !self.consume(other) {
            let _ = !reads && self.consume(">");
            while matches!(self.peek(), Some(' ' | '\t')) {
                self.next();
            }
            self.consume("/dev/null").then_some(())?;
        }
        // `>&1-` and `2>&1x` name files in some shells.
        matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '|')).then_some(())
    }

    fn word(&mut self) -> Option<String> {
        let (start, mut word) = (self.at, String::new());
        while !self.is_word_end() {
            let is_first = self.at == start;
            let previous = self.previous().filter(|_| !is_first);
            let is_preceded_by = |more: &str| {
                previous.is_some_and(|c| c.is_ascii_alphanumeric() || more.contains(c))
            };
            match self.next()? {
                '\'' => self.single_quotes(&mut word)?,
                '"' => self.double_quotes(&mut word)?,
                '\\' => {
                    let is_escaped = |c: &char| *c == ' ' || c.is_ascii_punctuation();
                    word.push(self.next().filter(is_escaped)?);
                }
                c if c.is_ascii_alphanumeric() || "_./-+@%,:".contains(c) => word.push(c),
                // `=ls` and `""=ls` are the path of `ls` in zsh.
                '=' if !word.is_empty() => word.push('='),
                '~' if is_first && (self.is_word_end() || self.peek() == Some('/')) => {
                    word.push('~');
                }
                '~' if is_preceded_by("^") => word.push('~'),
                '^' if is_preceded_by("^~") => word.push('^'),
                '#' if is_preceded_by("/_.-") => word.push('#'),
                // Matches names of files that begin with this text. `.*` also matches `..` in some shells.
                c @ ('*' | '?') if begins_as_it_stands(&word) => {
                    let name = word.rsplit('/').next().unwrap_or_default();
                    (self.peek() != Some('*') && !name.starts_with('.')).then_some(())?;
                    word.push(c);
                }
                _ => return None,
            }
        }
        Some(word)
    }

    fn single_quotes(&mut self, word: &mut String) -> Option<()> {
        loop {
            match self.next()? {
                // zsh can read `''` within quotes as one quote.
                '\'' => return (self.peek() != Some('\'')).then_some(()),
                c if is_text(c) => word.push(c),
                _ => return None,
            }
        }
    }

    fn double_quotes(&mut self, word: &mut String) -> Option<()> {
        loop {
            let is_behind_ascii = self.previous().is_some_and(|c| c.is_ascii());
            match self.next()? {
                '"' => return Some(()),
                // In some encodings, `\` is the second byte of a character.
                '\\' if is_behind_ascii => match self.next()? {
                    c @ ('"' | '\\' | '$' | '`') => word.push(c),
                    c if c.is_ascii_graphic() && c != '!' || c == ' ' => word.extend(['\\', c]),
                    _ => return None,
                },
                // As in `"end$"`.
                '$' if self.peek() == Some('"') => word.push('$'),
                '\\' | '$' | '`' | '!' => return None,
                c if is_text(c) => word.push(c),
                _ => return None,
            }
        }
    }
}

/// Returns `true` if all file names that begin with this text are words of the same meaning: they are not
/// options, except for `--name=…`.
fn begins_as_it_stands(word: &str) -> bool {
    !word.is_empty() && (!word.starts_with('-') || word.starts_with("--") && word.contains('='))
}

/// Returns `true` if the character may occur within quotes: anything except control characters.
fn is_text(c: char) -> bool {
    !c.is_control() || matches!(c, '\t' | '\n')
}
