//! Reader of tapes: recordings of the frames between a client, acpipe and its agents.

use super::frames;
use super::label::{Label, words};
use super::row::{Dir, Kind, Side};
use super::timeline::{Frame, Timeline};
use crate::core::error::{Error, ErrorKind};
use crate::proto::json::{to_raw, value};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Newest format of tapes that can be read.
const FORMAT: u32 = 1;

/// A line of a tape: the head, a frame or an event.
#[derive(Debug, Deserialize)]
struct TapeLine<'a> {
    tape: Option<u32>,
    #[serde(borrow)]
    acpipe: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "startedAt")]
    started_at: Option<Cow<'a, str>>,
    t_ms: Option<u64>,
    dir: Option<Dir>,
    #[serde(default)]
    side: Side,
    #[serde(borrow)]
    agent: Option<Cow<'a, str>>,
    child: Option<Value>,
    #[serde(borrow)]
    frame: Option<&'a RawValue>,
    /// Line that is not JSON.
    #[serde(borrow, alias = "raw")]
    text: Option<Cow<'a, str>>,
    /// Length of a frame of which the tape has only a part.
    cut: Option<u64>,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    command: Option<Vec<String>>,
    code: Option<i64>,
    signal: Option<Value>,
    #[serde(borrow)]
    stderr: Option<Cow<'a, str>>,
}

/// Adds the lines of a tape to a timeline. Lines that cannot be read are counted.
///
/// # Errors
/// No line is one of a tape, or the tape has a newer format.
pub fn read(bytes: &[u8], timeline: &mut Timeline) -> Result<(), Error> {
    let mut is_tape = false;
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(parsed) = serde_json::from_str::<TapeLine<'_>>(line) else {
            timeline.unreadable += 1;
            continue;
        };
        if let Some(format) = parsed.tape {
            check(format)?;
            head(&parsed, timeline);
            is_tape = true;
        } else if add(&parsed, line, timeline) {
            is_tape = true;
        } else {
            timeline.unreadable += 1;
        }
    }
    if is_tape {
        return Ok(());
    }
    let message = format!(
        "cannot read {} as a tape: no line of it is a recorded frame; give the name of a tape, or of a session that \
             acpipe sessions list shows",
        timeline.name
    );
    Err(Error::new(ErrorKind::InvalidParams, message))
}

fn check(format: u32) -> Result<(), Error> {
    if format <= FORMAT {
        return Ok(());
    }
    let message = format!(
        "cannot read the tape: it has format {format}, but this acpipe supports only {FORMAT}; use a newer acpipe"
    );
    Err(Error::new(ErrorKind::InvalidParams, message))
}

fn head(line: &TapeLine<'_>, timeline: &mut Timeline) {
    let facts = [("acpipe", &line.acpipe), ("started", &line.started_at)];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            timeline.facts.push((name, fact.to_string()));
        }
    }
}

/// Adds a frame or event; returns `false` if the line is neither.
fn add(line: &TapeLine<'_>, text: &str, timeline: &mut Timeline) -> bool {
    let child = line.child.as_ref().map(|child| match child {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    });
    let agent = words([
        line.agent.as_deref().unwrap_or_default(),
        child.as_deref().unwrap_or_default(),
    ]);
    let (dir, label, json) = match (&line.event, line.frame, &line.text) {
        (Some(event), ..) => {
            timeline.process_changed(line.side, &agent);
            (None, event_label(event, line), one_line(text))
        }
        (None, Some(frame), _) if line.dir.is_some() => (
            line.dir,
            frames::label(&value(frame)),
            one_line(frame.get()),
        ),
        (None, None, Some(text)) if line.dir.is_some() => {
            let label = Label::new(Kind::Notification, "text", text);
            (line.dir, label, to_raw(text).get().to_owned())
        }
        _ => return false,
    };
    let mut frame = Frame {
        t_ms: line.t_ms,
        side: line.side,
        dir,
        agent,
        label,
        json,
    };
    if let Some(bytes) = line.cut {
        frame.label.mark_cut(bytes);
    }
    timeline.push(frame);
    true
}

/// Label of an event. An agent that ended by itself with a failure is an error.
fn event_label(event: &str, line: &TapeLine<'_>) -> Label {
    let command = line.command.as_deref().unwrap_or_default().join(" ");
    let code = line
        .code
        .map_or_else(String::new, |code| format!("code {code}"));
    let signal = match &line.signal {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(name)) => format!("signal {name}"),
        Some(other) => format!("signal {other}"),
    };
    let stderr = line.stderr.as_deref().unwrap_or_default();
    let failed =
        event == "exited" && (line.code.is_some_and(|code| code != 0) || !signal.is_empty());
    let kind = if failed { Kind::Error } else { Kind::Event };
    let detail = match event {
        "full" => "the tape is full; later frames are missing".to_owned(),
        _ => words([&command, &code, &signal, stderr]),
    };
    Label::new(kind, event, &detail)
}

/// Returns JSON on one line. A carriage return between tokens would become a line break in a page.
fn one_line(json: &str) -> String {
    json.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(text: &str) -> Result<Timeline, Error> {
        let mut timeline = Timeline::of("x.tape");
        read(text.as_bytes(), &mut timeline).map(|()| timeline)
    }

    #[test]
    fn lines_of_a_tape_become_rows_with_side_agent_and_time() {
        let tape = concat!(
            r#"{"tape":1,"acpipe":"0.1.0","startedAt":"2026-01-02T03:04:05Z"}"#,
            "\n",
            r#"{"t_ms":1,"event":"started","agent":"a","child":2,"command":["x","--acp"]}"#,
            "\r\n",
            r#"{"t_ms":2,"dir":"in","side":"client","frame":{"jsonrpc":"2.0","id":1,"method":"m"}}"#,
            "\n",
            r#"{"t_ms":3,"dir":"in","agent":"a","child":2,"text":"Oh\nno"}"#,
            "\n",
            r#"{"t_ms":4,"dir":"out","frame":{"method":"y"},"cut":9000,"later":true}"#,
            "\n",
            r#"{"t_ms":5,"event":"exited","agent":"a","child":2,"code":1,"stderr":"panic"}"#,
            "\n",
            r#"{"t_ms":6,"event":"exited","agent":"b","code":0}"#,
            "\n",
            r#"{"t_ms":7,"dir":"out","fra"#,
        );
        let timeline = timeline(tape).unwrap();
        let found: Vec<_> = timeline
            .rows
            .iter()
            .map(|row| {
                let texts = (row.title.as_str(), row.detail.as_str(), row.agent.as_str());
                (row.t_ms.unwrap(), row.side, row.dir, row.kind, texts)
            })
            .collect();
        let want = [
            (
                1,
                Side::Agent,
                None,
                Kind::Event,
                ("started", "x --acp", "a 2"),
            ),
            (2, Side::Client, Some(Dir::In), Kind::Request, ("m", "", "")),
            (
                3,
                Side::Agent,
                Some(Dir::In),
                Kind::Notification,
                ("text", "Oh no", "a 2"),
            ),
            (
                4,
                Side::Agent,
                Some(Dir::Out),
                Kind::Notification,
                ("y", "(cut, 9000 bytes) ", ""),
            ),
            (
                5,
                Side::Agent,
                None,
                Kind::Error,
                ("exited", "code 1 panic", "a 2"),
            ),
            (6, Side::Agent, None, Kind::Event, ("exited", "code 0", "b")),
        ];
        assert_eq!(found, want);
        let facts = [
            ("acpipe", "0.1.0".to_owned()),
            ("started", "2026-01-02T03:04:05Z".to_owned()),
        ];
        assert_eq!(timeline.facts, facts);
        assert_eq!(timeline.unreadable, 1);
        assert_eq!(timeline.rows[2].json, r#""Oh\nno""#);
    }

    #[test]
    fn carriage_returns_between_tokens_do_not_divide_a_frame() {
        let line = "{\"t_ms\":1,\"dir\":\"in\",\"frame\":{\"a\":\r1}}";
        assert_eq!(timeline(line).unwrap().rows[0].json, r#"{"a": 1}"#);
    }

    #[test]
    fn frames_that_are_deep_or_hold_half_characters_are_shown() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let tape = format!(
            "{{\"t_ms\":1,\"dir\":\"in\",\"frame\":{{\"method\":\"m\",\"params\":{deep}}}}}\n\
                {{\"t_ms\":1,\"dir\":\"in\",\"frame\":{{\"method\":\"\\ud800\"}}}}\n"
        );
        let timeline = timeline(&tape).unwrap();
        assert_eq!(timeline.rows.len(), 2);
        assert_eq!(timeline.rows[0].title, "m");
    }

    #[test]
    fn files_that_are_no_tapes_are_rejected_with_advice() {
        let cases = [
            ("", "acpipe sessions list"),
            ("hello\n", "cannot read x.tape as a tape"),
            ("{\"a\":1}\n", "cannot read x.tape as a tape"),
            (
                "{\"t_ms\":1,\"frame\":{}}\n",
                "cannot read x.tape as a tape",
            ),
            ("{\"tape\":2}\n", "use a newer acpipe"),
        ];
        for (text, why) in cases {
            let error = timeline(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            assert!(error.message.contains(why), "{text:?}: {error}");
        }
        assert!(timeline("{\"tape\":1}\n").unwrap().rows.is_empty());
    }
}
