//! Runs of deltas against frames that are read one by one.

use super::*;
use acpipe_model::event::MessagePiece;

const SESSION: &str = "5e551041-0000-4000-8000-000000000000";

/// Pseudorandom numbers, the same in each run (xorshift).
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// Returns a frame of a stream, most often a delta of the current block.
fn frame(state: &mut u64) -> String {
    const TEXTS: [&str; 8] = [
        r#""plain""#,
        r#""""#,
        r#""é\n\"""#,
        r#""\ud83d""#,
        "7",
        r#""a","text":"b""#,
        "\"raw \u{1}\"",
        r#""bad \x""#,
    ];
    let chosen = usize::try_from(random(state, 8)).unwrap();
    let text = if random(state, 4) > 0 {
        TEXTS[0]
    } else {
        TEXTS[chosen]
    };
    let message = random(state, 40) / 39;
    let index = random(state, 30) / 29;
    let (kind, name) =
        [("text", "text"), ("thinking", "thinking")][usize::from(random(state, 12) == 0)];
    let event = match random(state, 60) {
        0 => format!(r#"{{"type":"message_start","message":{{"id":"m{message}"}}}}"#),
        1 => format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"{kind}","{name}":""}}}}"#
        ),
        2 => format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        _ => format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}_delta","{name}":{text}}}}}"#
        ),
    };
    let uuid = format!(
        "{:08x}-0000-4000-8000-{:012x}",
        random(state, 1 << 32),
        random(state, 1 << 40)
    );
    let parent = if random(state, 50) == 0 {
        "\"t1\""
    } else {
        "null"
    };
    let session = if random(state, 60) == 0 {
        "other"
    } else {
        SESSION
    };
    let extra = if random(state, 60) == 0 {
        r#","more":1"#
    } else {
        ""
    };
    format!(
        r#"{{"type":"stream_event","event":{event},"session_id":"{session}","parent_tool_use_id":{parent},"uuid":"{uuid}","api_message_id":"m{message}"{extra}}}"#
    )
}

/// Returns the updates of a line as they are reported one by one.
fn read_one(frames: &mut Frames, line: &str, all: &mut Vec<String>) {
    let Some(frame) = Frame::read(line) else {
        return;
    };
    let mut events = Vec::new();
    frames.read(&frame, line, SESSION, &mut events);
    all.extend(events.iter().map(|event| match event {
        AgentEvent::Update { update, .. } => format!("{update:?}"),
        other => format!("{other:?}"),
    }));
}

#[test]
fn runs_report_the_same_as_single_frames() {
    let mut state = 0x5EED_0000_CAFE;
    let mut in_runs = 0;
    for _ in 0..40 {
        let lines: Vec<String> = (0..200).map(|_| frame(&mut state)).collect();
        let (mut single, mut wanted) = (Frames::default(), Vec::new());
        for line in &lines {
            read_one(&mut single, line, &mut wanted);
        }
        let (mut joined, mut seen) = (Frames::default(), Vec::new());
        let all = lines.join("\n") + "\n";
        let mut rest = all.as_str();
        while let Some((line, after)) = rest.split_once('\n') {
            let Some(run) = joined.read_run(SESSION, rest.as_bytes()) else {
                read_one(&mut joined, line, &mut seen);
                rest = after;
                continue;
            };
            joined.note_run(&run);
            for text in &run.texts {
                let text = std::str::from_utf8(&run.lines[text.clone()]).unwrap();
                let message_id = run
                    .message_id
                    .clone()
                    .map(|at| run.original.line[at].into());
                let piece = MessagePiece {
                    role: run.role,
                    message_id,
                    content: Content::Text(
                        JsonStr::new(serde_json::from_str(text).unwrap()).unwrap(),
                    ),
                    subagent: None,
                    about: Members::default(),
                };
                seen.push(format!("{:?}", Update::Message(piece)));
            }
            in_runs += run.texts.len();
            rest = &rest[run.lines.len()..];
        }
        assert_eq!(seen, wanted);
        let blocks = |frames: &Frames| format!("{:?}", frames.speakers);
        assert_eq!(blocks(&joined), blocks(&single));
    }
    assert!(in_runs > 1_000, "{in_runs} of 8,000 lines are in runs");
}
