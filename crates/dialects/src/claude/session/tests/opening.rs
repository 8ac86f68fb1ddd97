//! Tests of handshakes, options, and the session that a process opens.

use super::*;
use acpipe_core::restore_plan::allows_next_strategy;
use acpipe_model::dialect::{AgentCall, AgentLine};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::line_repair::LostLine;

#[test]
fn only_a_version_makes_it_ready() {
    let mut t = Test::new();
    assert_eq!(t.reads(VERSION, "Welcome to my shim"), Vec::<String>::new());
    assert_eq!(t.reads(VERSION, "2.1.330 (Claude Code)"), ["ready 2.1.330"]);
    // The exit of the process after its report does not matter.
    assert_eq!(t.ends(VERSION, 1), (true, Vec::new()));
    let mut t = Test::new();
    let (_, said) = t.ends(VERSION, 0);
    assert!(said[0].starts_with("not ready: "), "{said:?}");
    assert!(!Test::new().ends(VERSION, 1).0, "nobody would wait for it");
}

#[test]
fn abandoned_opening_stops_its_process() {
    let mut t = Test::new();
    let child = t.opens(Opening::New, &none());
    t.claude
        .call(AgentCall::Forget(CallId(7)), &mut t.out)
        .unwrap();
    assert_eq!(t.stopped(), []);
    t.claude
        .call(AgentCall::Forget(CallId(1)), &mut t.out)
        .unwrap();
    assert_eq!(t.stopped(), [child]);
    assert_eq!(t.says(child, &success("1")), Vec::<String>::new());
    // A session may be open and still not be the one that was required.
    let child = t.open(Opening::New, &none());
    t.claude
        .call(AgentCall::Forget(CallId(2)), &mut t.out)
        .unwrap();
    assert_eq!(t.stopped(), [child]);
}

#[test]
fn a_process_that_refuses_the_handshake_is_ended() {
    let refusal = json!({"type": "control_response", "response": {
        "subtype": "error", "request_id": "1", "error": "no",
    }});
    let mut t = Test::new();
    let child = t.opens(Opening::New, &none());
    assert_eq!(
        t.says(child, &refusal),
        ["1 failed: session: the agent refused the handshake: no"]
    );
    assert_eq!(t.stopped(), [child]);

    // A response that is too long has the same effect.
    let child = t.opens(Opening::New, &none());
    let line = Overlong {
        len: 99,
        head: br#"{"type":"control_response","response":{"subtype":"success","request_id":"1","#
            .as_slice()
            .into(),
        tail: b"}".as_slice().into(),
    };
    let mut events = Vec::new();
    let lost = LostLine::overlong(&line);
    let line = AgentLine::Lost(&lost);
    t.claude.read(child, line, &mut events, &mut t.out).unwrap();
    assert!(word(&events[0]).contains("longer than the limit (99 bytes)"));
    assert_eq!(t.stopped(), [child]);
}

#[test]
fn a_process_that_ends_while_its_history_is_read_fails_the_opening_alone() {
    let mut t = Test::new();
    let child = t.opens(Opening::Load("a"), &none());
    let (goes_on, said) = t.ends(child, 1);
    assert!(goes_on);
    assert!(said[0].starts_with("1 failed: session: "), "{said:?}");
    // The transport for its path ends, and nothing follows.
    assert_eq!(t.ends(Child(child.0 + 1), 0), (true, Vec::new()));
}

#[test]
fn start_failure_is_not_a_refused_session() {
    // `true` if another restore strategy is tried; none can start a program that does not exist.
    for (kind, leads) in [
        (ErrorKind::AgentNotFound, false),
        (ErrorKind::AgentStart, false),
        (ErrorKind::Timeout, false),
        (ErrorKind::SessionNotFound, true),
        (ErrorKind::AgentExited, true),
    ] {
        let mut t = Test::new();
        let child = t.opens(Opening::Resume("a"), &none());
        let mut events = Vec::new();
        let error = Error::new(kind, "x");
        t.claude.ended(child, Err(&error), &mut events, &mut t.out);
        let [AgentEvent::Failed { error, .. }] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(allows_next_strategy(error), leads, "{error:?}");
    }
}

#[test]
fn session_with_a_changed_id_continues() {
    let mut t = Test::new();
    let child = t.open(Opening::Resume("title"), &none());
    let uuid = t.prompts("title");
    assert_eq!(t.says(child, &init("b"))[0], "title is b");
    let said = t.says(child, &result(&uuid, &json!({})));
    assert_eq!(said, ["2 ended: end_turn"]);
    t.prompts("b");
}

#[test]
fn session_owned_by_another_process_is_closed() {
    let mut t = Test::new();
    let first = t.open(Opening::Resume("b"), &none());
    let second = t.open(Opening::Resume("title"), &none());
    t.prompts("title");
    let said = t.says(second, &init("b"));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("3 failed: sessionExists: "), "{said:?}");
    assert_eq!(said[1], "title lost");
    assert_eq!(t.stopped(), [second]);
    // The other session is not affected.
    let uuid = t.prompts("b");
    let said = t.says(first, &result(&uuid, &json!({})));
    assert_eq!(said, ["4 ended: end_turn"]);
}

#[test]
fn unknown_option_value_error_lists_the_choices() {
    let check = |options: Value| {
        let options: SessionOptions = serde_json::from_value(options).unwrap();
        crate::claude::check(&options, &[]).map_err(|error| error.message)
    };
    for known in [
        json!({"mode": "plan", "effort": "low"}),
        json!({"mode": "bypassPermissions"}),
        json!({"allowedTools": ["mcp__of_the_project__x"]}),
    ] {
        assert_eq!(check(known), Ok(()));
    }
    for (odd, want) in [
        (
            json!({"mode": "plna"}),
            "options.mode: \"plna\" is not a valid value; use one of: default, ",
        ),
        (
            json!({"effort": "hgih"}),
            "options.effort: \"hgih\" is not a valid value; use one of: low, ",
        ),
        (
            json!({"allowedTools": ["mcp__x"], "settingSources": []}),
            "tool \"mcp__x\" not found",
        ),
    ] {
        let error = check(odd).unwrap_err();
        assert!(error.starts_with(want), "{error}");
    }
}
