//! Endpoints that fail: each failure has its kind, and what came before it is kept.

use super::server::{
    Endpoint, Step, chunk, chunked_head, head, json as json_response, stream, stream_head,
};
use super::{LIMIT, answer, connected, delta, request};
use serde_json::{Value, json};
use std::time::Instant;

/// Kind and message of a turn's error.
fn error(summary: &Value) -> (String, String) {
    let error = &summary["errors"][0];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("message"))
}

fn first_words() -> String {
    delta(&json!({"content": "first words"}), &Value::Null)
}

#[test]
fn transient_failure_before_output_is_tried_again() {
    let busy = |headers: &str| {
        json_response(
            "429 Too Many Requests",
            headers,
            &json!({"error": "slow down"}),
        )
    };
    let endpoint = Endpoint::new(vec![
        busy("retry-after-ms: 20\r\n"),
        json_response("503 Service Unavailable", "retry-after: 0\r\n", &json!({})),
        vec![stream(answer("at last").as_bytes())],
    ]);
    let mut s = connected(&endpoint, "openai", &[], &[]);
    let turn = s.prompt("go");
    assert_eq!(turn.text(), "at last");
    assert_eq!(turn.of("data-notice").len(), 2);
    assert_eq!(
        turn.last()["messageMetadata"]["openai"]["other"]["attempts"],
        3
    );
    for _ in 0..3 {
        request(&endpoint);
    }
}

#[test]
fn rate_limit_that_persists_is_reported_with_its_facts_and_not_multiplied() {
    let busy = || {
        json_response(
            "429 Too Many Requests",
            "retry-after-ms: 1\r\n",
            &json!({"error": "slow down"}),
        )
    };
    let endpoint = Endpoint::new(vec![busy(), busy(), busy(), busy()]);
    let mut s = connected(&endpoint, "openai", &[], &[]);
    let id = s.send("session/prompt", &json!({"message": "go", "retry": true}));
    let turn = s.turn(&id);
    let (kind, message) = error(&turn.summary);
    assert_eq!(kind, "overloaded", "{}", turn.summary);
    let data = &turn.summary["errors"][0]["data"];
    assert_eq!(data["attempts"], 3, "{}", turn.summary);
    assert!(message.contains("slow down"), "{message}");
    for _ in 0..3 {
        request(&endpoint);
    }
    assert!(endpoint.requests.try_recv().is_err());
}

#[test]
fn long_pause_that_the_endpoint_requests_is_not_waited_for() {
    let busy = json_response("429 Too Many Requests", "retry-after: 3600\r\n", &json!({}));
    let endpoint = Endpoint::new(vec![busy]);
    let mut s = connected(&endpoint, "openai", &[], &[]);
    let since = Instant::now();
    let turn = s.prompt("go");
    assert_eq!(turn.summary["errors"][0]["data"]["retryAfterMs"], 3_600_000);
    assert!(since.elapsed() < LIMIT);
}

#[test]
fn broken_answer_keeps_what_came_before() {
    let cases: [(&str, Vec<Step>); 3] = [
        (
            "end without a finish reason",
            vec![stream(first_words().as_bytes())],
        ),
        (
            "end within a chunked body",
            vec![chunked_head(), chunk(&first_words())],
        ),
        (
            "half an event",
            vec![stream(
                (first_words() + "data: {\"choices\":[{\"del").as_bytes(),
            )],
        ),
    ];
    let scripts = cases.iter().map(|(_, script)| script.clone());
    let endpoint = Endpoint::new(scripts.collect());
    let mut s = connected(&endpoint, "openai", &[], &[]);
    for (what, _) in cases {
        let turn = s.prompt("go");
        assert_eq!(
            error(&turn.summary).0,
            "streaming",
            "{what}: {}",
            turn.summary
        );
        assert_eq!(turn.summary["text"], "first words", "{what}");
    }
}

#[test]
fn reset_connection_is_a_broken_answer_or_a_network_error() {
    let endpoint = Endpoint::new(vec![vec![chunked_head(), Step::Reset]]);
    let mut s = connected(&endpoint, "openai", &[], &[]);
    let (kind, message) = error(&s.prompt("go").summary);
    assert!(
        ["streaming", "network"].contains(&kind.as_str()),
        "{kind}: {message}"
    );
}

#[test]
fn endpoint_that_does_not_run_is_a_network_error() {
    let endpoint = Endpoint::new(Vec::new());
    let url = endpoint.url();
    let mut s = connected(&endpoint, "openai", &[], &[]);
    s.call("agent/disconnect", &json!({}));
    s.agent_states(&["stopping", "disconnected"]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let agent = json!({"command": format!("http://127.0.0.1:{port}/v1"), "protocol": "openai"});
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    s.ensure("other");
    let id = s.send(
        "session/prompt",
        &json!({"sessionId": "other", "message": "go"}),
    );
    let turn = s.turn(&id);
    let (kind, message) = error(&turn.summary);
    assert_eq!(kind, "network", "{message}");
    assert!(
        message.contains(&format!("127.0.0.1:{port}")) && !url.is_empty(),
        "{message}"
    );
    assert_eq!(turn.of("data-notice").len(), 2);
}

#[test]
fn cancel_closes_the_request_before_and_during_the_answer() {
    let scripts = vec![
        vec![Step::AwaitClose],
        vec![
            stream_head(),
            Step::Bytes(first_words().into()),
            Step::AwaitClose,
        ],
    ];
    let endpoint = Endpoint::new(scripts);
    let mut s = connected(&endpoint, "openai", &[], &[]);
    for with_output in [false, true] {
        let id = s.send_prompt("default", "go");
        request(&endpoint);
        if with_output {
            s.await_chunk("default", |chunk| chunk["type"] == "text-delta");
        }
        s.call("session/cancel", &json!({"sessionId": "default"}));
        let turn = s.turn(&id);
        assert_eq!(turn.summary["stopReason"], "cancelled");
        endpoint
            .closed
            .recv_timeout(LIMIT)
            .expect("the request stays open");
    }
}

#[test]
fn silence_reaches_the_limit_of_its_stage() {
    let cases = [
        ("firstByte", vec![Step::AwaitClose], ""),
        (
            "stream",
            vec![
                stream_head(),
                Step::Bytes(first_words().into()),
                Step::AwaitClose,
            ],
            "first words",
        ),
    ];
    for (stage, script, text) in cases {
        let endpoint = Endpoint::new(vec![script]);
        let limits = [
            "--timeout",
            "connect=200ms",
            "--timeout",
            &format!("{stage}=200ms"),
        ];
        let mut s = connected(&endpoint, "openai", &limits, &[]);
        let turn = s.prompt("go");
        let (kind, message) = error(&turn.summary);
        assert_eq!(kind, "timeout", "{stage}: {message}");
        assert_eq!(turn.summary["errors"][0]["data"]["stage"], stage);
        assert_eq!(turn.summary["text"], text, "{stage}");
        endpoint
            .closed
            .recv_timeout(LIMIT)
            .expect("the request stays open");
    }
}

#[test]
fn redirects_are_followed_only_within_the_origin() {
    let other = Endpoint::of_streams(&[&answer("stolen")]);
    let location = format!("location: {}/x?key=1\r\n", other.url());
    let endpoint = Endpoint::new(vec![
        vec![head(
            "307 Temporary Redirect",
            "location: /elsewhere\r\ncontent-length: 0\r\n",
        )],
        vec![stream(answer("moved").as_bytes())],
        vec![head("308 Permanent Redirect", &location)],
        vec![head("302 Found", "location: /elsewhere\r\n")],
    ]);
    let env = [("OPENAI_API_KEY", "sk-topsecret99")];
    let mut s = connected(&endpoint, "openai", &[], &env);
    assert_eq!(s.prompt("go").text(), "moved");
    request(&endpoint);
    assert!(request(&endpoint).head.starts_with("post /elsewhere"));
    let turn = s.prompt("go");
    let (kind, message) = error(&turn.summary);
    assert_eq!(kind, "network", "{message}");
    assert!(
        message.contains(&other.url()) && !message.contains("key=1"),
        "{message}"
    );
    assert!(other.requests.try_recv().is_err());
    let (_, message) = error(&s.prompt("go").summary);
    assert!(message.contains("/elsewhere"), "{message}");
}

#[test]
fn unusable_answers_are_malformed_or_skipped() {
    let cases: [(&str, Vec<Step>, &str, &str); 5] = [
        (
            "a page of a proxy",
            vec![
                head("200 OK", "content-type: text/html\r\n"),
                Step::Bytes(b"<html>".into()),
            ],
            "malformed",
            "",
        ),
        (
            "a compressed body",
            vec![head(
                "200 OK",
                "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n",
            )],
            "malformed",
            "",
        ),
        (
            "other JSON",
            json_response("200 OK", "", &json!({"hello": 1})),
            "malformed",
            "",
        ),
        (
            "events that are not JSON or UTF-8",
            vec![stream(
                &[
                    b"data: nonsense\n\ndata: \xff\xfe\n\n".as_slice(),
                    answer("fine").as_bytes(),
                ]
                .concat(),
            )],
            "",
            "fine",
        ),
        (
            "an error in the stream",
            vec![stream(
                (first_words() + "data: {\"error\":{\"message\":\"boom\",\"code\":500}}\n\n")
                    .as_bytes(),
            )],
            "session",
            "first words",
        ),
    ];
    let scripts = cases.iter().map(|(_, script, ..)| script.clone());
    let endpoint = Endpoint::new(scripts.collect());
    let mut s = connected(&endpoint, "openai", &[], &[]);
    for (what, _, kind, text) in cases {
        let turn = s.prompt("go");
        assert_eq!(error(&turn.summary).0, kind, "{what}: {}", turn.summary);
        assert_eq!(turn.summary["text"], text, "{what}");
    }
}

#[test]
fn huge_event_ends_the_turn_with_an_error() {
    let huge = delta(&json!({"content": "x".repeat(3 << 20)}), &Value::Null);
    let endpoint = Endpoint::of_streams(&[&(first_words() + &huge + &answer("end"))]);
    let mut s = connected(&endpoint, "openai", &["--max-line", "1048576"], &[]);
    let turn = s.prompt("go");
    assert_eq!(error(&turn.summary).0, "malformed", "{}", turn.summary);
    assert_eq!(turn.summary["text"], "first words");
}

#[test]
fn key_stands_in_no_log_and_no_stored_file() {
    let endpoint = Endpoint::of_streams(&[&answer("ok")]);
    let key = "plainwordskey";
    let log = "--log-level=trace";
    let mut s = connected(&endpoint, "openai", &[log], &[("OPENAI_API_KEY", key)]);
    s.prompt("go");
    let status = s.call("agent/status", &json!({}));
    assert!(!status.to_string().contains(key), "{status}");
    let sessions = std::fs::read_dir(s.world.dir.join("state/sessions")).unwrap();
    let paths: Vec<_> = sessions.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty(), "no session was stored");
    for path in paths {
        let stored = std::fs::read(&path).unwrap_or_default();
        let stored = String::from_utf8_lossy(&stored);
        assert!(!stored.contains(key), "{}", path.display());
    }
    let stderr = s.finish().stderr;
    assert!(!stderr.contains(key), "{stderr}");
}
