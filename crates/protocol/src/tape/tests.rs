//! Records that are written and read.

use super::*;

fn written(record: &TapeRecord<'_>) -> String {
    let mut out = Vec::new();
    record.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn written_records_are_read_back() {
    let json = RawValue::from_string(r#"{"id":1}"#.to_owned()).unwrap();
    let child = TapeProcess {
        agent: Some("claude".to_owned()),
        child: Some(2),
    };
    let frame = |side, direction, process, body, cut| {
        TapeRecord::Frame(TapeFrame {
            at: Duration::from_micros(12_345),
            side,
            direction,
            process,
            body,
            cut,
        })
    };
    let no_process = TapeProcess::default();
    let records = [
        TapeRecord::Header(TapeHeader {
            tape: VERSION,
            acpipe: Some("0.1.0".to_owned()),
            started_at: Some("2026-01-02T03:04:05Z".to_owned()),
        }),
        frame(
            Side::Client,
            Direction::In,
            no_process.clone(),
            FrameBody::Json(&json),
            None,
        ),
        frame(
            Side::Agent,
            Direction::Out,
            child.clone(),
            FrameBody::Json(&json),
            Some(9),
        ),
        frame(
            Side::Agent,
            Direction::In,
            no_process,
            FrameBody::Text("a \"b\"\t{".to_owned()),
            None,
        ),
        TapeRecord::Event(TapeEvent {
            at: Duration::from_millis(3),
            kind: EventKind::Exited,
            process: child,
            command: vec!["a".to_owned()],
            code: Some(1),
            signal: Some(9),
            stderr: Some("x\ny".to_owned()),
            frames: Some(3),
        }),
    ];
    for record in &records {
        let line = written(record);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let read = parse(&line).unwrap();
        assert_eq!(format!("{read:?}"), format!("{record:?}"));
    }
}

#[test]
fn line_breaks_between_tokens_become_spaces() {
    let json = RawValue::from_string("{\r\n\"a\":\n\"b\\n\"}".to_owned()).unwrap();
    let line = written(&TapeRecord::Frame(TapeFrame {
        at: Duration::from_millis(7),
        side: Side::Client,
        direction: Direction::In,
        process: TapeProcess::default(),
        body: FrameBody::Json(&json),
        cut: None,
    }));
    assert_eq!(
        line,
        "{\"t_ms\":7,\"dir\":\"in\",\"side\":\"client\",\"frame\":{  \"a\": \"b\\n\"}}\n"
    );
}

#[test]
fn recordings_without_header_and_with_raw_lines_are_tapes() {
    let tape = "{\"dir\":\"out\",\"t_ms\":7,\"frame\":{\"id\":0}}\n\n{\"dir\":\"in\",\"raw\":\"hm\"}\n{\"dir\":\"in\",\"t_m";
    let read: Vec<_> = records(tape).map(Result::unwrap).collect();
    let [TapeRecord::Frame(first), TapeRecord::Frame(second)] = &read[..] else {
        panic!("{read:?}");
    };
    assert_eq!((first.side, first.direction), (Side::Agent, Direction::Out));
    assert_eq!(first.body.line(), "{\"id\":0}");
    assert_eq!(
        (second.direction, second.body.line()),
        (Direction::In, "hm")
    );
}

#[test]
fn faults_name_the_line() {
    for (line, why) in [
        ("nonsense", "expected"),
        ("{}", "neither"),
        ("{\"frame\":{}}", "dir"),
        ("{\"dir\":\"up\",\"frame\":{}}", "unknown variant"),
        ("{\"dir\":\"in\",\"frame\":{},\"t_ms\":-1}", "not a time"),
        ("{\"tape\":2}", "newer acpipe"),
    ] {
        let tape = format!("{{\"tape\":1}}\n{line}\n{{\"tape\":1}}\n");
        let faults: Vec<_> = records(&tape).filter_map(Result::err).collect();
        assert_eq!((faults.len(), faults[0].line), (1, 2), "{line}");
        assert!(faults[0].why.contains(why), "{line}: {}", faults[0]);
    }
}

#[test]
fn unknown_events_are_read() {
    let read = parse("{\"t_ms\":1,\"event\":\"paused\",\"more\":[1]}").unwrap();
    assert!(matches!(
        read,
        TapeRecord::Event(TapeEvent {
            kind: EventKind::Unknown,
            ..
        })
    ));
}

#[test]
fn damaged_lines_of_a_tape_are_repaired() {
    let tape = b"{\"t_ms\":1,\"dir\":\"in\",\"frame\":{\"a\":1}}\n\n{\"t_ms\":NaN,\n{\"t_ms\":2,\"dir\":\"in\",\"frame\":{\"a\":NaN,\"b\":\"\xe9\",}} \n{\"t_ms\":3,";
    let repaired = text(tape);
    let lines: Vec<&str> = repaired.lines().collect();
    assert_eq!(
        lines[3],
        "{\"t_ms\":2,\"dir\":\"in\",\"frame\":{\"a\":null,\"b\":\"\u{fffd}\"}} "
    );
    let read: Vec<bool> = records(&repaired).map(|record| record.is_ok()).collect();
    // The torn line in the middle is a fault, the last one is not read.
    assert_eq!(read, [true, false, true]);
    assert!(matches!(text(b"{}\n"), std::borrow::Cow::Borrowed(_)));
}
