//! The example programs read on after lines that they cannot use.

use super::moving_from::has;
use super::place::Place;
use crate::harness::ACPIPE;
use std::io::Write as _;
use std::process::{Output, Stdio};

/// Lines in front of acpipe's own: of a wrapper, that are not objects, and notifications without usable parameters.
const LINES: &str = r#"Now using node v20.20.2
null
17
[1]
{"jsonrpc":"2.0","method":"session/chunk"}
{"jsonrpc":"2.0","method":"agent/state","params":null}
{"jsonrpc":"2.0","method":"session/chunk","params":[1]}
{"jsonrpc":"2.0","id":99,"result":null}"#;

/// A client of the asyncio module.
const PYTHON: &str = r#"
import asyncio, sys
sys.path.insert(0, "examples/moving-from")
from acpipe_client import Acpipe

async def main():
    acpipe = await Acpipe.start()
    await acpipe.call("agent/connect")
    await acpipe.call("session/ensure", sessionId="work")
    async with acpipe.prompt("work", "hello") as turn:
        print("".join([chunk.get("delta", "") async for chunk in turn]))
    await acpipe.close()

asyncio.run(main())
"#;

/// A client of the JavaScript module, whose listeners expect parameters.
const JAVASCRIPT: &str = r"
import { Acpipe } from './examples/acpipe.mjs';
const acpipe = new Acpipe();
acpipe.on('session/chunk', ({ chunk }) => process.stdout.write(chunk.delta ?? ''));
acpipe.on('agent/state', ({ state }) => state);
await Promise.all([
  acpipe.call('initialize', { protocolVersion: 1 }),
  acpipe.call('agent/connect'),
  acpipe.call('session/ensure'),
  acpipe.call('session/prompt', { message: 'hello' }),
]);
await acpipe.call('shutdown');
";

#[track_caller]
fn assert_goes_on(output: &Output, answer: &str, note: &str) {
    let texts = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy);
    let [stdout, stderr] = texts;
    assert!(
        output.status.success(),
        "--- stdout\n{stdout}\n--- stderr\n{stderr}"
    );
    assert!(
        stdout.contains(answer),
        "--- stdout\n{stdout}\n--- stderr\n{stderr}"
    );
    assert!(stderr.contains(note), "--- stderr\n{stderr}");
}

#[test]
fn example_clients_read_on_after_lines_that_they_cannot_use() {
    if !has("python3", "examples/drive.py") || !has("node", "examples/chat.mjs") {
        return;
    }
    let place = Place::new();
    let wrapper = format!("#!/bin/sh\ncat <<'END'\n{LINES}\nEND\nexec '{ACPIPE}' \"$@\"\n");
    let dir = place.world.dir.join("wrapped");
    std::fs::create_dir(&dir).unwrap();
    place.world.executable("wrapped/acpipe", &wrapper);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(dir).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).unwrap();
    for (program, args) in [
        ("python3", &["examples/drive.py", "hello"][..]),
        ("node", &["examples/chat.mjs"]),
        ("python3", &["-c", PYTHON]),
        ("node", &["--input-type=module", "-e", JAVASCRIPT]),
    ] {
        let mut command = place.command(program);
        let output = command.args(args).env("PATH", &path).output().unwrap();
        assert_goes_on(&output, "demo agent", "Now using node");
    }
    assert_eq!(place.world.leak(), None);
}

#[test]
fn example_agent_reads_on_after_lines_that_it_cannot_use() {
    if !has("node", "examples/agent.mjs") {
        return;
    }
    let place = Place::new();
    let mut command = place.command("node");
    command.arg("examples/agent.mjs").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let last = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt"}
{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#;
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{LINES}\n{last}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_goes_on(
        &output,
        r#""id":2,"result":{"protocolVersion":1"#,
        "not valid JSON",
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(r#""id":1,"error""#), "{stdout}");
}
