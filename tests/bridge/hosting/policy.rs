//! Policy for files and terminals: allowed, denied and asked requests, and how they are shown and stored.

use super::{TestProject, answers, ledger, run, want};
use crate::harness::steps::tool;
use serde_json::{Value, json};
use std::fs;

#[test]
fn denied_host_request_is_not_performed() {
    let place = TestProject::new();
    let (path, beside) = (place.path("x"), place.path("ran"));
    let steps = [
        want("fs/write_text_file", &json!({"path": path, "content": "x"})),
        run(&format!("touch {beside}")),
    ];
    let args = ["--serve", "fs,terminal", "--permissions", "deny"];
    let mut server = place.serve(&args, &json!({}), &steps);
    let turn = server.prompt("go");
    assert_eq!(turn.of("tool-output-denied").len(), 2);
    let entries = ledger(&server);
    let told: Vec<_> = entries
        .iter()
        .map(|e| (e["what"].as_str().unwrap(), &e["approved"]))
        .collect();
    assert_eq!(
        told,
        [("writeFile", &json!(false)), ("terminal", &json!(false))]
    );
    let end = server.finish();
    assert_eq!(answers(&end.log), [json!(-32603), json!(-32603)]);
    assert!(!fs::exists(path).unwrap() && !fs::exists(beside).unwrap());
}

#[test]
fn tool_lists_apply_to_served_requests() {
    for in_session in [true, false] {
        let place = TestProject::new();
        let (path, beside) = (place.path("x"), place.path("ran"));
        let steps = [
            want("fs/write_text_file", &json!({"path": path, "content": "x"})),
            run(&format!("touch {beside}")),
        ];
        let config = place.world.dir.join("config.toml");
        let lists = "[permissions]\ndisallowed_tools = [\"Bash(touch:*)\", \"Write\"]\n";
        fs::write(&config, if in_session { "" } else { lists }).unwrap();
        let args = [
            "--serve",
            "fs,terminal",
            "--config",
            config.to_str().unwrap(),
        ];
        let mut server = place.serve(&args, &json!({}), &steps);
        if in_session {
            let options = json!({"disallowedTools": ["Bash(touch:*)", "Write"]});
            let project = server.world.dir.join("project");
            server.call("session/close", &json!({}));
            server.call(
                "session/ensure",
                &json!({"sessionId": "default", "cwd": project, "options": options}),
            );
        }
        server.prompt("go");
        assert!(!fs::exists(path).unwrap() && !fs::exists(beside).unwrap());
        server.finish();
    }
}

#[test]
fn variables_of_a_command_are_judged_and_shown() {
    let create = json!({"command": "git", "args": ["status"], "env": [{"name": "PATH", "value": "/tmp/e vil"}]});
    let place = TestProject::new();
    let config = place.world.dir.join("config.toml");
    let rule = "[permissions]\ndefault = \"ask\"\nallowed_tools = [\"Bash(git:*)\"]\n";
    fs::write(&config, rule).unwrap();
    let args = ["--serve", "terminal", "--config", config.to_str().unwrap()];
    let steps = [want("terminal/create", &create)];
    let mut server = place.serve(&args, &json!({"permissions": true}), &steps);
    let prompt = server.send_prompt("default", "go");
    let (id, asked) = server.asked("permission/request");
    assert_eq!(
        asked["toolCall"]["input"]["command"],
        "PATH='/tmp/e vil' git status"
    );
    server.reply(&id, &json!({"outcome": {"outcome": "cancelled"}}));
    server.turn(&prompt);
    server.finish();
}

#[test]
fn earlier_announcement_is_not_shown_as_the_request() {
    let place = TestProject::new();
    let path = place.path("x");
    let lie = json!({"title": "Harmless", "kind": "read", "rawInput": {"path": "/w/other"},
        "content": [{"type": "diff", "path": "/w/other", "oldText": "a", "newText": "b"}]});
    let steps = [
        tool("host-1", &lie),
        want(
            "fs/write_text_file",
            &json!({"path": path, "content": "true words"}),
        ),
    ];
    let args = ["--serve", "fs", "--permissions", "ask"];
    let mut server = place.serve(&args, &json!({"permissions": true}), &steps);
    let prompt = server.send_prompt("default", "go");
    let (id, asked) = server.asked("permission/request");
    assert_eq!(asked["toolCall"]["title"], format!("Write {path}"));
    assert_eq!(asked["toolCall"]["input"]["content"], "true words");
    assert_eq!(asked["toolCall"]["content"], Value::Null);
    server.reply(&id, &json!({"outcome": {"outcome": "cancelled"}}));
    server.turn(&prompt);
    server.finish();
}
