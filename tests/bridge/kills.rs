//! acpipe is killed at any point of a conversation: everything that its client received is stored, and no
//! prompt is sent twice.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, resumable, say, think, tool, tool_change};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

const TURNS: usize = 4;

/// Returns a pseudorandom number, the same for the same seed.
fn scatter(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Process that the agent starts and would leave behind: in its own session, without a parent, or ignoring
/// SIGTERM.
fn leftovers(seed: u64) -> Value {
    let (mut command, mut setsid) = (vec!["sleep", "1000"], true);
    match seed % 8 {
        0 => command = vec!["sh", "-c", r#"trap "" TERM; sleep 1000"#],
        1..4 => command = vec!["sh", "-c", "(setsid sleep 1000 &)"],
        4..6 => setsid = false,
        _ => {}
    }
    json!({"spawn": {"command": command, "setsid": setsid}})
}

fn script(seed: u64) -> Value {
    let pause = json!({"sleep": 1});
    let words = json!({"repeat": {"times": 8, "steps": [say("word {i} "), pause]}});
    let turn = json!([
        leftovers(seed),
        think("let me see"),
        words,
        tool(
            "look",
            &json!({"title": "Look", "status": "in_progress", "rawInput": {"at": 1}})
        ),
        pause,
        tool_change(
            "look",
            &json!({"status": "completed", "rawOutput": "there"})
        ),
        words,
        end("end_turn"),
    ]);
    resumable(json!({"session/prompt": [turn]}))
}

fn prompt(turn: usize) -> Value {
    json!({"message": format!("say {turn}"), "turnId": format!("turn{turn}")})
}

/// Returns how many times agents received the prompt of a turn.
fn prompted(world: &World, turn: usize) -> usize {
    let text = format!("say {turn}");
    let log = world.log();
    let prompts = calls(&log, "session/prompt");
    let its = |p: &&&Value| p["params"]["prompt"][0]["text"] == text;
    prompts.iter().filter(its).count()
}

fn replayed(s: &mut Server) -> BTreeMap<u64, Value> {
    let mut chunks = BTreeMap::new();
    let mut after = json!(0);
    while !after.is_null() {
        let page = s.call("session/replay", &json!({"afterSeq": after}));
        for entry in page["entries"].as_array().unwrap() {
            let twice = chunks.insert(entry["seq"].as_u64().unwrap(), entry["chunk"].clone());
            assert!(twice.is_none(), "{entry}");
        }
        after = page["next"].clone();
    }
    chunks
}

/// Checks that no stored message has a part that waits for more.
fn assert_nothing_open(s: &mut Server, seed: u64) {
    let list = s.call("message/list", &json!({}));
    for message in list["messages"].as_array().unwrap() {
        for part in message["parts"].as_array().unwrap() {
            let ended = ["done", "output-available", "output-error", "output-denied"];
            let is_ended = part["state"].as_str().is_none_or(|s| ended.contains(&s));
            assert!(is_ended, "seed {seed}: {message}");
        }
    }
}

fn kill_once(seed: u64) {
    let world = World::new();
    let path = world.script(&script(seed));
    let args = ["--", FAKE_AGENT, &path];
    let mut s = Server::launch(world, &args, Framing::Lines, &[]);
    s.initialize();
    for method in ["agent/state", "session/activity"] {
        s.waive(method);
    }
    s.ensure("default");

    // A turn has about 34 messages.
    let limit = s.seen() + usize::try_from(scatter(seed) % (TURNS as u64 * 34)).unwrap();
    let mut answers: Vec<Option<Value>> = Vec::new();
    for turn in 0..TURNS {
        let id = s.send("session/prompt", &prompt(turn));
        let answer = s.answer_within(&id, limit);
        let over = answer.is_none();
        answers.push(answer);
        if over {
            break;
        }
    }
    // The seed determines the moment of the kill, not an event.
    thread::sleep(Duration::from_micros(scatter(!seed) % 3000));
    s.kill();
    if let Some(left) = s.world.leak() {
        s.fail(&left);
    }
    let shown = s.numbered("default");

    let mut s = s.next(&args);
    s.initialize();
    for method in ["agent/state", "session/activity"] {
        s.waive(method);
    }
    assert_nothing_open(&mut s, seed);
    let there = replayed(&mut s);
    let numbers: Vec<u64> = there.keys().copied().collect();
    assert_eq!(
        numbers,
        (1..=there.len() as u64).collect::<Vec<_>>(),
        "seed {seed}"
    );
    for (seq, chunk) in &shown {
        assert_eq!(there.get(seq), Some(chunk), "seed {seed}: chunk {seq}");
    }
    s.allow_gaps("default");
    for (turn, told) in answers.iter().enumerate() {
        let before = prompted(&s.world, turn);
        s.rewind("default");
        let id = s.send("session/prompt", &prompt(turn));
        let answer = s.answer(&id);
        let again = prompted(&s.world, turn);
        match (told, answer.get("result")) {
            (Some(told), Some(result)) => {
                assert_eq!(&told["result"], result, "seed {seed}");
                assert_eq!((before, again), (1, 1), "seed {seed}");
            }
            (None, Some(_)) => assert_eq!(again, 1, "seed {seed}: {answer}"),
            (None, None) => {
                assert_eq!(
                    answer["error"]["data"]["kind"], "turnUnfinished",
                    "seed {seed}"
                );
                assert_eq!(again, before, "seed {seed}");
            }
            (Some(_), None) => panic!("seed {seed}: turn {turn} was acknowledged: {answer}"),
        }
        s.numbered("default");
    }
    let id = s.send("session/prompt", &json!({"message": "on", "turnId": "on"}));
    let answer = s.result(&id);
    assert_eq!(answer["stopReason"], "end_turn", "seed {seed}");
    let chunks = s.take_chunks("default");
    let started = chunks.iter().filter(|c| c["type"] == "start").count();
    assert_eq!(started, 1, "seed {seed}");
    s.finish();
}

#[test]
fn killing_acpipe_anywhere_loses_no_chunk_and_repeats_no_prompt() {
    (0..12).for_each(kill_once);
}

/// `KILLS=200 cargo test --test bridge kills -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn killing_acpipe_many_times_loses_no_chunk_and_repeats_no_prompt() {
    let kills = std::env::var("KILLS").ok().and_then(|n| n.parse().ok());
    (0..kills.unwrap_or(200)).for_each(kill_once);
}
