//! Files and terminals that agents want of their client: served by acpipe, passed on to a client, judged, withdrawn.

use crate::harness::server::{Framing, Server, Turn};
use crate::harness::steps::{end, tool, tool_change};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The directory of the session, and what lies beside it.
struct Place {
    world: World,
    project: PathBuf,
}

impl Place {
    fn new() -> Self {
        let world = World::new();
        let project = world.dir.join("project");
        fs::create_dir(&project).unwrap();
        fs::write(world.dir.join("secret"), "secret").unwrap();
        Self { world, project }
    }

    fn path(&self, name: &str) -> String {
        self.project.join(name).to_str().unwrap().to_owned()
    }

    /// A server whose client can do this, and whose agent takes these steps when it is prompted.
    fn serve(self, args: &[&str], client: &Value, steps: &[Value]) -> Server {
        let steps = [steps, &[end("end_turn")]].concat();
        let mut server = Server::launch(self.world, args, Framing::Lines, &[]);
        server.call(
            "initialize",
            &json!({"protocolVersion": 1, "capabilities": client}),
        );
        server.connect(&json!({"session/prompt": [steps]}));
        server.call(
            "session/ensure",
            &json!({"sessionId": "default", "cwd": self.project}),
        );
        server
    }

    /// What the agent is answered by acpipe itself in one turn, and the turn.
    fn answers(self, args: &[&str], steps: &[Value]) -> (Vec<Value>, Turn) {
        let args = [&["--serve", "fs,terminal"], args].concat();
        let mut server = self.serve(&args, &json!({}), steps);
        let turn = server.prompt("go");
        (answers(&server.finish().log), turn)
    }
}

fn want(method: &str, params: &Value) -> Value {
    json!({"ask": {"method": method, "params": params}})
}

fn run(line: &str) -> Value {
    want("terminal/create", &json!({"command": line}))
}

fn terminal(method: &str) -> Value {
    want(
        &format!("terminal/{method}"),
        &json!({"terminalId": "terminal-1"}),
    )
}

/// What an agent was answered, without the ids; errors as their codes.
fn answers(log: &[Value]) -> Vec<Value> {
    let answer = |message: &Value| match message.get("error") {
        Some(error) => Some(error["code"].clone()),
        None => message.get("result").cloned(),
    };
    log.iter().filter_map(answer).collect()
}

fn ledger(server: &Server) -> Vec<Value> {
    let log = server.world.dir.join("state/sessions/default.jsonl");
    let text = fs::read_to_string(log).unwrap();
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = records.filter(|record| record["record"] == "decision");
    decisions.map(|record| record["decision"].clone()).collect()
}

#[test]
fn only_what_is_served_is_offered() {
    for (args, client, fs, terminal) in [
        (&[][..], json!({}), (false, false), false),
        (&["--serve", "fs"], json!({}), (true, true), false),
        (&["--serve", "terminal"], json!({}), (false, false), true),
        (
            &[],
            json!({"fs": {"readTextFile": true}, "terminal": true}),
            (true, false),
            true,
        ),
    ] {
        let place = Place::new();
        let path = place.path("x");
        let steps = [
            want("fs/write_text_file", &json!({"path": path, "content": "x"})),
            run("true"),
        ];
        let mut server = if client["terminal"] == true {
            place.serve(args, &client, &steps[..1])
        } else {
            place.serve(args, &client, &steps)
        };
        server.prompt("go");
        let log = server.finish().log;
        let told = &calls(&log, "initialize")[0]["params"]["clientCapabilities"];
        assert_eq!(told["fs"]["readTextFile"], fs.0, "{told}");
        assert_eq!(told["fs"]["writeTextFile"], fs.1, "{told}");
        assert_eq!(told["terminal"], terminal, "{told}");
        let written = &answers(&log)[0];
        assert_eq!(*written == json!({}), fs.1, "{written}");
        assert!(fs.1 || *written == -32601, "{written}");
    }
}

#[test]
fn files_are_written_and_read() {
    let place = Place::new();
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
    // What is allowed by the policy is not asked about, and the agent shows its own tools.
    assert_eq!(turn.of("tool-input-available").len(), 0);
}

#[test]
fn errors_say_what_to_do() {
    let place = Place::new();
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
        (-32002, "resourceNotFound", "no such file"),
        (
            -32602,
            "invalidParams",
            "leads out of the session's directories",
        ),
        (-32602, "invalidParams", "not absolute"),
        (-32602, "", "path"),
        (-32603, "resource", "no-such-program-anywhere was not found"),
        (
            -32602,
            "invalidParams",
            "lies in none of the session's directories",
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

#[test]
fn a_command_is_run_to_its_end() {
    let place = Place::new();
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
fn the_output_of_a_terminal_is_the_result_of_a_tool_that_reports_no_other() {
    let content = json!([{"type": "terminal", "terminalId": "terminal-1"}]);
    let own = json!([{"type": "content", "content": {"type": "text", "text": "own"}}]);
    let call = |fields: &Value| tool_change("t", fields);
    let run = [
        tool("t", &json!({"kind": "execute", "status": "in_progress"})),
        run("printf 'a\\nb'"),
    ];
    // As Kimi does: the terminal is released before the call ends, which repeats no content.
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
        let (_, turn) = Place::new().answers(&[], &steps);
        assert_eq!(
            turn.summary["toolResults"],
            json!([{"callId": "t", "result": result, "isError": is_error}]),
            "{steps:?}"
        );
        let outputs = turn.of("tool-output-available");
        if let Some(last) = outputs.last().filter(|_| !is_error) {
            let shown = &last["output"]["terminalOutput"];
            assert_eq!(*shown == "a\nb", result == "a\nb", "{last}");
        }
    }
}

#[test]
fn a_line_is_for_the_shell_and_only_the_last_of_its_output_is_kept() {
    let create = json!({"command": "printf 'é%.0s' 1 2 3 4 && kill -9 $$", "outputByteLimit": 5});
    let steps = [
        want("terminal/create", &create),
        terminal("wait_for_exit"),
        terminal("output"),
    ];
    let (answers, _) = Place::new().answers(&[], &steps);
    let exit = json!({"exitCode": null, "signal": "SIGKILL"});
    assert_eq!(answers[1], exit);
    assert_eq!(
        answers[2],
        json!({"output": "éé", "truncated": true, "exitStatus": exit})
    );
}

/// What is left behind after a test fails it: see the harness.
#[test]
fn what_is_killed_ends_and_can_be_read() {
    let stubborn = "trap '' TERM; touch deaf; while :; do sleep 1; done";
    let steps = [
        run(stubborn),
        // One that is killed before it is deaf ends by the first signal.
        run("until test -e deaf; do sleep 0.01; done"),
        want(
            "terminal/wait_for_exit",
            &json!({"terminalId": "terminal-2"}),
        ),
        terminal("kill"),
        terminal("wait_for_exit"),
        terminal("output"),
    ];
    let (answers, _) = Place::new().answers(&["--timeout", "terminate=100ms"], &steps);
    assert_eq!(answers[4], json!({"exitCode": null, "signal": "SIGKILL"}));
    assert_eq!(answers[5]["exitStatus"], answers[4]);
}

#[test]
fn a_released_terminal_ends_with_all_that_it_started() {
    let steps = [
        run("setsid sleep 1000 & setsid sleep 1000 & sleep 1000"),
        terminal("release"),
        terminal("wait_for_exit"),
    ];
    let (answers, _) = Place::new().answers(&[], &steps);
    assert_eq!(answers[1..], [json!({}), json!(-32002)]);
}

#[test]
fn a_terminal_ends_with_its_session() {
    for method in ["session/close", "agent/disconnect"] {
        let mark = Place::new();
        let file = mark.path("ended");
        let line = format!("trap 'echo ended > {file}; exit' TERM; while :; do sleep 0.05; done");
        let mut server = mark.serve(&["--serve", "terminal"], &json!({}), &[run(&line)]);
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
fn a_flood_is_read_to_its_end() {
    let line = "yes | head -c 50000000; echo end";
    let steps = [run(line), terminal("wait_for_exit"), terminal("output")];
    let (answers, _) = Place::new().answers(&[], &steps);
    assert_eq!(answers[1]["exitCode"], 0);
    let output = answers[2]["output"].as_str().unwrap();
    assert_eq!(output.len(), 1024 * 1024);
    assert!(output.ends_with("y\nend\n"));
    assert_eq!(answers[2]["truncated"], true);
}

#[test]
fn a_tool_shows_what_its_terminal_says() {
    let content = json!({"status": "in_progress", "content": [{"type": "terminal", "terminalId": "terminal-1"}]});
    let place = Place::new();
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
fn what_the_policy_denies_is_not_done() {
    let place = Place::new();
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
fn lists_of_a_session_hold_for_what_is_served() {
    let place = Place::new();
    let (cwd, path) = (place.project.clone(), place.path("x"));
    let mut server = place.serve(&["--serve", "terminal"], &json!({}), &[run("touch x")]);
    let options = json!({"disallowedTools": ["Bash"]});
    let own = json!({"sessionId": "own", "cwd": cwd, "options": options});
    server.call("session/ensure", &own);
    let id = server.send_prompt("own", "go");
    let turn = server.turn(&id);
    assert_eq!(turn.of("tool-output-denied").len(), 1);
    let told = turn.of("data-permission");
    assert_eq!(
        told.last().unwrap()["data"]["rule"],
        "disallowedTools \"Bash\""
    );
    server.finish();
    assert!(!fs::exists(path).unwrap());
}

#[test]
fn the_client_is_asked_whether_it_may_be() {
    for (choice, approved) in [("allow", true), ("reject", false)] {
        let place = Place::new();
        let path = place.path("x");
        let write = want(
            "fs/write_text_file",
            &json!({"path": path, "content": "new"}),
        );
        let args = ["--serve", "fs", "--permissions", "ask"];
        let mut server = place.serve(&args, &json!({"permissions": true}), &[write]);
        let prompt = server.send_prompt("default", "go");
        let (id, asked) = server.asked("permission/request");
        assert_eq!(asked["toolCall"]["title"], format!("Write {path}"));
        assert_eq!(asked["toolCall"]["kind"], "edit");
        assert_eq!(asked["toolCall"]["input"]["content"], "new");
        assert!(!fs::exists(&path).unwrap());
        server.reply(
            &id,
            &json!({"outcome": {"outcome": "selected", "optionId": choice}}),
        );
        let turn = server.turn(&prompt);
        assert_eq!(turn.one("tool-approval-response")["approved"], approved);
        assert_eq!(
            turn.of("tool-output-available").len(),
            usize::from(approved)
        );
        assert_eq!(fs::exists(&path).unwrap(), approved);
        let entry = &ledger(&server)[0];
        assert_eq!(
            (&entry["what"], &entry["by"]),
            (&json!("writeFile"), &json!("client"))
        );
        let answer = &answers(&server.finish().log)[0];
        assert_eq!(*answer == json!({}), approved, "{answer}");
    }
}

#[test]
fn what_is_allowed_is_taken_down() {
    let place = Place::new();
    let path = place.path("x");
    let steps = [
        want("fs/write_text_file", &json!({"path": path, "content": "x"})),
        run("echo a  b"),
    ];
    let mut server = place.serve(&["--serve", "fs,terminal"], &json!({}), &steps);
    server.prompt("go");
    let entries = ledger(&server);
    assert_eq!(entries.len(), 2, "{entries:?}");
    for (entry, title) in entries
        .iter()
        .zip([format!("Write {path}"), "echo a  b".to_owned()])
    {
        assert_eq!(entry["title"], title);
        assert_eq!(
            (&entry["by"], &entry["approved"]),
            (&json!("policy"), &json!(true))
        );
        assert_eq!(entry["rule"], "permissions \"approve\"");
    }
    server.finish();
}

#[test]
fn a_client_that_serves_is_asked_and_its_answers_are_the_agents() {
    let place = Place::new();
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
    // What acpipe could do itself is the client's all the same.
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
fn what_a_client_was_asked_ends_with_whoever_wanted_it() {
    let request = |path: &str| {
        json!({"frame": {"jsonrpc": "2.0", "id": "w", "method": "fs/read_text_file",
               "params": {"sessionId": "{session}", "path": path}}})
    };
    let withdraw = json!({"notify": {"method": "$/cancel_request", "params": {"requestId": "w"}}});
    for (last, by) in [(withdraw, "agent"), (json!({"exit": 3}), "end")] {
        let place = Place::new();
        let steps = [request(&place.path("x")), last];
        let mut server = place.serve(&[], &json!({"fs": {"readTextFile": true}}), &steps);
        server.waive("agent/state");
        let prompt = server.send_prompt("default", "go");
        let (id, _) = server.asked("fs/readTextFile");
        assert_eq!(
            server.notification("$/cancelRequest"),
            json!({"id": id, "by": by})
        );
        // Too late.
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
fn nothing_is_done_after_a_cancel_but_what_ends_it() {
    let place = Place::new();
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
fn a_process_of_its_own_gets_its_answers() {
    let place = Place::new();
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

#[test]
fn an_answer_under_the_same_id_allows_nothing_else() {
    let place = Place::new();
    let path = place.path("x");
    let session = "{session}";
    let write = json!({"frame": {"jsonrpc": "2.0", "id": "w", "method": "fs/write_text_file",
        "params": {"sessionId": session, "path": path, "content": "x"}}});
    // To read is allowed by the policy: it is not what the client is asked.
    let read = json!({"ask": {"id": "w", "method": "session/request_permission", "params": {
        "sessionId": session, "toolCall": {"toolCallId": "t", "kind": "read", "title": "Read"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}}});
    let args = ["--serve", "fs", "--permissions", "reads"];
    let steps = [write, read, json!({"wait": "session/cancel"})];
    let mut server = place.serve(&args, &json!({"permissions": true}), &steps);
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    let decided = |server: &Server, count| {
        while ledger(server).len() < count {
            std::thread::yield_now();
        }
    };
    decided(&server, 1);
    server.reply(
        &id,
        &json!({"outcome": {"outcome": "selected", "optionId": "reject"}}),
    );
    decided(&server, 2);
    server.call("session/cancel", &json!({}));
    server.turn(&prompt);
    assert!(!fs::exists(path).unwrap());
    server.finish();
}

#[test]
fn lists_of_tools_hold_for_what_is_served() {
    for in_session in [true, false] {
        let place = Place::new();
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
fn what_is_set_for_a_command_is_judged_and_shown() {
    let create = json!({"command": "git", "args": ["status"], "env": [{"name": "PATH", "value": "/tmp/e vil"}]});
    let place = Place::new();
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
fn what_an_agent_announced_before_is_not_shown_as_what_is_asked() {
    let place = Place::new();
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

#[test]
fn a_variable_name_that_shells_would_read_as_a_command_is_refused() {
    let rule = "[permissions]\ndefault = \"deny\"\nallowed_tools = [\"Bash(git log:*)\", \"Bash(env:*)\"]\n";
    for client in [json!({}), json!({"terminal": true})] {
        let place = Place::new();
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
        let want = "env: \"git log --grep\" is not a name of a variable: use letters, digits and _, and no digit first";
        assert_eq!(first, Some(want));
        assert!(!fs::exists(&made).unwrap());
    }
}
