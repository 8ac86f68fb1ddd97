//! The methods about sessions, one function each: `session/new`, `list`, `load`, `resume`, `close`, `prompt`.

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, ContentChunk, Error, ListSessionsResponse, LoadSessionResponse,
    MessageId, NewSessionResponse, RawValue, ResumeSessionResponse, SessionInfo, SessionUpdate,
    StopReason,
};
use serde_json::{Value, json};

use super::agent::{Agent, Running, Session, chars};
use super::methods::result;
use super::params::{Params, invalid};
use super::store::{Header, Log, Saved};
use super::turn::Turn;
use super::{place, words};

/// How many sessions `session/list` names at a time.
const PAGE: usize = 100;

impl Agent {
    /// Opens a new session.
    pub fn new_session(&mut self, params: &Params) -> Result<Value, Error> {
        let cwd = params.cwd()?;
        params.mcp_servers()?;
        let id = place::fresh_session();
        let session = Session {
            cwd,
            log: Log::Unborn,
            turn: None,
            always: false,
            chars: 0,
        };
        self.sessions.insert(id.clone(), session);
        result(&NewSessionResponse::new(id))
    }

    /// Names the sessions that can be loaded: those on disk, newest first.
    pub fn list_sessions(&mut self, params: &Params) -> Result<Value, Error> {
        let cwd = match params.optional_text("cwd")? {
            Some(_) => Some(params.cwd()?),
            None => None,
        };
        let start: usize = match params.optional_text("cursor")? {
            Some(cursor) => cursor
                .parse()
                .map_err(|_| invalid("cursor", "is none of this agent's"))?,
            None => 0,
        };
        let mut saved = self.store.list();
        saved.retain(|saved| cwd.as_ref().is_none_or(|cwd| *cwd == saved.header.cwd));
        let end = start.saturating_add(PAGE);
        let cursor = (end < saved.len()).then(|| end.to_string());
        let info = |Saved { header, changed }| {
            SessionInfo::new(header.session_id, header.cwd)
                .title(header.title)
                .updated_at(place::iso8601(changed))
        };
        let page = saved.into_iter().skip(start).take(PAGE).map(info).collect();
        result(&ListSessionsResponse::new(page).next_cursor(cursor))
    }

    /// Opens a session and tells its whole history again before it answers.
    pub fn load_session(&mut self, params: &Params) -> Result<Value, Error> {
        params.mcp_servers()?;
        for update in self.open_session(params)? {
            self.tell(params.session()?, &update);
        }
        result(&LoadSessionResponse::new())
    }

    /// Opens a session silently, for a client that has kept its history.
    pub fn resume_session(&mut self, params: &Params) -> Result<Value, Error> {
        self.open_session(params)?;
        result(&ResumeSessionResponse::new())
    }

    /// Makes a session usable in this process and returns its history.
    fn open_session(&mut self, params: &Params) -> Result<Vec<Value>, Error> {
        let id = params.session()?;
        // The project may have moved since, so the directory is the one the client names now.
        let cwd = params.cwd()?;
        let open = self.sessions.get(id);
        if open.is_some_and(|session| session.turn.is_some()) {
            return Err(busy(id));
        }
        let history = match open.map(|session| &session.log) {
            Some(Log::Unborn) => Vec::new(),
            Some(Log::Memory(updates)) => updates.clone(),
            Some(Log::Disk) | None => {
                let history = self.store.read(id);
                let history = history.map_err(|error| {
                    Error::new(-32603, format!("cannot read the session: {error}"))
                })?;
                history.ok_or_else(|| unknown(id, "there is no such session to open"))?
            }
        };
        let session = self.sessions.entry(id.to_owned()).or_insert(Session {
            cwd: cwd.clone(),
            log: Log::Disk,
            turn: None,
            always: false,
            chars: 0,
        });
        session.cwd = cwd;
        session.chars = history.iter().map(chars).sum();
        Ok(history)
    }

    /// Forgets a session in this process; what is on disk stays. Its turn, if one runs, is cancelled.
    pub fn close_session(&mut self, params: &Params) -> Result<Value, Error> {
        let id = params.session()?;
        if let Some(turn) = self.sessions.get(id).and_then(|session| session.turn) {
            self.finish(turn, StopReason::Cancelled);
        }
        match self.sessions.remove(id) {
            Some(_) => result(&CloseSessionResponse::new()),
            None => Err(unknown(id, "it is not open")),
        }
    }

    /// Starts a turn. `Agent::finish` answers the request when the turn has ended.
    pub fn prompt(&mut self, request: &RawValue, params: &Params) -> Result<(), Error> {
        let id = params.session()?;
        let blocks = params.prompt()?;
        let number = self.number();
        let Some(session) = self.sessions.get_mut(id) else {
            return Err(unknown(
                id,
                "it is not open; begin with session/new, load or resume",
            ));
        };
        if session.turn.is_some() {
            return Err(busy(id));
        }
        session.turn = Some(number);
        let cwd = session.cwd.clone();
        let (prompt, attachments) = words::text_of(&blocks);
        let title = matches!(session.log, Log::Unborn).then(|| {
            let title = Some(words::one_line(&prompt)).filter(|title| !title.is_empty());
            let header = Header {
                session_id: id.to_owned(),
                cwd: cwd.clone(),
                title: title.unwrap_or_else(|| "Untitled".to_owned()),
            };
            session.log = self.store.create(&header);
            header.title
        });
        // The client knows its own words: they are kept for a later load, and not sent now.
        let message = MessageId::new(place::fresh("message"));
        for block in blocks {
            let chunk = ContentChunk::new(block).message_id(message.clone());
            self.keep(id, &SessionUpdate::UserMessageChunk(chunk));
        }
        let turn = Turn {
            number,
            cwd,
            prompt,
            attachments,
            events: self.events.clone(),
        };
        let running = Running {
            session: id.to_owned(),
            request: request.to_owned(),
            task: self.tasks.spawn(turn.play()),
            tool: None,
            title,
        };
        self.turns.insert(number, running);
        Ok(())
    }
}

/// The error for a session that cannot be found.
fn unknown(id: &str, why: &str) -> Error {
    Error::new(
        -32002,
        format!("unknown session `{}`: {why}", words::one_line(id)),
    )
    .data(json!({ "sessionId": id }))
}

/// The error for a session in which a turn runs.
fn busy(id: &str) -> Error {
    let why =
        format!("session `{id}` is busy with a turn; wait for its answer or send session/cancel");
    Error::new(-32600, why).data(json!({ "sessionId": id }))
}
