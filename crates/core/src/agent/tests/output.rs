//! Output of an agent machine as short lines, for transcripts.

use crate::client::{Notice, Reply};
use crate::effect::Effect;
use acpipe_model::error::Error;
use acpipe_model::transport::Transport;
use serde_json::Value;

pub(super) fn notice(notice: &Notice) -> String {
    let Notice::AgentState(params) = notice else {
        return format!("{notice:?}");
    };
    let state = word(&params.state);
    match (&params.reason, &params.waiting_for) {
        (_, Some(waiting)) => format!("state {state}, waits: {}", waiting.stage),
        (Some(_), _) => format!("state {state} with a reason"),
        (None, None) => format!("state {state}"),
    }
}

pub(super) fn reply(reply: &Result<Reply, Error>) -> String {
    match reply {
        Err(error) => format!("error {}", error.kind.name()),
        Ok(Reply::Status(status)) => word(&status.state),
        Ok(Reply::Done(_)) => "done".to_owned(),
        Ok(Reply::Authenticate(result)) => match (&result.run, result.done) {
            (Some(run), _) => format!("run {}", run.command),
            (None, done) => format!("signed in: {done}"),
        },
        Ok(Reply::UpdateEnvironment(result)) => {
            let sessions = result.sessions.iter().map(|session| {
                let is_restored = session.recovery.is_some();
                let outcome = if is_restored { "restored" } else { "failed" };
                format!(" {} {outcome}", session.session_id)
            });
            let sessions: String = sessions.collect();
            let (changed, restarted) = (result.changed, result.restarted);
            format!("changed: {changed}, restarted: {restarted}{sessions}")
        }
        Ok(other) => format!("{other:?}"),
    }
}

/// Describes an effect, with one line for each message to a process.
pub(super) fn effect(effect: &Effect) -> Vec<String> {
    let line = match effect {
        Effect::Open(id, Transport::Process(spec)) => {
            let env = spec.env.0.iter();
            let env = env.filter(|(name, _)| ["A", "B", "KEY"].contains(&name.as_str()));
            let env =
                env.map(|(name, value)| format!(" {name}={}", value.as_deref().unwrap_or("")));
            format!("spawn {} {}{}", id.0, spec.command, env.collect::<String>())
        }
        Effect::Send(id, lines) => return messages(id.0, lines),
        Effect::CloseInput(id) => format!("close input {}", id.0),
        Effect::Terminate(id) => format!("terminate {}", id.0),
        Effect::Kill(id) => format!("kill {}", id.0),
        Effect::Measure(id) => format!("measure {}", id.0),
        other => format!("{other:?}"),
    };
    vec![line]
}

fn messages(id: u64, lines: &[u8]) -> Vec<String> {
    let lines = lines.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let messages = lines.map(|line| {
        let message: Value = serde_json::from_slice(line).expect("a line must be JSON");
        if let Some(method) = message["method"].as_str() {
            return format!("send {id} {method}");
        }
        let key = message["id"].as_str().unwrap_or("?");
        let answer = message["result"].to_string().replace('"', "");
        format!("send {id} {key} = {answer}")
    });
    messages.collect()
}

/// Returns the name of a state on the wire.
fn word(state: &impl serde::Serialize) -> String {
    let word = serde_json::to_value(state).expect("a state must be JSON");
    word.as_str().unwrap_or_default().to_owned()
}
