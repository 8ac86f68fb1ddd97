//! Patterns of commands, and what they see of a line.

use super::line::Line;
use super::wild::wild;

/// A pattern of commands: `git status`, `git *`, `npm run test:*`.
#[derive(Debug, Clone)]
pub struct CommandPattern {
    /// One of them has to fit.
    forms: Vec<String>,
}

/// Programs and words that run what stands behind them.
const LAUNCHERS: &[&str] = &[
    "!", "bash", "builtin", "busybox", "command", "coproc", "dash", "do", "doas", "elif", "else",
    "env", "eval", "exec", "find", "fish", "function", "if", "ionice", "ksh", "nice", "nohup",
    "parallel", "setsid", "sh", "stdbuf", "su", "sudo", "then", "time", "timeout", "trap", "until",
    "watch", "while", "xargs", "zsh", "{",
];

/// How many words behind a launcher are taken for the beginning of a command.
const BEGINNINGS: usize = 64;

/// How deep lines are looked for in words.
const DEEP: usize = 4;

impl CommandPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is not one command: it could never fit.
    pub fn new(text: &str) -> Result<Self, String> {
        let line = Line::of(text);
        if line.plain && line.commands.is_empty() {
            return Err(format!("{text:?} names no command: * is every command"));
        }
        let [words] = line.commands.as_slice() else {
            return Err(format!(
                "{text:?} is not one command: lines are split at ; & | and line ends, and each command is looked at by \
                 itself"
            ));
        };
        if !line.plain {
            return Err(format!(
                "{text:?} has a substitution, a redirection or an open quote: a pattern is words and *"
            ));
        }
        let text = words.join(" ");
        let forms = match (text.strip_suffix(":*"), text.strip_suffix(" *")) {
            (Some(start), _) => vec![start.to_owned(), format!("{start} *"), format!("{start}:*")],
            (None, Some(start)) => vec![start.to_owned(), format!("{start} *")],
            (None, None) => vec![text],
        };
        Ok(Self { forms })
    }

    fn fits(&self, command: &str) -> bool {
        self.forms.iter().any(|form| wild(form, command))
    }
}

/// Whether the line is nothing but commands that these patterns name, as they stand there.
#[must_use]
pub fn covers(patterns: &[CommandPattern], line: &Line) -> bool {
    let named = |words: &Vec<String>| {
        // `'git x/y'` is one word, and another program.
        let is_split = words.first().is_some_and(|program| program.contains(' '));
        let command = words.join(" ");
        !is_split && patterns.iter().any(|pattern| pattern.fits(&command))
    };
    line.plain && !line.commands.is_empty() && line.commands.iter().all(named)
}

/// Whether a command anywhere in the line is one that these patterns name, however it is dressed.
#[must_use]
pub fn touches(patterns: &[CommandPattern], line: &Line) -> bool {
    let mut hit = |command: &str| patterns.iter().any(|pattern| pattern.fits(command));
    line.commands
        .iter()
        .any(|words| reaches(words, DEEP, &mut hit))
}

/// Whether it is true of one of the commands that these words may run.
fn reaches(words: &[String], deep: usize, hit: &mut dyn FnMut(&str) -> bool) -> bool {
    if hit(&words.join(" ")) {
        return true;
    }
    let is_value = |word: &String| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_+[]".contains(&b))
        })
    };
    let mut words = words;
    while let [first, rest @ ..] = words {
        words = match rest {
            rest if is_value(first) => rest,
            [_, rest @ ..] if is_redirection(first) => rest,
            _ => break,
        };
    }
    let Some(first) = words.first() else {
        return false;
    };
    let program = base(first);
    if hit(&named(program, &words[1..])) {
        return true;
    }
    // `{rm,-rf,x}` is `rm -rf x`.
    if first.starts_with('{')
        && first.contains(',')
        && hit(first.replace(['{', '}', ','], " ").trim())
    {
        return true;
    }
    if !LAUNCHERS.contains(&program) {
        return false;
    }
    let mut beginnings = (1..words.len()).take(BEGINNINGS);
    if beginnings.any(|at| hit(&named(base(&words[at]), &words[at + 1..]))) {
        return true;
    }
    let is_line =
        |word: &&String| word.contains(|c: char| c.is_whitespace() || ";&|(`<>".contains(c));
    let lines = words[1..].iter().filter(is_line);
    deep > 0
        && lines
            .flat_map(|word| Line::of(word).commands)
            .any(|words| reaches(&words, deep - 1, hit))
}

/// Whether a word is the sign of a redirection, behind which its file stands.
fn is_redirection(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "<>|&".contains(c))
}

/// The name of a program without its path.
fn base(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    if name.is_empty() { program } else { name }
}

fn named(program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
        let patterns = texts.iter().map(|text| CommandPattern::new(text));
        patterns.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn patterns_name_commands() {
        for (pattern, command, want) in [
            ("git status", "git status", true),
            ("git status", "git  'status'", true),
            ("git status", "git status -s", false),
            ("git *", "git", true),
            ("git *", "git push -f", true),
            ("git *", "gitk", false),
            ("git:*", "git", true),
            ("git:*", "git log", true),
            ("git:*", "gitk", false),
            ("npm run test:*", "npm run test", true),
            ("npm run test:*", "npm run test:unit", true),
            ("npm run test:*", "npm run test -- x", true),
            ("npm run test:*", "npm run tests", false),
            ("git * main", "git push origin main", true),
            ("git * main", "git push main x", false),
            ("*", "anything at all", true),
            ("git commit -m \"a b\"", "git commit -m 'a b'", true),
        ] {
            let patterns = patterns(&[pattern]);
            assert_eq!(
                covers(&patterns, &Line::of(command)),
                want,
                "{pattern} {command}"
            );
            assert_eq!(
                touches(&patterns, &Line::of(command)),
                want,
                "{pattern} {command}"
            );
        }
    }

    #[test]
    fn a_pattern_that_could_never_fit_is_refused() {
        for pattern in [
            "", " ", "a | b", "a; b", "a && b", "a $(b)", "a > b", "a 'b",
        ] {
            let error = CommandPattern::new(pattern).unwrap_err();
            assert!(error.contains(&format!("{pattern:?}")), "{error}");
        }
    }

    #[test]
    fn allowing_looks_at_every_command_and_through_nothing() {
        let patterns = patterns(&["git *", "cargo test:*"]);
        for (line, want) in [
            ("git status", true),
            ("git status && cargo test -q 2>&1", true),
            ("git add . ; git commit -m 'a; rm b'", true),
            ("cargo test | git apply", true),
            ("", false),
            ("git status; rm x", false),
            ("git status\nrm x", false),
            ("git status & rm x", false),
            ("git status | rm x", false),
            ("git $(rm x)", false),
            ("git \"$(rm x)\"", false),
            ("git `rm x`", false),
            ("git diff <(rm x)", false),
            ("git log > x", false),
            ("git log < x", false),
            ("git 'log", false),
            ("git log # '\nrm x # '", false),
            ("git log \"${x#'\"'}\"; rm x \\'", false),
            ("git log >&1/../x", false),
            ("'git x/../y'", false),
            ("git\rx/../y", false),
            ("git \"log", false),
            ("git log\\", false),
            ("X=1 git log", false),
            ("env git log", false),
            ("sudo git log", false),
            ("/usr/bin/git log", false),
            ("(git log)", false),
            ("{ git log; }", false),
            ("if git log; then git log; fi", false),
            ("bash -c 'git log'", false),
        ] {
            assert_eq!(covers(&patterns, &Line::of(line)), want, "{line}");
        }
    }

    #[test]
    fn denying_looks_through_what_dresses_a_command() {
        let patterns = patterns(&["rm *", "git push *"]);
        for line in [
            "rm x",
            "ls; rm x",
            "ls && /bin/rm -r x",
            "X=1 Y=2 rm x",
            "env X=1 rm x",
            "sudo rm x",
            "sudo -u root nice -n 5 rm x",
            "timeout 5 git push --force",
            "r\\m x",
            "'rm' x",
            "r\"\"m x",
            "echo $(rm x)",
            "echo \"a $(rm x)\"",
            "echo `rm x`",
            "echo \"$(echo $(rm x))\"",
            "cat <(rm x)",
            "(cd y; rm x)",
            "{ rm x; }",
            "{rm,-rf,x}",
            "if true; then rm x; fi",
            "for f in a b; do rm $f; done",
            "! rm x",
            "bash -c 'rm x'",
            "sudo bash -lc \"cd y && rm x\"",
            "bash -c 'bash -c \"rm x\"'",
            "eval rm x",
            "eval 'rm x'",
            "find . -name '*.o' -exec rm {} +",
            "ls | xargs rm",
            "ls | xargs -n 1 /bin/rm -f",
            "f() { rm x; }; f",
            "rm x 'and no end",
            "bash <<E\nrm x\nE",
            "cat <<E\nit's\nE\nrm x",
            "ls # it's\nrm x",
            "echo $'it\\'s'; rm x",
            "> y rm x",
            "2>&1 <y X+=1 rm x",
            "trap 'rm x' EXIT",
            "coproc rm x",
            "function f { rm x; }",
        ] {
            assert!(touches(&patterns, &Line::of(line)), "{line}");
        }
        for line in [
            "",
            "ls",
            "echo rm x",
            "git log --grep 'rm x'",
            "git pull",
            "rmdir x",
            // What no pattern sees: names that only the shell makes.
            "X=rm; $X y",
            "/bin/r? x",
            "./cleanup.sh",
            "echo 'rm x' | sh",
        ] {
            assert!(!touches(&patterns, &Line::of(line)), "{line}");
        }
    }
}
