//! Agents with one fault each: `doctor --probe` finds exactly that fault.

use super::{check, clean, history, prompts, prompts_with, requests, restore, with};
use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls, chosen_options};
use serde_json::{Value, json};
use std::fs;
use std::slice;

fn probe(script: &Value, limit: &str) -> Outcome {
    let args = [
        "doctor",
        "--probe",
        "--yes",
        "--json",
        "--probe-limit",
        limit,
    ];
    Run::new(&args).script(script).go().expect(0)
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

#[track_caller]
fn finds(script: &Value, want: &Value) {
    let report = probe(script, "1s").json();
    assert_eq!(quirks(&report), *want, "{report:#}");
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

#[test]
fn resume_without_an_answer_is_found() {
    let script = with("session/resume", json!([[{"hang": true}]]));
    finds(&script, &json!({"brokenResume": true}));
}

#[test]
fn load_that_fails_is_found() {
    let error = json!({"error": {"code": -32603, "message": "broken"}});
    let script = with("session/load", json!([[error]]));
    finds(&script, &json!({"brokenLoad": true}));
}

#[test]
fn list_without_an_answer_or_without_the_session_is_found() {
    for run in [json!({"hang": true}), json!({"reply": {"sessions": []}})] {
        let script = with("session/list", json!([[run]]));
        finds(&script, &json!({"brokenList": true}));
    }
}

#[test]
fn close_without_an_answer_is_found() {
    let script = with("session/close", json!([[{"hang": true}]]));
    finds(&script, &json!({"brokenClose": true}));
}

#[test]
fn history_on_resume_is_found() {
    let [user, answer] = history();
    let script = with(
        "session/resume",
        restore(&[user, answer, json!({"reply": {}})]),
    );
    finds(&script, &json!({"replaysOnResume": true}));
}

#[test]
fn success_for_an_unknown_session_is_found() {
    let script = with("session/resume", json!([[{"reply": {}}]]));
    finds(&script, &json!({"acceptsUnknownSessions": true}));
}

#[test]
fn another_session_in_place_of_an_unknown_one_is_no_fault() {
    let other = json!({"if": {"params": "fake-1", "then": [{"reply": {}}], "else": [{"reply": {"sessionId": "other"}}]}});
    let script = with("session/resume", json!([[other]]));
    finds(&script, &json!({}));
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
fn turn_that_goes_on_after_a_cancel_is_found() {
    let long = [say("one"), json!({"hang": true})];
    let script = with(
        "session/prompt",
        prompts(&[json!({"default": true})], &long),
    );
    finds(&script, &json!({"ignoresCancel": true}));
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
    for (work, writes, want, found) in cases {
        let world = World::new();
        let dir = world.dir.join("probed");
        fs::create_dir(&dir).unwrap();
        let file = dir.join("acpipe-probe");
        let mut work = work.to_vec();
        if writes {
            work.push(json!({"once": {"mark": file, "steps": []}}));
        }
        let [wait, stop] = until_cancelled();
        let long = [say("one"), wait, stop];
        let short = [json!({"default": true})];
        let script = with("session/prompt", prompts_with(&short, &long, &work));
        let script = world.script(&script);
        let probe = |want: &Value, found: &str| {
            let mut args = vec![
                "doctor",
                "--probe",
                "--yes",
                "--json",
                "--probe-limit",
                "1s",
            ];
            args.extend(["--cwd", dir.to_str().unwrap(), "--", FAKE_AGENT, &script]);
            let output = world.acpipe(&args).output().unwrap();
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["quirks"]["runsUnaskedIn"], *want, "{report:#}");
            let check = check(&report, "permission request");
            assert!(check["found"].as_str().unwrap().contains(found), "{check}");
        };
        probe(&want, found);
        assert!(!file.exists(), "{found}");
        if want == "" {
            // A file that was there before proves nothing, and is kept.
            fs::write(&file, "").unwrap();
            probe(&Value::Null, "not measured");
            assert!(file.exists());
        }
    }
}

#[test]
fn process_with_one_session_is_found() {
    let refused = json!({"error": {"code": -32603, "message": "one session only"}});
    let script = with("session/new", json!([[{"default": true}], [refused]]));
    finds(&script, &json!({"oneSessionPerProcess": true}));
}

#[test]
fn output_under_the_id_of_another_session_is_found() {
    let mixed = json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "BETA"}}}}});
    let short = json!({"if": {"params": "BETA", "then": [mixed, end("end_turn")], "else": [{"default": true}]}});
    let [wait, stop] = until_cancelled();
    let script = with(
        "session/prompt",
        prompts(&[short], &[say("one"), wait, stop]),
    );
    finds(&script, &json!({"oneSessionPerProcess": true}));
}

#[test]
fn process_that_outlives_its_stdin_is_found() {
    let script = with("eof", json!([{"hang": true}]));
    finds(&script, &json!({"ignoresEndOfInput": true}));
}

#[test]
fn agent_that_cannot_be_prompted_gets_no_profile() {
    let error = json!({"error": {"code": -32603, "message": "no model"}});
    let script = with("session/prompt", json!([[error]]));
    let args = [
        "doctor",
        "--probe",
        "--yes",
        "--json",
        "--probe-limit",
        "1s",
    ];
    let report = Run::new(&args).script(&script).go().expect(1).json();
    assert_eq!(check(&report, "prompt")["status"], "problem");
    assert_eq!(check(&report, "profile")["status"], "warning");
    assert!(report.get("profile").is_none() && report.get("quirks").is_none());
}

#[test]
fn turn_that_a_second_session_drops_is_found() {
    // The first prompt of a session that runs while another one is opened gets no answer.
    let dropped = json!({"if": {"params": "ALPHA", "then": [], "else": [{"default": true}]}});
    let [wait, stop] = until_cancelled();
    let script = with(
        "session/prompt",
        prompts(&[dropped], &[say("one"), wait, stop]),
    );
    finds(&script, &json!({"oneSessionPerProcess": true}));
}
