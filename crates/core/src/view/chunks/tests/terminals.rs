//! Tests of how much output of terminals is shown.

use super::*;
use acpipe_model::host::{TerminalExit, TerminalView};

/// Counts the bytes of terminals' chunks, and keeps the last chunk of each terminal.
#[derive(Default)]
struct Shown {
    bytes: usize,
    last: std::collections::BTreeMap<String, Value>,
}

impl ChunkSink for Shown {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if !matches!(chunk, Chunk::DataTerminal { .. }) {
            return;
        }
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.bytes += json.len();
        let json: Value = serde_json::from_slice(&json).unwrap();
        let id = json["id"].as_str().unwrap().to_owned();
        self.last.insert(id, json["data"].clone());
    }
}

#[test]
fn served_terminals_that_scroll_are_shown_in_proportion() {
    const MIB: u64 = 1 << 20;
    let mut shown = Shown::default();
    let mut chunks = ChunkState::new("acp");
    let mut turn = start(&mut chunks.view(&mut shown));
    let kept = "0123456789abcdef".repeat(64 * 1024);
    // Either all of the kept output is new each time, or a little of it.
    let total = |n: u64, step: u64| {
        if n.is_multiple_of(2) {
            step * MIB
        } else {
            MIB + step * 10
        }
    };
    let (id, tool) = (|n: u64| format!("t{n}"), |n: u64| format!("tool{n}"));
    let reports = |n: u64, status: &'static str| {
        super::tool(ToolUpdate {
            id: tool(n).into(),
            status: Some(status.into()),
            ..ToolUpdate::default()
        })
    };
    for step in 1..=200 {
        for n in 0..32 {
            let state = TerminalView {
                text: &kept,
                total: total(n, step),
                exit: None,
            };
            let view = &mut chunks.view(&mut shown);
            turn.terminal(&id(n), tool(n), &state, view);
            turn.update(&reports(n, "in_progress"), original("{}"), view);
        }
    }
    let live = shown.bytes;
    // The terminals wrote 3 GB; each is shown at most 200 times, a small part of it.
    assert!(live < 40 << 20, "{live}");
    for n in 0..32 {
        let exit = TerminalExit {
            code: Some(0),
            signal: None,
        };
        let state = TerminalView {
            text: &kept,
            total: total(n, 200),
            exit: Some(&exit),
        };
        for _ in 0..3 {
            let view = &mut chunks.view(&mut shown);
            turn.terminal(&id(n), tool(n), &state, view);
            turn.update(&reports(n, "completed"), original("{}"), view);
        }
    }
    turn.finish_unreported(&mut chunks.view(&mut shown));
    // Each is shown once more, with all of the kept output.
    let ends = shown.bytes - live;
    assert!(ends < 33 << 20, "{ends}");
    let last = &shown.last["t0"];
    assert_eq!(last["output"], kept);
    assert_eq!(last["offset"], 199 * MIB);
    assert_eq!(last["details"]["truncated"], true);
    assert_eq!(last["details"]["exit_code"], 0);
}
