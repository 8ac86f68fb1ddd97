//! Checks that a replayed session becomes the same messages as its live turns.
//!
//! Recordings of real agents are compared up to a table of allowed differences, generated histories without
//! any such table. `normal.rs` removes what no replay can contain.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]

mod allowed;
mod difference;
mod generate;
mod history_lines;
mod live;
mod normal;
mod recorded;

use acpipe_core::replay::{Replay, ReplayedMessages, is_other_conversation};
use difference::differences;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Number of generated histories that are compared.
const GENERATED: u64 = 2_000;

#[test]
fn recorded_replays_match_their_turns() {
    let mut wrong = String::new();
    for (agent, recordings) in recorded::SCENARIOS {
        let allowances = allowed::of(agent);
        let mut used = vec![0; allowances.len()];
        let loads = recorded::loads(recordings);
        assert!(!loads.is_empty(), "{agent}: nothing was loaded");
        for load in loads {
            assert!(!load.live.is_empty(), "{}: no turn before", load.name);
            for difference in differences(&normal::form(&load.live), &normal::form(&load.replayed))
            {
                match allowances.iter().position(|a| a.covers(&difference)) {
                    Some(at) => used[at] += 1,
                    None => writeln!(wrong, "{}: {difference}", load.name).unwrap(),
                }
            }
        }
        for (allowance, used) in allowances.iter().zip(used) {
            if used == 0 {
                let allowed::Allowance { says, because } = allowance;
                writeln!(wrong, "{agent}: not so any more: {says:?}, {because}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Packs messages as a replay has them.
fn packed(messages: &[Value]) -> ReplayedMessages {
    let mut all = ReplayedMessages::default();
    for message in messages {
        all.push(message);
    }
    all
}

/// No real agent is said to have replayed another conversation, however little of it is stored or replayed.
#[test]
fn recorded_replays_are_not_another_conversation() {
    for (_, recordings) in recorded::SCENARIOS {
        for recorded::Load {
            name,
            live,
            replayed,
        } in recorded::loads(recordings)
        {
            let is_other = |stored: &[Value], replayed: &[Value]| {
                let stored = || stored.iter().cloned().map(Ok);
                is_other_conversation(stored, &packed(replayed)).unwrap()
            };
            for n in 0..live.len() {
                assert!(!is_other(&live[..n], &replayed), "{name}: the first {n}");
            }
            assert!(!is_other(&live, &replayed), "{name}");
            for n in 0..replayed.len() {
                assert!(!is_other(&live, &replayed[n..]), "{name}: from {n} on");
            }
            let foreign =
                json!({ "role": "user", "parts": [{ "type": "text", "text": "Buy 7 apples" }] });
            let has_prompt = replayed.iter().any(|message| message["role"] == "user");
            assert_eq!(is_other(&[foreign], &replayed), has_prompt, "{name}");
        }
    }
}

/// Returns the messages of a history from its live turns and from its replay.
fn both(seed: u64) -> (Vec<Value>, Vec<Value>) {
    let mut history = generate::history(seed);
    let mut live = live::Live::new();
    for turn in &mut history.turns {
        turn.blocks = live.prompt(&turn.user);
        for line in &turn.lines {
            live.line(line);
        }
        live.end(&turn.end);
    }
    let mut replayed = live::Replayed::new();
    for line in history_lines::replay(&mut history) {
        replayed.line(&line);
    }
    (live.messages, replayed.finish())
}

/// Compares the histories of the seeds and counts the kinds of their parts.
fn compare(seeds: impl Iterator<Item = u64>) -> BTreeMap<String, u32> {
    let mut kinds = BTreeMap::new();
    for seed in seeds {
        let (live, replayed) = both(seed);
        let (live, replayed) = (normal::form(&live), normal::form(&replayed));
        if live != replayed {
            let found = differences(&live, &replayed).join("\n");
            panic!("seed {seed}: the histories differ\n{found}");
        }
        for part in live.iter().flat_map(|message| &message.parts) {
            *kinds.entry(part.kind()).or_default() += 1;
        }
    }
    kinds
}

#[test]
fn generated_replays_match_their_turns() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut kinds = BTreeMap::<String, u32>::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|n| scope.spawn(move || compare((0..GENERATED).skip(n).step_by(threads))))
            .collect();
        for counted in running {
            let counted = counted.join().expect("the histories are equal");
            for (kind, count) in counted {
                *kinds.entry(kind).or_default() += count;
            }
        }
    });
    // A generator with little variety would find little.
    for kind in [
        "text",
        "reasoning",
        "file",
        "reasoning-file",
        "source-url",
        "source-document",
        "data-plan",
        "data-acp",
        "tool, completed",
        "tool, failed",
        "tool, pending",
        "tool, in_progress",
        "tool, no status",
    ] {
        let many = kinds.get(kind).is_some_and(|count| *count > 50);
        assert!(many, "few of {kind}: {kinds:?}");
    }
}

#[test]
fn seed_determines_the_generated_history() {
    assert_eq!(both(7), both(7));
    assert_ne!(both(7), both(8));
}

/// Prints the history of a seed: `SEED=7 cargo test --test replays -- --ignored --nocapture`.
#[test]
#[ignore = "a tool"]
fn show_a_seed() {
    let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap());
    let turns = generate::history(seed).turns;
    turns
        .iter()
        .flat_map(|t| &t.lines)
        .for_each(|line| println!("{line}"));
    let (live, replayed) = both(seed);
    println!("{:#}", json!({ "live": live, "replayed": replayed }));
}

/// Shows that the comparison can fail.
#[test]
fn differences_are_found_and_described() {
    let message = |role: &str, parts: Value| json!({ "id": "x", "role": role, "parts": parts });
    let text = |text: &str| json!({ "type": "text", "text": text, "state": "done" });
    let tool = |output: Value| {
        json!({ "type": "dynamic-tool", "toolCallId": "t", "toolName": "n", "state": "output-available",
            "input": {}, "output": output, "toolMetadata": { "acp": { "status": "completed" } } })
    };
    let live = [
        message("user", json!([text("hi")])),
        message(
            "assistant",
            json!([text("one"), tool(json!({ "rawOutput": 1 })), text("two")]),
        ),
        message("user", json!([text("bye")])),
    ];
    let replayed = [
        message("user", json!([text("hi")])),
        message(
            "assistant",
            json!([text("two!"), tool(json!({ "rawOutput": 2 }))]),
        ),
    ];
    let found = differences(&normal::form(&live), &normal::form(&replayed));
    let want = [
        r#"message 2 (assistant), text, text: live "one", replayed "two!""#,
        "message 2 (assistant), tool t, rawOutput: live 1, replayed 2",
        r#"message 2 (assistant), text: only live: {"state":"done","text":"two"}"#,
        r#"message 3 (user): only live: "bye""#,
    ];
    assert_eq!(found, want);
    assert!(differences(&normal::form(&live), &normal::form(&live)).is_empty());
}

/// Checks that the ids of replayed messages are numbered after the prefix.
#[test]
fn ids_are_numbered_with_the_prefix() {
    let none = Replay::new("acp", "p".into()).finish();
    assert!(none.is_empty());
    let (_, replayed) = both(7);
    for (n, message) in replayed.iter().enumerate() {
        assert_eq!(message["id"], format!("r-{}", n + 1));
    }
}
