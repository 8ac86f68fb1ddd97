//! Terminals that acpipe serves: their commands, output and end.

use super::{TestProject, answers, run, terminal, want};
use crate::harness::steps::{tool, tool_change};
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_command_is_run_to_its_end() {
    let place = TestProject::new();
    let path = place.project.to_str().unwrap().to_owned();
    let create = json!({
        "command": "sh", "args": ["-c", "echo out; echo $A >&2; pwd; cat; exit 3"],
        "env": [{"name": "A", "value": "b c"}],
    });
    let steps = [
        want("terminal/create", &create),
        terminal("wait_for_exit"),
        terminal("output"),
        terminal("kill"),
        terminal("release"),
        terminal("output"),
    ];
    let exit = json!({"exitCode": 3, "signal": null});
    let output = format!("out\nb c\n{path}\n");
    let want = [
        json!({"terminalId": "terminal-1"}),
        exit.clone(),
        json!({"output": output, "truncated": false, "exitStatus": exit}),
        json!({}),
        json!({}),
        json!(-32002),
    ];
    assert_eq!(place.answers(&[], &steps).0, want);
}

#[test]
fn terminal_output_is_the_result_of_a_tool_without_one() {
    let content = json!([{"type": "terminal", "terminalId": "terminal-1"}]);
    let own = json!([{"type": "content", "content": {"type": "text", "text": "own"}}]);
    let call = |fields: &Value| tool_change("t", fields);
    let run = [
        tool("t", &json!({"kind": "execute", "status": "in_progress"})),
        run("printf 'a\\nb'"),
    ];
    // Order of Kimi: it releases the terminal before the call ends, and the last update repeats no content.
    let kimi = [
        call(&json!({ "content": content })),
        terminal("wait_for_exit"),
        terminal("release"),
        call(&json!({"status": "completed"})),
    ];
    let at_the_end = [
        terminal("wait_for_exit"),
        call(&json!({"content": content, "status": "completed"})),
    ];
    let failed = [
        call(&json!({ "content": content })),
        terminal("wait_for_exit"),
        call(&json!({"status": "failed"})),
    ];
    let with_text = [
        call(&json!({ "content": content })),
        terminal("wait_for_exit"),
        call(&json!({"content": own, "status": "completed"})),
    ];
    for (steps, result, is_error) in [
        (&kimi[..], "a\nb", false),
        (&at_the_end[..], "a\nb", false),
        (&failed[..], "a\nb", true),
        (&with_text[..], "own", false),
    ] {
        let steps = [&run[..], steps].concat();
        let (_, turn) = TestProject::new().answers(&[], &steps);
        assert_eq!(
            turn.summary["toolResults"],
            json!([{"name": "execute", "callId": "t", "result": result, "isError": is_error}]),
            "{steps:?}"
        );
        let outputs = turn.of("tool-output-available");
        assert!(is_error || !outputs.is_empty(), "{steps:?}");
        if let Some(last) = outputs.last().filter(|_| !is_error) {
            let shown = &last["output"]["terminalOutput"];
            assert_eq!(*shown == "a\nb", result == "a\nb", "{last}");
        }
    }
}

#[test]
fn command_line_runs_in_a_shell_and_keeps_the_end_of_its_output() {
    let create = json!({"command": "printf 'é%.0s' 1 2 3 4 && kill -9 $$", "outputByteLimit": 5});
    let steps = [
        want("terminal/create", &create),
        terminal("wait_for_exit"),
        terminal("output"),
    ];
    let (answers, _) = TestProject::new().answers(&[], &steps);
    let exit = json!({"exitCode": null, "signal": "SIGKILL"});
    assert_eq!(answers[1], exit);
    assert_eq!(
        answers[2],
        json!({"output": "éé", "truncated": true, "exitStatus": exit})
    );
}

/// The harness fails the test if a process of it survives.
#[test]
fn killed_terminal_ends_by_sigkill_and_reports_its_status() {
    let stubborn = "trap '' TERM; touch deaf; while :; do sleep 1; done";
    let steps = [
        run(stubborn),
        // Before its trap is set, the command would end by the first signal.
        run("until test -e deaf; do sleep 0.01; done"),
        want(
            "terminal/wait_for_exit",
            &json!({"terminalId": "terminal-2"}),
        ),
        terminal("kill"),
        terminal("wait_for_exit"),
        terminal("output"),
    ];
    let (answers, _) = TestProject::new().answers(&["--timeout", "terminate=100ms"], &steps);
    assert_eq!(answers[4], json!({"exitCode": null, "signal": "SIGKILL"}));
    assert_eq!(answers[5]["exitStatus"], answers[4]);
}

#[test]
fn released_terminal_ends_its_child_processes() {
    let steps = [
        run("setsid sleep 1000 & setsid sleep 1000 & sleep 1000"),
        terminal("release"),
        terminal("wait_for_exit"),
    ];
    let (answers, _) = TestProject::new().answers(&[], &steps);
    assert_eq!(answers[1..], [json!({}), json!(-32002)]);
}

#[test]
fn a_terminal_ends_with_its_session() {
    for method in ["session/close", "agent/disconnect"] {
        let mark = TestProject::new();
        let file = mark.path("ended");
        let line = format!(
            "trap 'echo ended > {file}; exit' TERM; touch ready; while :; do sleep 0.05; done"
        );
        let steps = [
            run(&line),
            // Before its trap is set, the command would end without a word.
            run("until test -e ready; do sleep 0.01; done"),
            want(
                "terminal/wait_for_exit",
                &json!({"terminalId": "terminal-2"}),
            ),
        ];
        let mut server = mark.serve(&["--serve", "terminal"], &json!({}), &steps);
        server.waive("agent/state");
        server.prompt("go");
        server.call(method, &json!({}));
        let since = std::time::Instant::now();
        while !fs::exists(&file).unwrap() {
            assert!(since.elapsed() < crate::harness::LIMIT, "{method}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        server.finish();
    }
}

#[test]
fn flood_of_terminal_output_is_read_to_its_end() {
    let line = "yes | head -c 50000000; echo end";
    let steps = [run(line), terminal("wait_for_exit"), terminal("output")];
    let (answers, _) = TestProject::new().answers(&[], &steps);
    assert_eq!(answers[1]["exitCode"], 0);
    let output = answers[2]["output"].as_str().unwrap();
    assert_eq!(output.len(), 1024 * 1024);
    assert!(output.ends_with("y\nend\n"));
    assert_eq!(answers[2]["truncated"], true);
}

#[test]
fn tool_shows_the_output_of_its_terminal() {
    let content = json!({"status": "in_progress", "content": [{"type": "terminal", "terminalId": "terminal-1"}]});
    let place = TestProject::new();
    let go = place.path("go");
    let steps = [
        tool(
            "t",
            &json!({"title": "Run", "kind": "execute", "status": "pending"}),
        ),
        run(&format!(
            "echo one; until [ -e {go} ]; do sleep 0.01; done; echo two"
        )),
        tool_change("t", &content),
        terminal("wait_for_exit"),
        terminal("release"),
        tool_change("t", &json!({"status": "completed"})),
    ];
    let mut server = place.serve(&["--serve", "terminal"], &json!({}), &steps);
    let prompt = server.send_prompt("default", "go");
    // While the command runs.
    server.await_chunk("default", |chunk| chunk["data"]["output"] == "one\n");
    fs::write(go, "").unwrap();
    let turn = server.turn(&prompt);
    server.finish();
    let shown = turn.of("data-terminal");
    assert!(shown.len() > 1, "{shown:?}");
    for chunk in &shown {
        assert_eq!(chunk["id"], "terminal-1");
        assert_eq!(chunk["data"]["toolCallId"], "t");
    }
    assert_eq!(shown[0]["data"]["output"], "one\n");
    let last = &shown.last().unwrap()["data"];
    assert_eq!(last["output"], "one\ntwo\n");
    assert_eq!(last["details"], json!({"exit_code": 0, "signal": null}));
}

#[test]
fn a_variable_name_that_shells_would_read_as_a_command_is_refused() {
    let rule = "[permissions]\ndefault = \"deny\"\nallowed_tools = [\"Bash(git log:*)\", \"Bash(env:*)\"]\n";
    for client in [json!({}), json!({"terminal": true})] {
        let place = TestProject::new();
        let made = place.path("made");
        let config = place.world.dir.join("config.toml");
        fs::write(&config, rule).unwrap();
        let create = |member: &str, value: Value| {
            let mut create = json!({"command": "touch", "args": [made], "env": []});
            create[member] = value;
            want("terminal/create", &create)
        };
        let env = |name: &str, value: &str| create("env", json!([{"name": name, "value": value}]));
        let steps = [
            env("git log --grep", "x"),
            env("A=1 env B", "x"),
            env("", "x"),
            env("A", "x\0"),
            create("args", json!(["a\0b"])),
            create("cwd", json!("/w\0")),
        ];
        let args = ["--serve", "terminal", "--config", config.to_str().unwrap()];
        let mut server = place.serve(&args, &client, &steps);
        server.prompt("go");
        let log = server.finish().log;
        assert_eq!(answers(&log), vec![json!(-32602); steps.len()]);
        let first = log.iter().find_map(|m| m["error"]["message"].as_str());
        let want = "env: \"git log --grep\" is not a valid variable name; use letters, digits and _, but no digit \
                        first";
        assert_eq!(first, Some(want));
        assert!(!fs::exists(&made).unwrap());
    }
}
