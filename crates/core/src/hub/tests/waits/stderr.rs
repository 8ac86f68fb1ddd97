//! Test of an agent's stderr in the error of a turn without output.

use super::{Command, Play, params};
use serde_json::{Value, json};

/// Returns the error of a turn without output in which the agent wrote this to stderr.
fn error_of(stderr: &[u8]) -> Value {
    let (mut play, hello) = Play::new("agent", &[]);
    play.started();
    play.write_stderr(b"error: of another turn\n");
    play.answer(&hello, &json!({"protocolVersion": 1}));
    play.ask(Command::Ensure(params(json!({}))));
    let call = play.sent();
    play.answer(&call, &json!({"sessionId": "S"}));
    let prompt = play.ask(Command::Prompt(params(json!({"message": "x"}))));
    let call = play.sent();
    play.write_stderr(stderr);
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    let summary = play.client.answers[&prompt].as_ref().unwrap();
    summary["errors"][0].clone()
}

#[test]
fn empty_turn_error_includes_stderr() {
    let silent = error_of(b"");
    assert_eq!(silent["kind"], "emptyTurn");
    assert_eq!(
        silent["message"],
        "The agent ended its turn without any output."
    );
    assert_eq!(silent["data"], json!({}));

    let error = error_of(b"asking the model\nerror: 401 unauthorized\n");
    assert_eq!(
        error["message"],
        "The agent ended its turn without any output; stderr: error: 401 unauthorized"
    );
    let all = "asking the model\nerror: 401 unauthorized\n";
    assert_eq!(error["data"]["stderr"], all);

    let error = error_of(b"asking the model\n");
    assert_eq!(
        error["message"], silent["message"],
        "it looks like no error"
    );
    assert_eq!(error["data"]["stderr"], "asking the model\n");
}
