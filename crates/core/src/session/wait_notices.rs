//! Wait notices: notify the clients of what an idle session waits for.

use super::{Conversation, Stage};
use crate::agent::connection::Connection;
use crate::cx::Cx;
use crate::retry::Pause;
use crate::timeout_error::{last_of_stderr, waiting};
use acpipe_model::error::clip;
use acpipe_model::idle_timer::format_duration;
use acpipe_model::limits::Timeout;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::{Party, Waiting};
use std::time::{Duration, Instant};

/// Idle time before the first notice of an opening session.
const SLOW_OPENING: Duration = Duration::from_secs(2);

/// Idle time before the first notice of a running turn: tools and models take their time.
const SILENT_TURN: Duration = Duration::from_secs(10);

/// Time after which an agent that does not read its stdin is reported as stuck.
const STUCK: Duration = Duration::from_secs(1);

pub fn notify_wait(talk: &mut Conversation, is_serving: bool, cx: &mut Cx<'_>) {
    let connection = cx.agent.connection.as_deref();
    let waiting = waiting_for(
        talk,
        is_serving,
        connection,
        &cx.shared.settings.secrets,
        cx.now,
    );
    if let (Some(first), Some(idle_timer)) = (first_notice(talk), &mut talk.idle_timer) {
        idle_timer.note_notice(first, cx.now);
    }
    talk.turns
        .notify_activity(waiting, &mut talk.output, cx.clients);
}

/// Notifies the clients at once of a request that no client has answered if prompts wait for the end of its turn.
pub fn notify_waiting_prompts(talk: &mut Conversation, cx: &mut Cx<'_>) {
    if !talk.queue.is_empty() && !talk.output.requests().is_empty() {
        notify_wait(talk, false, cx);
    }
}

/// Idle time before the first notice; `None` if the session waits for nothing that is reported.
pub fn first_notice(talk: &Conversation) -> Option<Duration> {
    match (&talk.stage, talk.turns.prompted()) {
        (Stage::Opening(restore), _)
            if restore.call().is_some() || restore.awaited_close().is_some() =>
        {
            Some(SLOW_OPENING)
        }
        (Stage::Live { .. }, Some(running)) if running.ended.is_none() => Some(SILENT_TURN),
        _ => None,
    }
}

/// Returns what the session waits for, in its turn or during its opening. `None` if it waits for the
/// start of the agent or for nothing. `is_serving` is `true` while a file or terminal request of the agent is open.
pub fn waiting_for(
    talk: &Conversation,
    is_serving: bool,
    connection: Option<&Connection>,
    secrets: &Secrets,
    now: Instant,
) -> Option<Waiting> {
    let idle_timer = talk.idle_timer.as_ref()?;
    let process = connection.and_then(|c| c.process_of(talk.agent_session(), talk.asked()));
    let elapsed = idle_timer.elapsed(now);
    let stuck = process.and_then(|p| p.health.stuck(now));
    let (party, stage, what) = waits_for(talk, is_serving, stuck)?;
    let last = match idle_timer.last_activity(now) {
        Some((last_activity, _)) => format!("last activity: {last_activity}"),
        None => "no activity so far".to_owned(),
    };
    let stderr = process.map(|p| p.health.stderr_text(secrets));
    let stderr = stderr.unwrap_or_default();
    let note = format!(
        "waiting for {what}, {} ({last}){}",
        format_duration(elapsed),
        last_of_stderr(&stderr)
    );
    Some(waiting(stage, party, elapsed, note))
}

pub fn waits_for_start(talk: &Conversation) -> bool {
    talk.idle_timer.is_none() && talk.is_opening()
}

/// Returns who has to act, the name of the wait, and its description. `stuck` is how long the agent has
/// not read its stdin.
fn waits_for(
    talk: &Conversation,
    is_serving: bool,
    stuck: Option<Duration>,
) -> Option<(Party, &'static str, String)> {
    let running = talk.turns.prompted().filter(|r| r.ended.is_none());
    let agent = |wait: Timeout, what: &str| (Party::Agent, wait.name(), what.to_owned());
    let (party, stage, what) = match (&talk.stage, running) {
        (Stage::Opening(restore), _) if restore.awaited_close().is_some() => {
            agent(Timeout::CloseSession, "the agent to answer session/close")
        }
        (Stage::Opening(restore), _) if restore.call().is_none() => return None,
        (Stage::Resting, _) | (Stage::Live { .. }, None) => return None,
        (Stage::Opening(restore), _) if restore.is_setting() => agent(
            Timeout::Set,
            "the agent to restore the settings of the session",
        ),
        (Stage::Opening(restore), _) if restore.is_looking_up() => {
            agent(Timeout::List, "the agent's list of sessions")
        }
        (Stage::Opening(_), _) => agent(Timeout::Open, "the agent to open the session"),
        (_, Some(running)) => match &running.attempts.pause {
            Some(Pause::Transient { .. }) => {
                let what = "the next attempt at the prompt".to_owned();
                return Some((Party::Acpipe, "retry", what));
            }
            Some(Pause::Lookup { .. }) => agent(Timeout::List, "the agent's list of sessions"),
            Some(Pause::Stale(_)) => agent(Timeout::Open, "the agent to open the session"),
            None if !talk.output.requests().is_empty() => {
                let open = talk.output.requests().iter().next();
                let title = open.and_then(|open| open.entry.title.as_deref());
                let what = match title {
                    Some(title) => format!("the client's answer to {:?}", clip(title)),
                    None => "the client's answer to a question of the agent".to_owned(),
                };
                return Some((Party::Client, Timeout::Answer.name(), what));
            }
            None if running.is_cancelled() => {
                agent(Timeout::Cancel, "the agent to end the cancelled turn")
            }
            None if is_serving => {
                let what = "a file or command request of the agent".to_owned();
                return Some((Party::Tool, Timeout::Prompt.name(), what));
            }
            None => match running.turn.activity() {
                Some(tool) => {
                    let (name, stage) = (tool.tool_name, Timeout::Prompt.name());
                    (Party::Tool, stage, format!("the agent's tool {name}"))
                }
                None => agent(Timeout::Prompt, "the agent"),
            },
        },
    };
    if stuck.is_some_and(|stuck| stuck >= STUCK) {
        let what = "the agent to read its stdin".to_owned();
        return Some((Party::AgentInput, stage, what));
    }
    Some((party, stage, what))
}
