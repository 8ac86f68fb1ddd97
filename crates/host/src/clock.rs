//! Clocks: running time for tasks other than the loop, and the time of day.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Real time in nanoseconds during which acpipe did not run. The loop writes it, tasks read it.
static PAUSED: AtomicU64 = AtomicU64::new(0);

/// Stores the total real time that does not count as running time.
pub fn note_paused(paused: Duration) {
    let nanos = u64::try_from(paused.as_nanos()).unwrap_or(u64::MAX);
    PAUSED.store(nanos, Ordering::Relaxed);
}

/// Returns the running time, for tasks that pass times to the core.
pub fn running_now() -> Instant {
    let real = Instant::now();
    let paused = Duration::from_nanos(PAUSED.load(Ordering::Relaxed));
    real.checked_sub(paused).unwrap_or(real)
}

/// Returns the milliseconds since 1970.
pub fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_millis());
    i64::try_from(since).unwrap_or(i64::MAX)
}
