//! Tests with updates that no recording of an ACP agent contains.

mod growing;
mod questions;
mod terminals;
mod whole;

use super::*;
use crate::fold::FoldSink;
use crate::profile::Profile;
use crate::turn::Turn;
use Update::{FromSubagent, Refused, Step, StructuredOutput, TextEnd, Tool, TransientUpdate};
use acpipe_json::JsonStr;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::Child;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{
    Content, MessagePiece, MessageRole, OptionKind, Permission, PermissionOption, ToolUpdate,
    TurnEnd, Update,
};
use acpipe_model::request_key::RequestKey;
use acpipe_protocol::wire::TokenUsage;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The chunks of a turn, and the message that they form.
struct Seen(Vec<Value>, FoldSink, ChunkState);

impl Default for Seen {
    fn default() -> Self {
        Self(Vec::new(), FoldSink::default(), ChunkState::new("claude"))
    }
}

impl TurnView for Seen {
    fn event(&mut self, event: &TurnEvent<'_>) {
        let Self(chunks, folding, state) = self;
        state.view(&mut Both(chunks, folding)).event(event);
    }
}

struct Both<'a>(&'a mut Vec<Value>, &'a mut FoldSink);

impl ChunkSink for Both<'_> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.0.push(json(chunk));
        self.1.chunk(chunk);
    }
}

fn json(chunk: &Chunk<'_>) -> Value {
    let mut json = Vec::new();
    chunk.write(&mut json);
    serde_json::from_slice(&json).unwrap()
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

fn original(line: &str) -> Original<'_> {
    Original {
        line,
        cut: |line| serde_json::from_str(line).ok(),
        fields: |line| serde_json::from_str(line).unwrap(),
    }
}

fn piece(role: MessageRole, text: &str) -> Update<'_> {
    Update::Message(MessagePiece {
        role,
        message_id: Some("a".into()),
        content: Content::Text(JsonStr::new(raw(text)).unwrap()),
        subagent: None,
        about: Members::default(),
    })
}

fn says(text: &str) -> Update<'_> {
    piece(MessageRole::Answer, text)
}

fn thinks(text: &str) -> Update<'_> {
    piece(MessageRole::Thought, text)
}

fn call(id: &'static str) -> Update<'static> {
    tool(ToolUpdate {
        id: id.into(),
        name: Some("Bash".into()),
        ..ToolUpdate::default()
    })
}

fn tool(update: ToolUpdate<'_>) -> Update<'_> {
    Tool(Box::new(update))
}

fn writes<'a>(id: &'a str, delta: &'a str) -> Update<'a> {
    tool(ToolUpdate {
        id: id.into(),
        input_delta: JsonStr::new(raw(delta)),
        ..ToolUpdate::default()
    })
}

fn input<'a>(id: &'a str, input: &'a str) -> Update<'a> {
    tool(ToolUpdate {
        id: id.into(),
        input: Some(std::borrow::Cow::Borrowed(raw(input))),
        ..ToolUpdate::default()
    })
}

fn ends<'a>(id: &'a str, status: &'a str, output: &'a str) -> Update<'a> {
    tool(ToolUpdate {
        id: id.into(),
        status: Some(status.into()),
        output: Some(raw(output)),
        ..ToolUpdate::default()
    })
}

/// A permission request for a call, with one option.
fn question(tool: &'static str) -> Permission<'static> {
    Permission {
        acp: None,
        session: "s".into(),
        key: RequestKey::new(Child::MAIN, raw("1")),
        tool: ToolUpdate {
            id: tool.into(),
            ..ToolUpdate::default()
        },
        options: vec![PermissionOption {
            id: "y".into(),
            name: "Yes".into(),
            kind: OptionKind::AllowOnce,
        }],
        raw_options: None,
        form: None,
        other: Members::default(),
    }
}

fn of(update: Update<'_>) -> Update<'_> {
    let update = Box::new(update);
    FromSubagent {
        id: "task".into(),
        update,
    }
}

fn ended() -> TurnEnd {
    TurnEnd {
        reported: "end".into(),
        ..TurnEnd::default()
    }
}

fn start(sink: &mut impl TurnView) -> Turn {
    Turn::start("m".into(), &json!({}), &Arc::default(), sink)
}

fn play(updates: &[Update<'_>]) -> Seen {
    let mut seen = Seen::default();
    let mut turn = start(&mut seen);
    for update in updates {
        turn.update(update, original(r#"{"said":1}"#), &mut seen);
    }
    turn.finish(&ended(), false, &mut seen);
    seen
}

/// The chunks between the first and the last two of a turn, in short form.
fn shown(updates: &[Update<'_>]) -> Vec<String> {
    let chunks = play(updates).0;
    let inner = &chunks[2..chunks.len() - 2];
    let short = |chunk: &Value| {
        let kind = chunk["type"].as_str().unwrap().to_owned();
        let said = ["delta", "inputTextDelta", "input", "errorText", "reason"];
        let id = ["id", "toolCallId", "approvalId"];
        let of = |names: &[&str]| {
            let found = names.iter().find_map(|name| chunk.get(name));
            found.map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        let words = [Some(kind), of(&id), of(&said)];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    inner.iter().map(short).collect()
}

const STEP: [&str; 2] = ["finish-step", "start-step"];

#[test]
fn step_starts_after_output_of_the_previous_one() {
    let hi = ["text-start m.1", "text-delta m.1 hi", "text-end m.1"];
    let more = ["text-start m.2", "text-delta m.2 ho", "text-end m.2"];
    let cases = [
        (vec![Step], vec![]),
        (vec![Step, Update::Notice, Step], vec!["data-notice"]),
        (vec![Step, TextEnd { provider: None }, Step], vec![]),
        (vec![Step, says(r#""hi""#)], hi.to_vec()),
        (
            vec![says(r#""hi""#), Step, Step, says(r#""ho""#)],
            [&hi[..], &STEP, &more].concat(),
        ),
        (
            vec![Update::Other, Step, TransientUpdate, Step, says(r#""hi""#)],
            [&["data-claude"], &STEP[..], &["data-claude"], &hi].concat(),
        ),
    ];
    for (updates, want) in cases {
        assert_eq!(shown(&updates), want, "{updates:?}");
    }
}

#[test]
fn the_input_is_shown_while_it_is_written() {
    let written = ["tool-input-start t", r#"tool-input-delta t {"a":"#];
    let cases = [
        (
            vec![
                call("t"),
                writes("t", r#""{\"a\":""#),
                writes("t", r#""""#),
                writes("t", r#""\ud83d""#),
                writes("t", r#""\ude00""#),
                input("t", r#"{"a":1}"#),
                // A delta after the complete input changes nothing.
                writes("t", r#""}""#),
                ends("t", "completed", "7"),
            ],
            [
                &written[..],
                &["tool-input-delta t 😀", r#"tool-input-available t {"a":1}"#],
                &["tool-output-available t"],
            ]
            .concat(),
        ),
        // The input is incomplete.
        (
            vec![writes("t", r#""{\"a\":""#), ends("t", "failed", r#""no""#)],
            [&written[..], &[r#"tool-input-error t {"a":"#]].concat(),
        ),
        (
            vec![writes("t", r#""{\"a\":""#)],
            [&written[..], &[r#"tool-input-error t {"a":"#]].concat(),
        ),
        // The input is complete, but the agent does not report that.
        (
            vec![
                writes("t", r#""{\"a\":""#),
                writes("t", r#""1}""#),
                ends("t", "completed", "7"),
            ],
            [
                &written[..],
                &[
                    "tool-input-delta t 1}",
                    r#"tool-input-available t {"a":1}"#,
                    "tool-output-available t",
                ],
            ]
            .concat(),
        ),
        // Another change during the input is held back.
        (
            vec![
                writes("t", r#""{\"a\":""#),
                tool(ToolUpdate {
                    id: "t".into(),
                    title: Some("T".into()),
                    ..ToolUpdate::default()
                }),
                input("t", "{}"),
                ends("t", "failed", r#""no""#),
            ],
            [
                &written[..],
                &["tool-input-available t {}", "tool-output-error t no"],
            ]
            .concat(),
        ),
    ];
    for (updates, want) in cases {
        assert_eq!(shown(&updates), want, "{updates:?}");
    }
}

#[test]
fn calls_of_a_finished_step_keep_their_identity() {
    let late = |title: &'static str| {
        tool(ToolUpdate {
            id: "t".into(),
            title: Some(title.into()),
            ..ToolUpdate::default()
        })
    };
    let cases = [
        // The call continues: changes are shown with outputs.
        (
            vec![
                call("t"),
                input("t", r#"{"a":1}"#),
                Step,
                late("x"),
                ends("t", "completed", "7"),
            ],
            vec![
                "tool-input-start t",
                r#"tool-input-available t {"a":1}"#,
                "finish-step",
                "start-step",
                "tool-output-available t",
                "tool-output-available t",
            ],
        ),
        // The input is never completed.
        (
            vec![
                call("t"),
                writes("t", r#""{""#),
                Step,
                writes("t", r#""}""#),
            ],
            vec![
                "tool-input-start t",
                "tool-input-delta t {",
                "tool-input-error t {",
                "finish-step",
                "start-step",
            ],
        ),
        (
            vec![call("t"), Step],
            vec![
                "tool-input-start t",
                "tool-input-available t {}",
                "tool-output-error t The agent restarted its message before it called this tool",
                "finish-step",
                "start-step",
            ],
        ),
    ];
    for (updates, want) in cases {
        assert_eq!(shown(&updates), want, "{updates:?}");
    }
}

#[test]
fn text_block_ends_with_its_metadata() {
    let signed = || {
        let mut said = Members::default();
        said.set_owned("signature", &"s");
        let provider = Some(("anthropic", said));
        TextEnd { provider }
    };
    let both = json!({ "claude": { "messageId": "a" }, "anthropic": { "signature": "s" } });
    let end = |updates: &[Update<'_>]| {
        let chunks = play(updates).0;
        let end = |c: &&Value| {
            c["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("-end"))
        };
        chunks.iter().find(end).unwrap().clone()
    };
    let thought = end(&[thinks(r#""hm""#), signed()]);
    assert_eq!(
        thought,
        json!({ "type": "reasoning-end", "id": "m.1", "providerMetadata": both })
    );
    let text = end(&[says(r#""hm""#), signed()]);
    assert_eq!(text["providerMetadata"], both);
    let plain = end(&[thinks(r#""hm""#), TextEnd { provider: None }]);
    assert_eq!(plain, json!({ "type": "reasoning-end", "id": "m.1" }));
    // Withheld reasoning.
    let bare = play(&[signed()]).1.message();
    assert_eq!(
        bare["parts"][1],
        json!({ "type": "reasoning", "id": "m.1", "text": "", "state": "done",
            "providerMetadata": { "anthropic": { "signature": "s" } } })
    );
}

#[test]
fn a_refusal_of_the_agent_is_shown_once() {
    let refused = || Refused {
        tool: "t".into(),
        reason: "not here".into(),
    };
    let denied = [
        "tool-approval-request t",
        "tool-approval-response m.ask1 not here",
        "tool-output-denied t",
        "data-permission m.ask1",
    ];
    let available = [r#"tool-input-available t {"a":1}"#];
    let again = || ends("t", "failed", r#""not here""#);
    let cases = [
        (
            vec![input("t", r#"{"a":1}"#), refused(), again()],
            [&available[..], &denied].concat(),
        ),
        (
            vec![refused(), again()],
            [&["tool-input-available t {}"], &denied[..]].concat(),
        ),
        (
            vec![
                input("t", r#"{"a":1}"#),
                refused(),
                ends("t", "failed", r#""another""#),
            ],
            [&available[..], &denied, &["data-tool-call t"]].concat(),
        ),
        (
            vec![input("t", r#"{"a":1}"#), again(), refused()],
            [
                &available[..],
                &["tool-output-error t not here", "data-permission m.ask1"],
            ]
            .concat(),
        ),
    ];
    for (updates, want) in cases {
        assert_eq!(shown(&updates), want, "{updates:?}");
    }
    // Older profiles have the reason in the permission request.
    let chunks = play(&[refused()]).0;
    let mut told = Vec::new();
    for chunk in chunks {
        Profile::V5.adapt_stored(chunk, |chunk| told.push(chunk));
    }
    let question = told.iter().find(|c| c["type"] == "data-permission");
    assert_eq!(question.unwrap()["data"]["reason"], "not here");
    assert!(told.iter().any(|c| c["type"] == "tool-output-error"));
}

#[test]
fn transient_updates_are_not_part_of_the_message() {
    let seen = play(&[
        TransientUpdate,
        Update::Other,
        StructuredOutput(raw(r#"{"a":1}"#)),
        of(TransientUpdate),
    ]);
    let parts = seen.1.message()["parts"].clone();
    assert_eq!(
        parts,
        json!([
            { "type": "step-start" },
            { "type": "data-claude", "data": { "update": { "said": 1 } } },
            { "type": "data-structured-output", "id": "structured-output", "data": { "a": 1 } }
        ])
    );
    let transient =
        json!({ "type": "data-claude", "data": { "event": { "said": 1 } }, "transient": true });
    let count = seen.0.iter().filter(|chunk| **chunk == transient).count();
    assert_eq!(count, 2, "{:?}", seen.0);
}
