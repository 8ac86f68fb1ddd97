//! Files and terminals that agents want: judged, served by acpipe itself or by a client that declared it, answered.

mod calls;
mod deadlines;
mod shown;
mod withdrawn;

use super::permissions::offer;
use super::{Bridge, Effect};
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{Permission, ToolUpdate, Wanted};
use crate::core::host::{
    Forwarded, Host, HostAnswer, HostEvent, HostRequest, Offer, Place, Ticket, answered,
};
use crate::core::limits::Wait;
use crate::core::nested;
use crate::core::permit::{By, Decision};
use crate::core::policy::{self, Subject, Tool};
use crate::core::session::Session;
use crate::proto::json::{Members, to_raw};
use crate::proto::wire::LedgerEntry;
use calls::{options, tool};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;
use tracing::warn;

/// How many requests of a session may wait for their answers.
const MOST_WANTED: usize = 1024;

/// What the bridge knows of it.
#[derive(Debug, Default)]
pub(super) struct Hosting {
    /// What acpipe serves where the client does not.
    served: Offer,
    host: Host,
    /// The requests that have no answer yet.
    open: BTreeMap<Ticket, Open>,
    /// Those that were decided, and what was decided.
    decided: Vec<(Ticket, Decision)>,
    last: u64,
}

/// A request without an answer.
#[derive(Debug)]
struct Open {
    session: String,
    /// Which agent wants it.
    agent: u64,
    /// The key under which the dialect expects the answer.
    key: Box<RawValue>,
    /// The tool call as which it is shown, where it was asked whether it may be.
    tool: Option<String>,
    way: Way,
}

/// How far a request is.
#[derive(Debug)]
enum Way {
    /// It is judged whether it may be.
    Judged(HostRequest),
    /// acpipe does it, with a terminal.
    Own,
    /// acpipe reads or writes a file.
    File,
    /// The client does.
    Client(Asked),
}

/// A request that was forwarded to the client.
#[derive(Debug)]
struct Asked {
    id: AskId,
    method: &'static str,
    /// The terminal that it is about.
    terminal: Option<String>,
    /// When the answer is not waited for any longer.
    until: Option<Instant>,
}

impl Bridge {
    /// Serves this where the client does not.
    #[must_use]
    pub fn serving(mut self, served: Offer) -> Self {
        self.hosting.served = served;
        self
    }

    /// What an agent may ask for: what the client serves, and what acpipe does.
    pub(super) fn offer(&self) -> Offer {
        self.client_offer().or(self.hosting.served)
    }

    fn client_offer(&self) -> Offer {
        Offer {
            read_files: self.client.fs.read_text_file,
            write_files: self.client.fs.write_text_file,
            terminals: self.client.terminal,
        }
    }

    /// An agent wants something.
    pub(super) fn wanted(&mut self, wanted: Wanted<'_>, now: Instant, outlet: &mut impl Outlet) {
        let Wanted {
            session,
            key,
            request,
        } = wanted;
        let (offer, agent) = (self.offer(), self.agent_number());
        let id = self.route(&session).map(|route| route.session);
        let Some(session) = id.and_then(|id| self.sessions.get_mut(&id)) else {
            let message =
                format!("there is no session {session:?} that files or terminals are served in");
            self.give_agent(&key, Err(&Error::new(ErrorKind::InvalidParams, message)));
            return;
        };
        session.hear(now, request.name(), outlet);
        let id = session.id.clone();
        if !offer.covers(&request) {
            let message = "acpipe does not serve this here: nobody offered it to the agent";
            self.give_agent(&key, Err(&Error::new(ErrorKind::MethodNotFound, message)));
            return;
        }
        if let Err(error) = request.check() {
            self.give_agent(&key, Err(&error));
            return;
        }
        if session.owed >= MOST_WANTED {
            let message = "too many files and terminals are waited for; wait for the answers first";
            self.give_agent(&key, Err(&Error::new(ErrorKind::Overloaded, message)));
            return;
        }
        self.hosting.last += 1;
        let ticket = Ticket(self.hosting.last);
        let tool = tool(ticket, &request);
        let open = Open {
            session: id.clone(),
            agent,
            key,
            tool: None,
            way: Way::Judged(request),
        };
        self.hosting.open.insert(ticket, open);
        session.owed += 1;
        match tool {
            Some((what, tool)) => self.judge(ticket, &id, what, tool, now, outlet),
            // Whoever has a terminal may do with it what can be done.
            None => self.do_wanted(ticket, now, outlet),
        }
    }

    /// Whether a request may be: the policy says so at once, or the question takes the way of all of them.
    fn judge(
        &mut self,
        ticket: Ticket,
        id: &str,
        what: &'static str,
        tool: ToolUpdate<'static>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let may_act = session.may_act(&tool.id) && self.is_serving();
        if !may_act {
            let message = "the turn was cancelled: nothing more is done in it";
            let error = Error::new(ErrorKind::Cancelled, message);
            self.answer_wanted(ticket, &Err(error), outlet);
            return;
        }
        let facts = Tool {
            name: tool.name.as_deref(),
            title: tool.title.as_deref(),
            kind: tool.kind.as_deref(),
            input: tool.input.as_deref(),
            content: tool.content.as_deref(),
            locations: tool.locations.as_deref(),
        };
        let subject = Subject::of_tool(&facts, &session.cwd);
        let verdict = self.verdict(id, &subject);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.granted.note_served(&subject);
        let by = match verdict.effect {
            policy::Effect::Allow => Some(verdict.by),
            policy::Effect::Ask if session.granted.cover(&subject) => {
                Some("allowed with its tool call".to_owned())
            }
            policy::Effect::Ask | policy::Effect::Deny => None,
        };
        let Some(by) = by else {
            self.ask_whether(ticket, id, what, tool, now, outlet);
            return;
        };
        let turn_id = session.turn_id().unwrap_or_default().to_owned();
        let entry = LedgerEntry {
            what: what.to_owned(),
            question_id: tool.id.into_owned(),
            title: subject.title,
            kind: Some(subject.kind),
            paths: subject.paths,
            command: subject.command,
            ..LedgerEntry::default()
        };
        let decision = Decision::of(true, false, &options(), By::Policy(by));
        let other = self.take_down(id, &turn_id, entry, &decision, now, outlet);
        match other {
            None => self.do_wanted(ticket, now, outlet),
            Some(decision) => self.refuse_wanted(ticket, &decision, outlet),
        }
    }

    /// What is asked about or refused is shown as a tool call with its question.
    fn ask_whether(
        &mut self,
        ticket: Ticket,
        id: &str,
        what: &'static str,
        mut tool: ToolUpdate<'static>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let session = self.sessions.get(id);
        // An agent that announced a call of this name would have its own words shown beside the question.
        while session.is_some_and(|s| s.knows_call(&tool.id)) {
            tool.id.to_mut().push('+');
        }
        let agent_session = session.and_then(|s| s.agent_session());
        let session = agent_session.unwrap_or_default().to_owned();
        let Some(open) = self.hosting.open.get_mut(&ticket) else {
            return;
        };
        open.tool = Some(tool.id.clone().into_owned());
        let options = options();
        let raw_options = to_raw(&offer(&options));
        let question = Permission {
            session: Cow::Owned(session),
            question: open.key.clone(),
            tool,
            options: options.to_vec(),
            raw_options: Some(&raw_options),
            form: None,
            other: Members::default(),
        };
        self.permission_for(what, Some(ticket), &question, now, outlet);
    }

    /// It was decided whether a request may be.
    pub(super) fn decided(&mut self, ticket: Ticket, decision: &Decision) {
        self.hosting.decided.push((ticket, decision.clone()));
    }

    /// Goes on with what was decided, and forgets what belongs to sessions that no agent has any more.
    pub(super) fn go_on_hosting(&mut self, now: Instant, outlet: &mut impl Outlet) {
        for (ticket, decision) in std::mem::take(&mut self.hosting.decided) {
            if decision.approved() {
                self.do_wanted(ticket, now, outlet);
            } else {
                self.refuse_wanted(ticket, &decision, outlet);
            }
        }
        self.sweep_hosting(now, outlet);
    }

    fn refuse_wanted(&mut self, ticket: Ticket, decision: &Decision, outlet: &mut impl Outlet) {
        let kind = match decision.choice {
            Some(_) => ErrorKind::Resource,
            None => ErrorKind::Cancelled,
        };
        let error = Error::new(kind, decision.reason.as_str());
        self.answer_wanted(ticket, &Err(error), outlet);
    }

    /// Has a request done.
    fn do_wanted(&mut self, ticket: Ticket, now: Instant, outlet: &mut impl Outlet) {
        let by_client = self.client_offer();
        let Some(open) = self.hosting.open.get_mut(&ticket) else {
            return;
        };
        let Way::Judged(request) = std::mem::replace(&mut open.way, Way::Own) else {
            return;
        };
        let id = open.session.clone();
        if !by_client.covers(&request) {
            if let HostRequest::ReadFile { .. } | HostRequest::WriteFile { .. } = &request {
                open.way = Way::File;
            }
            self.serve(ticket, &id, request, now, outlet);
            return;
        }
        let ask = self.asks.next();
        let forwarded = Forwarded::of(request, id.clone());
        open.way = Way::Client(Asked {
            id: ask,
            method: forwarded.method(),
            terminal: forwarded.terminal().map(str::to_owned),
            until: deadlines::limits(&forwarded)
                .then(|| self.settings.limits.until(Wait::Client, now))
                .flatten(),
        });
        if let Some(session) = self.sessions.get_mut(&id) {
            // What the client was told before comes before it.
            session.number_unsent(outlet);
            outlet.ask(ask, ClientRequest::Host(Box::new(forwarded)));
        }
    }

    fn serve(
        &mut self,
        ticket: Ticket,
        id: &str,
        request: HostRequest,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        if matches!(request, HostRequest::ReleaseTerminal { .. }) {
            // The last chance to show what it said.
            let news = self.hosting.host.news_of(id);
            self.show_terminals(news, outlet);
        }
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let agent = self.agent.as_ref();
        let mut env = nested::environment();
        env.0.extend(
            agent
                .map(|agent| agent.spec.env.0.clone())
                .unwrap_or_default(),
        );
        let place = Place {
            roots: roots(session),
            env,
        };
        self.hosting.host.ask(ticket, id, &place, request);
        self.settle_host(now, outlet);
    }

    /// Takes what came of something that was done for an agent.
    pub fn hosted(&mut self, event: HostEvent, now: Instant, outlet: &mut impl Outlet) {
        self.mending(now, outlet, |bridge, outlet| {
            bridge.hosting.host.heard(event, now);
            bridge.settle_host(now, outlet);
        });
    }

    fn settle_host(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let effects = self.hosting.host.take_effects().into_iter();
        self.effects.extend(effects.map(Effect::Host));
        for (ticket, answer) in self.hosting.host.take_answers() {
            if let Some(open) = self.hosting.open.get(&ticket)
                && let Some(session) = self.sessions.get_mut(&open.session)
            {
                // The agent had to wait: that was not its silence.
                session.hear(now, "file or terminal", outlet);
            }
            self.answer_wanted(ticket, &answer, outlet);
        }
    }

    /// Has the directories of a session held, which is about to be opened: what takes their place later is not served.
    pub(super) fn hold_roots(&mut self, id: &str) {
        if let Some(session) = self.sessions.get(id)
            && self.hosting.served != Offer::default()
        {
            self.hosting.host.hold_roots(id, roots(session));
            let effects = self.hosting.host.take_effects().into_iter();
            self.effects.extend(effects.map(Effect::Host));
        }
    }

    /// Lets go of the directories of a session that is closed or not in use.
    pub(super) fn release_roots(&mut self, id: &str) {
        if self.hosting.served != Offer::default() {
            self.hosting.host.release_roots(id);
            let effects = self.hosting.host.take_effects().into_iter();
            self.effects.extend(effects.map(Effect::Host));
        }
    }

    /// The client answered a request; false where it was none of this kind.
    pub(super) fn client_served(
        &mut self,
        id: AskId,
        answer: &ClientAnswer,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        let found = self
            .hosting
            .open
            .iter()
            .find_map(|(ticket, open)| match &open.way {
                Way::Client(asked) if asked.id == id => Some((*ticket, asked.method)),
                _ => None,
            });
        let Some((ticket, method)) = found else {
            return false;
        };
        let read = answered(method, answer, self.unknown_fields);
        if let (Ok(_), Err(error)) = (answer, &read) {
            warn!(method, %error, "the client's answer is not valid: the agent gets an error");
        }
        self.limit_waits_for_exit(ticket, &read, now);
        self.note_client_wait(ticket, now, outlet);
        self.answer_wanted(ticket, &read, outlet);
        true
    }

    /// Gives a request its one answer.
    fn answer_wanted(
        &mut self,
        ticket: Ticket,
        answer: &Result<HostAnswer, Error>,
        outlet: &mut impl Outlet,
    ) {
        let Some(open) = self.close_wanted(ticket) else {
            return;
        };
        if let Some(tool) = &open.tool
            && let Some(session) = self.sessions.get_mut(&open.session)
        {
            session.with_turn(outlet, |turn, sink| turn.served(tool, answer.is_ok(), sink));
        }
        // Another agent may have a question by the same key.
        if open.agent == self.agent_number() {
            self.give_agent(&open.key, answer.as_ref());
        }
    }

    fn close_wanted(&mut self, ticket: Ticket) -> Option<Open> {
        let open = self.hosting.open.remove(&ticket)?;
        if let Some(session) = self.sessions.get_mut(&open.session) {
            session.owed = session.owed.saturating_sub(1);
        }
        Some(open)
    }

    fn give_agent(&mut self, key: &RawValue, answer: Result<&HostAnswer, &Error>) {
        if let Some(agent) = &mut self.agent {
            agent.dialect.give(key, answer, &mut agent.out);
        }
    }
}

/// The directories that are served to a session.
fn roots(session: &Session) -> Vec<String> {
    let more = session.options.additional_directories.iter().cloned();
    std::iter::once(session.cwd.clone()).chain(more).collect()
}
