//! Finds the line of an agent's stderr that gives the cause of a failure.
//!
//! The last line is rarely the cause: runtimes end with their version, package runners with the path of a
//! log, and argument parsers with their usage. Each line gets a score; the first line with the highest score
//! is used.

use super::error::clip;
use super::printable::printable;

/// Prefixes of lines that report an error.
const BEGINNINGS: &[&str] = &[
    "error:",
    "error[",
    "fatal:",
    "fatal error",
    "panic:",
    "uncaught ",
    "exception in thread",
    "npm err! ",
    "npm error ",
    "pnpm: ",
    "segmentation fault",
    "bus error",
];

/// Phrases that name the cause of a failure.
const PHRASES: &[&str] = &[
    "command not found",
    ": not found",
    "404 not found",
    "is not in this registry",
    "no such file or directory",
    "permission denied",
    "cannot find module",
    "cannot find package",
    "no module named",
    "unknown option",
    "unknown argument",
    "unknown command",
    "unrecognized argument",
    "unrecognized option",
    "unexpected argument",
    "invalid option",
    "missing required",
    ": error:",
    "error while loading shared libraries",
    "error response from daemon",
    "out of memory",
    "eacces",
    "enoent",
    "eaddrinuse",
    "econnrefused",
    "enotfound",
    "enospc",
];

/// Words that often describe an error.
const WORDS: &[&str] = &[
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "unable to",
    "failed",
    "failure",
    "invalid",
    "missing",
    "not found",
    "denied",
    "refused",
    "unauthorized",
    "not logged in",
    "not supported",
    "must be",
    "requires",
    "required",
    "no such",
    "level=error",
    "unsupported",
];

/// Prefixes of lines that are never the cause, whatever else they contain.
const NEVER_CAUSES: &[&str] = &[
    "warn",
    "npm warn",
    "npm notice",
    "info",
    "debug",
    "note:",
    "tip:",
    "hint:",
    "at ",
    "usage:",
    "npm error a complete log",
    "npm err! a complete log",
    "npm error code",
    "npm err! code",
    "npm error errno",
    "npm error syscall",
    "npm error path",
    "for more information",
    "node.js v",
    "run with `rust_backtrace",
    "stack backtrace",
    "stack:",
    "code:",
    "errno:",
    "syscall:",
];

/// Maximum number of lines of [`cause_or_end`].
const END_LINES: usize = 3;

/// Returns the line that gives the cause, printable and clipped; `None` if no line looks like an error.
pub fn cause(stderr: &str) -> Option<String> {
    let text = printable(stderr);
    let lines: Vec<&str> = text.lines().collect();
    if let Some(line) = python_exception(&lines).or_else(|| rust_panic(&lines)) {
        return Some(clip(&line));
    }
    let mut best: Option<(u32, &str)> = None;
    for line in &lines {
        let score = score(line);
        if score > best.map_or(0, |(score, _)| score) {
            best = Some((score, line.trim()));
        }
    }
    best.map(|(_, line)| clip(line))
}

/// Returns the line that gives the cause, or the last line if no line looks like an error.
pub fn cause_or_last(stderr: &str) -> Option<String> {
    let last = || super::process_health::last_line(stderr).map(|line| clip(&printable(line)));
    cause(stderr).or_else(last)
}

/// Returns the line of a text for people that gives a cause, or its last lines in one if no line looks like an error.
/// Unlike the last line of stderr, that of such a text is seldom the reason.
pub fn cause_or_end(text: &str) -> Option<String> {
    let end = || {
        let lines = last_lines(text, END_LINES);
        let lines = lines.iter().map(|line| line.trim());
        let end = lines.collect::<Vec<_>>().join(" | ");
        (!end.is_empty()).then(|| clip(&end))
    };
    cause(text).or_else(end)
}

/// Returns the last lines that are not empty, at most `most`, made printable.
pub fn last_lines(stderr: &str, most: usize) -> Vec<String> {
    let text = printable(stderr);
    let lines = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.rev().take(most).map(str::to_owned).collect();
    lines.reverse();
    lines
}

/// Returns at most `most` lines of a program that failed: a crash that prints its frames below its message, as those of Node,
/// Rust and Go, from the message on; otherwise the last lines.
pub fn lines_of_cause(stderr: &str, most: usize) -> Vec<String> {
    let mut lines = last_lines(stderr, usize::MAX);
    let begins = |(n, line): (usize, &String)| {
        let is_message = line.contains("panicked at") || score(line) > 0;
        let follows = lines.iter().skip(n + 1).take(2);
        (is_message && follows.map(|line| line.trim_start()).any(is_frame)).then_some(n)
    };
    let last = lines.len().saturating_sub(most);
    let begin = lines.iter().enumerate().find_map(begins).unwrap_or(last);
    lines.drain(..begin.min(last));
    lines.truncate(most);
    lines
}

/// Returns `true` if the line begins the frames below the message of a crash.
fn is_frame(line: &str) -> bool {
    ["at ", "stack backtrace:", "goroutine "]
        .iter()
        .any(|frame| line.starts_with(frame))
}

/// Scores how likely the line gives the cause of a failure; 0 if it does not look like one.
fn score(line: &str) -> u32 {
    let lower = line.trim().to_lowercase();
    let begins = |beginnings: &[&str]| beginnings.iter().any(|b| lower.starts_with(b));
    let holds = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    if lower.is_empty() || begins(NEVER_CAUSES) {
        return 0;
    }
    if begins(BEGINNINGS) || holds(PHRASES) || names_error(line.trim()) {
        return 3;
    }
    let is_logged_error = line
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| matches!(word, "ERROR" | "FATAL" | "CRITICAL" | "PANIC"));
    if is_logged_error || holds(WORDS) {
        return 2;
    }
    let counts = lower.contains("0 error") || lower.contains("no error");
    u32::from(lower.contains("error") && !counts)
}

/// Returns `true` if the line begins with the name of an error or exception and a colon: `TypeError: …`.
fn names_error(line: &str) -> bool {
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let Some((name, _)) = line.split_once(':') else {
        return false;
    };
    // Node adds a code: `Error [ERR_MODULE_NOT_FOUND]: …`.
    let name = name.split(" [").next().unwrap_or_default();
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "._".contains(c));
    is_name && (name.ends_with("Error") || name.ends_with("Exception"))
}

/// Returns the exception at the end of the last Python traceback.
fn python_exception(lines: &[&str]) -> Option<String> {
    let header = |line: &&str| line.trim_end() == "Traceback (most recent call last):";
    let begin = lines.iter().rposition(header)?;
    let is_end = |line: &&&str| !line.trim().is_empty() && !line.starts_with([' ', '\t']);
    let end = lines[begin + 1..].iter().find(is_end)?;
    Some(end.trim().to_owned())
}

/// Returns the location of a Rust panic with its message, which Rust prints on the next line.
fn rust_panic(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| {
        let line = line.trim_start();
        line.starts_with("thread '") && line.contains("panicked at")
    })?;
    let place = lines[at].trim();
    let message = lines.get(at + 1).map(|line| line.trim());
    Some(match message.filter(|_| place.ends_with(':')) {
        Some(message) => format!("{place} {message}"),
        None => place.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_line_is_found_in_stderr() {
        let cases = [
            // node
            (
                "node:internal/modules/cjs/loader:1386\n  throw err;\n  ^\n\nError: Cannot find module '/srv/agent.js'\n    \
                 at Function._resolveFilename (node:internal/modules/cjs/loader:1383:15)\n  code: 'MODULE_NOT_FOUND',\n  \
                 requireStack: []\n}\n\nNode.js v22.18.0\n",
                "Error: Cannot find module '/srv/agent.js'",
            ),
            (
                "(node:7) Warning: an experimental feature is used\n/srv/agent.js:3\nlet x = ;\n        ^\n\nSyntaxError: \
                 Unexpected token ';'\n    at wrapSafe (node:internal:1:1)\n\nNode.js v20.1.0\n",
                "SyntaxError: Unexpected token ';'",
            ),
            (
                "node:internal/modules/esm/resolve:275\n    throw new ERR_MODULE_NOT_FOUND(\n          ^\n\nError \
                 [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/agent.mjs\n    at x\n\nNode.js v22.1.0",
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/agent.mjs",
            ),
            // npm and npx
            (
                "npm warn deprecated a@1: no longer supported, the request failed\nnpm error code E404\nnpm error 404 Not \
                 Found - GET https://registry.npmjs.org/nope - Not found\nnpm error 404\nnpm error 404  'nope@*' is not \
                 in this registry.\nnpm error A complete log of this run can be found in: /root/.npm/_logs/x.log\n",
                "npm error 404 Not Found - GET https://registry.npmjs.org/nope - Not found",
            ),
            // Python
            (
                "INFO starting\nTraceback (most recent call last):\n  File \"/srv/agent.py\", line 3, in <module>\n    \
                 import acp\nModuleNotFoundError: No module named 'acp'\n",
                "ModuleNotFoundError: No module named 'acp'",
            ),
            (
                "Traceback (most recent call last):\n  File \"a\", line 1\nKeyError: 'x'\n\nDuring handling of the above \
                 exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a\", line \
                 2\n    f()\nagent.config.NoKey: set AGENT_KEY first\n",
                "agent.config.NoKey: set AGENT_KEY first",
            ),
            (
                "usage: agent [-h] [--model MODEL]\nagent: error: unrecognized arguments: --acp\n",
                "agent: error: unrecognized arguments: --acp",
            ),
            // Rust
            (
                "\nthread 'main' panicked at src/main.rs:2:5:\nthe config is empty\nnote: run with `RUST_BACKTRACE=1` \
                 environment variable to display a backtrace\n",
                "thread 'main' panicked at src/main.rs:2:5: the config is empty",
            ),
            (
                "Error: could not read the configuration\n\nCaused by:\n    No such file or directory (os error 2)\n",
                "Error: could not read the configuration",
            ),
            (
                "error: unexpected argument '--acp' found\n\n  tip: to pass '--acp' as a value, use '-- --acp'\n\nUsage: \
                 agent [OPTIONS]\n\nFor more information, try '--help'.\n",
                "error: unexpected argument '--acp' found",
            ),
            // Others
            (
                "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n",
                "panic: runtime error: index out of range",
            ),
            ("sh: 1: my-agent: not found\n", "sh: 1: my-agent: not found"),
            (
                "starting up\n/bin/agent: line 3: node: command not found\ncleaning up\n",
                "/bin/agent: line 3: node: command not found",
            ),
            (
                "env: ‘node’: No such file or directory\n",
                "env: ‘node’: No such file or directory",
            ),
            (
                "agent: error while loading shared libraries: libssl.so.3: cannot open shared object file\n",
                "agent: error while loading shared libraries: libssl.so.3: cannot open shared object file",
            ),
            (
                "Agent 1.2\n\nOptions:\n  --model   the model\n  --help    show help  [boolean]\n\nUnknown argument: acp\n",
                "Unknown argument: acp",
            ),
            (
                "2026-11-22T10:00:00Z  INFO agent: hello\n2026-11-22T10:00:01Z ERROR agent: no key is set\nbye\n",
                "2026-11-22T10:00:01Z ERROR agent: no key is set",
            ),
            (
                "\x1b[31mError:\x1b[0m You are not logged in.\nSee https://x\n",
                "Error: You are not logged in.",
            ),
            (
                "checked, 0 errors\nthe socket had an error\nbye\n",
                "the socket had an error",
            ),
        ];
        for (stderr, want) in cases {
            assert_eq!(cause(stderr).as_deref(), Some(want), "{stderr}");
        }
    }

    #[test]
    fn crash_with_many_frames_is_shown_from_its_message_on() {
        let frames = |frame: &str| format!("{frame}\n").repeat(20);
        let node = format!(
            "starting\nError: no key\n{}Node.js v22\n",
            frames("    at f (a.js:1:1)")
        );
        let rust = format!(
            "thread 'main' panicked at src/a.rs:1:1:\nno key\nstack backtrace:\n{}",
            frames("   0: f")
        );
        let python = format!(
            "Traceback (most recent call last):\n{}KeyError: 'key'\n",
            frames("  File \"a\", line 1")
        );
        for (stderr, first, last) in [
            (node, "Error: no key", "    at f (a.js:1:1)"),
            (rust, "thread 'main' panicked at src/a.rs:1:1:", "   0: f"),
            (python, "  File \"a\", line 1", "KeyError: 'key'"),
            ("a\nError: b\n".to_owned(), "a", "Error: b"),
        ] {
            let lines = lines_of_cause(&stderr, 10);
            let ends = (lines.first(), lines.last());
            assert_eq!(
                ends,
                (Some(&first.to_owned()), Some(&last.to_owned())),
                "{stderr}"
            );
            assert!(lines.len() <= 10, "{stderr}");
        }
    }

    #[test]
    fn last_line_is_the_cause_if_none_looks_like_an_error() {
        let stderr = "hello\nchecked, 0 errors\n\x1b[2mbye\x1b[0m\n\n";
        assert_eq!(cause(stderr), None);
        assert_eq!(cause_or_last(stderr).as_deref(), Some("bye"));
        assert_eq!(cause_or_last(" \n"), None);
        assert_eq!(last_lines(stderr, 2), ["checked, 0 errors", "bye"]);
        assert!(last_lines("", 10).is_empty());
    }
}
