//! The host: what acpipe does for agents itself, with files and terminals, in words that every dialect shares.
//!
//! Pure: a request becomes a [`HostEffect`] for the shell or an answer, and what the shell tells becomes answers.
//! Nothing here waits: each request has a [`Ticket`], under which its one answer comes.

mod command;
mod forward;
mod offer;
mod output;
mod roots;
mod terminals;
#[cfg(test)]
mod tests;

use super::error::{Error, ErrorKind};
use crate::proto::wire::Variables;
use bytes::Bytes;
pub use command::judged_line;
use command::spec;
pub use forward::{Forwarded, answered};
pub use offer::Offer;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
pub use terminals::{MAX_OUTPUT, MAX_TERMINALS, USUAL_OUTPUT};
use terminals::{Owned, Terminals};

/// The largest text that is read or written at once, in bytes.
pub const MAX_TEXT: usize = 10 * 1024 * 1024;

/// How often the news of a running terminal are shown at most.
const SHOWN_EVERY: Duration = Duration::from_millis(100);

/// Names a request of an agent until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Names a terminal; a later one gets another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TerminalId(pub u64);

impl TerminalId {
    /// The terminal that an agent means by a name.
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

/// What an agent wants of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRequest {
    ReadFile {
        path: String,
        window: Window,
    },
    WriteFile {
        path: String,
        content: String,
    },
    CreateTerminal {
        /// A program; without arguments it may be a whole line for the shell, which is what agents send.
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        /// Absolute, within the roots; the session's own where there is none.
        cwd: Option<String>,
        /// How many bytes of output are kept: the last.
        output_limit: Option<u64>,
    },
    TerminalOutput {
        terminal: String,
    },
    WaitForExit {
        terminal: String,
    },
    KillTerminal {
        terminal: String,
    },
    ReleaseTerminal {
        terminal: String,
    },
}

impl HostRequest {
    /// The terminal that it is about, where that exists already.
    #[must_use]
    pub fn terminal(&self) -> Option<&str> {
        match self {
            Self::TerminalOutput { terminal }
            | Self::WaitForExit { terminal }
            | Self::KillTerminal { terminal }
            | Self::ReleaseTerminal { terminal } => Some(terminal),
            Self::ReadFile { .. } | Self::WriteFile { .. } | Self::CreateTerminal { .. } => None,
        }
    }

    #[must_use]
    pub fn creates_terminal(&self) -> bool {
        matches!(self, Self::CreateTerminal { .. })
    }

    /// Checks that it can be done at all, and means one thing: before it is judged, and whoever serves it.
    ///
    /// # Errors
    /// A terminal's command is empty, a member has a NUL, or a variable has a name that shells do not take.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::CreateTerminal {
                command,
                args,
                env,
                cwd,
                ..
            } => command::check(command, args, env, cwd.as_deref()),
            _ => Ok(()),
        }
    }

    /// How many bytes of the agent's it holds.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::ReadFile { path, .. } => path.len(),
            Self::WriteFile { path, content } => path.len() + content.len(),
            Self::CreateTerminal {
                command,
                args,
                env,
                cwd,
                ..
            } => {
                let args = args.iter().map(|arg| size_of::<String>() + arg.len());
                let pair = |(name, value): &(String, String)| name.len() + value.len();
                let env = env.iter().map(|e| 2 * size_of::<String>() + pair(e));
                let cwd = cwd.as_ref().map_or(0, String::len);
                command.len() + cwd + args.sum::<usize>() + env.sum::<usize>()
            }
            Self::TerminalOutput { terminal }
            | Self::WaitForExit { terminal }
            | Self::KillTerminal { terminal }
            | Self::ReleaseTerminal { terminal } => terminal.len(),
        }
    }

    /// What it is, for people.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadFile { .. } => "file to be read",
            Self::WriteFile { .. } => "file to be written",
            Self::CreateTerminal { .. } => "command to be run",
            Self::TerminalOutput { .. } => "terminal to be read",
            Self::WaitForExit { .. } => "terminal to be waited for",
            Self::KillTerminal { .. } => "terminal to be killed",
            Self::ReleaseTerminal { .. } => "terminal to be released",
        }
    }
}

/// Which lines of a file are meant; by default all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// The first, counted from 1; 0 means the same.
    pub line: Option<u64>,
    /// How many.
    pub limit: Option<u64>,
}

/// What an agent gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAnswer {
    /// What stands in a file.
    Content(String),
    Written,
    /// A terminal runs, by this name.
    Created(String),
    Output(TerminalOutput),
    Exit(TerminalExit),
    /// A terminal was killed or released.
    Done,
}

/// What a terminal said, and how it ended if it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOutput {
    pub text: String,
    /// Whether what came before it was dropped.
    pub truncated: bool,
    pub exit: Option<TerminalExit>,
}

/// What a terminal shows, and how it ended if it has.
#[derive(Debug, Clone, Copy)]
pub struct TerminalView<'a> {
    /// What is kept of its output.
    pub text: &'a str,
    /// How many bytes of output there were in all.
    pub total: u64,
    pub exit: Option<&'a TerminalExit>,
}

/// How a terminal's command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalExit {
    pub code: Option<i32>,
    /// The name of the signal that ended it, such as `SIGTERM`.
    pub signal: Option<String>,
}

/// Where a session's files are, and with what its commands run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The directories that are served, absolute: the working directory first.
    pub roots: Vec<String>,
    /// On top of acpipe's own environment.
    pub env: Variables,
}

/// What is to be done in the world, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum HostEffect {
    /// Read or write a file within the roots, and tell it under the ticket.
    File {
        ticket: Ticket,
        session: String,
        roots: Vec<String>,
        access: Access,
    },
    /// Stop reading or writing a file: its request was answered.
    StopFile(Ticket),
    /// Open the directories of a session that is about to be opened, and serve files in those from then on, whatever
    /// their paths come to lead to.
    HoldRoots { session: String, roots: Vec<String> },
    /// Close the directories of a session.
    ReleaseRoots(String),
    /// Start a terminal's command.
    Start(TerminalId, Box<TerminalSpec>),
    /// End it and everything below it: SIGTERM, a grace, SIGKILL.
    Kill(TerminalId),
}

/// What is done with a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Access {
    Read { path: String, window: Window },
    Write { path: String, content: String },
}

/// What a terminal runs, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalSpec {
    pub command: String,
    pub args: Vec<String>,
    /// Must lie within the roots.
    pub cwd: String,
    /// Whose directories the roots are.
    pub session: String,
    pub roots: Vec<String>,
    pub env: Variables,
}

/// What the world tells.
#[derive(Debug)]
pub enum HostEvent {
    /// A file was read or written, or not.
    File(Ticket, Result<HostAnswer, Error>),
    Started(TerminalId),
    /// A terminal's command could not be started.
    StartFailed(TerminalId, Error),
    /// What it says.
    Output(TerminalId, Bytes),
    /// The command ended, and all that it said was told; what it left behind may still say something.
    Ended(TerminalId, TerminalExit),
    /// Nothing of the terminal is left.
    Gone(TerminalId),
}

/// An answer and whose it is.
pub type Answered = (Ticket, Result<HostAnswer, Error>);

/// What acpipe does for agents now.
#[derive(Debug, Default)]
pub struct Host {
    terminals: Terminals,
    effects: Vec<HostEffect>,
    answers: Vec<Answered>,
    /// When what terminals said is shown next.
    show_at: Option<Instant>,
}

impl Host {
    /// Whether a session has a terminal of this name.
    #[must_use]
    pub fn has_terminal(&self, session: &str, name: &str) -> bool {
        self.terminals.has(session, name)
    }

    /// Takes a request of a session; its answer may be there at once, or come later.
    pub fn ask(&mut self, ticket: Ticket, session: &str, place: &Place, request: HostRequest) {
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
                        // Output of terminals that are gone is shown no more.
                        self.show_at = None;
                    }
                    let owned = Owned { session, ticket };
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
        place: &Place,
        access: Access,
    ) -> Result<Option<HostAnswer>, Error> {
        if let Access::Write { content, path } = &access
            && content.len() > MAX_TEXT
        {
            let len = content.len();
            let message = format!(
                "{path}: {len} bytes are more than {MAX_TEXT}, the most that is written at once; \
                 write less, or let a command write it"
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

    /// Takes what the world tells.
    pub fn heard(&mut self, event: HostEvent, now: Instant) {
        match event {
            HostEvent::File(ticket, answer) => self.answers.push((ticket, answer)),
            HostEvent::Started(id) => self.answers.extend(self.terminals.started(id)),
            HostEvent::StartFailed(id, error) => {
                self.answers.extend(self.terminals.failed(id, error));
            }
            HostEvent::Output(id, bytes) => {
                if self.terminals.said(id, &bytes) {
                    self.show_at.get_or_insert(now + SHOWN_EVERY);
                }
            }
            HostEvent::Ended(id, exit) => {
                self.answers.extend(self.terminals.ended(id, &exit));
                // The end is shown with what was said before it.
                self.show_at = Some(now);
            }
            HostEvent::Gone(id) => self.terminals.gone(id),
        }
    }

    /// A session is over, or its agent is no more: ends its terminals.
    pub fn release_session(&mut self, session: &str) {
        for id in self.terminals.of(session) {
            self.effects.extend(self.terminals.release(id));
        }
    }

    /// What is to be done, in order, taken out.
    pub fn take_effects(&mut self) -> Vec<HostEffect> {
        std::mem::take(&mut self.effects)
    }

    /// The answers that are there, taken out.
    pub fn take_answers(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.answers)
    }

    /// Whether there is no terminal.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.terminals.is_empty()
    }

    /// The sessions that have terminals.
    #[must_use]
    pub fn sessions(&self) -> BTreeSet<String> {
        self.terminals.sessions().cloned().collect()
    }

    /// When there is something to show.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        // What was released meanwhile is not shown any more.
        self.show_at.filter(|_| !self.terminals.is_empty())
    }

    /// Somebody begins to show a terminal: what it said is due.
    pub fn show_soon(&mut self, now: Instant) {
        if !self.terminals.is_empty() {
            self.show_at = Some(now);
        }
    }

    /// The terminals that have something new to show, with their sessions, if it is time for that.
    pub fn news(&mut self, now: Instant) -> Vec<(String, TerminalId)> {
        if self.show_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.show_at = None;
        self.terminals.news()
    }

    /// The same of one session, whatever the time.
    #[must_use]
    pub fn news_of(&self, session: &str) -> Vec<(String, TerminalId)> {
        let mut news = self.terminals.news();
        news.retain(|(of, _)| of == session);
        news
    }

    /// What a terminal shows: it has nothing new then.
    pub fn show(&mut self, id: TerminalId) -> Option<TerminalView<'_>> {
        self.terminals.show(id)
    }
}
