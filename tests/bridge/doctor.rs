//! `acpipe doctor`: the machine, one agent, and the measurement of faults.

mod faults;
mod workarounds;

use crate::harness::run::Run;
use crate::harness::steps::{ask, say, tool, until_cancelled};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World, words};
use serde_json::{Value, json};
use std::fs;

/// Text of the prompts that are cancelled, in text and in a tool.
const LONG: &str = "from 1 to 500";
const TOOL: &str = "touch acpipe-probe && sleep 30";

/// History of the session `fake-1`.
fn history() -> [Value; 2] {
    let text = |kind: &str, text: &str| json!({"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}});
    [
        text("user_message_chunk", "one"),
        text("agent_message_chunk", "repeated"),
    ]
}

/// Run of `session/load` or `session/resume` that has only the session `fake-1`.
fn restore(known: &[Value]) -> Value {
    let unknown = json!([{"error": {"code": -32002, "message": "session not found"}}]);
    json!([[{"if": {"params": "fake-1", "then": known, "else": unknown}}]])
}

/// Permission requests of the agent in a tool: for another command, and for that of the probe.
fn requests() -> [Value; 2] {
    let command = json!({"toolCallId": "t", "title": "Shell", "rawInput": {"command": TOOL}});
    let other = json!({"toolCallId": "u", "title": "rm -r x"});
    let options = [("yes", "allow_once"), ("no", "reject_once")];
    [ask(&other, &options), ask(&command, &options)]
}

/// Run of `session/prompt`, with these steps for short prompts and for the long one.
fn prompts(short: &[Value], long: &[Value]) -> Value {
    prompts_with(short, long, &requests())
}

/// Like [`prompts`], with these steps in the tool.
fn prompts_with(short: &[Value], long: &[Value], work: &[Value]) -> Value {
    let [wait, stop] = until_cancelled();
    let begin = [tool("t", &json!({"title": "Shell"}))];
    let in_tool = [&begin, work, &[wait, stop]].concat();
    let in_text = json!({"if": {"params": LONG, "then": long, "else": short}});
    json!([[{"if": {"params": TOOL, "then": in_tool, "else": [in_text]}}]])
}

/// Script of an agent without faults.
fn clean() -> Value {
    let [user, answer] = history();
    let [wait, stop] = until_cancelled();
    let can = json!({"loadSession": true, "sessionCapabilities": {"resume": {}, "list": {}, "close": {}}});
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": can, "authMethods": [],
            "agentInfo": {"name": "fake-agent", "version": "1.0.0"}}}]],
        "session/list": [[{"reply": {"sessions": [{"sessionId": "fake-1", "cwd": "/"}]}}]],
        "session/close": [[{"reply": {}}]],
        "session/load": restore(&[user, answer, json!({"reply": {}})]),
        "session/resume": restore(&[json!({"reply": {}})]),
        "session/prompt": prompts(&[json!({"default": true})], &[say("one"), wait, stop]),
    })
}

/// Script of an agent with another run of one method.
fn with(method: &str, run: Value) -> Value {
    let mut script = clean();
    script[method] = run;
    script
}

/// Returns the check of this name, which must be the only one.
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    let mut found = checks.iter().filter(|check| check["check"] == name);
    let check = found
        .next()
        .unwrap_or_else(|| panic!("no {name}: {report:#}"));
    assert!(found.next().is_none(), "{name} twice: {report:#}");
    check
}

#[test]
fn machine_is_checked_without_starting_an_agent() {
    let run = Run::new(&["doctor", "--json", "--no-path-probe"]);
    let config = run.world.file("broken.toml", "[permissions\n");
    let report = run.go().expect(0).json();
    for name in [
        "acpipe",
        "state directory",
        "configuration",
        "PATH",
        "supervisor",
        "demo",
    ] {
        assert_eq!(check(&report, name)["status"], "ok", "{report:#}");
    }
    assert_eq!(check(&report, "supervisor")["left"], 0);
    assert!(check(&report, "agents")["notInstalled"].as_u64() > Some(10));
    let line = format!("doctor --no-path-probe --config {config} --state-dir /dev/null");
    let text = Run::of(&line).env("ACPIPE_AGENT", "no-such-agent --acp");
    let text = text.go().expect(1).text();
    for line in [
        "problem  configuration",
        "problem  state directory",
        "problem  ACPIPE_AGENT",
        "3 problems",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn configuration_of_a_project_is_checked_in_its_directory() {
    let run = Run::new(&["doctor", "--json", "--no-path-probe", "--cwd"]);
    let below = run.world.dir.join("below");
    fs::create_dir(&below).unwrap();
    let rules = "[permissions]\ndefault = \"deny\"\n";
    let file = run.world.file(".acpipe.toml", rules);
    let report = run.arg(below.to_str().unwrap()).go().expect(0).json();
    assert_eq!(check(&report, "configuration")["file"], file);
}

#[test]
fn agent_is_started_opened_and_stopped() {
    let report = Run::new(&["doctor", "--json"])
        .script(&clean())
        .go()
        .expect(0);
    let (report, log) = (report.json(), report.log);
    for name in ["program", "initialize", "agent", "session/new", "stop"] {
        assert_eq!(check(&report, name)["status"], "ok", "{report:#}");
    }
    assert_eq!(check(&report, "program")["program"]["file"], FAKE_AGENT);
    assert_eq!(check(&report, "agent")["capabilities"]["load"], true);
    assert_eq!(check(&report, "stop")["by"], "endOfInput");
    let methods = log.iter().filter_map(|line| line["method"].as_str());
    let methods: Vec<&str> = methods.collect();
    assert_eq!(methods, ["initialize", "session/new"]);
    let cwd = log[1]["params"]["cwd"].as_str().unwrap();
    assert!(
        cwd.contains("acpipe-doctor-") && !fs::exists(cwd).unwrap(),
        "{cwd}"
    );
}

#[test]
fn agent_that_does_not_work_is_a_problem_with_advice() {
    let error = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
    let no_model = json!({"stderr": "Error: no model"});
    let (new, hello) = ("session/new", "initialize");
    for (method, steps, found) in [
        (
            new,
            json!([error(-32000, "Authentication required")]),
            "sign-in required",
        ),
        (
            new,
            json!([error(-32603, "broken")]),
            "error -32603: broken",
        ),
        (
            hello,
            json!([error(-32603, "broken")]),
            "error -32603: broken",
        ),
        (
            hello,
            json!([no_model, {"exit": 3}]),
            "exit code 3; its stderr: Error: no model",
        ),
        (
            hello,
            json!([{"line": "no longer maintained"}, {"line": "install another"}, {"exit": 0}]),
            "exit code 0; its stdout: no longer maintained | install another",
        ),
        (
            hello,
            json!([{"reply": {"protocolVersion": 2}}]),
            "speaks ACP version 2",
        ),
        (hello, json!([{"hang": true}]), "no answer within 300 ms"),
    ] {
        // Only the agent that does not answer costs the time of its limit.
        let is_silent = found.starts_with("no answer");
        let limit = if is_silent { "300ms" } else { "20s" };
        let run = Run::of(&format!("doctor --json --timeout initialize={limit}"));
        let run = run.script(&with(method, json!([steps])));
        let report = run.go().expect(1).json();
        let check = check(&report, method);
        assert_eq!(check["status"], "problem", "{report:#}");
        assert!(check["found"].as_str().unwrap().contains(found), "{check}");
        assert!(check["advice"].is_string(), "{check}");
        let is_signed_out = check["signInRequired"] == true;
        assert_eq!(is_signed_out, found.contains("sign-in"), "{check}");
    }
    let missing = Run::of("doctor --json").agent(&["no-such-agent"]);
    let report = missing.go().expect(1).json();
    let found = check(&report, "program")["found"].as_str().unwrap();
    assert!(found.contains("not found in PATH"), "{found}");
}

#[test]
fn agent_that_is_not_installed_gets_the_command_that_installs_it() {
    let run = Run::new(&["doctor", "opencod", "--json"]);
    let report = run.env("PATH", "/nowhere").go().expect(1).json();
    assert_eq!(report["agent"], "opencode");
    let advice = check(&report, "program")["advice"].as_str().unwrap();
    assert!(advice.contains("npm install -g opencode-ai"), "{advice}");
}

#[test]
fn claude_code_is_asked_only_for_its_version() {
    let run = Run::new(&["doctor", "claude", "--json", "--probe", "--yes"]);
    let run = run.env("CLAUDE_CLI_PATH", FAKE_CLAUDE);
    let report = run.go().expect(0).json();
    assert_eq!(check(&report, "version")["status"], "ok");
    let sign_in = check(&report, "sign-in");
    assert!(
        sign_in["found"]
            .as_str()
            .unwrap()
            .starts_with("not checked"),
        "{sign_in}"
    );
    assert_eq!(check(&report, "probe")["status"], "warning");
}

#[test]
fn prompts_are_sent_only_with_consent() {
    for (line, error) in [
        ("doctor demo --probe", "add --yes to send them"),
        ("doctor --probe --yes", "--probe needs an agent"),
        ("doctor no-such-agent", "agent \"no-such-agent\" not found"),
    ] {
        let outcome = Run::of(line).go().expect(2);
        assert!(outcome.stderr.contains(error), "{}", outcome.show());
    }
}

#[test]
fn profile_is_private_and_read_by_the_next_run() {
    let world = World::new();
    let mut script = with("session/resume", json!([[{"hang": true}]]));
    let info = &mut script["initialize"][0][0]["reply"]["agentInfo"];
    info["version"] = json!(format!("1.0\nghp_{}", "a1B2".repeat(9)));
    let script = world.script(&script);
    let command = |line: &str| {
        let args = [&words(line)[..], &["--", FAKE_AGENT, &script]].concat();
        world.acpipe(&args).output().unwrap()
    };
    let output = command("doctor --probe --yes --json --probe-limit 500ms");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = report["profile"].as_str().unwrap();
    let want = world.dir.join("state/profiles/fake-agent.json");
    assert_eq!(path, want.to_str().unwrap());
    let profile: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(profile["quirks"]["brokenResume"], true);
    assert_eq!(profile["version"], "1.0ghp_[hidden]");
    assert!(
        profile["measured"]["prompt"]["firstOutputMs"].is_u64(),
        "{profile:#}"
    );
    let before = world.log().len();
    for _ in 0..2 {
        let output = command("run --session x hello");
        assert!(output.status.success(), "{output:?}");
    }
    let log = world.log().split_off(before);
    assert!(log.iter().any(|line| line["method"] == "session/load"));
    assert!(log.iter().all(|line| line["method"] != "session/resume"));
    fs::write(path, "{").unwrap();
    let output = command("run --ephemeral hello");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.contains("cannot read the agent profile"),
        "{stderr}"
    );
}
