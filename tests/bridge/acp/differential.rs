//! Recorded agents, directly and behind acpipe: both sides of the recording must be the same.
//!
//! A player (`fake-agent --play`) is the recording's agent, the test is its client. What the client and the
//! agent receive is compared with the recording, up to the ids of sessions and requests. Without acpipe both
//! are equal. `docs/internals/pass-through.md` lists the differences behind acpipe, with reasons.

mod compare;
mod drive;
mod recording;

use crate::harness::{FAKE_AGENT, World};
use compare::differences;
use drive::{Exchange, drive};
use recording::{Recording, recordings};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Number of recordings that are played at once.
const WORKERS: usize = 4;

/// Plays a recording to its client through a command, and returns what both sides received.
fn exchange(recording: &Recording, command: fn(&World, &str) -> Command) -> Exchange {
    let world = World::new();
    let file = world.file("recording.ndjson", &recording.lines());
    let exchange = drive(recording, command(&world, &file), || world.log());
    if let Some(leak) = world.leak() {
        world.kill_all();
        panic!("{}: {leak}", recording.name);
    }
    exchange
}

/// Calls a function with each recording, several at once, and returns the results in order.
fn for_each<T: Send>(recordings: &[Recording], run: impl Fn(&Recording) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(recording) = recordings.get(n) else {
                return done;
            };
            done.push((n, run(recording)));
        }
    };
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let done = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        done.collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

fn player(world: &World, file: &str) -> Command {
    let mut command = world.command(FAKE_AGENT);
    command.args(["--play", file]);
    command
}

#[test]
fn player_and_client_repeat_the_recordings() {
    let recordings = recordings();
    assert!(recordings.len() > 130, "recordings are missing");
    let exchanges = for_each(&recordings, |recording| exchange(recording, player));
    let mut wrong = String::new();
    for (recording, exchange) in recordings.iter().zip(exchanges) {
        for fault in &exchange.faults {
            let _ = writeln!(wrong, "{}: {fault}", recording.name);
        }
        for difference in differences(recording, &exchange) {
            let _ = writeln!(wrong, "{}: {difference}", recording.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
