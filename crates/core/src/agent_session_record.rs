//! Session id that an agent gave to a session, and the rule by which the id stops to mean that session.
//!
//! An id is the agent's, and the agent decides how long it means the same. An agent that counts its sessions gives
//! the ids of one process out again in the next one. Its id therefore belongs to the session for which the agent
//! created a session under it last. A session that merely adopts one of the agent's sessions shares the id.
//!
//! acpipe records that the id of a session ended when the agent creates another session under it, so that it does not
//! matter what becomes of that one, nor which names the program has. The times of two records decide only if that was
//! not possible, for example because another acpipe process had the session open.

use serde::{Deserialize, Serialize};

/// Session id that an agent gave to the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSessionRecord {
    /// Identity of the agent: its name, or the key of its program.
    pub agent: String,
    /// Key of the agent's program, which has the session; absent if it is the identity, or if an earlier version stored
    /// the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub id: String,
    /// Number of messages when another agent took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Since when the session has the id, RFC 3339; absent if an earlier version stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Whether the agent created its session for this one; otherwise the client named an existing session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// Session for which the agent created a session under this id later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Hash of the instructions that the agent got in a prompt of its session; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
}

impl AgentSessionRecord {
    /// Returns `true` if another session's record means that the id does not lead to this session any more: the
    /// agent created a session under the same id later. Of two sessions that were created at the same time, neither
    /// can rely on the id.
    pub fn is_ended_by(&self, other: &Self) -> bool {
        // Times in this form are ordered as texts. A record without a time is older than all with one.
        let is_later = self.since < other.since || (self.created && self.since == other.since);
        self.is_of_same_id(other)
            && other.created
            && other.ended_by.is_none()
            && other.since.is_some()
            && is_later
    }

    /// Returns `true` if both records have one id of one program, whose agents may have several names.
    pub fn is_of_same_id(&self, other: &Self) -> bool {
        let is_same = self.agent == other.agent || self.program() == other.program();
        is_same && self.id == other.id
    }

    /// Returns the key of the agent's program, as far as it is known.
    fn program(&self) -> &str {
        self.program.as_deref().unwrap_or(&self.agent)
    }

    /// Returns `true` if the record is that of another copy of the session's identity.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        (&self.agent, &self.id, &self.since) == (&other.agent, &other.id, &other.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(since: Option<&str>, created: bool) -> AgentSessionRecord {
        AgentSessionRecord {
            agent: "a".to_owned(),
            id: "1".to_owned(),
            program: None,
            messages: None,
            since: since.map(str::to_owned),
            created,
            ended_by: None,
            instructions: None,
        }
    }

    #[test]
    fn id_belongs_to_the_session_that_was_created_under_it_last() {
        let (early, late) = (
            Some("2026-01-01T00:00:00.999Z"),
            Some("2026-01-01T00:00:01.000Z"),
        );
        for (own, other, ended) in [
            (record(early, true), record(late, true), true),
            (record(late, true), record(early, true), false),
            (record(early, true), record(early, true), true),
            (record(early, false), record(early, true), false),
            // The client named the id of a session that the agent has: both continue it.
            (record(early, true), record(late, false), false),
            (record(late, false), record(early, true), false),
            // The agent then gave the id to another session.
            (record(early, false), record(late, true), true),
            // Stored by an earlier version.
            (record(None, false), record(late, true), true),
            (record(late, true), record(None, false), false),
            (record(None, false), record(None, true), false),
        ] {
            assert_eq!(own.is_ended_by(&other), ended, "{own:?} {other:?}");
        }
        let own = record(early, true);
        let mut other = record(late, true);
        other.agent = "b".to_owned();
        assert!(!own.is_ended_by(&other), "ids of another agent");
        other.program = Some("a".to_owned());
        assert!(own.is_ended_by(&other), "another name of the program");
        other = record(late, true);
        other.id = "2".to_owned();
        assert!(!own.is_ended_by(&other), "another id");
        other = record(late, true);
        other.ended_by = Some("s".to_owned());
        assert!(!own.is_ended_by(&other), "the other one has lost the id");
    }
}
