//! The processes below one, as `/proc` tells; where there is none, nobody is found.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;

/// How much of an environment is searched, in bytes; Linux allows 6 MiB for environment and arguments together.
const LONGEST_ENVIRON: u64 = 6 << 20;

/// How much of a command line is shown, in bytes.
const LONGEST_COMMAND_LINE: u64 = 4096;

/// A process that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    pub pid: Pid,
    parent: i32,
    /// Ticks since the machine was started: with the number it names the process for good.
    started: u64,
    /// Resident memory, in pages.
    pub pages: u64,
}

/// All that live below a process, itself excepted.
pub fn below(root: Pid) -> Vec<Member> {
    below_all(&[root], all())
}

/// All live processes.
fn all() -> Vec<Member> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter_map(look).collect()
}

/// Those of `all` that live below one of these processes, the roots excepted.
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

/// All processes that were started with one of these values of a variable, and all that live below them; this process is
/// not among them.
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

/// A process as it is now, unless it has ended.
pub fn look(pid: Pid) -> Option<Member> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &stat)
}

/// Reads the line of `/proc/<pid>/stat` (see `proc_pid_stat(5)`); the name in it may hold anything.
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
    /// When the process was started, in clock ticks since the boot of the machine.
    pub fn started(self) -> u64 {
        self.started
    }

    /// The value of a variable in the environment that the process was started with.
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

    /// The name of the process, as `ps` and `killall` have it.
    pub fn name(&self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid.as_raw_nonzero()));
        name.unwrap_or_default().trim_end().to_owned()
    }

    /// The command line of the process; its name where the command line is empty.
    pub fn command_line(&self) -> String {
        let mut line = Vec::new();
        let path = format!("/proc/{}/cmdline", self.pid.as_raw_nonzero());
        if let Ok(file) = File::open(path) {
            // The part that was read is shown.
            let _ = file.take(LONGEST_COMMAND_LINE).read_to_end(&mut line);
        }
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let text = String::from_utf8_lossy(&words.join(&b' '))
            .trim_end()
            .to_owned();
        if text.is_empty() { self.name() } else { text }
    }

    /// Signals this process and no other that got its number meanwhile.
    pub fn signal(self, signal: Signal) {
        // Gone, or another user's: neither can be helped.
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
    fn a_name_may_look_like_anything() {
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
