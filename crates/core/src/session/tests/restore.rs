//! Tests of restore: the order of the strategies, and the effects of an agent's responses.

use super::super::restore::LOAD_QUIET;
use super::event::On;
use super::fixture::{Fixture, all};
use crate::log::LARGE;
use crate::session::{Given, SessionAgents};
use On::{Answer, Cancel, DiskFull, Ensure, Prompt, Refuse, Text, Wait};
use acpipe_protocol::wire::{AgentCapabilities, Rung, Strategy};
use serde_json::{Value, json};
use std::time::Duration;

const AUTO: On = Ensure(Strategy::Auto);

fn listed(ids: &[&str], next: Option<&str>) -> On {
    let sessions = ids.iter().map(|id| json!({ "sessionId": id, "cwd": "/w" }));
    let sessions: Vec<Value> = sessions.collect();
    Answer(json!({ "sessions": sessions, "nextCursor": next }))
}

/// Creates a session that adopts the agent's session `a1`.
fn adopting(capabilities: AgentCapabilities) -> Fixture {
    let mut t = Fixture::new(capabilities);
    let identity = t.act(|_, cx| cx.agent.identity());
    let given = Given {
        at: "",
        created: false,
        program: "",
    };
    t.session.known = SessionAgents::from_client(identity, "a1".to_owned(), given);
    t
}

fn adopt() -> On {
    Ensure(Strategy::Order(vec![Rung::Load, Rung::Resume]))
}

#[test]
fn session_without_history_is_opened_as_a_new_one() {
    let mut t = Fixture::new(all());
    t.play(&[
        (AUTO, &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a1" })),
            &[
                "reply 1 session new none",
                "hub Restored New None",
                "hub NextPrompt",
            ],
        ),
    ]);
    assert_eq!(t.session.agent_session(), Some("a1"));
}

#[test]
fn stored_session_is_resumed_first() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (
            Answer(json!({})),
            &[
                "reply 3 session resume kept",
                "hub Restored Resume Kept",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn refused_resume_leads_to_a_load_that_waits_until_the_agent_is_quiet() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (Refuse(-32603, "not here"), &["agent session/load a1"]),
        (Text("ho"), &[]),
        (Answer(json!({})), &[]),
        (Wait(LOAD_QUIET / 2), &[]),
        (Text("!"), &[]),
        (Wait(LOAD_QUIET / 2), &[]),
        (
            Wait(LOAD_QUIET / 2),
            &[
                "reply 3 session load replayed",
                "hub Restored Load Replayed",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn load_that_repeats_nothing_of_the_history_counts_as_failed() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (
            Ensure(Strategy::Order(vec![Rung::Load, Rung::New])),
            &["agent session/load a1"],
        ),
        (Answer(json!({})), &[]),
        (Wait(LOAD_QUIET), &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "reply 3 session new lost",
                "hub Restored New Lost",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn new_session_takes_the_place_of_one_that_the_agents_list_lacks() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (Refuse(-32603, "not here"), &["agent session/load a1"]),
        (Refuse(-32603, "not here"), &["agent session/list"]),
        (listed(&["b"], Some("page 2")), &["agent session/list"]),
        (listed(&["c"], None), &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "reply 3 session new lost",
                "hub Restored New Lost",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn session_that_the_agent_refuses_but_lists_is_not_replaced() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (Refuse(-32603, "not here"), &["agent session/load a1"]),
        (Refuse(-32603, "not here"), &["agent session/list"]),
        (
            listed(&["b", "a1"], None),
            &["reply 3 error session", "hub Restored session"],
        ),
    ]);
}

#[test]
fn list_that_fails_does_not_prevent_a_new_session() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (Refuse(-32603, "not here"), &["agent session/load a1"]),
        (Refuse(-32603, "not here"), &["agent session/list"]),
        (Refuse(-32601, "no list"), &["agent session/new"]),
    ]);
}

#[test]
fn agent_without_a_list_gets_a_new_session_at_once() {
    let mut t = Fixture::stored(AgentCapabilities {
        list: false,
        ..all()
    });
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (Refuse(-32603, "not here"), &["agent session/load a1"]),
        (Refuse(-32603, "not here"), &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "reply 3 session new lost",
                "hub Restored New Lost",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn opening_that_times_out_fails_without_another_attempt() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (Wait(Duration::from_secs(2)), &["notice waits: open"]),
        (
            Wait(Duration::from_secs(118)),
            &["reply 3 error timeout", "hub Restored timeout"],
        ),
        (Answer(json!({})), &[]),
    ]);
}

#[test]
fn endless_load_times_out() {
    let mut t = Fixture::stored(all());
    t.on(&Ensure(Strategy::Only(Rung::Load)));
    for _ in 0..9 {
        t.on(&Text("again"));
        let output = t.on(&Wait(Duration::from_secs(60)));
        assert!(!output.iter().any(|line| line.starts_with("reply")));
    }
    t.on(&Text("again"));
    t.play(&[(
        Wait(Duration::from_secs(60)),
        &["reply 3 error timeout", "hub Restored timeout"],
    )]);
}

#[test]
fn restore_fails_if_no_requested_strategy_works() {
    let mut t = Fixture::stored(AgentCapabilities {
        load: false,
        ..all()
    });
    t.play(&[
        (
            Ensure(Strategy::Only(Rung::Load)),
            &[
                "reply 3 error sessionNotFound",
                "hub Restored sessionNotFound",
            ],
        ),
        (
            Ensure(Strategy::Order(vec![Rung::Load, Rung::Resume])),
            &["agent session/resume a1"],
        ),
        (
            Refuse(-32603, "not here"),
            &["reply 4 error session", "hub Restored session"],
        ),
    ]);
}

#[test]
fn refused_new_session_fails_and_an_empty_session_is_removed() {
    let mut t = Fixture::new(all());
    t.play(&[
        (AUTO, &["agent session/new"]),
        (
            Refuse(-32603, "no"),
            &[
                "reply 1 error session",
                "hub Remove",
                "hub Restored session",
            ],
        ),
    ]);
    let mut t = Fixture::stored(all());
    t.play(&[
        (Ensure(Strategy::Only(Rung::New)), &["agent session/new"]),
        (
            Refuse(-32603, "no"),
            &["reply 3 error session", "hub Restored session"],
        ),
    ]);
}

#[test]
fn resume_that_gives_another_session_counts_as_failed() {
    let mut t = Fixture::stored(all());
    t.play(&[
        (AUTO, &["agent session/resume a1"]),
        (
            Answer(json!({ "sessionId": "a2" })),
            &[
                "reply 3 session new lost",
                "hub Restored New Lost",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn agent_session_id_in_use_is_a_malformed_response() {
    let mut t = Fixture::new(all());
    let directory = &mut t.connection.as_mut().unwrap().directory;
    directory.add("a1".to_owned(), "other".to_owned());
    t.play(&[
        (AUTO, &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a1" })),
            &[
                "reply 1 error malformed",
                "hub Remove",
                "hub Restored malformed",
            ],
        ),
    ]);
}

#[test]
fn adopted_session_that_repeats_nothing_is_looked_up() {
    let mut t = adopting(all());
    t.play(&[
        (adopt(), &["agent session/load a1"]),
        (Answer(json!({})), &[]),
        (Wait(LOAD_QUIET), &["agent session/list"]),
        (
            listed(&["a1"], None),
            &[
                "reply 1 session load replayed",
                "hub Restored Load Replayed",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn adopted_session_that_the_agents_list_lacks_is_not_opened() {
    let mut t = adopting(all());
    t.play(&[
        (adopt(), &["agent session/load a1"]),
        (Answer(json!({})), &[]),
        (Wait(LOAD_QUIET), &["agent session/list"]),
        (
            listed(&["b"], None),
            &[
                "agent session/close a1",
                "reply 1 error sessionNotFound",
                "hub Remove",
                "hub Restored sessionNotFound",
            ],
        ),
    ]);
}

#[test]
fn adopted_session_of_an_agent_without_a_list_comes_with_a_warning() {
    let mut t = adopting(AgentCapabilities {
        list: false,
        ..all()
    });
    t.on(&adopt());
    t.on(&Answer(json!({})));
    let output = t.on(&Wait(LOAD_QUIET));
    assert_eq!(output[0], "reply 1 session load replayed");
    let receipt = t.session.receipt.as_ref().expect("a receipt");
    assert!(receipt.warning.is_some(), "{receipt:?}");
}

#[test]
fn adopted_session_stores_the_replayed_messages() {
    let mut t = adopting(all());
    t.play(&[
        (adopt(), &["agent session/load a1"]),
        (Text("earlier"), &[]),
        (Answer(json!({})), &[]),
        (
            Wait(LOAD_QUIET),
            &[
                "reply 1 session load replayed",
                "hub Restored Load Replayed",
                "hub NextPrompt",
            ],
        ),
    ]);
    assert_eq!(t.session.output.log().count(), 1);
}

#[test]
fn history_that_cannot_be_stored_leaves_no_session() {
    for text in ["earlier", "x".repeat(LARGE + 1).leak()] {
        let mut t = adopting(all());
        t.on(&adopt());
        t.on(&Text(text));
        t.on(&Answer(json!({})));
        t.on(&DiskFull);
        let output = t.on(&Wait(LOAD_QUIET));
        for expected in ["reply 1 error storage", "hub Remove"] {
            let has = output.iter().any(|line| line == expected);
            assert!(has, "{} bytes: {output:?}", text.len());
        }
        assert!(t.session.output.log().is_empty(), "{} bytes", text.len());
    }
}

#[test]
fn session_that_is_being_closed_is_opened_after_its_close() {
    let mut t = Fixture::live(all());
    t.turn();
    t.play(&[
        (On::Release, &["agent session/close a1"]),
        (AUTO, &[]),
        (
            Wait(Duration::from_secs(2)),
            &["notice waits: closeSession"],
        ),
        (Answer(json!({})), &["agent session/resume a1"]),
        (
            Answer(json!({})),
            &[
                "reply 3 session resume kept",
                "hub Restored Resume Kept",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn close_that_is_not_answered_delays_the_opening_for_a_while_only() {
    let mut t = Fixture::live(all());
    t.turn();
    t.play(&[
        (On::Release, &["agent session/close a1"]),
        (AUTO, &[]),
        (Wait(Duration::from_secs(10)), &["agent session/resume a1"]),
    ]);
}

#[test]
fn session_that_the_agent_could_not_close_is_taken_as_it_is() {
    let mut t = Fixture::live(AgentCapabilities {
        close: false,
        resume: false,
        ..all()
    });
    t.turn();
    t.play(&[
        (On::Release, &[]),
        (AUTO, &["agent session/load a1"]),
        (
            Refuse(-32603, "it is open"),
            &[
                "reply 3 session live kept",
                "hub Restored Live Kept",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn strategy_new_replaces_an_opening_that_waits() {
    let mut t = Fixture::stored(all());
    t.on(&AUTO);
    let replaced = |strategy: Strategy| {
        move |s: &mut super::SessionMachine, cx: &mut super::TestCx<'_>| {
            s.replace_opening(&strategy, cx)
        }
    };
    assert_eq!(t.act(replaced(Strategy::Auto)), None);
    assert_eq!(
        t.act(replaced(Strategy::Only(Rung::New))).as_deref(),
        Some("/w")
    );
    t.play(&[
        (
            Answer(json!({})),
            &["reply 3 error cancelled", "hub Restored cancelled"],
        ),
        (Ensure(Strategy::Only(Rung::New)), &["agent session/new"]),
    ]);
}

#[test]
fn cancel_ends_an_opening_and_a_late_answer_opens_nothing() {
    let mut t = Fixture::new(all());
    t.play(&[
        (AUTO, &["agent session/new"]),
        (Prompt("hi"), &[]),
        (Cancel, &["reply 2 error cancelled"]),
        (
            Cancel,
            &[
                "reply 1 error cancelled",
                "hub Remove",
                "hub Restored cancelled",
            ],
        ),
        (Answer(json!({ "sessionId": "a1" })), &[]),
    ]);
}

#[test]
fn opening_waits_for_an_agent_that_is_not_ready() {
    let mut t = Fixture::new(all());
    let connection = t.connection.take();
    t.play(&[(AUTO, &[])]);
    t.connection = connection;
    t.play(&[
        (On::Ready, &["agent session/new"]),
        (
            Answer(json!({ "sessionId": "a1" })),
            &[
                "reply 1 session new none",
                "hub Restored New None",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn load_that_replays_another_conversation_is_reported() {
    for (user, warns) in [("hi", false), ("hi there", false), ("bye", true)] {
        let mut t = Fixture::stored(AgentCapabilities {
            load: true,
            ..AgentCapabilities::default()
        });
        t.on(&AUTO);
        let said = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        t.on(&On::Update(said("user_message_chunk", user)));
        t.on(&On::Update(said("agent_message_chunk", "farewell")));
        t.on(&Answer(json!({})));
        t.on(&Wait(LOAD_QUIET));
        let receipt = t.session.receipt.as_ref().expect("a receipt");
        assert_eq!(receipt.warning.is_some(), warns, "{user}: {receipt:?}");
        assert_eq!((receipt.adopted, receipt.messages), (0, 2));
    }
}
