//! Durable data of a session: its identity, the ends of its turns, and the handling of a log that cannot be
//! written.

use crate::agent::connection::Call;
use crate::client::{Reply, Token};
use crate::cx::Cx;
use crate::log::{FORMAT, Identity, Record};
use crate::session::summary::{TurnTiming, summarize};
use crate::session::turns::AbandonedPrompt;
use crate::session::{Conversation, SessionRequest};
use crate::shared::{PendingStoreReply, StoreCall};
use crate::turn_ending::Ending;
use crate::view::chunks::ChunkSink as _;
use acpipe_json::{to_raw, value};
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::CallId;
use acpipe_model::limits::Timeout;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::TurnSummary;
use tracing::warn;

impl Conversation {
    /// Writes the session's identity if it changed, and all pending records.
    ///
    /// # Errors
    /// `storage`.
    pub fn identify(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.log_identity(&cx.time());
        if let Err(error) = self
            .output
            .commit((cx.now, &cx.shared.settings.limits), cx.clients)
        {
            self.not_stored(error.clone(), cx);
            return Err(error);
        }
        self.output.save(0);
        Ok(())
    }

    /// Stores mode and model of a live session if the agent changed them.
    pub fn store_settings(&mut self, cx: &mut Cx<'_>) {
        let stored = self.output.log().identity();
        let differ = stored.is_some_and(|stored| self.settings.differ_from(stored));
        if differ && self.agent_session().is_some() {
            // A storage error is reported by the turn that hits it.
            let _ = self.identify(cx);
        }
    }

    /// Records the session's identity if it changed.
    pub fn log_identity(&mut self, at: &str) {
        let last = self.output.log().identity();
        let created_at = last.map_or_else(|| at.to_owned(), |last| last.created_at.clone());
        let identity = Identity {
            seq: last.map_or(0, |last| last.seq),
            created_at,
            ..self.identity(last)
        };
        if last != Some(&identity) || self.output.log().needs_identity_record() {
            let identity = Identity {
                seq: self.output.log().seq(),
                ..identity
            };
            self.output.record(&Record::Session {
                at,
                identity: &identity,
            });
        }
    }

    /// Writes the pending records. In contrast to `SessionOutput::commit`, a disk that does not answer is an error,
    /// because more than the clients' view depends on these records.
    ///
    /// # Errors
    /// `storage`.
    pub fn write(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let written = self.output.write();
        if let Err(error) = &written {
            self.not_stored(error.clone(), cx);
        }
        written
    }

    /// Handles a log that cannot be written: unwritten chunks are retracted from the clients, and the turn
    /// ends.
    pub fn not_stored(&mut self, error: Error, cx: &mut Cx<'_>) {
        warn!(session = self.id, %error, "cannot store a session");
        self.output.take_drop_error();
        if self.output.log().is_waiting() {
            let at = (cx.now, &cx.shared.settings.limits);
            self.output.give_up_disk(at, cx.clients);
        } else {
            self.output.retract(cx.clients);
        }
        self.output.forget_unsent(cx.clients);
        self.turns.drop_background();
        let agent_session = self.agent_session().map(str::to_owned);
        let call = self.turns.prompted().map(|running| running.call);
        // In the order in which the next acpipe ends them. A background turn also ends, if clients have seen its beginning.
        for turn in self.output.log().open_turns() {
            if self.turns.id() == Some(&turn) {
                self.turns
                    .with_turn(&mut self.output, cx.clients, |turn, sink| {
                        turn.cut_off(&error, sink);
                    });
                continue;
            }
            let error_text = &error.message;
            let mut sink = self.output.sink(Some(&turn), cx.clients);
            sink.chunk(&Chunk::Error { error_text });
        }
        self.output.release_pending();
        if let Some(call) = call {
            self.cancel_lost_prompt(call, agent_session, cx);
            self.close_turn(&Ending::Failed(error), cx);
        }
    }

    /// Cancels the prompt of a turn that acpipe ended, and stops waiting for its answer.
    pub fn cancel_lost_prompt(
        &mut self,
        call: CallId,
        agent_session: Option<String>,
        cx: &mut Cx<'_>,
    ) {
        let cancel = cx.limits().of(Timeout::Cancel);
        let Some(connection) = &mut cx.agent.connection else {
            return;
        };
        if let Some(Call::Prompt { .. }) = connection.calls.get(&call) {
            let until = Some(cx.now + 2 * cancel.unwrap_or_default());
            self.abandoned = Some(AbandonedPrompt { call, until });
            if let Some(agent_session) = agent_session {
                connection.tell(AgentCall::Cancel(&agent_session));
            }
        }
    }

    /// Completes a turn: its summary is sent once it is on disk.
    pub fn acknowledge(&mut self, token: Token, summary: Box<TurnSummary>, cx: &mut Cx<'_>) {
        let at = cx.time();
        let ticket = cx.shared.ids.ticket();
        self.log_identity(&at);
        self.output.record(&Record::End {
            at: &at,
            turn_id: &summary.turn_id,
            summary: &summary,
        });
        let kind = ErrorKind::Storage.name();
        let is_reported = summary.errors.iter().any(|e| e.kind == kind);
        if is_reported {
            self.output.release_pending();
        }
        let limits = &cx.shared.settings.limits;
        if let Err(error) = self.output.commit((cx.now, limits), cx.clients)
            && !is_reported
        {
            if self.output.take_drop_error().is_some() {
                // The turn is answered here.
                self.turns.drop_prompted();
                self.not_stored(error.clone(), cx);
            }
            let error = error.with("summary", value(&to_raw(&summary)));
            self.output.reply(token, Err(error), cx.clients);
            return;
        }
        if self.output.log().is_append_abandoned() {
            self.output
                .reply(token, Ok(Reply::Turn(summary)), cx.clients);
            return;
        }
        if self.output.save(ticket) {
            let wait = PendingStoreReply {
                until: cx.shared.settings.limits.until(Timeout::Store, cx.now),
                call: StoreCall::Turn(self.id.clone(), token, summary),
            };
            cx.shared.pending_store_replies.insert(ticket, wait);
        } else {
            self.output
                .reply(token, Ok(Reply::Turn(summary)), cx.clients);
        }
    }

    /// Returns the current identity of the session. Anything the agent does not report is taken from `last`.
    pub fn identity(&self, last: Option<&Identity>) -> Identity {
        let mut identity = Identity {
            format: FORMAT,
            session_id: self.id.clone(),
            created_at: String::new(),
            cwd: self.cwd.clone(),
            agent: self.known.line.clone(),
            agent_session_id: self.known.last_id().map(str::to_owned),
            agent_name: self.known.name.clone(),
            agent_command: self.known.command.clone(),
            agents: self.known.given().to_vec(),
            cost: self.turns.cost(),
            seq: 0,
            ..last.cloned().unwrap_or_default()
        };
        self.settings.describe(&mut identity);
        identity
    }

    pub fn end_late_output(&mut self, cx: &mut Cx<'_>) {
        if let Some(running) = self.turns.prompted_mut() {
            running.late_output_until = None;
            cx.requests.push(SessionRequest::EndTurnWhenRead);
        }
    }

    /// Requests the end of the turn, for when the output that arrived with the answer is processed.
    pub fn answered(&mut self, ending: Ending, cx: &mut Cx<'_>) {
        if let Some(running) = self.turns.prompted_mut() {
            running.ended = Some(ending);
            let late = cx.agent.definition.quirks.late_output();
            if late.is_zero() {
                cx.requests.push(SessionRequest::EndTurnWhenRead);
            } else {
                running.late_output_until = Some(cx.now + late);
            }
        }
    }

    /// Sends the summary of a turn after its last chunk.
    pub fn close_turn(&mut self, ending: &Ending, cx: &mut Cx<'_>) {
        self.count_output(cx.now, &mut cx.shared.counters);
        let Some(mut running) = self.turns.take_prompted() else {
            return;
        };
        self.idle_timer = None;
        self.used = Some(cx.now);
        let cancelled = running.is_cancelled();
        let waited = cx.shared.waited.total();
        let timing = TurnTiming {
            total: cx.now.saturating_duration_since(running.started),
            waited: waited.saturating_sub(running.waited_before),
        };
        let summary = summarize(&self.id, &mut running, ending, timing, self.turns.cost());
        self.report_turn(&running, &summary, cx);
        let counters = &mut cx.shared.counters;
        counters.end_turn(summary.outcome.kind, timing.total);
        let context = self.turns.remember(&mut running.turn, cancelled);
        self.settings.note_context(context);
        let token = running.token;
        // A panic must find the call, which is not answered yet.
        self.turns.put_prompted(running);
        self.acknowledge(token, Box::new(summary), cx);
        self.turns.drop_prompted();
        cx.requests.push(SessionRequest::Free);
    }
}
