//! Session lists: stored and open sessions, and the sessions that agents list. Owns the calls that wait for the lists of
//! agents, with the sessions so far.

use crate::agent::{Call, DEFAULT_AGENT};
use crate::agent_command::key_of_line;
use crate::client::{Reply, Token};
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::hub::page::limit;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::stored_info;
use crate::shared::{PendingStoreReply, StoreCall};
use crate::store::{Card, CardQuery, Store, is_same_directory};
use crate::subscribers::Subscribers;
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, invalid};
use acpipe_model::event::{CallId, ListedSession};
use acpipe_model::limits::Timeout;
use acpipe_protocol::wire::{ListSessionsParams, ListSessionsResult, SessionInfo, SessionStage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Maximum and default number of sessions in a page.
const LIMIT: (u32, u32) = (1000, 100);

/// Maximum number of pages that are read of an agent's list.
const PAGES: u32 = 50;

/// A `session/list` call that waits for the lists of agents.
#[derive(Debug)]
struct Listing {
    token: Token,
    /// Agent whose list is being read.
    agent: AgentRef,
    /// Agents whose lists are read after it.
    next: VecDeque<AgentRef>,
    params: ListSessionsParams,
    /// Sessions so far: stored sessions, open sessions, and those of the agents that have answered.
    own: Vec<SessionInfo>,
    /// Sessions in the current agent's list so far.
    listed: Vec<ListedSession>,
    pages: u32,
    call: CallId,
    /// Deadline after which the current agent's list is left incomplete.
    until: Option<Instant>,
}

/// `session/list` calls that wait for the lists of agents.
#[derive(Debug, Default)]
pub(in crate::hub) struct Listings(Vec<Listing>);

impl Listings {
    pub(in crate::hub) fn list(
        &mut self,
        router: &mut Router,
        token: Token,
        p: ListSessionsParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        limit(p.limit, LIMIT)?;
        if p.cursor
            .as_deref()
            .is_some_and(|cursor| position(cursor).is_none())
        {
            return Err(invalid(
                "cursor",
                "must be the unchanged nextCursor of the previous page",
            ));
        }
        self.request_cards(router, token, p, cx);
        Ok(())
    }

    fn request_cards(
        &mut self,
        router: &mut Router,
        token: Token,
        p: ListSessionsParams,
        cx: &mut HubCx<'_>,
    ) {
        let ticket = router.shared_mut().ids.ticket();
        let open = router.sessions().len();
        if router.store_mut().list(ticket, cards_for(&p, open)) {
            // On a slow disk, a list of many sessions takes long.
            let wait = PendingStoreReply {
                until: None,
                call: StoreCall::List(token, p, open),
            };
            router
                .shared_mut()
                .pending_store_replies
                .insert(ticket, wait);
        } else {
            self.list_with(router, token, p, Vec::new(), cx);
        }
    }

    /// Continues a call with the stored sessions, or requests them again if more sessions were opened meanwhile
    /// than the query allowed for.
    pub(in crate::hub) fn cards_listed(
        &mut self,
        router: &mut Router,
        (token, params, open): (Token, ListSessionsParams, usize),
        cards: Vec<Card>,
        cx: &mut HubCx<'_>,
    ) {
        if router.sessions().len() > open {
            self.request_cards(router, token, params, cx);
        } else {
            self.list_with(router, token, params, cards, cx);
        }
    }

    /// Continues a call with the stored sessions. The entries of open sessions replace their stored ones;
    /// then agents may be asked for theirs.
    fn list_with(
        &mut self,
        router: &mut Router,
        token: Token,
        params: ListSessionsParams,
        cards: Vec<Card>,
        cx: &mut HubCx<'_>,
    ) {
        let known = cards.into_iter().map(|card| {
            let attached = router.unloaded().subscribers(&card.session_id);
            let clients = attached.map(Subscribers::count).filter(|count| *count > 0);
            let info = SessionInfo {
                clients,
                ..stored_info(card)
            };
            (info.session_id.clone().unwrap_or_default(), info)
        });
        let mut own: BTreeMap<String, SessionInfo> = known.collect();
        let open = router
            .sessions()
            .values()
            .filter(|s| !s.output.log().is_empty());
        own.extend(open.map(|session| (session.id.clone(), session.info())));
        let is_asked = |agent: &AgentRef| params.agent && can_list(router.agents(), *agent);
        let listing = Listing {
            token,
            agent: Agents::DEFAULT,
            next: router.agents().all().filter(is_asked).collect(),
            params,
            own: own.into_values().collect(),
            listed: Vec::new(),
            pages: 0,
            call: CallId(0),
            until: None,
        };
        self.ask_next_agent(router, listing, cx);
    }

    /// Requests the list of the next agent, or answers the call if there is no agent left.
    fn ask_next_agent(&mut self, router: &mut Router, mut listing: Listing, cx: &mut HubCx<'_>) {
        while let Some(agent) = listing.next.pop_front() {
            if can_list(router.agents(), agent) {
                (listing.agent, listing.pages) = (agent, 0);
                listing.until = router.shared().settings.limits.until(Timeout::List, cx.now);
                self.ask_agent_to_list(router, listing, None);
                return;
            }
        }
        let Listing {
            token, params, own, ..
        } = listing;
        let infos = match &params.cwd {
            Some(cwd) => in_directory(router.store(), own, cwd),
            None => own,
        };
        cx.clients
            .reply(token, Ok(Reply::Sessions(page(infos, &params))));
    }

    fn ask_agent_to_list(
        &mut self,
        router: &mut Router,
        mut listing: Listing,
        cursor: Option<&str>,
    ) {
        listing.call = router.shared_mut().ids.call();
        let machine = router.agents_mut().get_mut(listing.agent);
        if let Some(connection) = machine.connection_mut() {
            connection.calls.insert(listing.call, Call::ListAll);
            let (call, cwd) = (listing.call, listing.params.cwd.as_deref());
            connection.tell(AgentCall::List { call, cwd, cursor });
        }
        self.0.push(listing);
    }

    /// Handles a page of an agent's list; `None` if the agent refused the call.
    pub(super) fn agent_listed(
        &mut self,
        router: &mut Router,
        call: CallId,
        page: Option<(Vec<ListedSession>, Option<String>)>,
        cx: &mut HubCx<'_>,
    ) {
        let Some(at) = self.0.iter().position(|l| l.call == call) else {
            return;
        };
        let mut listing = self.0.swap_remove(at);
        let (sessions, next) = page.unwrap_or_default();
        listing.listed.extend(sessions);
        listing.pages += 1;
        match next {
            Some(cursor) if listing.pages < PAGES => {
                listing.until = router.shared().settings.limits.until(Timeout::List, cx.now);
                self.ask_agent_to_list(router, listing, Some(&cursor));
            }
            _ => self.end_agent_list(router, listing, cx),
        }
    }

    pub(in crate::hub) fn time_out(&mut self, router: &mut Router, cx: &mut HubCx<'_>) {
        let (due, left) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|listing| listing.until.is_some_and(|at| at <= cx.now));
        self.0 = left;
        self.give_up(router, due, cx);
    }

    /// Ends the wait for the list of an agent whose connection has ended.
    pub(super) fn end_of(&mut self, router: &mut Router, agent: AgentRef, cx: &mut HubCx<'_>) {
        let own = |listing: &mut Listing| listing.agent == agent;
        let listings = self.0.extract_if(.., own).collect();
        self.give_up(router, listings, cx);
    }

    fn give_up(&mut self, router: &mut Router, listings: Vec<Listing>, cx: &mut HubCx<'_>) {
        for listing in listings {
            router.agents_mut().take_call(listing.agent, listing.call);
            self.end_agent_list(router, listing, cx);
        }
    }

    /// Adds the sessions that only the agent has, after its list is complete or its time limit is reached.
    fn end_agent_list(&mut self, router: &mut Router, mut listing: Listing, cx: &mut HubCx<'_>) {
        let machine = router.agents().get(listing.agent);
        let listed = std::mem::take(&mut listing.listed);
        let command = machine.spec().stored();
        let line = command.shown_line();
        let name = machine.name();
        // The key of a shown line may hide a part of the identity.
        let keys = [machine.identity(), key_of_line(&line)];
        let has_key = |info: &SessionInfo| {
            let key = info.agent.as_deref().map(key_of_line);
            key.is_some_and(|key| keys.contains(&key))
        };
        let is_own = |info: &SessionInfo| {
            info.agent_name.as_deref() == Some(name) && (name != DEFAULT_AGENT || has_key(info))
        };
        add_foreign(&mut listing.own, listed, is_own, (name, &line));
        self.ask_next_agent(router, listing, cx);
    }

    /// Returns when the first wait for the list of an agent ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.iter().filter_map(|listing| listing.until).min()
    }

    pub(in crate::hub) fn postpone(&mut self, by: Duration) {
        for until in self
            .0
            .iter_mut()
            .filter_map(|listing| listing.until.as_mut())
        {
            *until += by;
        }
    }

    pub(in crate::hub) fn reads_list_of(&self, agent: AgentRef) -> bool {
        self.0.iter().any(|listing| listing.agent == agent)
    }
}

fn can_list(agents: &Agents, agent: AgentRef) -> bool {
    let connection = agents.get(agent).connection();
    let info = connection.and_then(|connection| connection.ready());
    info.is_some_and(|info| info.capabilities.list)
}

/// Keeps the sessions in this directory. Each directory is resolved once, since many sessions share few
/// directories.
fn in_directory(store: &dyn Store, mut infos: Vec<SessionInfo>, cwd: &str) -> Vec<SessionInfo> {
    let mut same = BTreeMap::new();
    infos.retain(|info| {
        let known = same.get(&info.cwd).copied();
        known.unwrap_or_else(|| {
            let is_same = is_same_directory(store, &info.cwd, cwd);
            same.insert(info.cwd.clone(), is_same);
            is_same
        })
    });
    infos
}

/// Returns the query for the stored sessions of a page while this number of sessions is open.
fn cards_for(p: &ListSessionsParams, open: usize) -> CardQuery {
    if p.agent {
        // The sessions of agents are compared with all stored ones.
        return CardQuery::default();
    }
    let position = p.cursor.as_deref().and_then(position);
    // The page, one more session that shows whether another page follows, and one for each card that may be
    // replaced by an open session.
    let limit = limit(p.limit, LIMIT).unwrap_or(1) + 1 + open;
    CardQuery {
        before: position.map(|(time, id)| (time.to_owned(), id.to_owned())),
        cwd: p.cwd.clone(),
        used: true,
        limit: Some(limit),
        ..CardQuery::default()
    }
}

/// Adds the sessions that only the agent has, with its name and command line.
fn add_foreign(
    own: &mut Vec<SessionInfo>,
    listed: Vec<ListedSession>,
    is_own: impl Fn(&SessionInfo) -> bool,
    (name, line): (&str, &str),
) {
    let ids = own.iter().filter(|info| is_own(info));
    let known: BTreeSet<String> = ids.filter_map(|i| i.agent_session_id.clone()).collect();
    let foreign = listed.into_iter().filter(|s| !known.contains(&s.id));
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

fn page(mut infos: Vec<SessionInfo>, p: &ListSessionsParams) -> ListSessionsResult {
    infos.retain(is_shown);
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

/// Returns `false` for a session that was opened, was never used, and is not open now.
fn is_shown(info: &SessionInfo) -> bool {
    info.state != SessionStage::Resting || info.messages != Some(0) || info.title.is_some()
}

/// Parses a cursor: time and id, the [`order`] of the last session of a page.
fn position(cursor: &str) -> Option<(&str, &str)> {
    cursor.split_once(' ')
}

/// Returns the sort key of a session: time, then id.
fn order(info: &SessionInfo) -> (&str, &str) {
    let id = info.session_id.as_ref().or(info.agent_session_id.as_ref());
    (
        info.updated_at.as_deref().unwrap_or_default(),
        id.map_or("", String::as_str),
    )
}
