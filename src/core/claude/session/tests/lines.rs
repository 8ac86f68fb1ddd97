//! Tests of lines that are not served or are not frames.

use super::*;

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
fn lines_that_are_not_frames_are_counted() {
    let mut t = Test::new();
    let child = t.open(Opening::New, &none());
    for line in ["", "no JSON", "[]", "{\"half\":"] {
        assert_eq!(t.reads(child, line), Vec::<String>::new(), "{line}");
    }
    let faults = t.claude.faults();
    assert_eq!((faults.blank, faults.malformed), (1, 3));
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
            t.claude
                .read_overlong(reader, &line, &mut events, &mut t.out);
            t.claude.read(reader, b"\xff", &mut events, &mut t.out);
        }
        t.ends(reader, 0);
    }
    let faults = t.claude.faults();
    assert_eq!((faults.too_long, faults.invalid_utf8), (1, 1));
}
