//! Implements `execute`: one turn in a session that exists for it alone.

use super::Hub;
use super::cx::HubCx;
use crate::core::client::Token;
use crate::core::error::{Error, ErrorKind, invalid};
use crate::core::log::Log;
use crate::core::output_schema;
use crate::core::session::{OneShot, SessionMachine};
use crate::core::store::{MemoryStore, Store as _};
use crate::proto::wire::{ExecuteParams, PromptParams, PromptWhenBusy, SessionOptions};
use std::path::Path;

impl Hub {
    /// Opens a session in memory and queues its only prompt, whose turn answers the call.
    pub(super) fn execute(
        &mut self,
        token: Token,
        p: ExecuteParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        if p.cwd
            .as_deref()
            .is_some_and(|cwd| !Path::new(cwd).is_absolute())
        {
            return Err(invalid("cwd", "must be an absolute path"));
        }
        if p.max_turns == Some(0) {
            return Err(invalid("maxTurns", "must be at least 1"));
        }
        output_schema::check("outputSchema", p.output_schema.as_ref())?;
        let id = self.new_session_id(p.session_id)?;
        let agent = self
            .catalog
            .agent_named(&mut self.router, p.agent.as_deref())?;
        let options = p.options;
        let wished = SessionOptions {
            output_schema: p.output_schema.or(options.output_schema),
            max_turns: p.max_turns.or(options.max_turns),
            ..*options
        };
        let options = self.options(&id, agent, wished.clone(), &[])?;
        let prompt = PromptParams {
            session_id: Some(id.clone()),
            message: p.message,
            turn_id: None,
            rerun: false,
            degrade: false,
            retry: p.retry,
            retry_after_output: false,
            timeout_ms: p.timeout_ms,
            elapsed_ms: 0,
            context: p.context,
            when_busy: PromptWhenBusy::Queue,
        };
        let spec = self.router.agents().get(agent).spec();
        let protocol = spec.protocol;
        let cwd = p.cwd.unwrap_or_else(|| spec.cwd.clone());
        let log = Log::open(MemoryStore.open(&id)?)?;
        let mut session = SessionMachine::new(id.clone(), agent, cwd, log);
        session.set_options(options, &wished, protocol);
        session.one_shot = Some(OneShot::new(p.retry));
        self.router.sessions_mut().insert(id.clone(), session);
        self.router.with(&id, cx, |session, cx| {
            session.join(token.client, cx);
            session.claim_lists(token.client, &wished);
        });
        // If this fails, the session is removed with the spent ones.
        self.prompt(token, prompt, cx)
    }

    /// Returns the id of a session that does not exist yet.
    fn new_session_id(&mut self, given: Option<String>) -> Result<String, Error> {
        let Some(id) = given else {
            return Ok(self.router.shared_mut().next_id("execute"));
        };
        if id.is_empty() {
            return Err(invalid("sessionId", "must not be empty"));
        }
        if self.router.sessions().contains_key(&id) || self.router.store().has(&id)? {
            let message =
                format!("session {id:?} already exists; use another id, or omit sessionId");
            return Err(Error::new(ErrorKind::SessionExists, message));
        }
        Ok(id)
    }

    /// Closes and removes the sessions of `execute` calls that are answered.
    pub(super) fn remove_spent(&mut self, cx: &mut HubCx<'_>) {
        if self.is_ending() {
            // The agents are being stopped, and their sessions end with them.
            return;
        }
        let spent = self
            .router
            .sessions()
            .awake()
            .filter(|session| session.is_spent());
        let spent = spent.map(|session| {
            let own = session.output.subscribers().leader();
            (session.id.clone(), own.unwrap_or_default())
        });
        for (id, own) in spent.collect::<Vec<_>>() {
            // A spent session is idle, so it can be closed.
            let _ = self.close_session(&id, own, cx);
        }
    }
}
