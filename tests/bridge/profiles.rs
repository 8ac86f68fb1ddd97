//! Chunk profiles: chunks for clients with older major versions of the AI SDK.

use crate::harness::run::Run;
use crate::harness::server::{Framing, Server, Turn};
use crate::harness::steps::{ask, end, say, think, tool, tool_change};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

/// Script with every feature that an older major version lacks.
fn script() -> Value {
    let options = [("n", "reject_once")];
    let image = json!({"type": "image", "mimeType": "image/png", "data": "QUJD"});
    json!({"session/prompt": [[
        think("hm"),
        {"update": {"sessionUpdate": "agent_thought_chunk", "content": image}},
        tool("a", &json!({"name": "A", "title": "first", "status": "pending"})),
        tool_change("a", &json!({"rawInput": {"x": 1}, "status": "in_progress"})),
        tool_change("a", &json!({"status": "completed", "rawOutput": "out"})),
        ask(&json!({"toolCallId": "b", "kind": "edit", "rawInput": {}}), &options),
        tool_change("b", &json!({"status": "failed"})),
        say("done"),
        end("end_turn"),
    ]]})
}

fn play(args: &[&str], action: &Value) -> (Value, Turn) {
    let world = World::new();
    let script = world.script(&script());
    let args = [args, &["--", FAKE_AGENT, &script]].concat();
    let mut s = Server::launch(world, &args, Framing::Lines, &[]);
    let profile = s.call("initialize", action)["chunkProfile"].clone();
    s.ensure("default");
    s.agent_states(&["starting", "ready"]);
    s.allow_gaps("default");
    let turn = s.prompt("go");
    (profile, turn)
}

fn check(major: u32, turn: &Turn) {
    let has = |kind: &str| !turn.of(kind).is_empty();
    assert_eq!(has("tool-approval-request"), major == 7, "{major}");
    assert_eq!(has("tool-approval-response"), major == 7, "{major}");
    assert_eq!(has("tool-output-denied"), major == 7, "{major}");
    assert_eq!(has("reasoning-file"), major == 7, "{major}");
    assert_eq!(has("file"), major < 7, "{major}");
    assert_eq!(turn.of("data-permission").len(), 2, "{major}");
    let calls = turn.chunks.iter().filter(|c| !c["toolCallId"].is_null());
    let calls: Vec<&Value> = calls.collect();
    let ids: Vec<&Value> = calls.iter().map(|c| &c["toolCallId"]).collect();
    assert!(
        ids.contains(&&json!("a")) && ids.contains(&&json!("b")),
        "{major}: {ids:?}"
    );
    for field in ["title", "toolMetadata"] {
        let told = calls.iter().any(|c| c.get(field).is_some());
        assert_eq!(told, major > 5, "{major}: {field} in {calls:?}");
    }
    // A title without a field in the profile is sent as data.
    let told = turn.chunks.iter().any(|c| {
        c["title"] == "first" || (c["type"] == "data-tool-call" && c["data"]["title"] == "first")
    });
    assert!(told, "{major}: {:?}", turn.of("data-tool-call"));
    // The summary does not depend on the profile.
    assert_eq!(turn.summary["text"], "done");
    let results = &turn.summary["toolResults"];
    assert_eq!(results[0]["result"], "out", "{major}");
    assert_eq!(
        (&results[1]["result"], &results[1]["isError"]),
        (&json!("Permission refused"), &json!(true)),
        "{major}"
    );
}

#[test]
fn each_chunk_profile_gets_its_own_chunk_types() {
    for major in [7, 6, 5] {
        let name = major.to_string();
        let action = json!({"protocolVersion": 1, "chunkProfile": major});
        let (told, turn) = play(&[], &action);
        assert_eq!(told, major);
        check(major, &turn);
        // The command line also sets the profile; the client's own value takes precedence.
        for (option, params) in [(&*name, json!({"protocolVersion": 1})), ("5", action)] {
            let mut s = Server::start(&["--chunk-profile", option]);
            assert_eq!(s.call("initialize", &params)["chunkProfile"], major);
        }
    }
}

#[test]
fn unknown_chunk_profile_is_refused() {
    let mut s = Server::start(&[]);
    for major in [json!(4), json!(8), json!(0), json!("7")] {
        let error = s.call_error(
            "initialize",
            &json!({"protocolVersion": 1, "chunkProfile": major}),
        );
        assert_eq!(error["code"], -32602, "{major}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("chunkProfile"), "{message}");
    }
    s.finish();
    Run::new(&["run", "--chunk-profile", "4", "x"])
        .go()
        .expect(2);
}

#[test]
fn run_accepts_a_chunk_profile() {
    let outcome = Run::new(&["run", "-o", "chunks", "--chunk-profile", "5", "go"])
        .script(&script())
        .go()
        .expect(0);
    let chunks = outcome.chunks();
    assert!(chunks.iter().any(|c| c["toolCallId"] == "a"));
    assert!(chunks.iter().all(|c| c.get("toolMetadata").is_none()));
    assert!(chunks.iter().any(|c| c["type"] == "data-tool-call"));
}

/// Script of an agent that requests permission for the call `t` and then completes it.
fn asked_script() -> Value {
    let options = [("y", "allow_once"), ("n", "reject_once")];
    let call = json!({"toolCallId": "t", "kind": "execute", "rawInput": {"command": "ls"}});
    json!({"session/prompt": [[
        ask(&call, &options),
        tool_change("t", &json!({"status": "completed", "rawOutput": "out"})),
        end("end_turn"),
    ]]})
}

/// Starts a server whose client uses this profile and declares permissions.
fn asked_client(major: u32) -> Server {
    let mut s = Server::start(&["--permissions", "ask"]);
    let capabilities = json!({"permissions": true});
    let action = json!({"protocolVersion": 1, "chunkProfile": major, "capabilities": capabilities});
    s.call("initialize", &action);
    s.connect(&asked_script());
    s.ensure("default");
    s.allow_gaps("default");
    s
}

fn answer(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn approval_chunk_depends_on_the_chunk_profile() {
    for major in [7, 6, 5] {
        let mut s = asked_client(major);
        let prompt = s.send_prompt("default", "go");
        let (id, asked) = s.asked("permission/request");
        // A replay while the request is open contains it, too.
        let replayed = s.call("session/replay", &json!({"afterSeq": 0}));
        let replayed: Vec<&Value> = replayed["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["chunk"])
            .filter(|chunk| chunk["type"] == "tool-approval-request")
            .collect();
        s.reply(&id, &answer("y"));
        let turn = s.turn(&prompt);
        let requests = turn.of("tool-approval-request");
        assert_eq!(requests.len(), usize::from(major > 5), "{major}");
        assert_eq!(replayed, requests, "{major}");
        for request in requests {
            assert_eq!(request["approvalId"], asked["questionId"]);
            let automatic = (major == 7).then_some(&json!(false)).cloned();
            assert_eq!(request.get("isAutomatic"), automatic.as_ref(), "{major}");
        }
        let responses = turn.of("tool-approval-response");
        assert_eq!(responses.len(), usize::from(major == 7), "{major}");
        assert_eq!(
            turn.one("tool-output-available")["output"]["rawOutput"],
            "out"
        );

        let prompt = s.send_prompt("default", "again");
        let (id, _) = s.asked("permission/request");
        s.reply(&id, &answer("n"));
        let turn = s.turn(&prompt);
        let denied = turn.of("tool-output-denied");
        assert_eq!(denied.len(), usize::from(major > 5), "{major}");
        let failed = turn.of("tool-output-error");
        assert_eq!(failed.len(), usize::from(major == 5), "{major}");
        // In profile 6 a replay omits the requests of decided approvals, since no chunk holds the decision.
        let replayed = s.call("session/replay", &json!({"afterSeq": 0}));
        let replayed = replayed["entries"].as_array().unwrap().iter();
        let replayed = replayed.filter(|entry| entry["chunk"]["type"] == "tool-approval-request");
        assert_eq!(replayed.count(), if major == 7 { 2 } else { 0 }, "{major}");
    }
}

#[test]
fn discobot_profile_names_tools_live_in_replays_and_in_messages() {
    let action = json!({"protocolVersion": 1, "chunkProfile": "discobot"});
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[
        {"update": {"sessionUpdate": "plan", "entries": [{"content": "a", "priority": "high", "status": "pending"}]}},
        tool("a", &json!({"title": "List", "kind": "read", "status": "pending"})),
        tool_change("a", &json!({"status": "completed", "rawOutput": "out"})),
        say("done"),
        end("end_turn"),
    ]]}));
    let mut s = Server::launch(world, &["--", FAKE_AGENT, &script], Framing::Lines, &[]);
    assert_eq!(s.call("initialize", &action)["chunkProfile"], "discobot");
    s.ensure("default");
    s.agent_states(&["starting", "ready"]);
    s.allow_gaps("default");
    // The summary keeps the names of acpipe.
    let id = s.send_prompt("default", "go");
    let summary = s.result(&id);
    assert_eq!(summary["toolsUsed"], json!(["read"]));
    let chunks = s.take_chunks("default");
    for _ in 0..2 {
        s.notification("session/activity");
    }
    let outputs = |chunks: &[&Value]| -> Vec<Value> {
        let outputs = chunks
            .iter()
            .filter(|c| c["type"] == "tool-output-available");
        outputs.map(|c| c["output"].clone()).collect()
    };
    let entries = json!([{"content": "a", "priority": "high", "status": "pending"}]);
    let live: Vec<&Value> = chunks.iter().collect();
    assert_eq!(outputs(&live), [entries.clone(), json!("out")]);
    let message = summary["messageId"].as_str().unwrap();
    let text = live.iter().find(|chunk| chunk["type"] == "text-start");
    assert_eq!(text.unwrap()["id"], format!("text-{message}-1"));
    let replay = s.call("session/replay", &json!({"afterSeq": 0}));
    let entries_of = replay["entries"].as_array().unwrap();
    let replayed: Vec<&Value> = entries_of.iter().map(|entry| &entry["chunk"]).collect();
    assert_eq!(outputs(&replayed), outputs(&live));
    let list = s.call("message/list", &json!({}));
    let parts = list["messages"][1]["parts"].as_array().unwrap();
    let tools = parts.iter().filter(|part| part["type"] == "dynamic-tool");
    let tools: Vec<(&Value, &Value)> = tools.map(|t| (&t["toolName"], &t["output"])).collect();
    assert_eq!(
        tools,
        [
            (&json!("TodoWrite"), &entries),
            (&json!("List"), &json!("out"))
        ]
    );
}

#[test]
fn run_prints_chunks_of_the_discobot_profile() {
    let run = |format: &str, code: i32| {
        let run = Run::new(&["run", "--chunk-profile", "discobot", "-o", format, "go"]);
        let script = run
            .world
            .script(&json!({"session/prompt": [[say("done"), end("end_turn")]]}));
        run.agent(&[FAKE_AGENT, &script]).go().expect(code).text()
    };
    // These formats have no chunks.
    for format in ["text", "json", "agui"] {
        assert_eq!(run(format, 2), "", "{format}");
    }
    let chunks = run("chunks", 0);
    assert!(chunks.contains("\"id\":\"text-msg-"), "{chunks}");
    assert_eq!(chunks.matches("text-delta").count(), 1, "{chunks}");
}
