//! Tests of clients that attach to a session: what they receive, what their role allows, what they learn of
//! each other, and what goes on after they left.

mod departures;

use super::fixture::{A, B, C, Fixture};
use super::idle::Disk;
use crate::client::{ClientId, Command, History, Notice};
use crate::fold::Fold;
use crate::testing::{RecordingClient, SettingsBuilder, params};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::ErrorKind;
use acpipe_protocol::wire::{DecidingClient, InitializeParams, OnDisconnect};
use serde_json::{Value, json};
use std::time::Instant;

/// Connects a client with a name, as a daemon does.
pub(super) fn connect_as(
    t: &mut Fixture,
    client: ClientId,
    name: &str,
    on_disconnect: OnDisconnect,
) {
    t.sinks.0.insert(client, RecordingClient::default());
    let hello = InitializeParams {
        on_disconnect,
        ..params(json!({
            "protocolVersion": 1,
            "clientInfo": {"name": name},
            "capabilities": {"permissions": true, "questions": true},
        }))
    };
    let call = t.call(client, Command::Initialize(hello));
    t.result(client, call);
}

fn attach_call(t: &mut Fixture, client: ClientId, p: Value) -> u64 {
    t.call(client, Command::Attach(params(p)))
}

pub(super) fn attach(t: &mut Fixture, client: ClientId, p: Value) -> Value {
    let call = attach_call(t, client, p);
    t.result(client, call)
}

fn attach_error(t: &mut Fixture, client: ClientId, p: Value) -> ErrorKind {
    let call = attach_call(t, client, p);
    t.reply(client, call).unwrap().unwrap_err()
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Returns the message that the client's chunks of one turn make.
fn folded(t: &Fixture, client: ClientId, turn: &str) -> Value {
    let mut fold = Fold::default();
    let chunks = t.sinks.0[&client].chunks.iter();
    for given in chunks.filter(|given| given.turn.as_deref() == Some(turn)) {
        fold.push(&given.chunk);
    }
    fold.message()
}

fn last_message(t: &mut Fixture, client: ClientId, session: &str) -> Value {
    let last = params(json!({"sessionId": session}));
    let call = t.call(client, Command::History(History::LastMessage(last)));
    t.result(client, call)["message"].clone()
}

/// Returns the ids, roles and marks of the clients in each presence notification, in order.
fn presences(t: &Fixture, client: ClientId) -> Vec<String> {
    let notices = t.sinks.0[&client].notices.iter();
    let lists = notices.filter_map(|notice| match notice {
        Notice::Presence(p) => Some(&p.clients),
        _ => None,
    });
    let shown = |clients: &Vec<acpipe_protocol::wire::SessionClient>| {
        let each = clients.iter().map(|client| {
            let own = if client.is_self { "*" } else { "" };
            format!("{}{own}:{:?}", client.client_id, client.role)
        });
        each.collect::<Vec<_>>().join(" ")
    };
    lists.map(shown).collect()
}

#[test]
fn client_attached_in_mid_turn_receives_missed_and_live_chunks_once() {
    for is_slow in [false, true] {
        let mut t = Fixture::with(&[A]);
        t.prompt(A, "s");
        let session = t.prompted();
        t.say(&[Fixture::words(&session, "one ")]);
        t.say(&[Fixture::words(&session, "two ")]);
        t.connect(B);
        t.sinks.0.get_mut(&B).unwrap().full = is_slow;
        let result = attach(&mut t, B, json!({"sessionId": "s", "afterSeq": 0}));
        assert_eq!(result["clientId"], "c1");
        assert_eq!(result["role"], "controller");
        let seen = t.sinks.0[&A].chunks.last().unwrap();
        assert_eq!(result["lastSeq"], seen.seq);
        let turn = result["running"]["turnId"].as_str().unwrap().to_owned();
        assert_eq!(Some(&turn), seen.turn.as_ref());
        assert_eq!(result["running"]["clientId"], "c0");
        t.say(&[Fixture::words(&session, "three")]);
        assert_eq!(t.texts(B).is_empty(), is_slow);
        t.end_turn();
        t.set_full(B, false);
        let seqs = t.seqs(B);
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
        assert_eq!(seqs.last(), t.seqs(A).last());
        assert_eq!(t.texts(B).concat(), "one two three");
        assert_eq!(folded(&t, B, &turn), folded(&t, A, &turn));
        assert_eq!(folded(&t, B, &turn), last_message(&mut t, A, "s"));
    }
}

#[test]
fn client_far_behind_catches_up_page_by_page_while_the_turn_goes_on() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    let thought =
        json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    let thought =
        json!({"method": "session/update", "params": {"sessionId": session, "update": thought}});
    // Alternating blocks cannot be merged, so that there are more chunks than a page of the log has.
    for _ in 0..300 {
        t.say(&[Fixture::words(&session, "a word"), thought.clone()]);
    }
    t.connect(B);
    let result = attach(&mut t, B, json!({"sessionId": "s", "afterSeq": 0}));
    assert!(result["lastSeq"].as_u64().unwrap() > 1500, "{result}");
    for full in [true, false, true] {
        t.set_full(B, full);
        t.say(&[Fixture::words(&session, "a word"), thought.clone()]);
    }
    t.end_turn();
    assert!(t.seqs(B).last() < t.seqs(A).last());
    t.set_full(B, false);
    let turn = result["running"]["turnId"].as_str().unwrap();
    assert!(t.seqs(B).is_sorted_by(|a, b| a < b));
    assert_eq!(folded(&t, B, turn), folded(&t, A, turn));
    assert_eq!(folded(&t, B, turn), last_message(&mut t, A, "s"));
}

#[test]
fn chunks_after_the_named_one_make_a_whole_turn() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "earlier")]);
    t.end_turn();
    t.prompt(A, "s");
    t.say(&[Fixture::words(&session, "now")]);
    t.connect(B);
    let running = attach(&mut t, B, json!({"sessionId": "s"}))["running"].clone();
    assert!(t.seqs(B).is_empty(), "without afterSeq nothing is repeated");
    let after = &running["afterSeq"];
    attach(&mut t, B, json!({"sessionId": "s", "afterSeq": after}));
    t.end_turn();
    assert_eq!(t.texts(B), ["now"]);
    let turn = running["turnId"].as_str().unwrap();
    assert_eq!(folded(&t, B, turn), last_message(&mut t, A, "s"));
    assert_eq!(folded(&t, B, turn)["id"], running["messageId"]);
}

#[test]
fn client_attached_without_a_number_receives_live_chunks_only() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "one ")]);
    t.connect(B);
    attach(&mut t, B, json!({"sessionId": "s"}));
    t.say(&[Fixture::words(&session, "two")]);
    assert_eq!(t.texts(B), ["two"]);
}

#[test]
fn missed_chunks_have_the_form_of_the_client() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "one ")]);
    t.sinks.0.insert(B, RecordingClient::default());
    let hello = params(json!({"protocolVersion": 1, "chunkProfile": 5}));
    let call = t.call(B, Command::Initialize(hello));
    t.result(B, call);
    t.ensure(B, "s");
    t.say(&[Fixture::words(&session, "two")]);
    let live = t.sinks.0[&B].chunks.last().unwrap().chunk.clone();
    t.sinks.0.get_mut(&B).unwrap().take_chunks();
    attach(&mut t, B, json!({"sessionId": "s", "afterSeq": 0}));
    let texts = t.texts(B).concat();
    assert_eq!(texts, "one two");
    let types = |t: &Fixture, client| -> Vec<String> {
        let chunks = t.sinks.0[&client].chunks.iter();
        let types = chunks.map(|given| given.chunk["type"].as_str().unwrap().to_owned());
        types.collect()
    };
    assert!(types(&t, B).contains(&live["type"].as_str().unwrap().to_owned()));
    assert!(!types(&t, B).contains(&"data-session".to_owned()));
}

#[test]
fn number_beyond_the_last_chunk_is_an_error_that_names_the_last() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    t.end_turn();
    let last = *t.seqs(A).last().unwrap();
    t.connect(B);
    let beyond = json!({"sessionId": "s", "afterSeq": last + 1});
    assert_eq!(attach_error(&mut t, B, beyond), ErrorKind::InvalidParams);
    attach(&mut t, B, json!({"sessionId": "s", "afterSeq": last}));
    assert!(t.seqs(B).is_empty());
    let unknown = json!({"sessionId": "none"});
    assert_eq!(attach_error(&mut t, B, unknown), ErrorKind::SessionNotFound);
}

#[test]
fn observer_follows_but_controls_nothing() {
    let mut t = Fixture::with(&[A]);
    t.connect(B);
    attach(&mut t, B, json!({"sessionId": "s", "role": "observer"}));
    t.prompt(A, "s");
    t.ask_permission();
    assert!(t.asked(B).is_empty());
    assert_eq!(t.seqs(B), t.seqs(A));
    let named = |mut more: Value| {
        more["sessionId"] = "s".into();
        more
    };
    let refused = [
        Command::Prompt(params(named(json!({"message": "go"})))),
        Command::Cancel(params(named(json!({})))),
        Command::Steer(params(named(json!({"message": "go"})))),
        Command::SetMode(params(named(json!({"mode": "m"})))),
        Command::SetModel(params(named(json!({"model": "m"})))),
        Command::Ensure(params(named(json!({})))),
        Command::History(History::CloseSession(params(named(json!({}))))),
        Command::History(History::ClearSession(params(named(json!({}))))),
        Command::History(History::ClearMessages(params(named(json!({}))))),
    ];
    for command in refused {
        let name = command.method().name;
        let call = t.call(B, command);
        let reply = t.reply(B, call).unwrap();
        assert_eq!(reply.unwrap_err(), ErrorKind::Forbidden, "{name}");
    }
    let ask = t.asked(A)[0];
    t.answer(B, ask, &selected("y"));
    assert_eq!(t.decided(), None, "its answer does not count");
    // As a controller it may answer.
    attach(&mut t, B, json!({"sessionId": "s", "role": "controller"}));
    assert_eq!(t.asked(B), [ask]);
    // Back to an observer, the request is taken from it.
    attach(&mut t, B, json!({"sessionId": "s", "role": "observer"}));
    assert!(t.asked(B).is_empty());
    t.answer(A, ask, &selected("y"));
    assert_eq!(t.decided(), Some("y"));
}

#[test]
fn connection_that_may_only_observe_cannot_become_a_controller() {
    let mut t = Fixture::with(&[A]);
    t.sinks.0.insert(B, RecordingClient::default());
    let hello = InitializeParams {
        role: acpipe_protocol::wire::Role::Observer,
        ..params(json!({"protocolVersion": 1, "capabilities": {"permissions": true}}))
    };
    let call = t.call(B, Command::Initialize(hello));
    t.result(B, call);
    let controller = json!({"sessionId": "s", "role": "controller"});
    assert_eq!(attach_error(&mut t, B, controller), ErrorKind::Forbidden);
    let result = attach(&mut t, B, json!({"sessionId": "s"}));
    assert_eq!(result["role"], "observer");
    let refused = [
        Command::Ensure(params(json!({"sessionId": "t"}))),
        Command::Connect(params(json!({}))),
        Command::GetEnvironment(params(json!({}))),
        Command::Shutdown,
    ];
    for command in refused {
        let name = command.method().name;
        let call = t.call(B, command);
        let reply = t.reply(B, call).unwrap();
        assert_eq!(reply.unwrap_err(), ErrorKind::Forbidden, "{name}");
    }
}

#[test]
fn others_learn_by_whom_a_request_was_answered() {
    let mut t = Fixture::with(&[A]);
    connect_as(&mut t, B, "phone", OnDisconnect::Continue);
    attach(&mut t, B, json!({"sessionId": "s"}));
    t.prompt(A, "s");
    t.ask_permission();
    let ask = t.asked(A)[0];
    assert_eq!(t.asked(B), [ask]);
    t.answer(B, ask, &selected("y"));
    let phone = DecidingClient {
        client_id: "c1".to_owned(),
        name: Some("phone".to_owned()),
    };
    let by = DecisionSource::OtherClient(phone);
    assert_eq!(t.sinks.0[&A].withdrawn, [(ask, by)]);
    let mut names = Vec::new();
    let session = t.hub.router.sessions().get("s").unwrap();
    session
        .talk
        .output
        .log()
        .decisions(|stored| names.push(stored.decision.client))
        .unwrap();
    assert_eq!(names, [Some("phone".to_owned())]);
}

#[test]
fn clients_of_a_session_see_each_other_come_and_go() {
    let mut t = Fixture::with(&[A]);
    for client in [B, C] {
        t.connect(client);
    }
    assert!(
        presences(&t, A).is_empty(),
        "a single client is not notified"
    );
    let observer = json!({"sessionId": "s", "role": "observer"});
    let result = attach(&mut t, B, observer.clone());
    let own: Vec<bool> = result["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|client| client["isSelf"].as_bool().unwrap())
        .collect();
    assert_eq!(own, [false, true]);
    attach(&mut t, B, observer);
    attach(&mut t, B, json!({"sessionId": "s", "role": "controller"}));
    t.ensure(C, "s");
    let detach = params(json!({"sessionId": "s"}));
    let call = t.call(B, Command::Detach(detach));
    t.result(B, call);
    t.leave(C);
    let seen = [
        "c0*:Controller c1:Observer",
        "c0*:Controller c1:Controller",
        "c0*:Controller c1:Controller c2:Controller",
        "c0*:Controller c2:Controller",
        "c0*:Controller",
    ];
    assert_eq!(presences(&t, A), seen);
    assert_eq!(
        presences(&t, B),
        ["c0:Controller c1*:Controller c2:Controller"]
    );
    let clients = params(json!({"sessionId": "s"}));
    let call = t.call(A, Command::Clients(clients));
    let clients = t.result(A, call)["clients"].clone();
    assert_eq!(clients.as_array().unwrap().len(), 1);
    assert_eq!(clients[0]["onDisconnect"], "cancel");
}

#[test]
fn client_that_does_not_read_gets_only_the_last_presence() {
    let mut t = Fixture::with(&[A]);
    t.ensure(A, "s");
    t.connect(B);
    t.connect(C);
    let stays = json!({"sessionId": "s", "onDisconnect": "continue"});
    attach(&mut t, B, stays);
    t.set_full(B, true);
    for _ in 0..100 {
        attach(&mut t, C, json!({"sessionId": "s"}));
        let detach = params(json!({"sessionId": "s"}));
        let call = t.call(C, Command::Detach(detach));
        t.result(C, call);
    }
    assert!(presences(&t, B).is_empty());
    t.set_full(B, false);
    t.prompt(A, "s");
    t.prompted();
    t.end_turn();
    assert_eq!(presences(&t, B), ["c0:Controller c1*:Controller"]);
    assert_eq!(t.seqs(B), t.seqs(A));
}

#[test]
fn message_of_a_prompt_reaches_the_others_when_its_turn_begins() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    t.prompt(B, "s");
    let shown = |t: &Fixture, client| -> Vec<(String, Value)> {
        let notices = t.sinks.0[&client].notices.iter();
        let messages = notices.filter_map(|notice| match notice {
            Notice::UserMessage(p) => Some((p.client_id.clone(), p.message["parts"].clone())),
            _ => None,
        });
        messages.collect()
    };
    let go = json!([{"type": "text", "text": "go"}]);
    assert!(shown(&t, A).is_empty(), "the second prompt is queued");
    assert_eq!(shown(&t, B), [("c0".to_owned(), go.clone())]);
    t.end_turn();
    assert_eq!(shown(&t, A), [("c1".to_owned(), go)]);
    assert_eq!(shown(&t, B).len(), 1);
}

#[test]
fn detached_client_gets_no_more_chunks_but_the_result_of_its_turn() {
    let mut t = Fixture::with(&[A, B]);
    let call = t.prompt(B, "s");
    t.ask_permission();
    let ask = t.asked(A)[0];
    let before = t.seqs(B).len();
    let detach = params(json!({"sessionId": "s"}));
    let detached = t.call(B, Command::Detach(detach));
    t.result(B, detached);
    assert!(t.asked(B).is_empty());
    t.answer(A, ask, &selected("y"));
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "a word")]);
    t.end_turn();
    assert_eq!(t.seqs(B).len(), before);
    assert_eq!(t.result(B, call)["text"], "a word");
}

#[test]
fn any_controller_cancels_a_turn() {
    let mut t = Fixture::with(&[A]);
    t.connect(B);
    attach(&mut t, B, json!({"sessionId": "s"}));
    t.prompt(A, "s");
    let cancel = params(json!({"sessionId": "s"}));
    let call = t.call(B, Command::Cancel(cancel));
    assert_eq!(t.result(B, call)["cancelled"], true);
    assert_eq!(t.received.last().unwrap()["method"], "session/cancel");
}

#[test]
fn stored_session_is_attached_without_its_agent() {
    let mut t = Fixture::on(
        Box::new(Disk::default()),
        SettingsBuilder::new(Instant::now()),
        &[A],
    );
    t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "a word")]);
    t.end_turn();
    let last = *t.seqs(A).last().unwrap();
    let close = params(json!({"sessionId": "s"}));
    t.call(A, Command::History(History::CloseSession(close)));
    t.answer_all();
    let started = (t.agents.len(), t.received.len());
    t.connect(B);
    let result = attach(&mut t, B, json!({"sessionId": "s", "afterSeq": 0}));
    assert_eq!(result["lastSeq"], last);
    assert_eq!(result["running"], Value::Null);
    assert_eq!(t.texts(B), ["a word"]);
    assert_eq!((t.agents.len(), t.received.len()), started);
    // The client is there when another one wakes the session.
    t.prompt(A, "s");
    t.answer_all();
    t.say(&[Fixture::words(&t.prompted(), "another")]);
    assert_eq!(t.texts(B), ["a word", "another"]);
}

#[test]
fn closing_a_session_notifies_and_detaches_the_others() {
    let mut t = Fixture::with(&[A, B]);
    let close = params(json!({"sessionId": "s"}));
    t.call(A, Command::History(History::CloseSession(close)));
    assert_eq!(presences(&t, B).last().unwrap(), "");
    let before = presences(&t, A).len();
    assert_eq!(before, 1, "only that B came");
}

#[test]
fn lists_show_the_work_and_the_clients_of_a_session() {
    let mut t = Fixture::with(&[A, B]);
    let facts = |t: &mut Fixture| {
        let get = params(json!({"sessionId": "s"}));
        let call = t.call(A, Command::History(History::GetSession(get)));
        let info = t.result(A, call);
        let list = params(json!({}));
        let call = t.call(A, Command::History(History::ListSessions(list)));
        let listed = t.result(A, call)["sessions"][0].clone();
        assert_eq!(listed["activity"], info["activity"]);
        assert_eq!(listed["clients"], info["clients"]);
        (info["activity"].clone(), info["clients"].clone())
    };
    assert_eq!(facts(&mut t), (json!("idle"), json!(2)));
    t.prompt(A, "s");
    assert_eq!(facts(&mut t), (json!("running"), json!(2)));
    t.ask_permission();
    t.leave(B);
    assert_eq!(facts(&mut t), (json!("waiting"), json!(1)));
}

/// The name is shown in the terminals of others, one line for each client.
#[test]
fn name_of_a_client_is_one_line() {
    let mut t = Fixture::with(&[]);
    connect_as(&mut t, A, "a\nacpipe: forged\tline", OnDisconnect::Continue);
    t.ensure(A, "s");
    let result = attach(&mut t, A, json!({"sessionId": "s"}));
    let name = &result["clients"][0]["name"];
    assert_eq!(name, "a acpipe: forged line", "{result}");
}
