//! Files that acpipe serves.

use super::{TestProject, want};
use serde_json::{Value, json};

#[test]
fn files_are_written_and_read() {
    let place = TestProject::new();
    let path = place.path("new/a.txt");
    let read = |window: Value| {
        let mut params = json!({"path": path});
        params
            .as_object_mut()
            .unwrap()
            .extend(window.as_object().unwrap().clone());
        want("fs/read_text_file", &params)
    };
    let text = "one\r\ntwo\nthree";
    let steps = [
        want(
            "fs/write_text_file",
            &json!({"path": path, "content": text}),
        ),
        read(json!({})),
        read(json!({"line": 2, "limit": 1})),
        read(json!({"line": 9})),
    ];
    let content = |text: &str| json!({"content": text});
    let (answers, turn) = place.answers(&[], &steps);
    assert_eq!(
        answers,
        [json!({}), content(text), content("two\n"), content("")]
    );
    // The policy allows these requests, so no approval and no tool call is shown for them. The agent reports
    // its own tool calls.
    assert_eq!(turn.of("tool-input-available").len(), 0);
}

#[test]
fn host_request_errors_explain_the_cause() {
    let place = TestProject::new();
    let read = |path: &str| want("fs/read_text_file", &json!({"path": path}));
    let steps = [
        read(&place.path("none")),
        read(&place.path("../secret")),
        read("relative"),
        want("fs/read_text_file", &json!({"line": 1})),
        want(
            "terminal/create",
            &json!({"command": "no-such-program-anywhere"}),
        ),
        want("terminal/create", &json!({"command": "ls", "cwd": "/"})),
        want("terminal/output", &json!({"terminalId": "terminal-9"})),
        want(
            "fs/read_text_file",
            &json!({"sessionId": "nobody's", "path": "/x"}),
        ),
    ];
    let mut server = place.serve(&["--serve", "fs,terminal"], &json!({}), &steps);
    server.prompt("go");
    let log = server.finish().log;
    let errors: Vec<&Value> = log.iter().filter_map(|m| m.get("error")).collect();
    let said: Vec<(i64, &str, &str)> = errors
        .iter()
        .map(|e| {
            let text = |value: &'static str| e.pointer(value).and_then(Value::as_str).unwrap_or("");
            (
                e["code"].as_i64().unwrap(),
                text("/data/kind"),
                text("/message"),
            )
        })
        .collect();
    let want = [
        (
            -32002,
            "resourceNotFound",
            "No such file or directory (ENOENT)",
        ),
        (
            -32602,
            "invalidParams",
            "leads out of the session's directories",
        ),
        (-32602, "invalidParams", "an absolute path"),
        (-32602, "", "path"),
        (
            -32603,
            "resource",
            "cannot run no-such-program-anywhere: No such file or directory (ENOENT)",
        ),
        (
            -32602,
            "invalidParams",
            "is outside of the session's directories",
        ),
        (-32002, "resourceNotFound", "terminal-9"),
        (-32602, "invalidParams", "nobody's"),
    ];
    assert_eq!(said.len(), want.len(), "{said:?}");
    for (said, want) in said.iter().zip(want) {
        assert!(
            said.0 == want.0 && said.1 == want.1 && said.2.contains(want.2),
            "{said:?}"
        );
    }
}
