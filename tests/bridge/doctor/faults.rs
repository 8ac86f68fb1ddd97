//! Agents with one fault each: `doctor --probe` finds exactly that fault.

use super::{check, clean, history, prompts, prompts_with, requests, restore, with};
use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls, chosen_options, words};
use serde_json::{Value, json};
use std::fs;
use std::slice;
use std::thread;

fn probe(script: &Value, limit: &str) -> Outcome {
    let line = format!("doctor --probe --yes --json --probe-limit {limit}");
    Run::of(&line).script(script).go().expect(0)
}

/// Returns the faults that were found, without those that are not there.
fn quirks(report: &Value) -> Value {
    let mut quirks = report["quirks"].clone();
    quirks
        .as_object_mut()
        .unwrap()
        .retain(|_, quirk| *quirk != false);
    quirks
}

#[test]
fn agent_without_faults_has_none() {
    let outcome = probe(&clean(), "1s");
    let report = outcome.json();
    assert_eq!(quirks(&report), json!({}), "{report:#}");
    assert_eq!(report["warnings"], 0, "{report:#}");
    for name in [
        "prompt",
        "late output",
        "session/list",
        "two sessions",
        "session/close",
        "stop",
        "session/load",
        "load unknown id",
        "session/resume",
        "resume unknown id",
        "malformed line",
        "cancel in text",
        "cancel in a tool",
        "permission request",
        "second prompt",
        "profile",
    ] {
        assert_eq!(check(&report, name)["status"], "ok", "{report:#}");
    }
    for name in ["cancel in text", "cancel in a tool"] {
        assert!(check(&report, name)["ms"].is_u64(), "{name} was measured");
    }
    // Only the command of the probe is allowed.
    assert_eq!(chosen_options(&outcome.log), ["no", "yes"]);
    assert_eq!(calls(&outcome.log, "session/prompt").len(), 7);
}

/// Script of an agent with other short prompts.
fn with_short(short: Value) -> Value {
    let [wait, stop] = until_cancelled();
    let long = [say("one"), wait, stop];
    with("session/prompt", prompts(&[short], &long))
}

#[test]
fn each_fault_is_found() {
    let hang = json!([[{"hang": true}]]);
    let refused = |message: &str| json!({"error": {"code": -32603, "message": message}});
    let [user, answer] = history();
    let done = json!({"reply": {}});
    let other = json!({"if": {"params": "fake-1", "then": [done], "else": [{"reply": {"sessionId": "other"}}]}});
    let mixed = json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "BETA"}}}}});
    let usual = json!({"default": true});
    let mixed =
        json!({"if": {"params": "BETA", "then": [mixed, end("end_turn")], "else": [usual]}});
    // The first prompt of a session that runs while another one is opened gets no answer.
    let dropped = json!({"if": {"params": "ALPHA", "then": [], "else": [usual]}});
    let deaf = prompts(
        slice::from_ref(&usual),
        &[say("one"), json!({"hang": true})],
    );
    let cases = [
        (
            "resume without an answer",
            with("session/resume", hang.clone()),
            json!({"brokenResume": true}),
        ),
        (
            "load that fails",
            with("session/load", json!([[refused("broken")]])),
            json!({"brokenLoad": true}),
        ),
        (
            "list without an answer",
            with("session/list", hang.clone()),
            json!({"brokenList": true}),
        ),
        (
            "list without the session",
            with("session/list", json!([[{"reply": {"sessions": []}}]])),
            json!({"brokenList": true}),
        ),
        (
            "close without an answer",
            with("session/close", hang.clone()),
            json!({"brokenClose": true}),
        ),
        (
            "history on resume",
            with("session/resume", restore(&[user, answer, done.clone()])),
            json!({"replaysOnResume": true}),
        ),
        (
            "success for an unknown session",
            with("session/resume", json!([[done]])),
            json!({"acceptsUnknownSessions": true}),
        ),
        // No fault.
        (
            "another session in place of an unknown one",
            with("session/resume", json!([[other]])),
            json!({}),
        ),
        (
            "turn that goes on after a cancel",
            with("session/prompt", deaf),
            json!({"ignoresCancel": true}),
        ),
        (
            "process with one session",
            with(
                "session/new",
                json!([[usual], [refused("one session only")]]),
            ),
            json!({"oneSessionPerProcess": true}),
        ),
        (
            "output under the id of another session",
            with_short(mixed),
            json!({"oneSessionPerProcess": true}),
        ),
        (
            "turn that a second session drops",
            with_short(dropped),
            json!({"oneSessionPerProcess": true}),
        ),
        (
            "process that outlives its stdin",
            with("eof", json!([{"hang": true}])),
            json!({"ignoresEndOfInput": true}),
        ),
    ];
    // Most cases wait for an answer that does not come, so several run at once.
    for some in cases.chunks(4) {
        thread::scope(|scope| {
            for (name, script, want) in some {
                scope.spawn(move || {
                    let report = probe(script, "1s").json();
                    assert_eq!(quirks(&report), *want, "{name}: {report:#}");
                });
            }
        });
    }
}

#[test]
fn history_after_the_response_to_a_load_is_found() {
    let [user, answer] = history();
    let late = [user, json!({"reply": {}}), json!({"sleep": 300}), answer];
    let report = probe(&with("session/load", restore(&late)), "2s").json();
    let quirks = quirks(&report);
    let wait = quirks["lateReplayMs"].as_u64().unwrap();
    // Twice the measured time; the response may have been read late.
    assert!(wait >= 300, "{quirks}");
    assert_eq!(quirks, json!({"lateReplayMs": wait}));
}

#[test]
fn output_after_the_end_of_a_prompt_is_found() {
    let late = [
        say("early"),
        end("end_turn"),
        json!({"sleep": 300}),
        say("late"),
    ];
    let [wait, stop] = until_cancelled();
    let script = with("session/prompt", prompts(&late, &[say("one"), wait, stop]));
    let quirks = quirks(&probe(&script, "2s").json());
    let wait = quirks["lateOutputMs"].as_u64().unwrap();
    // Twice the measured time; the response may have been read late.
    assert!(wait >= 300, "{quirks}");
    assert_eq!(quirks, json!({"lateOutputMs": wait}));
}

#[test]
fn command_that_runs_without_a_request_is_found() {
    let [other, command] = requests();
    let mode = json!({"update": {"sessionUpdate": "current_mode_update", "currentModeId": "auto"}});
    let cases: [(&[Value], bool, Value, &str); 6] = [
        (&[], true, json!(""), "without a permission request"),
        (&[mode], true, json!("auto"), "in the mode \"auto\""),
        (
            slice::from_ref(&command),
            true,
            Value::Null,
            "the agent asks",
        ),
        (&[other], true, Value::Null, "the agent asks"),
        // The sandbox refuses the file.
        (&[], false, Value::Null, "not measured"),
        (
            slice::from_ref(&command),
            false,
            Value::Null,
            "not measured",
        ),
    ];
    thread::scope(|scope| {
        for (work, writes, want, found) in &cases {
            scope.spawn(move || finds_unasked(work, *writes, want, found));
        }
    });
}

/// Probes an agent that performs these steps in the tool, and then writes the file or not.
fn finds_unasked(in_tool: &[Value], writes: bool, want: &Value, found: &str) {
    let world = World::new();
    let dir = world.dir.join("probed");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("acpipe-probe");
    let mut steps = in_tool.to_vec();
    if writes {
        steps.push(json!({"once": {"mark": file, "steps": []}}));
    }
    let until = until_cancelled();
    let long = [&[say("one")][..], &until].concat();
    let short = [json!({"default": true})];
    let script = with("session/prompt", prompts_with(&short, &long, &steps));
    let script = world.script(&script);
    let probe = |want: &Value, found: &str| {
        let line = format!(
            "doctor --probe --yes --json --probe-limit 1s --cwd {}",
            dir.display()
        );
        let args = [&words(&line)[..], &["--", FAKE_AGENT, &script]].concat();
        let output = world.acpipe(&args).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["quirks"]["runsUnaskedIn"], *want, "{report:#}");
        let check = check(&report, "permission request");
        assert!(check["found"].as_str().unwrap().contains(found), "{check}");
    };
    probe(want, found);
    assert!(!file.exists(), "{found}");
    if *want == "" {
        // A file that was there before proves nothing, and is kept.
        fs::write(&file, "").unwrap();
        probe(&Value::Null, "not measured");
        assert!(file.exists());
    }
}

#[test]
fn agent_that_cannot_be_prompted_gets_no_profile() {
    let error = json!({"error": {"code": -32603, "message": "no model"}});
    let script = with("session/prompt", json!([[error]]));
    let run = Run::of("doctor --probe --yes --json --probe-limit 1s");
    let report = run.script(&script).go().expect(1).json();
    assert_eq!(check(&report, "prompt")["status"], "problem");
    assert_eq!(check(&report, "profile")["status"], "warning");
    assert!(report.get("profile").is_none() && report.get("quirks").is_none());
}
