//! Commands that a command may run: programs after `env`, `sudo`, `xargs` and the like, and lines in its
//! words.

use super::common;

/// Programs and shell words that run the command after them.
#[rustfmt::skip]
pub const COMMAND_RUNNERS: &[&str] = &[
    "!", "-", ".", "alias", "always", "ash", "bash", "bind", "builtin", "busybox", "bwrap", "capsh", "case", "choom",
    "chroot", "chrt", "command", "compgen", "complete", "coproc", "cpulimit", "csh", "dash", "dbus-run-session", "do",
    "doas", "dumb-init", "eatmydata", "elif", "else", "elvish", "emulate", "env", "eval", "exec", "fakechroot",
    "fakeroot", "faketime", "fc", "find", "firejail", "fish", "flock", "for", "foreach", "function", "gosu", "hash",
    "hist", "hyperfine", "i386", "if", "ionice", "ksh", "ksh93", "linux32", "linux64", "lksh", "ltrace", "mapfile",
    "mksh", "nice", "nocorrect", "noglob", "nohup", "nsenter", "nu", "numactl", "parallel", "pdksh", "perf", "pkexec",
    "posh", "prlimit", "proot", "pwsh", "rbash", "readarray", "repeat", "rlwrap", "run0", "runuser", "sched", "screen",
    "script", "select", "setarch", "setpriv", "setsid", "sg", "sh", "source", "start-stop-daemon", "stdbuf", "strace",
    "su", "su-exec", "sudo", "systemd-run", "taskset", "tcsh", "then", "time", "timeout", "tini", "tmux", "toybox",
    "trap", "uname26", "unbuffer", "unshare", "until", "valgrind", "watch", "while", "x86_64", "xargs", "xonsh",
    "xvfb-run", "yash", "zargs", "zsh", "{", "}",
];

/// Maximum number of letters before the value of an option in the same word: `-Srm x`, `-vSrm x`.
const LETTERS: usize = 4;

/// Text with possible starts of commands; each command extends to the end of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub text: String,
    /// Byte offsets in `text`, in ascending order.
    pub starts: Vec<usize>,
}

/// Returns the commands that these words may run, and the words that are to be parsed as lines.
pub fn candidates(words: &[String]) -> (Vec<Candidate>, Vec<String>) {
    let mut text = JoinedWords::default();
    let skipped = skip_assignments(words);
    let first = words.get(skipped).map_or("", String::as_str);
    let program = base(first);
    let program = match program.trim_start_matches(['=', '{']) {
        "" => program,
        program => program,
    };
    // The program named by a variable or a substitution may be a shell: `"$SHELL" -c 'rm x'`.
    let is_unknown = first.is_empty() || first.starts_with('$');
    let is_launcher = is_unknown || COMMAND_RUNNERS.binary_search(&program).is_ok();
    // `test 'a[$(rm x)]' -eq 1` runs `rm` in some shells.
    let is_evaluator = program == "[" || common::is_language(program);
    let mut lines = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let starts = at == 0 || at == skipped || is_launcher && at > skipped;
        text.push(word, starts);
        let is_evaluated = is_evaluator && word.contains(['$', '`']);
        if (is_launcher || is_evaluated) && at > skipped {
            lines.extend(inner_lines(word));
        }
        // `bind -x '"\C-x": rm x'` has the keys before the line.
        if program == "bind" {
            lines.extend(word.split_once(':').map(|(_, line)| line.to_owned()));
        }
    }
    let mut found = Vec::new();
    if let Some(first) = words.get(skipped) {
        text.add_qualifier(first, &words[..skipped]);
        // `{rm,-rf,x}` is `rm -rf x`.
        if first.starts_with('{') && first.contains(',') {
            let mut expanded = JoinedWords::default();
            for word in first.split(['{', '}', ',']).filter(|word| !word.is_empty()) {
                expanded.push(word, expanded.text.is_empty());
            }
            for word in &words[skipped + 1..] {
                expanded.push(word, false);
            }
            found.extend(expanded.finish());
        }
    }
    found.extend(text.finish());
    (found, lines)
}

/// Returns the number of words before a command that are assignments.
fn skip_assignments(words: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        // `A[x y]=1` may be several words.
        at = match assigned(word) {
            Assigned::Whole => at + 1,
            Assigned::Begun => {
                let ends = |word: &String| word.contains("]=") || word.contains("]+=");
                match words[at + 1..].iter().position(ends) {
                    Some(more) => at + more + 2,
                    None => break,
                }
            }
            Assigned::Not if is_sign(word) && words.len() > at + 1 => at + 2,
            Assigned::Not => break,
        };
    }
    // Assignments without a command are considered as written.
    if at < words.len() { at } else { 0 }
}

enum Assigned {
    Whole,
    /// Assigns, with a subscript that ends in a later word.
    Begun,
    Not,
}

fn assigned(word: &str) -> Assigned {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let name = word.bytes().take_while(|b| is_name(*b)).count();
    let rest = &word[name..];
    if name == 0 {
        return Assigned::Not;
    }
    if rest.starts_with('=') || rest.starts_with("+=") {
        return Assigned::Whole;
    }
    if !rest.starts_with('[') {
        return Assigned::Not;
    }
    if rest.contains("]=") || rest.contains("]+=") {
        return Assigned::Whole;
    }
    Assigned::Begun
}

/// Returns `true` if a word is a redirection operator, which is followed by its file.
fn is_sign(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "<>|&".contains(c))
}

/// Returns the name of a program without its path.
fn base(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    if name.is_empty() { program } else { name }
}

/// Returns the lines that a word after a launcher may contain: `bash -c 'rm x'`, `env -S'rm x'`, `env
/// --split-string='rm x'`.
fn inner_lines(word: &str) -> Vec<String> {
    let is_line =
        |text: &&str| text.contains(|c: char| c.is_whitespace() || ";&|(`<>\\".contains(c));
    let mut lines: Vec<String> = Vec::new();
    for text in values(word)
        .map(|at| &word[at..])
        .chain([word])
        .filter(is_line)
    {
        lines.push(text.to_owned());
        // `env -S` has its own escapes.
        if word.starts_with('-') && text.contains('\\') {
            let escapes = [r"\_", r"\t", r"\n", r"\f", r"\r", r"\v"];
            let spaced = escapes
                .iter()
                .fold(text.to_owned(), |text, escape| text.replace(escape, " "));
            lines.push(spaced);
        }
    }
    lines
}

/// Returns the offsets in a word at which the value of an option may begin.
fn values(word: &str) -> impl Iterator<Item = usize> {
    let letters = word.starts_with('-') && !word.starts_with("--");
    let letters = word
        .char_indices()
        .skip(2)
        .take(LETTERS)
        .filter(move |_| letters);
    let value = word.find('=').map(|at| at + 1);
    letters.map(|(at, _)| at).chain(value)
}

/// Returns the offset after the variables at the start of a word: `${x}rm` is `rm` if `x` is empty.
fn behind_variables(word: &str) -> usize {
    let mut at = 0;
    while let Some(rest) = word[at..].strip_prefix('$') {
        at += match rest.chars().next() {
            Some('{') => rest.find('}').map_or(word.len() - at, |end| end + 2),
            Some('@' | '*' | '0'..='9') => 2,
            _ => return at,
        };
    }
    at
}

/// Joined words, with the offsets at which commands may begin.
#[derive(Default)]
struct JoinedWords {
    text: String,
    starts: Vec<usize>,
}

impl JoinedWords {
    fn push(&mut self, word: &str, may_start: bool) {
        if !self.text.is_empty() || !self.starts.is_empty() {
            self.text.push(' ');
        }
        let at = self.text.len();
        self.text.push_str(word);
        if !may_start {
            return;
        }
        self.starts.push(at);
        self.starts.push(at + word.len() - base(word).len());
        let named = behind_variables(word);
        if named > 0 {
            self.starts.push(at + named);
        }
        // `=rm` is the path of `rm` in zsh, and `{rm` starts a group there.
        if word.starts_with(['=', '{']) {
            self.starts.push(at + 1);
        }
        if self.starts.len() > 2 {
            for value in values(word).filter(|value| *value < word.len()) {
                let name = base(&word[value..]).len();
                self.starts.extend([at + value, at + word.len() - name]);
            }
        }
    }

    /// Adds the start of code in a zsh glob qualifier: `*(e:rm x:)` runs `rm x`, `*(+rm)` runs `rm`.
    fn add_qualifier(&mut self, first: &str, before: &[String]) {
        let at: usize = before.iter().map(|word| word.len() + 1).sum();
        let code =
            first.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "^.@/=".contains(c));
        let sign = code.chars().next().filter(|c| ":+,%'\"".contains(*c));
        if let Some(sign) = sign {
            self.starts
                .push(at + first.len() - code.len() + sign.len_utf8());
        }
    }

    fn finish(mut self) -> Option<Candidate> {
        self.starts
            .retain(|start| *start < self.text.len() && self.text.is_char_boundary(*start));
        self.starts.sort_unstable();
        self.starts.dedup();
        (!self.text.is_empty()).then_some(Candidate {
            text: self.text,
            starts: self.starts,
        })
    }
}
