//! Tests of messages that the user sends instead of an answer to what the running turn asks.

use super::event::On;
use super::questions::{form, in_turn};
use On::{Client, NextPrompt, Permission, Prompt, Read, Redirect, Stop};
use serde_json::json;

const ASKED: &[&str] = &[
    "ask permission/request",
    "chunks tool-input-available data-permission tool-approval-request",
    "notice runs: edit",
];

#[test]
fn message_refuses_the_open_requests_and_becomes_the_next_turn() {
    let mut t = in_turn();
    t.play(&[
        (Permission("q1"), ASKED),
        (form("q2"), &["ask question/ask", "chunks data-question"]),
        (
            Redirect("never mind"),
            &[
                "agent q1 = selected no",
                "agent q2 = {action:decline}",
                "withdraw by message",
                "withdraw by message",
                "chunks tool-approval-response tool-output-denied data-permission data-question",
                "notice no activity",
            ],
        ),
        // The answer crossed the message.
        (Client(json!({ "action": "accept" })), &[]),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks finish-step finish",
                "reply 2 turn end_turn",
                "hub Free",
            ],
        ),
        (
            NextPrompt,
            &["agent session/prompt never mind", "chunks start start-step"],
        ),
        // The new turn asks as usual.
        (Permission("q3"), ASKED),
    ]);
}

#[test]
fn decision_says_that_a_message_took_the_place_of_the_answer() {
    let mut t = in_turn();
    t.on(&Permission("q1"));
    t.pass(&Redirect("never mind"));
    let chunks = t.client.take_chunks();
    let mut decided = chunks.iter();
    let decided = decided.rfind(|given| given.chunk["type"] == "data-permission");
    let data = &decided.unwrap().chunk["data"];
    assert_eq!(data["by"], "message");
    assert_eq!(data["approved"], false);
    assert_eq!(
        data["reason"],
        "refused because the user sent a new message: No"
    );
}

#[test]
fn turn_that_goes_on_asks_no_more_until_the_message_is_cancelled() {
    let mut t = in_turn();
    t.on(&Permission("q1"));
    t.on(&Redirect("never mind"));
    let refused = "chunks tool-input-available data-permission tool-approval-request \
                   tool-approval-response tool-output-denied data-permission";
    t.play(&[
        (
            Permission("q2"),
            &[
                "agent q2 = selected no",
                refused,
                "notice runs: edit",
                "notice no activity",
            ],
        ),
        (
            form("q3"),
            &[
                "agent q3 = {action:decline}",
                "chunks data-question data-question",
            ],
        ),
    ]);
    let message = format!("t{}", t.tokens());
    assert!(t.act(|s, cx| s.cancel(Some(&message), cx)));
    t.output();
    t.play(&[(Permission("q4"), ASKED)]);
}

#[test]
fn message_that_came_before_the_request_does_not_refuse_it() {
    let mut t = in_turn();
    t.on(&Redirect("and then this"));
    let mut asked = ASKED.to_vec();
    asked.push("notice waits: answer");
    t.play(&[(Permission("q1"), &asked)]);
}

#[test]
fn queued_prompt_leaves_requests_open_and_says_so_at_once() {
    let mut t = in_turn();
    t.play(&[
        (Permission("q1"), ASKED),
        (Prompt("next"), &["notice waits: answer"]),
    ]);
}
