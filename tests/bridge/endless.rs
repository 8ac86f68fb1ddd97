//! An agent that replays a session's history without end: opening the session still ends.

use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

/// Steps that replay a history for longer than any test runs.
fn history() -> Value {
    let piece = json!({"notify": {"method": "session/update", "params": {"sessionId": "old", "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "again "}}}}});
    json!({"repeat": {"times": 1_000_000, "steps": [piece, {"sleep": 1}]}})
}

/// Starts a server whose session is not live, with an agent that loads it by these steps.
fn serve(args: &[&str], load: &Value) -> Server {
    let script = |new: &str| {
        json!({
            "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}}]],
            "session/new": [[{"reply": {"sessionId": new}}]],
            "session/load": [load],
            "session/prompt": [[say("answer"), end("end_turn")]],
        })
    };
    Server::reconnected(args, &script("old"), &script("fresh"))
}

/// Loads that never end: the agent never answers, or it answers and continues to replay.
fn loads() -> [Value; 2] {
    [json!([history()]), json!([{"reply": {}}, history()])]
}

#[test]
fn session_opening_has_a_total_timeout() {
    for load in loads() {
        let mut s = serve(&["--timeout", "restore=300ms"], &load);
        let error = s.call_error("session/ensure", &json!({}));
        assert_eq!(error["data"]["kind"], "timeout", "{error}");
        assert_eq!(error["data"]["stage"], "restore", "{error}");
        let fresh = s.call("session/ensure", &json!({"strategy": "new"}));
        assert_eq!(fresh["recovery"]["rung"], "new");
        assert_eq!(s.prompt("two").summary["text"], "answer");
        s.finish();
    }
}

#[test]
fn cancel_ends_a_session_opening() {
    for load in loads() {
        let mut s = serve(&[], &load);
        let ensure = s.send("session/ensure", &json!({}));
        s.await_agent_call("session/load");
        let ended = s.call("session/cancel", &json!({}));
        assert_eq!(ended, json!({"cancelled": true}));
        assert_eq!(s.error(&ensure)["data"]["kind"], "cancelled");
        let ended = s.call("session/cancel", &json!({}));
        assert_eq!(ended, json!({"cancelled": false}));
        s.finish();
    }
}

#[test]
fn strategy_new_replaces_a_pending_opening() {
    for load in loads() {
        let mut s = serve(&[], &load);
        let ensure = s.send("session/ensure", &json!({}));
        s.await_agent_call("session/load");
        let fresh = s.call("session/ensure", &json!({"strategy": "new"}));
        assert_eq!(fresh["recovery"]["rung"], "new");
        assert_eq!(fresh["agentSessionId"], "fresh");
        assert_eq!(s.error(&ensure)["data"]["kind"], "cancelled");
        assert_eq!(s.prompt("two").summary["text"], "answer");
        s.finish();
    }
}
