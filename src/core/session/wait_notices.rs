//! Wait notices: notify the clients of what an idle session waits for.

use super::{SessionMachine, Stage};
use crate::core::agent::connection::Connection;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::limits::Wait;
use crate::core::retry::Pause;
use crate::core::silence::in_words;
use crate::core::timeout_error::{last_of_stderr, waiting};
use crate::proto::wire::{Party, Waiting};
use std::time::{Duration, Instant};

/// Idle time before the first notice of an opening session.
const SLOW_OPENING: Duration = Duration::from_secs(2);

/// Idle time before the first notice of a running turn: tools and models take their time.
const SILENT_TURN: Duration = Duration::from_secs(10);

/// Time after which an agent that does not read its stdin is reported as stuck.
const STUCK: Duration = Duration::from_secs(1);

impl SessionMachine {
    /// Notifies the clients of what the session waits for.
    pub(super) fn notify_wait<C: ClientSinks>(&mut self, cx: &mut Cx<'_, C>) {
        let connection = cx.agent.connection.as_deref();
        let waiting = self.waiting_for(connection, cx.now);
        if let (Some(first), Some(silence)) = (self.first_notice(), &mut self.silence) {
            silence.note_told(first, cx.now);
        }
        self.tell_activity(waiting, cx.clients);
    }

    /// Idle time before the first notice; `None` if the session waits for nothing that is reported.
    pub(super) fn first_notice(&self) -> Option<Duration> {
        match (&self.stage, &self.running) {
            (Stage::Opening { call: Some(_), .. }, _) => Some(SLOW_OPENING),
            (Stage::Opening { restore, .. }, _) if restore.held.is_some() => Some(SLOW_OPENING),
            (Stage::Live { .. }, Some(running)) if running.ended.is_none() => Some(SILENT_TURN),
            _ => None,
        }
    }

    /// Returns what the session waits for, in its turn or during its opening. `None` if it waits for the
    /// start of the agent or for nothing.
    #[must_use]
    pub fn waiting_for(&self, connection: Option<&Connection>, now: Instant) -> Option<Waiting> {
        let silence = self.silence.as_ref()?;
        let process = connection.and_then(|c| c.process_of(self.agent_session(), self.asked()));
        let lasted = silence.lasted(now);
        let stuck = process.and_then(|p| p.health.stuck(now));
        let (party, stage, what) = self.waits_for(stuck)?;
        let last = match silence.heard(now) {
            Some((heard, _)) => format!("last activity: {heard}"),
            None => "no activity so far".to_owned(),
        };
        let stderr = process.map(|p| p.health.stderr.text()).unwrap_or_default();
        let note = format!(
            "waiting for {what}, {} ({last}){}",
            in_words(lasted),
            last_of_stderr(&stderr)
        );
        Some(waiting(stage, party, lasted, note))
    }

    /// Returns `true` if the session waits for the start of its agent.
    #[must_use]
    pub fn waits_for_start(&self) -> bool {
        self.silence.is_none() && self.is_opening()
    }

    /// Returns who has to act, the name of the wait, and its description. `stuck` is how long the agent has
    /// not read its stdin.
    fn waits_for(&self, stuck: Option<Duration>) -> Option<(Party, &'static str, String)> {
        let running = self.running.as_ref().filter(|r| r.ended.is_none());
        let agent = |wait: Wait, what: &str| (Party::Agent, wait.name(), what.to_owned());
        let (party, stage, what) = match (&self.stage, running) {
            (Stage::Opening { restore, .. }, _) if restore.held.is_some() => {
                agent(Wait::CloseSession, "the agent to answer session/close")
            }
            (Stage::Opening { call: None, .. } | Stage::Resting, _)
            | (Stage::Live { .. }, None) => {
                return None;
            }
            (Stage::Opening { restore, .. }, _) if restore.restoring.is_some() => agent(
                Wait::Set,
                "the agent to restore the settings of the session",
            ),
            (Stage::Opening { restore, .. }, _)
                if restore.doubted.is_some() || restore.adopting.is_some() =>
            {
                agent(Wait::List, "the agent's list of sessions")
            }
            (Stage::Opening { .. }, _) => agent(Wait::Open, "the agent to open the session"),
            (_, Some(running)) => match &running.attempts.pause {
                Some(Pause::Transient { .. }) => {
                    let what = "the next attempt at the prompt".to_owned();
                    return Some((Party::Acpipe, "retry", what));
                }
                Some(Pause::Doubt { .. }) => agent(Wait::List, "the agent's list of sessions"),
                Some(Pause::Stale(_)) => agent(Wait::Open, "the agent to open the session"),
                None if !self.asks.is_empty() => {
                    let what = "the client's answer to a question of the agent".to_owned();
                    return Some((Party::Client, Wait::Answer.name(), what));
                }
                None if running.is_cancelled() => {
                    agent(Wait::Cancel, "the agent to end the cancelled turn")
                }
                None if !self.host_calls.is_empty() => {
                    let what = "a file or command request of the agent".to_owned();
                    return Some((Party::Tool, Wait::Prompt.name(), what));
                }
                None => match running.turn.activity() {
                    Some(tool) => {
                        let (name, stage) = (tool.tool_name, Wait::Prompt.name());
                        (Party::Tool, stage, format!("the agent's tool {name}"))
                    }
                    None => agent(Wait::Prompt, "the agent"),
                },
            },
        };
        if stuck.is_some_and(|stuck| stuck >= STUCK) {
            let what = "the agent to read its stdin".to_owned();
            return Some((Party::AgentInput, stage, what));
        }
        Some((party, stage, what))
    }
}
