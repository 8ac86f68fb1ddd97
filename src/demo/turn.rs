//! What one turn does, from top to bottom: a thought, perhaps a plan and a tool call, and the answer's text.
//!
//! A turn is a task of its own, so that sessions interleave. It owns nothing but its prompt and tells the
//! loop what happens; the loop ends a cancelled turn by ending the task, so nothing here looks out for that.

use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ContentChunk, MessageId, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    StopReason, ToolCall, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::place::fresh;
use super::tool;
use super::words::{self, Wish};

/// The pause before each piece of text: long enough that a terminal shows the stream, short enough to be no wait.
const PACE: Duration = Duration::from_millis(8);

/// The same for the slow turn.
const SLOW_PACE: Duration = Duration::from_millis(100);

/// What a turn tells the loop.
pub enum Event {
    /// Something for the client and the session's file.
    Update(SessionUpdate),
    /// May this tool call run?
    Ask(ToolCallUpdate, oneshot::Sender<Permission>),
    /// The turn is over.
    End(StopReason),
}

/// The answer to [`Event::Ask`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Permission {
    /// Yes.
    Granted,
    /// No; the turn goes on without the tool.
    Refused,
    /// Neither: the client ends the turn.
    Cancelled,
}

/// One prompt on its way to its end.
pub struct Turn {
    /// The loop's number for it.
    pub number: u64,
    /// The session's working directory.
    pub cwd: PathBuf,
    /// The prompt's text.
    pub prompt: String,
    /// How many parts of the prompt were not text.
    pub attachments: usize,
    /// The way to the loop. It is short: a turn waits when the client reads slowly.
    pub events: mpsc::Sender<(u64, Event)>,
}

impl Turn {
    /// Plays the turn.
    pub async fn play(self) {
        let reason = self.script().await;
        self.tell(Event::End(reason)).await;
    }

    async fn script(&self) -> StopReason {
        let wish = Wish::of(&self.prompt);
        let thought = fresh("thought");
        for delta in words::deltas(words::THOUGHT) {
            self.tell(Event::Update(SessionUpdate::AgentThoughtChunk(chunk(
                &thought, delta,
            ))))
            .await;
            sleep(PACE).await;
        }
        if wish.plan {
            self.plan(&wish, PlanEntryStatus::InProgress, PlanEntryStatus::Pending)
                .await;
        }
        if wish.tool {
            self.say(words::BEFORE_TOOL, PACE).await;
            match self.call_tool().await {
                Some(text) => self.say(&text, PACE).await,
                None => return StopReason::Cancelled,
            }
        }
        if wish.slow {
            self.say(words::SLOWLY, PACE).await;
            self.count().await;
        } else if !wish.tool {
            self.say(&words::greeting(&self.prompt, self.attachments), PACE)
                .await;
        }
        if wish.plan {
            self.plan(
                &wish,
                PlanEntryStatus::Completed,
                PlanEntryStatus::Completed,
            )
            .await;
        }
        StopReason::EndTurn
    }

    /// Streams a message of its own.
    async fn say(&self, text: &str, pace: Duration) {
        self.stream(words::deltas(text), pace).await;
    }

    /// Streams 100 pieces in about ten seconds.
    async fn count(&self) {
        let end = |number| if number % 20 == 0 { '\n' } else { ' ' };
        let numbers = (1..=100).map(|number| format!("{number}{}", end(number)));
        self.stream(numbers.collect(), SLOW_PACE).await;
    }

    async fn stream(&self, deltas: Vec<String>, pace: Duration) {
        let message = fresh("message");
        for delta in deltas {
            self.tell(Event::Update(SessionUpdate::AgentMessageChunk(chunk(
                &message, delta,
            ))))
            .await;
            sleep(pace).await;
        }
    }

    /// Sends the plan; each plan replaces the one before it.
    async fn plan(&self, wish: &Wish, now: PlanEntryStatus, later: PlanEntryStatus) {
        let entry = |text: &str, status| PlanEntry::new(text, PlanEntryPriority::Medium, status);
        let mut entries = vec![entry("Read the prompt", PlanEntryStatus::Completed)];
        if wish.tool {
            entries.push(entry("List the working directory", now.clone()));
        }
        let answer = if wish.tool { later.clone() } else { now };
        entries.push(entry("Answer without a model", answer));
        entries.push(entry("Show how a plan is completed", later));
        self.tell(Event::Update(SessionUpdate::Plan(Plan::new(entries))))
            .await;
    }

    /// The life of a tool call: announced, permitted, running, done. Returns what to say about it,
    /// or `None` when the client cancelled instead of deciding.
    async fn call_tool(&self) -> Option<String> {
        let id = fresh("call");
        let call = ToolCall::new(id.clone(), format!("List files in {}", self.cwd.display()))
            .kind(ToolKind::Read)
            .status(ToolCallStatus::Pending)
            .locations(vec![ToolCallLocation::new(&self.cwd)])
            .raw_input(json!({ "path": self.cwd, "limit": tool::SHOWN }));
        self.tell(Event::Update(SessionUpdate::ToolCall(call.clone())))
            .await;

        let (reply, permission) = oneshot::channel();
        self.tell(Event::Ask(call.into(), reply)).await;
        match permission.await.unwrap_or(Permission::Cancelled) {
            Permission::Granted => {}
            Permission::Refused => {
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
                self.update_tool(&id, fields.content(vec!["permission refused".into()]))
                    .await;
                return Some(words::REFUSED.to_owned());
            }
            Permission::Cancelled => return None,
        }

        self.update_tool(
            &id,
            ToolCallUpdateFields::new().status(ToolCallStatus::InProgress),
        )
        .await;
        let (status, content, output, text) = match tool::list(self.cwd.clone()).await {
            Ok(listing) => {
                let text = words::found(&self.cwd, &listing);
                (
                    ToolCallStatus::Completed,
                    listing.text(),
                    listing.json(),
                    text,
                )
            }
            Err(error) => {
                let error = error.to_string();
                let text = words::failed(&self.cwd, &error);
                (
                    ToolCallStatus::Failed,
                    error.clone(),
                    json!({ "error": error }),
                    text,
                )
            }
        };
        let fields = ToolCallUpdateFields::new()
            .status(status)
            .raw_output(output);
        self.update_tool(&id, fields.content(vec![content.into()]))
            .await;
        Some(text)
    }

    async fn update_tool(&self, id: &str, fields: ToolCallUpdateFields) {
        let update = ToolCallUpdate::new(id.to_owned(), fields);
        self.tell(Event::Update(SessionUpdate::ToolCallUpdate(update)))
            .await;
    }

    /// Reports to the loop. It outlives every turn; if it did not, there would be nobody to tell.
    async fn tell(&self, event: Event) {
        self.events.send((self.number, event)).await.ok();
    }
}

fn chunk(message: &str, delta: String) -> ContentChunk {
    ContentChunk::new(delta.into()).message_id(MessageId::new(message))
}
