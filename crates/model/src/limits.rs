//! Time limits: the table of all waits with their defaults, and the limits that the user sets.

use std::time::{Duration, Instant};

/// Kind of a wait that has a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// Start of a process of the agent. Default: 30 s.
    Spawn,
    /// Response of the agent to the handshake; includes the downloads of package runners such as `npx`. Default: 60 s.
    Initialize,
    /// Opening of a session by the agent: limit on the time without activity. Default: 120 s.
    Open,
    /// Opening of a session by the agent: limit on the whole time, from the first call to the end. Default: 600 s.
    Restore,
    /// Change of a mode, model or option by the agent. Default: 30 s.
    Set,
    /// Sign-in or sign-out at the agent. With a browser it takes minutes. Default: 600 s.
    Authenticate,
    /// Response of the agent to a request for its session list. Default: 10 s.
    List,
    /// A running turn: limit on the time without activity. Default: none.
    Prompt,
    /// A running turn: limit on the whole time, from begin to end. Default: none.
    Turn,
    /// Response of the client to a permission request or question of the agent. Default: 300 s.
    Answer,
    /// Response of the client to a file or terminal request. Default: 120 s.
    Client,
    /// Closing by the agent of a session that is to be opened again. Default: 10 s.
    CloseSession,
    /// End of a cancelled turn by the agent. Default: 5 s.
    Cancel,
    /// Exit of a process after its stdin was closed. Default: 2 s.
    Close,
    /// Exit of a process after SIGTERM. Default: 3 s.
    Terminate,
    /// Write to a session's log on the disk. Default: 10 s.
    Store,
    /// Connection to an HTTP endpoint: name resolution, TCP and TLS. Default: 10 s.
    Connect,
    /// Response of an HTTP endpoint: limit on the time until its head, with the connection. Default: 300 s.
    FirstByte,
    /// Response of an HTTP endpoint: limit on the time without data in its body. Default: 300 s.
    Stream,
}

impl Timeout {
    pub const ALL: [Self; 19] = [
        Self::Spawn,
        Self::Initialize,
        Self::Open,
        Self::Restore,
        Self::Set,
        Self::Authenticate,
        Self::List,
        Self::Prompt,
        Self::Turn,
        Self::Answer,
        Self::Client,
        Self::CloseSession,
        Self::Cancel,
        Self::Close,
        Self::Terminate,
        Self::Store,
        Self::Connect,
        Self::FirstByte,
        Self::Stream,
    ];

    /// Returns the name of the wait, in the `stage` of errors and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Initialize => "initialize",
            Self::Open => "open",
            Self::Restore => "restore",
            Self::Set => "set",
            Self::Authenticate => "authenticate",
            Self::List => "list",
            Self::Prompt => "prompt",
            Self::Turn => "turn",
            Self::Answer => "answer",
            Self::Client => "client",
            Self::CloseSession => "closeSession",
            Self::Cancel => "cancel",
            Self::Close => "close",
            Self::Terminate => "terminate",
            Self::Store => "store",
            Self::Connect => "connect",
            Self::FirstByte => "firstByte",
            Self::Stream => "stream",
        }
    }

    /// Returns `true` if the wait may be unlimited. Waits on which the end of a session, turn or process
    /// depends may not.
    #[must_use]
    pub fn may_be_unlimited(self) -> bool {
        match self {
            Self::Initialize
            | Self::Open
            | Self::Restore
            | Self::Set
            | Self::Authenticate
            | Self::Prompt
            | Self::Turn
            | Self::Answer
            | Self::Client
            | Self::Store
            | Self::FirstByte
            | Self::Stream => true,
            Self::Spawn
            | Self::List
            | Self::CloseSession
            | Self::Cancel
            | Self::Close
            | Self::Terminate
            | Self::Connect => false,
        }
    }

    fn default_limit(self) -> Option<Duration> {
        let seconds = match self {
            Self::Authenticate | Self::Restore => 600,
            Self::Open | Self::Client => 120,
            Self::Initialize => 60,
            Self::Spawn | Self::Set => 30,
            Self::Answer | Self::FirstByte | Self::Stream => 300,
            Self::List | Self::CloseSession | Self::Store | Self::Connect => 10,
            Self::Cancel => 5,
            Self::Terminate => 3,
            Self::Close => 2,
            Self::Prompt | Self::Turn => return None,
        };
        Some(Duration::from_secs(seconds))
    }
}

/// Time limit of each wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits([Option<Duration>; Timeout::ALL.len()]);

impl Default for Limits {
    fn default() -> Self {
        Self(Timeout::ALL.map(Timeout::default_limit))
    }
}

impl Limits {
    /// Sets a limit; `None` removes it.
    pub fn set(&mut self, wait: Timeout, limit: Option<Duration>) {
        self.0[wait as usize] = limit;
    }

    pub fn of(&self, wait: Timeout) -> Option<Duration> {
        self.0[wait as usize]
    }

    /// Returns the shorter one of two limits on each wait.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|wait| {
            match (self.0[wait], other.0[wait]) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            }
        }))
    }

    /// Returns the deadline of an answer that no client is there to give. It is that of [`Timeout::Answer`]; if
    /// answers have no limit, the default one.
    pub fn unattended_answer(&self, now: Instant) -> Option<Instant> {
        let usual = || now.checked_add(Timeout::Answer.default_limit()?);
        self.until(Timeout::Answer, now).or_else(usual)
    }

    /// Returns the deadline of a wait that begins now; `None` if it has no limit.
    pub fn until(&self, wait: Timeout, now: Instant) -> Option<Instant> {
        now.checked_add(self.of(wait)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        let mut limits = Limits::default();
        for (n, wait) in Timeout::ALL.into_iter().enumerate() {
            assert_eq!(wait as usize, n, "{wait:?}");
            assert_eq!(limits.of(wait), wait.default_limit());
            assert!(
                wait.default_limit().is_some() || wait.may_be_unlimited(),
                "{wait:?}"
            );
            limits.set(wait, Some(Duration::from_secs(n as u64)));
        }
        for (n, wait) in Timeout::ALL.into_iter().enumerate() {
            assert_eq!(limits.of(wait), Some(Duration::from_secs(n as u64)));
        }
    }

    #[test]
    fn maximum_duration_means_no_deadline() {
        let mut limits = Limits::default();
        limits.set(Timeout::Open, Some(Duration::MAX));
        assert_eq!(limits.until(Timeout::Open, Instant::now()), None);
    }
}
