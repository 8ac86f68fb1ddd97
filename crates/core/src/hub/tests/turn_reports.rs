//! Tests of what the summary of a turn has of its chunks: a restore, and text that is no part of the answer.

use super::play::{Play, params};
use crate::client::Command;
use serde_json::{Value, json};

impl Play {
    /// Opens a session.
    fn opened(&mut self) {
        self.ensure(json!({}));
        let new = self.ready();
        self.answer(&new, &json!({"sessionId": "S"}));
    }

    /// Sends a prompt. Returns the number of the call.
    fn prompts(&mut self) -> u64 {
        self.ask(Command::Prompt(params(json!({"message": "x"}))))
    }

    /// Ends the turn of this prompt of the agent. Returns its summary.
    fn summary(&mut self, call: u64, prompt: &Value) -> Value {
        assert_eq!(prompt["method"], "session/prompt", "{prompt}");
        self.answer(prompt, &json!({"stopReason": "end_turn"}));
        self.result(call).clone()
    }

    fn says(&mut self, text: &str, meta: &Value) {
        let content = json!({"type": "text", "text": text});
        let chunk =
            json!({"sessionUpdate": "agent_message_chunk", "content": content, "_meta": meta});
        self.update("S", &chunk);
    }
}

#[test]
fn summary_has_the_receipt_of_the_restore_in_its_turn() {
    let mut play = Play::new();
    play.opened();
    let call = play.prompts();
    let prompt = play.sent();
    play.says("one", &Value::Null);
    let first = play.summary(call, &prompt);
    assert_eq!(first["metadata"]["recovery"], Value::Null);
    play.crash();
    let call = play.prompts();
    let resume = play.ready();
    assert_eq!(resume["method"], "session/resume", "{resume}");
    let prompt = play.answer(&resume, &json!({}));
    play.says("two", &Value::Null);
    let second = play.summary(call, &prompt);
    let recovery = &second["metadata"]["recovery"];
    assert_eq!(
        (&recovery["rung"], &recovery["memory"]),
        (&json!("resume"), &json!("kept")),
        "{second}"
    );
    // The session is live in the next turn.
    let call = play.prompts();
    let prompt = play.sent();
    play.says("three", &Value::Null);
    let third = play.summary(call, &prompt);
    assert_eq!(third["metadata"]["recovery"], Value::Null);
}

#[test]
fn text_that_is_marked_as_a_notice_is_no_part_of_the_answer() {
    let mut play = Play::new();
    play.opened();
    let call = play.prompts();
    let prompt = play.sent();
    let kind = |kind: &str| json!({"claudeCode": {"kind": kind, "level": "warning"}});
    play.says("**Warning:** it changes", &kind("informational"));
    play.says("**Warning:** not marked, ", &Value::Null);
    play.says("another kind", &kind("other"));
    let summary = play.summary(call, &prompt);
    assert_eq!(summary["text"], "**Warning:** not marked, another kind");
}
