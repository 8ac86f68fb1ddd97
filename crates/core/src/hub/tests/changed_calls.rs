//! Tests of calls that run otherwise than they were approved: with other facts, or after a refusal.

use super::fixture::{A, Fixture};
use crate::store::MemoryStore;
use crate::testing::SettingsBuilder;
use acpipe_policy as policy;
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};
use std::time::Instant;

pub(super) const CHANGED: &str = "The agent changed a tool call after it was approved";
pub(super) const RAN: &str = "The agent ran a tool without asking";
pub(super) const MAY: &str = "The agent may have run a tool without asking";
pub(super) const REFUSED: &str = "The agent reports that a tool ran although it was refused";

pub(super) fn turn(policy: impl Into<Policy>) -> (Fixture, String) {
    let settings = SettingsBuilder::new(Instant::now());
    let mut t = Fixture::under(policy, Box::new(MemoryStore), settings, &[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    (t, session)
}

/// A policy that allows these tools and denies the rest.
pub(super) fn only(listed: &str) -> Policy {
    let mut policy = Policy::from(Mode::Deny);
    policy
        .add_listed(listed, "allowed_tools", policy::Effect::Allow)
        .unwrap();
    policy
}

/// A policy that denies these tools and allows the rest.
pub(super) fn not(listed: &str) -> Policy {
    let mut policy = Policy::from(Mode::Approve);
    policy
        .add_listed(listed, "disallowed_tools", policy::Effect::Deny)
        .unwrap();
    policy
}

pub(super) fn update(fields: Value) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "a"});
    let Value::Object(fields) = fields else {
        panic!("{fields}");
    };
    update.as_object_mut().unwrap().extend(fields);
    update
}

pub(super) fn begins(kind: &str, input: &Value) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Tool", "kind": kind,
        "status": "pending", "rawInput": input})
}

pub(super) fn runs(command: &str) -> Value {
    begins("execute", &json!({"command": command}))
}

/// Requests permission for the call, which the client allows if it is asked.
pub(super) fn ask(t: &mut Fixture, id: &str, session: &str, tool: &Value) {
    let before = t.asked(A).len();
    t.request_permission(id, session, tool);
    if let Some(&ask) = t.asked(A).get(before) {
        let answer = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
        t.answer(A, ask, &answer);
    }
}

pub(super) fn titles(t: &Fixture) -> Vec<Value> {
    let notices = t.chunks(A, &["data-notice"]);
    let titles = notices.iter().map(|notice| notice["data"]["title"].clone());
    titles.collect()
}

/// Returns the titles of the notices if the client or the policy approved `ls`, and then these updates followed.
fn after_approval(policy: Policy, updates: &[Value]) -> Vec<Value> {
    let (mut t, session) = turn(policy);
    t.update(&session, &[runs("ls")]);
    ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
    assert_eq!(t.chosen("r"), "y");
    t.update(&session, updates);
    t.end_turn();
    titles(&t)
}

#[test]
fn approved_call_that_becomes_another_one_is_reported() {
    let rm = json!({"command": "rm x"});
    let done = || update(json!({"status": "completed"}));
    let changes: &[&[Value]] = &[
        &[update(json!({"rawInput": rm})), done()],
        &[update(json!({"rawInput": rm, "status": "completed"}))],
        &[update(
            json!({"rawInput": rm, "kind": "think", "status": "completed"}),
        )],
        &[
            update(json!({"rawInput": {"path": "/etc/x"}, "kind": "edit"})),
            done(),
        ],
        // There and back.
        &[
            update(json!({"rawInput": rm})),
            update(json!({"rawInput": {"command": "ls"}})),
            done(),
        ],
        // It has ended before.
        &[done(), update(json!({"rawInput": rm}))],
        &[
            update(json!({"rawInput": rm})),
            update(json!({"status": "failed"})),
        ],
        // Its end is never reported.
        &[update(json!({"rawInput": rm}))],
    ];
    for updates in changes {
        for policy in [Mode::Ask.into(), Mode::Reads.into(), only("Bash(ls:*)")] {
            assert_eq!(after_approval(policy, updates), [CHANGED], "{updates:?}");
        }
    }
}

#[test]
fn benign_changes_of_an_approved_call_raise_no_alarm() {
    let done = |output: &str| {
        update(json!({"status": "completed", "rawOutput": output,
        "content": [{"type": "content", "content": {"type": "text", "text": "rm x"}}]}))
    };
    let changes: &[&[Value]] = &[
        &[
            update(json!({"title": "List files", "status": "in_progress"})),
            done("x"),
        ],
        &[
            update(
                json!({"rawInput": {"command": "ls", "cwd": "/w"}, "locations": [{"path": "/w"}]}),
            ),
            done("x"),
        ],
        &[
            update(json!({"rawInput": {"command": ["/bin/sh", "-c", "ls"], "id": 1}})),
            done("x"),
        ],
        &[update(json!({"rawInput": {}})), done("x")],
        &[done("x"), done("y")],
    ];
    for updates in changes {
        for policy in [Mode::Ask.into(), Mode::Reads.into(), only("Bash(ls:*)")] {
            let reported = after_approval(policy, updates);
            assert_eq!(reported, Vec::<Value>::new(), "{updates:?}");
        }
    }
}

#[test]
fn input_that_follows_the_request_is_compared_with_what_the_request_says() {
    for (asked, want) in [
        (json!({"title": "Working on it"}), &[][..]),
        (json!({"title": "ls", "kind": "execute"}), &[]),
        (json!({"title": "pwd", "kind": "execute"}), &[CHANGED]),
    ] {
        let (mut t, session) = turn(Mode::Ask);
        let mut tool = asked.clone();
        tool["toolCallId"] = json!("a");
        ask(&mut t, "r", &session, &tool);
        let input =
            json!({"kind": "execute", "rawInput": {"command": "ls"}, "status": "completed"});
        t.update(&session, &[update(input)]);
        assert_eq!(titles(&t), want, "{asked}");
    }
}

#[test]
fn change_that_the_policy_allows_is_not_reported() {
    let read = update(json!({"kind": "read", "rawInput": {"path": "/w/a"}, "status": "completed"}));
    assert_eq!(
        after_approval(Mode::Reads.into(), &[read]),
        Vec::<Value>::new()
    );
    let pwd = update(json!({"rawInput": {"command": "pwd"}, "status": "completed"}));
    assert_eq!(
        after_approval(not("Bash(rm:*)"), &[pwd]),
        Vec::<Value>::new()
    );
}

#[test]
fn report_names_what_was_approved_and_what_ran() {
    let (mut t, session) = turn(only("Bash(ls:*)"));
    t.update(&session, &[runs("ls")]);
    ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
    t.update(
        &session,
        &[update(
            json!({"rawInput": {"command": "rm x"}, "status": "completed"}),
        )],
    );
    let [notice] = &t.chunks(A, &["data-notice"])[..] else {
        panic!("one notice");
    };
    assert_eq!(
        notice["data"]["description"],
        "execute: rm x; `ls` was approved; permissions \"deny\" would refuse the change"
    );
}

#[test]
fn announced_call_counts_although_another_report_replaces_it() {
    let read = json!({"kind": "read", "rawInput": {"path": "/w/a"}});
    for policy in [Policy::from(Mode::Reads), not("Bash(rm:*)")] {
        // Without a request.
        let (mut t, session) = turn(policy.clone());
        let end = update(json!({"status": "completed"}));
        t.update(&session, &[runs("rm x"), update(read.clone()), end]);
        assert_eq!(titles(&t), [RAN]);
        // In a request.
        let (mut t, session) = turn(policy);
        t.update(&session, &[runs("rm x"), update(read.clone())]);
        t.request_permission("r", &session, &json!({"toolCallId": "a"}));
        let refused = t.asked(A).is_empty().then(|| t.chosen("r"));
        assert_ne!(refused.as_deref(), Some("y"));
    }
    // An input that the model writes piece by piece.
    let (mut t, session) = turn(only("Bash(ls src:*)"));
    let pieces = ["l", "ls s"].map(|text| update(json!({"rawInput": {"command": text}})));
    t.update(&session, &pieces);
    let whole = json!({"rawInput": {"timeout": 1, "command": "ls src"}, "kind": "execute"});
    t.update(&session, &[update(whole)]);
    t.request_permission("r", &session, &json!({"toolCallId": "a"}));
    assert_eq!(t.chosen("r"), "y");
    t.update(&session, &[update(json!({"status": "completed"}))]);
    assert_eq!(titles(&t), Vec::<Value>::new());
}

#[test]
fn call_that_changes_and_is_asked_about_again_is_judged_by_the_last_request() {
    let rm = json!({"toolCallId": "a", "rawInput": {"command": "rm x"}});
    let done = || update(json!({"status": "completed"}));
    // Refused, and run.
    let (mut t, session) = turn(only("Bash(ls:*)"));
    t.update(&session, &[runs("ls")]);
    ask(&mut t, "r1", &session, &json!({"toolCallId": "a"}));
    ask(&mut t, "r2", &session, &rm);
    assert_eq!(["r1", "r2"].map(|id| t.chosen(id)), ["y", "n"]);
    t.update(&session, &[done()]);
    assert_eq!(titles(&t), [REFUSED]);
    // Allowed.
    let (mut t, session) = turn(Mode::Ask);
    t.update(&session, &[runs("ls")]);
    ask(&mut t, "r1", &session, &json!({"toolCallId": "a"}));
    ask(&mut t, "r2", &session, &rm);
    t.update(&session, &[done()]);
    assert_eq!(titles(&t), Vec::<Value>::new());
}

#[test]
fn refused_call_that_succeeds_is_reported() {
    for (status, want) in [("completed", &[REFUSED][..]), ("failed", &[])] {
        let (mut t, session) = turn(Mode::Deny);
        t.update(&session, &[runs("rm x")]);
        t.request_permission("r", &session, &json!({"toolCallId": "a"}));
        let end = update(json!({"status": status, "rawOutput": "x"}));
        t.update(&session, &[end.clone(), end]);
        t.end_turn();
        assert_eq!(titles(&t), want, "{status}");
    }
}

#[test]
fn call_that_runs_before_its_request_is_answered_is_reported() {
    let (mut t, session) = turn(Mode::Ask);
    t.update(&session, &[runs("rm x")]);
    t.request_permission("r", &session, &json!({"toolCallId": "a"}));
    t.update(&session, &[update(json!({"status": "completed"}))]);
    assert_eq!(titles(&t), [RAN]);
}

#[test]
fn call_that_one_request_stands_for_is_approved_as_it_was() {
    for (command, want) in [("ls", &[][..]), ("rm x", &[CHANGED])] {
        let (mut t, session) = turn(only("Bash(ls:*)"));
        t.update(&session, &[runs("ls")]);
        let question =
            json!({"toolCallId": "q", "title": "Confirm Agent Actions", "kind": "other"});
        t.request_permission("r", &session, &question);
        assert_eq!(t.chosen("r"), "y");
        let end = json!({"rawInput": {"command": command}, "status": "completed"});
        t.update(&session, &[update(end)]);
        assert_eq!(titles(&t), want, "{command}");
    }
}

#[test]
fn approval_holds_for_the_same_facts_after_the_turn() {
    for (command, want) in [("ls", &[][..]), ("rm x", &[CHANGED])] {
        let (mut t, session) = turn(Mode::Ask);
        t.update(&session, &[runs("ls")]);
        ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
        t.end_turn();
        let late =
            json!({"rawInput": {"command": command}, "kind": "execute", "status": "completed"});
        t.update(&session, &[update(late)]);
        assert_eq!(titles(&t), want, "{command}");
    }
}

#[test]
fn call_that_failed_without_output_may_have_run() {
    for before in ["pending", "in_progress"] {
        let (mut t, session) = turn(Mode::Deny);
        let end = update(json!({"status": "failed"}));
        t.update(
            &session,
            &[runs("rm x"), update(json!({"status": before})), end],
        );
        assert_eq!(titles(&t), [MAY], "{before}");
    }
}

#[test]
fn call_that_cannot_be_read_may_have_run_against_a_rule() {
    let unknown = json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Working on it",
        "status": "completed"});
    let execute = json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Shell",
        "kind": "execute", "status": "completed", "rawInput": {"x": 1}});
    for update in [unknown, execute] {
        let (mut t, session) = turn(not("Bash(rm:*)"));
        t.update(&session, std::slice::from_ref(&update));
        assert_eq!(titles(&t), [MAY], "{update}");
        let notice = &t.chunks(A, &["data-notice"])[0];
        let description = notice["data"]["description"].as_str().unwrap();
        assert!(description.contains("cannot be read"), "{description}");
    }
}

#[test]
fn question_of_a_call_is_no_approval_of_its_command() {
    for (call, want) in [
        (runs("rm x"), &[RAN][..]),
        (begins("other", &json!({"questions": ["Which?"]})), &[]),
    ] {
        let (mut t, session) = turn(Mode::Ask);
        t.update(&session, &[call]);
        let params = json!({"sessionId": session, "toolCallId": "a", "mode": "form", "message": "Which?",
            "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}});
        t.say(&[json!({"id": "e", "method": "elicitation/create", "params": params})]);
        t.update(&session, &[update(json!({"status": "completed"}))]);
        assert_eq!(titles(&t), want);
    }
}

/// A policy that denies these rules' calls and allows the rest.
fn denying(rule: impl FnOnce(&mut policy::Rule)) -> Policy {
    let mut policy = Policy::from(Mode::Approve);
    let mut denies = policy::Rule::new("r".to_owned(), policy::Effect::Deny);
    rule(&mut denies);
    policy.add(denies);
    policy
}

fn diff(path: &str) -> Value {
    json!([{"type": "diff", "path": path, "oldText": "a", "newText": "b"}])
}

#[test]
fn rule_that_denies_objects_to_what_is_reported_after_the_approval() {
    let done = || update(json!({"status": "completed"}));
    let denied = || {
        denying(|rule| {
            rule.path("/w/secrets/**", None).unwrap();
        })
    };
    for change in [
        json!({"content": diff("/w/secrets/key")}),
        json!({"locations": [{"path": "/w/secrets/key"}]}),
        json!({"rawInput": {"command": "ls", "file_path": "/w/secrets/key", "content": "x"}}),
        json!({"content": diff("/w/secrets/key"), "status": "completed"}),
    ] {
        let reported = after_approval(denied(), &[update(change.clone()), done(), done()]);
        assert_eq!(reported, [CHANGED], "{change}");
    }
    let script = update(json!({"rawInput": {"command": "ls", "script": "rm x"}}));
    let back = update(json!({"rawInput": {"command": "ls"}}));
    for updates in [
        &[script.clone(), done()][..],
        &[script, back.clone(), done()],
    ] {
        assert_eq!(after_approval(not("Bash(rm:*)"), updates), [CHANGED]);
    }
    // A path that no rule denies is no change.
    let elsewhere = update(json!({"locations": [{"path": "/w/src/a"}]}));
    for policy in [denied(), not("Bash(rm:*)"), Mode::Ask.into()] {
        let reported = after_approval(policy, &[elsewhere.clone(), back.clone(), done()]);
        assert_eq!(reported, Vec::<Value>::new());
    }
}

#[test]
fn report_of_a_denied_path_names_the_path() {
    let (mut t, session) = turn(denying(|rule| {
        rule.path("/w/secrets/**", None).unwrap();
    }));
    t.update(&session, &[runs("ls")]);
    ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
    let end = update(json!({"content": diff("/w/secrets/key"), "status": "completed"}));
    t.update(&session, &[end]);
    let notice = &t.chunks(A, &["data-notice"])[0];
    assert_eq!(
        notice["data"]["description"],
        "execute: /w/secrets/key; `ls` was approved; r would refuse the change"
    );
}

#[test]
fn change_of_a_file_in_the_result_of_a_call_counts() {
    let read = begins("read", &json!({"file_path": "/w/a"}));
    let edit = begins("edit", &json!({"file_path": "/w/a"}));
    let think = begins("think", &json!({}));
    let mut single = read.clone();
    single["status"] = json!("completed");
    single["content"] = diff("/etc/hosts");
    let end = || update(json!({"status": "completed", "content": diff("/etc/hosts")}));
    let first = update(json!({"status": "in_progress", "rawOutput": "x"}));
    for (policy, updates, want) in [
        (
            Policy::from(Mode::Reads),
            vec![read.clone(), end()],
            &[RAN][..],
        ),
        (Mode::Reads.into(), vec![single], &[RAN]),
        (Mode::Deny.into(), vec![think, end()], &[RAN]),
        (not("Edit(//etc/**)"), vec![edit.clone(), end()], &[RAN]),
        // The call ran, as far as it was reported, before it ended.
        (
            not("Edit(//etc/**)"),
            vec![edit.clone(), first, end()],
            &[RAN],
        ),
        (not("Edit(//etc/**)"), vec![edit.clone()], &[]),
        (
            Mode::Reads.into(),
            vec![
                read,
                update(json!({"status": "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": "a diff of x"}}]})),
            ],
            &[],
        ),
    ] {
        let (mut t, session) = turn(policy);
        t.update(&session, &updates);
        assert_eq!(titles(&t), want, "{updates:?}");
    }
    let (mut t, session) = turn(not("Edit(//etc/**)"));
    t.update(&session, &[edit]);
    ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
    t.update(&session, &[end()]);
    assert_eq!(titles(&t), [CHANGED]);
}

#[test]
fn kind_or_name_that_follows_is_judged() {
    let done = || update(json!({"status": "completed"}));
    let name = |name: &str| json!({"claudeCode": {"toolName": name}});
    let reads = || {
        let mut policy = Policy::from(Mode::Deny);
        let mut rule = policy::Rule::new("r".to_owned(), policy::Effect::Allow);
        rule.kind("read").unwrap();
        policy.add(rule);
        policy
    };
    let fetches = || {
        denying(|rule| {
            rule.kind("fetch").unwrap();
        })
    };
    let read = begins("read", &json!({"file_path": "/w/a"}));
    let other = begins("other", &json!({"q": 1}));
    let mail = update(json!({"_meta": name("mcp__mail__send")}));
    let fetch = update(json!({"kind": "fetch", "rawInput": {"url": "https://x"}}));
    for (policy, call, change) in [
        (reads(), &read, &fetch),
        (fetches(), &other, &update(json!({"kind": "fetch"}))),
        (not("mcp__mail__*"), &other, &mail),
    ] {
        let (mut t, session) = turn(policy.clone());
        t.update(&session, std::slice::from_ref(call));
        ask(&mut t, "r", &session, &json!({"toolCallId": "a"}));
        assert_eq!(t.chosen("r"), "y");
        t.update(&session, &[change.clone(), done()]);
        assert_eq!(titles(&t), [CHANGED], "{change}");
        // After the end of a call for which there was no request.
        let (mut t, session) = turn(policy);
        t.update(&session, &[call.clone(), done(), change.clone(), done()]);
        assert_eq!(titles(&t), [RAN], "{change}");
    }
}
