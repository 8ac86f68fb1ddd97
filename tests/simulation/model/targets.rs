//! Fuzz targets: `fuzz/fuzz_targets/` calls these functions, and a test replays the corpus with them.

use super::dice::Dice;
use super::files;
use super::world::World;
use acpipe_core::hub::AgentInput;
use acpipe_core::sanitize::sanitize;
use acpipe_json::frame::{
    Batch, ClientFrame, ClientFrames, LineBatches, Overlong, lines, sniff, sniff_all,
};
use acpipe_json::rpc::{Message, NotAMessage};
use acpipe_json::{DEEPEST, is_deeper, repair, rpc, shallow, value};
use acpipe_protocol::wire::Protocol;
use bytes::BytesMut;
use serde_json::value::RawValue;
use std::fmt::Debug;
use std::io;
use tokio_util::codec::Decoder;

/// Name of a target, which is that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets.
pub const ALL: [Target; 6] = [
    ("frame", frame),
    ("envelope", envelope),
    ("acp", acp),
    ("claude", claude),
    ("history", history),
    ("core", core),
];

/// Length in bytes above which a line of an agent is too long.
const MAX_LINE: usize = 4096;

/// Maximal number of steps of a fuzzer's world.
const LIFE: u64 = 2000;

/// Decodes `input` in pieces of `size` bytes.
fn feed<D: Decoder<Error = io::Error>>(mut decoder: D, input: &[u8], size: usize) -> Vec<D::Item> {
    let mut buffer = BytesMut::new();
    let mut items = Vec::new();
    for piece in input.chunks(size.max(1)) {
        buffer.extend_from_slice(piece);
        while let Some(item) = decoder.decode(&mut buffer).unwrap() {
            items.push(item);
        }
    }
    while let Some(item) = decoder.decode_eof(&mut buffer).unwrap() {
        items.push(item);
    }
    assert!(buffer.is_empty(), "{buffer:?} is left");
    items
}

/// Checks that the decoded frames do not depend on the pieces in which the bytes arrive.
pub fn frame(data: &[u8]) {
    let [max, size, input @ ..] = data else {
        return;
    };
    let (max, size) = (usize::from(*max), usize::from(*size) + 1);
    let agent = |size| -> Vec<Result<Vec<u8>, Overlong>> {
        let batches = feed(LineBatches::new(max), input, size).into_iter();
        let lines = batches.flat_map(|batch| match batch {
            Batch::Lines(batch) => lines(&batch).map(|l| Ok(l.text.to_vec())).collect(),
            Batch::TooLong(line) => vec![Err(line)],
        });
        lines.collect()
    };
    let whole = agent(input.len());
    same(&agent(size), &whole);
    let len = |line: &Result<Vec<u8>, Overlong>| match line {
        Ok(line) => line.len() as u64,
        Err(line) => line.len,
    };
    let told: u64 = whole.iter().map(len).sum();
    let newlines = memchr::memchr_iter(b'\n', input).count();
    let mark = if input.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    assert_eq!(
        told,
        (input.len() - newlines - mark) as u64,
        "bytes are lost"
    );
    for line in whole.iter().filter_map(|line| line.as_ref().err()) {
        _ = sniff(&line.head, &line.tail);
    }
    let client = |size| -> Vec<ClientFrame> { feed(ClientFrames::new(max), input, size) };
    same(&client(size), &client(input.len()));
}

fn same<T: PartialEq + Debug>(pieces: &[T], whole: &[T]) {
    assert_eq!(pieces, whole, "in pieces, and as a whole");
}

/// Checks that repairs are JSON of a bounded size, and leave a valid object as it is.
fn repairs(line: &[u8]) {
    let Some(text) = repair::decoded(line) else {
        return;
    };
    let most = 2 * text.len() + 2048;
    let is_json = |text: &str| serde_json::from_str::<&RawValue>(text).is_ok();
    let mut objects = repair::objects(&text);
    let found: Vec<String> = objects.by_ref().map(String::from).collect();
    assert!(found.iter().all(|object| is_json(object)), "{text}");
    assert!(found.iter().all(|object| object.len() <= most), "{text}");
    if let Some((whole, _)) = repair::whole(&text) {
        assert!(is_json(&whole), "{text}");
    }
    let valid: Option<&RawValue> = serde_json::from_str(&text).ok();
    if let Some(valid) = valid.filter(|valid| valid.get().starts_with('{')) {
        assert_eq!(found, [valid.get()]);
        assert!(
            !objects.faults().any() && objects.rest().is_none(),
            "{text}"
        );
    }
    _ = sniff_all(line, "");
}

/// Checks that a parsed envelope can be answered, and that sanitizing keeps every readable line readable.
pub fn envelope(data: &[u8]) {
    for before in lines(data) {
        repairs(before.text);
        let line = sanitize(before.text);
        assert!(!line.contains(&b'\n'), "a line stays one line");
        let Ok(text) = std::str::from_utf8(&line) else {
            continue;
        };
        let read: Option<&RawValue> = serde_json::from_str(text).ok();
        let was: Result<&RawValue, _> = serde_json::from_slice(before.text);
        assert!(was.is_err() || read.is_some(), "{text}");
        _ = read.map(value);
        let flat = shallow(text);
        let still: Option<&RawValue> = serde_json::from_str(&flat).ok();
        assert_eq!(read.is_some(), still.is_some(), "{text}");
        assert!(
            read.is_none() || !is_deeper(flat.as_bytes(), DEEPEST),
            "{text}"
        );
        // An odd member of an object must not make the others unreadable.
        if read.is_some_and(|raw| raw.get().starts_with('{')) {
            let message = rpc::parse(text);
            assert!(!matches!(message, Err(NotAMessage::Json(_))), "{text}");
        }
        if let Ok(Message::Request { id, .. }) = rpc::parse(text) {
            let mut answer = Vec::new();
            rpc::write_result(&mut answer, id, &1);
            let answer = String::from_utf8(answer).unwrap();
            match rpc::parse(&answer) {
                Ok(Message::Response { id: again, outcome }) => {
                    let none = id.get() == "null";
                    assert!(outcome.is_ok() && (none || again.unwrap().get() == id.get()));
                }
                other => panic!("{other:?} of {answer}"),
            }
        }
    }
}

/// Sends these bytes as an agent's output in a turn, and checks that all else continues to work.
fn say(protocol: Protocol, data: &[u8]) {
    let mut world = World::in_a_turn(protocol);
    for batch in feed(LineBatches::new(MAX_LINE), data, usize::MAX) {
        world.feed(AgentInput::Batch(batch));
    }
    world.end_faults();
    world.finish();
}

pub fn acp(data: &[u8]) {
    say(Protocol::Acp, data);
}

pub fn claude(data: &[u8]) {
    say(Protocol::Claude, data);
}

/// Sends these bytes as the history of a restored session.
pub fn history(data: &[u8]) {
    let batches = feed(LineBatches::new(MAX_LINE), data, usize::MAX);
    let mut said: Vec<AgentInput> = batches.into_iter().map(AgentInput::Batch).collect();
    said.extend(files::lines(Vec::new()));
    let mut world = World::with_history(said);
    world.end_faults();
    world.finish();
}

/// Runs a whole world whose choices are these bytes.
pub fn core(data: &[u8]) {
    let mut world = World::any(Dice::of(data));
    while !world.dice.is_spent() && world.steps < LIFE {
        world.step();
    }
    if data.len().is_multiple_of(2) {
        world.end_faults();
    }
    world.finish();
}
