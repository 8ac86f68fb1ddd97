//! A shell line, taken apart as far as rules need it: its commands, and whether it is plain enough to be allowed.
//!
//! The words are those of POSIX shells. Nothing is run or expanded.

/// A line as a shell reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The commands in it, those in substitutions too, each as its words without quotes.
    pub commands: Vec<Vec<String>>,
    /// The files that it writes or reads by redirection.
    pub files: Vec<String>,
    /// Whether it is commands one after the other and nothing else: no substitution, no redirection to or from a
    /// file, no quote that does not close, no comment, of a variable nothing but its name.
    pub plain: bool,
}

/// What is read inside of something: the line itself, a substitution, a subshell.
#[derive(Debug, Default)]
struct Frame {
    words: Vec<String>,
    word: Option<String>,
    /// Inside double quotes.
    quoted: bool,
    /// The next word is the file of a redirection.
    redirected: bool,
    /// The next word ends a here-document.
    documented: bool,
    /// What ends it.
    close: Option<char>,
}

struct Reader<'a> {
    rest: &'a str,
    outer: Vec<Frame>,
    frame: Frame,
    /// The words that end the here-documents which begin with the next line; `None` within one.
    documents: Option<Vec<String>>,
    line: Line,
}

impl Line {
    /// Reads a line.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::read(text, Some(Vec::new()))
    }

    fn read(text: &str, documents: Option<Vec<String>>) -> Self {
        let mut reader = Reader {
            rest: text,
            outer: Vec::new(),
            frame: Frame::default(),
            documents,
            line: Self {
                plain: !text.chars().any(is_odd),
                ..Self::default()
            },
        };
        while let Some(c) = reader.next() {
            if reader.frame.quoted {
                reader.in_quotes(c);
            } else {
                reader.bare(c);
            }
        }
        reader.finish()
    }
}

/// Whether no honest command has it: what is shown is not what is run.
fn is_odd(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Takes this text if it comes next.
    fn took(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn push(&mut self, c: char) {
        self.frame.word.get_or_insert_default().push(c);
    }

    fn in_quotes(&mut self, c: char) {
        match c {
            '"' => self.frame.quoted = false,
            '\\' if self.took("\n") => {}
            '\\' if self.rest.starts_with(['$', '`', '"', '\\']) => {
                let escaped = self.next().unwrap_or(c);
                self.push(escaped);
            }
            '`' => self.backtick(),
            '$' if self.took("(") => self.substitute(')'),
            '$' if self.rest.starts_with('{') => self.variable(),
            _ => self.push(c),
        }
    }

    fn bare(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '\r' => {
                // To a shell it is a letter as any other.
                self.line.plain &= self.rest.is_empty() || self.rest.starts_with('\n');
                self.end_word();
            }
            '#' if self.frame.word.is_none() => self.comment(),
            '&' if self.took(">") => self.redirect('>'),
            '\n' => {
                self.end_command();
                self.here_documents();
            }
            ';' | '|' | '&' => self.end_command(),
            '"' => {
                self.frame.word.get_or_insert_default();
                self.frame.quoted = true;
            }
            '\'' => self.single_quotes(),
            '\\' if self.took("\n") => {}
            '\\' => match self.next() {
                Some(escaped) => self.push(escaped),
                None => self.line.plain = false,
            },
            '`' => self.backtick(),
            '$' | '<' | '>' if self.took("(") => self.substitute(')'),
            '$' if self.took("'") => self.escaped_quotes(),
            '$' if self.rest.starts_with('"') => self.line.plain = false,
            '$' if self.rest.starts_with('{') => self.variable(),
            '<' | '>' => self.redirect(c),
            '(' => {
                self.end_command();
                self.open(')');
            }
            ')' if self.frame.close == Some(')') => self.close(),
            ')' => {
                self.line.plain = false;
                self.end_command();
            }
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
            self.line.plain = false;
        }
    }

    /// `$'...'`. What the escapes stand for is not looked at here, only where it ends.
    fn escaped_quotes(&mut self) {
        self.line.plain = false;
        self.frame.word.get_or_insert_default();
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            self.push(c);
            if c == '\\'
                && let Some(escaped) = self.next()
            {
                self.push(escaped);
            }
        }
    }

    /// `${...}`: shells differ in how they read quotes in it, and some run what is in the variable.
    fn variable(&mut self) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let inner = self.rest.trim_start_matches('{');
        self.line.plain &= inner.len() + 1 == self.rest.len()
            && inner.trim_start_matches(is_name).starts_with('}');
        self.push('$');
    }

    /// A comment; some shells have none where a person may type.
    fn comment(&mut self) {
        self.line.plain = false;
        let ticked = self.frame.close == Some('`');
        let ends = |c: char| c == '\n' || ticked && c == '`';
        self.rest = self.rest.find(ends).map_or("", |at| &self.rest[at..]);
    }

    /// Takes the here-documents that begin here. They may be scripts, and their quotes end with them.
    fn here_documents(&mut self) {
        for end in self
            .documents
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
        {
            let rest = self.rest;
            let (mut body, mut after) = (rest, "");
            let mut at = 0;
            for line in rest.split_inclusive('\n') {
                let said = line.trim_end_matches('\n').trim_start_matches('\t');
                if said == end || end.strip_prefix('-') == Some(said) {
                    (body, after) = (&rest[..at], &rest[at + line.len()..]);
                    break;
                }
                at += line.len();
            }
            self.rest = after;
            self.line.commands.extend(Line::read(body, None).commands);
        }
    }

    fn backtick(&mut self) {
        if self.frame.close == Some('`') {
            self.close();
        } else {
            self.substitute('`');
        }
    }

    /// A substitution: what comes of it is a part of the word around it.
    fn substitute(&mut self, close: char) {
        self.frame.word.get_or_insert_default();
        self.open(close);
    }

    fn open(&mut self, close: char) {
        self.line.plain = false;
        let inner = Frame {
            close: Some(close),
            ..Frame::default()
        };
        self.outer.push(std::mem::replace(&mut self.frame, inner));
    }

    fn close(&mut self) {
        self.end_command();
        self.frame = self.outer.pop().unwrap_or_default();
    }

    /// A redirection, whose first sign was read.
    fn redirect(&mut self, sign: char) {
        let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        if self.frame.word.as_ref().is_some_and(is_number) {
            self.frame.word = None;
        }
        self.end_word();
        let length = self.rest.len() - self.rest.trim_start_matches(['<', '>', '|', '&']).len();
        let (more, rest) = self.rest.split_at(length);
        self.rest = rest;
        let ends = |rest: &&str| {
            rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '|', '&', ')'])
        };
        let other = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        if more.ends_with('&') && other.len() < rest.len() && ends(&other) {
            self.rest = other;
            return;
        }
        self.rest = rest.trim_start_matches([' ', '\t']);
        let nowhere = self.rest.strip_prefix("/dev/null");
        if let Some(rest) = nowhere.filter(ends) {
            self.rest = rest;
            return;
        }
        self.line.plain = false;
        self.frame.words.push(format!("{sign}{more}"));
        // The word of a here-document is no file.
        self.frame.redirected = !more.starts_with('<');
        self.frame.documented = sign == '<' && more == "<";
    }

    fn end_word(&mut self) {
        if let Some(word) = self.frame.word.take() {
            if std::mem::take(&mut self.frame.redirected) {
                self.line.files.push(word.clone());
            }
            if std::mem::take(&mut self.frame.documented)
                && let Some(documents) = &mut self.documents
            {
                documents.push(word.clone());
            }
            self.frame.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.frame.words);
        if !words.is_empty() {
            self.line.commands.push(words);
        }
    }

    fn finish(mut self) -> Line {
        loop {
            self.line.plain &= !self.frame.quoted;
            self.end_command();
            match self.outer.pop() {
                Some(frame) => self.frame = frame,
                None => return self.line,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, bool) {
        let line = Line::of(text);
        let commands = line.commands.iter().map(|words| words.join("|"));
        (commands.collect(), line.plain)
    }

    #[test]
    fn lines_are_split_into_commands() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" \t\n;;", &[]),
            ("git status", &["git|status"]),
            (
                "a;b&&c||d|e&f\ng|&h",
                &["a", "b", "c", "d", "e", "f", "g", "h"],
            ),
            (r#"echo "a;b" 'c&&d' e\;f"#, &["echo|a;b|c&&d|e;f"]),
            (r#"r''m "-r"f "" x"#, &["rm|-rf||x"]),
            ("git \\\n status", &["git|status"]),
            (r#"echo "a\"b\$c\d""#, &[r#"echo|a"b$c\d"#]),
            ("cargo test 2>&1 >/dev/null", &["cargo|test"]),
            ("cargo test &>/dev/null; ls", &["cargo|test", "ls"]),
            (
                "cargo test 2> /dev/null | tail -n1",
                &["cargo|test", "tail|-n1"],
            ),
            ("ls >&-", &["ls"]),
            (
                "git log --format='%h' $HOME \"${X}\" a#b",
                &["git|log|--format=%h|$HOME|${X}|a#b"],
            ),
        ];
        for (text, want) in cases {
            let (commands, plain) = read(text);
            assert_eq!(commands, *want, "{text}");
            assert!(plain, "{text}");
        }
    }

    #[test]
    fn what_is_hidden_in_a_line_is_found_and_makes_it_not_plain() {
        let cases: &[(&str, &[&str])] = &[
            ("git $(rm x) log", &["rm|x", "git||log"]),
            (r#"git "a $(rm "b c") d" log"#, &["rm|b c", "git|a  d|log"]),
            ("echo `rm x`y z", &["rm|x", "echo|y|z"]),
            ("echo \"`rm x`\"", &["rm|x", "echo|"]),
            ("diff <(rm a) >(rm b)", &["rm|a", "rm|b", "diff||"]),
            ("(cd x; rm y) && ls", &["cd|x", "rm|y", "ls"]),
            ("echo $((1+2))", &["1+2", "echo|"]),
            ("case x in a) rm y;; esac", &["case|x|in|a", "rm|y", "esac"]),
            ("echo a > .env", &["echo|a|>|.env"]),
            ("echo a >>.env 2>&1", &["echo|a|>>|.env"]),
            ("echo a >& b", &["echo|a|>&|b"]),
            ("echo a >/dev/nullx", &["echo|a|>|/dev/nullx"]),
            ("cat <<EOF\nrm x\nEOF", &["cat|<<|EOF", "rm|x"]),
            (
                "cat <<'E' <<-F; a\nit's\nE\n<<G \"\n\tF\nrm x",
                &["cat|<<|E|<<|-F", "a", "its\n", "<<|G|\n", "rm|x"],
            ),
            ("cat <<E\nrm x", &["cat|<<|E", "rm|x"]),
            ("git log # 'a\nrm x # b'", &["git|log", "rm|x"]),
            ("a `b # c` d", &["b", "a||d"]),
            ("git log ${x@P}", &["git|log|${x@P}"]),
            ("git \"${x#'\"'}\"", &["git|${x#'}\""]),
            ("git log >&1x", &["git|log|>&|1x"]),
            ("git\rlog", &["git|log"]),
            ("echo 'a; rm x", &["echo|a; rm x"]),
            ("echo \"a; rm x", &["echo|a; rm x"]),
            ("echo $(rm", &["rm", "echo|"]),
            ("echo a\\", &["echo|a"]),
            (r"$'\x72m' x", &[r"\x72m|x"]),
            (r"a $'b\'c'; rm x", &[r"a|b\'c", "rm|x"]),
            ("git status\u{8}\u{8}", &["git|status\u{8}\u{8}"]),
            ("git\0status", &["git\0status"]),
        ];
        for (text, want) in cases {
            let (commands, plain) = read(text);
            assert_eq!(commands, *want, "{text:?}");
            assert!(!plain, "{text:?}");
        }
    }

    #[test]
    fn files_of_redirections_are_named() {
        let line = Line::of("a > x; b 2>>'y z' <w; cat <<E; d 2>&1 >/dev/null &> v >| u");
        assert_eq!(line.files, ["x", "y z", "w", "v", "u"]);
    }
}
