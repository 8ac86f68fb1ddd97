//! Choice of the session to follow.

use acpipe_protocol::wire::{SessionActivity, SessionInfo};

/// Session to follow.
#[derive(Debug, Clone)]
pub enum AttachTarget {
    /// The session of this id.
    Session(String),
    /// The running session of this directory, or its newest one.
    NewestIn(String),
}

/// Returns the id of the first session that works or waits, otherwise of the first one. The list begins with the
/// newest. Sessions that only their agent knows are left out.
pub fn running_or_newest(sessions: &[SessionInfo]) -> Option<&str> {
    let known = || {
        sessions
            .iter()
            .filter(|session| session.session_id.is_some())
    };
    let works = |session: &&SessionInfo| {
        matches!(
            session.activity,
            Some(SessionActivity::Running | SessionActivity::Waiting)
        )
    };
    let found = known().find(works).or_else(|| known().next());
    found?.session_id.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_that_works_is_followed_before_a_newer_one() {
        let session = |id: &str, activity| SessionInfo {
            session_id: Some(id.to_owned()),
            activity,
            ..SessionInfo::default()
        };
        let foreign = SessionInfo::default();
        let idle = session("idle", Some(SessionActivity::Idle));
        let asks = session("asks", Some(SessionActivity::Waiting));
        let stored = session("stored", None);
        let all = [foreign.clone(), idle.clone(), stored.clone(), asks];
        assert_eq!(running_or_newest(&all), Some("asks"));
        assert_eq!(running_or_newest(&[stored, idle]), Some("stored"));
        assert_eq!(running_or_newest(&[foreign]), None);
    }
}
