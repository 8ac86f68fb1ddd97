//! Calls on stored data: session lists, chunks and messages.

use super::sessions::{clear_session, close_session, session_info};
use crate::client::{History, Reply, Token};
use crate::hub::agent_events::AgentEvents;
use crate::hub::catalog::Catalog;
use crate::hub::cx::HubCx;
use crate::hub::history_reads::HistoryReads;
use crate::hub::history_reads::messages::{MessageRead, WantedMessages};
use crate::hub::page::{MESSAGES, limit};
use crate::hub::router::Router;
use crate::session::{Conversation, history};
use acpipe_model::error::{Error, invalid};
use acpipe_protocol::wire;

/// Maximum and default number of chunks in a page.
const CHUNKS: (u32, u32) = (10_000, 1000);

pub(super) fn history(
    catalog: &mut Catalog,
    router: &mut Router,
    events: &mut AgentEvents,
    reads: &mut HistoryReads,
    token: Token,
    asked: History,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let reply = match asked {
        History::ListSessions(p) => {
            return events.listings().list(router, token, p, cx);
        }
        History::ListMessages(p) if p.agent_session_id.is_some() => {
            return reads.files().list_messages(catalog, router, token, p);
        }
        History::ListMessages(p) => return list_messages(catalog, router, reads, token, &p, cx),
        History::LastMessage(p) => return last_message(catalog, router, reads, token, &p, cx),
        History::GetSession(p) => {
            let info = session_info(catalog, router, token.client, &p, cx)?;
            Reply::SessionInfo(Box::new(info))
        }
        History::CloseSession(p) => {
            let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
            close_session(catalog, router, &id, token.client, cx)?;
            catalog.scopes_mut().note_closed(&id);
            Reply::Done(wire::Done {})
        }
        History::ClearSession(p) => {
            return clear_session(catalog, router, reads, token, &p, cx);
        }
        History::Replay(p) => {
            let limit = limit(p.limit, CHUNKS)?;
            let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
            let profile = router.shared().profile(token.client);
            let session = catalog.readable(router, &id)?;
            let is_open = |id: &str| session.talk.output.requests().has_question(id);
            let log = session.talk.output.log();
            let page = history::replay(log, is_open, p.after_seq, limit, profile)?;
            // The reply must follow the chunks that the client has not received yet.
            session
                .talk
                .output
                .reply(token, Ok(Reply::Replay(page)), cx.clients);
            return Ok(());
        }
        History::AddMessage(p) => {
            let (at, id) = (
                router.shared().time(cx.now),
                catalog.session_id(router, token.client, p.session_id.as_deref())?,
            );
            let output = &mut catalog.session(router, &id)?.talk.output;
            Reply::Message(history::add_message(output, p.message, &at)?)
        }
        History::UpdateMessage(p) => {
            let (at, id) = (
                router.shared().time(cx.now),
                catalog.session_id(router, token.client, p.session_id.as_deref())?,
            );
            let profile = router.shared().profile(token.client);
            let Conversation { output, turns, .. } = &mut catalog.readable(router, &id)?.talk;
            let is_writing = |id: &str| turns.is_writing(id);
            let changed = history::update_message(output, is_writing, p, &at, profile)?;
            Reply::Message(changed)
        }
        History::ClearMessages(p) => {
            let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
            catalog.with_session(router, &id, cx, |session, cx| {
                session.clear_messages(p.archive, cx)
            })?;
            Reply::Done(wire::Done {})
        }
    };
    cx.clients.reply(token, Ok(reply));
    Ok(())
}

pub(super) fn list_messages(
    catalog: &Catalog,
    router: &mut Router,
    reads: &mut HistoryReads,
    token: Token,
    p: &wire::ListMessagesParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let limit = limit(p.limit, MESSAGES)?;
    if p.agent.is_some() || p.cwd.is_some() {
        return Err(invalid(
            "agentSessionId",
            "is missing; agent and cwd need it",
        ));
    }
    let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
    let log = catalog.readable(router, &id)?.talk.output.log();
    let places = history::places(log, p.after.as_deref(), p.before.as_deref())?;
    let backwards = p.before.is_some() && p.after.is_none();
    let wanted = WantedMessages::Page(limit);
    reads.begin(
        catalog,
        router,
        MessageRead::new(token, id, places, backwards, wanted),
        cx,
    );
    Ok(())
}

pub(super) fn last_message(
    catalog: &Catalog,
    router: &mut Router,
    reads: &mut HistoryReads,
    token: Token,
    p: &wire::SessionParams,
    cx: &mut HubCx<'_>,
) -> Result<(), Error> {
    let id = catalog.session_id(router, token.client, p.session_id.as_deref())?;
    let log = catalog.readable(router, &id)?.talk.output.log();
    let places = history::places(log, None, None)?;
    let wanted = WantedMessages::Last;
    reads.begin(
        catalog,
        router,
        MessageRead::new(token, id, places, true, wanted),
        cx,
    );
    Ok(())
}
