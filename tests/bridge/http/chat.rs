//! Chats of browsers: turns, approvals, reloads.

use super::Server;
use super::websocket::Socket;
use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

pub fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

pub fn submit(messages: &[Value]) -> Value {
    json!({"id": "c", "trigger": "submit-message", "messages": messages})
}

fn types(chunks: &[Value]) -> Vec<&str> {
    chunks
        .iter()
        .map(|chunk| chunk["type"].as_str().unwrap())
        .collect()
}

fn text(chunks: &[Value]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk["delta"].as_str())
        .collect()
}

pub fn approving_turn() -> Value {
    let tool = json!({"toolCallId": "edit", "title": "Edit", "kind": "edit"});
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let done = json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "edit", "status": "completed"}});
    json!({"session/prompt": [[say("before "), question, done, say("after"), end("end_turn")]]})
}

/// The message that a reader has after these chunks, as far as acpipe reads it.
fn answered(chunks: &[Value], approved: bool) -> Value {
    let of = |kind: &str| chunks.iter().rfind(|chunk| chunk["type"] == kind).unwrap();
    let asked = of("tool-approval-request");
    json!({
        "id": of("start")["messageId"],
        "role": "assistant",
        "metadata": of("message-metadata")["messageMetadata"],
        "parts": [{"type": "step-start"}, {
            "type": "dynamic-tool", "toolCallId": asked["toolCallId"], "state": "approval-responded",
            "approval": {"id": asked["approvalId"], "approved": approved},
        }],
    })
}

#[test]
fn prompt_is_streamed_stored_and_run_once() {
    let server = Server::start(&json!({"session/prompt": [[say("hello"), end("end_turn")]]}));
    let chunks = server.chat("u1", "hi");
    assert_eq!(types(&chunks).first(), Some(&"start"));
    assert_eq!(types(&chunks).last(), Some(&"finish"));
    let again = server.chat("u1", "hi");
    assert_eq!(text(&again), "hello");
    let stored = server.get("/api/chat/c/messages").json();
    let roles: Vec<_> = stored["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
    let regenerate =
        json!({"id": "c", "trigger": "regenerate-message", "messages": [user("u1", "hi")]});
    assert_eq!(
        text(&server.send("POST", "/api/chat", &regenerate).chunks()),
        "hello"
    );
    let list = server.get("/api/chat").json();
    assert_eq!(list["sessions"][0]["sessionId"], "c");
    assert_eq!(server.get("/api/chat/c/stream").status, 204);
    assert_eq!(server.get("/api/chat/none/stream").status, 204);
    server.daemon.stop();
}

#[test]
fn next_request_answers_the_approval_and_continues_the_message() {
    let server = Server::start(&approving_turn());
    let message = user("u1", "go");
    let first = server.chat("u1", "go");
    assert_eq!(text(&first), "before ");
    assert_eq!(types(&first).last(), Some(&"message-metadata"));
    let answer = answered(&first, true);
    let rest = server
        .send("POST", "/api/chat", &submit(&[message, answer]))
        .chunks();
    // The message continues: it does not begin again, and nothing comes twice.
    assert!(!types(&rest).contains(&"start"), "{rest:?}");
    assert_eq!(text(&rest), "after");
    assert!(types(&rest).contains(&"tool-approval-response"));
    assert_eq!(types(&rest).last(), Some(&"finish"));
    server.daemon.stop();
}

#[test]
fn reloaded_page_gets_the_running_turn_from_its_beginning() {
    let server = Server::start(&approving_turn());
    let message = user("u1", "go");
    let first = server.chat("u1", "go");
    let stored = server.get("/api/chat/c/messages").json();
    // The stream has the message of the running turn.
    assert_eq!(stored["messages"].as_array().unwrap().len(), 1, "{stored}");
    let again = server.get("/api/chat/c/stream").chunks();
    assert_eq!(again, first);
    let answer = answered(&again, false);
    let rest = server
        .send("POST", "/api/chat", &submit(&[message, answer]))
        .chunks();
    assert!(types(&rest).contains(&"tool-output-denied"), "{rest:?}");
    server.daemon.stop();
}

#[test]
fn reloaded_page_of_an_older_sdk_gets_the_open_question() {
    let server = Server::start(&approving_turn());
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("x-ai-sdk-major", "6"),
    ];
    let body = submit(&[user("u1", "go")]).to_string();
    let first = server
        .send_raw("POST", "/api/chat", &headers, body.as_bytes())
        .chunks();
    assert!(
        types(&first).contains(&"tool-approval-request"),
        "{first:?}"
    );
    let again = server
        .send_raw("GET", "/api/chat/c/stream", &headers, b"")
        .chunks();
    assert_eq!(again, first);
    server.daemon.stop();
}

#[test]
fn approval_of_its_own_continues_an_open_stream() {
    let server = Server::start(&approving_turn());
    let mut body = submit(&[user("u1", "go")]);
    body["approvals"] = "inline".into();
    let mut stream = server.send("POST", "/api/chat", &body);
    stream.read_until("tool-approval-request");
    let replay = server.get("/api/chat/c/stream").chunks();
    let asked = replay
        .iter()
        .find(|chunk| chunk["type"] == "tool-approval-request")
        .unwrap();
    let wrong = json!({"approvalId": "msg-0.ask9", "approved": true});
    assert_eq!(
        server.send("POST", "/api/chat/c/approval", &wrong).status,
        409
    );
    let unknown = json!({"approvalId": asked["approvalId"], "approved": true, "optionId": "nope"});
    let refused = server.send("POST", "/api/chat/c/approval", &unknown);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("nope"));
    // The question is still open.
    let answer = json!({"approvalId": asked["approvalId"], "approved": true});
    let answered = server.send("POST", "/api/chat/c/approval", &answer);
    let status = answered.status;
    assert_eq!(status, 200, "{}", answered.text());
    stream.read_until("after");
    stream.read_until("[DONE]");
    assert_eq!(
        server.send("POST", "/api/chat/c/approval", &answer).status,
        409
    );
    server.daemon.stop();
}

#[test]
fn message_instead_of_an_answer_refuses_the_call_and_is_answered() {
    let mut script = approving_turn();
    let next = json!([say("fresh"), end("end_turn")]);
    script["session/prompt"].as_array_mut().unwrap().push(next);
    let server = Server::start(&script);
    let first = server.chat("u1", "go");
    let second = server.chat("u2", "never mind");
    assert_eq!(text(&second), "fresh");
    let stored = server.get("/api/chat/c/messages").json();
    let parts = stored["messages"][1]["parts"].as_array().unwrap();
    let mut parts = parts.iter();
    let decided = parts
        .find(|part| part["type"] == "data-permission")
        .unwrap();
    assert_eq!(decided["data"]["by"], "message", "{stored}");
    // The buttons of another tab are still there.
    let late = answered(&first, true);
    let approval = &late["parts"][1]["approval"];
    let click = json!({"approvalId": approval["id"], "approved": true});
    let refused = server.send("POST", "/api/chat/c/approval", &click);
    assert_eq!(refused.status, 409);
    let why = refused.text();
    assert!(why.contains("the user sent a new message"), "{why}");
    let rest = server.send("POST", "/api/chat", &submit(&[user("u1", "go"), late]));
    let rest = rest.chunks();
    let notice = rest.iter().find(|chunk| chunk["type"] == "data-notice");
    let notice = &notice.unwrap_or_else(|| panic!("{rest:?}"))["data"];
    assert_eq!(notice["title"], "The answer came too late");
    server.daemon.stop();
}

/// A message from before the question is no answer to it.
#[test]
fn message_that_waits_for_an_answer_says_so() {
    let mut script = approving_turn();
    let turns = script["session/prompt"].as_array_mut().unwrap();
    turns[0]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"wait": "session/new"}));
    turns[0].as_array_mut().unwrap().insert(0, say("begun"));
    turns.push(json!([say("fresh"), end("end_turn")]));
    let server = Server::start(&script);
    let mut body = submit(&[user("u1", "go")]);
    body["approvals"] = "inline".into();
    let mut first = server.send("POST", "/api/chat", &body);
    first.read_until("begun");
    let (mut socket, _) = Socket::connect(&server, &server.token);
    socket.call("initialize", &json!({"protocolVersion": 1}));
    socket.call("session/attach", &json!({"sessionId": "c"}));
    std::thread::scope(|scope| {
        let second =
            scope.spawn(|| server.send("POST", "/api/chat", &submit(&[user("u2", "next")])));
        socket.read_until("\"queue\":[{");
        let mut other = submit(&[user("u3", "other")]);
        other["id"] = "d".into();
        server.send("POST", "/api/chat", &other).chunks();
        let mut second = second.join().unwrap();
        let notice = second.read_until("The message waits");
        assert!(
            notice.contains("waiting for the client's answer to \\\"Edit\\\""),
            "{notice}"
        );
        let asked = first.read_until("tool-approval-request");
        let asked: Value = serde_json::from_str(asked.strip_prefix("data: ").unwrap()).unwrap();
        let answer = json!({"approvalId": asked["approvalId"], "approved": true});
        assert_eq!(
            server.send("POST", "/api/chat/c/approval", &answer).status,
            200
        );
        second.read_until("fresh");
        second.read_until("[DONE]");
    });
    server.daemon.stop();
}

#[test]
fn closed_browser_stops_nothing_and_cancel_does() {
    let words = [
        say("begun"),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ];
    let server = Server::start(&json!({"session/prompt": [words]}));
    let mut stream = server.send("POST", "/api/chat", &submit(&[user("u1", "go")]));
    stream.read_until("begun");
    drop(stream);
    let mut again = server.get("/api/chat/c/stream");
    again.read_until("begun");
    let cancelled = server.send("POST", "/api/chat/c/cancel", &json!({})).json();
    assert_eq!(cancelled["cancelled"], true);
    again.read_until("\"abort\"");
    again.read_until("[DONE]");
    server.daemon.stop();
}

#[test]
fn failure_before_the_first_chunk_is_an_http_status() {
    let server = Server::start(&json!({}));
    let mut body = submit(&[user("u1", "go")]);
    body["agent"] = "no-such-agent".into();
    let refused = server.send("POST", "/api/chat", &body);
    assert_eq!(refused.status, 400);
    let message = refused.text();
    assert!(message.contains("no-such-agent"), "{message}");
    // A client that accepts JSON gets the kind, too.
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "text/event-stream, application/json"),
    ];
    let body = body.to_string();
    let refused = server.send_raw("POST", "/api/chat", &headers, body.as_bytes());
    assert_eq!(refused.status, 400);
    let error = refused.json();
    assert_eq!(error["message"], message.trim_end());
    assert_eq!(
        (&error["kind"], &error["data"]["field"]),
        (&json!("agentNotFound"), &json!("agent"))
    );
    server.daemon.stop();
}

#[test]
fn id_of_a_chat_is_a_name_and_not_a_path() {
    let server = Server::start(&json!({"session/prompt": [[say("hello"), end("end_turn")]]}));
    let mut body = submit(&[user("u1", "go")]);
    body["id"] = "../../a b".into();
    server.send("POST", "/api/chat", &body).chunks();
    let path = "/api/chat/..%2F..%2Fa%20b/messages";
    let stored = server.get(path).json();
    assert_eq!(stored["messages"].as_array().unwrap().len(), 2, "{stored}");
    server.daemon.stop();
}

/// The response says what became of the answer, not what the client sent.
#[test]
fn answer_that_does_not_fit_is_not_reported_as_accepted() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let form = json!({"mode": "form", "message": "?", "requestedSchema": schema, "sessionId": "{session}"});
    let step = json!({"ask": {"method": "elicitation/create", "params": form}});
    let server = Server::start(&json!({"session/prompt": [[step, say("after"), end("end_turn")]]}));
    let mut stream = server.send("POST", "/api/chat", &submit(&[user("u1", "go")]));
    let question = stream.read_until("data-question");
    let chunk: Value = serde_json::from_str(question.strip_prefix("data: ").unwrap()).unwrap();
    // The client of the stream can still answer.
    for (n, status, wanted) in [
        (json!("seven"), 400, "still open"),
        (json!(7), 200, "accept"),
    ] {
        let answer = json!({"questionId": chunk["id"], "action": "accept", "content": {"n": n}});
        let response = server.send("POST", "/api/chat/c/answer", &answer);
        assert_eq!(response.status, status);
        let text = response.text();
        assert!(text.contains(wanted), "{text}");
    }
    stream.read_until("[DONE]");
    server.daemon.stop();
}

/// All clients of the HTTP server have the settings of the daemon: they learn it once in a session, also in one that another client began.
#[test]
fn chat_in_a_session_of_others_shows_that_the_agent_may_not_ask() {
    let world = World::new();
    let script = json!({"session/prompt": [[say("done"), end("end_turn")]]});
    let modes =
        json!({"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}]});
    let session = json!([[{"reply": {"sessionId": "a", "modes": modes}}]]);
    let script = json!({"session/new": session, "session/prompt": script["session/prompt"]});
    let server = Server::start_in(world, &["--permissions", "deny"], &script);
    let agent = server.daemon.world.script(&script);
    let mut opener = server
        .daemon
        .client(&["--permissions", "deny", "--", FAKE_AGENT, &agent]);
    opener.ensure("c");
    opener.call(
        "session/prompt",
        &json!({"sessionId": "c", "message": "go"}),
    );
    let warnings = |id: &str| {
        let chunks = server.chat(id, "hi");
        let title = "The agent may run tools without asking";
        chunks
            .iter()
            .filter(|chunk| chunk["data"]["title"] == title)
            .count()
    };
    assert_eq!([warnings("u1"), warnings("u2")], [1, 0]);
}

/// The daemon has a mode on its command line, and a client changed the session to another one.
#[test]
fn browser_gets_a_notice_of_settings_that_the_session_does_not_have() {
    let modes = json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    let script = json!({
        "session/new": [[{"reply": {"sessionId": "fake-1", "modes": modes}}]],
        "session/set_mode": [[{"reply": {}}]],
        "session/prompt": [[say("hello"), end("end_turn")]],
    });
    let server = Server::start_in(World::new(), &["--mode", "ask"], &script);
    let notices = |id: &str| -> Vec<String> {
        let chunks = server.chat(id, "hi");
        assert_eq!(types(&chunks)[0], "start");
        let notices = chunks.iter().filter(|chunk| chunk["type"] == "data-notice");
        let texts = notices.map(|chunk| chunk["data"]["description"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    };
    assert_eq!(notices("u1"), [""; 0]);
    let mut client = server.daemon.client(&[]);
    let code = json!({"sessionId": "c", "mode": "code"});
    client.call("session/setMode", &code);
    let [notice] = &notices("u2")[..] else {
        panic!("one notice");
    };
    assert!(
        notice.contains("differs from this client in mode"),
        "{notice}"
    );
    server.daemon.stop();
}
