//! Chunks of one turn as the data of server-sent events.

use super::approvals::ApprovalAnswer;
use super::client::{HubClient, HubMessage};
use super::failure::HttpFailure;

use super::open_blocks::{OpenBlocks, Passage};
use super::question::{Ask, reason_of};
use super::step::{MessageStep, UserWait};
use acpipe_host::SentChunk;
use acpipe_protocol::chunk::ChunkFacts;
use acpipe_protocol::wire::{Party, Waiting};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Time that a stream stays open for an answer while other tool calls run.
const CALLS_FINISH: Duration = Duration::from_secs(3);

/// Time in which the last chunk of a turn must follow the result of its prompt.
const LAST_CHUNK: Duration = Duration::from_secs(30);

/// Title of the notice about an answer after the decision.
pub const TOO_LATE: &str = "The answer came too late";

/// How a browser answers permission requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalMode {
    /// With its next request: the stream ends at the question.
    #[default]
    NextRequest,
    /// With a request of its own: the stream stays open.
    Inline,
}

/// Turn that a stream follows.
#[derive(Debug, Default)]
pub struct FollowedTurn {
    /// Id of the turn; `None` for the turn of the first chunk.
    pub turn: Option<String>,
    /// Call that runs the turn.
    pub prompt: Option<u64>,
    /// Number of the last chunk before those of the stream.
    pub after_seq: u64,
    /// Number of the last chunk, if no turn runs.
    pub end_seq: Option<u64>,
}

/// Stream of one turn.
pub struct TurnStream {
    client: HubClient,
    followed: FollowedTurn,
    approvals: ApprovalMode,
    /// Answers to questions that the loop has not asked yet.
    answers: Vec<ApprovalAnswer>,
    /// Open questions by their id.
    asks: BTreeMap<String, Ask>,
    step: MessageStep,
    blocks: OpenBlocks,
    last_seq: u64,
    /// Time at which the stream ends if nothing comes.
    deadline: Option<Deadline>,
    events: VecDeque<String>,
    /// Chunk of acpipe that follows the first one of the turn.
    note: Option<String>,
    /// `true` if the stream has shown what its message waits for.
    shows_wait: bool,
    has_ended: bool,
}

#[derive(Debug, Clone, Copy)]
enum Deadline {
    Approval(Instant),
    LastChunk(Instant),
}

/// Returns a notice that belongs to no message.
pub fn notice(severity: &str, title: &str, description: &str) -> String {
    let data = json!({ "severity": severity, "title": title, "description": description });
    json!({ "type": "data-notice", "data": data, "transient": true }).to_string()
}

impl TurnStream {
    /// Creates the stream of a turn to which `client` is attached.
    pub fn new(client: HubClient, followed: FollowedTurn, approvals: ApprovalMode) -> Self {
        let last_seq = followed.after_seq;
        Self {
            client,
            followed,
            approvals,
            answers: Vec::new(),
            asks: BTreeMap::new(),
            step: MessageStep::default(),
            blocks: OpenBlocks::default(),
            last_seq,
            deadline: None,
            events: VecDeque::new(),
            note: None,
            shows_wait: false,
            has_ended: false,
        }
    }

    /// Adds a chunk of acpipe after the first one of the turn.
    #[must_use]
    pub fn with_note(mut self, note: Option<String>) -> Self {
        self.note = note;
        self
    }

    /// Makes it the continuation of a message: answers questions, and knows the message's tool calls.
    #[must_use]
    pub fn continuing(mut self, answers: Vec<ApprovalAnswer>, step: MessageStep) -> Self {
        self.answers = answers;
        self.step = step;
        if self
            .followed
            .end_seq
            .is_some_and(|end| end <= self.last_seq)
        {
            self.end();
        }
        self
    }

    /// Waits for the first chunk.
    ///
    /// # Errors
    /// The turn failed before its first chunk.
    pub async fn begin(&mut self) -> Result<(), HttpFailure> {
        while self.events.is_empty() {
            self.advance().await?;
        }
        Ok(())
    }

    /// Waits for the data of the next event; `None` at the end.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            if let Err(failure) = self.advance().await {
                self.fail(&failure);
            }
        }
    }

    async fn advance(&mut self) -> Result<(), HttpFailure> {
        let message = match self.deadline {
            None => self.client.next().await,
            // A message that is there comes first, however late it is read.
            Some(Deadline::Approval(at) | Deadline::LastChunk(at)) => {
                match tokio::time::timeout_at(at, self.client.next()).await {
                    Ok(message) => message,
                    Err(_) => return self.expire(),
                }
            }
        };
        match message.ok_or_else(HttpFailure::closed)? {
            HubMessage::Chunk(chunk) => self.chunk(chunk),
            HubMessage::Ask(ask) => self.ask(ask).await?,
            HubMessage::Withdrawn(id) => self.asks.retain(|_, ask| ask.id != id),
            HubMessage::Reply(call, reply) if self.followed.prompt == Some(call) => {
                reply?;
                self.deadline = Some(Deadline::LastChunk(Instant::now() + LAST_CHUNK));
            }
            HubMessage::Waits(waiting) => self.wait(&waiting),
            // A turn that runs has its last chunk before.
            HubMessage::Detached if self.followed.prompt.is_none() => self.end(),
            HubMessage::Detached | HubMessage::Reply(..) => {}
        }
        self.update_wait();
        Ok(())
    }

    fn expire(&mut self) -> Result<(), HttpFailure> {
        match self.deadline.take() {
            Some(Deadline::Approval(_)) => {
                self.end_for_approval();
                Ok(())
            }
            _ => Err(HttpFailure::closed()),
        }
    }

    /// Shows that the message waits for an answer which the user cannot give here.
    fn wait(&mut self, waiting: &Waiting) {
        let has_begun = self.last_seq != self.followed.after_seq;
        let is_queued = self.followed.prompt.is_some() && !has_begun;
        if is_queued && waiting.party == Party::Client && !self.shows_wait {
            self.shows_wait = true;
            self.events
                .push_back(notice("info", "The message waits", &waiting.note));
        }
    }

    fn chunk(&mut self, chunk: SentChunk) {
        if self.has_ended {
            return;
        }
        let is_last = self.followed.end_seq.is_some_and(|end| chunk.seq >= end);
        if self.followed.turn.is_none() {
            self.followed.turn = chunk.turn.as_deref().map(str::to_owned);
        }
        if chunk.turn.is_some() && self.followed.turn.as_deref() == chunk.turn.as_deref() {
            self.pass(chunk);
        }
        if is_last && !self.has_ended {
            self.end();
        }
    }

    fn pass(&mut self, chunk: SentChunk) {
        self.last_seq = chunk.seq;
        // Chunks are JSON, which is UTF-8.
        let text = String::from_utf8(chunk.json).unwrap_or_default();
        let facts = chunk.facts.unwrap_or_else(|| ChunkFacts::read(&text));
        let late = self.late_answer(&text);
        match self.blocks.pass(&facts) {
            Passage::Alone => self.events.push_back(text),
            Passage::After(first) => self.events.extend([first, text]),
            Passage::Dropped => {}
        }
        self.events.extend(self.note.take());
        self.step.observe(&facts);
        if let Some(reason) = late {
            self.events.push_back(notice("warning", TOO_LATE, &reason));
        }
        if facts == ChunkFacts::TurnEnd {
            self.end();
        }
    }

    async fn ask(&mut self, ask: Ask) -> Result<(), HttpFailure> {
        let question = &ask.question_id;
        let answer = self.answers.iter().position(|a| a.approval_id == *question);
        if let Some(index) = answer {
            let answer = self.answers.swap_remove(index);
            self.client
                .answer(ask.id, &answer.response_to(&ask))
                .await?;
        } else {
            self.asks.insert(question.clone(), ask);
        }
        Ok(())
    }

    /// Returns why the browser's answer was not used, if the chunk is the decision of its question.
    fn late_answer(&mut self, chunk: &str) -> Option<String> {
        let answers = self.answers.iter().enumerate();
        let mut decisions = answers.filter_map(|(at, answer)| {
            let mut chunk = serde_json::Deserializer::from_str(chunk);
            Some((at, reason_of(&mut chunk, &answer.approval_id)?))
        });
        let (at, reason) = decisions.next()?;
        self.answers.swap_remove(at);
        Some(reason)
    }

    /// Ends the stream at a question that only the browser's next request can answer.
    fn update_wait(&mut self) {
        if self.approvals == ApprovalMode::Inline || self.has_ended {
            return;
        }
        let asks = &self.asks;
        match self.step.user_wait(|id| asks.contains_key(id)) {
            UserWait::Yes => self.end_for_approval(),
            UserWait::WhileCallsRun if self.deadline.is_none() => {
                self.deadline = Some(Deadline::Approval(Instant::now() + CALLS_FINISH));
            }
            UserWait::No if matches!(self.deadline, Some(Deadline::Approval(_))) => {
                self.deadline = None;
            }
            UserWait::WhileCallsRun | UserWait::No => {}
        }
    }

    /// The browser sends this metadata back, so that the next stream continues exactly here.
    fn end_for_approval(&mut self) {
        let position = json!({ "turnId": self.followed.turn, "afterSeq": self.last_seq });
        let metadata =
            json!({ "type": "message-metadata", "messageMetadata": { "acpipe": position } });
        self.events.push_back(metadata.to_string());
        self.end();
    }

    fn fail(&mut self, failure: &HttpFailure) {
        let error = json!({ "type": "error", "errorText": failure.message });
        self.events.push_back(error.to_string());
        self.end();
    }

    fn end(&mut self) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        self.events.push_back("[DONE]".to_owned());
    }
}
