//! Calls on stored data: session lists, chunks and messages.

use super::Hub;
use super::cx::HubCx;
use super::page::{MESSAGES, limit};
use super::reads::{MessageRead, WantedMessages};
use crate::core::client::{History, Reply, Token};
use crate::core::error::{Error, invalid};
use crate::proto::wire;

/// Maximum and default number of chunks in a page.
const CHUNKS: (u32, u32) = (10_000, 1000);

impl Hub {
    pub(super) fn history(
        &mut self,
        token: Token,
        asked: History,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let reply = match asked {
            History::ListSessions(p) => {
                return self.events.listings().list(&mut self.router, token, p, cx);
            }
            History::ListMessages(p) if p.agent_session_id.is_some() => {
                return self.list_agent_messages(token, p);
            }
            History::ListMessages(p) => return self.list_messages(token, &p, cx),
            History::LastMessage(p) => return self.last_message(token, &p, cx),
            History::GetSession(p) => {
                let info = self.session_info(token.client, &p, cx)?;
                Reply::SessionInfo(Box::new(info))
            }
            History::CloseSession(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                self.close_session(&id, token.client, cx)?;
                Reply::Done(wire::Done {})
            }
            History::ClearSession(p) => {
                return self.clear_session(token, &p, cx);
            }
            History::Replay(p) => {
                let limit = limit(p.limit, CHUNKS)?;
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                let profile = self.router.shared().profile(token.client);
                let session = self.catalog.readable(&mut self.router, &id)?;
                let page = session.replay(p.after_seq, limit, profile)?;
                // The reply must follow the chunks that the client has not received yet.
                session
                    .output
                    .reply(token, Ok(Reply::Replay(page)), cx.clients);
                return Ok(());
            }
            History::AddMessage(p) => {
                let (at, id) = (
                    self.router.shared().time(cx.now),
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?,
                );
                Reply::Message(
                    self.catalog
                        .session(&mut self.router, &id)?
                        .add_message(p.message, &at)?,
                )
            }
            History::UpdateMessage(p) => {
                let (at, id) = (
                    self.router.shared().time(cx.now),
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?,
                );
                let profile = self.router.shared().profile(token.client);
                Reply::Message(
                    self.catalog
                        .readable(&mut self.router, &id)?
                        .update_message(p, &at, profile)?,
                )
            }
            History::ClearMessages(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                self.catalog
                    .with_session(&mut self.router, &id, cx, |session, cx| {
                        session.clear_messages(p.archive, cx)
                    })?;
                Reply::Done(wire::Done {})
            }
        };
        cx.clients.reply(token, Ok(reply));
        Ok(())
    }

    fn list_messages(
        &mut self,
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
        let id = self
            .catalog
            .session_id(&self.router, token.client, p.session_id.as_deref())?;
        let places = self
            .catalog
            .readable(&mut self.router, &id)?
            .places(p.after.as_deref(), p.before.as_deref())?;
        let backwards = p.before.is_some() && p.after.is_none();
        let wanted = WantedMessages::Page(limit);
        self.begin_read(MessageRead::new(token, id, places, backwards, wanted), cx);
        Ok(())
    }

    fn last_message(
        &mut self,
        token: Token,
        p: &wire::SessionParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let id = self
            .catalog
            .session_id(&self.router, token.client, p.session_id.as_deref())?;
        let places = self
            .catalog
            .readable(&mut self.router, &id)?
            .places(None, None)?;
        let wanted = WantedMessages::Last;
        self.begin_read(MessageRead::new(token, id, places, true, wanted), cx);
        Ok(())
    }
}
