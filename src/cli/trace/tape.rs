//! Tapes as timelines.

use super::frames;
use super::label::{Label, words};
use super::row::{Dir, RowKind, RowSide};
use super::timeline::{Timeline, TimelineFrame};
use acpipe_json::{to_raw, value};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::tape;
use acpipe_protocol::tape::{
    Direction, EventKind, FrameBody, TapeEvent, TapeHeader, TapeProcess, TapeRecord,
};
use std::time::Duration;

/// Adds the lines of a tape to a timeline. Lines that cannot be read are counted.
///
/// # Errors
/// No line is one of a tape, or the tape has a newer format.
pub fn read(bytes: &[u8], timeline: &mut Timeline) -> Result<(), Error> {
    let mut is_tape = false;
    let text = tape::text(bytes);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match tape::parse(line) {
            Ok(record) => {
                is_tape = true;
                add(&record, line, timeline);
            }
            Err(why) if !is_tape && tape::is_newer(line) => {
                let message = format!("cannot read the tape: {why}");
                return Err(Error::new(ErrorKind::InvalidParams, message));
            }
            Err(_) => timeline.unreadable += 1,
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

fn add(record: &TapeRecord<'_>, line: &str, timeline: &mut Timeline) {
    let frame = match record {
        TapeRecord::Header(header) => return head(header, timeline),
        TapeRecord::Frame(frame) => frame,
        TapeRecord::Event(event) => {
            let agent = name_of(&event.process);
            timeline.process_changed(RowSide::Agent, &agent);
            let (label, json) = (event_label(event), one_line(line));
            timeline.push(TimelineFrame {
                t_ms: Some(millis(event.at)),
                side: RowSide::Agent,
                dir: None,
                agent,
                label,
                json,
            });
            return;
        }
    };
    let (label, json) = match &frame.body {
        FrameBody::Json(json) => (frames::label(&value(json)), one_line(json.get())),
        FrameBody::Text(text) => {
            let label = Label::new(RowKind::Notification, "text", text);
            (label, to_raw(text).get().to_owned())
        }
    };
    let mut row = TimelineFrame {
        t_ms: Some(millis(frame.at)),
        side: match frame.side {
            tape::Side::Client => RowSide::Client,
            tape::Side::Agent => RowSide::Agent,
        },
        dir: Some(match frame.direction {
            Direction::In => Dir::In,
            Direction::Out => Dir::Out,
        }),
        agent: name_of(&frame.process),
        label,
        json,
    };
    if let Some(bytes) = frame.cut {
        row.label.mark_cut(bytes);
    }
    timeline.push(row);
}

fn head(header: &TapeHeader, timeline: &mut Timeline) {
    let facts = [("acpipe", &header.acpipe), ("started", &header.started_at)];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            timeline.facts.push((name, fact.clone()));
        }
    }
}

/// Label of an event. An agent that ended by itself with a failure is an error.
fn event_label(event: &TapeEvent) -> Label {
    let number = |name: &str, number: Option<i32>| {
        number.map_or_else(String::new, |number| format!("{name} {number}"))
    };
    let (code, signal) = (number("code", event.code), number("signal", event.signal));
    let has_failed = match event.kind {
        EventKind::Failed => true,
        EventKind::Exited => event.code.is_some_and(|code| code != 0) || event.signal.is_some(),
        _ => false,
    };
    let detail = match event.kind {
        EventKind::Full => "the tape is full; later frames are missing".to_owned(),
        EventKind::Dropped => {
            "frames are missing: they came faster than they could be written".to_owned()
        }
        _ => {
            let stderr = event.stderr.as_deref().unwrap_or_default();
            words([&event.command.join(" "), &code, &signal, stderr])
        }
    };
    let kind = if has_failed {
        RowKind::Error
    } else {
        RowKind::Event
    };
    Label::new(kind, event.kind.name(), &detail)
}

/// Returns the name of an agent and the number of its process.
fn name_of(process: &TapeProcess) -> String {
    let child = process.child.map(|child| child.to_string());
    words([
        process.agent.as_deref().unwrap_or_default(),
        child.as_deref().unwrap_or_default(),
    ])
}

fn millis(at: Duration) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
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
                RowSide::Agent,
                None,
                RowKind::Event,
                ("started", "x --acp", "a 2"),
            ),
            (
                2,
                RowSide::Client,
                Some(Dir::In),
                RowKind::Request,
                ("m", "", ""),
            ),
            (
                3,
                RowSide::Agent,
                Some(Dir::In),
                RowKind::Notification,
                ("text", "Oh no", "a 2"),
            ),
            (
                4,
                RowSide::Agent,
                Some(Dir::Out),
                RowKind::Notification,
                ("y", "(cut, 9000 bytes) ", ""),
            ),
            (
                5,
                RowSide::Agent,
                None,
                RowKind::Error,
                ("exited", "code 1 panic", "a 2"),
            ),
            (
                6,
                RowSide::Agent,
                None,
                RowKind::Event,
                ("exited", "code 0", "b"),
            ),
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
