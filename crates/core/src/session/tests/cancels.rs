//! Tests of cancelled turns, turns that do not end, and turn limits.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::client::Token;
use crate::cx::SessionRequest;
use On::{
    AgentStopping, Answer, Cancel, NextPrompt, Prompt, Read, Refuse, Stop, Text, Update, Wait,
};
use acpipe_model::limits::Timeout as Limit;
use acpipe_protocol::wire::AgentCapabilities;
use serde_json::{Value, json};
use std::time::Duration;

const S: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn cancel_is_sent_once_and_ends_as_cancelled() {
    let mut t = Fixture::live(all());
    t.play(&[
        (Cancel, &[]),
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Cancel, &["agent session/cancel a1"]),
        (Cancel, &[]),
        (
            Stop("cancelled"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (Cancel, &[]),
        (
            Read,
            &[
                "chunks finish-step message-metadata abort",
                "reply 2 turn cancelled",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn error_in_answer_to_a_cancel_is_not_a_failure() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Cancel, &["agent session/cancel a1"]),
        (Refuse(-32603, "aborted"), &["hub EndTurnWhenRead"]),
        (
            Read,
            &[
                "chunks finish-step message-metadata abort",
                "reply 2 turn cancelled",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn cancelled_turn_keeps_another_stop_reason_and_ends_its_tool_calls() {
    for (end, stop, last) in [
        (Stop("cancelled"), "cancelled", "abort"),
        // Not a reason of the protocol: the turn is the cancelled one that the client asked for.
        (Stop("error"), "cancelled", "abort"),
        (Stop("end_turn"), "end_turn", "finish"),
        (Stop("max_tokens"), "max_tokens", "finish"),
        (Stop("odd"), "odd", "finish"),
        // After a requested cancel, an error or an invalid result is not a failure.
        (Answer(Value::Null), "cancelled", "abort"),
        (Refuse(-32603, "AbortError"), "cancelled", "abort"),
    ] {
        let mut t = Fixture::live(all());
        t.on(&Prompt("hi"));
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": 1});
        t.on(&Update(call));
        t.on(&Cancel);
        t.on(&end);
        t.pass(&Read);
        let chunks = t.client.take_chunks().into_iter();
        let chunks: Vec<Value> = chunks.map(|given| given.chunk).collect();
        let call = chunks.iter().find(|c| c["type"] == "tool-output-error");
        let text = &call.unwrap()["errorText"];
        assert_eq!(text, "Cancelled before it finished", "{end:?}");
        assert_eq!(chunks.last().unwrap()["type"], last, "{end:?}");
        let summary = t.client.take_answer(Token::first(2)).unwrap().unwrap();
        assert_eq!(summary["stopReason"], stop, "{end:?}");
        assert_eq!(summary["isError"], false, "{end:?}");
        assert_eq!(summary["toolResults"][0]["isError"], true, "{end:?}");
        assert_eq!(summary["metadata"]["cancelRequested"], true, "{end:?}");
    }
}

#[test]
fn cancel_without_a_turn_cancels_the_first_queued_prompt() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (Prompt("one"), &["agent session/resume a1"]),
        (Prompt("two"), &[]),
        (Cancel, &["reply 3 error cancelled"]),
        (Cancel, &["reply 4 error cancelled"]),
        (Cancel, &["hub Restored cancelled"]),
        (Cancel, &[]),
    ]);
}

#[test]
fn cancel_by_turn_id_leaves_other_turns_alone() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("one"));
    t.on(&Prompt("two"));
    assert!(!t.act(|s, cx| s.cancel(Some("t9"), cx)));
    assert!(t.act(|s, cx| s.cancel(Some("t3"), cx)));
    t.play(&[(Read, &["reply 3 error cancelled"])]);
    assert!(t.act(|s, cx| s.cancel(Some("t2"), cx)));
    t.play(&[(Read, &["agent session/cancel a1"])]);
}

#[test]
fn cancel_that_is_not_answered_abandons_the_turn_and_then_restarts_the_agent() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Cancel, &["agent session/cancel a1"]),
        (
            Wait(S(5)),
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error timeout",
                "hub Free",
            ],
        ),
        (Prompt("two"), &[]),
        (NextPrompt, &[]),
        (Wait(S(5)), &["hub RestartAgent"]),
        (Wait(S(60)), &[]),
    ]);
}

#[test]
fn late_answer_to_an_abandoned_turn_frees_the_session() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Cancel, &["agent session/cancel a1"]),
        (
            Wait(S(5)),
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error timeout",
                "hub Free",
            ],
        ),
        (Prompt("two"), &[]),
        (
            Text("late"),
            &["chunks start start-step text-start text-delta:late"],
        ),
        (
            Stop("cancelled"),
            &["chunks text-end finish-step finish", "hub Free"],
        ),
        (
            NextPrompt,
            &["agent session/prompt two", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn abandoned_session_is_closed_and_restored_while_other_turns_run() {
    let mut t = Fixture::live(all());
    t.others_run = true;
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Cancel, &["agent session/cancel a1"]),
        (
            Wait(S(5)),
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error timeout",
                "hub Free",
            ],
        ),
        (Prompt("two"), &[]),
        (Wait(S(5)), &["agent session/close a1", "hub Free"]),
        (Answer(json!({})), &["agent session/resume a1"]),
    ]);
}

#[test]
fn abandoned_session_waits_for_other_turns_where_it_cannot_be_closed() {
    let mut t = Fixture::live(AgentCapabilities {
        close: false,
        ..all()
    });
    t.others_run = true;
    t.on(&Prompt("one"));
    t.on(&Cancel);
    t.on(&Wait(S(5)));
    t.play(&[(Wait(S(5)), &[])]);
    assert!(t.session.prompting.is_abandoned_overdue(&t.session.talk));
    t.act(|s, cx| {
        s.recover_abandoned(false, cx);
        assert!(matches!(cx.requests[..], [SessionRequest::RestartAgent]));
    });
}

#[test]
fn stopping_agent_fails_the_queue_and_cancels_the_turn() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Prompt("two"), &[]),
        (
            AgentStopping,
            &["agent session/cancel a1", "reply 3 error cancelled"],
        ),
        (AgentStopping, &[]),
    ]);
}

#[test]
fn silent_agent_is_reported_then_cancelled() {
    let mut t = Fixture::live(all());
    t.limit(Limit::Prompt, Some(S(25)));
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Wait(S(10)), &["notice waits: prompt"]),
        (
            Text("ho"),
            &["chunks text-start text-delta:ho", "notice no activity"],
        ),
        (
            Wait(S(25)),
            &["agent session/cancel a1", "notice waits: cancel"],
        ),
        (
            Stop("cancelled"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks text-end finish-step message-metadata error",
                "reply 2 turn error timeout",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn turn_over_its_total_limit_is_cancelled_despite_output() {
    let mut t = Fixture::live(all());
    t.limit(Limit::Turn, Some(S(4)));
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Wait(S(3)), &[]),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (Wait(S(1)), &["agent session/cancel a1"]),
        (
            Wait(S(5)),
            &[
                "chunks text-end finish-step message-metadata error",
                "reply 2 turn error timeout",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn postponed_time_does_not_count_for_the_cancel() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("hi"));
    t.on(&Cancel);
    t.session.postpone(S(60));
    t.play(&[
        (Wait(S(64)), &[]),
        (
            Wait(S(1)),
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error timeout",
                "hub Free",
            ],
        ),
    ]);
}
