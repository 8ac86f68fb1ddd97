//! Dialect of the Claude Code CLI: stream-json in both directions, one process for each session.
//!
//! The agent as a whole has no process: `claude --version` is its handshake. Each open session has a process
//! of its own; its history is read from the CLI's files.

mod about;
mod ask_user;
mod child_role;
mod context;
mod file_reads;
pub mod frames;
mod history;
mod launch;
mod mcp_servers;
mod permission_requests;
mod plan;
mod pre_tool_hook;
mod processes;
pub mod projects;
mod prompt;
pub mod result;
mod session;
mod session_file;
mod state;
pub mod tools;
mod uuids;

use about::about;
pub use about::check;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentText, Child, Dialect, DialectFacts,
    DialectTraits, Noted, Opening, Outgoing, ProcessSpec, Rewrite, SessionSetup, TextMeaning,
    Transport, error_of_text,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId, Exit};
use acpipe_model::line_repair;
use acpipe_model::line_repair::{LostLine, UnusableLine};
use acpipe_model::request_key::RequestKey;
use acpipe_model::request_numbers::RequestNumbers;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::{LineFaults, Variables};
use child_role::ChildRole;
use file_reads::ReadTarget;
pub use launch::MODE_ARGUMENTS;
use projects::SessionExcerpt;
use serde_json::value::RawValue;
use session::CliSession;
pub use session_file::SessionFile;
use std::collections::HashMap;
use tracing::debug;
use uuids::Uuids;

/// Command for which the CLI is searched in all its usual places.
pub const CLAUDE: &str = "claude";

pub const TRAITS: DialectTraits = DialectTraits {
    default_command: Some(CLAUDE),
    identity: Some(CLAUDE),
    process_per_session: true,
    starts_in_mode: true,
    enforces_tool_lists: true,
    completes_input: true,
    runs_tools: true,
    takes_system_prompt: true,
    takes_output_schema: true,
    remembers: true,
    forks: true,
    logout_hint: "run `claude auth logout` in a terminal",
    may_lack_argument: false,
};

/// Dialect of the CLI, with the processes of its sessions and the file transports that read its files.
#[derive(Debug)]
pub struct Claude {
    launch: ProcessSpec,
    /// Directory in which the CLI stores its sessions; `None` if it cannot be determined.
    root: Option<String>,
    env: Variables,
    uuids: Uuids,
    /// `true` if the CLI is to report each tool call before it runs the tool.
    watch: bool,
    children: HashMap<Child, ChildRole>,
    /// Processes of sessions, by the CLI's session ids.
    sessions: HashMap<String, Child>,
    last_child: u64,
    numbers: RequestNumbers,
    faults: LineFaults,
}

impl Claude {
    /// Creates a dialect that starts the CLI with `launch` and `env`. `seed` makes its ids unique; with
    /// `watch` the CLI reports each tool call before it runs the tool.
    #[must_use]
    pub fn new(launch: ProcessSpec, env: Variables, seed: &str, watch: bool) -> Self {
        Self {
            launch,
            root: projects::root(|name| env.0.get(name)?.clone()),
            env,
            uuids: Uuids::new(seed),
            watch,
            children: HashMap::new(),
            sessions: HashMap::new(),
            last_child: 0,
            numbers: RequestNumbers::default(),
            faults: LineFaults::default(),
        }
    }

    #[must_use]
    pub fn numbered(self, numbers: RequestNumbers) -> Self {
        Self { numbers, ..self }
    }

    fn add(&mut self, role: ChildRole) -> Child {
        self.last_child += 1;
        let child = Child(self.last_child);
        self.children.insert(child, role);
        child
    }

    fn known(&mut self, id: &str) -> Result<(Child, &mut CliSession), Error> {
        self.session(id).ok_or_else(|| Self::no_session(id))
    }

    fn session(&mut self, id: &str) -> Option<(Child, &mut CliSession)> {
        let child = *self.sessions.get(id)?;
        match self.children.get_mut(&child)? {
            ChildRole::Session(session) => Some((child, session)),
            _ => None,
        }
    }
}

impl Claude {
    fn open(
        &mut self,
        call: CallId,
        way: Opening<'_>,
        place: &SessionSetup<'_>,
        out: &mut Outgoing,
    ) {
        let id = match way {
            Opening::Resume(id) | Opening::Load(id) if !place.fork => id.to_owned(),
            _ => self.uuids.next(),
        };
        // The CLI may have been used without acpipe since: its file has those turns, too.
        let has_history = !matches!(way, Opening::New);
        if let Some(old) = self.sessions.get(&id) {
            self.stop(*old, out);
        }
        let session = CliSession::opening(id.clone(), call, way, place);
        let child = self.add(ChildRole::Session(Box::new(session)));
        self.sessions.insert(id.clone(), child);
        let launch = ProcessSpec {
            args: launch::args(way, &id, place, &self.launch.args),
            cwd: place.cwd.to_owned(),
            ..self.launch.clone()
        };
        out.open(child, Transport::Process(launch));
        let (watch, before_first) = (self.watch, self.numbers.before_first(child));
        if let Some((_, session)) = self.session(&id) {
            session.initialize(watch, before_first, out.lines(child));
        }
        if has_history {
            self.find(place.cwd, ReadTarget::Load(child), out);
        }
    }

    fn lose(
        &mut self,
        child: Child,
        line: &LostLine<'_>,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Outgoing,
    ) {
        match self.children.get_mut(&child) {
            Some(ChildRole::Chain { chain, .. }) => return chain.count_lost(line),
            // The first pass has counted it.
            Some(ChildRole::History { .. }) => return,
            _ => {}
        }
        line.report(&mut self.faults);
        if let Some(ChildRole::Session(session)) = self.children.get_mut(&child) {
            session.read_lost(line, events, out.lines(child));
            if session.refused {
                self.stop(child, out);
            }
        }
    }
}

impl Dialect for Claude {
    fn facts(&self) -> DialectFacts {
        DialectFacts {
            name: "claude",
            repeats_on_resume: true,
            reports_before_run: self.watch,
            takes_transcript: false,
            delivers_feedback: true,
        }
    }

    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error> {
        match call {
            AgentCall::Start => {
                let child = self.add(ChildRole::Version { reported: false });
                let launch = ProcessSpec {
                    args: launch::version_args(&self.launch.args),
                    ..self.launch.clone()
                };
                out.open(child, Transport::Process(launch));
            }
            AgentCall::Open { call, way, place } => self.open(call, way, place, out),
            AgentCall::Forget(call) => {
                if let Some(id) = self.opened_by(call).map(|(id, _)| id.clone()) {
                    self.end(&id, out);
                }
            }
            AgentCall::List { call, cwd, .. } => {
                let cwd = cwd.unwrap_or(&self.launch.cwd).to_owned();
                self.find(&cwd, ReadTarget::List(call), out);
            }
            AgentCall::Close { session, .. } => {
                self.end(session, out);
                return Ok(false);
            }
            AgentCall::Abandon(session) => self.end(session, out),
            AgentCall::Prompt {
                call,
                session,
                parts,
                degrade,
            } => {
                let content = prompt::blocks(parts, degrade)?;
                let uuid = self.uuids.next();
                let (child, session) = self.known(session)?;
                session.prompt(call, uuid, content, out.lines(child));
            }
            AgentCall::Steer {
                session,
                parts,
                degrade,
            } => {
                let content = prompt::blocks(parts, degrade)?;
                let uuid = self.uuids.next();
                let (child, session) = self.known(session)?;
                session.steer(uuid, content, out.lines(child));
            }
            AgentCall::WithdrawPrompt { call, session } => {
                if let Some((_, session)) = self.session(session) {
                    session.withdraw_prompt(call);
                }
            }
            AgentCall::Set {
                call,
                session,
                setting,
            } => {
                if let Some((child, session)) = self.session(session) {
                    session.set(call, setting, out.lines(child));
                }
            }
            AgentCall::Cancel(session) => {
                if let Some((child, session)) = self.session(session) {
                    session.cancel(out.lines(child));
                }
            }
            AgentCall::Authenticate { .. }
            | AgentCall::Logout(_)
            | AgentCall::Transcript { .. }
            | AgentCall::Forward { .. }
            | AgentCall::WithdrawForwarded(_) => return Ok(false),
        }
        Ok(true)
    }

    fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>, out: &mut Outgoing) {
        let Some(requests) = self.requests_with(key) else {
            return;
        };
        let lines = out.lines(key.child);
        match answer {
            AgentAnswer::Permission(decision) => requests.answer(key, decision, lines),
            AgentAnswer::Hook(effect) => requests.answer_hook(key, effect, lines),
            AgentAnswer::Elicitation(_) | AgentAnswer::Host(_) | AgentAnswer::Forwarded(_) => {}
        }
    }

    fn child_of(&self, session: Option<&str>, call: Option<CallId>) -> Option<Child> {
        let named = session.and_then(|id| self.sessions.get(id));
        let opened = || Some(self.opened_by(call?)?.1);
        named.copied().or_else(opened)
    }

    fn is_busy(&self, session: &str) -> bool {
        let child = self.sessions.get(session);
        let role = child.and_then(|child| self.children.get(child));
        matches!(role, Some(ChildRole::Session(session)) if session.is_busy())
    }

    fn request(&self, key: &RequestKey) -> Option<AgentRequest<'_>> {
        let session = match self.children.get(&key.child) {
            Some(ChildRole::Session(session)) => Some(session),
            _ => None,
        };
        let rewrite = session.map(|session| {
            let key = key.clone();
            let rewrite = move |input: &RawValue| session.requests.rewritten(&key, input);
            Box::new(rewrite) as Box<Rewrite<'_>>
        });
        Some(AgentRequest { rewrite })
    }

    fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let line = match line {
            AgentLine::Whole(line) => line,
            AgentLine::Lost(line) => {
                self.lose(child, line, events, out);
                return Ok(());
            }
        };
        let text = std::str::from_utf8(line).map_err(|_| UnusableLine)?;
        match self.children.get_mut(&child) {
            Some(ChildRole::Session(session)) => {
                let before = events.len();
                session.read(child, text, &mut self.faults, events, out)?;
                let renamed = events[before..].iter().find_map(|event| match event {
                    AgentEvent::SessionRenamed { session, to } => {
                        Some((session.clone(), to.clone()))
                    }
                    _ => None,
                });
                if session.refused {
                    self.stop(child, out);
                } else if let Some((from, to)) = renamed
                    && !self.rename(child, &from, to)
                {
                    // Its events could not be distinguished from those of the session that has the id.
                    events.truncate(before);
                    self.end_duplicate(child, from, events, out);
                }
            }
            Some(ChildRole::Version { reported: true }) => {}
            Some(ChildRole::Version { reported }) => match text.split_whitespace().next() {
                Some(word) if !word.starts_with(|c: char| c.is_ascii_digit()) => {
                    self.faults.malformed += 1;
                    debug!(line = acpipe_model::error::clip(text), "not a version");
                }
                Some(version) => {
                    *reported = true;
                    let about = about(version, self.root.is_some(), &self.launch.command);
                    events.push(AgentEvent::Ready(Box::new(about)));
                }
                None => self.faults.blank += 1,
            },
            Some(ChildRole::Chain { chain, .. }) => chain.line(text)?,
            Some(ChildRole::History { of, history }) => {
                let of = *of;
                let mut history = std::mem::take(history);
                let read = match self.children.get(&of) {
                    Some(ChildRole::Session(session)) => {
                        history.line(text, &session.source, events)
                    }
                    _ => Ok(()),
                };
                self.children
                    .insert(child, ChildRole::History { of, history });
                read?;
            }
            Some(ChildRole::List { place, found, .. }) => {
                let listed: Result<SessionExcerpt, _> = serde_json::from_str(text);
                if let Some(mut listed) = listed.ok().and_then(|listed| listed.session()) {
                    let here = |cwd: &&mut String| **cwd == place.real;
                    if let Some(cwd) = listed.cwd.as_mut().filter(here) {
                        cwd.clone_from(&place.given);
                    }
                    found.push(listed);
                }
            }
            Some(ChildRole::Path { path, .. }) => {
                if let Ok(real) = serde_json::from_str(text) {
                    path.real = real;
                }
            }
            None => debug!(
                line = acpipe_model::error::clip(text),
                "line of a process that is stopping"
            ),
        }
        Ok(())
    }

    fn read_run<'a>(&self, child: Child, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        match self.children.get(&child)? {
            ChildRole::Session(session) => session.read_run(lines),
            _ => None,
        }
    }

    fn note(&mut self, child: Child, noted: Noted<'_>) {
        match (noted, self.children.get_mut(&child)) {
            (Noted::Run(run), Some(ChildRole::Session(session))) => session.note_run(run),
            (Noted::Repaired(faults), Some(ChildRole::Chain { chain, .. })) => {
                chain.count_repaired(faults);
            }
            // The first pass has counted the line.
            (Noted::Run(_), _) | (Noted::Repaired(_), Some(ChildRole::History { .. })) => {}
            (Noted::Repaired(faults), _) => line_repair::count_repaired(faults, &mut self.faults),
        }
    }

    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) -> bool {
        let failed = |how: Result<&Exit, &Error>| how.err().cloned().map_or(Ok(()), Err);
        match self.children.remove(&child) {
            // Without a version the CLI is not installed here.
            Some(ChildRole::Version { reported: false })
                if how.is_ok_and(|exit| exit.code == Some(0)) =>
            {
                let message = "the agent's output for --version is not a version; check that it is the Claude Code \
                                   CLI (CLAUDE_CLI_PATH, PATH)";
                let error = Error::new(ErrorKind::AgentStart, message);
                events.push(AgentEvent::NotReady(error));
                true
            }
            Some(ChildRole::Version { reported }) => reported,
            Some(ChildRole::Session(session)) => {
                self.sessions.remove(&session.id);
                session.ended(how, events);
                true
            }
            Some(ChildRole::Chain { of, path, chain }) => {
                if how.is_ok() {
                    let history = Box::new(chain.finish());
                    let child = self.add(ChildRole::History { of, history });
                    out.open(child, Transport::File(path));
                } else {
                    self.history_read(of, failed(how), events, out);
                }
                true
            }
            Some(ChildRole::History { of, history }) => {
                let faults = history.faults();
                self.faults.malformed += faults.malformed;
                self.faults.blank += faults.blank;
                self.faults.invalid_utf8 += faults.invalid_utf8;
                self.faults.too_long += faults.too_long;
                self.history_read(of, failed(how), events, out);
                true
            }
            Some(ChildRole::Path { path, then }) => {
                self.found(path, then, events, out);
                true
            }
            Some(ChildRole::List { call, found, .. }) => {
                events.push(match failed(how) {
                    Err(error) => AgentEvent::Failed { call, error },
                    Ok(()) => AgentEvent::Listed {
                        call,
                        sessions: found,
                        next: None,
                    },
                });
                true
            }
            None => true,
        }
    }

    fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        match text {
            AgentText::Quoted(message) if result::is_response(message) => TextMeaning::Response,
            AgentText::Quoted(_) => TextMeaning::Unknown,
            AgentText::Error(said) => TextMeaning::Error(error_of_text(said)),
        }
    }

    fn faults(&self) -> LineFaults {
        self.faults
    }
}
