//! State of a session as the agent reports it: modes, models, options, commands, title, context.

use super::SessionMachine;
use crate::core::client::Notice;
use crate::core::client_sink::ClientSinks;
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Members, Raw, to_raw};
use crate::proto::wire;
use serde_json::Value;

impl SessionMachine {
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
}
