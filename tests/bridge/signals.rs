//! Signals to acpipe, and clients that close their end.

use crate::harness::run::{Run, Running};
use crate::harness::server::Server;
use crate::harness::steps::{say, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn until_cancelled_after(text: &str) -> Value {
    let [wait, stop] = until_cancelled();
    json!({"session/prompt": [[say(text), wait, stop]]})
}

#[test]
fn signal_ends_serve_with_an_orderly_shutdown() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut s = Server::ready(&until_cancelled_after("x"));
        let id = s.send_prompt("default", "go");
        s.await_chunk("default", |c| c["delta"] == "x");
        crate::harness::signal(s.pid(), signal);
        let turn = s.turn(&id);
        assert_eq!(turn.summary["stopReason"], "cancelled", "{signal:?}");
        let log = s.await_end().log;
        assert_eq!(calls(&log, "session/cancel").len(), 1);
        assert_eq!(log.last(), Some(&json!({"eof": true})), "{signal:?}");
    }
}

#[test]
fn signal_ends_an_idle_serve() {
    let mut s = Server::start(&[]);
    s.initialize();
    crate::harness::signal(s.pid(), Signal::TERM);
    s.await_end();
}

#[test]
fn second_signal_shortens_the_shutdown() {
    let mut s = Server::ready(&json!({"eof": [{"hang": true}], "start": [{"ignoreTerm": true}]}));
    s.prompt("x");
    let since = Instant::now();
    crate::harness::signal(s.pid(), Signal::TERM);
    s.agent_states(&["stopping"]);
    crate::harness::signal(s.pid(), Signal::TERM);
    s.await_end();
    assert!(
        since.elapsed() < Duration::from_millis(4500),
        "{:?}",
        since.elapsed()
    );
}

/// A script that starts `cargo test &` ignores SIGINT in all its processes.
#[test]
fn tests_of_signals_pass_while_their_runner_ignores_signals() {
    let tests = std::env::current_exe().unwrap();
    let mut ignoring = World::new().command("sh");
    ignoring.args(["-c", r#"trap '' INT HUP QUIT; exec "$0" "$@""#]);
    ignoring
        .arg(tests)
        .args(["--exact", "signals::ctrl_c_cancels_a_run"]);
    let output = ignoring.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("1 passed"), "{report}");
}

#[test]
fn ctrl_c_cancels_a_run() {
    let [wait, stop] = until_cancelled();
    let script = json!({"session/prompt": [[say("so far"), wait, say(" and more"), stop]]});
    let mut run = Run::new(&["run", "go"]).script(&script).start();
    run.await_stdout("so far");
    run.signal(Signal::INT);
    let outcome = run.end().expect(130);
    assert_eq!(outcome.text(), "so far and more\n");
    assert_eq!(calls(&outcome.log, "session/cancel").len(), 1);
    assert!(outcome.stderr.contains("cancelled"), "{}", outcome.stderr);
}

#[test]
fn sigterm_ends_a_run() {
    let script = until_cancelled_after("so far");
    let mut run = Run::new(&["run", "-o", "chunks", "go"])
        .script(&script)
        .start();
    run.await_stdout("so far");
    run.signal(Signal::TERM);
    let outcome = run.end().expect(130);
    assert_eq!(outcome.chunks().last().unwrap()["type"], "abort");
    assert_eq!(calls(&outcome.log, "session/cancel").len(), 1);
}

#[test]
fn ctrl_c_before_the_turn_ends_a_run() {
    // A stream that has not begun ends regularly.
    for (format, wanted) in [("text", ""), ("chunks", ""), ("sse", "data: [DONE]\n\n")] {
        let run = Run::new(&["run", "-o", format, "go"])
            .script(&json!({"initialize": [[{"stderr": "here"}, {"hang": true}]]}))
            .start();
        // The agent has received a call, so acpipe already handles signals.
        await_log(&run, "initialize");
        run.signal(Signal::INT);
        assert_eq!(run.end().expect(130).text(), wanted, "{format}");
    }
}

fn await_log(run: &Running, method: &str) {
    let since = Instant::now();
    while calls(&run.world.log(), method).is_empty() {
        assert!(since.elapsed() < crate::harness::LIMIT);
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn second_ctrl_c_kills_the_agent() {
    let script = json!({"session/prompt": [[say("so far"), {"wait": "session/cancel"}, say("noticed"), {"hang": true}]], "eof": [{"hang": true}], "start": [{"ignoreTerm": true}]});
    let mut run = Run::new(&["run", "go"]).script(&script).start();
    run.await_stdout("so far");
    let since = Instant::now();
    run.signal(Signal::INT);
    run.await_stdout("noticed");
    run.signal(Signal::INT);
    run.end().expect(130);
    assert!(
        since.elapsed() < Duration::from_millis(4500),
        "{:?}",
        since.elapsed()
    );
}

/// Reads one line of stdout and closes it, as `head -1` does.
fn head(run: &mut Running) -> String {
    let mut stdout = BufReader::with_capacity(1, run.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line
}

#[test]
fn closed_stdout_ends_a_streaming_run() {
    let script = json!({"session/prompt": [[{"repeat": {"times": 1_000_000, "steps": [say("line {i}\n"), {"sleep": 1}]}}]]});
    for format in ["text", "chunks", "sse"] {
        let mut run = Run::new(&["run", "-o", format, "go"])
            .script(&script)
            .start();
        assert!(!head(&mut run).is_empty());
        let outcome = run.end().expect(0);
        assert_eq!(outcome.stderr, "", "{format}");
    }
}

/// Node uses sockets as pipes to its children. A write to a socket that was closed with unread data fails
/// with another error than a write to a closed pipe.
#[test]
fn closed_socket_ends_a_run() {
    let slowly =
        |times: u32| json!({"repeat": {"times": times, "steps": [say("x"), {"sleep": 1}]}});
    // Either the failed write or the closed peer may be noticed first, so there are several runs.
    let runs = [(); 6].map(|()| {
        let world = World::new();
        let full = world.dir.join("full");
        // More chunks than the buffer of a socket holds.
        let mark = json!({"once": {"mark": full, "steps": []}});
        let script =
            world.script(&json!({"session/prompt": [[slowly(400), mark, slowly(1_000_000)]]}));
        let (ours, theirs) = UnixStream::pair().unwrap();
        let child = world
            .acpipe(&["run", "-o", "sse", "go", "--", FAKE_AGENT, &script])
            .stdin(Stdio::null())
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        (world, full, ours, child)
    });
    for (world, full, ours, child) in runs {
        let since = Instant::now();
        while !full.exists() {
            assert!(since.elapsed() < crate::harness::LIMIT);
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(ours);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(world.leak(), None);
    }
}

/// `acpipe run … | head -1` must not wait for an agent that is silent for long.
#[test]
fn closed_stdout_ends_a_silent_run() {
    let script = until_cancelled_after("one line\n");
    let mut run = Run::new(&["run", "go"]).script(&script).start();
    assert_eq!(head(&mut run), "one line\n");
    let outcome = run.end().expect(0);
    assert_eq!(outcome.stderr, "");
    assert_eq!(calls(&outcome.log, "session/cancel").len(), 1);
}

/// stdin stays open: the closed stdout alone ends acpipe.
#[test]
fn closed_stdout_ends_serve() {
    let forever = json!({"repeat": {"times": 1_000_000, "steps": [say("x"), {"sleep": 1}]}});
    let [wait, stop] = until_cancelled();
    for steps in [json!([forever]), json!([say("x"), wait, stop])] {
        let calls = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/ensure"}),
        ];
        let prompt = json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"message": "go"}});
        let script = json!({"session/new": [[{"default": true}]], "session/prompt": [steps]});
        let mut run = Run::new(&["serve"])
            .script(&script)
            .stdin(format!("{}\n{}\n", calls[0], calls[1]))
            .keep_stdin()
            .start();
        run.await_stdout("\"id\":2");
        run.write(&format!("{prompt}\n"));
        run.await_stdout("text-delta");
        drop(run.stdout.take());
        let outcome = run.end().expect(0);
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn closed_stdout_ends_an_idle_serve() {
    let mut run = Run::new(&["serve"])
        .script(&json!({}))
        .stdin("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n")
        .keep_stdin()
        .start();
    run.await_stdout("\"id\":1");
    drop(run.stdout.take());
    run.end().expect(0);
}

/// acpipe does not wait until the client has read everything.
#[test]
fn client_that_never_reads_does_not_block_the_exit() {
    let calls = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/ensure"}),
    ];
    let prompt =
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"message": "go"}});
    let agent = [crate::harness::FAKE_AGENT, "--flood", "--updates", "100000"];
    let mut run = Run::new(&["serve"])
        .agent(&agent)
        .stdin(format!("{}\n{}\n", calls[0], calls[1]))
        .keep_stdin()
        .start();
    run.await_stdout("\"id\":2");
    run.write(&format!("{prompt}\n"));
    run.await_stdout("text-delta");
    let since = Instant::now();
    run.close_stdin();
    run.await_exit();
    assert!(
        since.elapsed() < Duration::from_secs(12),
        "{:?}",
        since.elapsed()
    );
    drop(run.stdout.take());
    run.end().expect(0);
}
