//! The core in a simulated world: random clients, agents, disk and clock, with invariants that are checked
//! after every step. `STEPS=100000000` runs more steps; a failure prints the `SEED` and `STEPS` that
//! reproduce it.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]
#![expect(clippy::too_many_lines, reason = "tables are as long as they are")]
#![expect(clippy::print_stderr, reason = "a failure says how it comes again")]

mod model;
mod wire;

use model::dice::Dice;
use model::targets;
use model::world::World;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::{env, fs};

/// Default number of steps.
const STEPS: u64 = 400_000;

/// Number of steps of one world.
const LIFE: u64 = 500;

fn given(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Counts of one world.
#[derive(Default)]
struct RunCounts {
    replies: u64,
    spawned: u64,
}

fn run(seed: u64, steps: u64) -> RunCounts {
    let mut world = None;
    let life = catch_unwind(AssertUnwindSafe(|| {
        let world = world.insert(World::any(Dice::Seeded(seed)));
        while world.steps < steps {
            world.step();
        }
        if seed.is_multiple_of(2) {
            world.end_faults();
        }
        world.finish();
    }));
    let made = world.as_ref().map_or(0, |world| world.steps);
    if let Err(why) = life {
        eprintln!("SEED={seed} STEPS={made} cargo test --test simulation");
        resume_unwind(why);
    }
    world.map_or_else(RunCounts::default, |world| RunCounts {
        replies: world.clients.replies(),
        spawned: world.spawned,
    })
}

#[test]
fn core_keeps_its_invariants_under_random_events() {
    let steps = given("STEPS");
    if let Some(seed) = given("SEED") {
        run(seed, steps.unwrap_or(LIFE));
        return;
    }
    let worlds = steps.unwrap_or(STEPS).div_ceil(LIFE);
    let next = AtomicU64::new(0);
    let replies = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= worlds {
                return;
            }
            let saw = run(seed, LIFE);
            assert!(
                saw.spawned > 0 || saw.replies > 0,
                "nothing happens in {seed}"
            );
            replies.fetch_add(saw.replies, Ordering::Relaxed);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    assert!(
        replies.into_inner() > worlds,
        "hardly anything was answered"
    );
}

/// Replays the corpus of the fuzz targets in `fuzz/`, which holds every input that a fuzzer kept.
#[test]
fn fuzz_corpus_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, target) in targets::ALL {
        let mut kept = 0;
        for file in fs::read_dir(corpus.join(name)).unwrap() {
            let file = file.unwrap().path();
            let data = fs::read(&file).unwrap();
            if let Err(why) = catch_unwind(|| target(&data)) {
                eprintln!("{}", file.display());
                resume_unwind(why);
            }
            kept += 1;
        }
        assert!(kept > 0, "{name} has no corpus");
    }
}
