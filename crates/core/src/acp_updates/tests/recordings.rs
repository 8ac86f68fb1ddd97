//! All recordings of the Claude Code CLI: every update is valid, and together they have the text, the tool calls
//! and the results of the folded message.

use super::parse;
use crate::acp_updates::AcpUpdates;
use crate::replay::Replay;
use acpipe_dialects::claude::frames::Frames;
use acpipe_model::event::AgentEvent;
use acpipe_protocol::claude::Frame;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::Path;

/// A turn as ACP updates and as messages.
#[derive(Default)]
pub struct RecordedTurn {
    pub updates: Vec<Value>,
    pub messages: Vec<Value>,
}

/// Returns names and texts of the recordings with this prefix.
pub fn recordings(prefix: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts/recordings");
    let files = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<(String, String)> = files
        .map(|file| file.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, path)
        })
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, path)| (name, std::fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    found
}

/// Returns the lines of the agent.
pub fn lines(recording: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Entry<'a> {
        dir: &'a str,
        #[serde(borrow)]
        frame: Option<&'a RawValue>,
    }
    let entries = recording.lines().map(|line| {
        let entry: Entry<'_> = serde_json::from_str(line).unwrap();
        entry
    });
    let lines = entries.filter(|entry| entry.dir == "in");
    lines
        .filter_map(|entry| Some(entry.frame?.get().to_owned()))
        .collect()
}

/// Converts the frames of a recorded CLI, turn by turn.
pub fn cli_turns(recording: &str) -> Vec<RecordedTurn> {
    let mut frames = Frames::default();
    let mut updates = AcpUpdates::new("claude");
    let mut turns = Vec::new();
    let mut turn = RecordedTurn::default();
    let mut replay = Replay::new("claude", "r".to_owned());
    for line in lines(recording).iter().map(String::as_str).chain([""]) {
        let frame = Frame::read(line);
        let ends = line.is_empty() || frame.as_ref().is_some_and(|f| f.kind() == "result");
        if ends {
            frames.turn_over();
            updates.finish(&mut |update| turn.updates.push(parse(update)));
            let ended = std::mem::replace(&mut replay, Replay::new("claude", "r".to_owned()));
            turn.messages = ended.finish().values().collect();
            turns.push(std::mem::take(&mut turn));
            continue;
        }
        let Some(frame) = frame.filter(|frame| !frame.kind().starts_with("control_")) else {
            continue;
        };
        let mut events = Vec::new();
        frames.read(&frame, line, "s", &mut events);
        for event in events {
            if let AgentEvent::Update {
                update, original, ..
            } = event
            {
                replay.update(&update, original);
                updates.update(&update, original, &mut |update| {
                    turn.updates.push(parse(update));
                });
            }
        }
    }
    turns
}

/// Text and tool calls of a turn.
#[derive(Debug, Default, PartialEq)]
pub struct Facts {
    pub answer: String,
    pub thoughts: String,
    pub calls: BTreeMap<String, String>,
}

/// Returns the facts of ACP updates.
pub fn facts_of_updates(updates: &[Value]) -> Facts {
    let mut facts = Facts::default();
    for update in updates {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap() {
            "agent_message_chunk" => facts.answer += text,
            "agent_thought_chunk" => facts.thoughts += text,
            kind @ ("tool_call" | "tool_call_update") => {
                let id = update["toolCallId"].as_str().unwrap();
                let known = facts.calls.contains_key(id);
                assert_eq!(known, kind == "tool_call_update", "{update}");
                if let Some(status) = update["status"].as_str() {
                    facts.calls.insert(id.to_owned(), status.to_owned());
                }
            }
            _ => {}
        }
    }
    facts
}

/// Adds the facts of a folded message; `main` is `false` for the message of a subagent.
fn add_message(facts: &mut Facts, message: &Value, main: bool) {
    for part in message["parts"].as_array().into_iter().flatten() {
        let text = part["text"].as_str().unwrap_or_default();
        match part["type"].as_str().unwrap() {
            "text" if main => facts.answer += text,
            "reasoning" if main => facts.thoughts += text,
            "data-subagent" => add_message(facts, &part["data"]["message"], false),
            "dynamic-tool" => {
                let settled = &part["toolMetadata"]["claude"]["settled"];
                let status = match part["state"].as_str().unwrap() {
                    // The agent did not report the end.
                    _ if !settled.is_null() => "failed",
                    "output-available" => "completed",
                    "output-error" | "output-denied" => "failed",
                    state => state,
                };
                let id = part["toolCallId"].as_str().unwrap().to_owned();
                facts.calls.insert(id, status.to_owned());
            }
            _ => {}
        }
    }
}

#[test]
fn updates_of_the_cli_have_the_facts_of_its_messages() {
    let recordings = recordings("claude-cli-");
    assert!(recordings.len() > 70, "recordings are missing");
    let (mut updates, mut calls) = (0, 0);
    for (name, recording) in recordings {
        for (at, turn) in cli_turns(&recording).iter().enumerate() {
            let mut want = Facts::default();
            for message in &turn.messages {
                add_message(&mut want, message, true);
            }
            let got = facts_of_updates(&turn.updates);
            assert_eq!(got, want, "{name}, turn {at}");
            updates += turn.updates.len();
            calls += got.calls.len();
        }
    }
    assert!(
        updates > 500 && calls > 50,
        "{updates} updates, {calls} calls"
    );
}
