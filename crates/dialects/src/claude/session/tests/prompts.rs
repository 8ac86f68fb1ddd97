//! Tests of prompts that are queued, are cancelled, or meet a background turn or the end of the process.

use super::*;
use acpipe_model::dialect::AgentCall;

#[test]
fn process_exit_fails_pending_calls() {
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &none());
    t.prompts("a");
    let (goes_on, said) = t.ends(child, 1);
    assert!(goes_on, "other sessions have their own");
    assert!(said[0].starts_with("2 failed: agentExited: "), "{said:?}");
    assert_eq!(said[1], "a lost");
    assert_eq!(t.reads(child, "{}"), Vec::<String>::new());
}

#[test]
fn queued_prompt_is_withdrawn_once() {
    let mut t = Test::new();
    let child = t.open(Opening::Resume("a"), &none());
    let uuid = t.prompts("a");
    t.claude.call(AgentCall::Cancel("a"), &mut t.out).unwrap();
    assert_eq!(t.sent()[0]["request"]["subtype"], "interrupt");
    let mut queued = success("2");
    queued["response"]["response"] = json!({"still_queued": [uuid]});
    t.says(child, &queued);
    assert_eq!(t.sent()[0]["request"]["message_uuid"], uuid.as_str());
    // Whatever the second response contains, the withdrawal is not requested again.
    queued["response"]["request_id"] = json!("3");
    t.says(child, &queued);
    assert_eq!(t.sent(), Vec::<Value>::new());
    let cancelled =
        json!({"type": "command_lifecycle", "command_uuid": uuid, "state": "cancelled"});
    assert_eq!(t.says(child, &cancelled), ["2 ended: cancelled"]);
}

/// Opens a session with a running background turn.
fn background_turn(t: &mut Test) -> Child {
    let child = t.open(Opening::New, &none());
    let id = t.claude.sessions.keys().next().unwrap().clone();
    assert_eq!(t.says(child, &init(&id))[0], "BackgroundTurnBegan");
    child
}

#[test]
fn queued_prompt_starts_without_an_id_from_claude() {
    let mut t = Test::new();
    let child = background_turn(&mut t);
    let id = t.claude.sessions.keys().next().unwrap().clone();
    let uuid = t.prompts(&id);
    // Belongs to the running turn.
    assert_eq!(t.says(child, &init(&id)), ["Update"]);
    let other = json!({"origin": {"kind": "task-notification"}, "user_message_uuids": []});
    assert_eq!(t.says(child, &result("", &other)), ["unprompted ended"]);
    assert_eq!(t.says(child, &init(&id))[0], "QueuedPromptBegan");
    assert_eq!(t.says(child, &init(&id)), ["Update"], "once");
    let said = t.says(child, &result(&uuid, &json!({})));
    assert_eq!(said, ["2 ended: end_turn"]);
}

#[test]
fn prompt_that_crosses_a_background_turn_waits() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    let id = t.claude.sessions.keys().next().unwrap().clone();
    let state = |uuid: &str, state: &str| json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state});
    let uuid = t.prompts(&id);
    t.says(child, &state(&uuid, "started"));
    assert_eq!(t.says(child, &init(&id)), ["Update"]);
    t.says(child, &result(&uuid, &json!({})));
    let uuid = t.prompts(&id);
    assert_eq!(t.says(child, &init(&id))[0], "BackgroundTurnBegan");
    t.says(child, &state(&uuid, "queued"));
    let other = json!({"origin": {"kind": "task-notification"}, "user_message_uuids": []});
    assert_eq!(t.says(child, &result("", &other)), ["unprompted ended"]);
    assert_eq!(
        t.says(child, &state(&uuid, "started")),
        ["QueuedPromptBegan"]
    );
    assert_eq!(t.says(child, &init(&id)), ["Update"]);
}

#[test]
fn unsent_prompt_has_no_result() {
    let mut test = Test::new();
    let child = test.open(Opening::New, &SessionOptions::default());
    let session = test.claude.sessions.keys().next().unwrap().clone();
    test.prompts(&session);
    let withdraw = AgentCall::WithdrawPrompt {
        call: CallId(test.calls),
        session: &session,
    };
    test.claude.call(withdraw, &mut test.out).unwrap();
    let (goes_on, said) = test.ends(child, 1);
    assert_eq!((goes_on, said), (true, vec![format!("{session} lost")]));
}
