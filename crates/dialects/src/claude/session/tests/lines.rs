//! Tests of lines that are not served or are not frames.

use super::*;
use acpipe_json::repair::Faults;
use acpipe_model::decision::{Decision, DecisionSource, Effect};
use acpipe_model::dialect::{AgentAnswer, AgentLine, Dialect, Noted};
use acpipe_model::line_repair::{LostLine, LostReason};

#[test]
fn unsupported_control_requests_are_refused() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    t.out.take();
    for request in [
        json!({"subtype": "novel"}),
        json!({}),
        json!({"subtype": "can_use_tool"}),
    ] {
        let asked = json!({"type": "control_request", "request_id": "r", "request": request});
        assert_eq!(t.says(child, &asked), Vec::<String>::new());
        let answer = &t.sent()[0]["response"];
        assert_eq!(
            (&answer["subtype"], &answer["request_id"]),
            (&json!("error"), &json!("r")),
            "{request}"
        );
    }
}

/// Returns the text that was written since the last call.
fn written(t: &mut Test) -> String {
    let mut text = String::new();
    for (_, order) in t.out.take() {
        if let TransportOrder::Lines(lines) = order {
            text.push_str(std::str::from_utf8(&lines).unwrap());
        }
    }
    text
}

/// Returns a request with this id, as JSON.
fn request(id: &str, request: &Value) -> String {
    format!(r#"{{"type":"control_request","request_id":{id},"request":{request}}}"#)
}

#[test]
fn response_repeats_the_id_of_the_request_byte_for_byte() {
    let input = json!({"command": "ls"});
    let ask =
        json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t", "input": input});
    let called = json!({"tool_name": "Bash", "tool_use_id": "t", "tool_input": input});
    let hook = json!({"subtype": "hook_callback", "callback_id": "acpipe", "input": called});
    let other = json!({"subtype": "novel"});
    for id in [
        "\"r\"",
        "7",
        "7.0",
        "null",
        "true",
        "{\"a\":1}",
        r#""\u0071""#,
        r#""q\ud800""#,
    ] {
        let mut t = Test::new();
        let child = t.open(Opening::New, &none());
        t.out.take();
        for request in [&ask, &hook, &other].map(|asked| request(id, asked)) {
            let mut events = Vec::new();
            let read = t.claude.read(
                child,
                AgentLine::Whole(request.as_bytes()),
                &mut events,
                &mut t.out,
            );
            read.unwrap();
            match events.pop() {
                Some(AgentEvent::Permission(asked)) => {
                    let decision = Decision::cancelled(DecisionSource::End);
                    t.claude
                        .answer(&asked.key, AgentAnswer::Permission(&decision), &mut t.out);
                }
                Some(AgentEvent::ToolHook(called)) => {
                    t.claude
                        .answer(&called.key, AgentAnswer::Hook(Effect::Deny), &mut t.out);
                }
                other => assert!(other.is_none(), "{other:?}"),
            }
            let answer = written(&mut t);
            assert_eq!(answer.lines().count(), 1, "{request}");
            assert!(
                answer.contains(&format!(r#""request_id":{id},"#)),
                "{answer}"
            );
        }
        // Of a line that cannot be read.
        let cut = request(id, &ask).replace("\":", "\" : ");
        let line = Overlong {
            len: 1 << 30,
            head: cut.clone().into(),
            tail: cut.into(),
        };
        let lost = LostLine::overlong(&line);
        let line = AgentLine::Lost(&lost);
        t.claude
            .read(child, line, &mut Vec::new(), &mut t.out)
            .unwrap();
        let answer = written(&mut t);
        let is_scalar = !id.starts_with('{');
        assert_eq!(
            answer.contains(&format!(r#""request_id":{id},"#)),
            is_scalar,
            "{answer}"
        );
    }
}

#[test]
fn request_without_an_id_is_a_line_that_cannot_be_read() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    t.out.take();
    let request =
        json!({"type": "control_request", "request": {"subtype": "can_use_tool"}}).to_string();
    let mut events = Vec::new();
    let read = t.claude.read(
        child,
        AgentLine::Whole(request.as_bytes()),
        &mut events,
        &mut t.out,
    );
    assert!(read.is_err() && events.is_empty());
    let line = Overlong {
        len: 1 << 30,
        head: request.clone().into(),
        tail: request.clone().into(),
    };
    let lost = LostLine::overlong(&line);
    let line = AgentLine::Lost(&lost);
    t.claude
        .read(child, line, &mut Vec::new(), &mut t.out)
        .unwrap();
    assert_eq!(written(&mut t), "");
}

#[test]
fn lines_that_are_not_frames_have_no_effect() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    assert_eq!(t.reads(child, ""), Vec::<String>::new());
    assert_eq!(t.claude.faults().blank, 1);
    for line in ["no JSON", "[]", "{\"half\":", "\u{fffd}"] {
        let mut events = Vec::new();
        let read = t.claude.read(
            child,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut t.out,
        );
        assert!(read.is_err() && events.is_empty(), "{line}");
    }
}

#[test]
fn faults_of_a_file_that_is_read_twice_are_counted_once() {
    let mut env = Variables::default();
    env.0.insert("HOME".to_owned(), Some("/home".to_owned()));
    let mut t = Test::new();
    t.claude = Claude::new(ProcessSpec::default(), env, "seed", false);
    let child = t.opens(Opening::Load("a"), &none());
    let line = Overlong {
        len: 99,
        head: b"{".as_slice().into(),
        tail: b"}".as_slice().into(),
    };
    // The transport for the path, the first pass, the second pass.
    for reader in 1..=3 {
        let reader = Child(child.0 + reader);
        if reader.0 > child.0 + 1 {
            let too_long = LostLine::overlong(&line);
            let not_utf8 = LostLine {
                reason: LostReason::NotUtf8,
                ..LostLine::overlong(&line)
            };
            for lost in [too_long, not_utf8] {
                let line = AgentLine::Lost(&lost);
                t.claude
                    .read(reader, line, &mut Vec::new(), &mut t.out)
                    .unwrap();
            }
            let repaired = Faults {
                not_a_number: true,
                ..Faults::default()
            };
            t.claude.note(reader, Noted::Repaired(repaired));
        }
        t.ends(reader, 0);
    }
    let faults = t.claude.faults();
    let counts = (faults.too_long, faults.invalid_utf8, faults.malformed);
    assert_eq!(counts, (1, 1, 1));
}
