//! Tests of `execute`: its session, its attempts, its limit, and what is left after it.

use super::fixture::{A, Fixture};
use super::play::{Play, params};
use crate::client::{Command, History};
use crate::hub::{AgentInput, Exit, HubCx};
use crate::store::{CardQuery, LogFile, Store};
use acpipe_model::error::{Error, ErrorKind};
use serde_json::{Value, json};
use std::time::Duration;

/// A store that must not be used.
#[derive(Debug)]
struct NoStore;

impl Store for NoStore {
    fn has(&self, _: &str) -> Result<bool, Error> {
        Ok(false)
    }
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        panic!("session {id:?} is stored")
    }
    fn list(&mut self, _: u64, _: CardQuery) -> bool {
        false
    }
}

impl Play {
    fn execute(&mut self, wish: &Value) -> u64 {
        self.ask(Command::Execute(params(wish.clone())))
    }

    /// Answers the handshake and the opening of the session; returns the prompt.
    fn prompted(&mut self) -> Value {
        let new = self.ready_with(&json!({"close": {}}));
        assert_eq!(new["method"], "session/new", "{new}");
        let prompt = self.answer(&new, &json!({"sessionId": "S"}));
        assert_eq!(prompt["method"], "session/prompt", "{prompt}");
        prompt
    }

    fn text(&mut self, text: &str) {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        self.update("S", &update);
    }

    /// Ends the turn with this text; returns the next call.
    fn reply(&mut self, prompt: &Value, text: &str) -> Value {
        self.text(text);
        self.answer(prompt, &json!({"stopReason": "end_turn"}))
    }

    fn passed(&mut self, since: std::time::Instant) -> Duration {
        self.wait();
        self.now - since
    }
}

fn texts(prompt: &Value) -> Vec<String> {
    let parts = prompt["params"]["prompt"].as_array().unwrap();
    let text = |part: &Value| part["text"].as_str().unwrap().to_owned();
    parts.iter().map(text).collect()
}

#[test]
fn execute_answers_with_the_summary_and_leaves_nothing() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go", "context": {"branch": "main", "n": 1}}));
    let prompt = play.prompted();
    let [context, message] = texts(&prompt).try_into().unwrap();
    assert!(
        context.contains("{\n  \"branch\": \"main\",\n  \"n\": 1\n}"),
        "{context}"
    );
    assert_eq!(message, "go");
    let close = play.reply(&prompt, "done");
    assert_eq!(
        (&close["method"], &close["params"]["sessionId"]),
        (&json!("session/close"), &json!("S"))
    );
    let summary = play.result(call).clone();
    assert_eq!(
        (&summary["text"], &summary["attempts"]),
        (&json!("done"), &json!(1))
    );
    let id = summary["sessionId"].clone();
    assert!(id.as_str().unwrap().starts_with("execute-"), "{id}");
    assert!(play.client.chunks.iter().any(|session| *session == id));
    let get = play.history(History::GetSession(params(json!({"sessionId": id}))));
    assert_eq!(play.failed(get), Some(ErrorKind::SessionNotFound));
    // The agent stays for the next call.
    let next = play.execute(&json!({"message": "again", "sessionId": "mine"}));
    let new = play.sent();
    assert_eq!(new["method"], "session/new");
    let prompt = play.answer(&new, &json!({"sessionId": "S"}));
    play.reply(&prompt, "yes");
    assert_eq!(play.result(next)["sessionId"], "mine");
}

#[test]
fn invalid_execute_calls_start_nothing() {
    let long = 11_u64 * 365 * 24 * 3_600_000;
    for (wish, field) in [
        (
            json!({"message": "x", "outputSchema": {"type": "int"}}),
            "outputSchema",
        ),
        (
            json!({"message": "x", "options": {"outputSchema": 7}}),
            "options.outputSchema",
        ),
        (json!({"message": "x", "timeoutMs": 0}), "timeoutMs"),
        (json!({"message": "x", "timeoutMs": long}), "timeoutMs"),
        (json!({"message": "x", "maxTurns": 0}), "maxTurns"),
        (json!({"message": "x", "maxTurns": 3}), "options.maxTurns"),
        (json!({"message": "x", "cwd": "here"}), "cwd"),
        (json!({"message": "x", "sessionId": ""}), "sessionId"),
        (json!({"message": {"parts": []}}), "message.parts"),
    ] {
        let mut play = Play::with(Box::new(NoStore));
        let call = play.execute(&wish);
        let error = play.client.answers[&call].as_ref().unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams, "{error}");
        assert_eq!(error.data["field"], field);
        assert!(play.hub.effects(play.now).is_empty(), "{wish}");
        assert_eq!(play.hub.router.sessions().keys().count(), 0, "{wish}");
    }
}

#[test]
fn crashed_agent_is_tried_three_times() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go"}));
    for pause in [1, 2] {
        let prompt = play.prompted();
        assert_eq!(texts(&prompt), ["go"]);
        play.text("half");
        play.crash();
        let crashed = play.now;
        assert!(!play.client.answers.contains_key(&call));
        assert_eq!(play.passed(crashed), Duration::from_secs(pause));
    }
    play.prompted();
    play.text("last");
    play.crash();
    let summary = play.result(call);
    assert_eq!(summary["attempts"], 3);
    assert_eq!(summary["errors"][0]["kind"], "agentExited");
    assert_eq!(summary["text"], "last");
    assert_eq!(play.hub.router.sessions().keys().count(), 0);
}

#[test]
fn second_attempt_answers_with_its_own_text() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go"}));
    play.prompted();
    play.text("half");
    play.crash();
    play.wait();
    let prompt = play.prompted();
    play.reply(&prompt, "whole");
    let summary = play.result(call);
    assert_eq!(
        (&summary["text"], &summary["isError"]),
        (&json!("whole"), &json!(false))
    );
    assert_eq!(summary["attempts"], 2);
}

#[test]
fn client_is_asked_for_permission_and_notified_of_another_attempt() {
    let mut t = Fixture::with(&[A]);
    let wish = json!({"message": "go", "sessionId": "mine"});
    t.call(A, Command::Execute(params(wish)));
    t.answer_all();
    t.ask_permission();
    let ask = t.asked(A)[0];
    let outcome = json!({"outcome": "selected", "optionId": "y"});
    t.answer(A, ask, &json!({ "outcome": outcome }));
    assert_eq!(t.decided(), Some("y"));
    let agent = *t.agents.last().unwrap();
    let exited = AgentInput::Exited(Exit::default());
    let mut cx = HubCx::new(t.now, &mut t.sinks);
    assert!(t.hub.agent(agent, exited, &mut cx).is_none());
    t.settle();
    let notices = t.chunks(A, &["data-notice"]);
    let title = "The agent failed (agentExited); trying again in 1 s";
    assert_eq!(notices.last().unwrap()["data"]["title"], title);
}

#[test]
fn call_without_retries_fails_at_the_first_crash() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go", "retry": false}));
    play.prompted();
    play.crash();
    assert_eq!(play.result(call)["errors"][0]["kind"], "agentExited");
}

#[test]
fn agent_that_fails_to_start_is_tried_three_times() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go"}));
    for pause in [1, 2] {
        play.sent();
        play.crash();
        let crashed = play.now;
        assert!(
            !play.client.answers.contains_key(&call),
            "{:?}",
            play.client.answers
        );
        assert_eq!(play.passed(crashed), Duration::from_secs(pause));
    }
    play.sent();
    play.crash();
    assert_eq!(play.failed(call), Some(ErrorKind::AgentStart));
    play.hub.tick(&mut HubCx::new(play.now, &mut play.client));
    assert_eq!(play.hub.router.sessions().keys().count(), 0);
}

#[test]
fn malformed_response_is_tried_again() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go"}));
    let prompt = play.prompted();
    play.answer(&prompt, &json!({"stopReason": 7}));
    assert!(
        !play.client.answers.contains_key(&call),
        "{:?}",
        play.client.answers
    );
    play.wait();
    let prompt = play.sent();
    assert_eq!(texts(&prompt), ["go"]);
    play.reply(&prompt, "better");
    assert_eq!(play.result(call)["attempts"], 2);
}

#[test]
fn cancel_ends_a_call_at_any_time() {
    let cancel = |play: &mut Play| {
        let cancel = json!({"sessionId": "mine"});
        let cancel = play.ask(Command::Cancel(params(cancel)));
        assert_eq!(play.result(cancel)["cancelled"], true);
    };
    let wish = json!({"message": "go", "sessionId": "mine"});
    // Before the agent is ready.
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&wish);
    cancel(&mut play);
    assert_eq!(play.failed(call), Some(ErrorKind::Cancelled));
    // During the pause after a crash.
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&wish);
    play.prompted();
    play.crash();
    cancel(&mut play);
    assert_eq!(play.result(call)["stopReason"], "cancelled");
    assert_eq!(play.hub.router.sessions().keys().count(), 0);
    // While the agent works.
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&wish);
    let prompt = play.prompted();
    cancel(&mut play);
    assert_eq!(play.sent()["method"], "session/cancel");
    play.answer(&prompt, &json!({"stopReason": "cancelled"}));
    assert_eq!(play.result(call)["stopReason"], "cancelled");
    assert_eq!(play.hub.router.sessions().keys().count(), 0);
}

#[test]
fn limit_of_a_call_covers_all_attempts() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go", "timeoutMs": 1500}));
    let began = play.now;
    play.prompted();
    play.crash();
    play.wait();
    let prompt = play.prompted();
    play.text("partial");
    assert_eq!(play.passed(began), Duration::from_millis(1500));
    assert_eq!(play.sent()["method"], "session/cancel");
    play.answer(&prompt, &json!({"stopReason": "cancelled"}));
    let summary = play.result(call);
    assert_eq!(summary["errors"][0]["kind"], "timeout");
    assert_eq!(summary["errors"][0]["data"]["stage"], "turn");
    assert_eq!(summary["text"], "partial");
}

#[test]
fn limit_of_a_call_ends_the_pause_between_attempts() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&json!({"message": "go", "timeoutMs": 500}));
    play.prompted();
    play.text("partial");
    play.crash();
    play.wait();
    let summary = play.result(call);
    assert_eq!(summary["errors"][0]["kind"], "timeout");
    assert_eq!(play.hub.router.sessions().keys().count(), 0);
}

const SCHEMA: &str = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;

fn with_schema() -> Value {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    json!({"message": "go", "outputSchema": schema})
}

#[test]
fn structured_answer_is_taken_from_the_text() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&with_schema());
    let prompt = play.prompted();
    let [message, request] = texts(&prompt).try_into().unwrap();
    assert_eq!(message, "go");
    assert!(request.contains(SCHEMA), "{request}");
    play.reply(&prompt, "Here it is:\n```json\n{\"a\": 1}\n```");
    let summary = play.result(call);
    assert_eq!(summary["structuredOutput"], json!({"a": 1}));
    assert_eq!(
        (&summary["isError"], &summary["attempts"]),
        (&json!(false), &json!(1))
    );
}

#[test]
fn wrong_answer_is_corrected_once() {
    for (second, fits) in [
        ("{\"a\": 2}", true),
        ("{\"a\": \"x\"}", false),
        ("no", false),
    ] {
        let mut play = Play::with(Box::new(NoStore));
        let call = play.execute(&with_schema());
        let prompt = play.prompted();
        let repair = play.reply(&prompt, "{\"b\": \"wrong\"}");
        assert_eq!(repair["params"]["sessionId"], "S");
        let [request] = texts(&repair).try_into().unwrap();
        assert!(
            request.contains("- the answer: \"a\" is a required property"),
            "{request}"
        );
        play.reply(&repair, second);
        let summary = play.result(call);
        assert_eq!(summary["attempts"], 2);
        assert_eq!(summary["isError"], !fits, "{summary}");
        assert_eq!(summary["text"], second);
        let answer = serde_json::from_str(second).unwrap_or(Value::Null);
        assert_eq!(summary["structuredOutput"], answer);
        if !fits {
            let error = &summary["errors"][0];
            assert_eq!(error["kind"], "schemaMismatch");
            assert_eq!(error["data"]["violations"].as_array().unwrap().len(), 1);
            let raw = error["data"]["raw"].as_str().unwrap().replace(' ', "");
            assert_eq!(raw, second.replace(' ', ""));
        }
    }
}

#[test]
fn crash_during_a_correction_begins_anew() {
    let mut play = Play::with(Box::new(NoStore));
    let call = play.execute(&with_schema());
    let prompt = play.prompted();
    play.reply(&prompt, "no");
    play.crash();
    play.wait();
    let prompt = play.prompted();
    assert_eq!(texts(&prompt).len(), 2);
    play.reply(&prompt, "{\"a\": 3}");
    assert_eq!(play.result(call)["structuredOutput"], json!({"a": 3}));
    assert_eq!(play.result(call)["attempts"], 3);
}

#[test]
fn sessions_check_the_answers_of_all_their_prompts() {
    let mut play = Play::new();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    play.ask(Command::Connect(params(json!({}))));
    play.ready();
    let options = json!({"outputSchema": schema});
    play.ensure(json!({"sessionId": "s", "options": options}));
    let new = play.sent();
    play.answer(&new, &json!({"sessionId": "S"}));
    for (message, parts) in [("one", 2), ("/compact", 1), ("two", 2)] {
        let wish = json!({"sessionId": "s", "message": message});
        let call = play.ask(Command::Prompt(params(wish)));
        let prompt = play.sent();
        assert_eq!(texts(&prompt).len(), parts, "{message}");
        let text = if parts == 1 {
            "compacted"
        } else {
            "{\"a\": 1}"
        };
        play.reply(&prompt, text);
        let summary = play.result(call);
        assert_eq!(summary["isError"], false, "{summary}");
        assert_eq!(summary["structuredOutput"].is_object(), parts == 2);
    }
}
