//! Command line: `acpipe run` with all its outputs, `schema`, help, exit codes.

use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{end, say, think, tool, tool_change};
use crate::harness::{FAKE_AGENT, World, calls, counted, stream, words};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

/// Runs one turn with these steps; `args` come before the prompt.
fn run(args: &[&str], steps: &[Value]) -> Outcome {
    let args = [&["run"], args, &["go"]].concat();
    let script = json!({"session/prompt": [steps]});
    Run::new(&args).script(&script).go()
}

fn blocks() -> Vec<Value> {
    vec![
        think("not shown"),
        say("First"),
        say(" block."),
        tool(
            "t",
            &json!({"name": "bash", "title": "List", "status": "in_progress", "rawInput": {}}),
        ),
        tool_change(
            "t",
            &json!({"status": "completed", "rawOutput": "tool output"}),
        ),
        say("Second\n"),
        think("hm"),
        say("Third"),
        end("end_turn"),
    ]
}

#[test]
fn text_output_holds_only_the_answer() {
    let outcome = run(&[], &blocks()).expect(0);
    assert_eq!(outcome.text(), "First block.\n\nSecond\n\nThird\n");
    assert_eq!(outcome.stderr, "");

    let cases = [
        (
            vec![say("ends with a newline\n"), end("end_turn")],
            "ends with a newline\n",
        ),
        (vec![think("hm"), say(""), end("end_turn")], ""),
        (
            vec![say("\u{e9}\u{1F600}\u{0}\"\\"), end("end_turn")],
            "\u{e9}\u{1F600}\u{0}\"\\\n",
        ),
    ];
    for (steps, wanted) in cases {
        assert_eq!(run(&["-o", "text"], &steps).expect(0).text(), wanted);
    }
}

#[test]
fn text_streams_as_it_comes() {
    let steps = [
        say("early"),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ];
    let script = json!({"session/prompt": [steps]});
    let mut running = Run::new(&["run", "go"]).script(&script).start();
    // The turn has not ended, but its text is printed.
    running.await_stdout("early");
    running.signal(rustix::process::Signal::INT);
    running.end().expect(130);
}

#[test]
fn chunks_are_one_json_object_a_line() {
    let outcome = run(&["-o", "chunks"], &blocks()).expect(0);
    let chunks = outcome.chunks();
    assert_eq!(chunks.last().unwrap()["finishReason"], "stop");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn sse_output_has_the_ai_sdk_framing() {
    let outcome = run(&["-o", "sse"], &blocks()).expect(0);
    let text = outcome.text();
    let events: Vec<&str> = text.split_terminator("\n\n").collect();
    let (done, events) = events.split_last().unwrap();
    assert_eq!(*done, "data: [DONE]");
    let chunks: Vec<Value> = events
        .iter()
        .map(|e| serde_json::from_str(e.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    stream::check(&chunks).unwrap();
    assert!(text.ends_with("\n\n"));
}

#[test]
fn json_output_is_the_turn_summary() {
    let outcome = run(&["-o", "json"], &blocks()).expect(0);
    let summary = outcome.json();
    assert_eq!(summary["text"], "First block.Second\nThird");
    assert_eq!(summary["isError"], false);
    assert!(summary["sessionId"].as_str().unwrap().starts_with("run-"));
    assert_eq!(summary["toolResults"][0]["result"], "tool output");
    assert_eq!(summary["toolsUsed"], json!(["bash"]));
}

/// Returns a step that sends a content block as a piece of the answer.
fn answer(block: &Value) -> Value {
    json!({"update": {"sessionUpdate": "agent_message_chunk", "content": block}})
}

#[test]
fn files_of_the_answer_are_shown_and_summarized() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
    let link = json!({"type": "resource_link", "uri": "file:///data/out.pdf", "name": "out.pdf"});
    let steps = [answer(&image), answer(&link), end("end_turn")];
    let outcome = run(&["-q"], &steps).expect(0);
    assert_eq!(
        outcome.text(),
        "[image/png, 5 B]\n[out.pdf] file:///data/out.pdf\n"
    );
    let summary = run(&["-o", "json"], &steps).expect(0).json();
    let files = json!([
        {"mediaType": "image/png", "name": null, "uri": null, "isLink": false, "size": 5},
        {"mediaType": null, "name": "out.pdf", "uri": "file:///data/out.pdf", "isLink": true, "size": null},
    ]);
    assert_eq!(summary["files"], files);
}

#[test]
fn files_of_the_answer_are_saved() {
    let world = World::new();
    let dir = world.dir.join("saved");
    let place = dir.to_str().unwrap();
    let blob = |data: &str| json!({"uri": "mem:///../a b.bin", "blob": data});
    let steps = |data: &str| {
        let resource = json!({"type": "resource", "resource": blob(data)});
        [answer(&resource), say("text"), end("end_turn")]
    };
    let outcome = run(&["--save-files", place], &steps("aGVsbG8=")).expect(0);
    let first = dir.join("a_b.bin");
    assert_eq!(
        outcome.text(),
        "[a b.bin, application/octet-stream, 5 B]\n\ntext\n"
    );
    assert_eq!(
        outcome.stderr,
        format!("acpipe: saved {}\n", first.display())
    );
    assert_eq!(fs::read_to_string(&first).unwrap(), "hello");

    let args = ["-q", "-o", "json", "--save-files", place];
    let summary = run(&args, &steps("aGk=")).expect(0).json();
    assert_eq!(summary["files"][0]["path"], json!(dir.join("a_b-2.bin")));
    assert_eq!(fs::read_to_string(&first).unwrap(), "hello");

    // The answer is not lost with a file, and the exit code reports one that is missing.
    let outcome = run(&args, &steps("a")).expect(74);
    assert_eq!(outcome.json()["text"], "text");
    assert!(
        outcome.stderr.contains("not saved in"),
        "{}",
        outcome.stderr
    );
    // Without the directory the agent is not started.
    let outcome = run(&["--save-files", first.to_str().unwrap()], &steps("a")).expect(74);
    assert!(
        outcome.stderr.contains("cannot save files in"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn json_output_is_valid_after_failures() {
    let outcome = Run::new(&["run", "-o", "json", "go"])
        .agent(&["no-such-agent"])
        .go()
        .expect(127);
    let failure = outcome.json();
    assert_eq!(failure["isError"], true);
    assert_eq!(failure["errors"][0]["kind"], "agentNotFound");
    let message = failure["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("no-such-agent"), "{message}");

    let outcome = run(&["-o", "json"], &[say("x"), json!({"exit": 3})]).expect(1);
    let failure = outcome.json();
    assert_eq!(failure["isError"], true);
    assert_eq!(failure["text"], "x");
    assert_eq!(failure["errors"][0]["data"]["exitCode"], 3);
}

#[test]
fn the_prompt_comes_from_arguments_and_stdin() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["one"], "", "one"),
        (&["one", "two  three"], "", "one two  three"),
        (&[], "piped\n", "piped"),
        (&["said"], "piped\nlines\n", "said\n\npiped\nlines"),
        (&["said"], "  \n", "said"),
        (&[""], "piped", "piped"),
    ];
    for (said, stdin, wanted) in cases {
        let args = [&["run"], *said].concat();
        let outcome = Run::new(&args)
            .script(&json!({}))
            .stdin(stdin)
            .go()
            .expect(0);
        let prompt = calls(&outcome.log, "session/prompt")[0];
        assert_eq!(
            prompt["params"]["prompt"],
            json!([{"type": "text", "text": wanted}]),
            "{said:?} {stdin:?}"
        );
        assert_eq!(outcome.text(), format!("{wanted}\n"));
    }
}

#[test]
fn run_without_a_prompt_is_a_usage_error() {
    for (args, stdin) in [
        (&["run"][..], ""),
        (&["run", ""], "\n"),
        (&["run", "-o", "json"], " \n\n"),
        (&["run", "-q"], ""),
    ] {
        let outcome = Run::new(args).stdin(stdin).go().expect(2);
        assert_eq!(outcome.text(), "", "{args:?}");
        assert!(outcome.stderr.contains("prompt"), "{}", outcome.stderr);
    }
}

#[test]
fn run_without_an_agent_and_a_terminal_is_an_error_that_names_the_ways_out() {
    for args in [&["run", "hello"][..], &["run", "-q", "hello"], &["acp"]] {
        let outcome = Run::new(args).go().expect(127);
        assert_eq!(outcome.text(), "");
        for way in [
            "--agent NAME",
            "ACPIPE_AGENT",
            "agents default",
            "--agent demo",
        ] {
            assert!(outcome.stderr.contains(way), "{way}: {}", outcome.stderr);
        }
    }
    let json = Run::new(&["run", "-o", "json", "hello"]).go().expect(127);
    let summary: Value = serde_json::from_str(&json.text()).unwrap();
    assert_eq!(summary["errors"][0]["kind"], "agentNotFound");

    // Other agents get no such note.
    let outcome = run(&[], &[say("x"), end("end_turn")]).expect(0);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn quiet_run_prints_only_errors() {
    for reason in ["refusal", "max_tokens", "odd", "cancelled"] {
        let loud = run(&[], &[say("x"), end(reason)]);
        assert!(!loud.stderr.is_empty(), "{reason}");
        let quiet = run(&["-q"], &[say("x"), end(reason)]);
        assert_eq!(quiet.stderr, "", "{reason}");
        assert_eq!(loud.status, quiet.status);
    }
    let failed = run(&["-q"], &[json!({"error": {"code": 1, "message": "why"}})]).expect(1);
    assert!(failed.stderr.contains("why"), "{}", failed.stderr);
}

#[test]
fn verbose_log_goes_to_stderr_only() {
    let steps = [
        json!({"line": "garbage"}),
        json!({"stderr": "agent's own words"}),
        say("x"),
        end("end_turn"),
    ];
    let outcome = run(&["-vv"], &steps).expect(0);
    assert_eq!(outcome.text(), "x\n");
    assert!(
        outcome.stderr.contains("agent's own words"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("garbage"), "{}", outcome.stderr);
    // By default the agent's stderr is not shown.
    let outcome = run(&[], &steps).expect(0);
    assert!(
        !outcome.stderr.contains("agent's own words"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn help_names_the_commands_and_options() {
    for (line, lists) in [
        (
            "--help",
            "run serve sessions demo-agent schema ACPIPE_AGENT --",
        ),
        (
            "run --help",
            "--output text chunks sse json --cwd --env --max-line --permissions codes 127 Ctrl-C --session --continue",
        ),
        ("serve --help", "JSON-RPC --max-line initialize"),
        ("sessions --help", "list show export delete gc --state-dir"),
        ("schema --help", "--dir"),
        ("demo-agent --help", "ACP"),
        ("help run", "PROMPT"),
    ] {
        let outcome = Run::of(line).go().expect(0);
        for word in words(lists) {
            assert!(outcome.text().contains(word), "{line} lacks {word}");
        }
        assert_eq!(outcome.stderr, "", "{line}");
    }
    let version = Run::of("--version").go().expect(0).text();
    assert_eq!(version, format!("acpipe {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_schema_is_printed_or_written() {
    let outcome = Run::of("schema").go().expect(0);
    let document: Value = serde_json::from_str(&outcome.text()).unwrap();
    let file = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/openrpc.json"));
    let expected: Value = serde_json::from_slice(&file.unwrap()).unwrap();
    assert!(document == expected, "schemas/openrpc.json is another");

    let run = Run::of("schema --dir");
    let dir = run.world.dir.join("a").join("b");
    let mut running = run.arg(dir.to_str().unwrap()).start();
    running.await_exit();
    let files = fs::read_dir(&dir).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = files.collect();
    let wanted = acpipe::cli::FILES.iter().map(|&file| file.to_owned());
    assert_eq!(names, wanted.collect());
    for name in names {
        let text = fs::read_to_string(dir.join(&name)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    running.end().expect(0);
}

#[test]
fn closed_stdout_does_not_fail_schema_and_help() {
    for args in [&["schema"][..], &["--help"]] {
        let world = World::new();
        let mut child = world
            .acpipe(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn output_to_a_file_is_complete() {
    let world = World::new();
    let path = world.dir.join("out");
    let script = world.script(&json!({"session/prompt": [[{"repeat": {"times": 2000, "steps": [say("{i},")]}}, end("end_turn")]]}));
    let status = world
        .acpipe(&["run", "go", "--", FAKE_AGENT, &script])
        .stdin(Stdio::null())
        .stdout(fs::File::create(&path).unwrap())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let all = counted(2000) + "\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), all);
}

#[test]
fn demo_agent_command_speaks_acp() {
    let outcome = Run::new(&["run", "-o", "chunks", "hello"])
        .agent(&[crate::harness::ACPIPE, "demo-agent"])
        .go()
        .expect(0);
    assert_eq!(outcome.chunks().last().unwrap()["type"], "finish");
}

#[test]
fn run_output_excludes_background_messages() {
    // Both lines in one write: text that arrives after the prompt was sent cannot be distinguished from its
    // answer.
    let opened = r#"{"jsonrpc":"2.0","id":{id},"result":{"sessionId":"s"}}"#;
    let greeting = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a greeting"}}}}"#;
    let answer = json!({"notify": {"method": "session/update", "params": {"sessionId": "s", "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "the answer"}}}}});
    let script = json!({
        "session/new": [[{"line": format!("{opened}\n{greeting}")}]],
        "session/prompt": [[answer, end("end_turn")]],
    });
    for format in ["text", "chunks", "sse", "json"] {
        let outcome = Run::new(&["run", "-o", format, "go"])
            .script(&script)
            .go()
            .expect(0);
        let text = outcome.text();
        assert!(
            text.contains("the answer") && !text.contains("greeting"),
            "{format}: {text}"
        );
    }
}
