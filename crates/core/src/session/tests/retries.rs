//! Tests of prompts that are sent again within their turn.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::retry::RETRY_PAUSE;
use On::{
    AgentLost, Answer, Cancel, Ensure, Prompt, PromptRetry, Read, Refuse, Stop, Text, Update, Wait,
};
use acpipe_protocol::wire::Strategy;
use serde_json::json;
use std::time::Duration;

const OVERLOADED: On = Refuse(-32603, "status 529: overloaded");

/// Creates a resumed session, which the agent may turn out not to have.
fn resumed() -> Fixture {
    let mut t = Fixture::stored(all());
    t.on(&Ensure(Strategy::Auto));
    t.on(&Answer(json!({})));
    t
}

#[test]
fn prompt_is_resent_after_a_pause_on_a_transient_error() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            PromptRetry("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (OVERLOADED, &["hub EndTurnWhenRead"]),
        (Read, &["chunks data-notice"]),
        (Wait(RETRY_PAUSE / 2), &[]),
        (Wait(RETRY_PAUSE / 2), &["agent session/prompt hi"]),
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

#[test]
fn transient_error_that_stays_ends_the_turn() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            PromptRetry("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (OVERLOADED, &["hub EndTurnWhenRead"]),
        (Read, &["chunks data-notice"]),
        (Wait(RETRY_PAUSE), &["agent session/prompt hi"]),
        (OVERLOADED, &["hub EndTurnWhenRead"]),
        (
            Read,
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error session",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn transient_error_ends_a_turn_that_is_not_to_be_retried() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            Prompt("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (OVERLOADED, &["hub EndTurnWhenRead"]),
        (
            Read,
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error session",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn limit_that_names_its_reset_is_reported_in_the_words_of_the_agent() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            PromptRetry("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (
            Refuse(-32603, "rate_limit: weekly limit reached, resets 4am"),
            &["hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks finish-step message-metadata error",
                "reply 2 turn error session",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn only_errors_of_the_service_are_retried() {
    for (failure, kind) in [
        (Refuse(-32000, "overloaded"), "authRequired"),
        (Answer(json!({ "note": "overloaded" })), "malformed"),
        (AgentLost, "agentExited"),
    ] {
        let mut t = Fixture::live(all());
        t.on(&PromptRetry("hi"));
        let output = [t.on(&failure), t.on(&Read)].concat();
        let end = format!("reply 2 turn error {kind}");
        assert!(output.contains(&end), "{failure:?}: {output:?}");
    }
    let mut t = Fixture::live(all());
    t.on(&PromptRetry("hi"));
    t.on(&Refuse(-32603, "overloaded: connect ECONNREFUSED"));
    t.play(&[(Read, &["chunks data-notice"])]);
}

#[test]
fn second_attempt_without_output_is_an_error() {
    let mut t = Fixture::live(all());
    t.on(&PromptRetry("hi"));
    // The error that the agent prints is no output.
    t.on(&Text("Overloaded"));
    t.on(&Refuse(-32603, "Overloaded"));
    t.on(&Read);
    t.play(&[(Wait(RETRY_PAUSE), &["agent session/prompt hi"])]);
    t.on(&Stop("end_turn"));
    let end = t.on(&Read);
    assert!(
        end.contains(&"reply 2 turn error emptyTurn".to_owned()),
        "{end:?}"
    );
}

#[test]
fn turn_with_output_is_not_retried() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            PromptRetry("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (OVERLOADED, &["hub EndTurnWhenRead"]),
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

/// A file is output, as text is: the prompt is not sent again after it.
#[test]
fn turn_with_a_file_is_not_retried() {
    let mut t = Fixture::live(all());
    t.on(&PromptRetry("hi"));
    t.on(&Update(json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "image", "mimeType": "image/png", "data": "aGk="}})));
    let output = [t.on(&OVERLOADED), t.on(&Read)].concat();
    let end = "reply 2 turn error session".to_owned();
    assert!(output.contains(&end), "{output:?}");
}

#[test]
fn cancel_during_the_pause_ends_the_turn_without_the_agent() {
    let mut t = Fixture::live(all());
    t.play(&[
        (
            PromptRetry("hi"),
            &["agent session/prompt hi", "chunks start start-step"],
        ),
        (OVERLOADED, &["hub EndTurnWhenRead"]),
        (Read, &["chunks data-notice"]),
        (
            Cancel,
            &[
                "chunks finish-step message-metadata abort",
                "reply 2 turn cancelled",
                "hub Free",
            ],
        ),
        (Wait(RETRY_PAUSE), &[]),
    ]);
}

#[test]
fn stale_session_is_replaced_and_gets_the_prompt() {
    let mut t = resumed();
    t.play(&[
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
        (
            Refuse(-32603, "session not found"),
            &["hub EndTurnWhenRead"],
        ),
        (Read, &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "agent session/prompt hi",
                "chunks message-metadata data-recovery",
                "hub Restored New Lost",
            ],
        ),
    ]);
    assert_eq!(t.session.agent_session(), Some("a2"));
}

#[test]
fn prompt_is_sent_three_times_at_most() {
    let mut t = resumed();
    t.on(&PromptRetry("hi"));
    t.on(&Refuse(-32603, "session not found"));
    t.on(&Read);
    let sent = "agent session/prompt hi".to_owned();
    let second = t.on(&Answer(json!({ "sessionId": "a2" })));
    assert!(second.contains(&sent), "{second:?}");
    t.on(&OVERLOADED);
    t.on(&Read);
    assert_eq!(t.on(&Wait(RETRY_PAUSE)), [sent]);
    t.on(&OVERLOADED);
    let end = t.on(&Read);
    assert!(
        end.contains(&"reply 4 turn error session".to_owned()),
        "{end:?}"
    );
}

#[test]
fn turn_fails_if_a_stale_session_cannot_be_replaced() {
    let mut t = resumed();
    t.play(&[
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
        (
            Refuse(-32603, "session not found"),
            &["hub EndTurnWhenRead"],
        ),
        (Read, &["agent session/new"]),
        (
            Refuse(-32603, "no"),
            &[
                "chunks finish-step message-metadata error",
                "reply 4 turn error session",
                "hub Free",
                "hub Restored session",
            ],
        ),
    ]);
}

#[test]
fn session_with_output_is_not_stale() {
    let mut t = resumed();
    t.play(&[
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
        (Text("ho"), &["chunks text-start text-delta:ho"]),
        (
            Refuse(-32603, "session not found"),
            &["hub EndTurnWhenRead"],
        ),
        (
            Read,
            &[
                "chunks text-end finish-step message-metadata error",
                "reply 4 turn error sessionNotFound",
                "hub Free",
            ],
        ),
    ]);
}

#[test]
fn refusal_of_a_session_that_the_list_lacks_leads_to_a_new_session() {
    let mut t = resumed();
    let page = |ids: &[&str], next: Option<&str>| {
        let sessions = ids.iter().map(|id| json!({ "sessionId": id, "cwd": "/w" }));
        let sessions: Vec<_> = sessions.collect();
        Answer(json!({ "sessions": sessions, "nextCursor": next }))
    };
    t.play(&[
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
        (
            Stop("refusal"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (Read, &["agent session/list"]),
        (page(&["b"], Some("2")), &["agent session/list"]),
        (page(&["c"], None), &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "agent session/prompt hi",
                "chunks message-metadata data-recovery",
                "hub Restored New Lost",
            ],
        ),
    ]);
}

#[test]
fn refusal_of_a_listed_session_ends_the_turn() {
    let listed = json!({ "sessions": [{ "sessionId": "a1", "cwd": "/w" }] });
    for (row, answer) in [Answer(listed), Refuse(-32601, "no list")]
        .iter()
        .enumerate()
    {
        let mut t = resumed();
        t.on(&Prompt("hi"));
        t.on(&Stop("refusal"));
        t.on(&Read);
        let output = t.on(answer);
        assert!(
            output.contains(&"reply 4 turn refusal".to_owned()),
            "{row}: {output:?}"
        );
    }
}

#[test]
fn list_timeout_ends_the_turn_with_the_refusal() {
    let mut t = resumed();
    t.play(&[
        (
            Prompt("hi"),
            &[
                "agent session/prompt hi",
                "chunks start start-step data-recovery",
            ],
        ),
        (
            Stop("refusal"),
            &["hub TurnCompleted", "hub EndTurnWhenRead"],
        ),
        (Read, &["agent session/list"]),
        (
            Wait(Duration::from_secs(10)),
            &[
                "chunks finish-step finish",
                "reply 4 turn refusal",
                "hub Free",
            ],
        ),
    ]);
}
