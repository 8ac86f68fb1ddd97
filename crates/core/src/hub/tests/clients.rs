//! Tests with several clients: what each receives, which of them decides, which of them an agent waits for,
//! and the effects of a client that leaves.

use super::fixture::{A, B, C, Fixture};
use crate::client::{ClientId, Command, History, Notice};
use crate::client_request::ErrorResponse;
use crate::hub::{AgentInput, Exit, HubCx};
use crate::testing::{RecordingClient, SettingsBuilder, params};
use acpipe_json::to_raw;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::ErrorKind;
use acpipe_protocol::wire::{DecidingClient, InitializeParams, StateParams};
use serde_json::{Value, json};
use std::time::Instant;

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn decided_by(client: ClientId) -> DecidingClient {
    DecidingClient {
        client_id: client.to_string(),
        name: None,
    }
}

#[test]
fn subscribed_clients_receive_equal_chunks_and_only_the_caller_gets_the_reply() {
    let mut t = Fixture::with(&[A, B]);
    t.connect(C);
    let call = t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "hello")]);
    t.end_turn();
    assert_eq!(t.result(A, call)["text"], "hello");
    assert!(t.reply(B, call).is_none());
    assert_eq!(t.texts(A), ["hello"]);
    assert_eq!(t.seqs(A), t.seqs(B));
    assert!(t.seqs(C).is_empty(), "it did not ensure the session");
}

#[test]
fn call_without_a_session_means_the_one_that_its_client_ensured() {
    let mut t = Fixture::with(&[A, B]);
    let named = |cwd: &str| Command::Ensure(params(json!({"sessionId": "default", "cwd": cwd})));
    for (client, cwd) in [(A, "/a"), (B, "/b")] {
        t.call(client, named(cwd));
        t.answer_all();
    }
    let get = |t: &mut Fixture, client| {
        let get = params(json!({}));
        let call = t.call(client, Command::History(History::GetSession(get)));
        t.result(client, call)["cwd"].clone()
    };
    assert_eq!([get(&mut t, A), get(&mut t, B)], ["/a", "/b"]);
}

#[test]
fn cancel_of_one_session_leaves_others_running() {
    let mut t = Fixture::with(&[A]);
    t.ensure(A, "b");
    for session in ["s", "b"] {
        t.prompt(A, session);
    }
    let cancel = Command::Cancel(params(json!({"sessionId": "b"})));
    let call = t.call(A, cancel);
    assert_eq!(t.result(A, call), json!({"cancelled": true}));
    let mut cancels = t.received.iter();
    let mut cancels = cancels.by_ref().filter(|m| m["method"] == "session/cancel");
    let cancelled = &cancels.next().unwrap()["params"]["sessionId"];
    assert_eq!(*cancelled, t.prompted());
    assert!(cancels.next().is_none());
    let busy = json!({"sessionId": "s", "message": "x", "whenBusy": "reject"});
    let call = t.call(A, Command::Prompt(params(busy)));
    assert_eq!(t.reply(A, call), Some(Err(ErrorKind::Busy)));
}

#[test]
fn first_valid_answer_decides_and_the_others_are_notified() {
    let mut t = Fixture::with(&[A, B, C]);
    t.prompt(A, "s");
    t.ask_permission();
    let [ask] = t.asked(A)[..] else {
        panic!("one request")
    };
    assert_eq!([t.asked(B), t.asked(C)], [[ask], [ask]]);
    // This option was not offered, so the other clients can still answer.
    t.answer(B, ask, &selected("novel"));
    assert_eq!(t.decided(), None);
    t.answer(C, ask, &selected("n"));
    assert_eq!(t.decided(), Some("n"));
    assert_eq!(
        t.sinks.0[&A].withdrawn,
        [(ask, DecisionSource::OtherClient(decided_by(C)))]
    );
    assert!(t.sinks.0[&B].withdrawn.is_empty(), "it has answered");
    // The request is already decided.
    t.answer(A, ask, &selected("y"));
    let answers = t.received.iter().filter(|m| m["id"] == "q");
    assert_eq!(answers.count(), 1);
}

/// Prompts with a message that takes the place of answers.
fn redirect(t: &mut Fixture, client: ClientId) {
    let prompt = json!({"sessionId": "s", "message": "never mind", "whenBusy": "redirect"});
    t.call(client, Command::Prompt(params(prompt)));
}

#[test]
fn message_instead_of_an_answer_refuses_and_the_other_clients_are_notified() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    t.ask_permission();
    let ask = t.asked(A)[0];
    redirect(&mut t, B);
    assert_eq!(t.decided(), Some("n"));
    for client in [A, B] {
        let withdrawn = &t.sinks.0[&client].withdrawn;
        assert_eq!(*withdrawn, [(ask, DecisionSource::Message)]);
    }
    t.end_turn();
    let prompts = t
        .received
        .iter()
        .filter(|m| m["method"] == "session/prompt");
    let prompts: Vec<_> = prompts.map(|m| &m["params"]["prompt"][0]["text"]).collect();
    assert_eq!(prompts, ["go", "never mind"]);
}

#[test]
fn request_that_only_another_client_can_answer_is_left_to_it() {
    let mut t = Fixture::with(&[A]);
    t.connect_with(B, &json!({}));
    t.ensure(B, "s");
    t.prompt(A, "s");
    t.ask_permission();
    let ask = t.asked(A)[0];
    redirect(&mut t, B);
    assert_eq!(t.decided(), None);
    let waits = t.sinks.0[&B]
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Activity(p) => p.waiting_for.as_ref(),
            _ => None,
        });
    let stages: Vec<_> = waits.map(|waiting| &*waiting.stage).collect();
    assert_eq!(stages, ["answer"]);
    t.answer(A, ask, &selected("y"));
    assert_eq!(t.decided(), Some("y"));
}

#[test]
fn invalid_answer_of_the_last_client_that_can_answer_refuses() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    t.ask_permission();
    let ask = t.asked(A)[0];
    for client in [A, B] {
        assert_eq!(t.decided(), None);
        t.answer(client, ask, &selected("novel"));
    }
    assert_eq!(t.decided(), Some("n"));
}

#[test]
fn answer_of_an_unasked_client_is_ignored() {
    let mut t = Fixture::with(&[A]);
    t.connect(B);
    t.prompt(A, "s");
    t.ask_permission();
    let ask = t.asked(A)[0];
    t.answer(B, ask, &selected("y"));
    assert_eq!(t.decided(), None);
}

#[test]
fn joining_client_gets_open_requests() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    t.ask_permission();
    t.connect(B);
    assert!(t.asked(B).is_empty());
    t.ensure(B, "s");
    assert_eq!(t.asked(B), t.asked(A));
    let ask = t.asked(B)[0];
    t.answer(B, ask, &selected("y"));
    assert_eq!(t.decided(), Some("y"));
}

#[test]
fn questions_of_a_turn_are_cancelled_when_its_client_leaves() {
    let mut t = Fixture::with(&[A, B, C]);
    t.prompt(A, "s");
    t.ask_permission();
    t.leave(B);
    assert_eq!(t.decided(), None, "two can still answer");
    t.leave(A);
    assert_eq!(t.decided(), Some("cancelled"));
    let [(_, by)] = &t.sinks.0[&C].withdrawn[..] else {
        panic!("one request")
    };
    assert_eq!(*by, DecisionSource::Cancel);
}

#[test]
fn policy_decides_requests_without_a_remaining_client() {
    let mut t = Fixture::with(&[]);
    t.connect_with(A, &json!({}));
    t.connect(B);
    t.ensure(A, "s");
    t.ensure(B, "s");
    t.prompt(A, "s");
    t.ask_permission();
    assert!(t.asked(A).is_empty(), "it cannot be asked");
    assert_eq!(t.asked(B).len(), 1);
    t.leave(B);
    assert_eq!(t.decided(), Some("n"));
}

#[test]
fn question_of_a_process_that_has_ended_is_withdrawn() {
    let settings = SettingsBuilder::new(Instant::now()).child_per_session(true);
    let mut t = Fixture::of(settings, &[A]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let asked = json!({"mode": "form", "message": "Which?", "requestedSchema": schema});
    t.say(&[json!({"id": "e", "method": "elicitation/create", "params": asked})]);
    assert_eq!(t.asked(A).len(), 1);
    let close = History::CloseSession(params(json!({"sessionId": "s"})));
    t.call(A, Command::History(close));
    let process = *t.agents.last().unwrap();
    let exited = AgentInput::Exited(Exit::default());
    let rest = t
        .hub
        .agent(process, exited, &mut HubCx::new(t.now, &mut t.sinks));
    assert!(rest.is_none());
    assert!(t.asked(A).is_empty());
}

/// The text may quote what the user typed.
#[test]
fn error_of_an_editor_to_a_question_keeps_its_code_only() {
    let mut t = Fixture::with(&[]);
    t.sinks.0.insert(A, RecordingClient::default());
    let can = json!({"permissions": true, "questions": true});
    let hello = InitializeParams {
        acp: Some(to_raw(
            &json!({"clientCapabilities": {"elicitation": {"form": {}}}}),
        )),
        ..params(json!({"protocolVersion": 1, "capabilities": can}))
    };
    let call = t.call(A, Command::Initialize(hello));
    t.result(A, call);
    t.ensure(A, "s");
    t.prompt(A, "s");
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let asked = json!({"mode": "form", "message": "Which?", "requestedSchema": schema});
    let mut of_session = asked.clone();
    of_session["sessionId"] = json!(t.prompted());
    for (id, asked) in [("outside", asked), ("session", of_session)] {
        t.say(&[json!({"id": id, "method": "elicitation/create", "params": asked})]);
        let error = ErrorResponse {
            code: -32042,
            message: "not valid: hunter2".to_owned(),
            data: Some(json!({"typed": "hunter2"})),
        };
        let ask = t.asked(A)[0];
        t.sinks.0.get_mut(&A).unwrap().open_requests.clear();
        t.hub
            .client_answered(A, ask, &Err(error), &mut HubCx::new(t.now, &mut t.sinks));
        t.settle();
        let answer = t.received.iter().find(|message| message["id"] == id);
        let error = &answer.expect("an answer")["error"];
        assert_eq!(error["code"], -32042, "{id}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn leaving_client_removes_only_its_own_prompts() {
    let mut t = Fixture::with(&[A, B]);
    let first = t.prompt(A, "s");
    t.prompt(B, "s");
    let third = t.prompt(A, "s");
    t.leave(B);
    let cancels = |t: &Fixture| {
        let cancels = t
            .received
            .iter()
            .filter(|m| m["method"] == "session/cancel");
        cancels.count()
    };
    assert_eq!(cancels(&t), 0, "another client's turn runs");
    for call in [first, third] {
        let session = t.prompted();
        t.say(&[Fixture::words(&session, "a word")]);
        t.end_turn();
        assert_eq!(t.result(A, call)["text"], "a word");
    }
    assert!(t.requests.is_empty(), "the prompt of the other is not sent");
}

#[test]
fn turn_of_a_client_that_leaves_is_cancelled() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(B, "s");
    t.leave(B);
    let last = t.received.last().unwrap();
    assert_eq!(last["method"], "session/cancel", "{last}");
    let states = t.sinks.0[&A].notices.iter();
    let queued = |notice: &&Notice| matches!(notice, Notice::SessionState(StateParams { queue, .. }) if !queue.is_empty());
    assert_eq!(states.filter(queued).count(), 0);
}

#[test]
fn lagging_client_delays_no_other_and_receives_missed_chunks_coalesced() {
    let mut t = Fixture::with(&[A, B]);
    let call = t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "one ")]);
    t.set_full(B, true);
    t.say(&[Fixture::words(&session, "two ")]);
    t.say(&[Fixture::words(&session, "three")]);
    assert_eq!(t.texts(A), ["one ", "two ", "three"]);
    assert_eq!(t.texts(B), ["one "]);
    t.end_turn();
    assert_eq!(t.result(A, call)["text"], "one two three");
    t.set_full(B, false);
    assert_eq!(t.texts(B), ["one ", "two three"]);
    assert_eq!(t.seqs(A).last(), t.seqs(B).last());
    // The client is live again.
    t.prompt(A, "s");
    assert_eq!(t.seqs(A).last(), t.seqs(B).last());
}

#[test]
fn messages_after_missed_chunks_wait_for_them() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    t.set_full(B, true);
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "a word")]);
    t.ask_permission();
    assert!(
        t.asked(B).is_empty(),
        "what shows the question is not sent yet"
    );
    t.set_full(B, false);
    assert_eq!(t.asked(B), t.asked(A));
    t.set_full(B, true);
    // The request that B received is withdrawn only once, and what B missed is not sent any more.
    let ask = t.asked(A)[0];
    t.answer(A, ask, &selected("y"));
    assert_eq!(
        t.sinks.0[&B].withdrawn,
        [(ask, DecisionSource::OtherClient(decided_by(A)))]
    );
}

#[test]
fn agent_waits_for_the_client_whose_turn_it_runs() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.set_full(A, true);
    let rest = t.offer(&[Fixture::words(&session, "a word")]);
    assert!(rest.is_some(), "nothing is read");
    t.set_full(A, false);
    t.say(&[Fixture::words(&session, "a word")]);
    assert_eq!(t.texts(A), ["a word"]);
}

#[test]
fn agent_continues_for_a_client_with_room_while_another_lags() {
    let mut t = Fixture::with(&[A, B]);
    t.ensure(B, "t");
    let first = t.prompt(A, "s");
    let of_a = t.prompted();
    let second = t.prompt(B, "t");
    let of_b = t.prompted();
    t.set_full(A, true);
    t.say(&[Fixture::words(&of_a, "one "), Fixture::words(&of_b, "two")]);
    assert!(t.texts(A).is_empty());
    assert_eq!(t.texts(B), ["one ", "two"]);
    t.end_turn();
    t.end_turn();
    assert!(t.reply(A, first).is_none(), "its chunks come before");
    assert_eq!(t.result(B, second)["text"], "two");
    t.set_full(A, false);
    assert_eq!(t.texts(A), ["one "]);
    assert_eq!(t.result(A, first)["text"], "one ");
}

#[test]
fn file_is_served_by_the_client_whose_turn_it_is_and_fails_when_that_leaves() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(B, "s");
    let session = t.prompted();
    let path = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let read = json!({"sessionId": session, "path": path});
    t.say(&[json!({"id": "r", "method": "fs/read_text_file", "params": read})]);
    // The policy asks the client first.
    let ask = t.asked(A)[0];
    t.answer(A, ask, &selected("allow"));
    assert!(t.asked(A).is_empty());
    assert_eq!(t.asked(B).len(), 1);
    t.leave(B);
    let answer = t.received.iter().find(|m| m["id"] == "r").unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("disconnected"), "{answer}");
}

#[test]
fn terminal_is_served_by_the_client_that_made_it() {
    let mut t = Fixture::with(&[]);
    let can = json!({"permissions": true, "terminal": true});
    for client in [A, B] {
        t.connect_with(client, &can);
        t.ensure(client, "s");
    }
    t.prompt(B, "s");
    let session = t.prompted();
    let create = json!({"sessionId": session, "command": "ls"});
    t.say(&[json!({"id": "c", "method": "terminal/create", "params": create})]);
    let ask = t.asked(A)[0];
    t.answer(A, ask, &selected("allow"));
    let create = t.asked(B)[0];
    t.answer(B, create, &json!({"terminalId": "1"}));
    // Another client prompts, and the agent uses the terminal.
    t.say(&[Fixture::words(&session, "a word")]);
    t.end_turn();
    t.prompt(A, "s");
    let output = json!({"sessionId": session, "terminalId": "1"});
    t.say(&[json!({"id": "o", "method": "terminal/output", "params": output})]);
    assert!(t.asked(A).is_empty());
    assert_eq!(t.asked(B).len(), 1);
}

#[test]
fn file_is_not_served_by_acpipe_when_the_client_that_offered_it_has_left() {
    let mut t = Fixture::with(&[]);
    t.connect_with(A, &json!({"permissions": true}));
    t.connect(B);
    t.ensure(A, "s");
    t.ensure(B, "s");
    t.prompt(A, "s");
    let session = t.prompted();
    let path = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let read = json!({"sessionId": session, "path": path});
    t.say(&[json!({"id": "r", "method": "fs/read_text_file", "params": read})]);
    let ask = t.asked(A)[0];
    t.leave(B);
    t.answer(A, ask, &selected("allow"));
    let answer = t.received.iter().find(|m| m["id"] == "r").unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("disconnected"), "{answer}");
}

#[test]
fn closing_a_session_sends_a_lagging_client_the_rest() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.set_full(B, true);
    t.say(&[Fixture::words(&session, "a word")]);
    t.end_turn();
    assert!(t.texts(B).is_empty());
    let close = params(json!({"sessionId": "s"}));
    let close = History::CloseSession(close);
    t.call(A, Command::History(close));
    assert_eq!(t.texts(B), ["a word"]);
    assert_eq!(t.seqs(A), t.seqs(B));
}
