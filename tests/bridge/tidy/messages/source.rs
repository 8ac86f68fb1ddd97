//! The tokens of a source file, its functions and closures, and the texts in its expressions.

use std::collections::HashMap;
use std::ops::Range;

/// The part of a Rust token that the scan needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Word(String),
    /// A string literal, without its escapes.
    Text(String),
    Mark(char),
    /// A number, a character or a lifetime.
    Other,
}

/// A function or a named closure.
#[derive(Debug)]
pub struct Callable {
    pub name: String,
    /// Parameters without `self`.
    pub params: Vec<String>,
    pub body: Range<usize>,
    pub is_closure: bool,
}

/// A source file that is scanned.
#[derive(Debug)]
pub struct Source {
    pub path: String,
    pub tokens: Vec<Token>,
    pub callables: Vec<Callable>,
    /// Places of each word among the tokens.
    pub places: HashMap<String, Vec<usize>>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let tokens = without_attributes(&tokens(text));
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, token) in tokens.iter().enumerate() {
            if let Token::Word(word) = token {
                places.entry(word.clone()).or_default().push(at);
            }
        }
        let mut source = Self {
            path: path.to_owned(),
            callables: Vec::new(),
            tokens,
            places,
        };
        source.callables = (0..source.tokens.len())
            .filter_map(|at| source.function(at).or_else(|| source.closure(at)))
            .collect();
        source
    }

    pub fn word(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub fn is(&self, at: usize, mark: char) -> bool {
        self.tokens.get(at) == Some(&Token::Mark(mark))
    }

    /// The token behind the bracket that closes the one at `open`.
    pub fn behind(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.tokens.len() {
            match &self.tokens[at] {
                Token::Mark('(' | '[' | '{') => depth += 1,
                Token::Mark(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        self.tokens.len()
    }

    /// The parts of a range between commas outside of brackets.
    pub fn parts(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut parts, mut begin, mut at) = (Vec::new(), range.start, range.start);
        while at < range.end {
            match &self.tokens[at] {
                Token::Mark('(' | '[' | '{') => at = self.behind(at),
                Token::Mark(',') => {
                    parts.push(begin..at);
                    at += 1;
                    begin = at;
                }
                _ => at += 1,
            }
        }
        if begin < range.end {
            parts.push(begin..range.end);
        }
        parts
    }

    /// The arguments of the call whose `(` is at `open`.
    pub fn arguments(&self, open: usize) -> Vec<Range<usize>> {
        self.parts(open + 1..self.behind(open) - 1)
    }

    /// The end of the statement that `at` is in.
    fn statement(&self, mut at: usize) -> usize {
        while at < self.tokens.len() {
            match &self.tokens[at] {
                Token::Mark('(' | '[' | '{') => at = self.behind(at),
                Token::Mark(';' | ')' | ']' | '}') => return at,
                _ => at += 1,
            }
        }
        at
    }

    fn function(&self, at: usize) -> Option<Callable> {
        if self.word(at)? != "fn" {
            return None;
        }
        let name = self.word(at + 1)?.to_owned();
        let open = (at..self.tokens.len()).find(|at| self.is(*at, '('))?;
        let mut body = self.behind(open);
        while !self.is(body, '{') {
            if self.is(body, ';') || body >= self.tokens.len() {
                return None;
            }
            body += 1;
        }
        let params = self.names(open + 1..self.behind(open) - 1);
        Some(Callable {
            name,
            params,
            body: body..self.behind(body),
            is_closure: false,
        })
    }

    fn closure(&self, at: usize) -> Option<Callable> {
        if self.word(at)? != "let" {
            return None;
        }
        let at = at + usize::from(self.word(at + 1) == Some("mut"));
        let name = self.word(at + 1)?.to_owned();
        if !self.is(at + 2, '=') {
            return None;
        }
        let open = at + 3 + usize::from(self.word(at + 3) == Some("move"));
        if !self.is(open, '|') {
            return None;
        }
        let close = (open + 1..self.tokens.len()).find(|at| self.is(*at, '|'))?;
        Some(Callable {
            name,
            params: self.names(open + 1..close),
            body: close + 1..self.statement(close + 1),
            is_closure: true,
        })
    }

    /// The names of parameters.
    fn names(&self, range: Range<usize>) -> Vec<String> {
        let names = self.parts(range).into_iter().filter_map(|part| {
            let mut words = part.filter_map(|at| self.word(at));
            words.find(|word| *word != "mut").map(str::to_owned)
        });
        names.filter(|name| name != "self").collect()
    }

    /// The innermost functions and closures around a token, innermost first.
    pub fn around(&self, at: usize) -> Vec<&Callable> {
        let around = self.callables.iter().filter(|c| c.body.contains(&at));
        let mut around: Vec<_> = around.collect();
        around.sort_by_key(|callable| callable.body.len());
        around
    }

    /// The expression of the last `let` before `at` that binds a name, within the function around it.
    pub fn binding(&self, name: &str, at: usize) -> Option<Range<usize>> {
        let function = self.around(at).into_iter().find(|c| !c.is_closure)?;
        let lets = function.body.start..at;
        for begin in lets.rev().filter(|at| self.word(*at) == Some("let")) {
            let end = (begin..at).find(|at| self.is(*at, '=') && !self.is(at + 1, '='));
            let Some(end) = end else { continue };
            let pattern = begin + 1..end;
            let types = pattern
                .clone()
                .find(|at| self.is(*at, ':') && !self.is(at + 1, ':'));
            let mut pattern = pattern.start..types.unwrap_or(pattern.end);
            if pattern.any(|at| self.word(at) == Some(name)) && self.is_in_scope(begin, at) {
                let end_of = self.statement(end + 1);
                return Some(end + 1..end_of);
            }
        }
        None
    }

    /// Whether the block that a token is in goes on at a later token.
    fn is_in_scope(&self, begin: usize, at: usize) -> bool {
        let mut depth = 0;
        (begin..at).all(|at| {
            match self.tokens[at] {
                Token::Mark('{') => depth += 1,
                Token::Mark('}') => depth -= 1,
                _ => {}
            }
            depth >= 0
        })
    }

    /// The text of a literal, with names in its placeholders.
    pub fn shown(&self, at: usize) -> Option<String> {
        let Token::Text(text) = &self.tokens[at] else {
            return None;
        };
        let Some(open) = self.macro_around(at) else {
            return Some(text.clone());
        };
        let rest = self.arguments(open).into_iter();
        let values: Vec<_> = rest.filter(|argument| argument.start > at).collect();
        let mut values = values
            .into_iter()
            .filter(|value| !self.is(value.start + 1, '='));
        let mut shown = String::new();
        let mut rest = text.as_str();
        while let Some(brace) = rest.find(['{', '}']) {
            shown.push_str(&rest[..brace]);
            let (mark, behind) = rest[brace..].split_at(1);
            if behind.starts_with(mark) {
                shown.push_str(mark);
                rest = &behind[1..];
                continue;
            }
            let Some((inside, behind)) = behind.split_once('}') else {
                break;
            };
            let name = inside.split(':').next().unwrap_or_default();
            let name = match name {
                "" => values
                    .next()
                    .map_or("…".to_owned(), |value| self.name_of(value)),
                name => name.to_owned(),
            };
            shown = format!("{shown}{{{name}}}");
            rest = behind;
        }
        Some(shown + rest)
    }

    /// The `(` of the formatting macro whose text is at `at`.
    fn macro_around(&self, at: usize) -> Option<usize> {
        let open = if self.is(at - 1, '(') {
            at - 1
        } else {
            at.checked_sub(3)?
        };
        let is_macro = self.is(open, '(') && self.is(open.checked_sub(1)?, '!');
        let name = self.word(open.checked_sub(2)?)?;
        if self.is(open - 2, '[') && self.word(open - 1) == Some("error") {
            return Some(open);
        }
        (is_macro && ["format", "write", "bail", "anyhow", "concat"].contains(&name))
            .then_some(open)
    }

    /// A name for the value of an expression.
    fn name_of(&self, range: Range<usize>) -> String {
        let is_value = |at: &usize| {
            self.word(*at).is_some_and(|word| word != "self")
                && !self.is(at + 1, '(')
                && !self.is(at + 1, '!')
                && !self.is(at + 1, ':')
        };
        let mut words = range
            .clone()
            .filter(is_value)
            .filter_map(|at| self.word(at));
        let name = words.next_back().or_else(|| self.word(range.start));
        name.unwrap_or("…").to_lowercase()
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            _ if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            '"' => {
                let (text, length) = literal(&rest[1..]);
                (Some(Token::Text(text)), length + 1)
            }
            'r' if rest.starts_with("r\"") || rest.starts_with("r#") => {
                let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
                let end = format!("\"{}", "#".repeat(hashes));
                let inside = &rest[hashes + 2..];
                let length = inside.find(&end).unwrap_or(0);
                let token = match rest.as_bytes()[1 + hashes] {
                    b'"' => Some(Token::Text(inside[..length].to_owned())),
                    _ => None,
                };
                match token {
                    Some(_) => (token, hashes + 2 + length + end.len()),
                    // A raw identifier.
                    None => (None, 2),
                }
            }
            '\'' => (Some(Token::Other), character(rest)),
            c if c.is_alphabetic() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let word = &rest[..end.unwrap_or(rest.len())];
                (Some(Token::Word(word.to_owned())), word.len())
            }
            c if c.is_ascii_digit() => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                (Some(Token::Other), end.unwrap_or(rest.len()))
            }
            c if c.is_whitespace() => (None, c.len_utf8()),
            c => (Some(Token::Mark(c)), c.len_utf8()),
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    tokens
}

/// A string literal behind its first quote, and its length with the last one.
fn literal(rest: &str) -> (String, usize) {
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, at + 1),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('\n') => {
                    let blanks = chars.as_str();
                    let skipped = blanks.len() - blanks.trim_start().len();
                    for _ in blanks[..skipped].chars() {
                        chars.next();
                    }
                }
                Some('n') => text.push(' '),
                Some('u') => {
                    chars.by_ref().find(|(_, c)| *c == '}');
                }
                Some('x') => {
                    chars.nth(1);
                }
                Some(c) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, rest.len())
}

/// The length of a character literal or of a lifetime.
fn character(rest: &str) -> usize {
    let inside = &rest[1..];
    if inside.starts_with('\\') {
        return 3 + inside[2..].find('\'').unwrap_or(0) + 1;
    }
    let length = inside.chars().next().map_or(0, char::len_utf8);
    if inside[length..].starts_with('\'') {
        return length + 2;
    }
    1
}

/// Drops attributes but for those of `thiserror`, whose texts are messages.
fn without_attributes(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_attribute =
            tokens[at] == Token::Mark('#') && tokens.get(at + 1) == Some(&Token::Mark('['));
        if is_attribute && tokens.get(at + 2) != Some(&Token::Word("error".to_owned())) {
            let mut depth = 0;
            for (n, token) in tokens[at + 1..].iter().enumerate() {
                match token {
                    Token::Mark('[') => depth += 1,
                    Token::Mark(']') => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    at += n + 2;
                    break;
                }
            }
            continue;
        }
        kept.push(tokens[at].clone());
        at += 1;
    }
    kept
}
