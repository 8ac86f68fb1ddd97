//! Quirks: faults of an agent that acpipe knows of and works around.
//!
//! `acpipe doctor --probe` measures them and writes them to the agent's profile.

use super::agent_spec::AgentSpec;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_protocol::wire::AgentCapabilities;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limit of the wait for the end of a cancelled turn, for an agent that never ends one.
const CANCEL_LIMIT: Duration = Duration::from_millis(500);

/// Limit of the wait for an exit after the end of stdin, for an agent that does not exit then.
const CLOSE_LIMIT: Duration = Duration::from_millis(50);

/// Longest wait for late output or history, whatever the profile says.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Factor between the measured time of a handshake and its limit.
const START_FACTOR: u32 = 4;

/// Faults of an agent. By default it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub struct Quirks {
    /// The agent offers to resume sessions but does not. acpipe does not try it.
    pub broken_resume: bool,
    /// The agent offers to load sessions but does not. acpipe does not try it.
    pub broken_load: bool,
    /// The agent offers to list its sessions but does not. acpipe does not ask for the list.
    pub broken_list: bool,
    /// The agent offers to close sessions but does not answer. acpipe does not close sessions.
    pub broken_close: bool,
    /// The agent repeats the history when it resumes a session. acpipe does not show it again.
    pub replays_on_resume: bool,
    /// The agent reports success for sessions that it does not have. acpipe prefers to load a session, and
    /// trusts only a load that repeats the history.
    pub accepts_unknown_sessions: bool,
    /// Longest time between the response to a load and the history that follows it, in milliseconds. acpipe
    /// waits that long for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_replay_ms: Option<u32>,
    /// Longest time between the response to a prompt and output that follows it, in milliseconds. acpipe ends
    /// a turn that much later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_output_ms: Option<u32>,
    /// The agent does not end a cancelled turn. acpipe waits for half a second only.
    pub ignores_cancel: bool,
    /// Mode in which the agent ran a tool without asking; empty if it reports no mode. acpipe warns in this mode, unless
    /// it knows when the agent asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_unasked_in: Option<String>,
    /// The agent mixes up two sessions in one process. acpipe starts a process for each session.
    pub one_session_per_process: bool,
    /// The agent does not exit when its stdin ends. acpipe sends SIGTERM at once.
    pub ignores_end_of_input: bool,
    /// Time of the handshake, if it is long, in milliseconds. acpipe waits four times as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_start_ms: Option<u32>,
}

impl Quirks {
    /// Removes the capabilities that do not work.
    pub fn mask(&self, can: &mut AgentCapabilities) {
        can.resume &= !self.broken_resume;
        can.load &= !self.broken_load;
        can.list &= !self.broken_list;
        can.close &= !self.broken_close;
        // Only a load shows whether the agent has the session.
        can.resume &= !(self.accepts_unknown_sessions && can.load);
    }

    pub fn adapt(&self, spec: &mut AgentSpec) {
        spec.child_per_session |= self.one_session_per_process;
    }

    pub fn limit(&self, limits: &mut Limits) {
        let mut lower = |timeout, limit| {
            let own = limits.of(timeout);
            limits.set(timeout, Some(own.map_or(limit, |own| own.min(limit))));
        };
        if self.ignores_cancel {
            lower(Timeout::Cancel, CANCEL_LIMIT);
        }
        if self.ignores_end_of_input {
            lower(Timeout::Close, CLOSE_LIMIT);
        }
        if let (Some(ms), Some(own)) = (self.slow_start_ms, limits.of(Timeout::Initialize)) {
            let needed = Duration::from_millis(ms.into()) * START_FACTOR;
            limits.set(Timeout::Initialize, Some(own.max(needed)));
        }
    }

    /// Returns how long to wait for output after the response to a prompt.
    pub fn late_output(&self) -> Duration {
        let late = Duration::from_millis(self.late_output_ms.unwrap_or_default().into());
        late.min(LONGEST_WAIT)
    }

    /// Returns how long to wait for the history after the response to a load.
    pub fn late_replay(&self) -> Duration {
        let late = Duration::from_millis(self.late_replay_ms.unwrap_or_default().into());
        late.min(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_change_only_what_they_name() {
        let mut limits = Limits::default();
        Quirks::default().limit(&mut limits);
        assert_eq!(limits, Limits::default());
        let quirks = Quirks {
            ignores_cancel: true,
            slow_start_ms: Some(60_000),
            ..Quirks::default()
        };
        quirks.limit(&mut limits);
        assert_eq!(limits.of(Timeout::Cancel), Some(CANCEL_LIMIT));
        assert_eq!(
            limits.of(Timeout::Initialize),
            Some(Duration::from_secs(240))
        );
        limits.set(Timeout::Cancel, Some(Duration::from_millis(1)));
        quirks.limit(&mut limits);
        assert_eq!(
            limits.of(Timeout::Cancel),
            Some(Duration::from_millis(1)),
            "a shorter limit is kept"
        );
    }

    #[test]
    fn resume_is_not_used_if_only_a_load_shows_that_the_agent_has_the_session() {
        let quirks = Quirks {
            accepts_unknown_sessions: true,
            ..Quirks::default()
        };
        for load in [true, false] {
            let mut can = AgentCapabilities {
                load,
                resume: true,
                ..AgentCapabilities::default()
            };
            quirks.mask(&mut can);
            assert_eq!((can.load, can.resume), (load, !load));
        }
    }

    #[test]
    fn waits_of_a_wild_profile_are_bounded() {
        let quirks = Quirks {
            late_output_ms: Some(u32::MAX),
            late_replay_ms: Some(u32::MAX),
            ..Quirks::default()
        };
        assert_eq!(quirks.late_output(), LONGEST_WAIT);
        assert_eq!(quirks.late_replay(), LONGEST_WAIT);
    }

    #[test]
    fn quirks_are_written_and_read() {
        let quirks = Quirks {
            broken_resume: true,
            late_replay_ms: Some(700),
            ..Quirks::default()
        };
        let text = serde_json::to_string(&quirks).unwrap();
        assert_eq!(serde_json::from_str::<Quirks>(&text).unwrap(), quirks);
        assert_eq!(
            serde_json::from_str::<Quirks>("{}").unwrap(),
            Quirks::default()
        );
        assert!(serde_json::from_str::<Quirks>("{\"brokenResum\":true}").is_err());
    }
}
