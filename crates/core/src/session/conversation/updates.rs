//! Routing of the agent's updates: to the running turn, to the background turn, or to the restore.

use crate::agent::directory::state_news;
use crate::client::Notice;
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::session::restore::load_quiet;
use crate::session::turns::{BackgroundEnd, is_passing};
use crate::session::{Conversation, Stage};
use crate::turn::Renamed;
use crate::view::chunks::ChunkSink as _;
use acpipe_json::{Members, Raw, to_raw};
use acpipe_model::event::{Original, Update};
use acpipe_model::idle_timer::update_name;
use acpipe_model::limits::Timeout;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use serde_json::Value;
use std::time::Instant;
use tracing::debug;

impl Conversation {
    /// Records context usage that was reported outside of any turn.
    pub fn set_context(
        &mut self,
        figures: &Members<'_>,
        cost: Option<f64>,
        clients: &mut dyn ClientSinks,
    ) {
        self.turns.note_cost(cost);
        let mut news = Members::default();
        news.set_owned("context", figures);
        self.set_state(&news, clients);
    }

    /// Merges changed modes, options, commands or title, and notifies the clients.
    pub fn set_state(&mut self, news: &Members<'_>, clients: &mut dyn ClientSinks) {
        let is_live = self.agent_session().is_some();
        self.settings.report(news, is_live);
        self.notify_state(clients);
    }

    /// Notifies the clients of the whole state.
    pub fn notify_state(&mut self, clients: &mut dyn ClientSinks) {
        let state = Value::Object(self.settings.state().clone());
        let data = to_raw(&state);
        // The chunk is not part of the message. If it would fill the log, `session/state` alone reports the
        // state.
        if self.turns.id().is_some() && self.settings.may_log(data.get().len()) {
            self.turns.with_turn(&mut self.output, clients, |_, sink| {
                sink.chunk(&Chunk::DataSession {
                    id: "session",
                    data: Raw(&data),
                    transient: true,
                });
            });
        }
        self.output.number_unsent(clients);
        let notice = Notice::SessionState(wire::StateParams {
            session_id: self.id.clone(),
            state,
            queue: self.queue.waiting_prompts(),
        });
        self.output.notify(&notice, clients);
    }

    /// Replaces the agent's ids of tool calls in an update by the ids of the calls.
    pub fn identify_calls(&mut self, subagent: Option<&str>, update: &mut Update<'_>) -> Renamed {
        if let Stage::Opening(restore) = &mut self.stage
            && !restore.is_setting()
        {
            return restore.history_mut().identify_calls(subagent, update);
        }
        let log = self.output.log();
        self.turns.identify_calls(subagent, update, log)
    }

    pub fn may_act(&self, call: &str) -> bool {
        self.agent_session().is_some() && self.abandoned.is_none() && self.turns.may_act(call)
    }

    /// Applies an update to the running turn; this is the hot path. Returns whether a tool may have run
    /// without a permission request; `None` if the update does not belong to the running turn.
    pub fn turn_update(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
        client: &mut dyn ClientSinks,
    ) -> Option<bool> {
        self.note_activity(now, update_name(update), client);
        if !self.turns.is_prompted()
            || matches!(update, Update::Session(_) | Update::Subagent { .. })
            || self.turns.is_late(update)
        {
            return None;
        }
        self.turns
            .with_turn(&mut self.output, client, |turn, sink| {
                turn.update(update, original, sink);
            });
        Some(match update {
            Update::Tool(tool) => {
                self.turns.note_tool(&tool.id, now);
                self.turns.has_unapproved_runs()
            }
            Update::Chunk { .. } => self.turns.has_unapproved_runs(),
            Update::FromSubagent { .. } => true,
            _ => false,
        })
    }

    /// Applies a run of updates to the running turn. Returns `false` if the updates must be applied one by one, as
    /// outside of a turn.
    pub fn take_run(
        &mut self,
        run: &UpdateRun<'_>,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        if !matches!(self.stage, Stage::Live { .. }) {
            return false;
        }
        if self.output.has_acp_client() {
            return self.take_acp_run(run, now, clients);
        }
        let applied = self.turn_update(&run.update_of_texts(), run.original, now, clients);
        applied.is_some()
    }

    /// Applies any other update, of the session or of a subagent. Returns `true` if a tool may have run
    /// without a permission request.
    pub fn other_update(
        &mut self,
        subagent: Option<&str>,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        if self.repeated(update, original, cx) {
            return false;
        }
        if let Some(connection) = &mut cx.agent.connection {
            connection.directory.note_subagent(&self.id, update);
        }
        if subagent.is_some() {
            self.note_activity(cx.now, "subagent", cx.clients);
        }
        match (subagent, update) {
            (None, Update::Session(news)) => {
                self.set_state(news, cx.clients);
                self.store_settings(cx);
                self.recheck_asking(cx);
            }
            _ if !self.turns.is_prompted() || self.turns.is_late(update) => {
                self.background_update(subagent, update, original, cx);
            }
            (None, _) => {
                self.turns
                    .with_turn(&mut self.output, cx.clients, |turn, sink| {
                        turn.update(update, original, sink);
                    });
            }
            (Some(id), _) => self
                .turns
                .with_turn(&mut self.output, cx.clients, |turn, sink| {
                    turn.subagent(id, update, original, sink);
                }),
        }
        update.names_call()
    }

    /// Applies an update that is not part of a prompt's turn.
    pub fn background_update(
        &mut self,
        subagent: Option<&str>,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut Cx<'_>,
    ) {
        if self.output.log().is_append_abandoned() {
            debug!(session = self.id, "cannot store an update outside of turns");
            return;
        }
        let is_open = self.turns.background().is_some();
        if let Update::Context { cost, figures } = update
            && subagent.is_none()
            && !is_open
        {
            let figures = figures.clone().unwrap_or_else(|| original.fields());
            self.set_context(&figures, *cost, cx.clients);
            return;
        }
        let output = &mut self.output;
        if self.turns.show_beside_turns(update, original, output, cx) {
            return;
        }
        // Figures and notices do not keep the background turn alive.
        if !is_open || !is_passing(update) {
            let begins_with = match update {
                Update::Message(piece) => piece.message_id.as_deref(),
                Update::Tool(tool) => Some(tool.id.as_ref()),
                _ => None,
            };
            self.begin_background(begins_with, cx);
        }
        let output = &mut self.output;
        self.turns
            .with_background(output, cx.clients, |turn, sink| match subagent {
                None => turn.update(update, original, sink),
                Some(id) => turn.subagent(id, update, original, sink),
            });
    }

    /// Begins a background turn if none is open. `begins_with` is the agent's id of its first message or tool call.
    pub fn begin_background(&mut self, begins_with: Option<&str>, cx: &mut Cx<'_>) {
        self.used = Some(cx.now);
        let agent_session = match &self.stage {
            Stage::Live { agent_session } => Some(agent_session.as_str()),
            Stage::Opening(_) | Stage::Resting => None,
        };
        let output = &mut self.output;
        self.turns
            .begin_background(begins_with, agent_session, output, cx);
    }

    /// Ends the background turn without judging its open calls.
    pub fn close_background(&mut self, end: BackgroundEnd<'_>, clients: &mut dyn ClientSinks) {
        let context = self.turns.close_background(end, &mut self.output, clients);
        self.settings.note_context(context);
    }

    /// Resets the idle timer on output of the agent. Clients that were notified of a wait are notified that
    /// it is over.
    pub fn note_activity(
        &mut self,
        now: Instant,
        what: &'static str,
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(idle_timer) = &mut self.idle_timer
            && idle_timer.note_activity(now, what)
        {
            self.turns.notify_activity(None, &mut self.output, clients);
        }
    }

    /// Handles an update while the session is being opened. Returns `true` if it was consumed.
    pub fn repeated(&mut self, update: &Update<'_>, original: Original<'_>, cx: &Cx<'_>) -> bool {
        let Stage::Opening(restore) = &mut self.stage else {
            return false;
        };
        let news = state_news(update, original);
        if let Some((news, cost)) = &news {
            self.settings.merge(news);
            restore.report(news, *cost);
        }
        // Updates received while settings are set again are not history.
        if restore.is_setting() {
            return news.is_some();
        }
        let deadlines = (cx.until(Timeout::Open), cx.now + load_quiet(cx));
        restore.replay(update, original, cx.now, deadlines);
        true
    }
}
