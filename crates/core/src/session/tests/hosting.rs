//! Tests of file and terminal requests: each is judged, served or forwarded, and answered once.

use super::event::On;
use super::fixture::{Fixture, all};
use On::{
    AgentLost, Cancel, Client, ClientError, Close, FileRead, Host, Lost, Permission, Prompt, Read,
    Request, Stop, Text, Wait, Withdraw,
};
use acpipe_model::host::HostServices;
use acpipe_policy::{Mode, Policy};
use serde_json::json;
use std::time::Duration;

fn read(key: &'static str) -> On {
    let params = json!({ "sessionId": "a1", "path": "/w/a" });
    Request(key, "fs/read_text_file", params)
}

fn terminal(key: &'static str, method: &'static str) -> On {
    let params = json!({ "sessionId": "a1", "terminalId": "x" });
    Request(key, method, params)
}

fn select(option: &str) -> On {
    Client(json!({ "outcome": { "outcome": "selected", "optionId": option } }))
}

/// Starts a turn in which acpipe serves files and terminals.
fn serving(mut t: Fixture) -> Fixture {
    t.shared.served = HostServices {
        read_files: true,
        write_files: true,
        terminals: true,
    };
    t.on(&Prompt("hi"));
    t
}

/// Creates a session in a turn whose client serves files and terminals.
fn forwarding() -> Fixture {
    let mut t = Fixture::live(all());
    t.capabilities().fs.read_text_file = true;
    t.capabilities().terminal = true;
    t.on(&Prompt("hi"));
    t
}

#[test]
fn unserved_host_request_is_refused() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("hi"));
    t.play(&[(read("h1"), &["agent h1 = error -32601"])]);
    for method in [
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
        "novel/method",
    ] {
        let params = json!({ "sessionId": "a1", "path": "/w/a", "content": "x", "command": "ls", "terminalId": "x" });
        let output = t.on(&Request("h2", method, params));
        assert_eq!(output, ["agent h2 = error -32601"], "{method}");
    }
}

#[test]
fn allowed_file_is_read_by_acpipe() {
    let mut t = serving(Fixture::live(all()));
    t.play(&[
        (read("h1"), &["hub SettleHost"]),
        (Host, &["host reads /w/a"]),
        (FileRead(1), &["agent h1 = {content:text}"]),
        (FileRead(1), &[]),
    ]);
}

#[test]
fn file_is_read_once_the_client_allowed_it() {
    let mut t = serving(Fixture::asking());
    t.play(&[
        (
            read("h1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: fs/readTextFile",
            ],
        ),
        (Host, &[]),
        (
            select("allow"),
            &["chunks tool-approval-response data-permission"],
        ),
        (Host, &["hub SettleHost", "host reads /w/a"]),
        (
            FileRead(1),
            &[
                "agent h1 = {content:text}",
                "chunks tool-output-available",
                "notice no activity",
            ],
        ),
    ]);
}

#[test]
fn file_is_not_read_where_the_client_rejected_it() {
    let mut t = serving(Fixture::asking());
    t.play(&[
        (
            read("h1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: fs/readTextFile",
            ],
        ),
        (
            select("reject"),
            &[
                "chunks tool-approval-response tool-output-denied data-permission",
                "notice no activity",
            ],
        ),
        (Host, &["agent h1 = error -32603", "chunks data-tool-call"]),
        (Host, &[]),
    ]);
}

#[test]
fn file_is_not_read_after_a_cancel() {
    let mut t = serving(Fixture::live(all()));
    t.on(&Cancel);
    t.play(&[(read("h1"), &["agent h1 = error -32800"])]);
}

#[test]
fn approved_edit_covers_its_file() {
    let mut t = serving(Fixture::asking());
    let params = json!({
        "sessionId": "a1",
        "toolCall": {
            "toolCallId": "c1", "title": "Edit", "kind": "edit", "locations": [{ "path": "/w/a" }],
        },
        "options": [{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }],
    });
    let write = |key| {
        let params = json!({ "sessionId": "a1", "path": "/w/a", "content": "x" });
        Request(key, "fs/write_text_file", params)
    };
    t.on(&Request("q1", "session/request_permission", params));
    t.on(&select("yes"));
    t.play(&[
        (write("h1"), &["hub SettleHost"]),
        (Host, &["host writes /w/a"]),
        (
            write("h2"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: fs/writeTextFile",
            ],
        ),
    ]);
}

#[test]
fn withdrawn_file_request_stops_the_read() {
    let mut t = serving(Fixture::live(all()));
    t.on(&read("h1"));
    t.on(&Host);
    t.play(&[
        (
            Withdraw("h1"),
            &["agent h1 = error -32800", "host StopFile(Ticket(1))"],
        ),
        (FileRead(1), &[]),
    ]);
}

#[test]
fn client_serves_what_it_declared() {
    let mut t = forwarding();
    t.play(&[
        (read("h1"), &["ask fs/readTextFile"]),
        (
            Client(json!({ "content": "text" })),
            &["agent h1 = {content:text}"],
        ),
        (Client(json!({ "content": "again" })), &[]),
        (read("h2"), &["ask fs/readTextFile"]),
        (
            Client(json!({ "content": 7 })),
            &["agent h2 = error -32603"],
        ),
        (read("h3"), &["ask fs/readTextFile"]),
        (ClientError, &["agent h3 = error -32603"]),
    ]);
    assert!(t.shared.client_requests.is_empty());
}

#[test]
fn client_that_does_not_serve_in_time_is_given_up() {
    let mut t = forwarding();
    t.play(&[
        (read("h1"), &["ask fs/readTextFile"]),
        (
            Wait(Duration::from_secs(120)),
            &["agent h1 = error -32603", "withdraw by timeout"],
        ),
        (Client(json!({ "content": "late" })), &[]),
    ]);
}

#[test]
fn request_that_was_forwarded_can_be_withdrawn() {
    let mut t = forwarding();
    t.play(&[
        (read("h1"), &["ask fs/readTextFile"]),
        (
            Withdraw("h1"),
            &["agent h1 = error -32800", "withdraw by agent"],
        ),
        (Withdraw("h1"), &[]),
    ]);
}

#[test]
fn wait_for_a_commands_exit_has_no_deadline_before_the_command_ended() {
    let mut t = forwarding();
    t.play(&[
        (
            terminal("h1", "terminal/wait_for_exit"),
            &["ask terminal/waitForExit"],
        ),
        (Wait(Duration::from_secs(3600)), &["notice waits: prompt"]),
        (
            terminal("h2", "terminal/kill"),
            &["ask terminal/kill", "notice no activity"],
        ),
        (Client(json!({})), &["agent h2 = {}"]),
        (
            Wait(Duration::from_secs(120)),
            &["agent h1 = error -32603", "withdraw by timeout"],
        ),
    ]);
}

#[test]
fn requests_end_with_their_session() {
    for end in [Lost, AgentLost] {
        let mut t = forwarding();
        t.on(&read("h1"));
        let output = t.on(&end);
        assert!(output.contains(&"withdraw by end".to_owned()), "{output:?}");
        assert!(t.shared.client_requests.is_empty());
        assert!(t.hosting.sessions().is_empty());
    }
}

#[test]
fn request_outlasts_its_turn_but_not_the_close() {
    let mut t = forwarding();
    t.play(&[
        (read("h1"), &["ask fs/readTextFile"]),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks text-end finish-step finish",
                "reply 2 turn end_turn",
                "hub Free",
            ],
        ),
        (
            Close,
            &[
                "agent h1 = error -32800",
                "agent session/close a1",
                "withdraw by end",
            ],
        ),
    ]);
}

#[test]
fn request_of_an_earlier_connection_is_not_answered_to_a_later_one() {
    let mut t = forwarding();
    t.on(&read("h1"));
    t.connect(all());
    t.play(&[(Client(json!({ "content": "text" })), &[])]);
    let mut t = forwarding();
    t.on(&read("h1"));
    t.connect(all());
    t.act(|s, cx| s.end_host_calls(true, cx));
    t.play(&[(Read, &["withdraw by end"])]);
}

#[test]
fn denied_request_reaches_neither_client_nor_host() {
    let mut t = forwarding();
    t.shared.settings.policy = Policy::from(Mode::Deny);
    t.play(&[
        (read("h1"), &["chunks tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"]),
        (Host, &["agent h1 = error -32603", "chunks data-tool-call"]),
        (Permission("q1"), &["agent q1 = selected no", "chunks tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"]),
    ]);
}
