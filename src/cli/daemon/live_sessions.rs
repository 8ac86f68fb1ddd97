//! The sessions that are open in a running daemon.

use super::connect::connect_control;
use super::control::Control;
use acpipe_protocol::wire::{ListSessionsResult, SessionInfo};
use anyhow::Context as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tracing::debug;

/// Maximum number of sessions that are listed.
const PAGE: u32 = 1000;

/// Maximum time for the daemon's answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Returns the sessions that are open in the daemon, by their ids. None if no daemon is running, or if it does not
/// answer: the caller has less to show then.
pub async fn live_sessions(state: &Path) -> BTreeMap<String, SessionInfo> {
    let listed = tokio::time::timeout(ANSWER_LIMIT, list(state)).await;
    let listed = listed.unwrap_or_else(|_| anyhow::bail!("the daemon does not answer"));
    listed.unwrap_or_else(|error| {
        debug!(error = format!("{error:#}"), "no sessions of the daemon");
        BTreeMap::new()
    })
}

async fn list(state: &Path) -> anyhow::Result<BTreeMap<String, SessionInfo>> {
    let Some(connection) = connect_control(state).await? else {
        return Ok(BTreeMap::new());
    };
    let mut control = Control::begin(connection).await?;
    let listed = control
        .call("session/list", json!({ "limit": PAGE }))
        .await?;
    let listed: ListSessionsResult =
        serde_json::from_str(&listed.to_string()).context("invalid list of the daemon")?;
    let open = listed.sessions.into_iter().filter_map(|session| {
        session.activity?;
        Some((session.session_id.clone()?, session))
    });
    Ok(open.collect())
}
