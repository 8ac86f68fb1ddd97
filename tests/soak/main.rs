//! A long run in short form: many updates over many sessions, with cancellations, crashes, restarts and a
//! client that is sometimes slow; and many idle sessions. Memory, descriptors and processes must not grow.
//!
//! The short form runs with the other tests. This is the long one, whose figures are in
//! docs/internals/performance.md:
//!
//! ```sh
//! UPDATES=1000000 SESSIONS=1000 cargo test --release --test soak -- --nocapture
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::format_collect,
    reason = "the tests run programs, tell figures, and fail where they are surprised"
)]

mod client;
mod crowd;
mod life;
mod sample;

/// Returns a size from the environment, or that of the short form.
fn size(name: &str, short: usize) -> usize {
    let given = std::env::var(name).ok();
    given.map_or(short, |n| n.parse().expect("a number"))
}

/// Pseudorandom numbers, the same in every run.
pub struct Dice(u64);

impl Dice {
    /// Returns a number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    /// Returns `true` once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[test]
fn resources_stay_bounded_over_a_long_run() {
    life::live(size("UPDATES", 20_000), size("SESSIONS", 60));
}

#[test]
fn idle_sessions_cost_nothing_and_streams_are_independent() {
    crowd::gather(size("SESSIONS", 200), size("STREAMS", 20));
}
