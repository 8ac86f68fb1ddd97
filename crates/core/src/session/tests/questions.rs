//! Tests of permission requests and elicitations: the agent gets one answer to each.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::client_requests::MOST_OPEN_REQUESTS;
use crate::session::BACKGROUND_QUIET_LIMIT;
use On::{
    AgentLost, AgentStopping, Cancel, Client, ClientError, DiskFull, Lost, Permission, Prompt,
    Read, Request, Stop, Text, Wait, Withdraw,
};
use acpipe_model::limits::Timeout as Limit;
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};
use std::time::Duration;

fn select(option: &str) -> On {
    Client(json!({ "outcome": { "outcome": "selected", "optionId": option } }))
}

pub(super) fn form(key: &'static str) -> On {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({
        "sessionId": "a1", "mode": "form", "message": "Which?", "requestedSchema": schema,
    });
    Request(key, "elicitation/create", params)
}

/// Creates a live session in a turn, whose permission requests go to the client.
pub(super) fn in_turn() -> Fixture {
    let mut t = Fixture::asking();
    t.on(&Prompt("hi"));
    t
}

#[test]
fn policy_that_allows_answers_at_once() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("hi"));
    t.play(&[(Permission("q1"), &["agent q1 = selected yes", "chunks tool-input-available data-permission tool-approval-request tool-approval-response data-permission", "notice runs: edit"])]);
}

#[test]
fn policy_that_denies_answers_at_once() {
    let mut t = Fixture::live(all());
    t.shared.settings.policy = Policy::from(Mode::Deny);
    t.on(&Prompt("hi"));
    t.play(&[(Permission("q1"), &["agent q1 = selected no", "chunks tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"])]);
}

#[test]
fn client_that_cannot_be_asked_refuses() {
    let mut t = in_turn();
    t.capabilities().permissions = false;
    t.play(&[(Permission("q1"), &["agent q1 = selected no", "chunks tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"])]);
}

#[test]
fn client_answers_once() {
    let mut t = in_turn();
    t.play(&[
        (
            Permission("q1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (
            select("yes"),
            &[
                "agent q1 = selected yes",
                "chunks tool-approval-response data-permission",
            ],
        ),
        (select("no"), &[]),
        (Withdraw("q1"), &[]),
        (Wait(Duration::from_secs(300)), &["notice waits: prompt"]),
    ]);
    assert!(t.shared.client_requests.is_empty());
}

#[test]
fn answer_that_is_not_valid_refuses() {
    let invalid: [Value; 3] = [
        json!({ "outcome": { "outcome": "selected", "optionId": "maybe" } }),
        json!({ "outcome": "yes" }),
        json!(null),
    ];
    for answer in invalid {
        let mut t = in_turn();
        t.on(&Permission("q1"));
        let output = t.on(&Client(answer.clone()));
        assert_eq!(output[0], "agent q1 = selected no", "{answer}");
    }
}

/// An agent that speaks ACP runs a call with its own input only.
#[test]
fn answer_with_another_input_refuses() {
    let mut t = in_turn();
    t.on(&Permission("q1"));
    let outcome =
        json!({ "outcome": "selected", "optionId": "yes", "updatedInput": { "path": "/w/b" } });
    t.pass(&Client(json!({ "outcome": outcome })));
    let chunks = t.client.take_chunks();
    let decided = chunks
        .iter()
        .rfind(|given| given.chunk["type"] == "data-permission");
    let decided = &decided.unwrap().chunk["data"];
    assert_eq!(decided["approved"], false);
    let reason = decided["reason"].as_str().unwrap();
    assert!(reason.contains("updatedInput is not possible"), "{reason}");
    assert_eq!(t.output()[0], "agent q1 = selected no");
}

#[test]
fn client_that_answers_with_an_error_leaves_it_to_the_policy() {
    let mut t = in_turn();
    t.play(&[
        (
            Permission("q1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (
            ClientError,
            &[
                "agent q1 = selected no",
                "chunks tool-approval-response tool-output-denied data-permission",
                "notice no activity",
            ],
        ),
    ]);
    t.shared.settings.policy.set_unanswered_allows(true);
    t.play(&[
        (
            Permission("q2"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (
            ClientError,
            &[
                "agent q2 = selected yes",
                "chunks tool-approval-response data-permission",
            ],
        ),
    ]);
}

#[test]
fn question_without_an_answer_times_out_once() {
    let mut t = in_turn();
    t.play(&[
        (
            Permission("q1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (Wait(Duration::from_secs(299)), &["notice waits: answer"]),
        (
            Wait(Duration::from_secs(1)),
            &[
                "agent q1 = selected no",
                "withdraw by timeout",
                "chunks tool-approval-response tool-output-denied data-permission",
                "notice no activity",
                "notice no activity",
            ],
        ),
        (select("yes"), &[]),
    ]);
}

#[test]
fn withdrawn_question_is_cancelled_once() {
    let mut t = in_turn();
    t.play(&[
        (
            Permission("q1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (
            Withdraw("q1"),
            &[
                "agent q1 = cancelled",
                "withdraw by agent",
                "chunks tool-approval-response tool-output-denied data-permission",
                "notice no activity",
            ],
        ),
        (Withdraw("q1"), &[]),
        (select("yes"), &[]),
    ]);
}

#[test]
fn cancelled_turn_cancels_its_questions_and_later_ones() {
    let mut t = in_turn();
    t.play(&[
        (Permission("q1"), &["ask permission/request", "chunks tool-input-available data-permission tool-approval-request", "notice runs: edit"]),
        (Cancel, &["agent session/cancel a1", "agent q1 = cancelled", "withdraw by cancel", "chunks tool-approval-response tool-output-denied data-permission", "notice no activity"]),
        (Permission("q2"), &["agent q2 = cancelled", "chunks tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"]),
        (form("q3"), &["agent q3 = {action:cancel}"]),
    ]);
}

#[test]
fn turn_that_ends_gives_up_its_questions() {
    let mut t = in_turn();
    t.play(&[
        (Permission("q1"), &["ask permission/request", "chunks tool-input-available data-permission tool-approval-request", "notice runs: edit"]),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (Stop("end_turn"), &["hub TurnCompleted", "hub EndTurnWhenRead"]),
        (Read, &["agent q1 = cancelled", "withdraw by end", "chunks text-end tool-approval-response tool-output-denied data-permission finish-step finish", "reply 2 turn end_turn", "notice no activity", "hub Free"]),
        (select("yes"), &[]),
    ]);
}

#[test]
fn lost_session_gives_up_its_questions() {
    let mut t = in_turn();
    t.play(&[(Permission("q1"), &["ask permission/request", "chunks tool-input-available data-permission tool-approval-request", "notice runs: edit"]), (Lost, &["agent q1 = cancelled", "withdraw by end", "chunks tool-approval-response tool-output-denied data-permission finish-step message-metadata error", "reply 2 turn error agentExited", "notice no activity", "hub Free", "hub Free"])]);
    let mut t = in_turn();
    t.play(&[
        (
            Permission("q1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (
            AgentStopping,
            &[
                "agent session/cancel a1",
                "agent q1 = cancelled",
                "withdraw by cancel",
                "chunks tool-approval-response tool-output-denied data-permission",
                "notice no activity",
            ],
        ),
    ]);
}

#[test]
fn question_of_an_earlier_connection_is_not_answered_to_a_later_one() {
    let mut t = in_turn();
    t.on(&Permission("q1"));
    t.connect(all());
    t.play(&[
        (Withdraw("q1"), &[]),
        (
            select("yes"),
            &["chunks tool-approval-response data-permission"],
        ),
    ]);
    assert!(t.session.output.requests().is_empty());
}

#[test]
fn agent_that_exits_gets_no_answer() {
    let mut t = in_turn();
    t.play(&[
        (Permission("q1"), &["ask permission/request", "chunks tool-input-available data-permission tool-approval-request", "notice runs: edit"]),
        (AgentLost, &["withdraw by end", "chunks tool-approval-response tool-output-denied data-permission finish-step message-metadata error", "reply 2 turn error agentExited", "notice no activity", "hub Free"]),
        (select("yes"), &[]),
    ]);
    assert!(t.shared.client_requests.is_empty());
}

#[test]
fn approval_that_cannot_be_logged_is_not_given() {
    let mut t = in_turn();
    t.play(&[
        (
            Permission("q1"),
            &[
                "ask permission/request",
                "chunks tool-input-available data-permission tool-approval-request",
                "notice runs: edit",
            ],
        ),
        (DiskFull, &[]),
        (
            select("yes"),
            &[
                "agent session/cancel a1",
                "agent q1 = cancelled",
                "retract after 0",
                "chunks error",
                "reply 2 turn error storage",
                "notice no activity",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn questions_over_the_limit_are_refused() {
    let mut t = in_turn();
    for _ in 0..MOST_OPEN_REQUESTS {
        let output = t.on(&Permission("q"));
        assert!(output.contains(&"ask permission/request".to_owned()));
    }
    t.play(&[(Permission("last"), &["agent last = selected no", "chunks tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"]), (form("form"), &["agent form = {action:decline}"])]);
    assert_eq!(t.client.open_requests.len(), MOST_OPEN_REQUESTS);
}

#[test]
fn form_is_accepted_declined_and_timed_out() {
    let mut t = in_turn();
    t.play(&[
        (form("q1"), &["ask question/ask", "chunks data-question"]),
        (
            Client(json!({ "action": "accept", "content": { "name": "x" } })),
            &[
                "agent q1 = {action:accept,content:{name:x}}",
                "chunks data-question",
            ],
        ),
        (form("q2"), &["ask question/ask", "chunks data-question"]),
        (
            Client(json!({ "action": "decline" })),
            &["agent q2 = {action:decline}", "chunks data-question"],
        ),
        (form("q3"), &["ask question/ask", "chunks data-question"]),
        (
            Wait(Duration::from_secs(300)),
            &[
                "agent q3 = {action:decline}",
                "withdraw by timeout",
                "chunks data-question",
            ],
        ),
    ]);
}

#[test]
fn question_outside_of_turns_starts_a_background_turn() {
    let mut t = Fixture::asking();
    t.play(&[
        (Permission("q1"), &["ask permission/request", "chunks start start-step tool-input-available data-permission tool-approval-request", "notice runs: edit"]),
        (Wait(BACKGROUND_QUIET_LIMIT), &[]),
        (select("yes"), &["agent q1 = selected yes", "chunks tool-approval-response data-permission"]),
    ]);
}

#[test]
fn prompt_does_not_end_a_background_turn_that_waits_for_the_client() {
    let mut t = Fixture::asking();
    t.play(&[
        (Permission("q1"), &["ask permission/request", "chunks start start-step tool-input-available data-permission tool-approval-request", "notice runs: edit"]),
        (Prompt("hi"), &["agent session/prompt hi", "chunks start start-step"]),
        (select("yes"), &["agent q1 = selected yes", "chunks tool-approval-response data-permission"]),
    ]);
}

#[test]
fn time_of_the_client_does_not_count_as_agent_idle_time() {
    let mut t = Fixture::asking();
    t.limit(Limit::Prompt, Some(Duration::from_secs(30)));
    t.on(&Prompt("hi"));
    t.on(&Permission("q1"));
    t.play(&[
        (Wait(Duration::from_secs(31)), &["notice waits: answer"]),
        (
            select("yes"),
            &[
                "agent q1 = selected yes",
                "chunks tool-approval-response data-permission",
                "notice runs: edit",
            ],
        ),
        (Wait(Duration::from_secs(29)), &["notice waits: prompt"]),
        (Wait(Duration::from_secs(1)), &["agent session/cancel a1"]),
    ]);
}
