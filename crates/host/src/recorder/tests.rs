//! Tapes that a recorder writes.

use super::*;
use acpipe_protocol::tape::{FrameBody, TapeRecord, records};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

/// File in the directory for temporary files, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("acpipe-tape-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Records what `act` records, and returns the tape.
fn recorded(name: &str, limit: u64, act: impl FnOnce(&Recorder)) -> String {
    let scratch = Scratch::new(name);
    let file = open_tape(&scratch.0).unwrap();
    let redact = Box::new(|line: &str, _: Sender| line.replace("hunter", "[hidden]"));
    let (recorder, thread) = Recorder::start(file, limit, redact).unwrap();
    act(&recorder);
    drop(thread);
    scratch.read()
}

#[test]
fn frames_and_events_are_recorded_in_order_without_secrets() {
    let tape = recorded("order", 1 << 20, |recorder| {
        let process = recorder.process(
            Some("mine".to_owned()),
            vec!["agent".to_owned(), "--key=hunter".to_owned()],
        );
        process.started();
        process.sent(b"{\"a\":\"hunter\"}\n");
        let lines = Bytes::from_static(b"{\"b\":1}\nplain\n\n");
        process.received(&Batch::Lines(lines));
        recorder.client(
            Direction::In,
            b"Content-Length: 7\r\n\r\n{\"c\":1}Content-Length: 7\r\n\r\n{\"d\":1}",
        );
        recorder.client(Direction::Out, b"{\"e\":1}\n{\"f\":1}\n");
        process.closed();
        process.exited(Some(1), None, "said hunter");
    });
    assert!(!tape.contains("hunter"), "{tape}");
    let mut seen = Vec::new();
    for record in records(&tape).map(Result::unwrap) {
        match record {
            TapeRecord::Header(header) => seen.push(format!("tape {}", header.tape)),
            TapeRecord::Frame(frame) => seen.push(format!(
                "{:?} {:?} {}",
                frame.side,
                frame.direction,
                frame.body.line()
            )),
            TapeRecord::Event(event) => {
                assert_eq!(event.process.agent.as_deref(), Some("mine"));
                assert_eq!(event.process.child, Some(1));
                let (name, words) = (event.kind.name(), event.command.join(" "));
                seen.push(format!(
                    "{name} {words}{}",
                    event.stderr.unwrap_or_default()
                ));
            }
        }
    }
    assert_eq!(
        seen,
        [
            "tape 1",
            "started agent --key=[hidden]",
            "Agent Out {\"a\":\"[hidden]\"}",
            "Agent In {\"b\":1}",
            "Agent In plain",
            "Client In {\"c\":1}",
            "Client In {\"d\":1}",
            "Client Out {\"e\":1}",
            "Client Out {\"f\":1}",
            "closed ",
            "exited said [hidden]",
        ]
    );
}

#[test]
fn full_tape_ends_with_a_mark() {
    let tape = recorded("full", 2000, |recorder| {
        for _ in 0..100 {
            recorder.client(Direction::In, b"{\"method\":\"a\"}\n");
        }
    });
    let last = tape.lines().last().unwrap();
    assert!(last.ends_with("\"event\":\"full\"}"), "{last}");
    assert_eq!(tape.matches("full").count(), 1);
    assert!((1000..2100).contains(&tape.len()), "{}", tape.len());
}

#[test]
fn long_frames_are_shortened_and_remain_json() {
    let long = "x".repeat(3 << 20);
    let tape = recorded("long", 1 << 30, |recorder| {
        recorder.client(
            Direction::In,
            format!("{{\"id\":7,\"text\":\"{long}\"}}").as_bytes(),
        );
        recorder.client(Direction::In, long.as_bytes());
        let overlong = Overlong {
            len: 1 << 40,
            head: Bytes::from_static(b"{\"id\":7,\"hun"),
            tail: Bytes::from_static(b"ter\",\"x\":1}"),
        };
        let process = recorder.process(None, Vec::new());
        process.received(&Batch::TooLong(overlong));
    });
    let read: Vec<_> = records(&tape).map(Result::unwrap).collect();
    let [
        _,
        TapeRecord::Frame(json),
        TapeRecord::Frame(text),
        TapeRecord::Frame(overlong),
    ] = &read[..]
    else {
        panic!("{} records", read.len());
    };
    assert!(matches!(json.body, FrameBody::Json(_)));
    assert!(json.body.line().contains("\"id\":7"));
    assert_eq!(json.cut, Some(long.len() as u64 + 18));
    assert_eq!(text.cut, Some(long.len() as u64));
    for frame in [json, text] {
        let len = frame.body.line().len();
        assert!((1 << 19..=(1 << 20) + 200).contains(&len), "{len}");
    }
    assert_eq!(overlong.body.line(), "{\"id\":7,…\",\"x\":1}");
    assert_eq!(overlong.cut, Some(1 << 40));
}

#[test]
fn frames_that_the_queue_cannot_hold_are_counted() {
    let scratch = Scratch::new("dropped");
    let (proceed, waits) = sync_channel::<()>(0);
    let waits = Mutex::new(waits);
    let redact = Box::new(move |line: &str, _: Sender| {
        // Once the sender is dropped, nothing waits.
        let _ = waits.lock().unwrap().recv();
        line.to_owned()
    });
    let file = open_tape(&scratch.0).unwrap();
    let (recorder, thread) = Recorder::start(file, 1 << 30, redact).unwrap();
    let big = format!("{{\"a\":\"{}\"}}\n", "x".repeat(QUEUED_BYTES / 2));
    recorder.client(Direction::In, big.as_bytes());
    for _ in 0..3 {
        recorder.client(Direction::In, big.as_bytes());
    }
    drop(proceed);
    drop(thread);
    let tape = scratch.read();
    let events: Vec<_> = records(&tape)
        .filter_map(|record| match record.unwrap() {
            TapeRecord::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].kind, EventKind::Dropped);
    assert_eq!(events[0].frames, Some(3));
}

#[test]
fn only_tapes_are_replaced_and_only_the_owner_reads_them() {
    let scratch = Scratch::new("file");
    std::fs::write(&scratch.0, "important").unwrap();
    let error = open_tape(&scratch.0).unwrap_err().to_string();
    assert!(error.contains("not a tape"), "{error}");
    assert_eq!(scratch.read(), "important");
    std::fs::write(&scratch.0, "{\"tape\":1}\nold\n").unwrap();
    let file = open_tape(&scratch.0).unwrap();
    assert_eq!(scratch.read(), "");
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = open_tape(&scratch.0).unwrap_err().to_string();
    assert!(error.contains("another acpipe"), "{error}");
    let error = open_tape(&std::env::temp_dir()).unwrap_err();
    assert!(!error.to_string().is_empty());
}
