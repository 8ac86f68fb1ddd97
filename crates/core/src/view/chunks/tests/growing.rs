//! Tests of states that the agent reports whole at each change.

use super::*;
use acpipe_protocol::ui_chunk::UiChunk;

const LINE: &str = "line 000000 of the output, once\n";

/// Text of these lines.
fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers
        .map(|n| format!("line {n:06} of the output, once\n"))
        .collect::<Vec<_>>()
        .concat()
}

/// Kind of a report: applies the update with this text to a turn, and the last one to its end.
type Report = fn(turn: &mut Turn, text: &str, seen: &mut Seen);

/// Kinds of reports whose text replaces that of the report before.
const REPORTS: [(&str, Report); 13] = [
    ("content", |turn, text, seen| {
        let content = content(text);
        apply(
            turn,
            &running(ToolUpdate {
                content: Some(cow(&content)),
                ..ToolUpdate::default()
            }),
            seen,
        );
    }),
    ("raw output", |turn, text, seen| {
        let output = json!({ "stdout": text, "exit": null }).to_string();
        apply(
            turn,
            &running(ToolUpdate {
                output: Some(raw(&output)),
                ..ToolUpdate::default()
            }),
            seen,
        );
    }),
    ("input", |turn, text, seen| {
        let input = json!({ "file": "a", "content": text }).to_string();
        apply(
            turn,
            &running(ToolUpdate {
                input: Some(cow(&input)),
                ..ToolUpdate::default()
            }),
            seen,
        );
    }),
    ("title", |turn, text, seen| {
        apply(
            turn,
            &running(ToolUpdate {
                title: Some(text.into()),
                ..ToolUpdate::default()
            }),
            seen,
        );
    }),
    ("metadata", |turn, text, seen| {
        let meta = json!({ "tool": { "output": text } }).to_string();
        apply(
            turn,
            &running(ToolUpdate {
                meta: Some(raw(&meta)),
                ..ToolUpdate::default()
            }),
            seen,
        );
    }),
    ("unknown member", |turn, text, seen| {
        let said = json!(text).to_string();
        let mut other = Members::default();
        other.set("said", raw(&said));
        apply(
            turn,
            &running(ToolUpdate {
                other,
                ..ToolUpdate::default()
            }),
            seen,
        );
    }),
    ("content after the end", |turn, text, seen| {
        let content = content(text);
        let ended = ToolUpdate {
            id: "t".into(),
            status: Some("completed".into()),
            content: Some(cow(&content)),
            ..ToolUpdate::default()
        };
        apply(turn, &tool(ended), seen);
    }),
    ("plan", |turn, text, seen| {
        let entries: Vec<Value> = text
            .lines()
            .map(|line| json!({ "content": line }))
            .collect();
        let entries = json!(entries).to_string();
        let mut data = Members::default();
        data.set("entries", raw(&entries));
        apply(
            turn,
            &Update::Plan {
                id: "plan".into(),
                data,
            },
            seen,
        );
    }),
    ("context", |turn, text, seen| {
        let detail = json!(text).to_string();
        let mut figures = Members::default();
        figures.set("detail", raw(&detail));
        apply(
            turn,
            &Update::Context {
                cost: None,
                figures: Some(figures),
            },
            seen,
        );
    }),
    ("compaction", |turn, text, seen| {
        let line = json!({ "summary": text }).to_string();
        turn.update(
            &Update::Compaction { id: "c".into() },
            original(&line),
            seen,
        );
    }),
    ("call of a subagent", |turn, text, seen| {
        let content = content(text);
        let update = running(ToolUpdate {
            content: Some(cow(&content)),
            ..ToolUpdate::default()
        });
        turn.update(&of(update), original(&content), seen);
    }),
    ("output of an endpoint's tool", |turn, text, seen| {
        if !turn.has_tools() {
            pass(
                turn,
                &json!({ "type": "tool-input-available", "toolCallId": "t", "toolName": "x", "input": {} }),
                seen,
            );
        }
        let output = json!({ "type": "tool-output-available", "toolCallId": "t", "output": text, "preliminary": true });
        pass(turn, &output, seen);
    }),
    ("data of an endpoint", |turn, text, seen| {
        pass(
            turn,
            &json!({ "type": "data-state", "id": "s", "data": { "text": text } }),
            seen,
        );
    }),
];

fn cow(json: &str) -> std::borrow::Cow<'_, RawValue> {
    std::borrow::Cow::Borrowed(raw(json))
}

fn content(text: &str) -> String {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }]).to_string()
}

fn running(update: ToolUpdate<'_>) -> Update<'_> {
    tool(ToolUpdate {
        id: "t".into(),
        status: Some("in_progress".into()),
        ..update
    })
}

fn apply(turn: &mut Turn, update: &Update<'_>, seen: &mut Seen) {
    turn.update(update, original("{}"), seen);
}

fn pass(turn: &mut Turn, chunk: &Value, seen: &mut Seen) {
    let json = chunk.to_string();
    let chunk: UiChunk<'_> = serde_json::from_str(&json).unwrap();
    let chunk = Box::new(chunk);
    apply(
        turn,
        &Update::Chunk {
            json: raw(&json),
            chunk,
        },
        seen,
    );
}

/// Number of bytes in all chunks of a turn with the reports of these texts, after a check that its message has the last
/// of them.
fn bytes(name: &str, report: Report, texts: impl Iterator<Item = String>) -> usize {
    let mut seen = Seen::default();
    let mut turn = start(&mut seen);
    let mut last = String::new();
    for text in texts {
        report(&mut turn, &text, &mut seen);
        last = text;
    }
    if name == "output of an endpoint's tool" {
        // Without its result the call would have failed.
        pass(
            &mut turn,
            &json!({ "type": "tool-output-available", "toolCallId": "t", "output": last }),
            &mut seen,
        );
    }
    turn.finish(&ended(), false, &mut seen);
    let message = seen.1.message().to_string();
    let whole = if name == "plan" {
        let entries: Vec<Value> = last
            .lines()
            .map(|line| json!({ "content": line }))
            .collect();
        json!(entries)
    } else {
        json!(last)
    };
    assert!(message.contains(&whole.to_string()), "{name}: {message}");
    seen.0.iter().map(|chunk| chunk.to_string().len()).sum()
}

#[test]
fn a_growing_state_is_shown_in_proportion_to_its_size() {
    for (name, report) in REPORTS {
        let of = |n: usize| bytes(name, report, (1..=n).map(|n| lines(0..n)));
        let (short, long) = (of(200), of(800));
        // Small states are shown at every change, so the short one has its part of them.
        assert!(long < 6 * short, "{name}: {short}, {long}");
        assert!(long < 20 * lines(0..800).len(), "{name}: {long}");
    }
}

#[test]
fn a_window_over_growing_output_is_shown_in_proportion_to_what_moved() {
    const WINDOW: usize = 200;
    for (name, report) in REPORTS {
        let windows = (0..800).map(|n: usize| lines(n.saturating_sub(WINDOW)..n + 1));
        let shown = bytes(name, report, windows);
        assert!(shown < 20 * lines(0..800).len(), "{name}: {shown}");
    }
}

#[test]
fn a_small_state_is_shown_at_every_change() {
    // Of these, acpipe sends as much as was reported, and the reports are as small as the state.
    let others = ["call of a subagent", "compaction"];
    for (name, report) in REPORTS
        .into_iter()
        .filter(|(name, _)| !others.contains(name))
    {
        let mut seen = Seen::default();
        let mut turn = start(&mut seen);
        report(&mut turn, LINE, &mut seen);
        let begin = seen.0.len();
        for n in 0..1000 {
            report(&mut turn, &format!("{n} of 1000 files"), &mut seen);
        }
        assert_eq!(seen.0.len() - begin, 1000, "{name}");
    }
}

#[test]
fn a_report_that_changes_much_is_shown_at_once() {
    for (name, report) in REPORTS {
        let mut seen = Seen::default();
        let mut turn = start(&mut seen);
        for n in 0..8 {
            report(&mut turn, &lines(n * 1000..n * 1000 + 100), &mut seen);
            let last = seen.0.last().unwrap().to_string();
            assert!(
                last.contains(&format!("line {:06}", n * 1000 + 99)),
                "{name}: {last}"
            );
        }
    }
}

#[test]
fn an_endpoints_output_ends_with_its_result() {
    let mut seen = Seen::default();
    let mut turn = start(&mut seen);
    let (_, report) = REPORTS[11];
    for n in 1..400 {
        report(&mut turn, &lines(0..n), &mut seen);
    }
    let result = json!({ "type": "tool-output-available", "toolCallId": "t", "output": "done" });
    pass(&mut turn, &result, &mut seen);
    turn.finish(&ended(), false, &mut seen);
    let mut outputs = seen
        .0
        .iter()
        .filter(|chunk| chunk["type"] == "tool-output-available");
    assert_eq!(
        outputs.next_back(),
        Some(&result),
        "what was held back is gone"
    );
    let (results, omitted) = turn.tool_results();
    assert_eq!((results[0].result.as_str(), omitted), ("done", 0));
}
