//! The Claude Code CLI: discovery, arguments, and results of its turns.

use crate::harness::claude::{self, args, processes, requests};
use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Creates a world with a directory that contains the CLI as `claude`, and returns both the world and a
/// `PATH`.
fn with_cli() -> (World, String) {
    let world = World::new();
    let bin = world.dir.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(FAKE_CLAUDE, bin.join("claude")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    (world, path)
}

#[test]
fn a_prompt_goes_to_a_process_of_its_session() {
    let mut s = claude::ready(&json!({}));
    let turn = s.prompt("hello");
    assert_eq!(turn.summary["text"], "hello");
    assert_eq!(turn.summary["stopReason"], "end_turn");
    assert_eq!(turn.summary["isError"], false);
    let text = turn.of("text-delta");
    assert_eq!(
        text.len(),
        1,
        "what the assistant frame repeats is not told"
    );
    let status = s.call("agent/status", &json!({}));
    assert_eq!(status["protocol"], "claude");
    assert_eq!(status["agentInfo"]["version"], "9.9.9");
    assert_eq!(status["program"]["file"], FAKE_CLAUDE);
    assert_eq!(status["program"]["foundBy"], "variable");
    let log = s.finish().log;
    assert_eq!(log[0]["argv"], json!(["--version"]));
    assert_eq!(processes(&log).len(), 1);
    assert_eq!(requests(&log, "initialize").len(), 1);
}

#[test]
fn the_cli_is_found_by_every_name() {
    for by in ["protocol", "command", "default", "after --"] {
        let (world, path) = with_cli();
        let env = [("PATH", path.as_str())];
        let args: &[&str] = match by {
            "default" => &["--agent", "claude"],
            "after --" => &["--", "claude"],
            _ => &[],
        };
        let mut s = Server::launch(world, args, Framing::Lines, &env);
        s.waive("session/state");
        s.initialize();
        let params = match by {
            "protocol" => json!({"protocol": "claude"}),
            "command" => json!({"command": "claude"}),
            _ => json!({}),
        };
        let status = s.call("agent/connect", &params);
        assert_eq!(status["protocol"], "claude", "{by}");
        let program = status["program"]["file"].as_str().unwrap();
        assert!(program.ends_with("/bin/claude"), "{by}: {program}");
        s.agent_states(&["starting", "ready"]);
        s.ensure("default");
        assert_eq!(s.prompt("hi").summary["text"], "hi", "{by}");
    }
}

#[test]
fn run_works_with_the_claude_cli() {
    for by in ["--agent", "--"] {
        let (world, path) = with_cli();
        let mut run = Run::new(&["run", "-o", "json"]);
        if by == "--agent" {
            run = run.arg("--agent").arg("claude").arg("hello");
        } else {
            run = run.arg("hello").agent(&["claude"]);
        }
        let outcome = run.env("PATH", &path).go().expect(0);
        assert_eq!(outcome.json()["text"], "hello", "{by}");
        drop(world);
    }
}

#[test]
fn claude_runs_without_the_marks_of_a_surrounding_claude() {
    let env = [
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
        ("CLAUDE_KEPT", "yes"),
    ];
    let mut s = claude::launch(World::new(), &[], &json!({}), &env);
    s.connect_claude(&json!({}));
    s.ensure("default");
    let log = s.finish().log;
    let started: Vec<&Value> = log.iter().filter(|l| l["argv"].is_array()).collect();
    assert_eq!(started.len(), 2);
    for process in started {
        assert_eq!(process["env"]["CLAUDE_KEPT"], "yes");
        for name in ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"] {
            assert!(process["env"].get(name).is_none(), "{name}");
        }
    }
}

#[test]
fn restricting_policy_starts_the_cli_in_the_mode_in_which_it_asks() {
    let deny = &["--permissions", "deny"][..];
    for (args, options, started, chosen) in [
        (deny, json!({}), Some("default"), json!("default")),
        (deny, json!({"mode": "plan"}), Some("plan"), Value::Null),
        (&[], json!({}), None, Value::Null),
    ] {
        let mut s = claude::launch(World::new(), args, &json!({}), &[]);
        s.connect_claude(&json!({}));
        let params = json!({"sessionId": "s", "options": options});
        let opened = s.call("session/ensure", &params);
        assert_eq!(
            opened["recovery"]["chosenMode"], chosen,
            "{args:?} {options}"
        );
        let log = s.finish().log;
        let words = log
            .iter()
            .filter_map(|line| line["argv"].as_array())
            .flatten();
        let mut modes = words.filter_map(|word| word.as_str()?.strip_prefix("--permission-mode="));
        assert_eq!(modes.next_back(), started, "{args:?} {options}");
    }
}

fn all_options() -> Value {
    json!({"model": "haiku", "mode": "plan", "effort": "low", "maxTurns": 3, "appendSystemPrompt": "Be brief.",
        "allowedTools": ["Read", "Bash(git:*)"], "disallowedTools": ["WebFetch"],
        "additionalDirectories": ["/tmp"], "settingSources": ["user"], "outputSchema": {"type": "object"}})
}

fn check_options(process: &Value, allowed: &[&str]) {
    for (flag, value) in [
        ("--model=", "haiku"),
        ("--permission-mode=", "plan"),
        ("--effort=", "low"),
        ("--max-turns=", "3"),
        ("--disallowedTools=", "WebFetch"),
        ("--add-dir=", "/tmp"),
        ("--setting-sources=", "user"),
        ("--json-schema=", r#"{"type":"object"}"#),
    ] {
        assert_eq!(args(process, flag), [value], "{flag}");
    }
    assert_eq!(args(process, "--allowedTools="), allowed);
    let system = args(process, "--append-system-prompt=");
    assert!(system[0].starts_with("Be brief.\n\n"), "{system:?}");
}

#[test]
fn options_become_cli_arguments_from_every_source() {
    for by in ["connect", "ensure", "flags"] {
        let flags = [
            "--model=haiku",
            "--mode=plan",
            "--effort=low",
            "--max-turns=3",
            "--append-system-prompt=Be brief.",
            "--allow-tool=Read",
            "--allow-tool=Bash(git:*)",
            "--disallow-tool=WebFetch",
            "--add-dir=/tmp",
            "--setting-sources=user",
            r#"--output-schema={"type":"object"}"#,
            "--agent=claude",
        ];
        let mut s = claude::server(if by == "flags" { &flags } else { &[] }, &json!({}));
        s.waive("session/state");
        if by == "flags" {
            s.call("agent/connect", &json!({}));
            s.agent_states(&["starting", "ready"]);
        } else {
            let options = if by == "connect" {
                all_options()
            } else {
                json!({})
            };
            s.connect_claude(&options);
        }
        if by == "ensure" {
            s.call("session/ensure", &json!({ "options": all_options() }));
        } else {
            s.ensure("default");
        }
        check_options(&processes(&s.finish().log)[0], &["Read,Bash(git:*)"]);
    }
}

#[test]
fn session_options_are_restored_by_a_later_acpipe() {
    let mut s = claude::server(&[], &json!({}));
    s.connect_claude(&json!({}));
    s.call("session/ensure", &json!({ "options": all_options() }));
    let schema = json!([{"say": "x"}, {"result": {"structured_output": {"a": 1}}}]);
    assert_eq!(
        s.steps(&schema).summary["structuredOutput"],
        json!({"a": 1})
    );
    let env = [("CLAUDE_CLI_PATH", FAKE_CLAUDE)];
    let mut s = s.restart_in(&[], &env);
    s.initialize();
    s.connect_claude(&json!({}));
    let ensured = s.ensure("default");
    assert_eq!(ensured["recovery"]["rung"], "resume");
    let log = s.finish().log;
    let [first, second] = &processes(&log)[..] else {
        panic!("{log:?}")
    };
    check_options(first, &["Read,Bash(git:*)"]);
    // A stored list of allowed tools counts only for a client that gives it.
    check_options(second, &[]);
    assert_eq!(args(first, "--session-id="), args(second, "--resume="));
}

#[test]
fn unsupported_options_are_refused_by_name() {
    let mut s = Server::initialized(&[]);
    let agent = |options: Value| json!({"command": FAKE_AGENT, "options": options});
    let error = s.call_error("agent/connect", &agent(json!({"maxTurns": 2})));
    assert_eq!(error["data"]["kind"], "invalidParams");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("options.maxTurns"), "{error}");
    drop(s);

    let mut s = claude::server(&[], &json!({}));
    s.connect_claude(&json!({}));
    for (options, kind, word) in [
        (json!({"allowedTools": ["Reed"]}), "invalidTool", "Reed"),
        (json!({"allowedTools": ["Bash("]}), "invalidTool", "Bash("),
        (json!({"maxTurns": 0}), "invalidParams", "options.maxTurns"),
        (
            json!({"additionalDirectories": ["a"]}),
            "invalidParams",
            "options.additionalDirectories",
        ),
    ] {
        let error = s.call_error("session/ensure", &json!({ "options": options }));
        assert_eq!(error["data"]["kind"], kind, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
}

#[test]
fn mcp_servers_are_passed_without_exposing_their_secrets() {
    let mut s = claude::server(&[], &json!({"mcpErrors": {"a": "it does not answer"}}));
    s.connect_claude(&json!({}));
    let servers =
        json!([{"name": "a", "command": "c", "args": [], "env": [{"name": "K", "value": "v"}]}]);
    let session = s.call(
        "session/ensure",
        &json!({"mcpServers": servers, "options": {"allowedTools": ["mcp__a__x"]}}),
    );
    assert_eq!(
        session["state"]["mcpFailures"],
        json!({"a": "it does not answer"})
    );
    let process = &s.processes()[0];
    assert!(!process.to_string().contains("mcp-config"), "{process}");
    let given = &claude::requests(&s.finish().log, "mcp_set_servers")[0];
    assert_eq!(given["servers"]["a"]["env"], json!({"K": "v"}));
}

#[test]
fn live_session_refuses_different_options() {
    let mut s = claude::ready(&json!({}));
    let other = json!({"options": {"effort": "high"}});
    let error = s.call_error("session/ensure", &other);
    assert!(
        error["message"].to_string().contains("session/close"),
        "{error}"
    );
    // A new process can have different options.
    let new = json!({"strategy": "new", "options": {"effort": "high"}});
    s.call("session/ensure", &new);
    s.call("session/ensure", &other);
    assert_eq!(args(&s.processes()[1], "--effort="), ["high"]);
    drop(s);

    // A session that is being opened already has its process.
    let mut s = claude::server(&[], &json!({"control": {"initialize": []}}));
    s.connect_claude(&json!({}));
    let ensure = s.send("session/ensure", &json!({}));
    s.call_error("session/ensure", &other);
    s.call("session/close", &json!({}));
    s.error(&ensure);
}
