//! Samples of acpipe's resources, and the check that they do not grow.

use std::fs;

/// Memory, descriptors and processes at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Resident memory in KiB.
    pub rss: usize,
    pub fds: usize,
    pub processes: usize,
}

impl Sample {
    pub fn take(pid: u32, processes: usize) -> Self {
        Self {
            rss: kib(pid, "VmRSS:"),
            fds: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            processes,
        }
    }
}

/// Returns a size from `/proc/<pid>/status`.
fn kib(pid: u32, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    let number = line.trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

/// Returns the processor time that a process has used, in ticks.
pub fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = rest.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Checks that the last quarter holds hardly more than the second; the first is for warming up.
pub fn assert_flat(samples: &[Sample]) {
    let quarter = samples.len() / 4;
    let early = &samples[quarter..2 * quarter];
    let late = &samples[3 * quarter..];
    let most = |of: fn(&Sample) -> usize, in_: &[Sample]| in_.iter().map(of).max().unwrap();
    let memory = |s: &Sample| s.rss;
    let (before, after) = (most(memory, early), most(memory, late));
    assert!(
        after <= before + before / 4 + 4096,
        "memory grows: {samples:#?}"
    );
    for of in [|s: &Sample| s.fds, |s: &Sample| s.processes] {
        assert!(most(of, late) <= most(of, early) + 8, "{samples:#?}");
    }
}
