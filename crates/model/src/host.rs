//! The host: file and terminal operations that acpipe performs for agents, in the form that all dialects
//! share.
//!
//! The host is pure: a request becomes a [`HostEffect`] for the shell or an answer, and events from the shell
//! are converted to answers. Nothing here blocks: each request has a [`Ticket`], under which its one answer
//! arrives.

mod command;
mod forward;
mod offer;
mod output;
mod request;
mod roots;
mod terminals;
#[cfg(test)]
mod tests;

use super::error::{Error, ErrorKind};
use acpipe_protocol::wire::Variables;
use bytes::Bytes;
pub use command::judged_line;
use command::spec;
pub use forward::{ClientHostRequest, parse_answer};
pub use offer::HostServices;
pub use request::{HostRequest, LineRange};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
pub use terminals::{DEFAULT_OUTPUT, MAX_OUTPUT, MAX_TERMINALS};
use terminals::{ServedTerminals, TerminalOwner};

/// Largest text that is read or written at once, in bytes.
pub const MAX_TEXT: usize = 10 * 1024 * 1024;

/// Minimum interval between two reports of terminal output.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Identifier of an agent's request until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Identifier of a terminal; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TerminalId(pub u64);

impl TerminalId {
    /// Parses the name that an agent uses for a terminal.
    fn of(name: &str) -> Option<Self> {
        let id = Self(name.strip_prefix("terminal-")?.parse().ok()?);
        (id.to_string() == name).then_some(id)
    }
}

impl std::fmt::Display for TerminalId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "terminal-{}", self.0)
    }
}

/// Successful answer to a [`HostRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAnswer {
    Content(String),
    Written,
    /// A terminal was created under this name.
    Created(String),
    Output(TerminalOutput),
    Exit(TerminalExit),
    /// A terminal was killed or released.
    Done,
}

/// Output of a terminal for an agent, and the exit if its command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOutput {
    /// Kept part of the output.
    pub text: String,
    /// `true` if earlier output was dropped.
    pub truncated: bool,
    /// Exit of the command; `None` while it runs.
    pub exit: Option<TerminalExit>,
}

/// Output of a terminal for display, and the exit if its command has ended.
#[derive(Debug, Clone, Copy)]
pub struct TerminalView<'a> {
    /// Kept part of the output.
    pub text: &'a str,
    /// Total bytes of output, including dropped ones.
    pub total: u64,
    /// Exit of the command; `None` while it runs.
    pub exit: Option<&'a TerminalExit>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// Exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// Name of the signal that ended the command, such as `SIGTERM`.
    pub signal: Option<String>,
}

/// Directories and environment of a session for file and terminal requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostScope {
    /// Absolute directories that are served; the working directory is the first.
    pub roots: Vec<String>,
    /// Variables on top of acpipe's own environment.
    pub env: Variables,
}

/// Action for the shell; actions must be performed in order.
#[derive(Debug, PartialEq, Eq)]
pub enum HostEffect {
    /// Read or write a file within the roots, and report the result under the ticket.
    File {
        ticket: Ticket,
        session: String,
        /// Directories within which the file must be.
        roots: Vec<String>,
        access: Access,
    },
    /// Stop reading or writing a file: its request was answered.
    StopFile(Ticket),
    /// Open the directories of a session that is about to be opened. From then on, files are served from the
    /// opened directories even if their paths later lead elsewhere.
    HoldRoots {
        session: String,
        /// Absolute directories to hold open.
        roots: Vec<String>,
    },
    ReleaseRoots(String),
    Start(TerminalId, Box<TerminalSpec>),
    /// End the command and all processes below it: SIGTERM, a grace period, SIGKILL.
    Kill(TerminalId),
}

/// Operation on a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Access {
    Read { path: String, window: LineRange },
    Write { path: String, content: String },
}

/// Command of a terminal with its directory and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalSpec {
    pub command: String,
    pub args: Vec<String>,
    /// Working directory; must be within the roots.
    pub cwd: String,
    pub session: String,
    /// Directories within which `cwd` must be.
    pub roots: Vec<String>,
    /// Environment variables for the command, on top of acpipe's own environment.
    pub env: Variables,
}

/// Event from the shell.
#[derive(Debug)]
pub enum HostEvent {
    File(Ticket, Result<HostAnswer, Error>),
    Started(TerminalId),
    StartFailed(TerminalId, Error),
    Output(TerminalId, Bytes),
    /// The command ended and all of its output was reported; processes that it left behind may still write
    /// output.
    Ended(TerminalId, TerminalExit),
    /// No process of the terminal is left.
    Gone(TerminalId),
}

pub type Answered = (Ticket, Result<HostAnswer, Error>);

/// File and terminal requests in progress.
#[derive(Debug, Default)]
pub struct Host {
    terminals: ServedTerminals,
    effects: Vec<HostEffect>,
    answers: Vec<Answered>,
    report_at: Option<Instant>,
}

impl Host {
    pub fn has_terminal(&self, session: &str, name: &str) -> bool {
        self.terminals.has(session, name)
    }

    /// Handles a request of a session; the answer is available at once or later.
    pub fn ask(&mut self, ticket: Ticket, session: &str, place: &HostScope, request: HostRequest) {
        let answer = match request {
            HostRequest::ReadFile { path, window } => {
                self.file(ticket, session, place, Access::Read { path, window })
            }
            HostRequest::WriteFile { path, content } => {
                self.file(ticket, session, place, Access::Write { path, content })
            }
            HostRequest::CreateTerminal {
                command,
                args,
                env,
                cwd,
                output_limit,
            } => {
                let spec = spec(command, args, env, cwd, place);
                spec.and_then(|mut spec| {
                    session.clone_into(&mut spec.session);
                    if self.terminals.is_empty() {
                        // Output of removed terminals is not reported any more.
                        self.report_at = None;
                    }
                    let owned = TerminalOwner { session, ticket };
                    let id = self.terminals.create(owned, &spec, output_limit)?;
                    self.effects.push(HostEffect::Start(id, Box::new(spec)));
                    Ok(None)
                })
            }
            HostRequest::TerminalOutput { terminal } => self
                .terminals
                .find(session, &terminal)
                .map(|(_, terminal)| Some(HostAnswer::Output(terminal.output()))),
            HostRequest::WaitForExit { terminal } => self
                .terminals
                .find(session, &terminal)
                .and_then(|(_, terminal)| Ok(terminal.wait(ticket)?.map(HostAnswer::Exit))),
            HostRequest::KillTerminal { terminal } => {
                let found = self.terminals.find(session, &terminal);
                found.map(|(id, terminal)| {
                    let kill = terminal.kill().then_some(HostEffect::Kill(id));
                    self.effects.extend(kill);
                    Some(HostAnswer::Done)
                })
            }
            HostRequest::ReleaseTerminal { terminal } => {
                let found = self.terminals.find(session, &terminal).map(|(id, _)| id);
                found.map(|id| {
                    self.effects.extend(self.terminals.release(id));
                    Some(HostAnswer::Done)
                })
            }
        };
        self.answers
            .extend(answer.transpose().map(|answer| (ticket, answer)));
    }

    fn file(
        &mut self,
        ticket: Ticket,
        session: &str,
        place: &HostScope,
        access: Access,
    ) -> Result<Option<HostAnswer>, Error> {
        if let Access::Write { content, path } = &access
            && content.len() > MAX_TEXT
        {
            let len = content.len();
            let message = format!(
                "cannot write {path}: {len} bytes are more than {MAX_TEXT}, the limit of one request; write less, or \
                     use a command"
            );
            return Err(Error::new(ErrorKind::InvalidParams, message));
        }
        let roots = place.roots.clone();
        let session = session.to_owned();
        self.effects.push(HostEffect::File {
            ticket,
            session,
            roots,
            access,
        });
        Ok(None)
    }

    pub fn handle_event(&mut self, event: HostEvent, now: Instant) {
        match event {
            HostEvent::File(ticket, answer) => self.answers.push((ticket, answer)),
            HostEvent::Started(id) => self.answers.extend(self.terminals.started(id)),
            HostEvent::StartFailed(id, error) => {
                self.answers.extend(self.terminals.failed(id, error));
            }
            HostEvent::Output(id, bytes) => {
                if self.terminals.append_output(id, &bytes) {
                    self.report_at.get_or_insert(now + REPORT_INTERVAL);
                }
            }
            HostEvent::Ended(id, exit) => {
                self.answers.extend(self.terminals.ended(id, &exit));
                // The exit is reported together with the output before it.
                self.report_at = Some(now);
            }
            HostEvent::Gone(id) => self.terminals.processes_ended(id),
        }
    }

    /// Ends the terminals of a session that is over or whose agent is gone.
    pub fn release_session(&mut self, session: &str) {
        for id in self.terminals.of(session) {
            self.effects.extend(self.terminals.release(id));
        }
    }

    pub fn take_effects(&mut self) -> Vec<HostEffect> {
        std::mem::take(&mut self.effects)
    }

    pub fn take_answers(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.answers)
    }

    /// Returns `true` if there are no terminals.
    pub fn is_idle(&self) -> bool {
        self.terminals.is_empty()
    }

    /// Returns the sessions that have terminals.
    pub fn sessions(&self) -> BTreeSet<String> {
        self.terminals.sessions().cloned().collect()
    }

    /// Returns the time at which terminal output is to be reported.
    pub fn deadline(&self) -> Option<Instant> {
        // Output of a terminal that was released in the meantime is not reported.
        self.report_at.filter(|_| !self.terminals.is_empty())
    }

    /// Makes terminal output due now, because a view starts to show a terminal.
    pub fn report_now(&mut self, now: Instant) {
        if !self.terminals.is_empty() {
            self.report_at = Some(now);
        }
    }

    /// Returns the terminals with unreported output and their sessions, if a report is due.
    pub fn unreported(&mut self, now: Instant) -> Vec<(String, TerminalId)> {
        if self.report_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.report_at = None;
        self.terminals.unreported()
    }

    /// Like [`Host::unreported`] for one session, regardless of the time.
    pub fn unreported_of(&self, session: &str) -> Vec<(String, TerminalId)> {
        let mut unreported = self.terminals.unreported();
        unreported.retain(|(of, _)| of == session);
        unreported
    }

    /// Returns the output and exit of a terminal, and marks them as reported.
    pub fn take_view(&mut self, id: TerminalId) -> Option<TerminalView<'_>> {
        self.terminals.take_view(id)
    }
}
