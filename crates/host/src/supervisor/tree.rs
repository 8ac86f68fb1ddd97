//! Descendants of a process, from `/proc`; empty on systems without it.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;

/// Maximum size of an environment that is searched, in bytes; Linux allows 6 MiB for environment and
/// arguments together.
const LONGEST_ENVIRON: u64 = 6 << 20;

/// Maximum size of a command line that is read, in bytes.
const LONGEST_COMMAND_LINE: u64 = 4096;

/// Process found in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    pub pid: Pid,
    parent: i32,
    /// Start time in clock ticks since boot. Together with the process id it identifies the process uniquely.
    started: u64,
    /// Resident memory in pages.
    pub pages: u64,
}

/// Returns all descendants of a process.
pub fn below(root: Pid) -> Vec<Member> {
    below_all(&[root], all())
}

/// Returns all running processes.
fn all() -> Vec<Member> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter_map(look).collect()
}

/// Returns the descendants of the roots among `all`, without the roots.
fn below_all(roots: &[Pid], all: Vec<Member>) -> Vec<Member> {
    let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
    for member in all {
        children.entry(member.parent).or_default().push(member);
    }
    let mut take = |pid: Pid| children.remove(&pid.as_raw_nonzero().get());
    let mut found: Vec<Member> = roots
        .iter()
        .filter_map(|&root| take(root))
        .flatten()
        .collect();
    let mut seen = 0;
    while let Some(member) = found.get(seen) {
        let next = take(member.pid);
        found.extend(next.into_iter().flatten());
        seen += 1;
    }
    found
}

/// Returns all processes that were started with a matching value of a variable, and their descendants, except
/// this process.
pub fn marked(variable: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Member> {
    let all = all();
    let own = getpid();
    let has_mark = |member: &&Member| member.mark(variable).is_some_and(|mark| is_wanted(&mark));
    let mut found: Vec<Member> = all.iter().filter(has_mark).copied().collect();
    found.retain(|member| member.pid != own);
    let roots: Vec<Pid> = found.iter().map(|member| member.pid).collect();
    let mut below = below_all(&roots, all);
    below.retain(|member| member.pid != own && !roots.contains(&member.pid));
    found.extend(below);
    found
}

/// Reads the current state of a process; `None` if it has ended.
pub fn look(pid: Pid) -> Option<Member> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &stat)
}

/// Parses `/proc/<pid>/stat` (see `proc_pid_stat(5)`). The name in it may contain any characters.
fn parse(pid: Pid, stat: &str) -> Option<Member> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ended = matches!(*fields.first()?, "Z" | "X");
    (!ended).then_some(Member {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        pages: fields.get(21)?.parse().ok()?,
    })
}

impl Member {
    /// Returns the start time in clock ticks since boot.
    pub fn started(self) -> u64 {
        self.started
    }

    /// Returns the value of a variable in the environment that the process was started with.
    fn mark(&self, variable: &str) -> Option<String> {
        let mut environ = Vec::new();
        let file = File::open(format!("/proc/{}/environ", self.pid.as_raw_nonzero())).ok()?;
        file.take(LONGEST_ENVIRON).read_to_end(&mut environ).ok()?;
        let name = [variable.as_bytes(), b"="].concat();
        let value = environ
            .split(|byte| *byte == 0)
            .find_map(|text| text.strip_prefix(&name[..]))?;
        String::from_utf8(value.to_vec()).ok()
    }

    /// Returns the name of the process as `ps` and `killall` show it.
    pub fn name(&self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid.as_raw_nonzero()));
        name.unwrap_or_default().trim_end().to_owned()
    }

    /// Returns the command line of the process, or its name if the command line is empty.
    pub fn command_line(&self) -> Vec<String> {
        let mut line = Vec::new();
        let path = format!("/proc/{}/cmdline", self.pid.as_raw_nonzero());
        if let Ok(file) = File::open(path) {
            // After an error the part that was read is used.
            let _ = file.take(LONGEST_COMMAND_LINE).read_to_end(&mut line);
        }
        let end = line.iter().rposition(|byte| !matches!(*byte, 0 | b' '));
        let Some(end) = end else {
            return vec![self.name()];
        };
        let words = line[..=end].split(|byte| *byte == 0);
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// Signals this process, and not another one that has reused its id.
    pub fn signal(self, signal: Signal) {
        // Fails if the process has ended or belongs to another user; neither can be changed.
        let _ = self.try_signal(signal);
    }

    #[cfg(target_os = "linux")]
    fn try_signal(self, signal: Signal) -> rustix::io::Result<()> {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(process) => match look(self.pid) {
                Some(now) if now.started == self.started => pidfd_send_signal(process, signal),
                _ => Ok(()),
            },
            Err(rustix::io::Errno::NOSYS) => kill_process(self.pid, signal),
            Err(error) => Err(error),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn try_signal(self, signal: Signal) -> rustix::io::Result<()> {
        kill_process(self.pid, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_may_contain_any_text() {
        let pid = Pid::from_raw(7).unwrap();
        let numbers = "42 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 9 17";
        let member = parse(pid, &format!("7 (a) S (b) R 1) S {numbers} 0 0")).unwrap();
        assert_eq!(
            (member.parent, member.started, member.pages),
            (42, 12345, 17)
        );
        assert_eq!(parse(pid, &format!("7 (x) Z {numbers}")), None);
        for torn in ["", "7 (x) S 42", "7 x S"] {
            assert_eq!(parse(pid, torn), None, "{torn}");
        }
    }
}
