//! Command patterns, and their matching against command lines.

mod form;

use super::line::{Candidate, ShellLines, pattern};
use super::wild::wild;
use form::{check_allowed, check_text, check_words};

/// Command pattern: `git status`, `git *`, `npm run test:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    /// For rules that allow: the words joined by [`WORD_SEPARATOR`]. One of the forms must match.
    forms: Vec<String>,
    /// For rules that deny or ask: the words joined by spaces.
    loose_forms: Vec<String>,
}

/// Separator between two words. It occurs in no word, so that a word with a space never matches two words of
/// a pattern.
const WORD_SEPARATOR: &str = "\0";

impl CommandPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// It is not a single command, and could never match.
    pub fn new(text: &str) -> Result<Self, String> {
        check_text(text)?;
        let line = pattern(text);
        if line.simple && line.commands.is_empty() {
            return Err(format!(
                "{text:?} contains no command; use * for every command"
            ));
        }
        let [words] = line.commands.as_slice() else {
            return Err(format!(
                "{text:?} is not one command: lines are split at ; & | and line ends; write one pattern for each \
                     command"
            ));
        };
        if !line.simple {
            return Err(format!(
                "{text:?} has a substitution, a redirection or an open quote; a pattern must consist of words and *"
            ));
        }
        check_words(text, words)?;
        Ok(Self {
            forms: forms(words, WORD_SEPARATOR),
            loose_forms: forms(words, " "),
        })
    }

    /// Rejects a pattern that matches only lines outside the grammar of allowed lines.
    ///
    /// # Errors
    /// No line that matches the pattern can be allowed.
    pub fn check_allowed(&self, text: &str) -> Result<(), String> {
        let first = self
            .forms
            .first()
            .and_then(|form| form.split(WORD_SEPARATOR).next());
        check_allowed(text, first.unwrap_or_default())
    }

    /// Returns `true` if the pattern matches a command, given as its words joined by [`WORD_SEPARATOR`].
    fn matches(&self, command: &str) -> bool {
        self.forms.iter().any(|form| wild(form, command))
    }

    /// Returns `true` if a command that may begin in the text matches the pattern.
    fn is_in(&self, candidate: &Candidate) -> bool {
        let Candidate { text, starts } = candidate;
        let is_form_in = |form: &String| {
            let Some((beginning, _)) = form.split_once('*') else {
                let start = text.len().checked_sub(form.len());
                let may_start = |at: usize| starts.binary_search(&at).is_ok();
                return text.ends_with(form.as_str()) && start.is_some_and(may_start);
            };
            // A match from a later start is a match from the first start with this beginning, too: the star
            // takes the rest.
            let mut commands = starts.iter().map(|start| &text[*start..]);
            let first = commands.find(|command| command.starts_with(beginning));
            first.is_some_and(|command| wild(form, command))
        };
        self.loose_forms.iter().any(is_form_in)
    }
}

/// Returns the texts that a pattern of these words stands for, with `*` for any text.
fn forms(words: &[String], between: &str) -> Vec<String> {
    let text = words.join(between);
    let behind = format!("{between}*");
    match (text.strip_suffix(":*"), text.strip_suffix(&behind)) {
        (Some(start), _) => vec![
            start.to_owned(),
            format!("{start}{behind}"),
            format!("{start}:*"),
        ],
        (None, Some(start)) => vec![start.to_owned(), format!("{start}{behind}")],
        (None, None) => vec![text],
    }
}

/// Returns `true` if one of these patterns matches a command as written.
pub fn names(patterns: &[CommandPattern], words: &[String]) -> bool {
    let command = words.join(WORD_SEPARATOR);
    !runs_file_of_git(words) && patterns.iter().any(|pattern| pattern.matches(&command))
}

/// Returns `true` if git would run a file that no pattern covers: for `git log:/../x` it runs
/// `git-log:/../x`.
fn runs_file_of_git(words: &[String]) -> bool {
    let [program, command, ..] = words else {
        return false;
    };
    let is_path = command.contains(|c: char| c == '/' || c.is_whitespace());
    program == "git" && is_path && !command.starts_with('-')
}

/// Returns `true` if the line may run a command, in any reading, that one of these patterns matches.
pub fn touches(patterns: &[CommandPattern], line: &ShellLines) -> bool {
    let mut candidates = line.candidates.iter();
    candidates.any(|candidate| patterns.iter().any(|pattern| pattern.is_in(candidate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
        let patterns = texts.iter().map(|text| CommandPattern::new(text));
        patterns.collect::<Result<_, _>>().unwrap()
    }

    fn covers(patterns: &[CommandPattern], line: &ShellLines) -> bool {
        let named = |words: &Vec<String>| names(patterns, words);
        line.plain && !line.commands.is_empty() && line.commands.iter().all(named)
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
                covers(&patterns, &ShellLines::of(command)),
                want,
                "{pattern} {command}"
            );
            assert_eq!(
                touches(&patterns, &ShellLines::of(command)),
                want,
                "{pattern} {command}"
            );
        }
    }

    #[test]
    fn impossible_pattern_is_refused() {
        for pattern in [
            "", " ", "a | b", "a; b", "a && b", "a $(b)", "a > b", "a 'b",
        ] {
            let error = CommandPattern::new(pattern).unwrap_err();
            assert!(error.contains(&format!("{pattern:?}")), "{error}");
        }
    }

    #[test]
    fn allow_checks_every_command_without_unwrapping() {
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
            ("git 'log /../x' y", false),
            ("git log:/../x", false),
            ("git ../x", false),
            ("git -C ../x log", true),
            ("git\rx/../y", false),
            // Shells differ in these lines.
            ("git status &>/dev/null touch x", false),
            ("git log a}\necho x", false),
            ("git log $HOME", false),
            ("git status\r\ngit log", false),
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
            assert_eq!(covers(&patterns, &ShellLines::of(line)), want, "{line}");
        }
    }

    #[test]
    fn quoted_blank_does_not_match_two_words_of_a_pattern() {
        for (pattern, line, want) in [
            ("git log:*", "git 'log /../../bin/touch' F", false),
            ("git log:*", "git log\\ /../evil", false),
            ("git log:*", "git \"log /../evil\"", false),
            ("git log *", "git 'log\t/../evil'", false),
            ("git log *", "git 'log /../evil'", false),
            ("git log *", "git 'log\nx'", false),
            ("git log*", "git 'log /../evil'", false),
            ("git log*", "git log/../evil", false),
            ("git log:*", "git log:/../evil", false),
            ("git log:*", "git 'log' 'a b'", true),
            ("git log:*", "git log --format='%h %s' x/y", true),
            ("git log*", "git log -p x/y", true),
            ("npm run test:*", "npm 'run test'", false),
            ("npm run test:*", "npm run 'test x'", false),
            ("npm run test:*", "npm run '' test", false),
            ("cargo test:*", "cargo 'test /../evil'", false),
            ("git commit -m 'a b'", "git commit -m a b", false),
            ("git commit -m 'a *'", "git commit -m 'a c d'", true),
            ("* --version", "rustc '--version'", true),
            ("* --version", "rustc 'x --version'", false),
        ] {
            let patterns = patterns(&[pattern]);
            assert_eq!(
                covers(&patterns, &ShellLines::of(line)),
                want,
                "{pattern} {line}"
            );
            assert!(!want || touches(&patterns, &ShellLines::of(line)), "{line}");
        }
        // A rule that denies ignores whether the space is inside a word.
        let patterns = patterns(&["git push:*"]);
        assert!(touches(&patterns, &ShellLines::of("git 'push x' y")));
    }

    #[test]
    fn deny_unwraps_command_prefixes() {
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
            assert!(touches(&patterns, &ShellLines::of(line)), "{line}");
        }
        for line in [
            "",
            "ls",
            "echo rm x",
            "git log --grep 'rm x'",
            "git pull",
            "rmdir x",
            // Not visible to patterns: names that only the shell computes.
            "X=rm; $X y",
            "/bin/r? x",
            "./cleanup.sh",
            "echo 'rm x' | sh",
        ] {
            assert!(!touches(&patterns, &ShellLines::of(line)), "{line}");
        }
    }

    #[test]
    fn deny_checks_every_shell_reading_of_a_line() {
        let patterns = patterns(&["rm *", "git push *"]);
        for line in [
            "ls &>/dev/null rm x",
            "ls &>/dev/null /bin/rm x",
            "git >x push",
            "rm >y x",
            "env '-Srm x'",
            "env -vS'rm x'",
            "env --split-string='rm x'",
            r"env '-Srm\_x'",
            "env -i '--split-string=A=1 rm x'",
            r"echo `ls \`rm x\``",
            r#"echo "`echo \"$(rm x)\"`""#,
            r"echo `echo \`echo \\\`rm x\\\`\``",
            "echo $(case a in a) rm x;; esac)",
            "echo \"$(case a in a) rm x;; esac)\"",
            "echo \"$(case a in (a) rm x;; esac)\"",
            "A[$i]=1 rm x",
            "A[1 + 2]=1 rm x",
            "A[$(ls)]+=1 rm x",
            "{fd}>o rm x",
            "exec {fd}>o; rm x",
            "cat <<E\nit's $(rm x)\nE",
            "((a<<2))\necho \"\n2\n\"; rm x",
            "echo ${x:-$(rm x)}",
            "echo \"${x#'\"'}\"; rm x",
            "echo \"${x:-'}\"; rm x # '",
            "echo ${ rm x;}",
            r"$'\x72m' x",
            "$\"rm\" x",
            "ls # it's\nrm x",
            "for f (a b) rm x",
            "repeat 3 rm x",
            "noglob rm x",
            "- rm x",
            "=rm x",
            "ls *(e:'rm x':)",
            "alias a='rm x'; a",
            "test 'a[$(rm x)]' -eq 1",
            "[ 'a[$(rm x)]' -eq 1 ]",
            "printf -v 'a[`rm x`]' b",
            "ls &!rm x",
            "ls; {rm x; }",
            "ls; >&-rm x",
            "ls; {sudo rm x; }",
            "fish -c 'rm x'",
            "pwsh -c 'rm x'",
            "su --command='rm x'",
            "echo \"a; rm x",
            "cat <<E\n`rm x`\nE",
            "emulate sh -c 'rm x'",
            "emulate -R zsh -c 'ls; rm x'",
            "mapfile -C 'rm x' -c1 a",
            "readarray -c1 -C'rm x' a",
            "compgen -C 'rm x'",
            "complete -C 'rm x' y",
            "trap -- 'rm x' EXIT",
            "fc -e 'rm x'",
            "bind -x '\"\\C-x\": rm x'",
            "sched +1 rm x",
            "zargs a -- rm x",
            "linux64 rm x",
            "linux32 -R /bin/rm x",
            "i386 rm x",
            "setpriv --reuid=1000 rm x",
            "choom -n 5 -- rm x",
            "sg users 'rm x'",
            "sg users -c 'ls; rm x'",
            "start-stop-daemon --start --exec /bin/rm -- x",
            "start-stop-daemon --start --exec=/bin/rm -- x",
            "fakeroot -- rm x",
            "ltrace -f rm x",
            "valgrind --tool=none rm x",
            "gosu nobody rm x",
            "run0 --user=root rm x",
            "bwrap --bind / / rm x",
            "systemd-run --user -- rm x",
            "hash -p /bin/rm z; z x",
            "hash z=/bin/rm; z x",
            "alias a=/bin/rm; a x",
            "\"$SHELL\" -c 'rm x'",
            "$SHELL -c 'rm x'",
            "${SHELL:-sh} -c 'rm x'",
            "\"$0\" -c 'rm x'",
            "$(which bash) -c 'rm x'",
            "`which bash` -c 'rm x'",
            "\"$(which bash)\" -c 'rm x'",
            "X=1 \"$BASH\" -lc 'ls; rm x'",
        ] {
            assert!(touches(&patterns, &ShellLines::of(line)), "{line}");
        }
        for words in ["A=1 ", "a "] {
            let line = format!("env {} rm x", words.repeat(10_000));
            assert!(touches(&patterns, &ShellLines::of(&line)));
        }
    }
}
