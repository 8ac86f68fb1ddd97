//! Commands of the documentation, run as they are written.
//!
//! A `sh` block is one script for `bash -euo pipefail`; `sh exit=2` has to exit with that code. A `python` block is a
//! program. The blocks of a page run one after the other in one project. `sh no-run` marks a block that cannot run.

use super::markdown::{Block, Page, pages};
use super::place::{Place, needs};
use crate::harness::LIMIT;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;

/// Why a block does not run: a text in it, and the reason.
const REASONS: &[(&str, &str)] = &[
    ("daemon start", "leaves a daemon"),
    ("--daemon", "leaves a daemon"),
    ("acpipe attach", "needs a daemon"),
    ("# a chat", "needs a terminal"),
    ("systemctl", "needs systemd"),
    ("ssh ", "needs another machine"),
    ("cargo ", "builds or installs acpipe"),
    ("git clone", "downloads"),
    ("curl ", "downloads"),
    ("sudo ", "changes the machine"),
    ("nix ", "needs Nix"),
    ("npm publish", "publishes"),
    ("SHA256SUMS", "needs the files of a release"),
    ("gh attestation", "needs a release"),
    ("packaging/platform", "builds all packages"),
    (
        "benches/peers/run.py",
        "installs and measures other clients",
    ),
    ("node examples/server.mjs", "runs until it is stopped"),
    ("datamodel-codegen", "code generators are not installed"),
    ("json2ts", "code generators are not installed"),
    ("acpipe acp ", "waits for the messages of an editor"),
];

/// Pages for users. Those for contributors (`docs/internals`, `CONTRIBUTING.md`) have commands that build and measure.
fn is_for_users(page: &Page) -> bool {
    let path = page.path.as_str();
    let is_internal = path.starts_with("docs/internals/");
    (path.starts_with("docs/") && !is_internal)
        || path == "README.md"
        || path == "examples/README.md"
}

/// How a block is run.
enum Kind<'a> {
    Shell { code: i32 },
    Python,
    Skipped { reason: &'a str },
}

fn kind(page: &Page, block: &Block) -> Option<Kind<'static>> {
    let mut words = block.info.split_whitespace();
    let place = || format!("{}:{}", page.path, block.line);
    let language = words.next()?;
    let option = words.next();
    match (language, option) {
        ("sh", None) => Some(Kind::Shell { code: 0 }),
        ("sh", Some("no-run")) => {
            let found = REASONS.iter().find(|(text, _)| block.text.contains(text));
            let (_, reason) = found.unwrap_or_else(|| panic!("{}: no reason known", place()));
            Some(Kind::Skipped { reason })
        }
        ("sh", Some(option)) => {
            let code = option.strip_prefix("exit=").and_then(|c| c.parse().ok());
            let code = code.unwrap_or_else(|| panic!("{}: {option:?}", place()));
            Some(Kind::Shell { code })
        }
        ("python", None) => Some(Kind::Python),
        // A command that runs has to say so.
        ("bash" | "shell" | "console" | "zsh", _) => panic!("{}: use sh", place()),
        _ => None,
    }
}

/// Runs a block to its end.
fn run(place: &Place, program: &str, args: &[&str]) -> Output {
    let child = place
        .command(program)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(LIMIT * 3) else {
        place.world.kill_all();
        panic!("no end: {args:?}");
    };
    output.unwrap()
}

/// Plays a page: how many blocks ran, how many did not, and what went wrong.
fn play(page: &Page) -> (usize, usize, String) {
    let place = Place::new();
    let (mut ran, mut skipped, mut wrong) = (0, 0, String::new());
    for block in &page.blocks {
        let at = format!("{}:{}", page.path, block.line);
        let (code, output) = match kind(page, block) {
            None => continue,
            Some(Kind::Skipped { reason }) => {
                // Past the capture of the test runner.
                let _ = writeln!(std::io::stderr(), "not run: {at}: {reason}");
                skipped += 1;
                continue;
            }
            Some(Kind::Python) if !needs("python3", &at) => continue,
            Some(Kind::Shell { .. }) if block.text.contains("node ") && !needs("node", &at) => {
                continue;
            }
            Some(Kind::Python) => (0, run(&place, "python3", &["-c", &block.text])),
            Some(Kind::Shell { code }) => {
                let args = ["-euo", "pipefail", "-c", &block.text];
                (code, run(&place, "bash", &args))
            }
        };
        ran += 1;
        if output.status.code() != Some(code) {
            let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy);
            let [stdout, stderr] = text;
            let _ = writeln!(
                wrong,
                "{at}: {}, not {code}\n{}--- stdout\n{stdout}--- stderr\n{stderr}",
                output.status, block.text
            );
        }
    }
    wrong.extend(place.world.leak());
    (ran, skipped, wrong)
}

#[test]
fn commands_run_as_written() {
    let pages: Vec<Page> = pages().into_iter().filter(is_for_users).collect();
    let runs = |page: &&Page| page.blocks.iter().any(|block| kind(page, block).is_some());
    let pages = pages.iter().filter(runs);
    let outcomes: Vec<(usize, usize, String)> = thread::scope(|scope| {
        let threads: Vec<_> = pages.map(|page| scope.spawn(|| play(page))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    });
    let ran: usize = outcomes.iter().map(|(ran, ..)| ran).sum();
    let skipped: usize = outcomes.iter().map(|(_, skipped, _)| skipped).sum();
    let wrong: String = outcomes.into_iter().map(|(.., wrong)| wrong).collect();
    let _ = writeln!(
        std::io::stderr(),
        "documentation: {ran} blocks ran, {skipped} did not"
    );
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(ran > 20, "only {ran} blocks ran");
}
