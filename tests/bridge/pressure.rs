//! Data far larger than all buffers: memory stays bounded, nothing is lost, and no process waits forever.
//!
//! The large tests, with figures for `docs/internals/performance.md`: `cargo test --release --test bridge
//! pressure -- --ignored --nocapture --test-threads 1`

mod structured;

use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, LIMIT, World, await_blocked_writer, memory};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Client that keeps nothing of what it reads, and reads only on demand.
struct Client {
    world: World,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    /// Starts acpipe with the fake agent and this script, and opens the session `default`.
    fn new(args: &[&str], script: &Value) -> Self {
        let world = World::new();
        let path = world.script(script);
        let args = [&["serve"], args, &["--", FAKE_AGENT, &path]].concat();
        let mut child = world
            .acpipe(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut client = Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            world,
        };
        client.send(1, "initialize", &json!({"protocolVersion": 1}));
        client.send(2, "session/ensure", &json!({}));
        client.read_to(2, |_| {});
        client
    }

    fn send(&mut self, id: u32, method: &str, params: &Value) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.stdin, "{call}").unwrap();
    }

    /// Reads up to the answer to a call, and passes the text of the chunks before it to `text`.
    fn read_to(&mut self, id: u32, mut text: impl FnMut(&str)) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
            let chunk = &message["params"]["chunk"];
            if chunk["type"] == "text-delta" {
                text(chunk["delta"].as_str().unwrap());
            }
        }
    }

    /// Reads up to the answer to a call without parsing other messages.
    fn read_to_raw(&mut self, id: u32) -> Value {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended");
            if line.starts_with(&answer) {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }

    /// Reads up to an error answer with the id `null`.
    fn read_to_error(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"].is_null() && message.get("error").is_some() {
                return message;
            }
        }
    }

    fn await_agent_call(&self, method: &str) {
        let since = Instant::now();
        while crate::harness::calls(&self.world.log(), method).is_empty() {
            assert!(since.elapsed() < LIMIT, "the agent never got {method}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns a memory figure of acpipe's `/proc` status, in bytes.
    fn memory(&self, figure: &str) -> u64 {
        let pid = i32::try_from(self.child.id()).unwrap();
        memory(pid, figure) as u64
    }

    /// Returns acpipe's peak memory so far, in bytes.
    fn peak(&self) -> u64 {
        self.memory("VmHWM")
    }

    /// Returns the peak without the pages of the program file, of which a larger program has more.
    fn own_peak(&self) -> u64 {
        self.peak().saturating_sub(self.memory("RssFile"))
    }

    fn finish(mut self) {
        drop(self.stdin);
        std::io::copy(&mut self.stdout, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success());
        assert_eq!(self.world.leak(), None);
    }
}

fn mib(bytes: u64) -> String {
    format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB)
}

fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Lets the agent write `bytes` of text in numbered pieces while the client does not read; with `cancelled`
/// the client cancels meanwhile.
///
/// The agent must write all of it before it answers the cancel. It has 5 s for that, counted while acpipe
/// reads its output: a debug build is too slow.
fn check_stopped_reader(bytes: u64, cancelled: bool, args: &[&str]) {
    let piece = 8 * 1024;
    let times = bytes / piece;
    let words = "x".repeat(usize::try_from(piece).unwrap() - 9);
    let mut steps =
        vec![json!({"repeat": {"times": times, "steps": [say(&format!("{words} {{i}} "))]}})];
    if cancelled {
        steps.push(json!({"wait": "session/cancel"}));
    }
    let reason = if cancelled { "cancelled" } else { "end_turn" };
    steps.push(end(reason));
    let script = json!({"session/prompt": [steps]});
    let mut client = Client::new(args, &script);
    let idle = client.memory("RssAnon");
    client.send(5, "agent/status", &json!({}));
    let status = client.read_to(5, |_| {});
    let agent = status["result"]["pid"].as_i64().unwrap();
    client.send(3, "session/prompt", &json!({"message": "go"}));
    await_blocked_writer(i32::try_from(agent).unwrap());
    if cancelled {
        client.send(4, "session/cancel", &json!({}));
        client.await_agent_call("session/cancel");
    }
    let stopped = client.memory("RssAnon");
    let begun = Instant::now();
    // Deltas may be merged or split, so the numbers are parsed between blanks.
    let (mut said, mut next, mut number) = (0_u64, 0_u64, String::new());
    let mut hear = |text: &str| {
        for c in text.chars() {
            match c {
                '0'..='9' => number.push(c),
                ' ' if !number.is_empty() => {
                    assert_eq!(number.parse::<u64>().unwrap(), next);
                    next += 1;
                    number.clear();
                }
                _ => said += u64::from(c == 'x'),
            }
        }
    };
    if cancelled {
        // The cancel was handled before the client read anything.
        let answer = client.read_to(4, &mut hear);
        assert_eq!(answer["result"]["cancelled"], true);
    }
    let answer = client.read_to(3, &mut hear);
    let summary = &answer["result"];
    assert_eq!(next, times);
    assert_eq!(said, times * words.len() as u64);
    assert_eq!(summary["stopReason"], reason);
    let told = summary["text"].as_str().unwrap().len() as u64;
    let left_out = summary["omitted"]["text"].as_u64().unwrap();
    assert!(told <= 4 * MIB && told + left_out >= said);
    let peak = client.own_peak();
    print_line(&format!(
        "{} at a stopped reader {args:?}: {} idle, {} stopped, {} at most; read in {:.1?}",
        mib(bytes),
        mib(idle),
        mib(stopped),
        mib(peak),
        begun.elapsed(),
    ));
    // Sessions that are not stored keep their last 32 MiB in memory.
    let kept = if args.contains(&"never") { 32 * MIB } else { 0 };
    assert!(peak < idle + kept + 20 * MIB, "{peak}");
    client.finish();
}

#[test]
fn stopped_reader_costs_bounded_memory_and_loses_no_text() {
    check_stopped_reader(40 * MIB, false, &[]);
}

#[test]
fn stopped_reader_costs_bounded_memory_without_a_store() {
    check_stopped_reader(64 * MIB, false, &["--persist", "never"]);
}

#[test]
#[ignore = "by hand: it takes a gigabyte of disk"]
fn gigabyte_waits_for_a_stopped_reader() {
    check_stopped_reader(1024 * MIB, true, &[]);
}

#[test]
#[ignore = "by hand"]
fn gigabyte_waits_for_a_stopped_reader_without_a_store() {
    check_stopped_reader(1024 * MIB, true, &["--persist", "never"]);
}

/// Size of a huge message: smaller in debug builds, where the test itself is slow, but larger than the part
/// of a session that acpipe keeps in memory.
const MESSAGE_SIZE: u64 = if cfg!(debug_assertions) { 34 } else { 60 } * MIB;

/// Asserts that a huge message took at most three times its size in memory.
fn assert_ratio(client: &Client, idle: u64, what: &str) {
    let took = client.own_peak().saturating_sub(idle);
    let percent = took * 100 / MESSAGE_SIZE;
    print_line(&format!(
        "{what} of {}: {} above idle, {percent} % of its size",
        mib(MESSAGE_SIZE),
        mib(took),
    ));
    // In addition to the message there are a few buffers, whose number depends on the order in which threads run, and the
    // part of the text that a summary holds. A copy more would take eight times this room.
    assert!(took <= 3 * MESSAGE_SIZE + 4 * MIB, "{percent} %");
}

/// Step that writes an update in one line, with `HUGE` replaced by `bytes` characters.
fn huge_update(bytes: u64, update: &str) -> Value {
    let (before, after) = update.split_once("HUGE").unwrap();
    let prefix = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","update":{before}"#
    );
    json!({"huge": {"bytes": bytes, "prefix": prefix, "suffix": format!("{after}}}}}")}})
}

const WORDS: &str =
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"HUGE"}}"#;

/// Lets the agent send one huge update; a client that reads receives it complete.
fn check_agent_message(what: &str, update: &str, args: &[&str]) {
    let script = json!({"session/prompt": [[say("a"), huge_update(MESSAGE_SIZE, update), say("z"), end("end_turn")]]});
    let mut client = Client::new(args, &script);
    let idle = client.memory("RssAnon");
    client.send(3, "session/prompt", &json!({"message": "go"}));
    let mut line = String::new();
    let (mut seen, mut huge) = (0, 0_u64);
    loop {
        line.clear();
        assert!(client.stdout.read_line(&mut line).unwrap() > 0, "it ended");
        if line.starts_with(r#"{"jsonrpc":"2.0","id":3"#) {
            break;
        }
        if line.len() > 100_000 {
            huge = line.bytes().filter(|b| *b == b'x').count() as u64;
        }
        seen += usize::from(line.contains(r#""delta":"z""#));
    }
    assert!(seen == 1 && huge >= MESSAGE_SIZE, "{seen} {huge}");
    assert_ratio(&client, idle, what);
    client.finish();
}

#[test]
fn huge_text_passes_within_three_times_its_size() {
    check_agent_message("a message", WORDS, &[]);
}

#[test]
fn huge_text_passes_within_three_times_its_size_without_a_store() {
    check_agent_message("a message, not stored,", WORDS, &["--persist", "never"]);
}

#[test]
fn a_huge_output_of_a_tool_passes_in_three_times_its_size() {
    let tool = r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"t","status":"completed","rawInput":{"a":1},"content":[{"type":"content","content":{"type":"text","text":"HUGE"}}]}"#;
    check_agent_message("a tool's output", tool, &[]);
}

#[test]
fn a_huge_prompt_passes_in_three_times_its_size() {
    let script = json!({"session/prompt": [[say("done"), end("end_turn")]]});
    let mut client = Client::new(&[], &script);
    let idle = client.memory("RssAnon");
    let words = "x".repeat(usize::try_from(MESSAGE_SIZE).unwrap());
    client.send(3, "session/prompt", &json!({"message": words}));
    let answer = client.read_to(3, |_| {});
    assert_eq!(answer["result"]["text"], "done");
    assert_ratio(&client, idle, "a prompt");
    let got = fs::read_to_string(client.world.dir.join("agent.log")).unwrap();
    let xs = got.bytes().filter(|b| *b == b'x').count() as u64;
    assert!(xs >= MESSAGE_SIZE, "{xs}");
    client.finish();
}

/// A message over the limit affects only its own call.
#[test]
fn oversized_message_fails_alone() {
    let script = json!({"session/prompt": [
        [say("a"), huge_update(3 * MIB, WORDS), say("z"), end("end_turn")],
        [{"default": true}],
    ]});
    let mut client = Client::new(&["--max-line", "1000000"], &script);
    let mut text = String::new();
    client.send(3, "session/prompt", &json!({"message": "go"}));
    let answer = client.read_to(3, |said| text += said);
    assert_eq!(text, "az");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    client.send(
        4,
        "session/prompt",
        &json!({"message": "x".repeat(3_000_000)}),
    );
    let error = client.read_to(4, |_| {});
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--max-line")
    );
    client.send(5, "session/prompt", &json!({"message": "still here"}));
    assert_eq!(client.read_to(5, |_| {})["result"]["text"], "still here");
    client.finish();
}

/// Reading calls are refused while too many answers are unread; calls with an effect are still handled.
#[test]
fn unread_answers_stay_bounded() {
    let words = "x".repeat(8000);
    let script = json!({"session/prompt": [
        [{"repeat": {"times": 200, "steps": [say(&words)]}}, end("end_turn")],
        [{"wait": "session/cancel"}, end("cancelled")],
    ]});
    let mut client = Client::new(&[], &script);
    client.send(3, "session/prompt", &json!({"message": "go"}));
    client.read_to(3, |_| {});
    let ids = 10..610;
    for id in ids.clone() {
        client.send(id, "session/replay", &json!({"afterSeq": 0, "limit": 8}));
    }
    client.send(4, "session/prompt", &json!({"message": "again"}));
    client.send(5, "session/cancel", &json!({}));
    client.await_agent_call("session/cancel");
    let (mut given, mut refused, mut ended) = (0, 0, false);
    let mut line = String::new();
    while given + refused < ids.len() || !ended {
        line.clear();
        assert!(client.stdout.read_line(&mut line).unwrap() > 0, "it ended");
        let message: Value = serde_json::from_str(&line).unwrap();
        match message["id"].as_u64() {
            Some(4) => {
                assert_eq!(message["result"]["stopReason"], "cancelled");
                ended = true;
            }
            Some(10..) if message.get("result").is_some() => given += 1,
            Some(10..) => {
                assert_eq!(message["error"]["code"], -32001);
                refused += 1;
            }
            _ => {}
        }
    }
    assert!(given > 100 && refused > 100, "{given} {refused}");
    assert!(client.peak() < 64 * MIB, "{}", mib(client.peak()));
    client.finish();
}
