//! Requests that the HTTP server refuses.

use super::{Server, token};
use crate::daemon::Daemon;
use crate::harness::World;
use serde_json::json;
use std::io::{Read as _, Write as _};

fn server() -> Server {
    Server::start(&json!({}))
}

#[test]
fn request_needs_a_token_and_an_observer_only_reads() {
    let server = server();
    let status = |method: &str, path: &str, token: Option<&str>| {
        let token = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(token.iter().map(|token| ("authorization", token.as_str())));
        server.send_raw(method, path, &headers, b"{}").status
    };
    let wrong = "0".repeat(64);
    let observer = token(&server.daemon, "token.observer");
    for path in [
        "/metrics",
        "/rpc",
        "/api/chat",
        "/api/chat/c/stream",
        "/api/chat/c/messages",
    ] {
        assert_eq!(status("GET", path, None), 401, "{path}");
        assert_eq!(status("GET", path, Some(&wrong)), 401, "{path}");
    }
    // Not in the address, where logs and histories keep it.
    let query = format!("/metrics?token={}", server.token);
    assert_eq!(status("GET", &query, None), 401);
    assert_eq!(status("GET", "/api/chat", Some(&observer)), 200);
    for path in [
        "/api/chat",
        "/api/chat/c/cancel",
        "/api/chat/c/approval",
        "/api/chat/c/answer",
    ] {
        assert_eq!(status("POST", path, Some(&observer)), 403, "{path}");
        assert_eq!(status("POST", path, None), 401, "{path}");
    }
    assert_eq!(status("GET", "/healthz", None), 200);
    assert_eq!(status("GET", "/", None), 200);
    assert_eq!(status("GET", "/api/other", Some(&server.token)), 404);
    assert_eq!(status("DELETE", "/api/chat", Some(&server.token)), 405);
    server.daemon.stop();
}

#[test]
fn request_of_another_site_is_refused() {
    let server = server();
    let get = |headers: &[(&str, &str)]| server.send_raw("GET", "/healthz", headers, b"");
    let port = server.address.port();
    assert_eq!(get(&[("host", &format!("localhost:{port}"))]).status, 200);
    // A name of the attacker that leads to this machine.
    assert_eq!(
        get(&[("host", &format!("evil.example:{port}"))]).status,
        403
    );
    assert_eq!(get(&[("origin", "https://evil.example")]).status, 403);
    assert_eq!(get(&[("origin", "null")]).status, 403);
    let own = get(&[("origin", &format!("http://{}", server.address))]);
    assert_eq!(own.status, 200);
    assert_eq!(own.header("access-control-allow-origin"), None);
    assert_eq!(own.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(
        own.header("cross-origin-resource-policy"),
        Some("same-origin")
    );
    let policy = own.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    server.daemon.stop();
}

#[test]
fn body_must_be_json_and_bounded() {
    let server = server();
    let token = format!("Bearer {}", server.token);
    let post = |kind: &str, body: &[u8]| {
        let headers = [("authorization", token.as_str()), ("content-type", kind)];
        server.send_raw("POST", "/api/chat", &headers, body).status
    };
    assert_eq!(post("text/plain", b"{}"), 415);
    assert_eq!(post("application/json", b"{"), 400);
    let mut stream = server.connect();
    let address = server.address;
    let head = format!(
        "POST /api/chat HTTP/1.1\r\nhost: {address}\r\nauthorization: {token}\r\ncontent-type: application/json\r\ncontent-length: 16777217\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    server.daemon.stop();
}

#[test]
fn ids_are_never_paths() {
    let server = server();
    for id in ["..%2F..%2Fetc%2Fpasswd", "%252e%252e", "a%00b", "%ff"] {
        let response = server.get(&format!("/api/chat/{id}/messages"));
        let status = response.status;
        let text = response.text();
        assert!(
            status == 400 || text == r#"{"messages":[],"running":null}"#,
            "{id}: {status} {text}"
        );
    }
    server.daemon.stop();
}

#[test]
fn address_that_others_reach_needs_tls() {
    let world = World::new();
    let daemon = Daemon { world };
    let refused = daemon.run(&["daemon", "run", "--listen", "0.0.0.0:0"], 2);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        text.contains("--tls-cert") && text.contains("--insecure-i-know"),
        "{text}"
    );
}

#[test]
fn metrics_count_requests_by_route() {
    let server = server();
    server.get("/api/chat/secret-id/stream");
    let text = server.get("/metrics").text();
    let line = "acpipe_http_requests_total{route=\"/api/chat/{id}/stream\",status=\"204\"} 1";
    assert!(text.lines().any(|one| one == line), "{text}");
    assert!(!text.contains("secret-id"), "{text}");
    server.daemon.stop();
}

#[test]
fn daemon_restarts_on_its_port_beside_an_idle_connection() {
    let server = Server::start(&json!({}));
    let mut idle = server.connect();
    idle.write_all(b"GET /api/chat HTTP/1.1\r\n").unwrap();
    let address = server.address.to_string();
    server
        .daemon
        .run(&["daemon", "restart", "--listen", &address], 0);
    assert_eq!(server.get("/api/chat").status, 200);
}
