//! Tests of ids of tool calls that an agent uses again. One test for each row of `docs/internals/ids.md`.

use super::fixture::{A, Fixture};
use crate::hub::HubCx;
use crate::session::BACKGROUND_QUIET_LIMIT;
use crate::store::MemoryStore;
use crate::testing::SettingsBuilder;
use acpipe_policy as policy;
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};
use std::time::Instant;

const INPUTS: &[&str] = &["tool-input-available"];
const OUTPUTS: &[&str] = &[
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
];

/// Returns a running turn under a policy, and the agent's id of its session.
fn turn(policy: impl Into<Policy>) -> (Fixture, String, u64) {
    let settings = SettingsBuilder::new(Instant::now());
    let mut t = Fixture::under(policy, Box::new(MemoryStore), settings, &[A]);
    let prompt = t.prompt(A, "s");
    let session = t.prompted();
    (t, session, prompt)
}

fn begins(id: &str, status: &str, command: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute",
        "status": status, "rawInput": {"command": command}})
}

fn ends(id: &str, status: &str, output: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "rawOutput": output})
}

fn ids(chunks: &[Value]) -> Vec<&str> {
    let ids = chunks.iter().map(|chunk| chunk["toolCallId"].as_str());
    ids.map(|id| id.expect("an id")).collect()
}

/// A policy that allows `ls` and denies the rest, and one that denies `rm` and allows the rest.
fn policies() -> [Policy; 2] {
    let mut listed = Policy::from(Mode::Deny);
    listed
        .add_listed("Bash(ls:*)", "allowed_tools", policy::Effect::Allow)
        .unwrap();
    let mut denied = Policy::from(Mode::Approve);
    denied
        .add_listed("Bash(rm:*)", "disallowed_tools", policy::Effect::Deny)
        .unwrap();
    [listed, denied]
}

#[test]
fn calls_of_one_id_keep_their_own_input_and_output() {
    let (mut t, session, prompt) = turn(Mode::Approve);
    for n in ["1", "2", "3"] {
        let command = format!("echo {n}");
        t.update(&session, &[begins("a", "in_progress", &command)]);
        t.update(&session, &[ends("a", "completed", n)]);
        // An update that completes the finished call begins none.
        t.update(&session, &[ends("a", "completed", n)]);
    }
    t.end_turn();
    let want = ["a", "a#2", "a#3"];
    let inputs = t.chunks(A, INPUTS);
    assert_eq!(ids(&inputs), want);
    let outputs = t.chunks(A, OUTPUTS);
    assert_eq!(ids(&outputs), want);
    for (at, n) in ["1", "2", "3"].iter().enumerate() {
        assert_eq!(inputs[at]["input"]["command"], format!("echo {n}"));
        assert_eq!(outputs[at]["output"]["rawOutput"], *n);
    }
    let summary = t.result(A, prompt);
    for list in ["toolCalls", "toolResults"] {
        let listed = summary[list].as_array().unwrap().iter();
        let listed: Vec<&Value> = listed.map(|call| &call["callId"]).collect();
        assert_eq!(listed, want, "{list}");
    }
}

#[test]
fn message_that_repeats_a_call_begins_no_other_one() {
    let (mut t, session, _) = turn(Mode::Approve);
    let done = begins("a", "completed", "ls");
    // A repeated beginning of an open call, a repeated end, and one that differs.
    t.update(
        &session,
        &[
            begins("a", "pending", "ls"),
            begins("a", "in_progress", "ls"),
        ],
    );
    t.update(
        &session,
        &[done.clone(), done, begins("a", "completed", "pwd")],
    );
    t.end_turn();
    assert_eq!(ids(&t.chunks(A, OUTPUTS)), ["a", "a#2"]);
}

#[test]
fn question_that_stands_for_the_open_calls_covers_one_with_a_used_id() {
    for (policy, want) in policies()
        .into_iter()
        .flat_map(|policy| [(policy.clone(), ["a", "b", "c"]), (policy, ["a", "b", "a"])])
    {
        let (mut t, session, _) = turn(policy);
        let [first, second, third] = want;
        t.update(
            &session,
            &[
                begins(first, "pending", "ls"),
                ends(first, "completed", "x"),
            ],
        );
        t.update(&session, &[begins(second, "pending", "ls src")]);
        t.update(&session, &[begins(third, "pending", "rm -rf x")]);
        let question =
            json!({"toolCallId": "q", "title": "Confirm Agent Actions", "kind": "other"});
        t.request_permission("r", &session, &question);
        assert_eq!(t.chosen("r"), "n", "{want:?}");
    }
}

#[test]
fn permission_request_for_a_used_id_is_judged_and_shown_by_its_own_call() {
    let [_, deny_rm] = policies();
    let (mut t, session, _) = turn(deny_rm);
    let asked = |command: &str| json!({"toolCallId": "a", "title": command, "kind": "execute", "rawInput": {"command": command}});
    t.request_permission("r1", &session, &asked("rm x"));
    t.request_permission("r2", &session, &asked("ls"));
    t.update(&session, &[ends("a", "completed", "files")]);
    // Only the id: nothing is known of the call, least of all what the last one of that id was.
    t.request_permission("r3", &session, &json!({"toolCallId": "a"}));
    assert_eq!(["r1", "r2", "r3"].map(|id| t.chosen(id)), ["n", "y", "n"]);
    t.end_turn();
    let outputs = t.chunks(A, OUTPUTS);
    assert_eq!(ids(&outputs), ["a", "a#2", "a#3"]);
    let kinds: Vec<&Value> = outputs.iter().map(|chunk| &chunk["type"]).collect();
    assert_eq!(
        kinds,
        [
            "tool-output-denied",
            "tool-output-available",
            "tool-output-denied"
        ]
    );
}

#[test]
fn id_that_was_made_for_another_call_does_not_name_that_one() {
    let [_, deny_rm] = policies();
    let (mut t, session, _) = turn(deny_rm);
    t.update(
        &session,
        &[begins("a", "pending", "ls"), ends("a", "completed", "x")],
    );
    // This call has the id that the agent uses for the next one.
    t.update(&session, &[begins("a", "pending", "rm x")]);
    t.update(&session, &[begins("a#2", "pending", "ls")]);
    t.request_permission("r1", &session, &json!({"toolCallId": "a"}));
    t.request_permission("r2", &session, &json!({"toolCallId": "a#2"}));
    assert_eq!(["r1", "r2"].map(|id| t.chosen(id)), ["n", "y"]);
    t.update(&session, &[ends("a#2", "completed", "files")]);
    t.end_turn();
    let inputs = t.chunks(A, INPUTS);
    assert_eq!(ids(&inputs), ["a", "a#2", "a#2#2"]);
    let files = t.chunks(A, &["tool-output-available"]);
    let files = files
        .iter()
        .find(|chunk| chunk["output"]["rawOutput"] == "files");
    assert_eq!(files.unwrap()["toolCallId"], "a#2#2");
}

#[test]
fn call_that_an_agent_reports_after_its_refusal_is_not_another_one_if_it_failed() {
    for (status, count) in [("failed", 1), ("completed", 2)] {
        let (mut t, session, _) = turn(Mode::Deny);
        let tool = json!({"toolCallId": "a", "title": "rm x", "kind": "execute"});
        t.request_permission("r", &session, &tool);
        t.update(&session, &[begins("a", status, "rm x")]);
        // A tool that ran although it was refused is reported.
        let notices = t.chunks(A, &["data-notice"]);
        assert_eq!(notices.len(), count - 1, "{notices:?}");
        t.end_turn();
        assert_eq!(t.chunks(A, OUTPUTS).len(), count, "{status}");
    }
}

#[test]
fn tool_that_ran_unasked_under_a_used_id_is_reported() {
    let [allow_ls, _] = policies();
    let (mut t, session, _) = turn(allow_ls);
    t.update(
        &session,
        &[begins("a", "pending", "ls"), ends("a", "completed", "x")],
    );
    t.update(
        &session,
        &[begins("a", "pending", "rm x"), ends("a", "completed", "x")],
    );
    let notices = t.chunks(A, &["data-notice"]);
    let reported: Vec<&Value> = notices.iter().map(|n| &n["data"]["toolCallId"]).collect();
    assert_eq!(reported, ["a#2"]);
}

#[test]
fn call_without_an_id_or_with_a_number_is_reported() {
    for (id, want) in [
        (json!(7), ["7", "7#2"]),
        (json!(null), ["no-id", "no-id#2"]),
        (json!({}), ["no-id", "no-id#2"]),
    ] {
        let (mut t, session, _) = turn(Mode::Deny);
        for _ in 0..2 {
            let mut updates = [begins("", "pending", "rm x"), ends("", "completed", "x")];
            for update in &mut updates {
                update["toolCallId"] = id.clone();
            }
            t.update(&session, &updates);
        }
        // The member can be absent, too.
        let mut unnamed = begins("", "completed", "rm y");
        unnamed.as_object_mut().unwrap().remove("toolCallId");
        t.update(&session, &[unnamed]);
        let notices = t.chunks(A, &["data-notice"]);
        let reported: Vec<&Value> = notices.iter().map(|n| &n["data"]["toolCallId"]).collect();
        assert_eq!(reported[..2], want, "{id}");
        assert_eq!(reported.len(), 3);
        t.end_turn();
        assert_eq!(ids(&t.chunks(A, OUTPUTS))[..2], want);
        // A request names its call by the same number.
        if id.is_number() {
            t.request_permission("r", &session, &json!({"toolCallId": id, "title": "x"}));
            assert_eq!(t.chosen("r"), "n");
        }
    }
}

#[test]
fn id_of_an_earlier_turn_is_that_of_another_call() {
    let (mut t, session, _) = turn(Mode::Ask);
    t.update(
        &session,
        &[begins("a", "pending", "ls"), ends("a", "completed", "x")],
    );
    t.end_turn();
    t.prompt(A, "s");
    t.request_permission(
        "r",
        &session,
        &json!({"toolCallId": "a", "title": "pwd", "kind": "execute"}),
    );
    let ask = t.asked(A)[0];
    t.answer(
        A,
        ask,
        &json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
    );
    t.update(
        &session,
        &[
            begins("a", "in_progress", "pwd"),
            ends("a", "completed", "y"),
        ],
    );
    t.end_turn();
    // An output can be shown more than once.
    let shown = |t: &Fixture| {
        let outputs = t.chunks(A, OUTPUTS);
        let mut shown: Vec<String> = ids(&outputs).into_iter().map(str::to_owned).collect();
        shown.dedup();
        shown
    };
    assert_eq!(shown(&t), ["a", "a#2"]);
    // A background turn, and an update of a call of the turn before, which goes on.
    t.update(&session, &[ends("a", "completed", "more")]);
    t.update(
        &session,
        &[begins("a", "pending", "id"), ends("a", "completed", "z")],
    );
    t.now += BACKGROUND_QUIET_LIMIT;
    t.hub.tick(&mut HubCx::new(t.now, &mut t.sinks));
    assert_eq!(shown(&t), ["a", "a#2", "a#3"]);
    let mut outputs = t.chunks(A, OUTPUTS).into_iter();
    let more = outputs.find(|chunk| chunk["output"]["rawOutput"] == "more");
    assert_eq!(more.unwrap()["toolCallId"], "a#2");
}

#[test]
fn late_update_of_an_unasked_call_is_judged_by_its_changes() {
    for policy in policies() {
        for (command, count) in [("ls", 0), ("rm x", 1)] {
            let (mut t, session, _) = turn(policy.clone());
            let update = |command: &str| {
                let mut update = begins("a", "completed", command);
                update["sessionUpdate"] = json!("tool_call_update");
                update
            };
            t.update(&session, &[update("ls")]);
            t.end_turn();
            t.prompt(A, "s");
            t.update(&session, &[update(command), ends("a", "completed", "x")]);
            let notices = t.chunks(A, &["data-notice"]);
            assert_eq!(notices.len(), count, "{command}: {notices:?}");
        }
    }
    // A run is reported once, and a call that was asked about is not reported.
    for (asks, count) in [(false, 1), (true, 0)] {
        let (mut t, session, _) = turn(Mode::Ask);
        if asks {
            let tool = json!({"toolCallId": "a", "title": "ls", "kind": "execute"});
            t.request_permission("r", &session, &tool);
            let ask = t.asked(A)[0];
            let answer = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
            t.answer(A, ask, &answer);
        }
        t.update(&session, &[begins("a", "in_progress", "ls")]);
        t.update(&session, &[ends("a", "completed", "x")]);
        t.end_turn();
        t.prompt(A, "s");
        t.update(&session, &[ends("a", "completed", "more")]);
        let notices = t.chunks(A, &["data-notice"]);
        assert_eq!(notices.len(), count, "{asks}: {notices:?}");
    }
}

#[test]
fn terminal_id_that_is_used_again_belongs_to_its_call() {
    let (mut t, session, _) = turn(Mode::Approve);
    for n in ["1", "2"] {
        let mut begin = begins("a", "in_progress", "run");
        begin["_meta"] = json!({"terminal_info": {"terminal_id": "t"}});
        let mut end = ends("a", "completed", "");
        end["_meta"] = json!({"terminal_output": {"terminal_id": "t", "data": n},
            "terminal_exit": {"terminal_id": "t", "exit_code": 0}});
        t.update(&session, &[begin, end]);
    }
    t.end_turn();
    let shown = t.chunks(A, &["data-terminal"]);
    let last = |id: &str| shown.iter().rfind(|chunk| chunk["id"] == id).unwrap()["data"].clone();
    for (terminal, call, output) in [("t", "a", "1"), ("t#2", "a#2", "2")] {
        let data = last(terminal);
        assert_eq!(
            (&data["toolCallId"], &data["output"]),
            (&json!(call), &json!(output))
        );
    }
    let outputs = t.chunks(A, OUTPUTS);
    let texts: Vec<&Value> = outputs
        .iter()
        .map(|o| &o["output"]["terminalOutput"])
        .collect();
    assert_eq!(texts, ["1", "2"]);
}

#[test]
fn calls_of_a_subagent_are_others_than_those_of_the_agent() {
    let (mut t, session, _) = turn(Mode::Deny);
    t.update(
        &session,
        &[json!({"sessionUpdate": "subagent_update", "sessionId": "sub"})],
    );
    t.update(&session, &[begins("a", "pending", "ls")]);
    t.update(
        "sub",
        &[begins("a", "pending", "rm x"), ends("a", "completed", "x")],
    );
    let notices = t.chunks(A, &["data-notice"]);
    let reported: Vec<&Value> = notices.iter().map(|n| &n["data"]["toolCallId"]).collect();
    assert_eq!(reported, ["a#2"]);
}
