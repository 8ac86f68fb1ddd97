//! Agents that have had a session, with their agent session ids.

use crate::agent_command::{AgentCommand, key_of_line, shown_line};
use crate::agent_session_record::AgentSessionRecord;
use crate::agent_spec::DEFAULT_AGENT;
use crate::log::Identity;
use crate::shared_value::SharedValue;

/// Maximum number of agents whose ids are kept per session.
const AGENTS: usize = 8;

/// How an agent session id came to a session.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Time, RFC 3339.
    pub at: &'a str,
    /// Whether the agent created its session for this one.
    pub created: bool,
    /// Key of the agent's program.
    pub program: &'a str,
}

/// Agents of a session. An agent keeps its agent session id while another agent has the session.
#[derive(Debug, Clone, Default)]
pub struct SessionAgents {
    /// Command that starts the last agent of the session.
    pub command: Option<SharedValue<AgentCommand>>,
    /// Command line of the last agent, as it is stored.
    pub line: Option<String>,
    /// Name of the last agent; `None` for the default agent.
    pub name: Option<String>,
    /// One entry per agent, the last agent at the end.
    given: Vec<AgentSessionRecord>,
}

impl SessionAgents {
    #[must_use]
    pub fn of(identity: &Identity) -> Self {
        let mut given = identity.agents.clone();
        // Earlier versions stored only the last agent's id, with its command line as one text.
        if let (Some(line), Some(id)) = (&identity.agent, &identity.agent_session_id)
            && given.last().is_none_or(|last| last.id != *id)
        {
            let agent = key_of_line(line);
            given.retain(|given| given.agent != agent);
            given.push(AgentSessionRecord {
                agent,
                program: None,
                id: id.clone(),
                messages: None,
                since: None,
                created: false,
                ended_by: None,
                instructions: None,
            });
        }
        Self {
            command: identity.agent_command.clone(),
            line: identity.agent.clone(),
            name: identity.agent_name.clone(),
            given,
        }
    }

    /// Creates the record of an agent session id that the client supplied, for the agent with this key.
    #[must_use]
    pub fn from_client(agent: String, id: String, given: Given<'_>) -> Self {
        let mut known = Self::default();
        known.give(agent, id, 0, given);
        known
    }

    pub fn agent_name(&self) -> &str {
        self.name.as_deref().unwrap_or(DEFAULT_AGENT)
    }

    /// Returns the ids of all agents, for the log.
    pub fn given(&self) -> &[AgentSessionRecord] {
        &self.given
    }

    pub fn last_id(&self) -> Option<&str> {
        self.given.last().map(|given| given.id.as_str())
    }

    pub fn id_of(&self, agent: &str) -> Option<&str> {
        self.find(agent).map(|given| given.id.as_str())
    }

    pub fn find(&self, agent: &str) -> Option<&AgentSessionRecord> {
        self.given.iter().find(|given| given.agent == agent)
    }

    /// Returns the shown command line of the last agent, if that is not the agent with this key.
    pub fn other_than(&self, agent: &str) -> Option<String> {
        let last = self.given.last().filter(|last| last.agent != agent)?;
        let line = self.line.as_ref().unwrap_or(&last.agent);
        shown_line(self.command.as_deref(), Some(line))
    }

    /// Returns how many of `messages` messages, counted from the end, the agent with this key has missed
    /// because another agent had the session.
    pub fn missed_by(&self, agent: &str, messages: u64) -> u64 {
        let seen = self.find(agent).and_then(|given| given.messages);
        // If there are fewer messages than it has seen, they were cleared since, and all are new to it.
        seen.map_or(0, |seen| messages.checked_sub(seen).unwrap_or(messages))
    }

    /// Makes the agent with this key the last one. `id` is its agent session id, `messages` the number of
    /// messages so far. An id that the session has already keeps its time, unless the agent created a new session
    /// under it.
    pub fn give(&mut self, agent: String, id: String, messages: u64, given: Given<'_>) {
        let kept = self
            .find(&agent)
            .filter(|known| known.id == id && !given.created)
            .map(|known| (known.since.clone(), known.created));
        // A fork of the agent's session has got them, too.
        let instructions = self.find(&agent).and_then(|known| known.instructions);
        let (since, created) = kept.unwrap_or((Some(given.at.to_owned()), given.created));
        if let Some(last) = self.given.last_mut().filter(|last| last.agent != agent) {
            last.messages = Some(messages);
        }
        self.forget(&agent);
        self.given.push(AgentSessionRecord {
            program: (given.program != agent).then(|| given.program.to_owned()),
            agent,
            id,
            messages: None,
            since,
            created,
            ended_by: None,
            instructions,
        });
        let excess = self.given.len().saturating_sub(AGENTS);
        self.given.drain(..excess);
    }

    /// Records the hash of the instructions that the last agent gets with its next prompt.
    pub fn note_instructions(&mut self, instructions: Option<u64>) {
        if let Some(last) = self.given.last_mut() {
            last.instructions = instructions;
        }
    }

    pub fn started_by(&mut self, command: Option<SharedValue<AgentCommand>>) {
        self.line = command.as_deref().map(AgentCommand::line);
        self.command = command;
    }

    /// Changes the last agent's id of the session, at a time.
    pub fn rename(&mut self, id: String, at: String) {
        if let Some(last) = self.given.last_mut() {
            (last.id, last.since, last.created) = (id, Some(at), true);
            last.ended_by = None;
        }
    }

    /// Records that the agent created a session under the id of this record for another session. Returns `true` if the
    /// session has such a record.
    pub fn end_claim(&mut self, by: &AgentSessionRecord, session: &str) -> bool {
        let mut ended = false;
        for own in self.given.iter_mut().filter(|own| own.is_of_same_id(by)) {
            own.ended_by = Some(session.to_owned());
            ended = true;
        }
        ended
    }

    /// Removes the agent with this key: it does not have the session any more.
    pub fn forget(&mut self, agent: &str) {
        self.given.retain(|given| given.agent != agent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Given<'_> = Given {
        at: "2",
        created: true,
        program: "p",
    };

    const OLD: Given<'_> = Given {
        at: "1",
        created: false,
        program: "p",
    };

    #[test]
    fn agent_session_id_is_remembered_while_another_agent_has_the_session() {
        let mut known = SessionAgents::from_client("a".to_owned(), "a-1".to_owned(), OLD);
        known.give("b".to_owned(), "b-1".to_owned(), 4, NEW);
        assert_eq!(
            (known.id_of("a"), known.last_id()),
            (Some("a-1"), Some("b-1"))
        );
        assert_eq!((known.missed_by("a", 6), known.missed_by("b", 6)), (2, 0));
        assert_eq!(known.missed_by("a", 3), 3, "cleared since");
        assert_eq!(
            (known.other_than("a"), known.other_than("b")),
            (Some("b".to_owned()), None)
        );
        known.give("a".to_owned(), "a-2".to_owned(), 6, NEW);
        assert_eq!(
            (known.id_of("a"), known.missed_by("a", 8)),
            (Some("a-2"), 0)
        );
        assert_eq!(known.missed_by("b", 8), 2);
        known.forget("a");
        assert_eq!((known.id_of("a"), known.last_id()), (None, Some("b-1")));
        for n in 0..20 {
            known.give(n.to_string(), "x".to_owned(), 8, NEW);
        }
        assert_eq!(known.given().len(), AGENTS);
    }

    #[test]
    fn line_of_another_agent_has_no_values_of_arguments() {
        let mut known = SessionAgents::from_client("a".to_owned(), "x".to_owned(), OLD);
        let words = ["--token", "x", "--header", "X-Key: x"];
        known.started_by(Some(SharedValue::from(AgentCommand {
            command: "agent".to_owned(),
            args: words.map(str::to_owned).to_vec(),
            ..AgentCommand::default()
        })));
        let want = "agent --token [hidden] --header X-Key:[hidden]";
        assert_eq!(known.other_than("b").as_deref(), Some(want));
    }

    #[test]
    fn a_log_of_an_earlier_version_has_the_last_agent_alone() {
        let identity = Identity {
            agent: Some("/opt/bin/agent acp --x".to_owned()),
            agent_session_id: Some("s".to_owned()),
            ..Identity::default()
        };
        let known = SessionAgents::of(&identity);
        assert_eq!(
            (known.id_of("agent"), known.id_of("other")),
            (Some("s"), None)
        );
        assert_eq!(
            known.other_than("other").as_deref(),
            Some("/opt/bin/agent acp --x")
        );
        assert_eq!(known.command, None);
        assert!(SessionAgents::of(&Identity::default()).given().is_empty());
    }

    #[test]
    fn id_keeps_its_time_until_the_agent_creates_a_session_under_it() {
        let mut known = SessionAgents::from_client("a".to_owned(), "x".to_owned(), OLD);
        let record = |known: &SessionAgents| {
            let found = known.find("a").expect("a record").clone();
            (found.since.expect("a time"), found.created)
        };
        let resumed = Given {
            at: "2",
            created: false,
            program: "p",
        };
        known.give("a".to_owned(), "x".to_owned(), 0, resumed);
        assert_eq!(record(&known), ("1".to_owned(), false));
        known.give("a".to_owned(), "x".to_owned(), 0, NEW);
        assert_eq!(record(&known), ("2".to_owned(), true));
        let later = Given {
            at: "3",
            created: false,
            program: "p",
        };
        known.give("a".to_owned(), "x".to_owned(), 0, later);
        assert_eq!(record(&known), ("2".to_owned(), true));
        known.rename("y".to_owned(), "4".to_owned());
        assert_eq!(record(&known), ("4".to_owned(), true));
    }
}
