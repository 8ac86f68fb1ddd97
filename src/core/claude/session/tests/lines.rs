//! Tests of lines that are not served or are not frames.

use super::*;
use crate::core::line_repair::{LostLine, LostReason};
use crate::proto::json::repair::Faults;

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

#[test]
fn lines_that_are_not_frames_have_no_effect() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    assert_eq!(t.reads(child, ""), Vec::<String>::new());
    assert_eq!(t.claude.faults().blank, 1);
    for line in ["no JSON", "[]", "{\"half\":", "\u{fffd}"] {
        let mut events = Vec::new();
        let read = t
            .claude
            .read(child, line.as_bytes(), &mut events, &mut t.out);
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
        let mut events = Vec::new();
        if reader.0 > child.0 + 1 {
            let too_long = LostLine::overlong(&line);
            let not_utf8 = LostLine {
                reason: LostReason::NotUtf8,
                ..LostLine::overlong(&line)
            };
            for lost in [too_long, not_utf8] {
                t.claude.read_lost(reader, &lost, &mut events, &mut t.out);
            }
            let repaired = Faults {
                not_a_number: true,
                ..Faults::default()
            };
            t.claude.count_repaired(reader, repaired);
        }
        t.ends(reader, 0);
    }
    let faults = t.claude.faults();
    let counts = (faults.too_long, faults.invalid_utf8, faults.malformed);
    assert_eq!(counts, (1, 1, 1));
}
