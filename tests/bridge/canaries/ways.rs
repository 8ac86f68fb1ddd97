//! Ways around the members in which secrets are expected: names, numbers, cuts, refused calls, and messages that acpipe
//! does not know.

use super::{assert_records_silent, assert_silent, canary, forms, records};
use crate::acp::peer::Peer;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say, tool};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;

/// Secret of which parts are looked for.
const EDGE: &str = "edge/of-sundial-tundra-hamlet-pontoon";

/// Shortest part of a secret that must not stand anywhere.
const PART: usize = 8;

/// Size of the stderr of a process that acpipe keeps.
const STDERR_TAIL: usize = 64 * 1024;

#[track_caller]
fn assert_no_part(place: &str, written: &str) {
    for at in 0..=EDGE.len() - PART {
        let part = &EDGE[at..at + PART];
        if let Some(found) = written.find(part) {
            let around = written.get(found.saturating_sub(100)..found + 100);
            panic!("{place}: {part:?} in {around:?}");
        }
    }
}

/// Starts a server with an agent that follows a script. The server records a log and a tape.
fn server(args: &[String], env: &[(&str, &str)], script: &Value) -> Server {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = Server::launch(World::new(), &args, Framing::Lines, env);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"questions": true}}),
    );
    let script = s.world.script(script);
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    s
}

#[test]
fn secrets_in_names_of_members_stand_nowhere() {
    let secret = canary("name");
    let (_records, paths, args) = records();
    let named = |form: &String| {
        let input = json!({"by value\n": {form: "the-marker"}});
        let call = tool(
            form,
            &json!({"title": "t", "status": "completed", "rawInput": input, "rawOutput": {form: 1}}),
        );
        [
            call,
            json!({"notify": {"method": "_x/y", "params": {"env": {form: "1"}}}}),
        ]
    };
    let mut steps: Vec<Value> = forms(&secret).iter().flat_map(named).collect();
    steps.push(end("end_turn"));
    let script = json!({"session/prompt": [steps]});
    let mut s = server(&args, &[("MY_TOKEN", &secret)], &script);
    s.prompt("go");
    s.finish();
    assert_records_silent(&paths, &[secret], "the-marker");
}

#[test]
fn number_typed_for_a_form_stands_nowhere() {
    let (whole, float) = ("48392067", "48392.5");
    let (_records, paths, args) = records();
    let form = json!({"mode": "form", "message": "the-marker", "requestedSchema": {"type": "object", "properties": {
        "pin": {"type": "integer"}, "float": {"type": "number"}}}, "sessionId": "{session}"});
    let output = json!({"pin": 48_392_067, "float": 48392.5});
    let script = json!({"session/prompt": [[
        {"ask": {"method": "elicitation/create", "params": form}},
        say(&format!("{whole} {float}")),
        tool("t", &json!({"title": whole, "status": "completed", "rawOutput": output})),
        {"stderr": format!("pin {whole}, {float}")},
        end("end_turn"),
    ]]});
    let mut s = server(&args, &[], &script);
    let prompt = s.send_prompt("default", "go");
    let (id, _) = s.asked("question/ask");
    s.reply(
        &id,
        &json!({"action": "accept", "content": {"pin": 48_392_067, "float": 48392.5}}),
    );
    s.turn(&prompt);
    let stderr = s.finish().stderr;
    // The script of the agent stands in the tape as a path only.
    let numbers = [whole, float];
    for text in paths
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .chain([stderr])
    {
        for number in numbers {
            assert!(!text.contains(number), "{number} in {text}");
        }
    }
}

#[test]
fn no_part_of_a_secret_stands_where_acpipe_cuts_a_text() {
    let (_records, paths, args) = records();
    let stray = (150..200)
        .step_by(5)
        .map(|at| json!({"line": format!("stray {}{EDGE}", "u".repeat(at))}));
    let mut cut: Vec<Value> = stray.collect();
    let at_end = |len: usize| {
        format!(
            "{}{EDGE}{}",
            "z".repeat(len - EDGE.len() / 2),
            "z".repeat(200)
        )
    };
    // A line of the log has 8 KiB, a frame in it 64 KiB.
    cut.push(json!({"stderr": format!("the-marker {}", at_end(8181))}));
    cut.push(say(&at_end(64 * 1024 - 150)));
    cut.push(end("end_turn"));
    let failed =
        json!({"error": {"code": -32603, "message": at_end(2000), "data": {"d": at_end(1900)}}});
    // The tail of stderr begins inside of a secret.
    let line = EDGE.len() + 1;
    let pad = (0..line)
        .find(|pad| (STDERR_TAIL - pad) % line == line / 2)
        .unwrap();
    let many = vec![EDGE; 2 * STDERR_TAIL / line].join("\n");
    let mut crash = vec![json!({"stderr": many})];
    crash.extend((pad > 0).then(|| json!({"stderr": "x".repeat(pad - 1)})));
    crash.push(json!({"exit": 3}));
    let script = json!({"session/prompt": [cut, [failed], crash]});
    let mut s = server(&args, &[("EDGE_TOKEN", EDGE)], &script);
    s.prompt("go");
    let failed = s.send_prompt("default", "go");
    s.turn(&failed);
    let crash = s.send_prompt("default", "go");
    let crashed = s.turn(&crash);
    s.waive("agent/state");
    let stderr = s.finish().stderr;
    assert_no_part("stderr", &stderr);
    assert_no_part("summary", &crashed.summary.to_string());
    for path in &paths {
        assert_no_part(path, &fs::read_to_string(path).unwrap());
    }
    let log = fs::read_to_string(&paths[0]).unwrap();
    assert!(
        log.contains("stray uuu") && log.contains("the-marker"),
        "{log}"
    );
}

#[test]
fn values_of_calls_that_are_refused_stand_nowhere() {
    let (_records, paths, args) = records();
    let script = json!({"session/prompt": [[say("the-marker"), end("end_turn")]]});
    let mut s = server(&args, &[], &script);
    // Each has a secret of its own, since some calls make it known before they are refused.
    let calls: [(&str, &str); 11] = [
        (
            "agent/register",
            r#"{"agent":"!!","command":"x","env":{"A":"@"}}"#,
        ),
        ("agent/connect", r#"{"env":["A=@"]}"#),
        ("agent/connect", r#"{"env":"A=@"}"#),
        ("agent/connect", r#"{"env":{"A":["@"]}}"#),
        ("agent/connect", r#"{"environment":{"A":"@"}}"#),
        ("agent/updateEnvironment", r#"{"set":{"A":{"B":"@"}}}"#),
        ("agent/updateEnvironment", r#"{"set":{"A=@":"x"}}"#),
        ("agent/updateEnvironment", r#"{"set":{"A":"@"},"other":1}"#),
        ("agent/updateEnvironment", r#"{"unset":["A=@"]}"#),
        ("agent/setVariables", r#"{"set":{"A":"@"}}"#),
        (
            "session/ensure",
            r#"{"sessionId":"m","mcpServers":[{"type":"httpx","name":"x","url":"https://h/?key=@","headers":{"A":["@"]}}]}"#,
        ),
    ];
    let broken = [
        r#""set":{"A":"@"},}}"#,
        r#""env" : {"A":"@""#,
        r"set: {A: '@'}}",
        r#""headers":[{"name":"A","value":"@"}]},{]"#,
        r#""set":{"A":"@"},"x":NaN}}"#,
        r#""unset":["A=@"],"x":NaN}}"#,
    ];
    let mut canaries = Vec::new();
    let mut with_secret = |text: &str| {
        let letter = char::from(b'a' + u8::try_from(canaries.len()).unwrap());
        let secret = canary(&format!("{letter}-refused"));
        let text = text.replace('@', &secret);
        canaries.push(secret);
        text
    };
    let mut shown = String::new();
    for (method, params) in calls {
        let params = serde_json::from_str(&with_secret(params)).unwrap();
        shown += &s.call_error(method, &params).to_string();
    }
    for rest in broken {
        let begin = r#"{"jsonrpc":"2.0","method":"agent/updateEnvironment","params":{"#;
        s.raw(&with_secret(&format!("{begin}{rest}")));
        shown += &s.null_answer().to_string();
    }
    s.raw(&with_secret(r#"text {"env":{"A":"@"}}"#));
    shown += &s.null_answer().to_string();
    for (n, address) in ["htp:/u:%@h", "u:%@h", "http:u:%@h"].iter().enumerate() {
        let secret = format!("c4n4ry-{n}-of-an-address");
        let server = json!({"type": "sse", "name": "x", "url": address.replace('%', &secret)});
        let params = json!({"sessionId": format!("u{n}"), "mcpServers": [server]});
        shown += &s.call_error("session/ensure", &params).to_string();
        canaries.push(secret);
    }
    s.prompt("go");
    shown += &s.finish().stderr;
    assert_silent("errors", &shown, &canaries);
    assert_records_silent(&paths, &canaries, "the-marker");
}

#[test]
fn values_of_messages_that_an_editor_sends_to_its_agent_stand_nowhere() {
    let canaries = ["vendor", "meta", "notified"].map(canary);
    let [vendor, meta, notified] = &canaries;
    let (_records, paths, args) = records();
    let world = World::new();
    let script = world.script(&json!({"_vendor/setKey": [[{"reply": {"said": "the-marker"}}]]}));
    let args = [
        &["acp".to_owned()],
        &args[..],
        &["--".to_owned(), FAKE_AGENT.to_owned(), script],
    ]
    .concat();
    let mut command = world.acpipe(&args);
    command.current_dir(&world.dir);
    let mut peer = Peer::start(command);
    peer.result(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {}}),
    )
    .unwrap();
    peer.result("session/new", &json!({"cwd": world.dir, "mcpServers": []}))
        .unwrap();
    let params = json!({"env": {"A": vendor}, "apiKey": vendor, "_meta": {"env": [{"name": "A", "value": meta}]}});
    peer.result("_vendor/setKey", &params).unwrap();
    peer.notify("_vendor/set", &json!({"set": {"A": notified}}));
    peer.close().unwrap();
    let (_, stderr) = peer.wait().unwrap();
    assert_silent("stderr", &stderr, &canaries);
    assert_records_silent(&paths, &canaries, "the-marker");
    let log = fs::read_to_string(&paths[0]).unwrap();
    assert!(log.contains("_vendor/set"), "{log}");
}
