//! Tests of background turns: what the agent reports and does while no prompt runs.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::session::BACKGROUND_QUIET_LIMIT;
use On::{AgentLost, Cancel, Permission, Prompt, Read, Stop, Text, Update, Wait};
use serde_json::{Value, json};

fn tool(id: &str, status: &str) -> On {
    let mut update = json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "Run" });
    update["status"] = Value::from(status);
    if status == "completed" {
        update["sessionUpdate"] = "tool_call_update".into();
    }
    Update(update)
}

#[test]
fn text_without_a_prompt_makes_a_turn_that_ends_when_the_agent_is_quiet() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Text("by the way"),
            &["chunks start start-step text-start text-delta:by the way"],
        ),
        (Wait(BACKGROUND_QUIET_LIMIT / 2), &[]),
        (Text("!"), &["chunks text-delta:!"]),
        (Wait(BACKGROUND_QUIET_LIMIT / 2), &[]),
        (
            Wait(BACKGROUND_QUIET_LIMIT / 2),
            &["chunks text-end finish-step finish"],
        ),
        (Wait(BACKGROUND_QUIET_LIMIT), &[]),
    ]);
}

#[test]
fn prompt_ends_a_background_turn() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Text("by the way"),
            &["chunks start start-step text-start text-delta:by the way"],
        ),
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks text-end finish-step finish start start-step",
            ],
        ),
    ]);
}

#[test]
fn background_turn_lasts_while_a_tool_runs() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            tool("c1", "in_progress"),
            &[
                "chunks start start-step tool-input-available",
                "notice runs: other",
            ],
        ),
        (Wait(BACKGROUND_QUIET_LIMIT), &[]),
        (Wait(BACKGROUND_QUIET_LIMIT), &[]),
        (
            tool("c1", "completed"),
            &["chunks tool-output-available", "notice no activity"],
        ),
        (Wait(BACKGROUND_QUIET_LIMIT), &["chunks finish-step finish"]),
    ]);
}

#[test]
fn agent_exit_fails_the_background_turn() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Text("by the way"),
            &["chunks start start-step text-start text-delta:by the way"],
        ),
        (
            AgentLost,
            &["chunks text-end finish-step message-metadata error"],
        ),
    ]);
}

#[test]
fn cancel_of_a_background_turn_is_sent_once() {
    let mut t = Fixture::live(all());
    t.play(&[
        (Text("by the way"), &["chunks start start-step text-start text-delta:by the way"]),
        (Cancel, &["agent session/cancel a1"]),
        (Cancel, &[]),
        (Permission("q1"), &["agent q1 = cancelled", "chunks text-end tool-input-available data-permission tool-approval-request tool-approval-response tool-output-denied data-permission"]),
    ]);
}

#[test]
fn late_update_of_an_earlier_tool_call_makes_a_turn_beside_the_prompts() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("one"),
            &["agent session/prompt one", "chunks start start-step"],
        ),
        (
            tool("c1", "in_progress"),
            &["chunks tool-input-available", "notice runs: other"],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Stop("end_turn"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks text-end tool-output-available finish-step finish",
                "reply 2 turn end_turn",
                "notice no activity",
                "hub Free",
            ],
        ),
        (
            Prompt("two"),
            &["agent session/prompt two", "chunks start start-step"],
        ),
        (
            tool("c1", "completed"),
            &["chunks start start-step tool-input-available tool-output-available"],
        ),
    ]);
    assert!(t.session.turns.is_prompted() && t.session.turns.background().is_some());
}

#[test]
fn usage_outside_of_turns_begins_no_turn() {
    let mut t = Fixture::live(all());
    let usage = json!({ "sessionUpdate": "usage_update", "used": 5, "size": 10 });
    t.play(&[(Update(usage), &[])]);
    assert!(t.session.turns.background().is_none());
    assert_eq!(t.session.settings.state()["context"]["used"], 5);
}

#[test]
fn background_turn_started_first_stays_separate_from_the_prompt() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("hi"));
    t.play(&[
        (On::BackgroundBegins, &[]),
        (
            Text("task"),
            &["chunks start start-step text-start text-delta:task"],
        ),
        (On::PromptBegins, &["chunks text-end finish-step finish"]),
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
    ]);
}
