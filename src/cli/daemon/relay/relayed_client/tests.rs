//! Tests of relayed clients: what they and the next daemon receive after the end of a daemon.

use super::*;
use serde_json::json;

fn lines(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Passes on a message of the client; returns what the daemon receives.
fn sent(client: &mut RelayedClient, message: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    client.sent(message.to_string().as_bytes(), true, &mut out);
    lines(&out)
}

/// Passes on a message of the daemon; returns what the client receives.
fn received(client: &mut RelayedClient, message: &Value) -> Vec<Value> {
    let (mut out, mut own) = (Vec::new(), Vec::new());
    client.received(message.to_string().as_bytes(), &mut out, &mut own);
    lines(&out)
}

fn call(id: u64, method: &str, params: impl Into<Value>) -> Value {
    let params = params.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn result(id: u64, result: impl Into<Value>) -> Value {
    let result = result.into();
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn chunk(seq: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/chunk", "params": {"sessionId": "s", "turnId": "t", "seq": seq,
        "chunk": {"type": "x"}}})
}

/// Client of the session `s` with chunks until 7.
fn following() -> RelayedClient {
    let mut client = RelayedClient::new(RelayFace::Neutral);
    for (id, method, params) in [
        (1, "initialize", json!({"protocolVersion": 1, "x": 1.5})),
        (2, "agent/connect", json!({"agent": "a"})),
        (3, "session/ensure", json!({"sessionId": "s"})),
    ] {
        let call = call(id, method, params);
        assert_eq!(sent(&mut client, &call), [call]);
        received(&mut client, &result(id, json!({"sessionId": "s"})));
    }
    assert_eq!(received(&mut client, &chunk(7)), [chunk(7)]);
    client
}

/// Ends the daemon, and connects the client to the next one. Returns what the client and the next daemon receive.
fn next_daemon(client: &mut RelayedClient) -> (Vec<Value>, Vec<Value>) {
    let (mut shown, mut out) = (Vec::new(), Vec::new());
    client.lost(&mut shown);
    client.restore(&mut out);
    (lines(&shown), lines(&out))
}

#[test]
fn next_daemon_learns_of_the_client_its_agents_and_its_sessions() {
    let mut client = following();
    let (shown, restored) = next_daemon(&mut client);
    assert_eq!(shown, Vec::<Value>::new());
    let calls: Vec<(&Value, &Value)> = restored
        .iter()
        .map(|call| (&call["method"], &call["params"]))
        .collect();
    let want = [
        (json!("initialize"), json!({"protocolVersion": 1, "x": 1.5})),
        (json!("agent/connect"), json!({"agent": "a"})),
        (
            json!("session/attach"),
            json!({"sessionId": "s", "afterSeq": 7}),
        ),
    ];
    let want: Vec<(&Value, &Value)> = want
        .iter()
        .map(|(method, params)| (method, params))
        .collect();
    assert_eq!(calls, want);
    for call in &restored {
        let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": {}});
        assert_eq!(received(&mut client, &answer), Vec::<Value>::new());
    }
}

#[test]
fn prompt_is_sent_again_with_its_turn_and_no_chunk_comes_twice() {
    let mut client = following();
    let prompt = call(
        4,
        "session/prompt",
        json!({"sessionId": "s", "message": "go"}),
    );
    let first = sent(&mut client, &prompt);
    assert!(first[0]["params"]["turnId"].is_string(), "{first:?}");
    let (shown, restored) = next_daemon(&mut client);
    assert_eq!(shown, Vec::<Value>::new());
    assert_eq!(restored.last(), first.last());
    // The stored turn is repeated with its numbers.
    for old in [6, 7] {
        assert_eq!(received(&mut client, &chunk(old)), Vec::<Value>::new());
    }
    assert_eq!(received(&mut client, &chunk(8)), [chunk(8)]);
    let summary = result(4, json!({"sessionId": "s", "text": "x"}));
    assert_eq!(received(&mut client, &summary), [summary]);
    assert_eq!(
        received(&mut client, &chunk(7)),
        [chunk(7)],
        "a replay of the client"
    );
}

#[test]
fn call_that_may_have_had_its_effect_fails() {
    let mut client = following();
    sent(&mut client, &call(4, "execute", json!({"message": "go"})));
    sent(&mut client, &call(5, "session/list", json!({})));
    let batch = json!([call(6, "session/list", json!({}))]);
    assert_eq!(sent(&mut client, &batch), [batch]);
    let (shown, restored) = next_daemon(&mut client);
    let failed: Vec<&Value> = shown.iter().map(|error| &error["id"]).collect();
    assert_eq!(failed, [4, 6]);
    assert_eq!(shown[0]["error"]["data"]["kind"], "agentExited");
    assert_eq!(restored.last().unwrap()["id"], 5);
}

#[test]
fn call_while_no_daemon_runs_is_sent_to_the_next_one() {
    let mut client = following();
    client.lost(&mut Vec::new());
    let (execute, note) = (
        call(4, "execute", json!({"message": "go"})),
        json!({"jsonrpc": "2.0", "method": "note"}),
    );
    let mut out = Vec::new();
    for message in [&execute, &note] {
        client.sent(message.to_string().as_bytes(), false, &mut out);
    }
    assert_eq!(out, b"");
    assert!(client.waits());
    client.restore(&mut out);
    assert_eq!(lines(&out)[3..], [execute, note]);
}

#[test]
fn answer_to_a_request_of_an_earlier_daemon_does_not_reach_the_next_one() {
    let mut client = following();
    let ask = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "permission/request", "params": {}});
    let answer = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"x": 1}});
    assert_eq!(received(&mut client, &ask("acpipe-1")), [ask("acpipe-1")]);
    let (shown, _) = next_daemon(&mut client);
    assert_eq!(shown[0]["method"], "$/cancelRequest");
    assert_eq!(shown[0]["params"], json!({"id": "acpipe-1", "by": "end"}));
    let shown = received(&mut client, &ask("acpipe-1"));
    assert_ne!(shown[0]["id"], "acpipe-1");
    assert_eq!(
        sent(&mut client, &answer(&json!("acpipe-1"))),
        Vec::<Value>::new()
    );
    assert_eq!(
        sent(&mut client, &answer(&shown[0]["id"])),
        [answer(&json!("acpipe-1"))]
    );
    // Withdrawn by the daemon.
    let shown = received(&mut client, &ask("acpipe-2"));
    let withdrawal = |id: &Value| json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id, "by": "timeout"}});
    let withdrawn = received(&mut client, &withdrawal(&json!("acpipe-2")));
    assert_eq!(withdrawn, [withdrawal(&shown[0]["id"])]);
}

#[test]
fn session_whose_log_lost_its_end_is_followed_from_now_on() {
    let mut client = following();
    let (_, restored) = next_daemon(&mut client);
    let id = &restored[2]["id"];
    let refused = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no", "data": {"lastSeq": 3}}});
    let (mut out, mut own) = (Vec::new(), Vec::new());
    client.received(refused.to_string().as_bytes(), &mut out, &mut own);
    assert_eq!(out, b"");
    assert_eq!(lines(&own)[0]["params"], json!({"sessionId": "s"}));
}

#[test]
fn editor_follows_its_sessions_without_a_replay() {
    let mut client = RelayedClient::new(RelayFace::Acp);
    let place = json!({"cwd": "/a", "mcpServers": [], "_meta": {"x": 1}});
    sent(&mut client, &call(1, "session/new", place));
    received(&mut client, &result(1, json!({"sessionId": "one"})));
    let two = json!({"sessionId": "two", "cwd": "/b", "mcpServers": []});
    sent(&mut client, &call(2, "session/load", two.clone()));
    received(&mut client, &result(2, json!({})));
    sent(
        &mut client,
        &call(
            3,
            "session/prompt",
            json!({"sessionId": "one", "prompt": []}),
        ),
    );
    let (shown, restored) = next_daemon(&mut client);
    assert_eq!(shown[0]["id"], 3);
    assert!(
        restored
            .iter()
            .all(|call| call["method"] == "session/resume"),
        "{restored:?}"
    );
    assert_eq!(
        restored[0]["params"],
        json!({"sessionId": "one", "cwd": "/a", "mcpServers": []})
    );
    assert_eq!(restored[1]["params"], two);
}

#[test]
fn client_that_named_what_another_daemon_does_not_know_is_not_continued() {
    for (method, params) in [
        (
            "session/ensure",
            json!({"sessionId": "s", "options": {"disallowedTools": ["x"]}}),
        ),
        ("session/ensure", json!({"sessionId": "s", "agent": "a"})),
        ("session/create", json!({"mcpServers": [{}]})),
        ("agent/register", json!({"agent": "a"})),
        ("agent/updateEnvironment", json!({"set": {"A": "b"}})),
    ] {
        let mut client = following();
        assert!(client.can_continue());
        sent(&mut client, &call(4, method, params));
        received(&mut client, &result(4, json!({"sessionId": "s"})));
        assert!(!client.can_continue(), "{method}");
        sent(&mut client, &call(5, "session/list", json!({})));
        let (shown, _) = next_daemon(&mut client);
        assert_eq!(shown[0]["error"]["data"]["kind"], "agentExited", "{method}");
    }
}
