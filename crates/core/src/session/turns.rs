//! Turns of a session: the prompted one, the background turn, and what is kept of the last one that ended.
//!
//! Owns the open turns and how their chunks are built, the last message, the ids of the tool calls, the tool that was last
//! reported as running, and what the session has cost. Chunks go to the [`SessionOutput`] that is passed in. Queued prompts, settings and
//! client requests belong to others; the part does not know whether the session is live.

mod background_turn;
mod background_updates;
mod call_identity;
mod running;

use super::output::{SessionOutput, SessionSink, UpdateTurn};
use crate::client::Notice;
use crate::client_sink::ClientSinks;
use crate::metrics::Counters;
use crate::turn::{AgentIds, CallIds, Turn, UnapprovedRun};
use crate::view::chunks::ChunkView;
use acpipe_model::host::{Host, TerminalId};
use acpipe_protocol::wire::{Activity, ActivityParams, RunningTurn, Waiting};
pub use background_turn::BackgroundTurn;
pub use background_updates::{BACKGROUND_QUIET_LIMIT, BackgroundEnd, is_passing};
pub use running::{AbandonedPrompt, EndedMessage, Running};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Open turns of a session, and facts of those that ended.
#[derive(Debug)]
pub struct SessionTurns {
    prompted: Option<Box<Running>>,
    /// The background turn: what the agent reports while no prompt runs.
    background: Option<Box<BackgroundTurn>>,
    last: Option<EndedMessage>,
    /// Ids of the tool calls; `None` before the first one, when those of stored calls are not counted yet.
    call_ids: Option<Box<CallIds>>,
    /// Name and description of the tool last reported to the clients as running.
    activity: Option<Box<(String, String)>>,
    /// Cost of the session so far; zero for a new session, `None` if unknown.
    cost: Option<f64>,
}

impl Default for SessionTurns {
    fn default() -> Self {
        Self {
            prompted: None,
            background: None,
            last: None,
            call_ids: None,
            activity: None,
            cost: Some(0.0),
        }
    }
}

impl SessionTurns {
    pub fn prompted(&self) -> Option<&Running> {
        self.prompted.as_deref()
    }

    pub fn prompted_mut(&mut self) -> Option<&mut Running> {
        self.prompted.as_deref_mut()
    }

    pub fn is_prompted(&self) -> bool {
        self.prompted.is_some()
    }

    pub fn begin(&mut self, running: Running) {
        self.prompted = Some(Box::new(running));
    }

    /// Takes the prompted turn, while its end is worked out.
    pub(super) fn take_prompted(&mut self) -> Option<Box<Running>> {
        self.prompted.take()
    }

    pub(super) fn put_prompted(&mut self, running: Box<Running>) {
        self.prompted = Some(running);
    }

    /// Drops the prompted turn without remembering it.
    pub fn drop_prompted(&mut self) {
        self.prompted = None;
    }

    pub fn background(&self) -> Option<&BackgroundTurn> {
        self.background.as_deref()
    }

    pub fn background_mut(&mut self) -> Option<&mut BackgroundTurn> {
        self.background.as_deref_mut()
    }

    /// Drops the background turn without remembering it.
    pub fn drop_background(&mut self) {
        self.background = None;
    }

    pub fn last(&self) -> Option<&EndedMessage> {
        self.last.as_ref()
    }

    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    pub fn set_cost(&mut self, cost: Option<f64>) {
        self.cost = cost;
    }

    pub fn note_cost(&mut self, cost: Option<f64>) {
        self.cost = cost.or(self.cost);
    }

    /// Id of the open turn; that of the prompted one if both are open.
    pub fn id(&self) -> Option<&str> {
        let ids = self.ids();
        ids.prompted.or(ids.background)
    }

    pub(super) fn ids(&self) -> UpdateTurn<'_> {
        UpdateTurn {
            prompted: self.prompted.as_deref().map(|turn| &*turn.turn_id),
            background: self.background.as_deref().map(|turn| &*turn.turn_id),
        }
    }

    /// Returns `true` if the turn with this id is not open.
    pub fn is_over(&self, turn_id: &str) -> bool {
        self.turn_of(turn_id).is_none()
    }

    pub fn turn_of(&self, turn_id: &str) -> Option<&Turn> {
        let prompted = self.prompted().filter(|turn| turn.turn_id == turn_id);
        let background = self.background().filter(|turn| turn.turn_id == turn_id);
        let prompted = prompted.map(|turn| &turn.turn);
        prompted.or_else(|| background.map(|turn| &turn.turn))
    }

    pub fn has_call(&self, id: &str) -> bool {
        let prompted = self.prompted().map(|turn| &turn.turn);
        let background = self.background().map(|turn| &turn.turn);
        let mut open = prompted.into_iter().chain(background);
        open.any(|turn| turn.has_call(id))
    }

    pub fn described(&self) -> Option<RunningTurn> {
        let prompted = self.prompted().map(|running| RunningTurn {
            turn_id: running.turn_id.clone(),
            message_id: running.turn.message_id().to_owned(),
            after_seq: running.after_seq,
            client_id: Some(running.token.client.to_string()),
        });
        prompted.or_else(|| {
            let turn = self.background()?;
            Some(RunningTurn {
                turn_id: turn.turn_id.clone(),
                message_id: turn.turn.message_id().to_owned(),
                after_seq: turn.after_seq,
                client_id: None,
            })
        })
    }

    /// Returns `true` if this message is not complete: its turn is open.
    pub fn is_writing(&self, message_id: &str) -> bool {
        let prompted = self.prompted().map(|turn| turn.turn.message_id());
        let background = self.background().map(|turn| turn.turn.message_id());
        [prompted, background].contains(&Some(message_id))
    }

    /// Calls `act` on the open turn, the prompted one if both are open. Notifies the clients if a different tool runs
    /// afterwards.
    pub fn with_turn(
        &mut self,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        let (turn, chunks, turn_id) = match (&mut self.prompted, &mut self.background) {
            (Some(r), _) => (&mut r.turn, &mut r.chunks, &r.turn_id),
            (None, Some(u)) => (&mut u.turn, &mut u.chunks, &u.turn_id),
            (None, None) => return,
        };
        let mut sink = output.sink(Some(turn_id), clients);
        act(turn, &mut chunks.view(&mut sink));
        drop(sink);
        let now = turn.activity();
        let reported = self.activity.as_deref();
        if now.map(|a| (a.tool_name, a.description))
            != reported.map(|(n, d)| (n.as_str(), d.as_str()))
        {
            self.activity =
                now.map(|a| Box::new((a.tool_name.to_owned(), a.description.to_owned())));
            output.number_unsent(clients);
            self.notify_activity(None, output, clients);
        }
    }

    pub fn with_turn_of(
        &mut self,
        turn_id: &str,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        if self.prompted().is_some_and(|r| r.turn_id == turn_id) {
            self.with_turn(output, clients, act);
        } else if !self.is_over(turn_id) {
            self.with_background(output, clients, act);
        }
    }

    /// Calls `act` on the open turn that has this call, if there is one.
    pub fn with_turn_of_call(
        &mut self,
        call: &str,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        if self.prompted().is_some_and(|r| r.turn.has_call(call)) {
            self.with_turn(output, clients, act);
        } else if self.background().is_some_and(|b| b.turn.has_call(call)) {
            self.with_background(output, clients, act);
        }
    }

    pub fn notify_activity(
        &self,
        waiting_for: Option<Waiting>,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        let activity = self.activity.clone().map(|activity| *activity);
        let notice = Notice::Activity(ActivityParams {
            session_id: output.session().to_owned(),
            activity: activity.map(|(tool_name, description)| Activity {
                tool_name,
                description,
            }),
            waiting_for,
        });
        output.notify(&notice, clients);
    }

    /// Keeps what the session needs of a turn that ended. Returns its figures of the context.
    pub fn remember(&mut self, over: &mut Turn, cancelled: bool) -> Option<Value> {
        self.note_cost(over.figures().cost());
        self.last = Some(EndedMessage {
            message_id: over.message_id().to_owned(),
            names: Arc::new(over.take_agent_ids()),
            cancelled,
        });
        over.figures().context_figures()
    }

    /// Returns the agent's names of messages and calls that the next turn knows.
    pub fn names_for_prompt(&self) -> Arc<AgentIds> {
        let earlier = self.last().map(|last| Arc::new(last.names.for_prompt()));
        earlier.unwrap_or_default()
    }

    /// Counts the time to the first output of the running turn: the last activity was `ago`.
    pub fn count_first_output(
        &mut self,
        now: Instant,
        ago: impl FnOnce() -> Option<Duration>,
        counters: &mut Counters,
    ) {
        if let Some(running) = self.prompted_mut()
            && running.first_output.is_none()
            && let Some(ago) = ago()
        {
            let at = now.checked_sub(ago).unwrap_or(now).max(running.started);
            running.first_output = Some(at);
            let took = at.saturating_duration_since(running.started);
            counters.first_output.add(took);
        }
    }

    pub fn note_tool(&mut self, id: &str, now: Instant) {
        if let Some(running) = self.prompted_mut()
            && let Some(trace) = &mut running.trace
            && let Some(is_open) = running.turn.tools().is_open(id)
        {
            trace.note(id, is_open, now);
        }
    }

    pub fn has_unapproved_runs(&self) -> bool {
        self.prompted()
            .is_some_and(|running| running.turn.has_unapproved_runs())
    }

    pub fn forget_unapproved_runs(&mut self) {
        if let Some(running) = &mut self.prompted {
            running.turn.forget_unapproved_runs();
        }
        if let Some(background) = &mut self.background {
            background.turn.forget_unapproved_runs();
        }
    }

    /// Takes the tools that ran without a permission request, each with its turn id.
    pub fn take_unapproved_runs(&mut self, cwd: &str) -> Vec<(String, UnapprovedRun)> {
        let take = |turn_id: &str, turn: &mut Turn| -> Vec<(String, UnapprovedRun)> {
            let ran = turn.take_unapproved_runs(cwd).into_iter();
            ran.map(|ran| (turn_id.to_owned(), ran)).collect()
        };
        let mut ran = Vec::new();
        if let Some(running) = &mut self.prompted {
            ran.extend(take(&running.turn_id, &mut running.turn));
        }
        if let Some(background) = &mut self.background {
            ran.extend(take(&background.turn_id, &mut background.turn));
        }
        ran
    }

    /// Records that a URL elicitation was completed. Returns `true` if an open turn knows the id.
    pub fn url_completed(
        &mut self,
        id: &str,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        let ids = self.ids();
        let ids = [ids.prompted, ids.background].map(|id| id.map(str::to_owned));
        let mut known = false;
        for turn_id in ids.into_iter().flatten() {
            self.with_turn_of(&turn_id, output, clients, |turn, sink| {
                known |= turn.url_completed(id, sink);
            });
        }
        known
    }

    /// Shows new output of the session's terminals that acpipe serves.
    pub fn show_terminals(
        &mut self,
        host: &mut Host,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        for (_, terminal) in host.unreported_of(output.session()) {
            self.show_terminal(terminal, host, output, clients);
        }
    }

    /// Shows new output of a terminal in the tool call that refers to it. The output is not sent before that.
    pub fn show_terminal(
        &mut self,
        terminal: TerminalId,
        host: &mut Host,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        self.with_turn(output, clients, |turn, sink| {
            let name = terminal.to_string();
            if let Some(tool) = turn.tools().showing(&name).map(str::to_owned)
                && let Some(output) = host.take_view(terminal)
            {
                turn.terminal(&name, tool, &output, sink);
            }
        });
    }
}
