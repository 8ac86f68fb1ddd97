//! Appends lines to a file, in the batches in which a log on disk takes them.

use crate::publish::{Meter, Run};
use crate::{Batching, Failure};
use std::io::Write as _;

/// When appended lines are synced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    Never,
    EachWrite,
}

/// Appends the lines, repeated as often as needed, with one `write` for each commit.
pub fn run(lines: &[Vec<u8>], batching: &Batching, sync: Sync) -> Result<Run, Failure> {
    let mut file = tempfile::tempfile()?;
    let mut source = lines.iter().cycle();
    let mut meter = Meter::start(None)?;
    let mut commit = Vec::new();
    for number in 0..batching.lines / batching.lines_per_write() {
        if let Some(pace) = batching.pace {
            meter.sleep_until_blocking(pace * u32::try_from(number)?);
        }
        commit.clear();
        for line in source.by_ref().take(batching.lines_per_write()) {
            commit.extend_from_slice(line);
        }
        let begin = std::time::Instant::now();
        file.write_all(&commit)?;
        if sync == Sync::EachWrite {
            file.sync_data()?;
        }
        meter.latency(begin.elapsed());
    }
    meter.finish(batching.lines, None)
}
