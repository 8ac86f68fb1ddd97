//! Rules of a configuration and tool lists of sessions, applied to requests of a real agent.

use crate::harness::chosen_options;
use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{ask, end, tool_change};
use serde_json::{Value, json};

const OPTIONS: &[(&str, &str)] = &[("y", "allow_once"), ("n", "reject_once")];

/// Script of a turn in which the agent requests permission for these command lines, one after the other.
fn asking(lines: &[&str]) -> Value {
    let steps = lines.iter().enumerate().flat_map(|(n, line)| {
        let id = format!("t{n}");
        let tool = json!({
            "toolCallId": id, "title": "run it", "kind": "execute", "rawInput": {"command": line},
        });
        [
            ask(&tool, OPTIONS),
            tool_change(&id, &json!({"status": "completed"})),
        ]
    });
    let mut steps: Vec<Value> = steps.collect();
    steps.push(end("end_turn"));
    json!({"session/prompt": [steps]})
}

const RULES: &str = r#"
[permissions]
default = "deny"

[[permissions.rules]]
name = "git"
effect = "allow"
command = "git *"

[[permissions.rules]]
effect = "deny"
command = "git push:*"
"#;

const LINES: &[&str] = &["git log", "git log; git push", "ls"];

#[test]
fn rules_of_a_configuration_decide() {
    let run = Run::of("run -o chunks").script(&asking(LINES));
    let file = run.world.file("rules.toml", RULES);
    let outcome = run.arg("--config").arg(&file).arg("go").go().expect(0);
    let decided = outcome.chunks().into_iter().filter(|chunk| {
        chunk["type"] == "data-permission" && chunk["data"]["approved"].is_boolean()
    });
    let decided: Vec<Value> = decided
        .map(|chunk| json!([chunk["data"]["approved"], chunk["data"]["rule"]]))
        .collect();
    let wanted = [
        json!([true, "rule \"git\""]),
        json!([false, "rule 2"]),
        json!([false, "permissions \"deny\""]),
    ];
    assert_eq!(decided, wanted);
    assert_eq!(chosen_options(&outcome.log), ["y", "n", "n"]);
}

#[test]
fn command_line_overrides_the_mode_but_not_the_rules() {
    let run = Run::of("run --permissions approve").script(&asking(LINES));
    let file = run.world.file("rules.toml", RULES);
    let outcome = run.env("ACPIPE_CONFIG", &file).arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["y", "n", "y"]);
}

#[test]
fn a_variable_that_is_empty_names_no_configuration() {
    let run = Run::new(&["run"]).script(&asking(LINES));
    let outcome = run.env("ACPIPE_CONFIG", "").arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["y", "y", "y"]);
}

#[test]
fn the_configuration_of_the_user_is_found() {
    let run = Run::new(&["run"]).script(&asking(LINES));
    run.world.configure(RULES);
    let outcome = run.arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["y", "n", "n"]);
}

#[test]
fn a_wrong_configuration_starts_nothing() {
    let run = Run::new(&["run"]).script(&asking(LINES));
    let file = run
        .world
        .file("rules.toml", "[permissions]\nallowed_tools = [\"Raed\"]\n");
    let outcome = run.arg("--config").arg(&file).arg("go").go().expect(2);
    let wanted = format!(
        "acpipe: {file}:2:18: permissions.allowed_tools: \"Raed\" is not a known tool; did you mean \"Read\"?"
    );
    assert!(outcome.stderr.starts_with(&wanted), "{}", outcome.stderr);
    assert_eq!(outcome.log, Vec::<Value>::new());

    for (file, why) in [
        ("/nowhere/config.toml", "No such file"),
        ("/dev/zero", "the file is larger than 1 MiB"),
    ] {
        let run = Run::new(&["run", "--config", file]).script(&asking(LINES));
        let outcome = run.arg("go").go().expect(2);
        let wanted = format!("cannot read the configuration {file}: {why}");
        assert!(outcome.stderr.contains(&wanted), "{}", outcome.stderr);
        assert_eq!(outcome.log, Vec::<Value>::new());
    }
}

#[test]
fn tool_lists_apply_to_acp_agents() {
    let run = Run::new(&[
        "run",
        "--permissions",
        "deny",
        "--allow-tool",
        "Bash(git:*)",
        "--disallow-tool",
        "Bash(git push:*)",
    ]);
    let outcome = run.script(&asking(LINES)).arg("go").go().expect(0);
    assert_eq!(chosen_options(&outcome.log), ["y", "n", "n"]);
    // The run succeeds, although tools were refused.
    let wanted = "acpipe: the policy refused 2 tool calls (\"run it\", \"run it\"): disallowedTools \"Bash(git push:*)\"; permissions \"deny\"";
    assert!(outcome.stderr.contains(wanted), "{}", outcome.stderr);

    let outcome = Run::of("run --allow-tool Bsh")
        .script(&asking(LINES))
        .arg("go")
        .go()
        .expect(2);
    let wanted = "options.allowedTools: \"Bsh\" is not a known tool; did you mean \"Bash\"?";
    assert!(outcome.stderr.contains(wanted), "{}", outcome.stderr);
}

#[test]
fn each_session_has_its_own_lists() {
    let mut s = Server::ready_with(&["--permissions", "deny"], &asking(LINES));
    let options = json!({"allowedTools": ["Bash(ls)"]});
    s.call(
        "session/ensure",
        &json!({"sessionId": "a", "options": options}),
    );
    let id = s.send_prompt("a", "go");
    s.turn(&id);
    let options = json!({"allowedTools": ["WebFetch(domain:a.b)"]});
    let error = s.call_error(
        "session/ensure",
        &json!({"sessionId": "b", "options": options}),
    );
    assert_eq!(error["data"]["kind"], "invalidTool", "{error}");
    let log = s.finish().log;
    assert_eq!(chosen_options(&log), ["n", "n", "y"]);
}
