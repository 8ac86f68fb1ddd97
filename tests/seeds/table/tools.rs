//! Cases of tool calls.

use crate::words::{
    Case, begun, call, change, failed, input, none, output, same, say, status, text,
};
use serde_json::{Value, json};

pub fn cases() -> Vec<Case> {
    let mut cases = life();
    cases.extend(odd_lives());
    cases.extend(inputs());
    cases.extend(names());
    cases.extend(outputs());
    cases.extend(errors());
    cases.extend(metadata());
    cases
}

fn pending() -> Value {
    call(json!({ "title": "T", "status": "pending" }))
}

/// `content` field of a call with these texts.
fn content(texts: &[&str]) -> Value {
    texts
        .iter()
        .map(|text| json!({ "type": "content", "content": { "type": "text", "text": text } }))
        .collect()
}

fn life() -> Vec<Case> {
    let whole = || [begun(none()), input(none()), output(none())];
    vec![
        same(
            &["DA-X15", "DA-X19", "DA-T6"],
            "a tool with no block open: pending is only announced",
            [pending(), status("completed")],
            whole(),
        ),
        same(
            &["DA-X15", "DA-T6"],
            "a tool closes text",
            [say("one"), pending(), status("completed")],
            [&text("#1", "one")[..], &whole()].concat(),
        ),
        same(
            &["DA-T5"],
            "a text after a tool is a new block",
            [say("one"), pending(), status("completed"), say("two")],
            [&text("#1", "one")[..], &whole(), &text("#2", "two")].concat(),
        ),
        same(
            &["DA-X19"],
            "a call without status is only announced",
            [call(json!({ "title": "T" })), status("completed")],
            whole(),
        ),
        same(
            &["DA-X16", "DA-X17", "DA-T7", "DA-T10"],
            "pending, in progress, completed: the input once",
            [
                pending(),
                change(json!({ "status": "in_progress", "rawInput": { "a": 1 } })),
                change(json!({ "status": "completed", "rawOutput": "x" })),
            ],
            [
                begun(none()),
                input(json!({ "input": { "a": 1 } })),
                output(none()),
            ],
        ),
        same(
            &["DA-X18", "DA-T7"],
            "pending, in progress, failed",
            [
                pending(),
                change(json!({ "status": "in_progress", "rawInput": { "a": 1 } })),
                status("failed"),
            ],
            [
                begun(none()),
                input(json!({ "input": { "a": 1 } })),
                failed("Tool call failed"),
            ],
        ),
        same(
            &["DA-T7", "DA-T10"],
            "the same without any input",
            [pending(), status("in_progress"), status("completed")],
            [begun(none()), input(json!({ "input": {} })), output(none())],
        ),
    ]
}

/// Tool states that are repeated, skipped or out of order.
fn odd_lives() -> Vec<Case> {
    let whole = || [begun(none()), input(none()), output(none())];
    vec![
        same(
            &["DA-T8"],
            "the same state twice",
            [
                pending(),
                status("pending"),
                change(json!({ "status": "in_progress", "rawInput": { "a": 1 } })),
                status("in_progress"),
                status("completed"),
                status("completed"),
            ],
            whole(),
        ),
        same(
            &["DA-X12", "DA-X15", "DA-T8"],
            "the same state twice amid a text",
            [
                pending(),
                status("completed"),
                say("one"),
                status("completed"),
            ],
            [&whole()[..], &text("#1", "one")].concat(),
        ),
        same(
            &["DA-X17", "DA-T9"],
            "completed without progress",
            [
                pending(),
                change(json!({ "status": "completed", "rawOutput": "x" })),
            ],
            [begun(none()), input(json!({ "input": {} })), output(none())],
        ),
        same(
            &["DA-X18", "DA-T9"],
            "failed without progress",
            [pending(), status("failed")],
            [
                begun(none()),
                input(json!({ "input": {} })),
                failed("Tool call failed"),
            ],
        ),
        same(
            &["DA-T12"],
            "an update as the first sight of a call",
            [
                change(json!({ "title": "T", "status": "pending" })),
                status("completed"),
            ],
            whole(),
        ),
        same(
            &["DA-X16", "DA-T12"],
            "progress as the first sight of a call",
            [
                change(json!({ "status": "in_progress", "rawInput": { "a": 1 } })),
                status("completed"),
            ],
            whole(),
        )
        .but(&["input-at-once"], [input(none()), output(none())]),
        same(
            &["DA-X17"],
            "completed as the first sight of a call",
            [call(json!({ "title": "T", "status": "completed" }))],
            whole(),
        )
        .but(&["input-at-once"], [input(none()), output(none())]),
    ]
}

fn inputs() -> Vec<Case> {
    let a = |n: u32| json!({ "input": { "a": n } });
    let given = |n: u32| change(json!({ "status": "pending", "rawInput": { "a": n } }));
    let progress = content(&["half"]);
    vec![
        same(
            &["DA-X24", "DA-T11"],
            "the last input told before the result stands with it",
            [pending(), given(1), given(2), status("completed")],
            [begun(none()), input(a(2)), output(none())],
        )
        .but(
            &["input-at-once"],
            [begun(none()), input(a(1)), input(a(2)), output(none())],
        ),
        same(
            &["DA-X15", "DA-X19"],
            "a call whose input is known at once",
            [
                call(json!({ "status": "pending", "rawInput": { "a": 1 } })),
                status("completed"),
            ],
            [begun(none()), input(a(1)), output(none())],
        )
        .but(&["input-at-once"], [input(a(1)), output(none())]),
        same(
            &["DA-X16"],
            "a change in progress",
            [
                pending(),
                change(json!({ "status": "in_progress", "rawInput": { "a": 1 } })),
                change(json!({ "status": "in_progress", "content": progress })),
                status("completed"),
            ],
            [begun(none()), input(a(1)), output(none())],
        )
        .but(
            &["shown-again"],
            [
                begun(none()),
                input(a(1)),
                input(json!({
                    "input": { "a": 1 },
                    "toolMetadata": { "acp": { "content": progress } },
                })),
                output(none()),
            ],
        ),
        same(
            &["DA-X24"],
            "the last title told before the result stands with it",
            [pending(), status("completed")],
            [
                begun(json!({ "title": "T" })),
                input(json!({ "title": "T" })),
                output(none()),
            ],
        ),
        same(
            &["DA-X17"],
            "a change after completed",
            [
                pending(),
                change(json!({ "status": "completed", "rawOutput": "x" })),
                change(json!({ "status": "completed", "rawOutput": "y" })),
            ],
            [begun(none()), input(none()), output(none())],
        )
        .but(
            &["shown-again"],
            [
                begun(none()),
                input(none()),
                output(json!({ "output": { "rawOutput": "x" } })),
                output(json!({ "output": { "rawOutput": "y" } })),
            ],
        ),
    ]
}

/// A call that ends at once: `seed` and `own` are the names of its tool in the chunks of the earlier system
/// and of acpipe.
fn named(
    rows: &'static [&'static str],
    what: &'static str,
    fields: Value,
    seed: &str,
    own: &str,
) -> Case {
    let title = fields.get("title").cloned();
    let chunks = |name: &str| {
        let fields = json!({ "toolName": name, "title": title });
        [begun(fields.clone()), input(fields), output(none())]
    };
    let case = same(
        rows,
        what,
        [call(fields), status("completed")],
        chunks(seed),
    );
    if seed == own {
        case
    } else {
        case.but(&["tool-name"], chunks(own))
    }
}

fn names() -> Vec<Case> {
    let meta = json!({ "claudeCode": { "toolName": "Bash" } });
    vec![
        named(
            &["DA-X22", "DA-T14"],
            "the name in _meta",
            json!({ "title": "ls -l", "kind": "execute", "_meta": meta }),
            "Bash",
            "Bash",
        ),
        named(
            &["DA-X22", "DA-T14"],
            "a title and a kind",
            json!({ "title": "ls -l", "kind": "execute" }),
            "ls -l",
            "execute",
        ),
        named(
            &["DA-X22"],
            "a title alone",
            json!({ "title": "ls -l" }),
            "ls -l",
            "other",
        ),
        named(
            &["DA-X22", "DA-T13"],
            "neither title nor kind",
            none(),
            "unknown",
            "other",
        ),
        named(
            &["DA-X22"],
            "the name that the protocol has by now",
            json!({ "name": "bash", "title": "ls -l", "_meta": meta }),
            "Bash",
            "bash",
        ),
    ]
}

fn outputs() -> Vec<Case> {
    let told = |output: Value| [begun(none()), input(none()), output];
    let completed = |mut fields: Value| {
        fields["status"] = "completed".into();
        [pending(), change(fields)]
    };
    let response = json!({ "claudeCode": { "toolResponse": { "stdout": "x" } } });
    let texts = content(&["a", "b"]);
    vec![
        same(
            &["DA-X23", "DA-T15"],
            "the raw output wins over the response in _meta",
            completed(json!({ "rawOutput": "raw", "_meta": response })),
            told(output(json!({ "output": "raw" }))),
        )
        .but(
            &["tool-output"],
            told(output(json!({
                "output": { "rawOutput": "raw" },
                "toolMetadata": { "acp": { "_meta": response } },
            }))),
        ),
        same(
            &["DA-X23", "DA-T15"],
            "the response in _meta alone",
            completed(json!({ "rawOutput": null, "_meta": response })),
            told(output(json!({ "output": { "stdout": "x" } }))),
        )
        .but(
            &["tool-output"],
            told(output(json!({
                "output": "<null>",
                "toolMetadata": { "acp": { "_meta": response } },
            }))),
        ),
        same(
            &["DA-X23"],
            "content alone",
            completed(json!({ "content": texts })),
            told(output(json!({ "output": "a\nb" }))),
        )
        .but(
            &["tool-output"],
            told(output(json!({ "output": { "content": texts } }))),
        ),
        same(
            &["DA-X23"],
            "no output at all",
            completed(none()),
            told(output(json!({ "output": null }))),
        )
        .but(&["no-output"], told(output(json!({ "output": "<null>" })))),
    ]
}

fn errors() -> Vec<Case> {
    let chunks = |text: &str| [begun(none()), input(none()), failed(text)];
    let case = |rows, what, mut fields: Value, text: &str| {
        fields["status"] = "failed".into();
        same(rows, what, [pending(), change(fields)], chunks(text))
    };
    let why = content(&["why"]);
    vec![
        case(
            &["DA-X18"],
            "a text as raw output is the error",
            json!({ "rawOutput": "why" }),
            "why",
        ),
        case(
            &["DA-X18"],
            "text content is the error",
            json!({ "content": why }),
            "why",
        ),
        case(
            &["DA-X18"],
            "an object as raw output",
            json!({ "rawOutput": { "code": 1 } }),
            "[object Object]",
        )
        .but(&["error-text"], chunks("{\"code\":1}")),
        case(
            &["DA-X18"],
            "text content and raw output",
            json!({ "rawOutput": "exit 1", "content": why }),
            "exit 1",
        )
        .but(&["error-text"], chunks("why")),
    ]
}

fn metadata() -> Vec<Case> {
    let claude = json!({ "claudeCode": { "toolName": "Bash" } });
    let play = |meta: Option<&Value>| {
        let mut first = call(none());
        if let Some(meta) = meta {
            first["_meta"] = meta.clone();
        }
        [first, status("completed")]
    };
    let chunks = |fields: &Value| {
        [
            begun(fields.clone()),
            input(fields.clone()),
            output(fields.clone()),
        ]
    };
    vec![
        same(
            &["DA-X24"],
            "dynamic, and without additions no provider metadata",
            play(None),
            chunks(&json!({ "providerMetadata": null })),
        ),
        same(
            &["DA-X24"],
            "additions under claudeCode",
            play(Some(&claude)),
            chunks(&json!({ "providerMetadata": claude })),
        )
        .but(
            &["tool-metadata"],
            chunks(&json!({
                "providerMetadata": null,
                "toolMetadata": { "acp": { "_meta": claude } },
            })),
        ),
        same(
            &["DA-X24"],
            "who runs the tool",
            play(None),
            chunks(&json!({ "providerExecuted": null })),
        )
        .but(
            &["provider-executed"],
            chunks(&json!({ "providerExecuted": true })),
        ),
    ]
}
