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
        let running = self.talk.turns.prompted();
        let (token, call) = running.map(|r| (r.token, r.call)).unzip();
        let agent_session = self.talk.agent_session().map(str::to_owned);
        self.talk.output.mend(cx.clients);
        // Ends the turn like any failed turn. If that panics again, only the error chunk is written.
        let _ = catch_unwind(AssertUnwindSafe(|| self.fail_turns(error, cx.clients)));
        self.talk.output.mend(cx.clients);
        self.talk.turns.drop_background();
        for turn in self.talk.output.log().open_turns() {
            let error_text = &error.message;
            let mut sink = self.talk.output.sink(Some(&turn), cx.clients);
            sink.chunk(&Chunk::Error { error_text });
        }
        let (token, call) = token.zip(call)?;
        let ending = Ending::Failed(error.clone());
        let closed = catch_unwind(AssertUnwindSafe(|| {
            self.talk.cancel_lost_prompt(call, agent_session, cx);
            self.talk.close_turn(&ending, cx);
        }));
        if closed.is_err() {
            self.talk.output.mend(cx.clients);
            self.talk.turns.drop_prompted();
            self.talk
                .output
                .reply(token, Err(error.clone()), cx.clients);
            cx.requests.push(SessionRequest::Free);
        }
        Some(token)
    }

    fn fail_turns(&mut self, error: &Error, clients: &mut dyn ClientSinks) {
        self.talk.output.number_unsent(clients);
        self.talk
            .close_background(BackgroundEnd::Failed(error), clients);
        self.talk
            .turns
            .with_turn(&mut self.talk.output, clients, |turn, sink| {
                turn.fail(error, sink);
            });
    }
}
