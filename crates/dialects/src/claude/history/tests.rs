//! Tests with handwritten files in the CLI's format, and the messages that result from them.

use super::*;
use acpipe_core::replay::Replay;
use serde_json::{Value, json};

/// A file under construction: each record follows the one before unless it names another.
#[derive(Default)]
struct File {
    lines: Vec<String>,
    last: Option<String>,
}

impl File {
    fn record(&mut self, uuid: &str, mut record: Value) -> &mut Self {
        if record.get("parentUuid").is_none() {
            record["parentUuid"] = json!(self.last);
        }
        record["uuid"] = uuid.into();
        self.last = Some(uuid.to_owned());
        self.lines.push(record.to_string());
        self
    }

    fn user(&mut self, uuid: &str, content: impl Into<Value>) -> &mut Self {
        let content = content.into();
        self.record(
            uuid,
            json!({"type": "user", "message": {"role": "user", "content": content}}),
        )
    }

    fn answer(&mut self, uuid: &str, id: &str, block: &Value) -> &mut Self {
        let message = json!({"id": id, "model": "m", "content": [block]});
        self.record(uuid, json!({"type": "assistant", "message": message}))
    }

    fn result(&mut self, uuid: &str, parent: &str, call: &str, said: &str) -> &mut Self {
        let block =
            json!({"type": "tool_result", "tool_use_id": call, "content": said, "is_error": false});
        self.record(
            uuid,
            json!({
                "type": "user", "parentUuid": parent, "toolUseResult": {"stdout": said},
                "message": {"role": "user", "content": [block]},
            }),
        )
    }

    /// Returns the messages in short form: role and parts.
    fn messages(&self) -> Vec<String> {
        self.replay().iter().map(brief).collect()
    }

    fn replay(&self) -> Vec<Value> {
        let mut replay = Replay::new("claude", "m".to_owned());
        self.each(|update, original| replay.update(update, original));
        replay.finish().values().collect()
    }

    /// Passes all updates to `take`, in order.
    fn each(&self, mut take: impl FnMut(&Update<'_>, Original<'_>)) {
        let mut chain = Chain::default();
        for line in &self.lines {
            // A line that is not a record has no effect.
            let _ = chain.line(line);
        }
        let mut history = chain.finish();
        for line in &self.lines {
            let mut events = Vec::new();
            let _ = history.line(line, "s", &mut events);
            for event in events {
                let AgentEvent::Update {
                    session,
                    update,
                    original,
                } = event
                else {
                    panic!("{event:?}");
                };
                assert_eq!(session, "s");
                take(&update, original);
            }
        }
    }
}

fn brief(message: &Value) -> String {
    let part = |part: &Value| {
        let kind = part["type"].as_str().unwrap();
        match kind {
            "text" => part["text"].as_str().unwrap().to_owned(),
            "reasoning" => format!("({})", part["text"].as_str().unwrap()),
            "dynamic-tool" => format!("{}:{}", part["toolCallId"], part["state"]).replace('"', ""),
            "file" => part["url"].as_str().unwrap().to_owned(),
            _ => kind.to_owned(),
        }
    };
    let parts = message["parts"].as_array().unwrap().iter();
    // The view's tests cover how steps are shown.
    let parts: Vec<_> = parts
        .filter(|p| p["type"] != "step-start")
        .map(part)
        .collect();
    format!("{}: {}", message["role"].as_str().unwrap(), parts.join(" "))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "true"}})
}

#[test]
fn each_message_of_the_model_begins_a_step() {
    let mut file = File::default();
    file.user("u1", "x")
        .answer("a0", "m1", &thought())
        .answer("a1", "m1", &text("One."))
        .answer("a2", "m1", &call("t1"))
        .result("r1", "a2", "t1", "done")
        .answer("a3", "m2", &text("Two."));
    let mut seen = Vec::new();
    file.each(|update, _| {
        seen.push(match update {
            Update::Step => "step",
            Update::Message(piece) if piece.role == MessageRole::User => "user",
            Update::Message(_) => "words",
            Update::Tool(tool) if tool.begins => "call",
            Update::Tool(_) => "result",
            Update::TextEnd { provider: None } => "end",
            Update::TextEnd {
                provider: Some((name, said)),
            } => {
                assert_eq!(*name, "anthropic");
                assert_eq!(said.get("signature").unwrap().get(), "\"c2ln\"");
                "signed"
            }
            other => panic!("{other:?}"),
        });
    });
    let want = "user step words signed words end call result step words end";
    assert_eq!(seen.join(" "), want);
}

#[test]
fn a_turn_is_one_message_with_steps() {
    let mut file = File::default();
    file.user("u1", "do it")
        .record(
            "x1",
            json!({"type": "attachment", "attachment": {"type": "date"}}),
        )
        .answer("a1", "m1", &thought())
        .answer("a2", "m1", &text("Running. "))
        .answer("a3", "m1", &call("t1"))
        .result("r1", "a3", "t1", "done")
        .answer("a4", "m2", &text("It is done."))
        .user("u2", json!([text("and"), text(" again")]))
        .answer("a5", "m3", &text("Yes."));
    let messages = file.replay();
    let all: Vec<_> = messages.iter().map(brief).collect();
    assert_eq!(
        all,
        [
            "user: do it",
            "assistant: (hm) Running.  t1:output-available It is done.",
            "user: and again",
            "assistant: Yes.",
        ]
    );
    let parts = messages[1]["parts"].as_array().unwrap();
    let tool = parts
        .iter()
        .find(|part| part["type"] == "dynamic-tool")
        .unwrap();
    assert_eq!(tool["toolName"], "Bash");
    assert_eq!(tool["input"], json!({"command": "true"}));
    assert!(
        tool["output"].to_string().contains(r#""stdout":"done""#),
        "{tool}"
    );
    assert_eq!(messages[0]["metadata"]["claude"]["messageId"], "u1");
}

/// As recorded: each call follows the previous call, each result follows its call, and the answer follows one
/// of the results.
#[test]
fn parallel_tools_are_all_in_the_history() {
    let mut file = File::default();
    file.user("u1", "both")
        .answer("a1", "m1", &call("t1"))
        .answer("a2", "m1", &call("t2"))
        .result("r2", "a2", "t2", "two")
        .result("r1", "a1", "t1", "one")
        .answer("a3", "m2", &text("Both."));
    let want = [
        "user: both",
        "assistant: t1:output-available t2:output-available Both.",
    ];
    assert_eq!(file.messages(), want);
}

#[test]
fn rewound_branch_is_not_in_the_history() {
    let mut file = File::default();
    file.user("u1", "first")
        .answer("a1", "m1", &text("One."))
        .user("u2", "wrong")
        .answer("a2", "m2", &call("t1"))
        .result("r1", "a2", "t1", "done")
        .answer("a3", "m3", &text("Wrong."));
    file.last = Some("a1".to_owned());
    file.user("u3", "right").answer("a4", "m4", &text("Right."));
    let want = [
        "user: first",
        "assistant: One.",
        "user: right",
        "assistant: Right.",
    ];
    assert_eq!(file.messages(), want);
}

#[test]
fn duplicate_records_are_reported_once() {
    let mut file = File::default();
    file.user("u1", "x")
        .answer("a1", "m1", &text("Part. "))
        .answer("a2", "m1", &text("Part. "))
        .answer("a3", "m1", &call("t1"))
        .answer("a4", "m1", &call("t1"))
        .result("r1", "a4", "t1", "done")
        .answer("a5", "m2", &text("Part. "));
    let again = file.lines[0].clone();
    file.lines.push(again);
    // The last record repeats the first, and the branch ends there.
    assert_eq!(file.messages(), ["user: x"]);
    file.lines.pop();
    let want = ["user: x", "assistant: Part.  t1:output-available Part. "];
    assert_eq!(file.messages(), want);
}

#[test]
fn generated_user_text_is_not_shown_as_the_users() {
    let mut file = File::default();
    let note = "<task-notification>\n<task-id>b</task-id>";
    file.user("u1", json!([text("<system-reminder>x</system-reminder>"), text("ask")]))
        .record("u2", json!({"type": "user", "isMeta": true, "message": {"content": "caveat"}}))
        .answer("a1", "m1", &text("Begun"))
        .user("u3", json!([text("[Request interrupted by user]")]))
        .record(
            "u4",
            json!({"type": "user", "origin": {"kind": "task-notification"}, "message": {"content": note}}),
        )
        .answer("a2", "m2", &text("It ended."))
        .user("u5", "<command-name>/cost</command-name><command-args></command-args>")
        .record(
            "s1",
            json!({"type": "system", "subtype": "local_command",
                "content": "<local-command-stdout>Cheap.</local-command-stdout>"}),
        );
    let want = [
        "user: ask",
        "assistant: Begun It ended.",
        "user: /cost",
        "assistant: Cheap.",
    ];
    assert_eq!(file.messages(), want);
}

#[test]
fn text_typed_during_a_turn_is_the_users() {
    let mut file = File::default();
    let said = json!({"type": "queued_command", "commandMode": "prompt", "prompt": "and that"});
    let note = json!({"type": "queued_command", "commandMode": "task-notification", "prompt": "x"});
    file.user("u1", "this")
        .answer("a1", "m1", &call("t1"))
        .result("r1", "a1", "t1", "done")
        .record("q1", json!({"type": "attachment", "attachment": said}))
        .record("q2", json!({"type": "attachment", "attachment": note}))
        .answer("a2", "m2", &text("Both."));
    let want = [
        "user: this",
        "assistant: t1:output-available",
        "user: and that",
        "assistant: Both.",
    ];
    assert_eq!(file.messages(), want);
}

#[test]
fn images_and_documents_are_files_of_the_users() {
    let mut file = File::default();
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}});
    let paper = json!({"type": "document", "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"}});
    let place = json!({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}});
    let plain = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "t"}});
    file.user("u1", json!([text("see"), image, paper, place, plain]));
    let messages = file.replay();
    assert_eq!(
        brief(&messages[0]),
        "user: see data:image/png;base64,aWNvbg== data:application/pdf;base64,cGRm https://x/y.png \
         data-user-message"
    );
    let parts = &messages[0]["parts"];
    assert_eq!(parts[2]["providerMetadata"]["claude"]["title"], "a.pdf");
    // The data is in one place only.
    assert_eq!(
        parts[1].to_string().matches("aWNvbg==").count(),
        1,
        "{parts}"
    );
}

#[test]
fn a_compaction_is_one_with_its_summary_and_hides_nothing() {
    let mut file = File::default();
    file.user("u1", "before")
        .answer("a1", "m1", &text("Before."))
        .record(
            "c1",
            json!({"type": "system", "subtype": "compact_boundary", "parentUuid": null,
                "logicalParentUuid": "a1", "compactMetadata": {"trigger": "manual"}}),
        )
        .record(
            "c2",
            json!({"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
                "message": {"role": "user", "content": "In short."}}),
        )
        .user("u2", "after")
        .answer("a2", "m2", &text("After."));
    let messages = file.replay();
    let all: Vec<_> = messages.iter().map(brief).collect();
    assert_eq!(
        all,
        [
            "user: before",
            "assistant: Before. data-compaction",
            "user: after",
            "assistant: After."
        ]
    );
    let parts = messages[1]["parts"].as_array().unwrap();
    let compaction = parts.last().unwrap();
    assert_eq!(compaction["id"], "c1");
    assert_eq!(compaction["data"]["summary"], "In short.");
    assert_eq!(compaction["data"]["compactMetadata"]["trigger"], "manual");
}

#[test]
fn api_errors_are_not_answers() {
    let mut file = File::default();
    let error = json!({"id": "e", "model": "<synthetic>", "content": [text("API Error: 529")]});
    let none = json!({"id": "n", "model": "<synthetic>", "content": [text(NO_ANSWER)]});
    file.user("u1", "x")
        .record(
            "s1",
            json!({"type": "system", "subtype": "api_error", "retryAttempt": 1}),
        )
        .record(
            "a1",
            json!({"type": "assistant", "isApiErrorMessage": true, "message": error}),
        )
        .user("u2", "y")
        .record("a2", json!({"type": "assistant", "message": none}))
        .answer("a3", "m1", &text("Yes."));
    let messages = file.messages();
    assert_eq!(messages[0], "user: x");
    assert!(messages[1].starts_with("assistant: data-"), "{messages:?}");
    assert!(!messages[1].contains("529"), "{messages:?}");
    assert_eq!(messages[2..], ["user: y", "assistant: Yes."]);
}

#[test]
fn subagent_records_stay_out_of_the_main_thread() {
    let mut file = File::default();
    file.user("u1", "x").answer("a1", "m1", &call("t1"));
    let side = json!({"type": "assistant", "isSidechain": true,
        "message": {"id": "m9", "model": "m", "content": [text("aside")]}});
    file.record("z1", side.clone());
    file.result("r1", "a1", "t1", "done")
        .answer("a2", "m2", &text("Yes."));
    file.record("z2", side);
    let want = ["user: x", "assistant: t1:output-available Yes."];
    assert_eq!(file.messages(), want);
}

#[test]
fn lines_that_cannot_be_read_cost_only_themselves() {
    let mut file = File::default();
    file.user("u1", "x").answer("a1", "m1", &text("One."));
    file.user("u2", "lost").answer("a2", "m2", &text("Two."));
    // The prompt between them was truncated.
    file.lines[2].truncate(20);
    let odd = r#"{"type":"user","uuid":"o","parentUuid":"a2","message":7}"#;
    file.lines
        .extend([odd.to_owned(), "[]".to_owned(), String::new()]);
    let messages = file.messages();
    assert_eq!(messages[0], "user: x");
    assert!(
        messages[1].starts_with("assistant: One. Two."),
        "{messages:?}"
    );
    let mut chain = Chain::default();
    let unusable = file.lines.iter().filter(|line| chain.line(line).is_err());
    assert_eq!(unusable.count(), 2);
    let faults = chain.finish().faults();
    assert_eq!((faults.malformed, faults.blank), (0, 1));
}

#[test]
fn cyclic_records_terminate() {
    let mut file = File::default();
    file.user("u1", "x").answer("a1", "m1", &text("Yes."));
    file.lines[0] = file.lines[0].replace("\"parentUuid\":null", "\"parentUuid\":\"a1\"");
    assert_eq!(file.messages(), ["user: x", "assistant: Yes."]);
}
