//! Chat completions: requests, and what becomes of the answers.

use super::server::{Endpoint, Step, stream_head};
use super::{answer, connected, delta, request};
use crate::harness::run::Run;
use serde_json::{Value, json};

#[test]
fn answer_of_an_endpoint_is_a_turn_like_any_other() {
    let events = [
        ": keep-alive\n\n".to_owned(),
        delta(&json!({"role": "assistant", "content": ""}), &Value::Null),
        delta(&json!({"reasoning_content": "hm"}), &Value::Null),
        delta(&json!({"content": "Hel"}), &Value::Null),
        delta(&json!({"content": "lo \u{1f600}"}), &Value::Null),
        delta(&json!({}), &json!("stop")),
        format!(
            "data: {}\n\n",
            json!({"choices": [], "usage": {
                "prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12,
                "prompt_tokens_details": {"cached_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 2},
            }})
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    let endpoint = Endpoint::of_streams(&[&events.concat()]);
    let mut s = connected(
        &endpoint,
        "openai",
        &[],
        &[("OPENAI_API_KEY", "sk-topsecret")],
    );
    let turn = s.prompt("hi");
    assert_eq!(turn.text(), "Hello \u{1f600}");
    assert_eq!(turn.of("reasoning-delta")[0]["delta"], "hm");
    assert_eq!(turn.summary["stopReason"], "end_turn", "{}", turn.summary);
    let usage = &turn.summary["usage"];
    assert_eq!(
        (
            &usage["inputTokens"],
            &usage["outputTokens"],
            &usage["cachedReadTokens"],
            &usage["thoughtTokens"]
        ),
        (&json!(5), &json!(7), &json!(3), &json!(2))
    );
    let metadata = &turn.last()["messageMetadata"]["openai"];
    assert_eq!(metadata["other"]["model"], "served-model", "{metadata}");
    let request = request(&endpoint);
    assert!(
        request
            .head
            .starts_with("post /v1/chat/completions http/1.1"),
        "{}",
        request.head
    );
    assert!(
        request.head.contains("authorization: bearer sk-topsecret"),
        "{}",
        request.head
    );
    let want = json!({
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "hi"}],
    });
    assert_eq!(request.body, want);
}

#[test]
fn second_prompt_carries_history_and_model_and_a_restart_keeps_them() {
    let endpoint = Endpoint::of_streams(&[&answer("one"), &answer("two"), &answer("three")]);
    let mut s = connected(&endpoint, "openai", &[], &[]);
    s.waive("session/state");
    s.prompt("first");
    s.call("session/setModel", &json!({"model": "m2"}));
    s.prompt("second");
    let messages = |n: usize| {
        let mut request = request(&endpoint);
        assert_eq!(request.body["messages"].as_array().unwrap().len(), n);
        // The model that the client set holds in its session, also after a restart.
        assert_eq!(request.body["model"] == "m2", n > 1, "{}", request.body);
        request.body["messages"].take()
    };
    messages(1);
    let all = json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "second"},
    ]);
    assert_eq!(messages(3), all);
    let mut s = s.restart(&[]);
    s.initialize();
    let agent = json!({"command": endpoint.url(), "protocol": "openai"});
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    let receipt = s.ensure("default");
    assert_eq!(receipt["recovery"]["memory"], "kept", "{receipt}");
    s.prompt("third");
    assert_eq!(messages(5)[4]["content"], "third");
}

#[test]
fn called_tools_are_shown_and_end_as_failed() {
    let call = |id: Value, name: Value, arguments: &str| {
        json!({"tool_calls": [{"index": 0, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments}}]})
    };
    let events = [
        delta(&call(json!("t1"), json!("look"), "{\"a\""), &Value::Null),
        delta(&call(Value::Null, Value::Null, ":1}"), &Value::Null),
        delta(&json!({}), &json!("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let endpoint = Endpoint::of_streams(&[&events.concat()]);
    let mut s = connected(&endpoint, "openai", &["--permissions", "deny"], &[]);
    let turn = s.prompt("go");
    let types = turn.types();
    // acpipe runs no tool that the model calls.
    assert!(!types.contains(&"data-notice"), "{types:?}");
    assert!(types.contains(&"tool-input-delta"), "{types:?}");
    assert_eq!(
        turn.of("tool-input-available").last().unwrap()["input"],
        json!({"a": 1})
    );
    assert_eq!(turn.of("tool-output-error").len(), 1, "{types:?}");
    assert_eq!(turn.summary["toolCalls"][0]["name"], "look");
    assert_eq!(turn.summary["stopReason"], "tool_calls");
}

#[test]
fn run_takes_an_address_in_place_of_a_command() {
    let endpoint = Endpoint::new(vec![vec![
        stream_head(),
        Step::Trickle(answer("h\u{e9}llo").into()),
    ]]);
    let run = Run::new(&["run", "--protocol", "openai", "--model", "m1", "hi"]);
    let outcome = run.agent(&[&endpoint.url()]).go().expect(0);
    assert_eq!(outcome.text(), "h\u{e9}llo\n");
    assert_eq!(request(&endpoint).body["model"], "m1");
    let run = Run::new(&["run", "--protocol", "openai", "hi"]);
    let outcome = run.agent(&["localhost:1"]).go().expect(2);
    assert!(outcome.stderr.contains("http://"), "{}", outcome.show());
}

#[test]
fn configured_endpoint_has_its_key_headers_and_model() {
    let endpoint = Endpoint::of_streams(&[&answer("ok")]);
    let run = Run::new(&["run", "--agent", "mine", "hi"]);
    let config = format!(
        "[agents.mine]\nprotocol = \"openai\"\nurl = \"{}\"\nmodel = \"m\"\nprompt = \"be brief\"\n\
         api_key_env = \"MY_KEY\"\nheaders = {{ \"x-team\" = \"${{TEAM}}\" }}\n",
        endpoint.url()
    );
    let file = run.world.file("config.toml", &config);
    let run = run
        .env("ACPIPE_CONFIG", &file)
        .env("MY_KEY", "mykey-1")
        .env("TEAM", "red");
    run.go().expect(0);
    let request = request(&endpoint);
    assert!(
        request.head.contains("authorization: bearer mykey-1"),
        "{}",
        request.head
    );
    assert!(request.head.contains("x-team: red"), "{}", request.head);
    assert_eq!(
        request.body["messages"][0],
        json!({"role": "system", "content": "be brief"})
    );
    let list = Run::new(&["agents", "list"]);
    let file = list.world.file("config.toml", &config);
    let list = list
        .env("ACPIPE_CONFIG", &file)
        .env("MY_KEY", "mykey-1")
        .go()
        .expect(0);
    assert!(list.text().contains("HTTP"), "{}", list.show());
    assert!(!list.show().contains("mykey-1"));
}
