//! Tests of how prompts start and wait, and how turns end.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::agent::Renewal;
use crate::session::MAX_PROMPTS;
use On::{AgentLost, Answer, Ensure, Lost, NextPrompt, Prompt, Read, Refuse, Stop, Text, Wait};
use acpipe_model::error::ErrorKind;
use acpipe_protocol::wire::{PromptParams, PromptWhenBusy, Rung, Strategy};
use serde_json::json;
use std::time::Duration;

#[test]
fn turn_ends_when_the_output_that_came_with_the_answer_is_read() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (Text("!"), &["chunks text-delta:!"]),
        (
            Read,
            &[
                "chunks text-end finish-step finish",
                "reply 2 turn end_turn",
                "hub Free",
            ],
        ),
        (Read, &[]),
    ]);
}

#[test]
fn turn_of_an_agent_with_late_output_stays_open_for_it() {
    let mut t = Fixture::live(all());
    t.quirks().late_output_ms = Some(500);
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Stop("end_turn"), &["hub TurnCompleted"]),
        (Text("late"), &["chunks text-start text-delta:late"]),
        (Wait(Duration::from_millis(500)), &["hub EndTurnWhenRead"]),
        (
            Read,
            &[
                "chunks text-end finish-step finish",
                "reply 2 turn end_turn",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn second_prompt_waits_while_a_turn_runs() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Prompt("two"), &[]),
        (NextPrompt, &[]),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (NextPrompt, &[]),
        (
            Read,
            &[
                "chunks text-end finish-step finish",
                "reply 2 turn end_turn",
                "hub Free",
            ],
        ),
        (
            NextPrompt,
            &["agent session/prompt two", "chunks start start-step"],
        ),
    ]);
}

#[test]
fn prompt_waits_until_the_session_is_live() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (Prompt("hi"), &["agent session/resume a1"]),
        (NextPrompt, &[]),
        (
            Answer(json!({})),
            &["hub Restored Resume Kept", "hub NextPrompt"],
        ),
        (
            NextPrompt,
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
    ]);
}

#[test]
fn prompt_fails_with_the_opening_of_its_session() {
    let mut t = Fixture::new(all());
    t.play(&[
        (Prompt("one"), &["agent session/new"]),
        (Prompt("two"), &[]),
        (
            Refuse(-32603, "no"),
            &[
                "reply 1 error session",
                "reply 2 error session",
                "hub Remove",
                "hub Restored session",
            ],
        ),
    ]);
}

#[test]
fn too_many_prompts_are_refused() {
    let mut t = Fixture::live(all());
    let when = |t: &Fixture, when_busy| {
        let prompt = serde_json::from_str(r#"{"message":"x"}"#).unwrap();
        let prompt = PromptParams {
            when_busy,
            ..prompt
        };
        t.session
            .prompting
            .takes_prompt(&prompt, &t.session.talk)
            .map_err(|error| error.kind)
    };
    assert_eq!(when(&t, PromptWhenBusy::Reject), Ok(()));
    t.on(&Prompt("one"));
    assert_eq!(when(&t, PromptWhenBusy::Reject), Err(ErrorKind::Busy));
    for _ in 0..MAX_PROMPTS {
        assert_eq!(when(&t, PromptWhenBusy::Queue), Ok(()));
        t.on(&Prompt("more"));
    }
    assert_eq!(when(&t, PromptWhenBusy::Queue), Err(ErrorKind::Overloaded));
}

#[test]
fn turn_id_is_not_run_twice() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("one"));
    t.on(&Prompt("two"));
    let had = |id: &str| {
        t.session
            .prompting
            .must_not_have(id, &t.session.talk)
            .map_err(|error| error.kind)
    };
    assert_eq!(had("t2"), Err(ErrorKind::Busy), "runs");
    assert_eq!(had("t3"), Err(ErrorKind::Busy), "is queued");
    assert_eq!(had("t4"), Ok(()));
}

#[test]
fn error_of_the_agent_ends_the_turn() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (Refuse(-32603, "no"), &["hub EndTurnWhenRead"]),
        (
            Read,
            &[
                "chunks text-end finish-step message-metadata error",
                "reply 2 turn error session",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn turn_without_any_output_is_an_error() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error emptyTurn",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn agent_that_exits_ends_the_turn_and_keeps_the_queue() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Prompt("two"), &[]),
        (
            AgentLost,
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error agentExited",
                "hub Free",
            ],
        ),
    ]);
    assert!(t.session.prompting.waits_for_agent(&t.session.talk));
}

#[test]
fn answer_that_came_before_the_exit_counts() {
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
        (
            AgentLost,
            &[
                "chunks text-end finish-step finish",
                "reply 2 turn end_turn",
                "hub Free",
            ],
        ),
        (Read, &[]),
    ]);
}

#[test]
fn lost_session_is_restored_for_its_queue() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (Prompt("two"), &[]),
        (
            Lost,
            &[
                "agent session/resume a1",
                "chunks finish-step message-metadata error",
                "reply 2 turn error agentExited",
                "hub Free",
                "hub Free",
            ],
        ),
        (
            Answer(json!({})),
            &["hub Restored Resume Kept", "hub NextPrompt"],
        ),
        (
            NextPrompt,
            &[
                "agent session/prompt two",
                "chunks start start-step data-recovery",
            ],
        ),
    ]);
}

#[test]
fn lost_session_is_not_restored_for_prompts_that_wait_for_another_environment() {
    let mut t = Fixture::live(all());
    t.renewal = Some(Renewal::default());
    t.play(&[
        (Prompt("one"), &[]),
        (NextPrompt, &[]),
        (Lost, &["hub Free"]),
    ]);
    t.renewal = None;
    t.play(&[(On::Ready, &["agent session/load a1"])]);
}

#[test]
fn strategy_new_on_a_live_session_starts_without_memory() {
    let mut t = Fixture::live(all());
    t.turn();
    t.play(&[
        (
            Ensure(Strategy::Only(Rung::New)),
            &["agent session/close a1", "agent session/new"],
        ),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "reply 3 session new lost",
                "hub Restored New Lost",
                "hub NextPrompt",
            ],
        ),
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
    ]);
}
