//! Calls on the files in which agents store their sessions. The agents are not started. Owns the transports of these
//! files, which belong to no agent.

use crate::client::{ClientId, Reply, Token};
use crate::effect::{AgentId, AgentInput, Effect};
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::page::{MESSAGES, limit};
use crate::hub::router::{Router, panics};
use crate::ids::AgentRef;
use crate::replay::{Replay, ReplayedMessages};
use crate::sanitize::sanitize;
use acpipe_dialects as dialects;
use acpipe_json::frame::{Batch, lines};
use acpipe_json::repair::Faults;
use acpipe_json::shallow_line;
use acpipe_model::agent_file::{AgentFile, FileAccess};
use acpipe_model::error::{Error, ErrorKind, invalid, shutting_down};
use acpipe_model::event::AgentEvent;
use acpipe_model::line_repair::{LineOutcome, LineReader, LostLine, read_again};
use acpipe_model::transport::Transport;
use acpipe_protocol::wire;
use acpipe_protocol::wire::{ListMessagesParams, ListMessagesResult};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum size of a file that is read, in bytes. Its messages are held in memory.
const MAX_BYTES: usize = 512 << 20;

/// Calls on agents' files.
#[derive(Debug, Default)]
pub(in crate::hub) struct AgentFiles {
    /// Calls with an open transport.
    running: BTreeMap<AgentId, FileCall>,
    /// Deletions that wait for the processes of their sessions to exit.
    waiting: Vec<(ClosingSession, FileCall)>,
}

/// Session whose process may still write to its file.
#[derive(Debug)]
struct ClosingSession {
    agent: AgentRef,
    agent_session: String,
}

#[derive(Debug)]
struct FileCall {
    token: Token,
    file: Box<dyn AgentFile>,
    /// Page of messages to return; `None` for a deletion.
    page: Option<ListMessagesParams>,
    replay: Replay,
    bytes: usize,
}

impl AgentFiles {
    pub(super) fn forget(&mut self, client: ClientId) {
        // A deletion is completed without its client.
        let is_read = |call: &FileCall| call.token.client == client && call.page.is_some();
        self.running.retain(|_, call| !is_read(call));
    }

    /// Lists the messages in an agent's file, which is read for this call.
    pub(in crate::hub) fn list_messages(
        &mut self,
        catalog: &Catalog,
        router: &mut Router,
        token: Token,
        p: ListMessagesParams,
    ) -> Result<(), Error> {
        limit(p.limit, MESSAGES)?;
        if p.session_id.is_some() {
            return Err(invalid(
                "agentSessionId",
                "must not be given with sessionId",
            ));
        }
        let agent = catalog.agent_named(router, p.agent.as_deref())?;
        let id = p.agent_session_id.as_deref().unwrap_or_default();
        let own = router.agents().get(agent).spec().cwd.clone();
        let cwd = p.cwd.as_deref().unwrap_or(&own);
        let file = agent_file(router, (agent, "agentSessionId"), cwd, id, FileAccess::Read)?;
        self.open(router, FileCall::new(token, file, Some(p)));
        Ok(())
    }

    /// Deletes the file of a session once the process of the session has exited.
    pub(in crate::hub) fn delete(
        &mut self,
        router: &mut Router,
        token: Token,
        (agent, agent_session): (AgentRef, String),
        file: Box<dyn AgentFile>,
        cx: &HubCx<'_>,
    ) {
        let call = FileCall::new(token, file, None);
        let closing = ClosingSession {
            agent,
            agent_session,
        };
        self.waiting.push((closing, call));
        self.continue_deletions(router, cx);
    }

    /// Begins the deletions whose processes have exited.
    pub(in crate::hub) fn continue_deletions(&mut self, router: &mut Router, cx: &HubCx<'_>) {
        let agents = &router.agents();
        let has_exited = |(closing, _): &mut (ClosingSession, FileCall)| {
            let connection = agents.get(closing.agent).connection();
            let until =
                connection.and_then(|c| c.directory.closing_until(&closing.agent_session, cx.now));
            until.is_none()
        };
        let due: Vec<_> = self.waiting.extract_if(.., has_exited).collect();
        for (_, call) in due {
            self.open(router, call);
        }
    }

    fn open(&mut self, router: &mut Router, mut call: FileCall) {
        let transport = call.file.start();
        self.open_next(router, transport, call);
    }

    fn open_next(&mut self, router: &mut Router, transport: Transport, call: FileCall) {
        let id = AgentId(router.shared_mut().ids.process());
        router.push(Effect::Open(id, transport));
        self.running.insert(id, call);
    }

    /// Handles input of a transport that belongs to no agent.
    pub(in crate::hub) fn input(
        &mut self,
        router: &mut Router,
        id: AgentId,
        input: AgentInput,
        cx: &mut HubCx<'_>,
    ) {
        let Some(call) = self.running.remove(&id) else {
            return;
        };
        let token = call.token;
        let caught =
            panics::catch_panic(router, cx, |router, _| self.read(router, id, call, input));
        match caught.unwrap_or_else(|panic| Err(panic.error)) {
            Ok(Some(reply)) => cx.clients.reply(token, Ok(reply)),
            Ok(None) => {}
            Err(error) => cx.clients.reply(token, Err(error)),
        }
    }

    fn read(
        &mut self,
        router: &mut Router,
        id: AgentId,
        mut call: FileCall,
        input: AgentInput,
    ) -> Result<Option<Reply>, Error> {
        match input {
            AgentInput::Batch(Batch::Lines(batch)) => {
                call.bytes += batch.len();
                if call.bytes > MAX_BYTES {
                    let message = format!(
                        "cannot read the session's file: it is larger than {MAX_BYTES} bytes; open the session with \
                         session/ensure"
                    );
                    return Err(Error::new(ErrorKind::Overloaded, message));
                }
                for line in lines(&batch) {
                    call.read_line(line.text);
                }
            }
            AgentInput::StartFailed(error) => return Err(error),
            AgentInput::Exited(_) => {
                call.bytes = 0;
                return match call.file.ended()? {
                    Some(next) => {
                        self.open_next(router, next, call);
                        Ok(None)
                    }
                    None => call.reply().map(Some),
                };
            }
            // Lines over the limit are left out, as on a load.
            _ => {}
        }
        self.running.insert(id, call);
        Ok(None)
    }

    /// Fails all calls on files, since acpipe is shutting down.
    pub(super) fn stop(&mut self, cx: &mut HubCx<'_>) {
        let AgentFiles { running, waiting } = std::mem::take(self);
        let waiting = waiting.into_iter().map(|(_, call)| call);
        for call in running.into_values().chain(waiting) {
            cx.clients.reply(call.token, Err(shutting_down()));
        }
    }
}

/// Returns the access to the file of an agent's session. `field` is the parameter that requests it.
pub(in crate::hub) fn agent_file(
    router: &Router,
    (agent, field): (AgentRef, &str),
    cwd: &str,
    agent_session: &str,
    access: FileAccess,
) -> Result<Box<dyn AgentFile>, Error> {
    if !Path::new(cwd).is_absolute() {
        return Err(invalid("cwd", "must be an absolute path"));
    }
    let machine = router.agents().get(agent);
    let spec = machine.spec();
    let mut env = router.shared().settings.inherited.clone();
    env.0.extend(spec.env.0.clone());
    let file = dialects::agent_file(spec.protocol, env, (cwd, agent_session), access);
    file.unwrap_or_else(|| {
        let why = format!(
            "acpipe does not know where agent {:?} stores its sessions; it knows the files of Claude Code only",
            machine.name()
        );
        Err(invalid(field, &why))
    })
}

impl FileCall {
    fn new(token: Token, file: Box<dyn AgentFile>, page: Option<ListMessagesParams>) -> Self {
        let id = page.as_ref().and_then(|p| p.agent_session_id.clone());
        let replay = Replay::new(file.dialect(), id.unwrap_or_default());
        Self {
            token,
            file,
            page,
            replay,
            bytes: 0,
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        let line = sanitize(line);
        if self.read(&line) == LineOutcome::Unusable {
            read_again(&line, self);
        }
    }

    fn reply(self) -> Result<Reply, Error> {
        let Some(p) = self.page else {
            return Ok(Reply::Done(wire::Done {}));
        };
        page(&self.replay.finish(), &p).map(Reply::Messages)
    }
}

impl LineReader for FileCall {
    fn read(&mut self, line: &[u8]) -> LineOutcome {
        let line = shallow_line(line);
        let mut events = Vec::new();
        if self.file.line(&line, &mut events).is_err() {
            return LineOutcome::Unusable;
        }
        for event in events {
            if let AgentEvent::Update {
                update, original, ..
            } = event
            {
                self.replay.update(&update, original);
            }
        }
        LineOutcome::Read
    }

    fn repaired(&mut self, faults: Faults) {
        self.file.count_repaired(faults);
    }

    fn lost(&mut self, line: &LostLine<'_>) {
        self.file.count_lost(line);
    }
}

fn page(messages: &ReplayedMessages, p: &ListMessagesParams) -> Result<ListMessagesResult, Error> {
    let limit = limit(p.limit, MESSAGES)?;
    let total = messages.len() as u64;
    let place = |id: &Option<String>| {
        let Some(id) = id else { return Ok(None) };
        let found = messages.values().position(|message| message["id"] == **id);
        let missing = || {
            let message = format!("message {id:?} not found; list the messages with message/list");
            Error::new(ErrorKind::MessageNotFound, message)
        };
        found.map(Some).ok_or_else(missing)
    };
    let (after, before) = (place(&p.after)?, place(&p.before)?);
    let end = before.unwrap_or(messages.len());
    let begin = after.map_or(0, |at| at + 1).min(end);
    let is_backwards = before.is_some() && after.is_none();
    let (begin, end) = if is_backwards {
        (begin.max(end.saturating_sub(limit)), end)
    } else {
        (begin, end.min(begin + limit))
    };
    let more = if is_backwards {
        begin > 0
    } else {
        end < before.unwrap_or(messages.len())
    };
    Ok(ListMessagesResult {
        messages: messages.values().skip(begin).take(end - begin).collect(),
        more,
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pages_have_the_requested_messages() {
        let listed = |after: Option<&str>, before: Option<&str>, limit| {
            let mut messages = ReplayedMessages::default();
            for n in 1..=4 {
                messages.push(&json!({ "id": n.to_string() }));
            }
            let p = ListMessagesParams {
                after: after.map(str::to_owned),
                before: before.map(str::to_owned),
                limit,
                ..ListMessagesParams::default()
            };
            let page = page(&messages, &p)?;
            let ids = page.messages.iter().map(|m| m["id"].as_str().unwrap());
            Ok::<_, Error>((ids.collect::<String>(), page.more))
        };
        for (after, before, limit, want) in [
            (None, None, None, ("1234", false)),
            (None, None, Some(2), ("12", true)),
            (Some("2"), None, Some(1), ("3", true)),
            (None, Some("4"), Some(2), ("23", true)),
            (Some("1"), Some("4"), None, ("23", false)),
            (Some("4"), Some("2"), None, ("", false)),
        ] {
            let (ids, more) = listed(after, before, limit).unwrap();
            assert_eq!((ids.as_str(), more), want, "{after:?} {before:?}");
        }
        let error = listed(Some("x"), None, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MessageNotFound);
    }
}
