//! Reader of session logs: the stored records of a session as a timeline.

use super::label::{CallFrame, Label, brief, text_of, words};
use super::row::{Dir, RowKind, RowSide};
use super::timeline::{Timeline, TimelineFrame};
use super::{chunks, updates};
use acpipe_core::agent_command::hide_command_lines;
use jiff::Timestamp;
use serde_json::Value;

/// Returns `true` if a file is the log of a session and not a tape.
pub fn is_log(bytes: &[u8]) -> bool {
    let first = bytes.split(|byte| *byte == b'\n').next();
    let first = serde_json::from_slice::<Value>(first.unwrap_or_default());
    first.is_ok_and(|line| line["record"].is_string())
}

/// Adds the records of a log to a timeline. Lines that cannot be read are counted.
pub fn read(bytes: &[u8], timeline: &mut Timeline) {
    let text = String::from_utf8_lossy(bytes);
    let mut clock = Clock::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut record = serde_json::from_str::<Value>(line).unwrap_or_default();
        let has_agents = record["record"] == "session";
        if has_agents {
            hide_command_lines(&mut record);
        }
        let shown = has_agents.then(|| record.to_string());
        let Some(of) = place(&record) else {
            timeline.unreadable += 1;
            continue;
        };
        if timeline.rows.is_empty() {
            let facts = [("started", "at"), ("directory", "cwd"), ("agent", "agent")];
            for (name, member) in facts {
                if let Some(fact) = record[member].as_str() {
                    timeline.facts.push((name, fact.to_owned()));
                }
            }
        }
        timeline.push(TimelineFrame {
            t_ms: clock.time_of(&record),
            side: of.side,
            dir: of.dir,
            agent: String::new(),
            label: of.label,
            json: shown.unwrap_or_else(|| line.replace('\r', " ")),
        });
    }
}

/// Times of records relative to the first one.
#[derive(Debug, Default)]
struct Clock {
    start: Option<Timestamp>,
}

impl Clock {
    /// Returns the time of a record; `None` if the log has none, as for chunks.
    fn time_of(&mut self, record: &Value) -> Option<u64> {
        let at: Timestamp = record["at"].as_str()?.parse().ok()?;
        let start = *self.start.get_or_insert(at);
        u64::try_from(at.duration_since(start).as_millis()).ok()
    }
}

/// Place of a record on the timeline.
struct TimelineEntry {
    side: RowSide,
    dir: Option<Dir>,
    label: Label,
}

/// Returns the place and label of a record; `None` if the line is not a record.
fn place(record: &Value) -> Option<TimelineEntry> {
    let of = |side, dir, label| Some(TimelineEntry { side, dir, label });
    let turn = record["turnId"].to_string();
    let event = |label| of(RowSide::Acpipe, None, label);
    match record["record"].as_str()? {
        "prompt" => {
            let text = text_of(&record["message"]["parts"]);
            let label =
                Label::new(RowKind::Request, "prompt", &text).with_call(CallFrame::Request(turn));
            of(RowSide::Client, Some(Dir::In), label)
        }
        "chunk" => of(
            RowSide::Client,
            Some(Dir::Out),
            chunks::label(&record["chunk"]),
        ),
        "update" => of(
            RowSide::Agent,
            Some(Dir::In),
            updates::label(match &record["update"] {
                Value::Null => &record["notification"]["params"]["update"],
                own => own,
            }),
        ),
        "end" => {
            let label = end(&record["summary"]).with_call(CallFrame::Response(turn));
            of(RowSide::Client, Some(Dir::Out), label)
        }
        "decision" => event(decision(&record["decision"])),
        "recovery" => event(recovery(&record["recovery"])),
        "session" => {
            let texts = ["agent", "agentSessionId"].map(|name| brief(&record[name]));
            let detail = words([&texts[0], &texts[1]]);
            event(Label::new(RowKind::Event, "session", &detail))
        }
        "message" => {
            let text = text_of(&record["message"]["parts"]);
            event(Label::new(RowKind::Event, "message", &text))
        }
        // A record of a newer version.
        other => event(Label::new(RowKind::Event, other, "")),
    }
}

fn end(summary: &Value) -> Label {
    let reason = brief(&summary["stopReason"]);
    if summary["isError"] != true {
        return Label::new(RowKind::Response, "", &reason);
    }
    let message = brief(&summary["errors"][0]["message"]);
    Label::new(RowKind::Error, "", &words([&reason, &message]))
}

fn decision(decision: &Value) -> Label {
    let text = |name: &str| brief(&decision[name]);
    let verdict = if decision["approved"] == true {
        "allowed"
    } else {
        "refused"
    };
    let subject = [
        text("title"),
        text("command"),
        text("toolName"),
        text("what"),
    ];
    let subject = subject.into_iter().find(|text| !text.is_empty());
    let by = format!("by {}", text("by"));
    let detail = words([&subject.unwrap_or_default(), &by, &text("rule")]);
    Label::new(RowKind::Event, verdict, &detail)
}

fn recovery(recovery: &Value) -> Label {
    let text = |name: &str| brief(&recovery[name]);
    let failed = recovery["failed"].as_array().into_iter().flatten();
    let failed: Vec<String> = failed.map(brief).collect();
    let memory = format!("memory {}", text("memory"));
    let detail = words([&text("rung"), &memory, &failed.join(" ")]);
    Label::new(RowKind::Event, "restored", &detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LOG: &str = concat!(
        r#"{"record":"session","at":"2026-01-01T00:00:00Z","format":1,"sessionId":"s","cwd":"/p","agent":"x --acp"}"#,
        "\n",
        r#"{"record":"recovery","at":"2026-01-01T00:00:00.5Z","recovery":{"rung":"load","memory":"replayed","failed":[]}}"#,
        "\n",
        r#"{"record":"prompt","at":"2026-01-01T00:00:01Z","turnId":"t1","message":{"parts":[{"type":"text","text":"hi"}]}}"#,
        "\n",
        r#"{"record":"chunk","turnId":"t1","seq":1,"chunk":{"type":"text-delta","id":"a","delta":"Hel"}}"#,
        "\n",
        r#"{"record":"update","turnId":"t1","update":{"sessionUpdate":"tool_call","title":"ls","toolCallId":"c"}}"#,
        "\n",
        r#"{"record":"chunk","turnId":"t1","seq":2,"chunk":{"type":"text-delta","id":"a","delta":"lo"}}"#,
        "\n",
        r#"{"record":"decision","at":"2026-01-01T00:00:02Z","turnId":"t1","decision":{"what":"permission","title":"ls","approved":false,"by":"policy","rule":"deny"}}"#,
        "\n",
        r#"{"record":"end","at":"2026-01-01T00:00:03Z","turnId":"t1","summary":{"stopReason":"error","isError":true,"errors":[{"message":"gone"}]}}"#,
        "\nnot a record\n",
    );

    #[test]
    fn command_lines_have_no_values_of_secret_options() {
        let args = ["--token", "tok-1", "-e", "NAME=env-2", "--api-key=key-3"];
        let line = format!("x {}", args.join(" "));
        let session = json!({"record": "session", "at": "2026-01-01T00:00:00Z", "sessionId": "s", "cwd": "/p", "agent": line,
            "agentCommand": {"command": "x", "args": args}, "agents": [{"agent": line, "id": "a"}]});
        let mut earlier = session.clone();
        earlier.as_object_mut().unwrap().remove("agentCommand");
        for record in [session, earlier] {
            let mut timeline = Timeline::default();
            read(record.to_string().as_bytes(), &mut timeline);
            let shown = format!("{:?} {:?}", timeline.facts, timeline.rows);
            assert!(shown.contains("--token"), "{shown}");
            for secret in ["tok-1", "env-2", "key-3"] {
                assert!(!shown.contains(secret), "{secret}: {shown}");
            }
        }
    }

    #[test]
    fn records_stand_between_client_and_agent_with_their_times() {
        let mut timeline = Timeline::default();
        read(LOG.as_bytes(), &mut timeline);
        let found: Vec<_> = timeline
            .rows
            .iter()
            .map(|row| (row.t_ms, row.side, row.title.as_str(), row.detail.as_str()))
            .collect();
        let want = [
            (Some(0), RowSide::Acpipe, "session", "x --acp"),
            (
                Some(500),
                RowSide::Acpipe,
                "restored",
                "load memory replayed",
            ),
            (Some(1000), RowSide::Client, "prompt", "hi"),
            (None, RowSide::Client, "chunk text-delta", "Hel"),
            (None, RowSide::Agent, "tool_call", "ls c"),
            (None, RowSide::Client, "chunk text-delta", "lo"),
            (Some(2000), RowSide::Acpipe, "refused", "ls by policy deny"),
            (Some(3000), RowSide::Client, "prompt", "error gone"),
        ];
        assert_eq!(found, want);
        assert_eq!(timeline.rows[2].took_ms, Some(2000));
        assert_eq!(timeline.folds[0].text, "Hello");
        assert_eq!(timeline.unreadable, 1);
        assert!(timeline.facts.contains(&("directory", "/p".to_owned())));
    }

    #[test]
    fn log_is_distinguished_from_a_tape() {
        assert!(is_log(LOG.as_bytes()));
        assert!(!is_log(b"{\"tape\":1}\n"));
        assert!(!is_log(
            b"{\"t_ms\":1,\"dir\":\"in\",\"frame\":{\"record\":\"x\"}}\n"
        ));
        assert!(!is_log(b""));
    }
}
