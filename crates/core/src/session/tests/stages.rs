//! Tests of every event in every stage, and of pairs of events: nothing panics, and each command and each
//! request of the agent is answered once.

use super::super::restore::LOAD_QUIET;
use super::event::On;
use super::fixture::{Fixture, all, gone};
use On::{
    Answer, Cancel, Client, Ensure, Permission, Prompt, PromptRetry, Read, Refuse, Request, Set,
    Stop, Text, Update, Wait,
};
use acpipe_model::host::HostServices;
use acpipe_model::setting::Setting;
use acpipe_policy::Mode;
use acpipe_protocol::wire::{Rung, Strategy};
use serde_json::json;
use std::time::Duration;

const S: fn(u64) -> Duration = Duration::from_secs;

/// One in this many pairs of events is played, because playing all takes a minute.
const SHARE: usize = 16;

/// A stage of a session: its name, the initial fixture, and the events that lead to it.
type StageOf = (&'static str, fn() -> Fixture, Vec<On>);

fn read_file(key: &'static str) -> On {
    let params = json!({ "sessionId": "a1", "path": "/w/a" });
    Request(key, "fs/read_text_file", params)
}

fn form(key: &'static str) -> On {
    let schema = json!({ "type": "object", "properties": {} });
    let params = json!({
        "sessionId": "a1", "mode": "form", "message": "Which?", "requestedSchema": schema,
    });
    Request(key, "elicitation/create", params)
}

fn mode(id: &str) -> On {
    Set(Setting::Mode(id.to_owned()))
}

/// Returns the result of a call that opens the session as `a1` in mode `plan`.
fn opened() -> On {
    let modes = json!({
        "currentModeId": "plan",
        "availableModes": [{ "id": "plan", "name": "Plan" }, { "id": "code", "name": "Code" }],
    });
    Answer(json!({ "sessionId": "a1", "modes": modes }))
}

/// Creates a session that no agent ever had. Permission requests go to the client, which serves files.
fn fresh() -> Fixture {
    let mut t = Fixture::new(all());
    prepare(&mut t);
    t
}

fn prepare(t: &mut Fixture) {
    t.shared.settings.policy = Mode::Ask.into();
    t.capabilities().fs.read_text_file = true;
}

/// Creates a stored session in which the mode `code` was set.
fn stored() -> Fixture {
    let mut t = fresh();
    for event in [
        Ensure(Strategy::Auto),
        opened(),
        mode("code"),
        Answer(json!({})),
    ] {
        t.on(&event);
    }
    t.turn();
    t.on(&On::AgentLost);
    t.on(&On::Connect);
    t
}

fn live() -> Fixture {
    let mut t = fresh();
    t.on(&Ensure(Strategy::Auto));
    t.on(&opened());
    t
}

/// Creates a live session whose files acpipe reads itself.
fn serving() -> Fixture {
    let mut t = live();
    t.capabilities().fs.read_text_file = false;
    t.shared.served = HostServices {
        read_files: true,
        ..HostServices::default()
    };
    t.shared.settings.policy = Mode::Approve.into();
    t
}

/// Creates a live session that was resumed.
fn resumed() -> Fixture {
    let mut t = stored();
    for event in [Ensure(Strategy::Auto), Answer(json!({})), Answer(json!({}))] {
        t.on(&event);
    }
    t
}

fn stages() -> Vec<StageOf> {
    let auto = || Ensure(Strategy::Auto);
    let refused = || Refuse(-32603, "no");
    let overloaded = || Refuse(-32603, "status 529: overloaded");
    vec![
        ("resting, never open", fresh, vec![]),
        ("resting, stored", stored, vec![]),
        ("opening as new", fresh, vec![auto()]),
        (
            "opening with a queue",
            fresh,
            vec![Prompt("a"), mode("code")],
        ),
        ("resuming", stored, vec![auto()]),
        ("loading", stored, vec![auto(), refused(), Text("ho")]),
        (
            "loaded",
            stored,
            vec![auto(), refused(), Text("ho"), Answer(json!({}))],
        ),
        ("listing", stored, vec![auto(), refused(), refused()]),
        (
            "held by a close",
            live,
            vec![On::Commit, On::Release, auto()],
        ),
        ("restoring settings", stored, vec![auto(), opened()]),
        ("live", live, vec![]),
        ("setting", live, vec![mode("code")]),
        ("running", live, vec![Prompt("a")]),
        (
            "running with a queue",
            live,
            vec![Prompt("a"), Text("ho"), Prompt("b")],
        ),
        (
            "asking",
            live,
            vec![Prompt("a"), Permission("s1"), form("s2")],
        ),
        (
            "forwarding",
            live,
            vec![Prompt("a"), read_file("s1"), Client(allow()), On::Host],
        ),
        (
            "serving",
            serving,
            vec![Prompt("a"), read_file("s1"), On::Host],
        ),
        (
            "cancelled",
            live,
            vec![Prompt("a"), Permission("s1"), Cancel],
        ),
        (
            "answered",
            live,
            vec![Prompt("a"), Text("ho"), Stop("end_turn")],
        ),
        ("pausing", live, vec![PromptRetry("a"), overloaded(), Read]),
        (
            "doubting",
            resumed,
            vec![Prompt("a"), Stop("refusal"), Read],
        ),
        (
            "stale",
            resumed,
            vec![Prompt("a"), Refuse(-32603, "session not found"), Read],
        ),
        (
            "abandoned",
            live,
            vec![Prompt("a"), Cancel, Wait(S(5)), Prompt("b")],
        ),
        (
            "abandoned for long",
            live,
            vec![Prompt("a"), Cancel, Wait(S(5)), Wait(S(5))],
        ),
        ("unprompted", live, vec![Text("by the way")]),
        ("unprompted, asking", live, vec![Permission("s1")]),
        (
            "unprompted beside a prompt",
            live,
            vec![Permission("s1"), Prompt("a")],
        ),
        (
            "waiting for the agent's own",
            live,
            vec![Prompt("a"), On::BackgroundBegins, Text("ho")],
        ),
        (
            "on a full disk",
            live,
            vec![Prompt("a"), On::DiskFull, Text("ho")],
        ),
        ("without an agent", live, vec![On::AgentReplaced]),
    ]
}

fn allow() -> serde_json::Value {
    json!({ "outcome": { "outcome": "selected", "optionId": "allow" } })
}

fn events() -> Vec<On> {
    let tool = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run" });
    vec![
        Ensure(Strategy::Auto),
        Ensure(Strategy::Only(Rung::New)),
        Prompt("x"),
        PromptRetry("x"),
        On::NextPrompt,
        Cancel,
        mode("code"),
        mode("fly"),
        Answer(json!({})),
        Answer(json!({ "sessionId": "a2" })),
        Answer(json!({ "sessions": [] })),
        Refuse(-32603, "no"),
        Refuse(-32603, "session not found"),
        Stop("end_turn"),
        Stop("refusal"),
        Text("text"),
        Update(tool),
        Update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" })),
        Permission("e1"),
        form("e2"),
        read_file("e3"),
        On::Withdraw("s1"),
        On::Withdraw("e3"),
        Client(allow()),
        Client(json!({ "action": "cancel" })),
        On::ClientError,
        Read,
        Wait(LOAD_QUIET),
        Wait(S(10)),
        Wait(S(900)),
        On::Host,
        On::FileRead(1),
        On::Sweep,
        On::Lost,
        On::AgentLost,
        On::AgentReplaced,
        On::AgentStopping,
        On::Connect,
        On::DiskFull,
        On::DiskFree,
        On::Commit,
        On::Panic,
        On::Release,
        On::BackgroundBegins,
        On::PromptBegins,
        On::BackgroundEnds,
        On::Renamed,
    ]
}

/// Brings a session to a stage.
fn at(stage: &StageOf) -> Fixture {
    let (_, begin, path) = stage;
    let mut t = begin();
    for event in path {
        t.on(event);
    }
    t
}

/// Ends everything and checks that every command and request was answered.
fn end(mut t: Fixture, how: &dyn std::fmt::Debug) {
    t.on(&On::DiskFree);
    t.on(&On::Lost);
    t.on(&On::Sweep);
    t.on(&On::Host);
    let open = t.open_keys.iter().find(|(_, open)| **open != 0);
    assert!(
        open.is_none(),
        "{how:?}: {open:?} requests of the agent are open"
    );
    t.on(&On::AgentLost);
    t.act(|s, cx| s.prompting.fail_queue(&gone(), &mut s.talk, cx.clients));
    t.on(&Read);
    let missing = (1..=t.tokens()).find(|token| !t.answered.contains(token));
    assert_eq!(missing, None, "{how:?}: a command has no answer");
    assert!(
        t.client.open_requests.is_empty(),
        "{how:?}: {:?}",
        t.client.open_requests
    );
    assert!(t.shared.client_requests.is_empty(), "{how:?}");
    assert!(!t.session.output.is_broken(), "{how:?}");
}

#[test]
fn every_event_in_every_stage_leaves_nothing_unanswered() {
    for stage in stages() {
        for event in events() {
            let mut t = at(&stage);
            t.on(&event);
            end(t, &(stage.0, &event));
        }
    }
}

#[test]
fn pairs_of_events_in_every_stage_leave_nothing_unanswered() {
    let events = events();
    for (place, stage) in stages().iter().enumerate() {
        for (n, first) in events.iter().enumerate() {
            for (m, second) in events.iter().enumerate() {
                if (place + 31 * n + 17 * m) % SHARE != 0 {
                    continue;
                }
                let mut t = at(stage);
                t.on(first);
                t.on(second);
                end(t, &(stage.0, first, second));
            }
        }
    }
}
