//! Tests of whole turns: their subagents and their ends.

use super::*;
use acpipe_policy::Subject;

#[test]
fn subagents_have_separate_steps_and_inputs() {
    let mut seen = Seen::default();
    let mut turn = start(&mut seen);
    let updates = [
        call("task"),
        input("task", "{}"),
        of(Step),
        of(says(r#""sub""#)),
        of(TextEnd { provider: None }),
        of(call("t")),
        of(writes("t", r#""{\"a\":[1""#)),
    ];
    for update in &updates {
        turn.update(update, original("{}"), &mut seen);
    }
    let nested = |seen: &Seen| {
        let last = seen.0.iter().rfind(|c| c["type"] == "data-subagent");
        last.unwrap()["data"]["message"]["parts"].clone()
    };
    assert_eq!(nested(&seen)[2]["input"], json!({ "a": [1] }));
    assert!(turn.is_working() && turn.text().is_empty());
    let updates = [
        of(input("t", r#"{"a":[1]}"#)),
        of(ends("t", "completed", "7")),
        of(Step),
        of(FromSubagent {
            id: "deeper".into(),
            update: Box::new(says(r#""deep""#)),
        }),
    ];
    for update in &updates {
        turn.update(update, original("{}"), &mut seen);
    }
    let own = nested(&seen);
    assert_eq!(own.as_array().unwrap().len(), 2, "of another: {own}");
    let question = question("t2");
    turn.update(&of(call("t2")), original("{}"), &mut seen);
    let decision = Decision::of(
        true,
        false,
        &question.options,
        DecisionSource::Policy("r".into()),
    );
    let asked = turn.ask(None, &question, &Subject::default(), true, &mut seen);
    turn.decide(&asked, &decision, &mut seen);
    turn.finish(&ended(), false, &mut seen);
    let parts = seen.1.message()["parts"].clone();
    let kinds: Vec<&str> = parts
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "step-start",
            "dynamic-tool",
            "data-subagent",
            "data-subagent"
        ]
    );
    let message = &parts[2]["data"]["message"]["parts"];
    let kinds: Vec<&str> = message
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "step-start",
            "text",
            "dynamic-tool",
            "step-start",
            "dynamic-tool",
            "data-permission"
        ]
    );
    assert_eq!(message[4]["approval"]["approved"], true);
}

#[test]
fn failed_turn_keeps_its_usage() {
    let mut seen = Seen::default();
    let mut turn = start(&mut seen);
    let end = |tokens, cost, error| TurnEnd {
        error,
        usage: Some(TokenUsage {
            input_tokens: Some(tokens),
            ..TokenUsage::default()
        }),
        cost: Some(cost),
        num_turns: Some(1),
        structured_output: Some(raw("[1]").to_owned()),
        details: Some(raw(r#"{"durationMs":5}"#).to_owned()),
        ..ended()
    };
    turn.account(&end(1, 0.5, None));
    let error = Error::new(ErrorKind::Session, "529");
    turn.finish(&end(2, 0.75, Some(error)), false, &mut seen);
    let kinds: Vec<&str> = seen.0.iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "start",
            "start-step",
            "data-structured-output",
            "finish-step",
            "message-metadata",
            "error"
        ]
    );
    assert_eq!(
        seen.1.message()["metadata"]["claude"],
        json!({
            "stopReason": "end", "usage": { "inputTokens": 3 }, "sessionCost": 0.75, "numTurns": 2,
            "_meta": { "durationMs": 5 }, "error": { "kind": "session", "message": "529" }
        })
    );
    assert_eq!(
        (turn.figures().cost(), turn.figures().num_turns()),
        (Some(0.75), Some(2))
    );
    assert_eq!(turn.structured(), Some(json!([1])));
}

#[test]
fn cancelled_turn_is_not_a_failure() {
    let mut seen = Seen::default();
    let mut turn = start(&mut seen);
    let end = TurnEnd {
        error: Some(Error::new(ErrorKind::Session, "aborted")),
        cost: Some(1.0),
        ..ended()
    };
    turn.finish(&end.of_cancelled(), true, &mut seen);
    assert_eq!(seen.0.last().unwrap()["type"], "abort");
    let about = seen.1.message()["metadata"]["claude"].clone();
    assert_eq!(about["stopReason"], "cancelled");
    assert_eq!(about["other"]["error"], "aborted");
    assert_eq!(about["sessionCost"], 1.0);
}
