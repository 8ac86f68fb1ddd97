//! Files of the Claude Code CLI, as acpipe reads them.

use super::dice::Dice;
use super::hostile;
use acpipe_core::hub::{AgentInput, Exit};
use acpipe_json::frame::{Batch, Overlong};
use acpipe_model::error::{Error, ErrorKind};

/// Returns the events that deliver a file.
pub fn lines(text: Vec<u8>) -> Vec<AgentInput> {
    let mut all = Vec::new();
    if !text.is_empty() {
        all.push(AgentInput::Batch(Batch::Lines(text.into())));
    }
    all.push(AgentInput::Exited(Exit {
        code: Some(0),
        ..Exit::default()
    }));
    all
}

/// Copies an event: a history is read twice.
pub fn again(said: &AgentInput) -> AgentInput {
    match said {
        AgentInput::Batch(Batch::Lines(lines)) => AgentInput::Batch(Batch::Lines(lines.clone())),
        AgentInput::Batch(Batch::TooLong(line)) => AgentInput::Batch(Batch::TooLong(Overlong {
            len: line.len,
            head: line.head.clone(),
            tail: line.tail.clone(),
        })),
        AgentInput::Exited(exit) => AgentInput::Exited(exit.clone()),
        other => panic!("no file says {other:?}"),
    }
}

/// Returns the events of a file that cannot be read.
pub fn missing() -> Vec<AgentInput> {
    let error = Error::new(ErrorKind::SessionNotFound, "there is no such file");
    vec![AgentInput::StartFailed(error)]
}

/// Returns the history of a session.
pub fn history(dice: &mut Dice) -> Vec<AgentInput> {
    if dice.percent(10) {
        return missing();
    }
    let mut text = Vec::new();
    for n in 0..dice.below(8) {
        if dice.percent(5) {
            text.extend(hostile::line(dice).text);
        } else {
            text.extend(record(n, dice).into_bytes());
        }
        text.push(b'\n');
    }
    lines(text)
}

fn record(n: usize, dice: &mut Dice) -> String {
    let parent = match n {
        0 => "null".to_owned(),
        n => format!("\"u{}\"", n - 1 - dice.below(2).min(n - 1)),
    };
    let said = hostile::words(dice);
    let tool = dice.below(3);
    let (kind, content) = match dice.below(6) {
        0 | 1 => ("user", format!("\"{said}\"")),
        2 => (
            "assistant",
            format!(
                r#"[{{"type":"text","text":"{said}"}},{{"type":"thinking","thinking":"{said}"}}]"#
            ),
        ),
        3 => (
            "assistant",
            format!(
                r#"[{{"type":"tool_use","id":"t{tool}","name":"Bash","input":{{"command":"{said}"}}}}]"#
            ),
        ),
        4 => (
            "user",
            format!(r#"[{{"type":"tool_result","tool_use_id":"t{tool}","content":"{said}"}}]"#),
        ),
        _ => ("summary", "null".to_owned()),
    };
    let side = dice.percent(10);
    format!(
        r#"{{"type":"{kind}","uuid":"u{n}","parentUuid":{parent},"isSidechain":{side},"sessionId":"x","cwd":"/","timestamp":"2026-01-02T03:04:05.678Z","message":{{"role":"{kind}","id":"m{n}","content":{content}}}}}"#
    )
}

/// Returns the canonical path of a directory.
pub fn path(dir: &str) -> Vec<AgentInput> {
    lines(format!("{dir:?}\n").into_bytes())
}

/// Returns the list of sessions in a directory.
pub fn list(dice: &mut Dice) -> Vec<AgentInput> {
    let mut text = String::new();
    for n in 0..dice.below(3) {
        let head = record(0, dice).replace('\\', "\\\\").replace('"', "\\\"");
        text.extend([format!(
            "{{\"file\":\"s{n}.jsonl\",\"modifiedMs\":{n},\"size\":1,\"head\":\"{head}\",\"tail\":\"\"}}\n"
        )]);
    }
    lines(text.into_bytes())
}
