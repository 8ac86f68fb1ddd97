//! Many idle sessions, and many that stream at once.

use crate::client::{Client, Message};
use crate::sample::{Sample, ticks};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Words of a stream, one every few milliseconds.
const WORDS: u64 = 200;

fn script() -> Value {
    let word = json!({"update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "w{i} "}}});
    json!({"session/prompt": [[
        {"repeat": {"times": WORDS, "steps": [word, {"sleep": 2}]}},
        {"reply": {"stopReason": "end_turn"}},
    ]]})
}

pub fn gather(sessions: usize, streams: usize) {
    let mut client = Client::start("crowd", &script());
    let before = Sample::take(client.pid(), client.alive());
    for n in 0..sessions {
        let answer = client.call("session/ensure", &json!({"sessionId": format!("s{n}")}));
        assert!(answer["result"].is_object(), "{answer}");
    }
    let resting = Sample::take(client.pid(), client.alive());
    let each = resting.rss.saturating_sub(before.rss) / sessions.max(1);
    println!("{sessions} sessions at rest: {resting:?}; before: {before:?}; {each} KiB each");
    assert!(each < 64, "a session at rest holds {each} KiB");

    // The disk may still be busy with earlier work in the first of these seconds.
    let rest = || {
        let before = ticks(client.pid());
        std::thread::sleep(Duration::from_secs(1));
        ticks(client.pid()) - before
    };
    let idle = (0..10).map(|_| rest()).find(|ticks| *ticks <= 1);
    let idle = idle.expect("acpipe is busy with nothing");
    println!("processor time in a second of rest: {idle} ticks of 10 ms");

    let alone = stream(&mut client, 1);
    let together = stream(&mut client, streams);
    println!("a stream alone: {alone:.1?}; {streams} at once: {together:.1?} for all");
    // The streams share the processors; run one after another they would take a multiple of the time.
    let in_turn = alone * u32::try_from(streams).unwrap();
    assert!(together < in_turn / 2, "{together:?} of {in_turn:?}");
    client.finish();
}

/// Runs so many streams at once and returns the time that they took; checks that none lost any text.
fn stream(client: &mut Client, streams: usize) -> Duration {
    let since = Instant::now();
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut turns = HashMap::new();
    for n in 0..streams {
        let session = format!("s{n}");
        let prompt = json!({"sessionId": session, "message": "go"});
        turns.insert(client.send("session/prompt", &prompt), session);
    }
    while !turns.is_empty() {
        match client.next() {
            Message::Chunk { session, chunk } => {
                let text = texts.entry(session).or_default();
                *text += chunk["delta"].as_str().unwrap_or_default();
            }
            Message::Answer { id, answer } => {
                let session = turns.remove(&id).unwrap();
                let whole: String = (0..WORDS).map(|i| format!("w{i} ")).collect();
                assert_eq!(answer["result"]["text"], whole, "{session}");
                assert_eq!(texts[&session], whole, "{session}");
            }
            Message::Other => {}
        }
    }
    since.elapsed()
}
