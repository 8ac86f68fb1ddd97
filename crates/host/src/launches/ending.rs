//! Listing and ending of processes by their launch mark.

use super::{FoundRecord, LaunchRecord, MARK, launch_processes, records};
use crate::supervisor::tree::Member;
use crate::supervisor::{KILL_LIMIT, LEFTOVERS_GRACE, SUPERVISOR, tree};
use acpipe_model::printable::printable;
use acpipe_model::secret::shown_arguments;
use rustix::process::Signal;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Number of searches in a row that must find no process. One search can miss a process that is forked while
/// `/proc` is read, or that is in the middle of `execve`, where its environment is empty.
const EMPTY_SEARCHES: u32 = 2;

/// Interval between two searches for processes: the first one, doubled up to the last one.
const FIRST_ROUND: Duration = Duration::from_millis(2);
const LAST_ROUND: Duration = Duration::from_millis(100);

/// Maximum time that a supervisor takes in addition to its own limit for killing.
const SUPERVISOR_EXIT_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of characters of a shown command line.
const SHOWN: usize = 200;

/// Process that an acpipe started, or a descendant of one.
#[derive(Debug, Clone, Serialize)]
pub struct LaunchedProcess {
    /// Process id.
    pub pid: u32,
    /// Command line, on one line.
    pub command: String,
    /// Process id of the acpipe that started it.
    pub acpipe: u32,
    /// `true` if that acpipe was killed and the process is a leftover.
    pub left: bool,
}

/// Result of ending the leftover processes of a launch.
#[derive(Debug)]
pub struct EndedLaunch {
    /// Process id of the launch's acpipe.
    pub acpipe: u32,
    /// All leftover processes that were found.
    pub processes: Vec<LaunchedProcess>,
    /// Number of processes that could not be ended.
    pub remaining: usize,
}

/// Ends all processes of launches whose acpipe was killed, and removes the records of launches without
/// remaining processes. Blocks until the processes have ended.
#[must_use]
pub fn end_left(state: &Path) -> Vec<EndedLaunch> {
    // An acpipe that an agent started must not end itself.
    let own = std::env::var(MARK).unwrap_or_default();
    let is_own = |found: &FoundRecord| own.split('/').next() == Some(&found.id);
    let left = records(state).into_iter();
    let left = left.filter(|found| found.left.is_some() && !is_own(found));
    left.filter_map(|found| {
        let ended = end_launch(&found);
        if ended.as_ref().is_none_or(|ended| ended.remaining == 0) {
            let _ = fs::remove_file(&found.path);
        }
        ended
    })
    .collect()
}

/// Ends the leftovers of a launch; `None` if there are none.
fn end_launch(found: &FoundRecord) -> Option<EndedLaunch> {
    if !found.record.is_of_this_boot() {
        return None;
    }
    let grace = |members: &[Member]| {
        let is_supervised = members.iter().any(|member| member.name() == SUPERVISOR);
        if is_supervised {
            // A supervisor may still run. It knows more of its processes than a search can find, so it gets
            // its full time.
            Duration::from_millis(found.record.grace_ms) + KILL_LIMIT + SUPERVISOR_EXIT_GRACE
        } else {
            LEFTOVERS_GRACE
        }
    };
    let (seen, remaining) = end(|| launch_processes(&found.id), grace);
    let pid = found.record.pid;
    let shown = |(member, command): (Member, Vec<String>)| shown(member, &command, &found.record);
    (!seen.is_empty()).then(|| EndedLaunch {
        acpipe: pid,
        processes: seen.into_iter().map(shown).collect(),
        remaining,
    })
}

/// Kills all processes with this mark.
pub fn kill_marked(mark: &str) {
    let find = || tree::marked(MARK, |found| found == mark);
    let _ = end(find, |_| Duration::ZERO);
}

/// Ends the processes that `find` returns: SIGTERM, a grace period, SIGKILL until none is left. Returns all
/// processes found with their command lines, and the number that remain.
fn end(
    find: impl Fn() -> Vec<Member>,
    grace: impl Fn(&[Member]) -> Duration,
) -> (Vec<(Member, Vec<String>)>, usize) {
    let mut seen: BTreeMap<(u32, u64), (Member, Vec<String>)> = BTreeMap::new();
    let mut round = FIRST_ROUND;
    let began = Instant::now();
    // Times of the first SIGKILL and of giving up.
    let mut until: Option<(Instant, Instant)> = None;
    let mut empty = 0;
    loop {
        let found = find();
        if found.is_empty() {
            empty += 1;
            if empty == EMPTY_SEARCHES {
                return (seen.into_values().collect(), 0);
            }
            thread::sleep(FIRST_ROUND);
            continue;
        }
        empty = 0;
        let now = Instant::now();
        let (kill_at, give_up) = *until.get_or_insert_with(|| {
            let kill_at = began + grace(&found);
            (kill_at, kill_at + KILL_LIMIT)
        });
        for &member in &found {
            seen.entry((pid(member), member.started()))
                .or_insert_with(|| {
                    member.signal(Signal::TERM);
                    // A stopped process handles SIGTERM once it continues.
                    member.signal(Signal::CONT);
                    (member, member.command_line())
                });
            if now >= kill_at {
                member.signal(Signal::KILL);
            }
        }
        if now >= give_up {
            return (seen.into_values().collect(), found.len());
        }
        thread::sleep(round);
        round = (2 * round).min(LAST_ROUND);
    }
}

/// Returns all running processes that the acpipes of a state directory started.
#[must_use]
pub fn launched(state: &Path) -> Vec<LaunchedProcess> {
    let found = records(state).into_iter();
    found
        .flat_map(|found| {
            let launch_processes = launch_processes(&found.id).into_iter();
            let launch_processes: Vec<LaunchedProcess> = launch_processes
                .map(|member| {
                    let command = member.command_line();
                    LaunchedProcess {
                        left: found.left.is_some(),
                        ..shown(member, &command, &found.record)
                    }
                })
                .collect();
            launch_processes
        })
        .collect()
}

fn shown(member: Member, command: &[String], record: &LaunchRecord) -> LaunchedProcess {
    let line = shown_arguments(command).join(" ");
    let short: String = line.chars().take(SHOWN).collect();
    let dots = if short.len() < line.len() { "…" } else { "" };
    LaunchedProcess {
        pid: pid(member),
        command: format!("{}{dots}", printable(&short)),
        acpipe: record.pid,
        left: true,
    }
}

fn pid(member: Member) -> u32 {
    member.pid.as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::process::Command;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the process is not an agent and is ended by the test"
    )]
    fn process_that_one_search_misses_is_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let searches = Cell::new(0);
        let find = || {
            searches.set(searches.get() + 1);
            let is_missed = searches.get() == 1;
            let found = if is_missed { None } else { tree::look(pid) };
            found.into_iter().collect()
        };
        let (ended, remaining) = end(find, |_| Duration::ZERO);
        assert_eq!((ended.len(), remaining), (1, 0));
        assert!(!child.wait().unwrap().success());
    }
}
