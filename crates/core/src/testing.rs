//! Support for tests, benches and fuzz targets: settings of a hub, and a client that records what it
//! receives.
//!
//! Compiled for tests and with the feature `test-support`, which no release build enables.

#![allow(
    clippy::disallowed_types,
    reason = "a test looks at what the hub holds"
)]

use crate::agent_definition::AgentDefinition;
use crate::client::{Notice, Reply, Token};
use crate::client_request::{ClientRequest, ClientRequestId};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentInput, AgentSpec, OnLost, Settings};
use crate::profile::Profile;
use acpipe_json::frame::Batch;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::secret::Secrets;
use acpipe_policy::Policy;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions, Variables};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Builder of [`Settings`]: an ACP agent in `/`, the newest profile, and defaults for everything else.
#[derive(Debug, Clone)]
#[must_use]
pub struct SettingsBuilder(Settings);

impl SettingsBuilder {
    /// Creates settings of a hub that starts at `now`.
    pub fn new(now: Instant) -> Self {
        Self(Settings {
            default_agent: AgentDefinition::unnamed(AgentSpec {
                command: "agent".into(),
                args: Vec::new(),
                cwd: "/".into(),
                env: Variables::default(),
                source: AgentSource::CommandLine,
                protocol: Protocol::default(),
                child_per_session: false,
                options: SessionOptions::default(),
                fallback: None,
                backend: BackendOptions::default(),
            }),
            agents: Vec::new(),
            own_program: "/bin/acpipe".into(),
            quirks: BTreeMap::new(),
            policy: Policy::default(),
            profile: Profile::default(),
            cwd: "/".into(),
            id_prefix: "t".into(),
            request_seed: 0,
            clock: (now, 0),
            on_lost: OnLost::default(),
            idle_after: None,
            max_sessions: None,
            inherited: Variables::default(),
            variables: Variables::default(),
            secrets: Secrets::default(),
            limits: Limits::default(),
            mcp_servers: Vec::new(),
        })
    }

    /// Sets the working directory of acpipe and of the agent.
    pub fn cwd(mut self, cwd: &str) -> Self {
        self.0.default_agent.spec.cwd = cwd.into();
        self.0.cwd = cwd.into();
        self
    }

    /// Sets the agent's protocol.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.0.default_agent.spec.protocol = protocol;
        self
    }

    /// Sets whether each session gets its own agent process.
    pub fn child_per_session(mut self, child_per_session: bool) -> Self {
        self.0.default_agent.spec.child_per_session = child_per_session;
        self
    }

    pub fn policy(mut self, policy: impl Into<Policy>) -> Self {
        self.0.policy = policy.into();
        self
    }

    pub fn profile(mut self, profile: Profile) -> Self {
        self.0.profile = profile;
        self
    }

    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.0.id_prefix = prefix.into();
        self
    }

    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.0.on_lost = on_lost;
        self
    }

    pub fn idle_after(mut self, idle_after: Option<Duration>) -> Self {
        self.0.idle_after = idle_after;
        self
    }

    pub fn max_sessions(mut self, max_sessions: Option<usize>) -> Self {
        self.0.max_sessions = max_sessions;
        self
    }

    /// Removes the time limit of a client's answer.
    pub fn unlimited_answers(mut self) -> Self {
        self.0.limits.set(Timeout::Answer, None);
        self
    }

    /// Sets acpipe's own environment.
    pub fn inherited(mut self, inherited: Variables) -> Self {
        self.0.inherited = inherited;
        self
    }

    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.0.secrets = secrets;
        self
    }

    #[must_use]
    pub fn build(self) -> Settings {
        self.0
    }
}

/// Chunk that a [`RecordingClient`] received.
#[derive(Debug, Clone)]
pub struct RecordedChunk {
    pub session: String,
    pub turn: Option<String>,
    pub seq: u64,
    pub chunk: Value,
    /// Whether the chunk is stored JSON from the log and not from the view.
    pub stored: bool,
}

/// Client that records replies, chunks, notices and requests in the order of their arrival.
///
/// It panics if a command gets two replies, if a chunk and its JSON differ, or if a request is withdrawn that
/// is not open.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Default)]
pub struct RecordingClient {
    /// Whether agents must wait until the client reads.
    pub full: bool,
    /// Whether the client reads slowly.
    pub behind: bool,
    /// Whether the client cannot lag, that is, receive chunks from the log.
    pub must_be_live: bool,
    /// Whether output is held back ([`ClientSink::hold`]).
    pub held: bool,
    pub replies: Vec<(Token, Result<Reply, Error>)>,
    /// Chunks that were neither taken nor retracted.
    pub chunks: Vec<RecordedChunk>,
    /// Sessions with retracted chunks, each with the last sequence number that remained.
    pub retracted: Vec<(String, u64)>,
    pub notices: Vec<Notice>,
    /// Open requests to the client.
    pub open_requests: BTreeMap<ClientRequestId, ClientRequest>,
    pub withdrawn: Vec<(ClientRequestId, DecisionSource)>,
    answered: BTreeSet<Token>,
    unsent: usize,
}

impl RecordingClient {
    /// Removes and returns the replies.
    pub fn take_replies(&mut self) -> Vec<(Token, Result<Reply, Error>)> {
        std::mem::take(&mut self.replies)
    }

    /// Removes and returns the reply to one command, as JSON.
    pub fn take_answer(&mut self, token: Token) -> Option<Result<Value, Error>> {
        let at = self.replies.iter().position(|(of, _)| *of == token)?;
        let (_, answer) = self.replies.remove(at);
        Some(answer.map(|reply| serde_json::to_value(reply).expect("a reply must be JSON")))
    }

    /// Removes and returns the chunks; these cannot be retracted any more.
    pub fn take_chunks(&mut self) -> Vec<RecordedChunk> {
        std::mem::take(&mut self.chunks)
    }

    fn record(&mut self, place: ChunkAddress<'_>, chunk: Value, stored: bool) {
        self.chunks.push(RecordedChunk {
            session: place.session.to_owned(),
            turn: place.turn.map(str::to_owned),
            seq: place.seq,
            chunk,
            stored,
        });
    }
}

impl ClientSink for RecordingClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        assert!(self.answered.insert(token), "{token:?} was answered twice");
        self.replies.push((token, answer));
    }

    fn is_full(&self) -> bool {
        self.full
    }

    fn is_lagging(&self) -> bool {
        self.behind
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn set_unsent(&mut self, bytes: usize) {
        self.unsent = bytes;
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        let mut written = Vec::new();
        chunk.write(&mut written);
        assert!(written == json, "{chunk:?} came as {}", json.escape_ascii());
        let chunk = serde_json::from_slice(json).expect("a chunk must be JSON");
        self.record(place, chunk, false);
    }

    fn adapted_chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, json: &[Vec<u8>]) {
        for json in json {
            let chunk = serde_json::from_slice(json).expect("a chunk must be JSON");
            self.record(place, chunk, false);
        }
    }

    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        let chunk = serde_json::from_slice(json).expect("a chunk must be JSON");
        self.record(place, chunk, true);
    }

    fn retract(&mut self, session: &str, after: u64) {
        self.chunks
            .retain(|c| c.stored || c.session != session || c.seq <= after);
        self.retracted.push((session.to_owned(), after));
    }

    fn can_lag(&self) -> bool {
        !self.must_be_live
    }

    fn hold(&mut self, held: bool) {
        self.held = held;
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        let before = self.open_requests.insert(ask, request.clone());
        assert!(before.is_none(), "{ask:?} was asked twice");
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        assert!(
            self.open_requests.remove(&ask).is_some(),
            "{ask:?} is not open"
        );
        self.withdrawn.push((ask, by.clone()));
    }

    fn notify(&mut self, notice: &Notice) {
        self.notices.push(notice.clone());
    }
}

/// Parses the parameters of a command.
///
/// # Panics
///
/// Panics if the JSON is not valid for the type.
#[must_use]
pub fn params<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the parameters must be valid")
}

/// Returns the input of an agent process that wrote one line.
#[must_use]
pub fn line(text: &str) -> AgentInput {
    AgentInput::Batch(Batch::Lines(format!("{text}\n").into()))
}

/// Returns the input of an agent process that wrote these JSON-RPC messages at once, one per line; adds
/// `jsonrpc` to each.
#[must_use]
pub fn messages(messages: &[Value]) -> AgentInput {
    let mut lines = String::new();
    for message in messages {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        lines += &message.to_string();
        lines.push('\n');
    }
    AgentInput::Batch(Batch::Lines(lines.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(client: &mut RecordingClient, session: &str, seq: u64) {
        let (turn, chunk) = (Some("t"), Chunk::FinishStep);
        let mut json = Vec::new();
        chunk.write(&mut json);
        client.chunk(ChunkAddress { session, turn, seq }, &chunk, &json);
    }

    #[test]
    #[should_panic(expected = "was answered twice")]
    fn second_answer_to_a_command_panics_even_if_the_first_was_taken() {
        let mut client = RecordingClient::default();
        client.reply(
            Token::first(1),
            Ok(Reply::Done(acpipe_protocol::wire::Done {})),
        );
        assert!(client.take_answer(Token::first(1)).is_some());
        client.reply(
            Token::first(1),
            Ok(Reply::Done(acpipe_protocol::wire::Done {})),
        );
    }

    #[test]
    #[should_panic(expected = "came as")]
    fn chunk_that_differs_from_its_json_panics() {
        let (session, turn, seq) = ("s", None, 1);
        let place = ChunkAddress { session, turn, seq };
        RecordingClient::default().chunk(place, &Chunk::FinishStep, b"{}");
    }

    #[test]
    fn retraction_removes_later_chunks_of_its_session_alone() {
        let mut client = RecordingClient::default();
        give(&mut client, "a", 1);
        let taken = client.take_chunks();
        for (session, seq) in [("a", 2), ("a", 3), ("b", 3)] {
            give(&mut client, session, seq);
        }
        client.retract("a", 2);
        let left: Vec<(&str, u64)> = client
            .chunks
            .iter()
            .map(|given| (&*given.session, given.seq))
            .collect();
        assert_eq!(left, [("a", 2), ("b", 3)]);
        assert_eq!(taken.len(), 1);
        assert_eq!(client.retracted, [("a".to_owned(), 2)]);
    }
}

/// Value that a fake store of a test shares with the test. A store must be `Send`, so this is not an `Rc`.
#[derive(Debug, Default)]
pub struct SharedCell<T>(Arc<RwLock<T>>);

impl<T> Clone for SharedCell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> SharedCell<T> {
    /// Creates a shared value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(value)))
    }

    /// Borrows the value.
    pub fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Borrows the value for changes.
    pub fn borrow_mut(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        *self.borrow_mut() = value;
    }
}

impl<T: Copy> SharedCell<T> {
    /// Returns a copy of the value.
    #[must_use]
    pub fn get(&self) -> T {
        *self.borrow()
    }
}
