//! Faults that a probe can find.

use crate::cli::doctor::report::{milliseconds, shown};
use acpipe_core::quirks::Quirks;
use std::time::Duration;

/// Factor between a measured delay and the time that acpipe waits, since delays vary.
const MARGIN: u32 = 2;

/// Shortest time that acpipe waits for late output.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// Fault of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// `session/resume` is offered, but failed for a session that had a prompt.
    BrokenResume(String),
    /// `session/load` is offered, but failed for a session that had a prompt.
    BrokenLoad(String),
    /// `session/list` is offered, but failed or did not contain the session.
    BrokenList(String),
    /// `session/close` is offered, but was not answered.
    BrokenClose(String),
    /// The history was repeated by a resume.
    ReplaysOnResume,
    /// A session that does not exist was opened, by this method.
    AcceptsUnknownSessions(&'static str),
    /// History came after the response to a load.
    LateReplay(Duration),
    /// Output came after the response to a prompt.
    LateOutput(Duration),
    /// A cancelled turn did not end within this time.
    IgnoresCancel(Duration),
    /// A command that changes something ran without a permission request in this mode; empty if the agent reports none.
    RunsUnasked(String),
    /// Two sessions in one process do not work.
    OneSessionPerProcess(String),
    /// The process did not exit within this time after the end of stdin.
    IgnoresEndOfInput(Duration),
    /// The handshake took this long.
    SlowStart(Duration),
}

impl Finding {
    /// Returns the name of the fault in the profile.
    pub fn name(&self) -> &'static str {
        match self {
            Self::BrokenResume(_) => "brokenResume",
            Self::BrokenLoad(_) => "brokenLoad",
            Self::BrokenList(_) => "brokenList",
            Self::BrokenClose(_) => "brokenClose",
            Self::ReplaysOnResume => "replaysOnResume",
            Self::AcceptsUnknownSessions(_) => "acceptsUnknownSessions",
            Self::LateReplay(_) => "lateReplayMs",
            Self::LateOutput(_) => "lateOutputMs",
            Self::IgnoresCancel(_) => "ignoresCancel",
            Self::RunsUnasked(_) => "runsUnaskedIn",
            Self::OneSessionPerProcess(_) => "oneSessionPerProcess",
            Self::IgnoresEndOfInput(_) => "ignoresEndOfInput",
            Self::SlowStart(_) => "slowStartMs",
        }
    }

    /// Describes the fault.
    pub fn text(&self) -> String {
        match self {
            Self::BrokenResume(why) => {
                format!("session/resume is offered, but does not work: {why}")
            }
            Self::BrokenLoad(why) => format!("session/load is offered, but does not work: {why}"),
            Self::BrokenList(why) => format!("session/list is offered, but does not work: {why}"),
            Self::BrokenClose(why) => format!("session/close is offered, but does not work: {why}"),
            Self::ReplaysOnResume => "session/resume repeats the history".to_owned(),
            Self::AcceptsUnknownSessions(method) => {
                format!("{method} reports success for a session that does not exist")
            }
            Self::LateReplay(delay) => {
                format!(
                    "history came up to {} after the response to session/load",
                    shown(*delay)
                )
            }
            Self::LateOutput(delay) => {
                format!(
                    "output came up to {} after the response to the prompt",
                    shown(*delay)
                )
            }
            Self::IgnoresCancel(limit) => {
                format!(
                    "the turn did not end within {} after session/cancel",
                    shown(*limit)
                )
            }
            Self::RunsUnasked(mode) if mode.is_empty() => {
                "the command ran without a permission request".to_owned()
            }
            Self::RunsUnasked(mode) => {
                format!("the command ran without a permission request in the mode {mode:?}")
            }
            Self::OneSessionPerProcess(why) => {
                format!("two sessions in one process do not work: {why}")
            }
            Self::IgnoresEndOfInput(limit) => {
                format!(
                    "did not exit within {} after the end of stdin",
                    shown(*limit)
                )
            }
            Self::SlowStart(time) => format!("the handshake took {}", shown(*time)),
        }
    }

    /// Describes what acpipe does about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::BrokenResume(_) => {
                "acpipe will not resume sessions of this agent; it loads them, or starts new ones"
            }
            Self::BrokenLoad(_) => {
                "acpipe will not load sessions of this agent; it resumes them, or starts new ones"
            }
            Self::BrokenList(_) => "acpipe will not ask this agent for its sessions",
            Self::BrokenClose(_) => "acpipe will not close sessions of this agent",
            Self::ReplaysOnResume => "acpipe will not show the repeated history again",
            Self::AcceptsUnknownSessions(_) => {
                "acpipe will trust only a load that repeats the history"
            }
            Self::LateReplay(_) => "acpipe will wait longer for the history",
            Self::LateOutput(_) => {
                "acpipe will end each turn that much later, so that nothing is lost"
            }
            Self::IgnoresCancel(_) => {
                "acpipe will wait only 500 ms for the end of a cancelled turn"
            }
            Self::RunsUnasked(_) => {
                "acpipe will warn if the permissions restrict, unless `asks` of the agent says otherwise"
            }
            Self::OneSessionPerProcess(_) => "acpipe will start one process for each session",
            Self::IgnoresEndOfInput(_) => {
                "acpipe will send SIGTERM to stop the agent, without waiting"
            }
            Self::SlowStart(_) => "acpipe will wait longer for the handshake",
        }
    }

    /// Adds the fault to the quirks of an agent.
    pub fn apply(&self, quirks: &mut Quirks) {
        match self {
            Self::BrokenResume(_) => quirks.broken_resume = true,
            Self::BrokenLoad(_) => quirks.broken_load = true,
            Self::BrokenList(_) => quirks.broken_list = true,
            Self::BrokenClose(_) => quirks.broken_close = true,
            Self::ReplaysOnResume => quirks.replays_on_resume = true,
            Self::AcceptsUnknownSessions(_) => quirks.accepts_unknown_sessions = true,
            Self::LateReplay(delay) => quirks.late_replay_ms = Some(wait(*delay)),
            Self::LateOutput(delay) => quirks.late_output_ms = Some(wait(*delay)),
            Self::IgnoresCancel(_) => quirks.ignores_cancel = true,
            Self::RunsUnasked(mode) => quirks.runs_unasked_in = Some(mode.clone()),
            Self::OneSessionPerProcess(_) => quirks.one_session_per_process = true,
            Self::IgnoresEndOfInput(_) => quirks.ignores_end_of_input = true,
            Self::SlowStart(time) => quirks.slow_start_ms = Some(saturated(*time)),
        }
    }
}

/// Returns how long acpipe waits for something that was late by `delay`, in milliseconds.
fn wait(delay: Duration) -> u32 {
    saturated((delay * MARGIN).max(LEAST_WAIT))
}

fn saturated(time: Duration) -> u32 {
    u32::try_from(milliseconds(time)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_the_quirk_of_its_name() {
        let time = Duration::from_millis(400);
        let all = [
            Finding::BrokenResume(String::new()),
            Finding::BrokenLoad(String::new()),
            Finding::BrokenList(String::new()),
            Finding::BrokenClose(String::new()),
            Finding::ReplaysOnResume,
            Finding::AcceptsUnknownSessions("session/load"),
            Finding::LateReplay(time),
            Finding::LateOutput(time),
            Finding::IgnoresCancel(time),
            Finding::RunsUnasked(String::new()),
            Finding::OneSessionPerProcess(String::new()),
            Finding::IgnoresEndOfInput(time),
            Finding::SlowStart(time),
        ];
        let none = serde_json::to_value(Quirks::default()).unwrap();
        for finding in all {
            let mut quirks = Quirks::default();
            finding.apply(&mut quirks);
            let mut quirks = serde_json::to_value(quirks).unwrap();
            let own = quirks.as_object_mut().unwrap().remove(finding.name());
            assert!(own.is_some_and(|own| own != false), "{finding:?}");
            let mut none = none.clone();
            none.as_object_mut().unwrap().remove(finding.name());
            assert_eq!(quirks, none, "{finding:?}");
        }
    }
}
