//! Output of a client, parsed as little as possible because the reader shares the machine with the client.

use std::io::Read;
use std::time::Duration;

use memchr::{memchr_iter, memmem, memrchr};
use rustix::time::{ClockId, clock_gettime};

use crate::{Load, Outcome};

pub(crate) struct Output {
    pub(crate) lines: usize,
    complete: bool,
    pub(crate) latencies_us: Vec<f64>,
}

impl Output {
    /// Reads until the end, and passes the complete lines of each read to `watch`.
    pub(crate) fn read(
        mut stdout: impl Read,
        load: &Load,
        mut watch: impl FnMut(&[u8]) -> Outcome,
    ) -> Outcome<Self> {
        // In the mixed flood the last delta is the sixth of ten updates.
        let last = format!(
            "{:08}",
            if load.mixed {
                load.updates - 5
            } else {
                load.updates - 1
            }
        );
        let last = memmem::Finder::new(&last);
        let mut output = Self {
            lines: 0,
            complete: false,
            latencies_us: Vec::new(),
        };
        let mut buffer = vec![0; 256 * 1024];
        let mut filled = 0;
        let mut newest = 0;
        loop {
            let read = stdout.read(&mut buffer[filled..])?;
            if read == 0 {
                return Ok(output);
            }
            filled += read;
            let now = now_nanos();
            let whole = memrchr(b'\n', &buffer[..filled]).map_or(0, |at| at + 1);
            let lines = &buffer[..whole];
            output.lines += memchr_iter(b'\n', lines).count();
            // In a paced turn these digits may be part of a timestamp; but there every delta is counted.
            output.complete |= last.find(lines).is_some();
            if load.interval_us > 0 {
                for sent in stamps(lines) {
                    // A repeated text, as in a closing chunk, is not a new delta.
                    if sent > newest {
                        newest = sent;
                        output
                            .latencies_us
                            .push(now.saturating_sub(sent) as f64 / 1e3);
                    }
                }
            }
            watch(lines)?;
            buffer.copy_within(whole..filled, 0);
            filled -= whole;
            if filled == buffer.len() {
                buffer.resize(filled * 2, 0);
            }
        }
    }

    pub(crate) fn check(&self, load: &Load) -> Outcome {
        if !self.complete {
            return Err(format!("the last delta did not come ({} lines did)", self.lines).into());
        }
        if load.interval_us > 0 && self.latencies_us.len() as u64 != load.updates {
            return Err(format!(
                "{} of {} deltas came",
                self.latencies_us.len(),
                load.updates
            )
            .into());
        }
        Ok(())
    }
}

/// Returns the send times in the deltas, `t=NANOSECONDS;`, in ns of `CLOCK_MONOTONIC`.
fn stamps(lines: &[u8]) -> impl Iterator<Item = u64> {
    memmem::find_iter(lines, "t=").filter_map(|at| {
        let digits = lines.get(at + 2..at + 21)?;
        (lines.get(at + 21) == Some(&b';')).then_some(())?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

/// Returns the machine's monotonic time. An `Instant` cannot be compared between processes.
fn now_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(0))
}
