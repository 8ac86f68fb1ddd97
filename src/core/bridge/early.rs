//! Updates of sessions that an agent sends before it answers the call that opens them.

use super::Bridge;
use crate::core::event::{Original, Update};
use crate::core::setting::merge_state;
use crate::proto::json::Members;
use serde_json::{Map, Value};
use std::time::Instant;
use tracing::warn;

/// How many sessions an agent may send updates of before it answers the calls for them.
const EARLY_SESSIONS: usize = 64;

/// The state that an agent sent of a session that is not open yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Early {
    pub state: Map<String, Value>,
    /// What the session cost so far.
    pub cost: Option<f64>,
}

/// The news of a session's state that an update has, and what the session cost so far.
pub(super) fn state_news<'a>(
    update: &Update<'a>,
    original: Original<'a>,
) -> Option<(Members<'a>, Option<f64>)> {
    match update {
        Update::Session(news) => Some((news.clone(), None)),
        Update::Context { cost, figures } => {
            let figures = figures.clone().unwrap_or_else(|| original.fields());
            let mut news = Members::default();
            news.set_owned("context", &figures);
            Some((news, *cost))
        }
        _ => None,
    }
}

impl Bridge {
    /// Keeps the state of a session that may be on its way; what else comes of it belongs to no session.
    pub(super) fn early_news(
        &mut self,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
    ) {
        self.early_at = Some(now);
        if let Some((news, cost)) = state_news(update, original)
            && (self.early.len() < EARLY_SESSIONS || self.early.contains_key(agent_session))
        {
            let early = self.early.entry(agent_session.to_owned()).or_default();
            merge_state(&mut early.state, &news);
            early.cost = cost.or(early.cost);
            return;
        }
        self.unclaimed += 1;
        if self.unclaimed.is_power_of_two() {
            let count = self.unclaimed;
            warn!(
                agent_session,
                count, "update of a session that nobody opened"
            );
        }
    }
}
