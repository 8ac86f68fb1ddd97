//! The library as a client face of the hub: a client for each session handle, and one for all other calls.
//!
//! A client for each handle, because the hub slows agents by client: a session that is not read does not slow
//! the others.

use super::asks::OpenAsks;
use super::call::{HandleCall, PromptCall};
use super::error::{Error, Result};
use super::event::{Event, EventBroadcast};
use super::turn_queue::{QueuedChunk, TurnQueue, UnreadBytes};
use super::wake::{Departure, Wake};
use acpipe_core::client::{ClientId, Command, Reply, Token};
use acpipe_core::client_sink::{ClientSink, ClientSinks};
use acpipe_core::methods::learn_secrets;
use acpipe_host::{ClientAction, ClientConnection, DirectSink, HubOutput, Interrupt, SentChunk};
use acpipe_model::error::Error as CoreError;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Clients of the library.
#[derive(Debug)]
pub struct LibraryClients {
    capabilities: wire::ClientCapabilities,
    /// Secrets of the calls, which must not reach errors.
    secrets: Secrets,
    asks: OpenAsks,
    events: EventBroadcast,
    wake: Arc<Wake>,
    sinks: BTreeMap<ClientId, ClientOutput>,
    /// Clients that may have output.
    listed: Vec<ClientId>,
    /// Calls that wait for a reply, by the number of the call.
    calls: BTreeMap<u64, (ClientId, ReplyReceiver)>,
    next_call: u64,
    /// Turns that have not ended, by their ids.
    turns: BTreeMap<String, OpenTurn>,
    /// Turns whose prompts the hub has not handled yet.
    prompted: Vec<String>,
    actions: VecDeque<ClientAction>,
    is_ending: bool,
}

/// Output of a client.
#[derive(Debug)]
struct ClientOutput {
    sink: DirectSink,
    /// `true` if the client is in the list of those with output.
    is_listed: bool,
}

/// Receiver of the reply to a call.
#[derive(Debug)]
enum ReplyReceiver {
    /// None: the reply is dropped.
    Dropped,
    /// A handle.
    Handle(oneshot::Sender<Result<Reply>>),
    /// The turn of this id.
    Turn(String),
}

/// Turn that has not ended.
#[derive(Debug)]
struct OpenTurn {
    client: ClientId,
    session: String,
    queue: Arc<TurnQueue>,
    /// Until the hub has handled the prompt: receives whether it accepted the prompt.
    accepted: Option<oneshot::Sender<Result<()>>>,
}

impl LibraryClients {
    /// Creates the clients; requests go to `asks`.
    pub fn new(
        capabilities: wire::ClientCapabilities,
        secrets: Secrets,
        asks: OpenAsks,
        events: EventBroadcast,
        wake: Arc<Wake>,
    ) -> Self {
        let mut clients = Self {
            capabilities,
            secrets,
            asks,
            events,
            wake,
            sinks: BTreeMap::new(),
            listed: Vec::new(),
            calls: BTreeMap::new(),
            next_call: 0,
            turns: BTreeMap::new(),
            prompted: Vec::new(),
            actions: VecDeque::new(),
            is_ending: false,
        };
        clients.join(ClientId::FIRST, &Arc::default());
        clients
    }

    fn join(&mut self, client: ClientId, unread: &Arc<UnreadBytes>) {
        let unread = unread.clone();
        let mut sink = DirectSink::new(move || unread.get(), false);
        if self.is_ending {
            sink.end();
        }
        let is_listed = false;
        self.sinks.insert(client, ClientOutput { sink, is_listed });
        let params = wire::InitializeParams::of(self.capabilities);
        self.submit(client, Command::Initialize(params), ReplyReceiver::Dropped);
    }

    fn submit(&mut self, client: ClientId, command: Command, caller: ReplyReceiver) {
        learn_secrets(&command, &self.secrets);
        let call = self.next_call;
        self.next_call += 1;
        self.calls.insert(call, (client, caller));
        let token = Token { client, call };
        self.actions
            .push_back(ClientAction::Command(token, command));
    }

    fn prompt(&mut self, client: ClientId, call: PromptCall) {
        let turn = OpenTurn {
            client,
            session: call.params.session_id.clone().unwrap_or_default(),
            queue: call.queue,
            accepted: Some(call.accepted),
        };
        self.turns.insert(call.turn.clone(), turn);
        self.prompted.push(call.turn.clone());
        let command = Command::Prompt(call.params);
        self.submit(client, command, ReplyReceiver::Turn(call.turn));
    }

    fn note_departure(&mut self, departure: Departure) {
        match departure {
            Departure::Client(client) => {
                self.sinks.remove(&client);
                self.asks.leave(client);
                self.calls.retain(|_, (caller, _)| *caller != client);
                self.turns.retain(|_, turn| turn.client != client);
                self.actions.push_back(ClientAction::Leave(client));
            }
            Departure::Turn(id) => {
                let Some(turn) = self.turns.get(&id) else {
                    return;
                };
                let (client, session) = (turn.client, turn.session.clone());
                let params = wire::CancelParams {
                    session_id: Some(session),
                    turn_id: Some(id),
                };
                self.submit(client, Command::Cancel(params), ReplyReceiver::Dropped);
            }
        }
    }

    /// Reports the prompts that the hub has accepted: those that it has handled without an error.
    fn accept_prompts(&mut self) {
        if !self.actions.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.prompted) {
            let turn = self.turns.get_mut(&id);
            if let Some(accepted) = turn.and_then(|turn| turn.accepted.take()) {
                // Fails only if the caller has stopped waiting.
                let _ = accepted.send(Ok(()));
            }
        }
    }

    fn end(&mut self) {
        self.is_ending = true;
        for output in self.sinks.values_mut() {
            output.sink.end();
        }
        self.actions.push_back(ClientAction::End);
    }

    fn deliver(&mut self, client: ClientId, output: HubOutput) {
        match output {
            HubOutput::Reply(token, answer) => self.reply(token, *answer),
            HubOutput::Chunk(chunk) => self.chunk(client, chunk),
            HubOutput::Ask(id, request) => self.asks.ask(client, id, *request),
            HubOutput::Withdraw(id) => self.asks.withdraw(client, id),
            HubOutput::Notice(notice) => {
                // Every client gets notifications about agents.
                let event = Event::of(*notice);
                let event = event
                    .filter(|event| client == ClientId::FIRST || !matches!(event, Event::Agent(_)));
                if let Some(event) = event {
                    self.events.send(event);
                }
            }
        }
    }

    fn reply(&mut self, token: Token, answer: Result<Reply, CoreError>) {
        let answer = answer.map_err(Error::from);
        match self.calls.remove(&token.call).map(|(_, caller)| caller) {
            None | Some(ReplyReceiver::Dropped) => {}
            // Fails only if the caller has stopped waiting.
            Some(ReplyReceiver::Handle(caller)) => drop(caller.send(answer)),
            Some(ReplyReceiver::Turn(id)) => {
                let Some(turn) = self.turns.remove(&id) else {
                    return;
                };
                let summary = answer.and_then(|reply| match reply {
                    Reply::Turn(summary) => Ok(*summary),
                    _ => Err(Error::unexpected_reply()),
                });
                if let (Some(accepted), Err(error)) = (turn.accepted, &summary) {
                    let _ = accepted.send(Err(error.clone()));
                }
                turn.queue.finish(summary);
            }
        }
    }

    fn chunk(&mut self, client: ClientId, chunk: SentChunk) {
        let turn = chunk.turn.as_deref().and_then(|id| self.turns.get(id));
        match turn {
            Some(turn) if turn.client == client => turn.queue.push(QueuedChunk {
                seq: chunk.seq,
                json: chunk.json,
            }),
            // Another handle of the session has the turn.
            Some(_) => {}
            None => self.events.send_chunk(chunk),
        }
    }
}

impl ClientSinks for LibraryClients {
    fn sink(&mut self, client: ClientId) -> Option<&mut dyn ClientSink> {
        let output = self.sinks.get_mut(&client)?;
        if !std::mem::replace(&mut output.is_listed, true) {
            self.listed.push(client);
        }
        Some(&mut output.sink)
    }

    fn is_client_full(&mut self, client: ClientId) -> bool {
        let output = self.sinks.get(&client);
        output.is_some_and(|output| output.sink.is_full())
    }

    fn is_client_lagging(&mut self, client: ClientId) -> bool {
        let output = self.sinks.get(&client);
        output.is_some_and(|output| output.sink.is_lagging())
    }
}

impl ClientConnection for LibraryClients {
    type Input = HandleCall;

    fn input(&mut self, input: HandleCall) {
        match input {
            HandleCall::Join(client, unread) => self.join(client, &unread),
            HandleCall::Command(client, command, caller) => {
                self.submit(client, command, ReplyReceiver::Handle(caller));
            }
            HandleCall::Prompt(client, call) => self.prompt(client, *call),
            HandleCall::Answer(id, answer) => {
                for client in self.asks.answered(id) {
                    let answer = answer.clone();
                    self.actions
                        .push_back(ClientAction::Answer(client, id, answer));
                }
            }
            HandleCall::Shutdown => self.end(),
        }
    }

    fn input_ended(&mut self) {
        self.end();
    }

    fn interrupted(&mut self, _: bool, _: Interrupt) {}

    fn max_read_delay(&self) -> Option<Duration> {
        None
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        for departure in self.wake.departures() {
            self.note_departure(departure);
        }
        self.actions.pop_front()
    }

    async fn room(&mut self, _: bool) {
        self.wake.news().await;
    }

    fn take_output(&mut self, _: &mut Vec<u8>) {
        for client in std::mem::take(&mut self.listed) {
            let Some(output) = self.sinks.get_mut(&client) else {
                continue;
            };
            output.is_listed = false;
            let mut values = output.sink.take();
            while let Some(value) = values.pop() {
                self.deliver(client, value);
            }
        }
        self.accept_prompts();
    }
}

impl Drop for LibraryClients {
    fn drop(&mut self) {
        for turn in self.turns.values() {
            turn.queue.finish(Err(Error::shut_down()));
        }
    }
}
