//! Reads the lines of tapes.

use super::{
    Direction, EventKind, FrameBody, Side, TapeEvent, TapeFrame, TapeHeader, TapeProcess,
    TapeRecord, VERSION,
};
use acpipe_json::repair;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Longest time that a record can have, in milliseconds: a century.
const MAX_MS: f64 = 3.2e12;

/// Reason why a line is not a record of a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeFault {
    /// Number of the line, from 1.
    pub line: usize,
    /// Reason, for people.
    pub why: String,
}

impl fmt::Display for TapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for TapeFault {}

/// All members of all records.
#[derive(Deserialize)]
struct TapeLine<'a> {
    tape: Option<u32>,
    acpipe: Option<String>,
    #[serde(rename = "startedAt")]
    started_at: Option<String>,
    #[serde(default)]
    t_ms: f64,
    dir: Option<Direction>,
    #[serde(default)]
    side: Side,
    agent: Option<String>,
    child: Option<u64>,
    #[serde(borrow)]
    frame: Option<&'a RawValue>,
    #[serde(alias = "raw")]
    text: Option<String>,
    cut: Option<u64>,
    event: Option<String>,
    #[serde(default)]
    command: Vec<String>,
    code: Option<i32>,
    signal: Option<i32>,
    stderr: Option<String>,
    frames: Option<u64>,
}

/// Decodes a tape, and repairs lines that are almost JSON, as converted tapes may have them.
#[must_use]
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    let mut repaired = String::new();
    let (mut copied, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        let begin = end;
        end += line.len();
        if serde_json::from_str::<IgnoredAny>(line).is_err()
            && let Some((json, _)) = repair::whole(line)
        {
            repaired.push_str(&text[copied..begin]);
            repaired.push_str(&json);
            copied = begin + line.trim_end().len();
        }
    }
    if copied == 0 {
        return text;
    }
    repaired.push_str(&text[copied..]);
    Cow::Owned(repaired)
}

/// Parses a line of a tape.
///
/// # Errors
/// Describes why the line is not a record.
pub fn parse(line: &str) -> Result<TapeRecord<'_>, String> {
    let line: TapeLine<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if let Some(version) = line.tape {
        if version > VERSION {
            return Err(format!(
                "the tape has version {version} of the format, and this acpipe reads version {VERSION}; use a newer acpipe"
            ));
        }
        return Ok(TapeRecord::Header(TapeHeader {
            tape: version,
            acpipe: line.acpipe,
            started_at: line.started_at,
        }));
    }
    if !(0.0..=MAX_MS).contains(&line.t_ms) {
        return Err(format!("t_ms is {}, which is not a time", line.t_ms));
    }
    let at = Duration::from_secs_f64(line.t_ms / 1000.0);
    let process = TapeProcess {
        agent: line.agent,
        child: line.child,
    };
    if let Some(kind) = line.event {
        return Ok(TapeRecord::Event(TapeEvent {
            at,
            kind: EventKind::named(&kind),
            process,
            command: line.command,
            code: line.code,
            signal: line.signal,
            stderr: line.stderr,
            frames: line.frames,
        }));
    }
    let body = match (line.frame, line.text) {
        (Some(json), _) => FrameBody::Json(json),
        (None, Some(text)) => FrameBody::Text(text),
        (None, None) => {
            return Err("it has neither `frame` nor `text`, `event` or `tape`".to_owned());
        }
    };
    let direction = line.dir.ok_or("`dir` is missing")?;
    Ok(TapeRecord::Frame(TapeFrame {
        at,
        side: line.side,
        direction,
        process,
        body,
        cut: line.cut,
    }))
}

/// Returns `true` if a line is the head of a tape in a newer format than this acpipe reads.
#[must_use]
pub fn is_newer(line: &str) -> bool {
    let head = serde_json::from_str::<TapeLine<'_>>(line);
    head.is_ok_and(|head| head.tape.is_some_and(|version| version > VERSION))
}

/// Parses the lines of a tape, without empty ones. The last line is skipped if it is incomplete: the recording
/// acpipe was killed.
pub fn records(tape: &str) -> impl Iterator<Item = Result<TapeRecord<'_>, TapeFault>> {
    let lines = tape.split_inclusive('\n').enumerate();
    lines.filter_map(|(at, line)| {
        if line.trim().is_empty() {
            return None;
        }
        match parse(line) {
            Err(_) if !line.ends_with('\n') => None,
            Err(why) => Some(Err(TapeFault { line: at + 1, why })),
            Ok(record) => Some(Ok(record)),
        }
    })
}
