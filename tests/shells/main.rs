//! Real shells run the lines that a policy allows: only the allowed command may run, and no file may appear.
//!
//! Lines are generated from a seed and mutated from `corpus.txt`. A policy denies all but `Bash(ok:*)`. Every
//! line that it allows is run by each installed shell in an empty directory, with stubs for `PATH`. All
//! shells have to run `ok` with the same arguments, and none may report an error. Hostile lines are run too:
//! where a shell runs a command that a rule denies, the policy has to deny the line.
//! `tests/shells/install.sh` installs the shells; a missing one is reported and skipped. `LINES=1000000 cargo
//! test --release --test shells` tries more lines, `SEED=7` others.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]
#![expect(clippy::print_stderr, reason = "the figures are the result")]

mod generate;
mod shell;

use acpipe_policy::{Effect, Mode, Policy, Subject, ToolProperties};
use generate::{Dice, line, mutated};
use serde_json::json;
use shell::{Sandbox, Shell, ShellRun};
use std::env;
use std::time::Instant;

const CORPUS: &str = include_str!("corpus.txt");

/// Default number of generated lines.
const LINES: usize = 4_000;

/// Number of lines that one process of a shell runs.
const BATCH: usize = 400;

/// Returns the lines of the corpus; in the file `␤`, `␉` and `␍` stand for the control characters.
fn corpus() -> Vec<String> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with("// "));
    let decode = |line: &str| {
        let chars = line.chars().map(|c| match c {
            '␤' => '\n',
            '␉' => '\t',
            '␍' => '\r',
            c => c,
        });
        chars.collect::<String>()
    };
    lines.filter(|line| !line.is_empty()).map(decode).collect()
}

fn policy(mode: Mode, entry: &str, effect: Effect) -> Policy {
    let mut policy = Policy::from(mode);
    policy.add_listed(entry, "list", effect).unwrap();
    policy
}

fn is_allowed(policy: &Policy, line: &str) -> bool {
    let input = json!({ "command": line }).to_string();
    let tool = ToolProperties {
        kind: Some("execute"),
        input: Some(serde_json::from_str(&input).unwrap()),
        ..ToolProperties::default()
    };
    policy.judge(&Subject::of_tool(&tool, "/w")).effect == Effect::Allow
}

fn given(name: &str) -> Option<usize> {
    env::var(name).ok()?.parse().ok()
}

/// Runs lines in all shells. Returns the failing lines with the reasons.
fn failing_lines(shells: &[Shell], lines: &[String]) -> Vec<(String, String)> {
    let all: Vec<ShellRun> = std::thread::scope(|scope| {
        let runs = shells.iter().map(|shell| scope.spawn(|| shell.run(lines)));
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let mut failing_lines = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut wrong = Vec::new();
        let mut calls: Option<(&str, &Vec<Vec<String>>)> = None;
        for (shell, ran) in shells.iter().zip(&all) {
            let one = &ran.lines[at];
            wrong.extend(
                one.foreign()
                    .map(|name| format!("{} runs {name}", shell.name)),
            );
            if one.is_without_match() {
                continue;
            }
            if !one.errors.trim().is_empty() {
                wrong.push(format!("{} reports {:?}", shell.name, one.errors.trim()));
            }
            match calls {
                None => calls = Some((shell.name, &one.calls)),
                Some((first, known)) if *known != one.calls => {
                    let name = shell.name;
                    wrong.push(format!("{first} runs {known:?}, {name} {:?}", one.calls));
                }
                Some(_) => {}
            }
        }
        if !wrong.is_empty() {
            failing_lines.push((line.clone(), wrong.join("; ")));
        }
    }
    for (shell, ran) in shells.iter().zip(&all) {
        assert!(ran.is_whole, "{} did not run all lines", shell.name);
        if ran.files.is_empty() {
            continue;
        }
        // Each line runs alone, to find the one that creates a file.
        for line in lines {
            let files = shell.run(std::slice::from_ref(line)).files;
            if !files.is_empty() {
                failing_lines.push((line.clone(), format!("{} makes {files:?}", shell.name)));
            }
        }
    }
    failing_lines
}

#[test]
fn an_allowed_line_runs_the_allowed_command_and_nothing_else_in_all_shells() {
    let sandbox = Sandbox::new();
    let shells = Shell::installed(&sandbox);
    assert!(
        shells.len() >= 2,
        "sh and bash are needed; tests/shells/install.sh installs them"
    );
    let policy = policy(Mode::Deny, "Bash(ok:*)", Effect::Allow);
    let corpus = corpus();
    let count = given("LINES").unwrap_or(LINES);
    let seed = given("SEED").unwrap_or(1);
    let mut dice = Dice::new(seed);
    let since = Instant::now();
    let (mut tried, mut ran, mut fell) = (0, 0, Vec::new());
    let mut batch: Vec<String> = Vec::new();
    let mut lines = corpus.iter().cloned();
    loop {
        let next = lines.next().or_else(|| {
            (tried < count).then(|| {
                if dice.below(3) == 0 {
                    mutated(&mut dice, &corpus)
                } else {
                    line(&mut dice)
                }
            })
        });
        if let Some(line) = &next {
            tried += 1;
            if is_allowed(&policy, line) {
                batch.push(line.clone());
            }
        }
        if batch.len() == BATCH || next.is_none() {
            ran += batch.len();
            for (line, why) in failing_lines(&shells, &batch) {
                eprintln!("FELL {line:?}: {why}");
                fell.push(line);
            }
            batch.clear();
            if count > 50_000 && ran % (25 * BATCH) == 0 {
                eprintln!(
                    "{tried} tried, {ran} allowed, {} fell, {:?}",
                    fell.len(),
                    since.elapsed()
                );
            }
        }
        if next.is_none() {
            break;
        }
    }
    let names: Vec<_> = shells.iter().map(|shell| shell.name).collect();
    eprintln!(
        "shells: seed {seed}, {tried} lines tried, {ran} allowed and run by each of {}, {} fell",
        names.join(", "),
        fell.len()
    );
    assert!(
        ran * 20 > tried,
        "hardly a line is allowed: {ran} of {tried}"
    );
    assert!(fell.is_empty(), "{fell:#?}");
}

/// Returns `true` if a line may run although nothing allows it: it can neither call itself nor wait.
fn is_harmless(line: &str) -> bool {
    let words = [
        "()", "( )", "function", "alias", "coproc", "select", "|&", "exec", "rm",
    ];
    !words.iter().any(|word| line.contains(word))
}

/// Returns `true` if a variable may be part of the command's name, which rules cannot know.
fn is_named_by_variable(line: &str) -> bool {
    let bare = line.replace("${x}", "").replace("$x", "");
    bare.matches("evil").count() != line.matches("evil").count() || line.contains("evil$")
}

/// Rules that deny match a command however a shell reads the line.
#[test]
fn a_denied_command_is_found_in_every_line_that_runs_it() {
    let sandbox = Sandbox::new();
    let shells = Shell::installed(&sandbox);
    let policy = policy(Mode::Approve, "Bash(evil:*)", Effect::Deny);
    let corpus = corpus();
    let count = given("LINES").unwrap_or(LINES) / 4;
    let mut dice = Dice::new(given("SEED").unwrap_or(1) + 1_000_000);
    let (mut tried, mut ran, mut missed) = (0, 0, Vec::new());
    while tried < count {
        let lines = (0..BATCH).map(|_| mutated(&mut dice, &corpus));
        let lines: Vec<String> = lines
            .filter(|line| is_harmless(line) && !is_named_by_variable(line))
            .collect();
        tried += lines.len();
        let runs: Vec<ShellRun> = std::thread::scope(|scope| {
            let runs = shells.iter().map(|shell| scope.spawn(|| shell.run(&lines)));
            let runs: Vec<_> = runs.collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        for (at, line) in lines.iter().enumerate() {
            let runs_it = |ran: &&ShellRun| ran.lines[at].foreign().any(|name| name == "evil");
            let by = shells.iter().zip(&runs).find(|(_, ran)| runs_it(ran));
            let Some((shell, _)) = by else { continue };
            ran += 1;
            // An open here-document can consume the lines behind it: the line must run the command alone as
            // well.
            let runs_alone = || {
                let ran = shell.run(std::slice::from_ref(line));
                ran.lines[0].foreign().any(|name| name == "evil")
            };
            if is_allowed(&policy, line) && runs_alone() {
                eprintln!("MISSED {line:?}: {} runs evil", shell.name);
                missed.push(line.clone());
            }
        }
    }
    eprintln!(
        "shells: {tried} hostile lines tried, {ran} run the denied command, {} missed",
        missed.len()
    );
    assert!(ran * 20 > tried, "hardly a line runs it: {ran} of {tried}");
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Shows that the check can fail.
#[test]
fn shell_check_finds_lines_that_run_another_command() {
    let sandbox = Sandbox::new();
    let shells = Shell::installed(&sandbox);
    let lines = [
        "ok a",
        "ok; evil",
        "ok $(evil)",
        "ok > made",
        "ok 'a",
        "ok; absent-command",
        "ok $$",
    ];
    let lines = lines.map(str::to_owned);
    let found: Vec<_> = failing_lines(&shells, &lines)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    for line in &lines[1..] {
        assert!(found.contains(line), "{line}: {found:?}");
    }
    assert!(!found.contains(&lines[0]), "{found:?}");
}

/// Shells read the judged line as the arguments that a terminal runs.
#[test]
fn shells_read_a_judged_line_as_the_executed_words() {
    use acpipe_model::host::judged_line;
    let sandbox = Sandbox::new();
    let shells = Shell::installed(&sandbox);
    let mut dice = Dice::new(3);
    let words: Vec<Vec<String>> = (0..400)
        .map(|_| (0..=dice.below(3)).map(|_| dice.text()).collect())
        .collect();
    let line = |words: &Vec<String>| judged_line("ok", words, &[]);
    let lines: Vec<String> = words.iter().map(line).collect();
    for shell in &shells {
        let ran = shell.run(&lines);
        for (one, words) in ran.lines.iter().zip(&words) {
            assert_eq!(one.calls, std::slice::from_ref(words), "{}", shell.name);
        }
    }
}
