//! Tests of the total limit of a call: it includes whatever the call waits for, and the error names that.

use super::{Play, S, Timeout, params, text};
use crate::client::Command;
use acpipe_model::error::{Error, ErrorKind};
use serde_json::{Value, json};

/// Wish of a call with a limit of four seconds.
fn limited(mut wish: Value) -> Value {
    wish["timeoutMs"] = 4000.into();
    wish
}

impl Play {
    fn ensure(&mut self, wish: Value) -> u64 {
        self.ask(Command::Ensure(params(wish)))
    }

    fn prompt(&mut self, wish: Value) -> u64 {
        self.ask(Command::Prompt(params(wish)))
    }

    fn is_answered(&self, token: u64) -> bool {
        self.client.answers.contains_key(&token)
    }
}

/// Asserts that a call fails after the fourth second, and not before, with the error of a stage.
fn assert_ends(play: &mut Play, token: u64, stage: &str) {
    play.pass(S(3));
    assert!(!play.is_answered(token), "{stage}");
    play.pass(S(1));
    assert!(play.is_answered(token), "{stage}: not answered");
    let error: &Error = play.error(token);
    assert_eq!(error.kind, ErrorKind::Timeout, "{stage}");
    assert_eq!(
        (&error.data["stage"], &error.data["waitedMs"]),
        (&json!(stage), &json!(4000)),
        "{error:?}"
    );
    assert!(
        error.message.contains("4 s") || error.message.contains("4s"),
        "{error}"
    );
    assert!(error.message.contains("--max-time"), "{error}");
}

#[test]
fn start_of_the_agent_counts() {
    let connect = |play: &mut Play| play.ask(Command::Connect(params(limited(json!({})))));
    let ensure = |play: &mut Play| play.ensure(limited(json!({})));
    let execute =
        |play: &mut Play| play.ask(Command::Execute(params(limited(json!({"message": "x"})))));
    let calls: [fn(&mut Play) -> u64; 3] = [connect, ensure, execute];
    for call in calls {
        for (has_started, stage) in [(false, "spawn"), (true, "initialize")] {
            let (mut play, _) = Play::new("agent", &[]);
            if has_started {
                play.started();
            }
            let token = call(&mut play);
            assert_ends(&mut play, token, stage);
        }
    }
}

#[test]
fn prompt_that_starts_the_agent_of_a_stored_session_counts_its_start() {
    let (mut play, _, call) = Play::opening(&[], json!({}));
    play.answer(&call, &json!({"sessionId": "S"}));
    play.hear(super::AgentInput::Exited(crate::hub::Exit::default()));
    let token = play.prompt(limited(json!({"message": "x"})));
    play.sent();
    play.started();
    assert_ends(&mut play, token, "initialize");
}

#[test]
fn opening_of_the_session_counts() {
    // A new session, and one that is loaded and goes on replaying.
    for wish in [json!({}), json!({"agentSessionId": "S"})] {
        let (mut play, _, call) = Play::opening(&[], limited(wish));
        let is_load = call["method"] == "session/load";
        for _ in 0..3 {
            play.pass(S(1));
            if is_load {
                play.update("S", &text());
            }
        }
        play.pass(S(1));
        let error = play.error(play.tokens);
        assert_eq!(error.data["stage"], "open", "{error:?}");
        // Nothing waits for it, so the opening ends.
        let again = play.ensure(json!({}));
        assert!(!play.is_answered(again));
        assert_eq!(play.sent()["method"], "session/new");
    }
}

#[test]
fn setting_of_the_opening_counts() {
    let wish = limited(json!({"options": {"mode": "b"}}));
    let (mut play, token, call) = Play::opening(&[], wish);
    let modes = json!({"currentModeId": "a", "availableModes": [
        {"id": "a", "name": "A"}, {"id": "b", "name": "B"}]});
    play.answer(&call, &json!({"sessionId": "S", "modes": modes}));
    assert_eq!(play.sent()["method"], "session/set_mode");
    assert_ends(&mut play, token, "set");
}

#[test]
fn queue_counts_and_the_running_turn_goes_on() {
    let (mut play, running, call) = Play::prompted(&[]);
    let token = play.prompt(limited(json!({"message": "next"})));
    assert_ends(&mut play, token, "queue");
    assert!(!play.is_answered(running));
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    assert!(play.is_answered(running));
    assert_eq!(play.sent(), Value::Null, "the prompt is not sent");
}

#[test]
fn turn_gets_what_the_queue_has_left() {
    let (mut play, _, call) = Play::prompted(&[]);
    let token = play.prompt(limited(json!({"message": "next"})));
    play.pass(S(3));
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    let call = play.sent();
    assert_eq!(call["method"], "session/prompt");
    play.pass(S(1));
    assert_eq!(play.sent()["method"], "session/cancel");
    play.answer(&call, &json!({"stopReason": "cancelled"}));
    assert_eq!(play.turn_error(token)["data"]["stage"], "turn");
}

#[test]
fn cancel_that_the_agent_does_not_answer_ends_the_call() {
    let (mut play, _, call) = Play::opening(&[(Timeout::Cancel, 5)], json!({}));
    play.answer(&call, &json!({"sessionId": "S"}));
    let token = play.prompt(limited(json!({"message": "x"})));
    play.sent();
    play.pass(S(4));
    assert_eq!(play.sent()["method"], "session/cancel");
    assert!(!play.is_answered(token));
    play.pass(S(5));
    let error = play.turn_error(token);
    assert_eq!(error["data"]["stage"], "turn");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("session/cancel"), "{message}");
}

#[test]
fn other_calls_go_on_waiting() {
    let (mut play, first, call) = Play::opening(&[], json!({}));
    let token = play.ensure(limited(json!({})));
    assert_ends(&mut play, token, "open");
    assert!(!play.is_answered(first));
    play.answer(&call, &json!({"sessionId": "S"}));
    play.result_of(first);

    let (mut play, hello) = Play::new("agent", &[]);
    play.started();
    let token = play.ask(Command::Connect(params(limited(json!({})))));
    assert_ends(&mut play, token, "initialize");
    play.answer(&hello, &json!({"protocolVersion": 1}));
    play.result_of(2);
}

impl Play {
    fn result_of(&self, token: u64) {
        self.client.answers[&token].as_ref().expect("a result");
    }
}

#[test]
fn answered_calls_leave_no_limit() {
    let (mut play, _, call) = Play::opening(&[], json!({}));
    play.answer(&call, &json!({"sessionId": "S"}));
    let limit = |play: &Play| play.hub.lifecycle.limit_passes_at();
    assert_eq!(limit(&play), None);
    play.prompt(limited(json!({"message": "x"})));
    let call = play.sent();
    assert!(limit(&play).is_some());
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    assert_eq!((play.sent(), limit(&play)), (Value::Null, None));
    // Calls that are answered at once, or refused.
    play.ensure(limited(json!({})));
    play.ask(Command::Connect(params(limited(json!({})))));
    play.ensure(limited(json!({"sessionId": "t", "agent": "none"})));
    assert_eq!((play.sent(), limit(&play)), (Value::Null, None));
}

#[test]
fn time_before_the_call_counts() {
    let late = |mut wish: Value| {
        wish["elapsedMs"] = 3000.into();
        limited(wish)
    };
    let connect = |play: &mut Play, wish| play.ask(Command::Connect(params(wish)));
    let calls: [fn(&mut Play, Value) -> u64; 2] = [connect, Play::ensure];
    for call in calls {
        let (mut play, _) = Play::new("agent", &[]);
        let token = call(&mut play, late(json!({})));
        play.pass(S(1));
        assert_eq!(play.error(token).data["waitedMs"], 4000);
    }
    let (mut play, _, call) = Play::prompted(&[]);
    let token = play.prompt(late(json!({"message": "next"})));
    play.pass(S(1));
    assert_eq!(play.error(token).data["waitedMs"], 4000);
    play.answer(&call, &json!({"stopReason": "end_turn"}));
}

#[test]
fn limit_that_is_not_valid_is_refused() {
    let (mut play, _, call) = Play::opening(&[], json!({}));
    play.answer(&call, &json!({"sessionId": "S"}));
    for ms in [0, u64::MAX] {
        for token in [
            play.ensure(json!({"timeoutMs": ms})),
            play.prompt(json!({"message": "x", "timeoutMs": ms})),
            play.ask(Command::Connect(params(json!({"timeoutMs": ms})))),
        ] {
            assert_eq!(play.error(token).data["field"], "timeoutMs");
        }
    }
}
