//! Tests of agents that use the id of an open request for another one: an approval counts only for the request for which
//! it was given.

use super::fixture::{A, Fixture};
use serde_json::{Value, json};
use std::slice;

fn tool(command: &str) -> Value {
    json!({"toolCallId": command, "title": "Tool", "kind": "execute", "rawInput": {"command": command}})
}

/// Returns the results of the responses to the request with this id.
fn responses(t: &Fixture, id: &str) -> Vec<Value> {
    let of_id = t.received.iter().filter(|message| message["id"] == id);
    of_id.map(|message| message["result"].clone()).collect()
}

fn asks_user(session: Option<&str>) -> Value {
    let form = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    json!({"id": "q", "method": "elicitation/create", "params": {
        "sessionId": session, "mode": "form", "message": "Name?", "requestedSchema": form}})
}

#[test]
fn request_under_the_id_of_an_open_one_refuses_that_one() {
    let refused = json!({"outcome": {"outcome": "selected", "optionId": "n"}});
    let approved = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.request_permission("q", &session, &tool("ls"));
    let first = t.asked(A)[0];
    t.request_permission("q", &session, &tool("rm x"));
    assert_eq!(responses(&t, "q"), slice::from_ref(&refused));
    let second = t.asked(A)[0];
    assert!(t.asked(A).len() == 1 && second != first);
    t.answer(A, first, &approved);
    assert_eq!(responses(&t, "q").len(), 1);
    // A question to the user takes the place of the permission request, in a session and outside of sessions.
    for asking in [Some(session.as_str()), None] {
        t.say(&[asks_user(asking)]);
        assert_eq!(t.asked(A).len(), 1, "{asking:?}");
    }
    let answered = responses(&t, "q");
    assert_eq!(answered[1], refused);
    assert_eq!(answered[2]["action"], "decline");
    // And a permission request that of the question. It is answered by its own decision.
    t.request_permission("q", &session, &tool("pwd"));
    let last = t.asked(A)[0];
    assert_eq!(t.asked(A).len(), 1);
    assert_eq!(responses(&t, "q")[3]["action"], "cancel");
    t.answer(A, last, &approved);
    assert_eq!(responses(&t, "q")[4], approved);
}

#[test]
fn id_of_an_answered_request_can_be_used_again() {
    let approved = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    for command in ["ls", "pwd"] {
        t.request_permission("q", &session, &tool(command));
        let asked = t.asked(A)[0];
        t.answer(A, asked, &approved);
    }
    assert_eq!(responses(&t, "q"), [approved.clone(), approved]);
}
