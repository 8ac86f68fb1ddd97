//! Client of the hub for one HTTP request.

use super::failure::HttpFailure;
use super::question::{Ask, DecidedPart, QuestionDecision};
use crate::cli::connections::{ClientAccess, NewConnection};
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_request::ClientRequestId;
use acpipe_host::{
    ClientAction, ConnectionInput, ConnectionOutput, Connector, DirectOutput, HubOutput, SentChunk,
};
use acpipe_json::to_raw;
use acpipe_protocol::wire::{
    AttachParams, AttachResult, ChunkProfile, ClientCapabilities, InitializeParams, OnDisconnect,
    PeerInfo, Role, SdkMajor, SessionParams, Waiting,
};
use serde_json::Value;
use std::collections::VecDeque;

/// Client of the hub. Dropping it leaves running turns, queued prompts and open questions alone.
pub struct HubClient {
    input: ConnectionInput<NewConnection>,
    output: ConnectionOutput<DirectOutput>,
    /// Output that is not read yet.
    unread: DirectOutput,
    last_call: u64,
    /// Messages that came while a reply was awaited.
    waiting: VecDeque<HubMessage>,
    access: ClientAccess,
}

/// Message of the hub.
#[derive(Debug)]
pub enum HubMessage {
    /// A chunk of a session.
    Chunk(SentChunk),
    /// A request that asks the user.
    Ask(Ask),
    /// End of a request that needs no answer any more.
    Withdrawn(ClientRequestId),
    /// Why the session waits.
    Waits(Waiting),
    /// The session was closed or deleted by another client: nothing of it follows.
    Detached,
    /// Reply to the call of this number.
    Reply(u64, Result<Reply, HttpFailure>),
}

impl HubMessage {
    /// Converts output of the hub; `None` for what no HTTP request needs.
    fn of(output: HubOutput) -> Option<Self> {
        Some(match output {
            HubOutput::Chunk(chunk) => Self::Chunk(chunk),
            HubOutput::Ask(id, request) => Self::Ask(Ask::of(id, &request)?),
            HubOutput::Withdraw(id) => Self::Withdrawn(id),
            HubOutput::Reply(token, answer) => {
                Self::Reply(token.call, (*answer).map_err(HttpFailure::from))
            }
            HubOutput::Notice(notice) => match *notice {
                Notice::Activity(activity) => Self::Waits(activity.waiting_for?),
                Notice::Presence(presence) if presence.clients.is_empty() => Self::Detached,
                _ => return None,
            },
        })
    }
}

impl HubClient {
    /// Connects to the loop. `major` is the AI SDK's major version of the client.
    pub async fn open(
        connector: &Connector<NewConnection>,
        access: ClientAccess,
        major: Option<u8>,
    ) -> Result<Self, HttpFailure> {
        let new = |output| NewConnection::Direct(access, output);
        let connection = connector.open(new).await?;
        let mut client = Self {
            input: connection.input,
            output: connection.output,
            unread: DirectOutput::default(),
            last_call: 0,
            waiting: VecDeque::new(),
            access,
        };
        let asks = access != ClientAccess::Observer;
        let params = InitializeParams {
            client_info: Some(PeerInfo {
                name: "HTTP".to_owned(),
                title: None,
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            chunk_profile: major.map(|major| ChunkProfile::Major(SdkMajor(major.into()))),
            ..InitializeParams::of(ClientCapabilities {
                permissions: asks,
                questions: asks,
                ..ClientCapabilities::default()
            })
        };
        client.call(Command::Initialize(params)).await?;
        Ok(client)
    }

    /// Sends a command. Returns its number.
    pub async fn send(&mut self, command: Command) -> Result<u64, HttpFailure> {
        self.last_call += 1;
        let token = Token {
            client: self.input.id(),
            call: self.last_call,
        };
        self.input
            .act(ClientAction::Command(token, command))
            .await?;
        Ok(token.call)
    }

    /// Sends a command and waits for its reply.
    pub async fn call(&mut self, command: Command) -> Result<Reply, HttpFailure> {
        let call = self.send(command).await?;
        loop {
            match self.receive().await.ok_or_else(HttpFailure::closed)? {
                HubMessage::Reply(answered, reply) if answered == call => return reply,
                other => self.waiting.push_back(other),
            }
        }
    }

    /// Attaches to a session. With `after_seq`, all chunks after it follow.
    pub async fn attach(
        &mut self,
        session: &str,
        after_seq: Option<u64>,
    ) -> Result<AttachResult, HttpFailure> {
        let role = match self.access {
            ClientAccess::Observer => Role::Observer,
            ClientAccess::Full | ClientAccess::Control => Role::Controller,
        };
        let params = AttachParams {
            session_id: Some(session.to_owned()),
            after_seq,
            role: Some(role),
            on_disconnect: Some(OnDisconnect::Continue),
        };
        let Reply::Attached(attached) = self.call(Command::Attach(params)).await? else {
            return Err(HttpFailure::unexpected_reply());
        };
        if after_seq.is_some() {
            // The attachment repeats them.
            self.waiting
                .retain(|message| !matches!(message, HubMessage::Chunk(_)));
        }
        Ok(*attached)
    }

    /// Answers a request of the hub.
    pub async fn answer(&mut self, id: ClientRequestId, result: &Value) -> Result<(), HttpFailure> {
        let answer = ClientAction::Answer(self.input.id(), id, Ok(to_raw(result)));
        Ok(self.input.act(answer).await?)
    }

    /// Waits until the hub has handled everything that was sent before.
    pub async fn confirm(&mut self, session: &str) -> Result<(), HttpFailure> {
        let session_id = Some(session.to_owned());
        self.call(Command::Clients(SessionParams { session_id }))
            .await?;
        Ok(())
    }

    /// Waits for the next message; `None` after the end of the connection. Cancel safe.
    pub async fn next(&mut self) -> Option<HubMessage> {
        match self.waiting.pop_front() {
            Some(message) => Some(message),
            None => self.receive().await,
        }
    }

    /// Returns the open question of this id. Call it after [`confirm`](Self::confirm), which follows `attach`: the hub has
    /// sent all open questions by then.
    pub fn take_ask(&mut self, question: &str) -> Option<Ask> {
        let mut found = None;
        for message in std::mem::take(&mut self.waiting) {
            match message {
                HubMessage::Ask(ask) if ask.question_id == question => found = Some(ask),
                HubMessage::Withdrawn(id) => {
                    found.take_if(|ask: &mut Ask| ask.id == id);
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the decision of a question. Call it after [`confirm`](Self::confirm), which follows the answer: the hub has
    /// sent the decision by then. `None` if the question is still open.
    pub fn take_decision(&mut self, question: &str) -> Option<QuestionDecision> {
        let messages = std::mem::take(&mut self.waiting);
        let chunks = messages.iter().filter_map(|message| match message {
            HubMessage::Chunk(chunk) => Some(&chunk.json),
            _ => None,
        });
        chunks
            .rev()
            .find_map(|json| DecidedPart::decision(json, question))
    }

    /// Waits for the next message of the connection. Cancel safe.
    async fn receive(&mut self) -> Option<HubMessage> {
        loop {
            while let Some(output) = self.unread.pop() {
                if let Some(message) = HubMessage::of(output) {
                    return Some(message);
                }
            }
            self.unread = self.output.next().await?;
        }
    }
}
