//! The hub on a disk that fails: whatever fails and whenever acpipe crashes, everything that the client
//! received is stored, and no turn runs twice.
//!
//! A run follows from a seed: `SEED=n cargo test --test store` repeats one, `RUNS=1000` runs more of them.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]

mod damaged;
mod disk;
mod drive;
mod proportion;

use acpipe::testing::RecordedChunk;
use acpipe_core::log::Log;
use acpipe_core::store::Store as _;
use acpipe_model::error::{Error, ErrorKind};
use disk::{Dice, Disk, StoredLog};
use drive::World;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Default number of runs.
const RUNS: u64 = 100;
const SESSIONS: [&str; 2] = ["a", "b"];

/// Checked content of a log: numbers without gaps, no turn twice.
struct Contents {
    chunks: BTreeMap<u64, (Option<String>, Value)>,
    prompts: BTreeSet<String>,
    ends: BTreeMap<String, Value>,
}

fn contents(kept: &StoredLog) -> Contents {
    let text = String::from_utf8(kept.bytes.clone()).unwrap();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut contents = Contents {
        chunks: BTreeMap::new(),
        prompts: BTreeSet::new(),
        ends: BTreeMap::new(),
    };
    for line in text[..whole].lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let turn = line["turnId"].as_str().map(str::to_owned);
        match line["record"].as_str().unwrap() {
            "chunk" => {
                let seq = line["seq"].as_u64().unwrap();
                assert_eq!(seq, contents.chunks.len() as u64 + 1, "{line}");
                contents.chunks.insert(seq, (turn, line["chunk"].clone()));
            }
            "prompt" => assert!(contents.prompts.insert(turn.unwrap()), "{line}"),
            "end" => {
                let twice = contents.ends.insert(turn.unwrap(), line["summary"].clone());
                assert!(twice.is_none(), "{line}");
            }
            _ => {}
        }
    }
    contents
}

/// Returns the logs after a crash of the machine: each is cut at random behind its synced part.
fn after_lost_tail(disk: &Disk, dice: &mut Dice) -> BTreeMap<String, StoredLog> {
    let mut logs = disk.logs();
    for kept in logs.values_mut() {
        let unsure = kept.bytes.len().saturating_sub(kept.synced);
        kept.bytes.truncate(kept.synced + dice.below(unsure + 1));
    }
    logs
}

fn is_last(chunk: &Value) -> bool {
    ["finish", "abort", "error"].contains(&chunk["type"].as_str().unwrap())
}

/// Returns `true` if the chunk reports a storage failure.
fn reports_storage_failure(chunk: &Value) -> bool {
    let text = chunk["errorText"].as_str().unwrap_or_default();
    chunk["type"] == "error" && text.contains("the session's log")
}

/// Returns `true` if a stored chunk matches the sent one. The report of a storage failure may be lost in a
/// crash: then the facts of the error that ends the message take its place.
fn is_same(given: &RecordedChunk, chunk: &Value) -> bool {
    let is_of_end = || chunk["messageMetadata"]["acp"]["error"]["kind"] == "turnUnfinished";
    given.chunk == *chunk || (reports_storage_failure(&given.chunk) && is_of_end())
}

/// Returns `true` if a summary reports a storage failure.
fn has_storage_error(summary: &Value) -> bool {
    let errors = summary["errors"].as_array().unwrap();
    errors.iter().any(|e| e["kind"] == "storage")
}

fn of<'a>(given: &'a [RecordedChunk], session: &str) -> impl Iterator<Item = &'a RecordedChunk> {
    given.iter().filter(move |g| g.session == session)
}

/// Checks that the chunks that the client received are well-formed.
fn check_given(world: &World) {
    for session in SESSIONS {
        let mut over = BTreeSet::new();
        let (mut last, mut may_skip) = (0, false);
        for given in of(&world.client.given, session) {
            let is_next = given.seq == last + 1 || (may_skip && given.seq > last);
            assert!(is_next, "after {last}: {given:?}");
            // A session that is closed with a turn that is not stored ends the turn when it is opened again.
            (last, may_skip) = (given.seq, reports_storage_failure(&given.chunk));
            let Some(turn) = &given.turn else { continue };
            assert!(!over.contains(turn), "after its end: {given:?}");
            if is_last(&given.chunk) {
                over.insert(turn.clone());
            }
        }
    }
    for prompt in &world.prompts {
        let Some(Ok(summary)) = world.client.replies.get(&prompt.token) else {
            continue;
        };
        let own: Vec<&RecordedChunk> = of(&world.client.given, &prompt.session)
            .filter(|g| g.turn.as_ref() == Some(&prompt.turn))
            .collect();
        let last = own.last().unwrap();
        assert!(is_last(&last.chunk), "{last:?}");
        let failures = own
            .iter()
            .filter(|g| reports_storage_failure(&g.chunk))
            .count();
        assert_eq!(failures, usize::from(has_storage_error(summary)), "{own:?}");
    }
}

/// Checks that every chunk that the client received is in the log, except a report of a storage failure.
fn check_process_crash(world: &World, logs: &BTreeMap<String, StoredLog>) {
    for session in SESSIONS {
        let contents = contents(&logs.get(session).cloned().unwrap_or_default());
        for given in of(&world.client.given, session) {
            match contents.chunks.get(&given.seq) {
                Some((turn, chunk)) => {
                    assert_eq!(turn, &given.turn);
                    assert!(is_same(given, chunk), "{given:?} {chunk}");
                }
                None => assert!(
                    reports_storage_failure(&given.chunk),
                    "{given:?} is not in the log"
                ),
            }
        }
    }
}

/// Checks that every acknowledged turn is in the log as a whole.
fn check_lost_tail(world: &World, logs: &BTreeMap<String, StoredLog>) {
    for prompt in &world.prompts {
        let Some(Ok(summary)) = world.client.replies.get(&prompt.token) else {
            continue;
        };
        if has_storage_error(summary) {
            continue;
        }
        let contents = contents(&logs[&prompt.session]);
        assert_eq!(contents.ends.get(&prompt.turn), Some(summary));
        for given in of(&world.client.given, &prompt.session) {
            if given.turn.as_ref() == Some(&prompt.turn) {
                assert_eq!(contents.chunks[&given.seq].1, given.chunk);
            }
        }
    }
}

/// Checks that a new hub knows the result of each turn, ends open turns, and runs none twice.
fn check_reopened(before: &World, logs: BTreeMap<String, StoredLog>, machine: bool, seed: u64) {
    let disk = Disk::new(seed, logs);
    let mut world = World::new(disk, "later");
    // Stored sessions can be read while nothing can be written.
    world.disk.fail(100);
    for session in SESSIONS {
        let token = world.list(session);
        match &world.client.replies[&token] {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind, ErrorKind::SessionNotFound, "{error:?}"),
        }
    }
    world.disk.fail(0);
    for prompt in &before.prompts {
        let kept = world.disk.logs().get(&prompt.session).cloned();
        let contents = contents(&kept.unwrap_or_default());
        if !contents.prompts.contains(&prompt.turn) {
            let sent = before.sent.contains(&prompt.turn);
            assert!(machine || !sent, "{} was sent and is unknown", prompt.turn);
            continue;
        }
        let token = world.prompt(&prompt.session, &prompt.turn);
        world.settle();
        let answer = world.client.replies.get(&token);
        match (contents.ends.get(&prompt.turn), answer) {
            (Some(end), Some(Ok(summary))) => {
                assert_eq!(end, summary);
                if let Some(Ok(told)) = before.client.replies.get(&prompt.token) {
                    assert_eq!(told, summary);
                }
            }
            (
                None,
                Some(Err(Error {
                    kind: ErrorKind::TurnUnfinished,
                    ..
                })),
            ) => {
                let told = before.client.replies.get(&prompt.token);
                let acknowledged = matches!(told, Some(Ok(s)) if !has_storage_error(s));
                assert!(machine || !acknowledged, "{prompt:?}");
            }
            other => panic!("{prompt:?}: {other:?}"),
        }
    }
    assert!(world.sent.is_empty(), "{:?}", world.sent);
    for session in SESSIONS {
        works(&mut world, session);
        let contents = contents(&world.disk.logs()[session]);
        let mut open = BTreeSet::new();
        for (turn, chunk) in contents.chunks.values() {
            match turn {
                Some(turn) if is_last(chunk) => _ = open.remove(turn),
                Some(turn) => _ = open.insert(turn),
                None => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
        if !machine {
            for given in of(&before.client.given, session) {
                let (turn, chunk) = &contents.chunks[&given.seq];
                assert_eq!(turn, &given.turn);
                assert!(is_same(given, chunk), "{given:?} {chunk}");
            }
        }
    }
}

/// Checks that a session can be ensured and prompted.
fn works(world: &mut World, session: &str) {
    let token = world.ensure(session);
    world.settle();
    while world.sync() {}
    let answer = &world.client.replies[&token];
    assert!(answer.is_ok(), "{answer:?}");
    let turn = format!("works-{session}");
    let token = world.prompt(session, &turn);
    world.settle();
    world.agent_ends_all();
    while world.sync() {}
    let summary = world.client.replies[&token].as_ref().unwrap();
    assert_eq!(summary["stopReason"], "end_turn");
}

/// Checks that a log opened with its stored index is the same as one that is read from its beginning.
fn check_indexes(logs: &BTreeMap<String, StoredLog>) {
    for (session, kept) in logs {
        let opened = |index: Option<Vec<u8>>| {
            let kept = StoredLog {
                index,
                ..kept.clone()
            };
            let mut disk = Disk::new(1, BTreeMap::from([(session.clone(), kept)]));
            let log = Log::open(disk.open(session).unwrap()).unwrap();
            (log.encoded_index(), log.card())
        };
        assert_eq!(opened(kept.index.clone()), opened(None));
    }
}

fn run(seed: u64) -> u32 {
    let mut dice = Dice(seed);
    let disk = Disk::new(seed ^ 0xd15c, BTreeMap::new());
    let mut world = World::new(disk.clone(), "first");
    let failing = [0, 2, 10, 40][dice.below(4)];
    let (mut turns, mut added) = (0, Vec::new());
    for step in 0..20 + dice.below(60) {
        // Real disks fail for a while, not for one operation.
        if dice.percent(15) {
            disk.fail(if dice.percent(60) { failing } else { 0 });
        }
        let session = SESSIONS[dice.below(2)];
        match dice.below(12) {
            0 | 1 => _ = world.ensure(session),
            2 | 3 => {
                turns += 1;
                world.prompt(session, &format!("turn{turns}"));
                match dice.below(4) {
                    0 => _ = world.list(session),
                    1 => _ = world.add(session, &format!("note{step}")),
                    _ => {}
                }
            }
            4 => added.push((session, world.add(session, &format!("note{step}")))),
            5 => _ = world.close(session),
            6 => _ = world.sync(),
            7 => world.later(),
            _ => world.agent_sends_random_updates(&mut dice),
        }
        if dice.percent(80) {
            world.settle();
        }
    }
    world.settle();
    check_given(&world);
    check_process_crash(&world, &disk.logs());
    for (session, token) in added {
        if let Some(Ok(answer)) = world.client.replies.get(&token) {
            let text = String::from_utf8_lossy(&disk.logs()[session].bytes).into_owned();
            let line = format!(r#""message":{}}}"#, answer["message"]);
            assert!(text.contains(&line), "{line} is not in the log");
        }
    }
    let lost = after_lost_tail(&disk, &mut dice);
    check_lost_tail(&world, &lost);
    check_indexes(&disk.logs());
    check_indexes(&lost);
    check_reopened(&world, disk.logs(), false, seed);
    check_reopened(&world, lost, true, seed);

    // Work continues once the disk works again.
    disk.fail(0);
    // A prompt may wait for an earlier one of its session.
    for _ in 0..=world.prompts.len() {
        world.agent_ends_all();
        world.later();
        while world.sync() {}
    }
    for prompt in &world.prompts {
        let answered = world.client.replies.contains_key(&prompt.token);
        assert!(answered, "{prompt:?} was never answered");
    }
    for session in SESSIONS {
        works(&mut world, session);
    }
    check_given(&world);
    check_process_crash(&world, &disk.logs());
    disk.failures()
}

#[test]
fn output_sent_to_the_client_survives_every_failure() {
    let given = |name| std::env::var(name).ok().and_then(|n| n.parse().ok());
    if let Some(seed) = given("SEED") {
        run(seed);
        return;
    }
    let runs = given("RUNS").unwrap_or(RUNS);
    let next = AtomicU64::new(0);
    let work = || {
        let mut failures = 0;
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= runs {
                return failures;
            }
            let run = std::panic::catch_unwind(|| run(seed));
            failures += run.unwrap_or_else(|_| panic!("SEED={seed}"));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let failures: u32 = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let failures = threads.into_iter().map(|thread| thread.join().unwrap());
        failures.sum()
    });
    assert!(failures > 0, "the disk failed {failures} times only");
}
