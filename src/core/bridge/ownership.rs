//! Whose a session is: which one a call means, of which directory it is, and which agent has it.

use super::commands::{invalid, out_of_order};
use super::{AgentSpec, Bridge};
use crate::core::agent_command::{self, AgentCommand};
use crate::core::error::{Error, ErrorKind};
use crate::core::session_id::{Holder, resolve};
use crate::proto::wire::{AgentSource, DEFAULT_SESSION};
use std::path::Path;

impl AgentSpec {
    /// Whose a session is: the program, whatever its arguments. See [`agent_command::key`].
    #[must_use]
    pub fn key(&self) -> String {
        agent_command::key(self.protocol, &self.command, &self.args)
    }

    /// What is stored of it.
    #[must_use]
    pub fn stored(&self) -> AgentCommand {
        AgentCommand {
            command: self.command.clone(),
            args: self.args.clone(),
            cwd: self.cwd.clone(),
            protocol: self.protocol,
            child_per_session: self.child_per_session,
            demo: self.source == AgentSource::Demo,
        }
    }
}

impl Bridge {
    /// The id of the session that a call means. Without an id, or with `default`, that is the default session which
    /// the client ensured last, else the one of the directory that the agent is in.
    pub(super) fn session_id(&self, given: Option<&str>) -> Result<String, Error> {
        match (given, &self.default_session) {
            (Some(id), _) if id != DEFAULT_SESSION => Ok(id.to_owned()),
            (_, Some((id, _))) => Ok(id.clone()),
            (_, None) => self.default_in(&self.spec_in_use().cwd),
        }
    }

    /// The same for a call that makes the session where it does not exist: with its directory, where the call or the
    /// default session says one.
    pub(super) fn ensured_id(
        &self,
        given: Option<&str>,
        cwd: Option<&str>,
    ) -> Result<(String, Option<String>), Error> {
        if given.is_some_and(str::is_empty) {
            return Err(invalid("sessionId", "it is empty"));
        }
        if cwd.is_some_and(|cwd| !Path::new(cwd).is_absolute()) {
            return Err(invalid("cwd", "it must be an absolute path"));
        }
        let is_default = given.is_none_or(|id| id == DEFAULT_SESSION);
        match (cwd, &self.default_session) {
            (Some(cwd), _) if is_default => Ok((self.default_in(cwd)?, Some(cwd.to_owned()))),
            (None, Some((id, cwd))) if is_default => Ok((id.clone(), Some(cwd.clone()))),
            _ => Ok((self.session_id(given)?, cwd.map(str::to_owned))),
        }
    }

    /// The id of the default session of a directory.
    fn default_in(&self, cwd: &str) -> Result<String, Error> {
        let real = |path: &str| self.store.real_path(path);
        let holder = |id: &str| {
            let stored = match self.sessions.get(id) {
                Some(session) => Holder::Directory(session.cwd.clone()),
                None => self.store.holder(id)?,
            };
            Ok(match stored {
                Holder::Directory(cwd) => Holder::Directory(real(&cwd)),
                other => other,
            })
        };
        Ok(resolve(DEFAULT_SESSION, &real(cwd), holder)?.id)
    }

    /// Notes the default session, where a call ensures it: later calls without an id mean it.
    pub(super) fn note_default(&mut self, given: Option<&str>, id: &str, cwd: Option<&str>) {
        if given.is_none_or(|given| given == DEFAULT_SESSION) {
            let cwd = match self.sessions.get(id) {
                Some(session) => session.cwd.clone(),
                None => cwd.unwrap_or(&self.spec_in_use().cwd).to_owned(),
            };
            self.default_session = Some((id.to_owned(), cwd));
        }
    }

    /// Fails where a session is of another directory than the call says.
    pub(super) fn must_be_in(&self, id: &str, cwd: Option<&str>) -> Result<(), Error> {
        let (Some(session), Some(cwd)) = (self.sessions.get(id), cwd) else {
            return Ok(());
        };
        if self.is_same_directory(&session.cwd, cwd) {
            return Ok(());
        }
        let own = &session.cwd;
        let message = format!(
            "session {id:?} works in {own}, not in {cwd}: leave cwd out to go on with it there, or take another \
             sessionId for {cwd}"
        );
        Err(Error::new(ErrorKind::InvalidParams, message).with("field", "cwd"))
    }

    pub(super) fn is_same_directory(&self, a: &str, b: &str) -> bool {
        a == b || self.store.real_path(a) == self.store.real_path(b)
    }

    /// The specification of the agent that is connected, or that is started again after a crash.
    fn connected(&self) -> Option<&AgentSpec> {
        let crashed = self.crashed.as_ref().map(|crashed| &crashed.spec);
        let spec = self.agent.as_ref().map(|agent| &agent.spec);
        spec.or(crashed)
    }

    /// The key of the agent that is connected or about to be; empty where there is none.
    pub(super) fn agent_key(&self) -> String {
        self.connected().map_or_else(String::new, AgentSpec::key)
    }

    /// How the agent that is connected or about to be is started.
    pub(super) fn agent_command(&self) -> Option<AgentCommand> {
        self.connected().map(AgentSpec::stored)
    }

    /// Fails where nobody named an agent, so that the demo agent is connected, and another one has the session.
    pub(super) fn must_not_be_taken_by_demo(&self, id: &str) -> Result<(), Error> {
        let demo = self.connected();
        let demo = demo.filter(|spec| spec.source == AgentSource::Demo);
        let session = self.sessions.get(id);
        let other = demo.and_then(|demo| session?.known.other_than(&demo.key()));
        match other {
            None => Ok(()),
            Some(other) => Err(out_of_order(&format!(
                "session {id:?} is of the agent {other:?}, and the demo agent is connected: call agent/disconnect, \
                 then agent/connect with that agent's command"
            ))),
        }
    }

    /// The agent that had a session last, where its command is stored and the client did not end the agent.
    pub(super) fn own_agent(&self, id: &str) -> Option<AgentSpec> {
        if self.disconnected {
            return None;
        }
        let stored = self.sessions.get(id)?.known.command.clone()?;
        let default = &self.settings.default_agent;
        if stored.demo {
            return Some(default.clone()).filter(|spec| spec.source == AgentSource::Demo);
        }
        Some(AgentSpec {
            command: stored.command,
            args: stored.args,
            cwd: stored.cwd,
            env: default.env.clone(),
            source: AgentSource::Session,
            protocol: stored.protocol,
            child_per_session: stored.child_per_session,
            options: default.options.clone(),
        })
    }
}
