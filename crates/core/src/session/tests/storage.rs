//! Tests of logs that cannot be written, and of panics: the turn ends, and clients see nothing that is lost.

use super::event::On;
use super::fixture::{Fixture, all};
use On::{
    Answer, Cancel, Commit, DiskFree, DiskFull, Ensure, NextPrompt, Panic, Prompt, Read, Stop,
    Text, Wait,
};
use acpipe_protocol::wire::{AgentCapabilities, Strategy};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn prompt_that_cannot_be_stored_is_not_sent() {
    let mut t = Fixture::live(all());
    t.play(&[
        (DiskFull, &[]),
        (Prompt("one"), &["retract after 0", "reply 2 error storage"]),
        (DiskFree, &[]),
        (
            Prompt("two"),
            &["agent session/prompt two", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn output_that_cannot_be_stored_is_retracted_and_ends_the_turn() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("one"));
    t.play(&[
        (Commit, &[]),
        (DiskFull, &[]),
        (Text("lost"), &["chunks text-start text-delta:lost"]),
        (
            Commit,
            &[
                "agent session/cancel a1",
                "retract after 2",
                "chunks error",
                "reply 2 turn error storage",
                "hub Free",
            ],
        ),
        (Prompt("two"), &[]),
        (DiskFree, &[]),
        (Stop("cancelled"), &["hub Free"]),
        (
            NextPrompt,
            &["agent session/prompt two", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn prompt_of_an_interrupted_turn_is_awaited_for_a_limited_time() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("one"));
    t.on(&DiskFull);
    t.on(&Text("lost"));
    t.play(&[
        (
            Commit,
            &[
                "agent session/cancel a1",
                "retract after 0",
                "chunks error",
                "reply 2 turn error storage",
                "hub Free",
            ],
        ),
        (DiskFree, &[]),
        (Wait(Duration::from_secs(9)), &[]),
        (Wait(Duration::from_secs(1)), &["hub RestartAgent"]),
    ]);
}

#[test]
fn end_of_a_turn_that_cannot_be_stored_is_an_error() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (DiskFull, &[]),
        (
            Read,
            &[
                "retract after 0",
                "chunks error",
                "reply 2 turn error storage",
                "hub Free",
            ],
        ),
        (DiskFree, &[]),
        (
            Prompt("two"),
            &["agent session/prompt two", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn session_whose_identity_cannot_be_stored_is_not_opened() {
    let mut t = Fixture::new(all());
    t.play(&[
        (DiskFull, &[]),
        (Ensure(Strategy::Auto), &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a1" })),
            &[
                "agent session/close a1",
                "retract after 0",
                "reply 1 error storage",
                "hub Remove",
                "hub Restored storage",
            ],
        ),
    ]);
}

#[test]
fn background_turn_that_cannot_be_stored_ends() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Text("by the way"),
            &["chunks start start-step text-start text-delta:by the way"],
        ),
        (Commit, &[]),
        (DiskFull, &[]),
        (Text("more"), &["chunks text-delta:more"]),
        (Commit, &["retract after 4", "chunks error"]),
    ]);
    assert!(t.session.turns.background().is_none());
}

#[test]
fn panic_ends_the_turn_and_the_late_answer_frees_the_session() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Panic,
            &[
                "agent session/cancel a1",
                "retract after 4",
                "retract after 8",
                "chunks text-end finish-step message-metadata error",
                "reply 2 turn error internal",
                "hub Free",
            ],
        ),
        (Prompt("two"), &[]),
        (Stop("cancelled"), &["hub Free"]),
        (
            NextPrompt,
            &["agent session/prompt two", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn panic_marks_the_session_and_the_repair_ends_its_turn() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("one"));
    t.on(&Commit);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        t.act(|s, cx| {
            s.talk
                .turns
                .with_turn(&mut s.talk.output, cx.clients, |_, _| panic!("on purpose"));
        });
    }));
    assert!(panicked.is_err());
    assert!(t.session.output.is_broken());
    t.on(&Panic);
    assert!(!t.session.output.is_broken());
    assert!(!t.session.turns.is_prompted());
    assert!(t.session.output.log().open_turns().is_empty());
    assert_eq!(t.session.output.log().corrupt(), 0);
}

#[test]
fn panic_without_a_turn_ends_the_background_turn() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Text("by the way"),
            &["chunks start start-step text-start text-delta:by the way"],
        ),
        (
            Panic,
            &[
                "retract after 4",
                "retract after 8",
                "chunks text-end finish-step message-metadata error",
            ],
        ),
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn cancel_after_a_panic_does_nothing_more() {
    let mut t = Fixture::live(AgentCapabilities::default());
    t.on(&Prompt("one"));
    t.on(&Panic);
    t.play(&[(Cancel, &[])]);
}
