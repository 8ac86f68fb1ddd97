//! Secrets around the HTTP server: its tokens, those that clients send, and what an agent repeats in errors.

use super::Server;
use super::chat::{submit, user};
use super::websocket::Socket;
use crate::canaries::{assert_silent, canary, forms};
use crate::harness::World;
use crate::harness::steps::{end, say};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// Creates the tokens before the server does, so that the script of an agent can have them.
fn create_tokens(world: &World, tokens: &[String; 2]) {
    let state = world.dir.join("state");
    fs::create_dir_all(&state).unwrap();
    for (name, token) in ["token", "token.observer"].iter().zip(tokens) {
        let path = state.join(name);
        fs::write(&path, format!("{token}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn tokens_and_what_an_agent_repeats_stand_in_no_log_or_error() {
    let tokens = ["a1b2c3d4", "5e6f7a8b"].map(|part| part.repeat(8));
    let wrong = "0badc0de".repeat(8);
    let passed = canary("passed");
    let canaries = [tokens[0].clone(), tokens[1].clone(), passed.clone()];
    let said: Vec<String> = canaries.iter().flat_map(|canary| forms(canary)).collect();
    let mut steps: Vec<Value> = said
        .iter()
        .map(|form| json!({"stderr": format!("the-marker {form}")}))
        .collect();
    let crash = [steps.clone(), vec![json!({"exit": 3})]].concat();
    steps.extend([say("done"), end("end_turn")]);
    let world = World::new();
    create_tokens(&world, &tokens);
    let variable = format!("FLAG={passed}");
    let options = [
        "--log-level",
        "trace",
        "--permissions",
        "approve",
        "-e",
        &variable,
    ];
    let server = Server::start_in(world, &options, &json!({"session/prompt": [steps, crash]}));
    assert_eq!(server.token, tokens[0]);

    let mut answers = String::new();
    for token in tokens.iter().chain([&wrong]) {
        let basic = BASE64_STANDARD.encode(format!("user:{token}"));
        let (bearer, basic, cookie) = (
            format!("Bearer {token}"),
            format!("Basic {basic}"),
            format!("token={token}"),
        );
        for header in [
            ("authorization", bearer.as_str()),
            ("authorization", basic.as_str()),
            ("cookie", cookie.as_str()),
            ("origin", bearer.as_str()),
            ("host", token.as_str()),
            ("content-type", bearer.as_str()),
        ] {
            for (method, path) in [
                ("GET", "/api/chat".to_owned()),
                ("GET", format!("/metrics?token={token}")),
                ("POST", "/api/chat".to_owned()),
                ("DELETE", "/api/chat".to_owned()),
                ("GET", "/rpc".to_owned()),
            ] {
                let answer = server.send_raw(method, &path, &[header], b"{");
                answers += &answer.text();
            }
        }
        let (_socket, head) = Socket::connect(&server, token);
        answers += &head;
    }
    let prompt = |id: &str| {
        let body = submit(&[user(id, "go")]);
        server.send("POST", "/api/chat", &body).text()
    };
    prompt("m1");
    let failed = prompt("m2");
    assert!(failed.contains("the-marker"), "{failed}");
    answers += &failed;
    // A client's own message and id stand in the log, not in what others are answered.
    for token in &tokens {
        let mut body = submit(&[user("t", &format!("the token is {token}"))]);
        body["id"] = token.as_str().into();
        server.send("POST", "/api/chat", &body);
        server.get(&format!("/api/chat/{token}/messages"));
        server.get(&format!("/{token}"));
    }
    answers += &server.get("/metrics").text();
    answers += &server.get("/").text();
    let typed = canary("typed");
    let body = json!({"questionId": "q", "action": "accept", "content": typed});
    let refused = server.send("POST", "/api/chat/c/answer", &body).text();
    let wanted = "the body is not valid: content must be an object, not a string";
    assert!(refused.contains(wanted), "{refused}");
    answers += &refused;
    let all = [&canaries[..], &[wrong, typed]].concat();
    assert_silent("answers", &answers, &all);
    let (mut socket, _) = Socket::connect(&server, &server.token);
    socket.call("initialize", &json!({"protocolVersion": 1}));
    let status = socket.call("agent/list", &json!({})).to_string();
    assert_silent("agent/list", &status, &all);
    let log = server
        .daemon
        .run(&["daemon", "logs", "--lines", "0"], 0)
        .stdout;
    let log = String::from_utf8(log).unwrap();
    assert!(log.contains("the-marker") && log.contains("TRACE"), "{log}");
    assert_silent("log", &log, &all);
    server.daemon.stop();
}
