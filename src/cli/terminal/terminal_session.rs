//! The session of a client at a terminal: its id, and the calls that open it and begin its turns.

use super::calls::{PromptOptions, Steps};
use crate::cli::run::view::RunView;
use crate::cli::sessions::{read, show_last};
use acpipe_core::client::{Command, History};
use acpipe_core::session_id::{is_unnamed, name_of, unnamed};
use acpipe_host::read_only;
use acpipe_protocol::wire::{self, OnDisconnect, Role};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// How a later command continues the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// The session is stored, for `acpipe run`.
    Stored,
    /// The session is in the daemon.
    Daemon,
    /// The daemon has ended. The next line starts another one.
    EndedDaemon,
    /// The session ends with acpipe.
    Impossible,
}

/// Session of a client at a terminal.
#[derive(Debug)]
pub struct TerminalSession {
    /// Id; empty until `acpipe attach` has found its session.
    pub id: String,
    /// Directory; `None` for that of the session.
    pub cwd: Option<String>,
    /// `true` if the session may be open at its agent already: connecting to the agent of the command line could start
    /// a second one.
    pub is_joining: bool,
    /// Agent that the command line names; `None` for the agent of the session.
    pub agent: Option<String>,
    pub options: Box<wire::SessionOptions>,
    pub terms: PromptOptions,
    pub steps: Steps,
    /// Values that are sent with the first prompt.
    pub context: Box<Map<String, Value>>,
    pub continuation: Continuation,
    /// Directory of the stored sessions; `None` if this one is not stored.
    pub state: Option<PathBuf>,
    /// Hexadecimal text that no other acpipe has, for the ids of turns and sessions.
    pub unique: String,
    /// Number of turns so far, in all sessions of the client.
    pub turns: u32,
    /// Id of the running turn, or of the last one.
    pub turn: String,
    /// Number of sessions before this one.
    pub former: u32,
}

impl TerminalSession {
    /// Creates a session that is not known yet, with the settings that it has.
    pub fn new(unique: String, continuation: Continuation) -> Self {
        Self {
            id: String::new(),
            cwd: None,
            is_joining: false,
            agent: None,
            options: Box::default(),
            terms: PromptOptions {
                retry: true,
                max_time: None,
                run: None,
            },
            steps: Steps::default(),
            context: Box::default(),
            continuation,
            state: None,
            unique,
            turns: 0,
            turn: String::new(),
            former: 0,
        }
    }

    /// Creates the call that starts the agent.
    pub fn connect(&self) -> Command {
        Command::Connect(wire::ConnectParams {
            timeout_ms: self.terms.timeout_ms(),
            elapsed_ms: self.terms.elapsed_ms(),
            ..wire::ConnectParams::default()
        })
    }

    /// Creates the call that opens a session with the settings of this one.
    pub fn ensure(&self, id: &str) -> Command {
        Command::Ensure(wire::EnsureParams {
            session_id: Some(id.to_owned()),
            cwd: self.cwd.clone(),
            agent: self.agent.clone(),
            options: self.options.clone(),
            timeout_ms: self.terms.timeout_ms(),
            elapsed_ms: self.terms.elapsed_ms(),
            ..wire::EnsureParams::default()
        })
    }

    /// Creates the call that follows the session in the daemon after this chunk; `None` for the chunks to come. With a
    /// `role`, the turns go on when the client leaves.
    pub fn attach(&self, after_seq: Option<u64>, role: Option<Role>) -> Command {
        Command::Attach(wire::AttachParams {
            session_id: Some(self.id.clone()),
            after_seq,
            role,
            on_disconnect: role.map(|_| OnDisconnect::Continue),
        })
    }

    /// Names the next turn. The hub, which may have the same prefix, names background turns otherwise.
    pub fn begin_turn(&mut self) {
        self.turns += 1;
        self.turn = format!("turn-run-{}-{}", self.unique, self.turns);
    }

    /// Creates the call that begins the turn.
    pub fn prompt(&mut self, message: wire::UserMessage) -> Command {
        let context = std::mem::take(&mut self.context);
        self.terms.prompt(&self.id, &self.turn, message, context)
    }

    /// Shows the last stored messages, except the one that is being created. Returns the number of the last chunk in them;
    /// `None` if the session is not stored.
    pub fn show_stored(
        &self,
        last: Option<usize>,
        running: Option<&str>,
        view: &mut RunView,
    ) -> Option<u64> {
        let state = self.state.as_deref()?;
        let log = read(read_only(state, &self.id).ok()?).ok()?;
        match show_last(&log, last, running, view.stdout) {
            Ok(text) => view.stored(&text),
            Err(error) => view.note(&format!("cannot show the stored messages: {error:#}")),
        }
        Some(log.seq())
    }

    /// Creates the call that sets the model.
    pub fn set_model(&self, model: String) -> Command {
        let session_id = Some(self.id.clone());
        Command::SetModel(wire::SetModelParams { session_id, model })
    }

    /// Creates the call that sets the mode.
    pub fn set_mode(&self, mode: String) -> Command {
        let session_id = Some(self.id.clone());
        Command::SetMode(wire::SetModeParams { session_id, mode })
    }

    /// Creates the call that closes the session, unless it stays open in the daemon.
    pub fn close(&self) -> Option<Command> {
        let session_id = Some(self.id.clone());
        let close = History::CloseSession(wire::SessionParams { session_id });
        (self.continuation != Continuation::Daemon).then_some(Command::History(close))
    }

    /// Returns the id of another new session. It begins with its number, so that people see that it is another one.
    pub fn next_id(&mut self) -> String {
        self.former += 1;
        unnamed(&format!("{:x}{}", self.former + 1, self.unique))
    }

    /// Returns how to continue the session, for the end of the chat; `None` if it cannot be continued or has no turn.
    pub fn continuation(&self) -> Option<String> {
        let command = self.command()?;
        Some(match self.continuation {
            Continuation::Daemon => format!("the session stays in the daemon: {command}"),
            Continuation::Stored if is_unnamed(&self.id) => {
                format!("continue with acpipe run --continue, or later with {command}")
            }
            _ => format!("continue with {command}"),
        })
    }

    /// Returns the command that continues the session; `None` if it cannot be continued or has no turn.
    pub fn command(&self) -> Option<String> {
        let name = name_of(&self.id);
        let command = match self.continuation {
            Continuation::Impossible => return None,
            Continuation::Daemon => format!("acpipe attach {name}"),
            Continuation::EndedDaemon => format!("acpipe run --daemon --session {name}"),
            Continuation::Stored => format!("acpipe run --session {name}"),
        };
        (self.turns > 0).then_some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_chat_names_the_command_that_continues_it() {
        let unique = "abcdef0123456789".to_owned();
        let mut session = TerminalSession::new(unique, Continuation::Stored);
        "fix@0123456789abcdef".clone_into(&mut session.id);
        assert_eq!(session.continuation(), None);
        session.begin_turn();
        assert_eq!(session.turn, "turn-run-abcdef0123456789-1");
        let hint = session.continuation().unwrap();
        assert!(hint.ends_with("acpipe run --session fix"), "{hint}");
        session.id = session.next_id();
        let hint = session.continuation().unwrap();
        assert!(hint.contains("acpipe run --continue,"), "{hint}");
        assert!(is_unnamed(&session.id) && hint.ends_with(&session.id));
        session.continuation = Continuation::Impossible;
        assert_eq!(session.continuation(), None);
    }
}
