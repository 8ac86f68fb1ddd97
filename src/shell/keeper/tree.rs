//! The processes below one, as `/proc` tells; where there is none, nobody is found.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::fs;

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
    let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(member) = pid.and_then(Pid::from_raw).and_then(look) {
            children.entry(member.parent).or_default().push(member);
        }
    }
    let mut found = children
        .remove(&root.as_raw_nonzero().get())
        .unwrap_or_default();
    let mut seen = 0;
    while let Some(member) = found.get(seen) {
        let next = children.remove(&member.pid.as_raw_nonzero().get());
        found.extend(next.into_iter().flatten());
        seen += 1;
    }
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
