//! Requests that a client serves, and requests that outlive their turn or process.

use super::{TestProject, answers, ledger, run, terminal, want};
use serde_json::{Value, json};
use std::fs;

#[test]
fn client_answers_file_and_terminal_requests() {
    let place = TestProject::new();
    let path = place.path("x");
    let steps = [
        want("fs/read_text_file", &json!({"path": path, "line": 2})),
        want("fs/read_text_file", &json!({"path": path})),
        want("fs/write_text_file", &json!({"path": path, "content": "c"})),
        want("terminal/create", &json!({"command": "ls", "args": ["-l"]})),
        want("terminal/wait_for_exit", &json!({"terminalId": "its own"})),
        want("terminal/output", &json!({"terminalId": "its own"})),
        want("terminal/release", &json!({"terminalId": "its own"})),
    ];
    let client = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    // The client serves these requests although acpipe could.
    let mut server = place.serve(&["--serve", "fs,terminal"], &client, &steps);
    let prompt = server.send_prompt("default", "go");
    let (id, asked) = server.asked("fs/readTextFile");
    assert_eq!(
        asked,
        json!({"sessionId": "default", "path": path, "line": 2})
    );
    server.reply(&id, &json!({"content": "not saved yet"}));
    let (id, _) = server.asked("fs/readTextFile");
    server.raw(
        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32002, "message": "none"}})
            .to_string(),
    );
    let (id, asked) = server.asked("fs/writeTextFile");
    assert_eq!(asked["content"], "c");
    server.reply(&id, &Value::Null);
    let (id, asked) = server.asked("terminal/create");
    assert_eq!(
        (&asked["command"], &asked["args"]),
        (&json!("ls"), &json!(["-l"]))
    );
    server.reply(&id, &json!({"terminalId": "its own"}));
    let (id, asked) = server.asked("terminal/waitForExit");
    assert_eq!(
        asked,
        json!({"sessionId": "default", "terminalId": "its own"})
    );
    server.reply(&id, &json!({"exitCode": 0}));
    let (id, _) = server.asked("terminal/output");
    server.reply(&id, &json!({"output": "o", "exitStatus": {"exitCode": 0}}));
    let (id, _) = server.asked("terminal/release");
    server.reply(&id, &json!({}));
    server.turn(&prompt);
    assert!(!fs::exists(&path).unwrap());
    let exit = json!({"exitCode": 0, "signal": null});
    let want = [
        json!({"content": "not saved yet"}),
        json!(-32002),
        json!({}),
        json!({"terminalId": "its own"}),
        exit.clone(),
        json!({"output": "o", "truncated": false, "exitStatus": exit}),
        json!({}),
    ];
    assert_eq!(answers(&server.finish().log), want);
}

#[test]
fn cancelled_turn_performs_only_cleanup_requests() {
    let place = TestProject::new();
    let path = place.path("x");
    let steps = [
        run("sleep 1000"),
        json!({"wait": "session/cancel"}),
        want("fs/write_text_file", &json!({"path": path, "content": "x"})),
        terminal("kill"),
        terminal("wait_for_exit"),
    ];
    let mut server = place.serve(&["--serve", "fs,terminal"], &json!({}), &steps);
    let prompt = server.send_prompt("default", "go");
    server.await_agent_call("session/prompt");
    while ledger(&server).is_empty() {
        std::thread::yield_now();
    }
    server.call("session/cancel", &json!({}));
    server.turn(&prompt);
    let log = server.finish().log;
    let exit = json!({"exitCode": null, "signal": "SIGTERM"});
    assert_eq!(answers(&log)[1..], [json!(-32800), json!({}), exit]);
    assert!(!fs::exists(path).unwrap());
}
