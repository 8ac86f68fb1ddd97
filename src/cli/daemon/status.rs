//! `acpipe daemon status`.

use super::connect::connect_control;
use super::control::Control;
use crate::cli::args::daemon::StatusArgs;
use crate::cli::columns::{one_line, visible};
use crate::cli::screen::{ScreenContent, to_stdout};
use crate::cli::{print_note, state_dir};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Exit code if no daemon runs.
const NOT_RUNNING: u8 = 1;

/// Maximum number of sessions that are counted.
const PAGE: u32 = 1000;

/// Shows the state of the daemon. Returns the exit code.
pub async fn status(args: &StatusArgs) -> anyhow::Result<u8> {
    let state = state_dir(&args.place)?;
    let Some(connection) = connect_control(&state).await? else {
        if args.json {
            to_stdout(ScreenContent::Json, |out| {
                Ok(writeln!(out, "{}", json!({ "running": false }))?)
            })?;
        } else {
            print_note("no daemon is running; `acpipe daemon start` starts one");
        }
        return Ok(NOT_RUNNING);
    };
    let mut control = Control::begin(connection).await?;
    let sessions = control
        .call("session/list", json!({ "limit": PAGE }))
        .await?;
    let live = live_sessions(&sessions);
    let info = &control.info;
    if args.json {
        let status = json!({ "running": true, "daemon": info.shown(), "sessions": live });
        to_stdout(ScreenContent::Json, |out| Ok(writeln!(out, "{status}")?))?;
        return Ok(0);
    }
    let mut text = format!(
        "acpipe {} runs as process {} since {}\n",
        info.acpipe, info.pid, info.started_at
    );
    for address in &info.listening {
        let _ = writeln!(
            text,
            "listening on {address}; .daemon.page of --json is its page with the token"
        );
    }
    if live.is_empty() {
        text.push_str("no session is live\n");
    }
    for session in &live {
        let word = |name: &str| session[name].as_str().unwrap_or_default();
        let clients = session["clients"].as_u64().unwrap_or(0);
        let _ = writeln!(
            text,
            "{:8} {:24} {clients} clients  {}",
            word("activity"),
            visible(word("sessionId")),
            one_line(word("title"))
        );
    }
    to_stdout(ScreenContent::Text, |out| {
        Ok(out.write_all(text.as_bytes())?)
    })?;
    Ok(0)
}

/// Returns the sessions that are open at their agents.
fn live_sessions(list: &Value) -> Vec<Value> {
    let sessions = list["sessions"].as_array().cloned().unwrap_or_default();
    let is_live = |session: &Value| session["activity"].is_string();
    sessions.into_iter().filter(is_live).collect()
}
