//! The agents that had a session, and the ids by which they know it.

use crate::core::agent_command::{AgentCommand, key_of_line};
use crate::core::agent_spec::DEFAULT_AGENT;
use crate::core::log::{Given, Identity};

/// The most agents whose ids of one session are kept.
const AGENTS: usize = 8;

/// What is known of the agents of a session. An agent that had it before another one did keeps its id.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// How the agent that had the session last is started.
    pub command: Option<AgentCommand>,
    /// The command line of that agent, as lists show it.
    pub line: Option<String>,
    /// Name of the agent; `None` for the default agent.
    pub name: Option<String>,
    /// One for each agent, the last one last.
    given: Vec<Given>,
}

impl Known {
    /// What is stored of the agents of a session.
    #[must_use]
    pub fn of(identity: &Identity) -> Self {
        let mut given = identity.agents.clone();
        // Earlier versions stored the last agent's id alone, and its command line as one text.
        if let (Some(line), Some(id)) = (&identity.agent, &identity.agent_session_id)
            && given.last().is_none_or(|last| last.id != *id)
        {
            let agent = key_of_line(line);
            given.retain(|given| given.agent != agent);
            given.push(Given {
                agent,
                id: id.clone(),
                messages: None,
            });
        }
        Self {
            command: identity.agent_command.clone(),
            line: identity.agent.clone(),
            name: identity.agent_name.clone(),
            given,
        }
    }

    /// An id that the client says the agent with this key gave.
    #[must_use]
    pub fn told(agent: String, id: String) -> Self {
        let mut known = Self::default();
        known.give(agent, id, 0);
        known
    }

    /// Name of the agent.
    #[must_use]
    pub fn agent_name(&self) -> &str {
        self.name.as_deref().unwrap_or(DEFAULT_AGENT)
    }

    /// All ids, for the log.
    #[must_use]
    pub fn given(&self) -> &[Given] {
        &self.given
    }

    /// The id by which the agent that had the session last knows it.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.given.last().map(|given| given.id.as_str())
    }

    /// The id by which the agent with this key knows the session.
    #[must_use]
    pub fn id_of(&self, agent: &str) -> Option<&str> {
        self.find(agent).map(|given| given.id.as_str())
    }

    fn find(&self, agent: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.agent == agent)
    }

    /// The command line of the agent that had the session last, where the agent with this key is another one.
    #[must_use]
    pub fn other_than(&self, agent: &str) -> Option<&str> {
        let last = self.given.last().filter(|last| last.agent != agent)?;
        Some(self.line.as_deref().unwrap_or(&last.agent))
    }

    /// How many of so many messages, the last ones, the agent with this key has not seen: another agent had the
    /// session.
    #[must_use]
    pub fn missed_by(&self, agent: &str, messages: u64) -> u64 {
        let seen = self.find(agent).and_then(|given| given.messages);
        // Fewer messages than it saw: they were cleared since, and all that there are are new.
        seen.map_or(0, |seen| messages.checked_sub(seen).unwrap_or(messages))
    }

    /// The agent with this key has the session by this id now, which has so many messages.
    pub fn give(&mut self, agent: String, id: String, messages: u64) {
        if let Some(last) = self.given.last_mut().filter(|last| last.agent != agent) {
            last.messages = Some(messages);
        }
        self.forget(&agent);
        self.given.push(Given {
            agent,
            id,
            messages: None,
        });
        let excess = self.given.len().saturating_sub(AGENTS);
        self.given.drain(..excess);
    }

    /// The agent that has the session is started like this.
    pub fn started_by(&mut self, command: Option<AgentCommand>) {
        self.line = command.as_ref().map(AgentCommand::line);
        self.command = command;
    }

    /// The agent that has the session gave it another id.
    pub fn rename(&mut self, id: String) {
        if let Some(last) = self.given.last_mut() {
            last.id = id;
        }
    }

    /// The agent with this key does not have the session any more.
    pub fn forget(&mut self, agent: &str) {
        self.given.retain(|given| given.agent != agent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_keeps_its_id_while_another_one_has_the_session() {
        let mut known = Known::told("a".to_owned(), "a-1".to_owned());
        known.give("b".to_owned(), "b-1".to_owned(), 4);
        assert_eq!(
            (known.id_of("a"), known.last_id()),
            (Some("a-1"), Some("b-1"))
        );
        assert_eq!((known.missed_by("a", 6), known.missed_by("b", 6)), (2, 0));
        assert_eq!(known.missed_by("a", 3), 3, "cleared since");
        assert_eq!(
            (known.other_than("a"), known.other_than("b")),
            (Some("b"), None)
        );
        known.give("a".to_owned(), "a-2".to_owned(), 6);
        assert_eq!(
            (known.id_of("a"), known.missed_by("a", 8)),
            (Some("a-2"), 0)
        );
        assert_eq!(known.missed_by("b", 8), 2);
        known.forget("a");
        assert_eq!((known.id_of("a"), known.last_id()), (None, Some("b-1")));
        for n in 0..20 {
            known.give(n.to_string(), "x".to_owned(), 8);
        }
        assert_eq!(known.given().len(), AGENTS);
    }

    #[test]
    fn a_log_of_an_earlier_version_has_the_last_agent_alone() {
        let identity = Identity {
            agent: Some("/opt/bin/agent acp --x".to_owned()),
            agent_session_id: Some("s".to_owned()),
            ..Identity::default()
        };
        let known = Known::of(&identity);
        assert_eq!(
            (known.id_of("agent"), known.id_of("other")),
            (Some("s"), None)
        );
        assert_eq!(known.other_than("other"), Some("/opt/bin/agent acp --x"));
        assert_eq!(known.command, None);
        assert!(Known::of(&Identity::default()).given().is_empty());
    }
}
