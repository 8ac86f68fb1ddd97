//! Pages that follow the turns of other clients, get the end of a turn that was cut, and delete chats.

use super::Server;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

fn server() -> Server {
    let turn = json!([say("hello"), end("end_turn")]);
    let waits = json!([say("b"), {"wait": "session/cancel"}, end("cancelled")]);
    Server::start(&json!({"session/prompt": [turn, waits]}))
}

fn types(chunks: &[Value]) -> Vec<&str> {
    let types = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap());
    types.collect()
}

#[test]
fn waiting_page_gets_the_next_turn_of_another_client() {
    let server = server();
    server.chat("u1", "one");
    // The head of the response comes before the turn.
    let mut waiting = server.get("/api/chat/c/stream?wait=true&approvals=inline");
    assert_eq!(waiting.status, 200);
    server.post_chat("u2", "two").read_until("text-delta");
    waiting.read_until(r#""type":"start""#);
    waiting.read_until(r#""delta":"b""#);
    server.send("POST", "/api/chat/c/cancel", &json!({}));
    waiting.read_until(r#""type":"abort""#);
    waiting.read_until("[DONE]");
    server.daemon.stop();
}

#[test]
fn waiting_page_learns_that_the_chat_was_deleted() {
    let server = server();
    server.chat("u1", "one");
    let waiting = server.get("/api/chat/c/stream?wait=true");
    let mut running = server.post_chat("u2", "two");
    running.read_until("text-delta");
    // The turn is cancelled before.
    let deleted = server.send("POST", "/api/chat/c/delete", &json!({}));
    assert_eq!(deleted.json(), json!({}));
    assert_eq!(types(&waiting.chunks()).last(), Some(&"abort"));
    let stored = server.get("/api/chat/c/messages").json();
    assert_eq!(stored, json!({"messages": [], "running": null}));
    let again = server.send("POST", "/api/chat/c/delete", &json!({}));
    assert_eq!(again.status, 200);
    server.daemon.stop();
}

#[test]
fn idle_wait_ends_without_a_chunk_when_the_chat_is_deleted() {
    let server = server();
    server.chat("u1", "one");
    let waiting = server.get("/api/chat/c/stream?wait=true");
    server.send("POST", "/api/chat/c/delete", &json!({}));
    assert!(waiting.chunks().is_empty());
    server.daemon.stop();
}

#[test]
fn message_that_was_cut_is_streamed_to_its_stored_end() {
    let server = server();
    let first = server.chat("u1", "one");
    let message = first[0]["messageId"].as_str().unwrap();
    let path = format!("/api/chat/c/stream?message={message}");
    assert_eq!(server.get(&path).chunks(), first);
    // Another turn that runs does not take its place.
    let mut running = server.post_chat("u2", "two");
    running.read_until("text-delta");
    assert_eq!(server.get(&path).chunks(), first);
    let unknown = server.get("/api/chat/c/stream?message=none");
    assert_eq!(unknown.status, 204);
    server.send("POST", "/api/chat/c/cancel", &json!({}));
    server.daemon.stop();
}
