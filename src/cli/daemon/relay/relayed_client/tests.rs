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

/// Connects the client to a daemon, which answers the first calls. Returns what the daemon receives.
fn restored(client: &mut RelayedClient) -> Vec<Value> {
    let mut out = Vec::new();
    client.restore(&mut out);
    let first = lines(&out);
    for call in &first {
        if matches!(
            call["method"].as_str(),
            Some("initialize" | "agent/connect")
        ) {
            let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": {}});
            let mut shown = Vec::new();
            client.received(answer.to_string().as_bytes(), &mut shown, &mut out);
            assert_eq!(lines(&shown), Vec::<Value>::new());
        }
    }
    lines(&out)
}

/// Ends the daemon, and connects the client to the next one. Returns what the client and the next daemon receive.
fn next_daemon(client: &mut RelayedClient) -> (Vec<Value>, Vec<Value>) {
    let mut shown = Vec::new();
    client.lost(&mut shown);
    (lines(&shown), restored(client))
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
    for call in &restored[2..] {
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
        json!({"jsonrpc": "2.0", "method": "session/cancel"}),
    );
    let mut out = Vec::new();
    for message in [&execute, &note] {
        client.sent(message.to_string().as_bytes(), false, &mut out);
    }
    assert_eq!(out, b"");
    assert!(client.waits());
    assert_eq!(restored(&mut client)[3..], [execute, note]);
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

/// Messages with the same method in each form that the relay does not follow.
fn other_forms(method: &str, params: &Value) -> [(&'static str, Value); 4] {
    let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
    let mut null = notification.clone();
    null["id"] = Value::Null;
    [
        ("batch", json!([call(4, method, params.clone())])),
        ("batch of notifications", json!([notification])),
        ("notification", notification),
        ("null id", null),
    ]
}

#[test]
fn call_in_another_form_is_not_continued_if_its_method_has_an_effect() {
    for method in RelayFace::Neutral.methods() {
        let effect = RelayFace::Neutral.effect(method);
        for (form, message) in other_forms(method, &json!({"sessionId": "s"})) {
            let mut client = following();
            assert_eq!(
                sent(&mut client, &message),
                std::slice::from_ref(&message),
                "{method}"
            );
            let (continues, leaves) = match effect {
                MethodEffect::NoState => (true, false),
                MethodEffect::Ends => (true, true),
                MethodEffect::Followed { .. } | MethodEffect::Binds => (false, false),
            };
            assert_eq!(client.can_continue(), continues, "{method}, {form}");
            assert_eq!(client.is_leaving(), leaves, "{method}, {form}");
        }
        let mut client = following();
        sent(&mut client, &call(4, method, json!({})));
        assert!(
            client.can_continue(),
            "{method}: the answer decides on a call"
        );
    }
    let mut client = following();
    sent(
        &mut client,
        &json!({"jsonrpc": "2.0", "method": "later/set"}),
    );
    assert!(!client.can_continue(), "an unknown method");
}

#[test]
fn call_with_an_id_that_another_one_has_is_not_continued() {
    for id in [json!(4), json!("acpipe-relay-1")] {
        let mut client = following();
        sent(&mut client, &call(4, "session/list", json!({})));
        let again = json!({"jsonrpc": "2.0", "id": id, "method": "session/list"});
        sent(&mut client, &again);
        assert!(!client.can_continue(), "{id}");
    }
}

#[test]
fn failed_call_that_may_have_had_an_effect_is_not_continued() {
    let set = json!({"options": {"disallowedTools": ["x"]}, "timeoutMs": 1});
    for (method, params, continues) in [
        ("agent/connect", set.clone(), false),
        ("agent/connect", json!({"timeoutMs": 1}), true),
        ("agent/updateEnvironment", json!({"set": {"A": "b"}}), false),
        ("agent/authenticate", json!({"methodId": "m"}), false),
        ("session/ensure", set, false),
        ("session/ensure", json!({"sessionId": "s"}), true),
        ("session/attach", json!({"role": "observer"}), false),
        ("session/attach", json!({"afterSeq": 99}), true),
        ("session/close", json!({"sessionId": "s"}), false),
        ("session/prompt", json!({"sessionId": "s"}), true),
        ("later/set", json!({}), false),
    ] {
        let failure = |code: i64| json!({"jsonrpc": "2.0", "id": 4, "error": {"code": code, "message": "no"}});
        let mut client = following();
        sent(&mut client, &call(4, method, params.clone()));
        received(&mut client, &failure(-32000));
        assert_eq!(client.can_continue(), continues, "{method} {params}");
        let mut client = following();
        sent(&mut client, &call(4, method, params));
        received(&mut client, &failure(-32601));
        assert!(client.can_continue(), "{method} is unknown to the daemon");
    }
}

#[test]
fn disconnected_agent_is_not_connected_again() {
    let mut client = following();
    sent(&mut client, &call(4, "agent/disconnect", json!({})));
    received(&mut client, &result(4, json!({})));
    assert!(!client.can_continue());
}

#[test]
fn last_connection_of_an_agent_is_repeated_last_and_without_its_limit() {
    let mut client = following();
    for (id, params) in [
        (4, json!({"env": {"A": "1"}})),
        (5, json!({"agent": "a", "timeoutMs": 9, "elapsedMs": 1})),
    ] {
        sent(&mut client, &call(id, "agent/connect", params));
        received(&mut client, &result(id, json!({})));
    }
    let (_, restored) = next_daemon(&mut client);
    let connects = restored
        .iter()
        .filter(|call| call["method"] == "agent/connect");
    let connects: Vec<&Value> = connects.map(|call| &call["params"]).collect();
    assert_eq!(
        connects,
        [&json!({"env": {"A": "1"}}), &json!({"agent": "a"})]
    );
}

#[test]
fn nothing_reaches_the_next_daemon_before_it_knows_the_client() {
    let mut client = following();
    client.lost(&mut Vec::new());
    let mut out = Vec::new();
    client.restore(&mut out);
    let first = lines(&out);
    let methods: Vec<&Value> = first.iter().map(|call| &call["method"]).collect();
    assert_eq!(methods, ["initialize", "agent/connect"]);
    let prompt = call(
        4,
        "session/prompt",
        json!({"sessionId": "s", "message": "go"}),
    );
    assert_eq!(sent(&mut client, &prompt), Vec::<Value>::new());
    let refused =
        json!({"jsonrpc": "2.0", "id": first[1]["id"], "error": {"code": -32602, "message": "no"}});
    assert_eq!(received(&mut client, &refused), Vec::<Value>::new());
    assert_eq!(client.refusal(), Some("no"));
    let (shown, _) = next_daemon(&mut client);
    assert_eq!(shown[0]["id"], 4);
}

#[test]
fn session_that_is_left_while_a_prompt_runs_is_not_continued() {
    for (session, continues) in [("s", false), ("other", true)] {
        let mut client = following();
        sent(
            &mut client,
            &call(4, "session/prompt", json!({"sessionId": session})),
        );
        sent(
            &mut client,
            &call(5, "session/detach", json!({"sessionId": "s"})),
        );
        received(&mut client, &result(5, json!({})));
        assert_eq!(client.can_continue(), continues, "{session}");
    }
    let mut client = following();
    sent(&mut client, &call(5, "session/close", json!({})));
    received(&mut client, &result(5, json!({})));
    assert!(!client.can_continue(), "the default session");
}

#[test]
fn session_whose_mode_is_set_is_followed() {
    let mut client = following();
    let set = json!({"sessionId": "other", "mode": "plan"});
    sent(&mut client, &call(4, "session/setMode", set));
    received(&mut client, &result(4, json!({"state": {}})));
    let (_, restored) = next_daemon(&mut client);
    let mut attached = restored
        .iter()
        .filter(|call| call["method"] == "session/attach");
    assert!(
        attached.any(|call| call["params"]["sessionId"] == "other"),
        "{restored:?}"
    );
}

#[test]
fn response_in_a_batch_is_passed_on_alone() {
    let mut client = following();
    let ask =
        json!({"jsonrpc": "2.0", "id": "acpipe-1", "method": "permission/request", "params": {}});
    received(&mut client, &ask);
    next_daemon(&mut client);
    let shown = received(&mut client, &ask);
    let answer = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"x": 1}});
    let list = call(4, "session/list", json!({}));
    let batch = json!([answer(&json!("acpipe-1")), list, answer(&shown[0]["id"])]);
    assert_eq!(
        sent(&mut client, &batch),
        [answer(&json!("acpipe-1")), json!([list])]
    );
}

#[test]
fn batch_while_no_daemon_runs_is_sent_once() {
    let mut client = following();
    client.lost(&mut Vec::new());
    let batch = json!([call(4, "execute", json!({"message": "go"}))]);
    client.sent(batch.to_string().as_bytes(), false, &mut Vec::new());
    assert_eq!(restored(&mut client)[3..], [batch]);
}
