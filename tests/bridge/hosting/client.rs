//! Requests that a client serves, and requests that outlive their turn or process.

use super::{TestProject, answers, ledger, run, terminal, want};
use crate::harness::FAKE_AGENT;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::end;
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
fn forwarded_request_ends_with_its_requester() {
    let request = |path: &str| {
        json!({"frame": {"jsonrpc": "2.0", "id": "w", "method": "fs/read_text_file",
               "params": {"sessionId": "{session}", "path": path}}})
    };
    let withdraw = json!({"notify": {"method": "$/cancel_request", "params": {"requestId": "w"}}});
    for (last, by) in [(withdraw, "agent"), (json!({"exit": 3}), "end")] {
        let place = TestProject::new();
        let steps = [request(&place.path("x")), last];
        let mut server = place.serve(&[], &json!({"fs": {"readTextFile": true}}), &steps);
        server.waive("agent/state");
        let prompt = server.send_prompt("default", "go");
        let (id, _) = server.asked("fs/readTextFile");
        assert_eq!(
            server.notification("$/cancelRequest"),
            json!({"id": id, "by": by})
        );
        // This answer is too late.
        server.reply(&id, &json!({"content": "x"}));
        server.turn(&prompt);
        let log = server.finish().log;
        let told = if by == "agent" {
            vec![json!(-32800)]
        } else {
            Vec::new()
        };
        assert_eq!(answers(&log), told);
    }
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

#[test]
fn per_session_process_gets_its_own_answers() {
    let place = TestProject::new();
    let path = place.path("x");
    fs::write(&path, "text").unwrap();
    let steps = [
        want("fs/read_text_file", &json!({"path": path})),
        json!({"echoAnswer": true}),
        end("end_turn"),
    ];
    let mut server = Server::launch(place.world, &["--serve", "fs"], Framing::Lines, &[]);
    server.initialize();
    let script = server.world.script(&json!({"session/prompt": [steps]}));
    let agent = json!({"command": FAKE_AGENT, "args": [script], "childPerSession": true});
    server.call("agent/connect", &agent);
    server.agent_states(&["starting", "ready"]);
    server.call(
        "session/ensure",
        &json!({"sessionId": "default", "cwd": place.project}),
    );
    let turn = server.prompt("go");
    let text = turn.summary["text"].as_str().unwrap();
    assert!(text.contains("\"content\":\"text\""), "{text}");
    server.finish();
}
