//! Lists of sessions: those that are stored or open, and those of the agents.

use super::Hub;
use super::agents::Agents;
use super::history::limit;
use crate::core::agent::{Call, DEFAULT_AGENT};
use crate::core::agent_command::key_of_line;
use crate::core::client::{Reply, Token};
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, invalid};
use crate::core::event::{CallId, ListedSession};
use crate::core::ids::AgentRef;
use crate::core::limits::Wait;
use crate::core::session::stored_info;
use crate::core::shared::{StoreCall, StoreWait};
use crate::core::store::Card;
use crate::proto::wire::{ListSessionsParams, ListSessionsResult, SessionInfo, SessionStage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

/// How many sessions a page has at most, and where the call does not say.
const LIMIT: (u32, u32) = (1000, 100);

/// How many pages of an agent's list are taken.
const PAGES: u32 = 50;

/// A list that waits for the agents' own.
#[derive(Debug)]
pub(super) struct Listing {
    token: Token,
    /// The agent that is asked.
    pub agent: AgentRef,
    /// The agents that are asked after it.
    next: VecDeque<AgentRef>,
    params: ListSessionsParams,
    /// The sessions so far: what is stored and open, and of the agents that were asked.
    own: Vec<SessionInfo>,
    /// What the agent listed so far.
    told: Vec<ListedSession>,
    pages: u32,
    call: CallId,
    /// When it is answered without the agent's.
    pub until: Option<Instant>,
}

impl Hub {
    pub(super) fn list_sessions(
        &mut self,
        token: Token,
        p: ListSessionsParams,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) -> Result<(), Error> {
        limit(p.limit, LIMIT)?;
        if p.cursor
            .as_deref()
            .is_some_and(|cursor| position(cursor).is_none())
        {
            return Err(invalid(
                "cursor",
                "give the nextCursor of the page before, unchanged",
            ));
        }
        let ticket = self.shared.ids.ticket();
        if self.store.list(ticket) {
            // Many sessions on a slow disk take long.
            let wait = StoreWait {
                until: None,
                call: StoreCall::List(token, p),
            };
            self.shared.store_waits.insert(ticket, wait);
        } else {
            self.list_with(token, p, Vec::new(), now, clients);
        }
        Ok(())
    }

    /// All stored sessions are known: those that are open know more, and the agent may have others.
    pub(super) fn list_with(
        &mut self,
        token: Token,
        params: ListSessionsParams,
        cards: Vec<Card>,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        let known = cards
            .into_iter()
            .map(|card| (card.session_id.clone(), stored_info(card)));
        let mut own: BTreeMap<String, SessionInfo> = known.collect();
        let open = self.sessions.values().filter(|s| !s.log.is_empty());
        own.extend(open.map(|session| (session.id.clone(), session.info())));
        let is_asked = |agent: &AgentRef| params.agent && self.can_list(*agent);
        let listing = Listing {
            token,
            agent: Agents::DEFAULT,
            next: self.agents.all().filter(is_asked).collect(),
            params,
            own: own.into_values().collect(),
            told: Vec::new(),
            pages: 0,
            call: CallId(0),
            until: None,
        };
        self.ask_next_agent(listing, now, clients);
    }

    fn can_list(&self, agent: AgentRef) -> bool {
        let connection = self.agents.get(agent).connection();
        let info = connection.and_then(|connection| connection.ready());
        info.is_some_and(|info| info.capabilities.list)
    }

    /// Asks the next agent for its list; answers when all were asked.
    fn ask_next_agent(
        &mut self,
        mut listing: Listing,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        while let Some(agent) = listing.next.pop_front() {
            if self.can_list(agent) {
                (listing.agent, listing.pages) = (agent, 0);
                listing.until = self.shared.settings.limits.until(Wait::List, now);
                self.ask_agent_to_list(listing, None);
                return;
            }
        }
        let Listing {
            token, params, own, ..
        } = listing;
        let infos = match &params.cwd {
            Some(cwd) => self.in_directory(own, cwd),
            None => own,
        };
        clients.reply(token, Ok(Reply::Sessions(page(infos, &params))));
    }

    fn ask_agent_to_list(&mut self, mut listing: Listing, cursor: Option<&str>) {
        listing.call = self.shared.ids.call();
        let machine = self.agents.get_mut(listing.agent);
        if let Some(connection) = machine.connection_mut() {
            connection.calls.insert(listing.call, Call::ListAll);
            let (cwd, out) = (listing.params.cwd.as_deref(), &mut connection.out);
            connection.dialect.list(listing.call, cwd, cursor, out);
        }
        self.listings.push(listing);
    }

    /// The agent gave a page of its sessions, or with `None` none.
    pub(super) fn agent_listed(
        &mut self,
        call: CallId,
        page: Option<(Vec<ListedSession>, Option<String>)>,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        let Some(at) = self.listings.iter().position(|l| l.call == call) else {
            return;
        };
        let mut listing = self.listings.swap_remove(at);
        let (sessions, next) = page.unwrap_or_default();
        listing.told.extend(sessions);
        listing.pages += 1;
        match next {
            Some(cursor) if listing.pages < PAGES => {
                listing.until = self.shared.settings.limits.until(Wait::List, now);
                self.ask_agent_to_list(listing, Some(&cursor));
            }
            _ => self.end_agent_list(listing, now, clients),
        }
    }

    /// Answers the lists whose wait for the agent is over.
    pub(super) fn time_out_listings(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        let (due, left) = std::mem::take(&mut self.listings)
            .into_iter()
            .partition(|listing| listing.until.is_some_and(|at| at <= now));
        self.listings = left;
        self.give_up_listings(due, now, clients);
    }

    /// The connection of the agent is over: no list waits for it any longer.
    pub(super) fn end_listings(
        &mut self,
        agent: AgentRef,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        let own = |listing: &mut Listing| listing.agent == agent;
        let listings = self.listings.extract_if(.., own).collect();
        self.give_up_listings(listings, now, clients);
    }

    fn give_up_listings(
        &mut self,
        listings: Vec<Listing>,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        for listing in listings {
            self.agents.get_mut(listing.agent).take_call(listing.call);
            self.end_agent_list(listing, now, clients);
        }
    }

    /// The agent's list is complete, or its wait is over: adds the sessions that only the agent has.
    fn end_agent_list(
        &mut self,
        mut listing: Listing,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) {
        let machine = self.agents.get(listing.agent);
        let told = std::mem::take(&mut listing.told);
        let command = machine.spec().stored();
        let line = command.line();
        let (name, identity) = (machine.name(), machine.identity());
        let is_own = |info: &SessionInfo| {
            info.agent_name.as_deref() == Some(name)
                && (name != DEFAULT_AGENT
                    || info.agent.as_deref().map(key_of_line).as_ref() == Some(&identity))
        };
        add_foreign(&mut listing.own, told, is_own, (name, &line));
        self.ask_next_agent(listing, now, clients);
    }

    /// The sessions of this directory. Few directories have many sessions: each is looked up once.
    fn in_directory(&self, mut infos: Vec<SessionInfo>, cwd: &str) -> Vec<SessionInfo> {
        let mut same = BTreeMap::new();
        infos.retain(|info| {
            let known = same.get(&info.cwd).copied();
            known.unwrap_or_else(|| {
                let is_same = self.is_same_directory(&info.cwd, cwd);
                same.insert(info.cwd.clone(), is_same);
                is_same
            })
        });
        infos
    }
}

/// Adds the sessions that only the agent has, with its name and command line.
fn add_foreign(
    own: &mut Vec<SessionInfo>,
    told: Vec<ListedSession>,
    is_own: impl Fn(&SessionInfo) -> bool,
    (name, line): (&str, &str),
) {
    let ids = own.iter().filter(|info| is_own(info));
    let known: BTreeSet<String> = ids.filter_map(|i| i.agent_session_id.clone()).collect();
    let foreign = told.into_iter().filter(|s| !known.contains(&s.id));
    own.extend(foreign.map(|session| SessionInfo {
        agent_session_id: Some(session.id),
        agent: Some(line.to_owned()),
        agent_name: Some(name.to_owned()),
        state: SessionStage::Foreign,
        cwd: session.cwd.unwrap_or_default(),
        title: session.title,
        updated_at: session.updated_at,
        ..SessionInfo::default()
    }));
}

/// The page that a client asks for.
fn page(mut infos: Vec<SessionInfo>, p: &ListSessionsParams) -> ListSessionsResult {
    infos.sort_by(|a, b| order(b).cmp(&order(a)));
    if let Some(after) = p.cursor.as_deref().and_then(position) {
        infos.retain(|info| order(info) < after);
    }
    let limit = limit(p.limit, LIMIT).unwrap_or(1);
    let next_cursor = (infos.len() > limit).then(|| {
        let (time, id) = order(&infos[limit - 1]);
        format!("{time} {id}")
    });
    infos.truncate(limit);
    ListSessionsResult {
        sessions: infos,
        next_cursor,
    }
}

/// The time and the id that a cursor stands for, which is [`order`] of the last session of a page.
fn position(cursor: &str) -> Option<(&str, &str)> {
    cursor.split_once(' ')
}

/// What sessions are ordered by: the time, then the id.
fn order(info: &SessionInfo) -> (&str, &str) {
    let id = info.session_id.as_ref().or(info.agent_session_id.as_ref());
    (
        info.updated_at.as_deref().unwrap_or_default(),
        id.map_or("", String::as_str),
    )
}
