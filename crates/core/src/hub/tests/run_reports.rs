//! Tests of decisions that cover a call, or do not: which runs are reported, and which are not.

use super::changed_calls::{MAY, RAN, REFUSED, ask, begins, not, only, runs, titles, turn, update};
use super::fixture::{A, Fixture};
use crate::client::Command;
use crate::store::MemoryStore;
use crate::testing::{SettingsBuilder, params};
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};
use std::time::Instant;

const MAY_REFUSED: &str = "The agent may have run a tool although it was refused";

fn completed() -> Value {
    update(json!({"status": "completed"}))
}

/// A turn of a client that serves files and terminals.
fn served(policy: impl Into<Policy>) -> (Fixture, String) {
    let settings = SettingsBuilder::new(Instant::now());
    let mut t = Fixture::under(policy, Box::new(MemoryStore), settings, &[]);
    let fs = json!({"readTextFile": true, "writeTextFile": true});
    t.connect_with(A, &json!({"permissions": true, "fs": fs, "terminal": true}));
    t.ensure(A, "s");
    t.prompt(A, "s");
    let session = t.prompted();
    (t, session)
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Sends a file or terminal request. The client allows it if it is asked, and serves it if it gets it.
fn request(t: &mut Fixture, method: &str, session: &str, params: &Value) {
    let mut params = params.clone();
    params["sessionId"] = json!(session);
    let policy = t.received.len();
    t.say(&[json!({"id": method, "method": method, "params": params})]);
    if t.received.len() > policy {
        // The policy refused it.
        return;
    }
    let served = match method {
        "terminal/create" => json!({"terminalId": "t"}),
        "fs/read_text_file" => json!({"content": "x"}),
        _ => json!({}),
    };
    let asked = t.chunks(A, &["tool-approval-request"]);
    if !asked.is_empty() {
        let ask = t.asked(A)[0];
        t.answer(A, ask, &selected("allow"));
    }
    let ask = t.asked(A)[0];
    t.answer(A, ask, &served);
}

fn edit() -> Value {
    begins(
        "edit",
        &json!({"file_path": "/w/a", "old_string": "a", "new_string": "b"}),
    )
}

#[test]
fn request_covers_one_call_that_it_carried_out() {
    let file = json!({"path": "/w/a", "content": "x"});
    let (read, write, terminal) = ("fs/read_text_file", "fs/write_text_file", "terminal/create");
    let echo = json!({"command": "echo", "args": ["rm -rf x"]});
    let npm = json!({"command": "sh", "args": ["-c", "npm test"]});
    let none: &[&str] = &[];
    for (policy, method, params, call, want) in [
        (Policy::from(Mode::Ask), write, &file, edit(), none),
        (Mode::Ask.into(), terminal, &npm, runs("npm test"), none),
        // Another kind, another command, and a refused request.
        (Mode::Reads.into(), read, &file, edit(), &[RAN]),
        (only("Bash(echo:*)"), terminal, &echo, runs("rm"), &[RAN]),
        (
            only("Bash(echo:*)"),
            terminal,
            &echo,
            runs("rm -rf x"),
            &[RAN],
        ),
        (Mode::Deny.into(), write, &file, edit(), &[RAN]),
        (Mode::Deny.into(), terminal, &npm, runs("npm test"), &[RAN]),
    ] {
        let (mut t, session) = served(policy);
        request(&mut t, method, &session, params);
        t.update(&session, &[call.clone(), completed()]);
        assert_eq!(titles(&t), want, "{method} {params} {call}");
        let again = json!({"toolCallId": "b"});
        let [mut call, mut end] = [call, completed()];
        call["toolCallId"] = again["toolCallId"].clone();
        end["toolCallId"] = again["toolCallId"].clone();
        t.update(&session, &[call.clone(), end]);
        assert_eq!(titles(&t).len(), want.len() + 1, "again: {call}");
    }
}

#[test]
fn terminal_covers_only_a_call_that_shows_it() {
    let shows = |id: &str| {
        json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Terminal", "kind": "execute",
            "content": [{"type": "terminal", "terminalId": id}], "status": "completed"})
    };
    for (shown, want) in [("t", &[][..]), ("own", &[MAY])] {
        let (mut t, session) = served(not("Bash(rm:*)"));
        request(
            &mut t,
            "terminal/create",
            &session,
            &json!({"command": "ls"}),
        );
        t.update(&session, &[shows(shown)]);
        assert_eq!(titles(&t), want, "{shown}");
    }
}

#[test]
fn refused_call_that_completes_after_its_turn_is_reported() {
    for (prompts, is_cancelled) in [(0, false), (0, true), (1, false), (2, false)] {
        let (mut t, session) = turn(Mode::Deny);
        t.update(&session, &[runs("rm x")]);
        t.request_permission("r", &session, &json!({"toolCallId": "a"}));
        if is_cancelled {
            t.call(A, Command::Cancel(params(json!({"sessionId": "s"}))));
        }
        t.end_turn();
        for prompt in 0..prompts {
            t.prompt(A, "s");
            if prompt + 1 < prompts {
                t.end_turn();
            }
        }
        t.update(&session, &[completed(), completed()]);
        assert_eq!(titles(&t), [REFUSED], "{prompts} {is_cancelled}");
        let description = t.chunks(A, &["data-notice"])[0]["data"]["description"].clone();
        assert_eq!(description, "execute: rm x");
    }
}

#[test]
fn call_that_starts_after_a_refusal_may_have_run() {
    let started = || update(json!({"status": "in_progress"}));
    let failed = || update(json!({"status": "failed", "rawOutput": {"stdout": "deleted"}}));
    for (updates, want) in [
        (vec![started()], &[MAY_REFUSED][..]),
        (vec![started(), failed()], &[REFUSED]),
        (vec![started(), completed()], &[REFUSED]),
        (vec![failed()], &[]),
        (vec![], &[]),
    ] {
        // It may have been started before the request: that is how some agents report the request.
        let (mut t, session) = turn(Mode::Deny);
        t.update(&session, &[runs("rm x"), started()]);
        t.request_permission("r", &session, &json!({"toolCallId": "a"}));
        t.update(&session, &updates);
        t.end_turn();
        assert_eq!(titles(&t), want, "{updates:?}");
    }
}

#[test]
fn call_that_starts_while_its_request_is_open_may_have_run() {
    for is_withdrawn in [false, true] {
        let (mut t, session) = turn(Mode::Ask);
        t.update(&session, &[runs("rm x")]);
        t.request_permission("r", &session, &json!({"toolCallId": "a"}));
        if is_withdrawn {
            t.say(&[json!({"method": "$/cancel_request", "params": {"requestId": "r"}})]);
        }
        t.update(&session, &[update(json!({"status": "in_progress"}))]);
        t.end_turn();
        assert_eq!(titles(&t), [MAY], "{is_withdrawn}");
    }
}

#[test]
fn refusal_does_not_stand_for_a_later_call() {
    let (mut t, session) = turn(Mode::Deny);
    t.update(&session, &[runs("rm x")]);
    t.request_permission("r", &session, &json!({"toolCallId": "a"}));
    let mut again = runs("rm x");
    again["toolCallId"] = json!("b");
    again["status"] = json!("in_progress");
    t.update(&session, &[update(json!({"status": "failed"})), again]);
    t.end_turn();
    assert_eq!(titles(&t), [MAY]);
}

/// Some agents report a refusal by the same call once more, which fails.
#[test]
fn refused_call_that_is_repeated_under_its_id_and_fails_is_not_reported() {
    let failed = || update(json!({"status": "failed"}));
    let started = || update(json!({"status": "in_progress"}));
    for (again, want) in [
        (vec![runs("rm x"), failed()], &[][..]),
        (vec![runs("rm y"), failed()], &[MAY]),
        (vec![runs("rm x"), started(), failed()], &[MAY]),
        (vec![runs("rm x"), failed(), runs("rm x"), failed()], &[MAY]),
    ] {
        let (mut t, session) = turn(Mode::Deny);
        let mut asked = runs("rm x");
        asked.as_object_mut().unwrap().remove("sessionUpdate");
        t.request_permission("r", &session, &asked);
        t.update(&session, &[failed()]);
        t.update(&session, &again);
        t.end_turn();
        assert_eq!(titles(&t), want, "{again:?}");
    }
}

#[test]
fn decision_under_another_id_holds_for_the_call() {
    let asked = json!({"toolCallId": "b", "kind": "execute", "rawInput": {"command": "rm x"}});
    for (policy, want) in [(Mode::Ask, &[][..]), (Mode::Deny, &[REFUSED])] {
        let (mut t, session) = turn(policy);
        t.update(&session, &[runs("rm x")]);
        ask(&mut t, "r", &session, &asked);
        t.update(&session, &[completed()]);
        assert_eq!(titles(&t), want);
    }
}

#[test]
fn question_of_a_call_does_not_hide_what_it_does() {
    let name = |name: &str| json!({"claudeCode": {"toolName": name}});
    let questions = json!({"questions": ["Which?"]});
    let call = |kind: &str, input: &Value, tool: Option<&str>| {
        let mut call = begins(kind, input);
        if let Some(tool) = tool {
            call["_meta"] = name(tool);
        }
        call
    };
    let ask_user = Some("AskUserQuestion");
    for (call, elicits, want) in [
        (call("other", &questions, None), true, &[][..]),
        (call("other", &questions, ask_user), false, &[]),
        (
            call("other", &json!({"recipient": "x"}), Some("mcp__mail__send")),
            true,
            &[RAN],
        ),
        (
            call("other", &json!({"recipient": "x"}), None),
            true,
            &[RAN],
        ),
        (
            call("other", &questions, Some("mcp__mail__send")),
            true,
            &[RAN],
        ),
        (
            call("fetch", &json!({"url": "https://x"}), ask_user),
            false,
            &[RAN],
        ),
        (call("delete", &json!({"id": 7}), ask_user), false, &[RAN]),
    ] {
        let (mut t, session) = turn(Mode::Deny);
        t.update(&session, std::slice::from_ref(&call));
        if elicits {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            let params = json!({"sessionId": session, "toolCallId": "a", "mode": "form",
                "message": "Which?", "requestedSchema": schema});
            t.say(&[json!({"id": "e", "method": "elicitation/create", "params": params})]);
            // The policy declines it.
            assert!(t.asked(A).is_empty());
        }
        t.update(&session, &[completed()]);
        let mut reports = titles(&t);
        reports.retain(|title| title != "The policy declined a question of the agent");
        assert_eq!(reports, want, "{call}");
    }
}

#[test]
fn approved_call_that_ends_later_is_not_reported() {
    for prompts in 0..3 {
        let (mut t, session) = turn(Mode::Ask);
        t.update(&session, &[runs("rm x")]);
        ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
        t.end_turn();
        for _ in 0..prompts {
            t.prompt(A, "s");
            t.say(&[Fixture::words(&session, "x")]);
            t.end_turn();
        }
        t.update(&session, &[completed()]);
        assert_eq!(titles(&t), Vec::<Value>::new(), "{prompts}");
        t.update(
            &session,
            &[update(
                json!({"rawInput": {"command": "rm y"}, "kind": "execute"}),
            )],
        );
        assert_eq!(titles(&t).len(), 1, "{prompts}");
    }
}

#[test]
fn decision_on_a_call_of_a_subagent_holds_after_the_turn() {
    for (policy, want) in [(Mode::Ask, &[][..]), (Mode::Deny, &[REFUSED])] {
        let (mut t, session) = turn(policy);
        let announced = json!({"sessionUpdate": "subagent_update", "sessionId": "sub"});
        t.update(&session, &[announced]);
        t.update("sub", &[runs("rm x")]);
        ask(&mut t, "r", "sub", &json!({"toolCallId": "a"}));
        t.end_turn();
        t.update("sub", &[completed()]);
        assert_eq!(titles(&t), want);
    }
}

#[test]
fn call_that_was_approved_for_always_is_not_reported_again() {
    for (option, command, want) in [
        ("allow_always", "make", &[][..]),
        ("allow_always", "make x", &[RAN]),
        ("allow_once", "make", &[RAN]),
    ] {
        let (mut t, session) = turn(Mode::Ask);
        t.update(&session, &[runs("make")]);
        let options = json!([{"optionId": "y", "name": "Allow", "kind": option}]);
        let tool = json!({"toolCallId": "a"});
        let params = json!({"sessionId": session, "toolCall": tool, "options": options});
        t.say(&[json!({"id": "r", "method": "session/request_permission", "params": params})]);
        let ask = t.asked(A)[0];
        t.answer(A, ask, &selected("y"));
        t.update(&session, &[completed()]);
        t.end_turn();
        t.prompt(A, "s");
        let mut again = runs(command);
        again["toolCallId"] = json!("b");
        again["status"] = json!("completed");
        t.update(&session, &[again]);
        assert_eq!(titles(&t), want, "{option} {command}");
    }
}
