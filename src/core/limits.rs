//! How long is waited for what: the one table of waits, and what the user makes of it.

use std::time::{Duration, Instant};

/// Something that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A process of the agent starts.
    Spawn,
    /// The agent answers the handshake; `npx` downloads count.
    Initialize,
    /// The agent opens a session: nothing is heard of it for so long.
    Open,
    /// The agent opens a session, from the first call to the end, however much is heard of it.
    Restore,
    /// The agent sets a mode, a model, an option.
    Set,
    /// The agent signs its user in, or out: with a browser that takes minutes.
    Authenticate,
    /// The agent tells its sessions.
    List,
    /// The agent goes on with a turn: nothing is heard of it for so long.
    Prompt,
    /// A turn as a whole, from its begin to its end, however much is heard of it.
    Turn,
    /// The client answers a question of the agent.
    Answer,
    /// The client answers a request for a file or a terminal.
    Client,
    /// The agent closes a session that is wanted again.
    CloseSession,
    /// The agent ends a turn that was cancelled.
    Cancel,
    /// A process ends after its stdin was closed.
    Close,
    /// A process ends after SIGTERM.
    Terminate,
    /// The disk takes what is written to a session's log.
    Store,
}

impl Wait {
    /// Every wait, in the order of the table.
    pub const ALL: [Self; 16] = [
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
    ];

    /// Its name, in errors' `stage` and on the command line.
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
        }
    }

    /// Whether it may last for ever: not where the end of something hangs on it.
    #[must_use]
    pub fn may_last(self) -> bool {
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
            | Self::Store => true,
            Self::Spawn
            | Self::List
            | Self::CloseSession
            | Self::Cancel
            | Self::Close
            | Self::Terminate => false,
        }
    }

    /// How long it lasts where nobody says otherwise.
    fn usual(self) -> Option<Duration> {
        let seconds = match self {
            Self::Answer => 300,
            Self::Authenticate | Self::Restore => 600,
            Self::Open | Self::Client => 120,
            Self::Initialize => 60,
            Self::Spawn | Self::Set => 30,
            Self::List | Self::CloseSession | Self::Store => 10,
            Self::Cancel => 5,
            Self::Terminate => 3,
            Self::Close => 2,
            Self::Prompt | Self::Turn => return None,
        };
        Some(Duration::from_secs(seconds))
    }
}

/// How long each wait lasts at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits([Option<Duration>; Wait::ALL.len()]);

impl Default for Limits {
    fn default() -> Self {
        Self(Wait::ALL.map(Wait::usual))
    }
}

impl Limits {
    /// Sets a limit; `None` for a wait without one.
    pub fn set(&mut self, wait: Wait, limit: Option<Duration>) {
        self.0[wait as usize] = limit;
    }

    /// How long a wait lasts at most.
    #[must_use]
    pub fn of(&self, wait: Wait) -> Option<Duration> {
        self.0[wait as usize]
    }

    /// When a wait is over that begins now.
    #[must_use]
    pub fn until(&self, wait: Wait, now: Instant) -> Option<Instant> {
        now.checked_add(self.of(wait)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        let mut limits = Limits::default();
        for (n, wait) in Wait::ALL.into_iter().enumerate() {
            assert_eq!(wait as usize, n, "{wait:?}");
            assert_eq!(limits.of(wait), wait.usual());
            assert!(wait.usual().is_some() || wait.may_last(), "{wait:?}");
            limits.set(wait, Some(Duration::from_secs(n as u64)));
        }
        for (n, wait) in Wait::ALL.into_iter().enumerate() {
            assert_eq!(limits.of(wait), Some(Duration::from_secs(n as u64)));
        }
    }

    #[test]
    fn what_is_as_long_as_time_has_no_end() {
        let mut limits = Limits::default();
        limits.set(Wait::Open, Some(Duration::MAX));
        assert_eq!(limits.until(Wait::Open, Instant::now()), None);
    }
}
