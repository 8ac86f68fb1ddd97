//! Repair after a panic: a bug in acpipe costs only the turn in which it occurred.
//!
//! A session that was being written to is marked (see `SessionSink`). Its turn ends with an error, its prompt is
//! cancelled, and its log is cut to whole lines.

use super::turns::BackgroundEnd;
use super::{SessionMachine, SessionRequest};
use crate::core::client::Token;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::turn_ending::Ending;
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl SessionMachine {
    /// Repairs a session in which a panic occurred and ends its turn with this error. Returns the client call
    /// that was answered with the error.
    pub fn mend(&mut self, error: &Error, cx: &mut Cx<'_>) -> Option<Token> {
        let running = self.turns.prompted();
        let (token, call) = running.map(|r| (r.token, r.call)).unzip();
        let agent_session = self.agent_session().map(str::to_owned);
        self.output.mend(cx.clients);
        // Ends the turn like any failed turn. If that panics again, only the error chunk is written.
        let _ = catch_unwind(AssertUnwindSafe(|| self.fail_turns(error, cx.clients)));
        self.output.mend(cx.clients);
        self.turns.drop_background();
        for turn in self.output.log().open_turns() {
            let error_text = &error.message;
            let mut sink = self.output.sink(Some(&turn), cx.clients);
            sink.chunk(&Chunk::Error { error_text });
        }
        let (token, call) = token.zip(call)?;
        let ending = Ending::Failed(error.clone());
        let closed = catch_unwind(AssertUnwindSafe(|| {
            self.cancel_lost_prompt(call, agent_session, cx);
            self.close_turn(&ending, cx);
        }));
        if closed.is_err() {
            self.output.mend(cx.clients);
            self.turns.drop_prompted();
            self.output.reply(token, Err(error.clone()), cx.clients);
            cx.requests.push(SessionRequest::Free);
        }
        Some(token)
    }

    fn fail_turns(&mut self, error: &Error, clients: &mut dyn ClientSinks) {
        self.output.number_unsent(clients);
        self.close_background(BackgroundEnd::Failed(error), clients);
        self.turns
            .with_turn(&mut self.output, clients, |turn, sink| {
                turn.fail(error, sink)
            });
    }
}
