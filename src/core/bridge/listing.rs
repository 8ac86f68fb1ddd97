//! Lists of sessions: what is stored, what is open, and with it what the agent has.

use super::commands::invalid;
use super::history::limit;
use super::sessions::stored;
use super::storage::Awaited;
use super::{Bridge, Call, Phase};
use crate::core::agent_command::key_of_line;
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::Error;
use crate::core::event::{CallId, ListedSession};
use crate::core::limits::Wait;
use crate::core::store::Card;
use crate::proto::wire::{ListSessionsParams, ListSessionsResult, SessionInfo, SessionStage};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// How many sessions a page has at most, and where nothing is said.
const LIMIT: (u32, u32) = (1000, 100);

/// How many pages of an agent's list are taken.
const PAGES: u32 = 50;

/// A list that waits for the agent's own.
#[derive(Debug)]
pub(super) struct Listing {
    token: Token,
    params: ListSessionsParams,
    /// What is stored and open.
    own: Vec<SessionInfo>,
    /// What the agent told so far.
    told: Vec<ListedSession>,
    pages: u32,
    call: CallId,
    /// When it is given without that.
    pub until: Option<Instant>,
}

impl Bridge {
    pub(super) fn ask_for_sessions(
        &mut self,
        token: Token,
        p: ListSessionsParams,
        now: Instant,
        outlet: &mut impl Outlet,
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
        let ticket = self.ticket();
        if self.store.list(ticket) {
            self.awaited.insert(ticket, Awaited::List(token, p));
        } else {
            self.list_sessions(token, p, Vec::new(), now, outlet);
        }
        Ok(())
    }

    /// All stored sessions are known: those that are open know more, and the agent may have others.
    pub(super) fn list_sessions(
        &mut self,
        token: Token,
        params: ListSessionsParams,
        cards: Vec<Card>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let known = cards
            .into_iter()
            .map(|card| (card.session_id.clone(), stored(card)));
        let mut own: BTreeMap<String, SessionInfo> = known.collect();
        let open = self.sessions.values().filter(|s| !s.log.is_empty());
        own.extend(open.map(|session| (session.id.clone(), session.info())));
        let listing = Listing {
            token,
            params,
            own: own.into_values().collect(),
            told: Vec::new(),
            pages: 0,
            call: CallId(0),
            until: self.settings.limits.until(Wait::List, now),
        };
        let can = match self.agent.as_ref().map(|agent| &agent.phase) {
            Some(Phase::Ready(info)) => info.capabilities.list,
            _ => false,
        };
        if listing.params.agent && can {
            self.ask_agent_to_list(listing, None);
        } else {
            self.end_listing(listing, outlet);
        }
    }

    fn ask_agent_to_list(&mut self, mut listing: Listing, cursor: Option<&str>) {
        listing.call = self.next_call(Call::ListAll);
        if let Some(agent) = &mut self.agent {
            let cwd = listing.params.cwd.as_deref();
            agent
                .dialect
                .list(listing.call, cwd, cursor, &mut agent.out);
        }
        self.listings.push(listing);
    }

    /// The agent told a page of its sessions, or with `None` that it will not.
    pub(super) fn agent_listed(
        &mut self,
        call: CallId,
        page: Option<(Vec<ListedSession>, Option<String>)>,
        now: Instant,
        outlet: &mut impl Outlet,
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
                listing.until = self.settings.limits.until(Wait::List, now);
                self.ask_agent_to_list(listing, Some(&cursor));
            }
            _ => self.end_listing(listing, outlet),
        }
    }

    /// Gives up waiting for the agent where its time is over.
    pub(super) fn tick_listings(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let (due, left) = std::mem::take(&mut self.listings)
            .into_iter()
            .partition(|listing| listing.until.is_some_and(|at| at <= now));
        self.listings = left;
        self.give(due, outlet);
    }

    /// The agent is no more: nobody waits for it any longer.
    pub(super) fn end_listings(&mut self, outlet: &mut impl Outlet) {
        let listings = std::mem::take(&mut self.listings);
        self.give(listings, outlet);
    }

    fn give(&mut self, listings: Vec<Listing>, outlet: &mut impl Outlet) {
        for listing in listings {
            self.calls.remove(&listing.call);
            self.end_listing(listing, outlet);
        }
    }

    fn end_listing(&self, listing: Listing, outlet: &mut impl Outlet) {
        let Listing {
            token,
            params,
            own,
            told,
            ..
        } = listing;
        let line = self.agent_command().map(|command| command.line());
        let infos = merged(own, told, &self.agent_key(), line.as_deref());
        let infos = match &params.cwd {
            Some(cwd) => self.in_directory(infos, cwd),
            None => infos,
        };
        outlet.reply(token, Ok(Reply::Sessions(page(infos, &params))));
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

/// The client's sessions, and those that only the agent has: the one with this key and command line.
fn merged(
    mut own: Vec<SessionInfo>,
    told: Vec<ListedSession>,
    key: &str,
    line: Option<&str>,
) -> Vec<SessionInfo> {
    let of_agent =
        |info: &&SessionInfo| info.agent.as_deref().map(key_of_line).as_deref() == Some(key);
    let ids = own.iter().filter(of_agent);
    let known: BTreeSet<String> = ids.filter_map(|i| i.agent_session_id.clone()).collect();
    let foreign = told.into_iter().filter(|s| !known.contains(&s.id));
    own.extend(foreign.map(|session| SessionInfo {
        agent_session_id: Some(session.id),
        agent: line.map(str::to_owned),
        state: SessionStage::Foreign,
        cwd: session.cwd.unwrap_or_default(),
        title: session.title,
        updated_at: session.updated_at,
        ..SessionInfo::default()
    }));
    own
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
