//! What the loop knows, and how what happens in a turn becomes history, updates and answers.
//! Further `impl Agent` blocks stand in `methods` and `sessions`.

use std::collections::HashMap;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    PromptResponse, RawValue, SessionInfoUpdate, SessionUpdate, StopReason, ToolCallId,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::store::{Log, Store};
use super::turn::{Event, Permission};
use super::wire::Outbox;

/// The size of context that is reported. Without a model there is no limit, but clients draw a bar with it.
const NOMINAL_CONTEXT: u64 = 200_000;

/// All there is to know.
pub struct Agent {
    pub out: Outbox,
    pub store: Store,
    pub sessions: HashMap<String, Session>,
    pub turns: HashMap<u64, Running>,
    /// Our requests which the client has not answered, by their id.
    pub asked: HashMap<u64, Asked>,
    pub tasks: JoinSet<()>,
    pub events: mpsc::Sender<(u64, Event)>,
    /// Numbers turns and requests.
    pub count: u64,
}

/// A conversation that is open in this process.
pub struct Session {
    pub cwd: PathBuf,
    pub log: Log,
    /// The turn that runs.
    pub turn: Option<u64>,
    /// The user allowed the tool for the rest of the session.
    pub always: bool,
    /// How many characters were said on both sides.
    pub chars: usize,
}

/// A turn that runs.
pub struct Running {
    pub session: String,
    /// The id of the `session/prompt`, which is answered when the turn ends.
    pub request: Box<RawValue>,
    pub task: AbortHandle,
    /// A tool call which has not ended.
    pub tool: Option<ToolCallId>,
    /// The session's new title.
    pub title: Option<String>,
}

/// A permission request that waits for the client.
pub struct Asked {
    pub turn: u64,
    pub reply: oneshot::Sender<Permission>,
}

impl Agent {
    /// An agent without sessions. Turns report to it by way of `events`.
    pub fn new(store: Store, events: mpsc::Sender<(u64, Event)>) -> Self {
        Self {
            out: Outbox::default(),
            store,
            sessions: HashMap::new(),
            turns: HashMap::new(),
            asked: HashMap::new(),
            tasks: JoinSet::new(),
            events,
            count: 0,
        }
    }

    /// The next number for a turn or a request.
    pub fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Takes what a turn reports.
    pub fn on_event(&mut self, turn: u64, event: Event) {
        // A turn that was ended may have left reports behind; nobody wants them now.
        let Some(running) = self.turns.get_mut(&turn) else {
            return;
        };
        match event {
            Event::Update(update) => {
                match &update {
                    SessionUpdate::ToolCall(call) => running.tool = Some(call.tool_call_id.clone()),
                    SessionUpdate::ToolCallUpdate(update) if ended(update) => running.tool = None,
                    _ => {}
                }
                let session = running.session.clone();
                self.emit(&session, &update);
            }
            Event::Ask(call, reply) => {
                let session = running.session.clone();
                self.ask(turn, &session, call, reply);
            }
            Event::End(reason) => self.finish(turn, reason),
        }
    }

    /// Keeps an update and sends it, in this order: what the client has seen can always be replayed.
    fn emit(&mut self, session: &str, update: &SessionUpdate) {
        if let Some(update) = self.keep(session, update) {
            self.tell(session, &update);
        }
    }

    /// Adds an update to the session's history.
    pub fn keep(&mut self, id: &str, update: &SessionUpdate) -> Option<Value> {
        let update = to_value(update)?;
        let session = self.sessions.get_mut(id)?;
        session.chars += chars(&update);
        self.store.append(id, &mut session.log, &update);
        Some(update)
    }

    /// Sends an update.
    pub fn tell(&mut self, session: &str, update: &Value) {
        self.out.notify(
            "session/update",
            &json!({ "sessionId": session, "update": update }),
        );
    }

    /// Ends a turn, in whatever state it is, and answers its prompt.
    pub fn finish(&mut self, turn: u64, reason: StopReason) {
        let Some(running) = self.turns.remove(&turn) else {
            return;
        };
        running.task.abort();
        while self.tasks.try_join_next().is_some() {}
        // The client knows that its cancel also withdraws our question. Should it answer, nobody listens.
        self.asked.retain(|_, asked| asked.turn != turn);
        let id = running.session;
        if let Some(tool) = running.tool {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
            self.emit(
                &id,
                &SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(tool, fields)),
            );
        }
        let session = self.sessions.get_mut(&id);
        let chars = session.map_or(0, |session| {
            session.turn = None;
            session.chars
        });
        // Nothing was counted by a model: four characters to a token is the usual estimate.
        let used = (chars as u64).div_ceil(4);
        let usage = SessionUpdate::UsageUpdate(UsageUpdate::new(used, NOMINAL_CONTEXT.max(used)));
        let title = running
            .title
            .map(|title| SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title)));
        for update in [Some(usage), title].iter().flatten().filter_map(to_value) {
            self.tell(&id, &update);
        }
        let answer = to_value(&PromptResponse::new(reason)).unwrap_or_default();
        self.out.answer(&running.request, Ok(answer));
    }

    /// Ends every turn, because the client has gone.
    pub fn end_all(&mut self) {
        let mut turns: Vec<u64> = self.turns.keys().copied().collect();
        turns.sort_unstable();
        for turn in turns {
            self.finish(turn, StopReason::Cancelled);
        }
    }
}

/// Whether an update is the last of its tool call.
fn ended(update: &ToolCallUpdate) -> bool {
    let status = update.fields.status.as_ref();
    status
        .is_some_and(|status| matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed))
}

/// How many characters of text an update carries.
pub fn chars(update: &Value) -> usize {
    let text = update.pointer("/content/text").and_then(Value::as_str);
    text.map_or(0, |text| text.chars().count())
}

/// A protocol type as JSON. None of them fails to become it; one that did would be left out.
pub fn to_value(value: &impl Serialize) -> Option<Value> {
    let value = serde_json::to_value(value);
    value
        .inspect_err(|error| tracing::error!(%error, "not JSON"))
        .ok()
}
