//! Client face of a loop with many connections: a client for each.
//!
//! Each connection has the face of its protocol, which knows of one client only. This module gives it the id of its
//! client, checks what the client may do, and moves its output to the queue of the connection.

mod access;
mod connected_client;
mod face;
mod setup;

use access::{Admission, admit};
use acpipe_core::client::{ClientId, Token};
use acpipe_core::client_sink::{ClientSink, ClientSinks};
use acpipe_host::{ClientAction, ClientConnection, ConnectionEvent, ConnectionNews, Interrupt};
use acpipe_model::error::Error;
use acpipe_model::secret::Secrets;
use connected_client::ConnectedClient;
use face::Face;
pub use setup::{ClientAccess, ClientFace, ConnectionSetup, NewConnection, Via};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tracing::{debug, error, warn};

/// Clients of a loop with many connections.
pub struct Connections {
    /// Secrets in the clients' messages, which must not be logged.
    secrets: Secrets,
    news: ConnectionNews,
    all: BTreeMap<ClientId, ConnectedClient>,
    /// Clients that may request actions.
    requesting: Vec<ClientId>,
    /// Clients that may have output.
    listed: Vec<ClientId>,
    actions: VecDeque<ClientAction>,
}

impl Connections {
    /// Creates the face without connections.
    pub fn new(secrets: Secrets, news: ConnectionNews) -> Self {
        Self {
            secrets,
            news,
            all: BTreeMap::new(),
            requesting: Vec::new(),
            listed: Vec::new(),
            actions: VecDeque::new(),
        }
    }

    fn open(&mut self, id: ClientId, connection: NewConnection) {
        let (face, access) = match connection {
            NewConnection::Written(setup, output) => {
                let (via, access) = (setup.via, setup.access);
                debug!(client = id.0, ?via, ?access, "client connected");
                let join = setup.settings.map(|own| ClientAction::Join(id, own));
                self.actions.extend(join);
                let face = Face::written(setup.face, output, &self.secrets);
                (face, access)
            }
            #[cfg(any(feature = "listen", test))]
            NewConnection::Direct(access, output) => {
                debug!(client = id.0, via = "http", ?access, "client connected");
                (Face::direct(output, &self.secrets), access)
            }
        };
        self.all.insert(id, ConnectedClient::new(face, access));
    }

    fn close(&mut self, id: ClientId) {
        if let Some(client) = self.all.remove(&id) {
            debug!(client = id.0, "client disconnected");
            client.face.close();
            self.actions.push_back(ClientAction::Leave(id));
        }
    }

    /// Takes what has happened to connections outside of the queue of events.
    fn take_news(&mut self) {
        for id in self.news.dropped() {
            self.close(id);
        }
        for (id, client) in &mut self.all {
            client.update_pressure();
            // A call may have waited until the client has read.
            self.requesting.push(*id);
        }
    }

    /// Takes the next action of a client. `None` if no client requests any.
    fn action_of_client(&mut self) -> Option<ClientAction> {
        while let Some(id) = self.requesting.last().copied() {
            let action = self.all.get_mut(&id).and_then(ConnectedClient::next_action);
            let Some(action) = action else {
                self.requesting.pop();
                continue;
            };
            match action {
                ClientAction::Answer(_, request, answer) => {
                    return Some(ClientAction::Answer(id, request, answer));
                }
                ClientAction::Command(token, command) => {
                    let call = token.call;
                    let access = self.all.get(&id)?.access;
                    match admit(access, command) {
                        Admission::Pass(command) => {
                            return Some(ClientAction::Command(
                                Token { client: id, call },
                                command,
                            ));
                        }
                        Admission::Answer(answer) => {
                            self.reply(Token { client: id, call }, answer);
                        }
                        Admission::Leave(reply) => {
                            let client = self.client(id)?;
                            client.is_leaving = true;
                            self.reply(Token { client: id, call }, Ok(reply));
                        }
                    }
                }
                other => return Some(other),
            }
        }
        None
    }

    /// Returns a client that may receive something now.
    fn client(&mut self, id: ClientId) -> Option<&mut ConnectedClient> {
        let client = self.all.get_mut(&id)?;
        if !std::mem::replace(&mut client.is_listed, true) {
            self.listed.push(id);
        }
        Some(client)
    }
}

impl ClientSinks for Connections {
    fn sink(&mut self, client: ClientId) -> Option<&mut dyn ClientSink> {
        Some(self.client(client)?.face.sink())
    }

    fn is_client_full(&mut self, client: ClientId) -> bool {
        let client = self.all.get(&client);
        client.is_some_and(|client| client.face.sink_ref().is_full())
    }

    fn is_client_lagging(&mut self, client: ClientId) -> bool {
        let client = self.all.get(&client);
        client.is_some_and(|client| client.face.sink_ref().is_lagging())
    }
}

impl ClientConnection for Connections {
    type Input = ConnectionEvent<NewConnection>;

    fn input(&mut self, input: Self::Input) {
        match input {
            ConnectionEvent::Opened(id, setup) => self.open(id, setup),
            ConnectionEvent::Action(id, action) => {
                if let Some(client) = self.client(id) {
                    client.face.act(action);
                    self.requesting.push(id);
                }
            }
            ConnectionEvent::Input(id, input, _queued) => {
                if let Some(client) = self.client(id) {
                    client.input(input);
                    self.requesting.push(id);
                }
            }
            ConnectionEvent::Closed(id) => self.close(id),
            ConnectionEvent::Metrics(wanted) => {
                self.actions.push_back(ClientAction::Metrics(wanted));
            }
        }
    }

    fn input_ended(&mut self) {
        self.actions.push_back(ClientAction::End);
    }

    fn interrupted(&mut self, first: bool, _: Interrupt) {
        self.actions.push_back(ClientAction::of_signal(first));
    }

    fn max_read_delay(&self) -> Option<Duration> {
        None
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        self.actions.pop_front().or_else(|| self.action_of_client())
    }

    async fn room(&mut self, _: bool) {
        self.news.arrival().await;
        self.take_news();
    }

    fn refuse(&mut self, client: ClientId, why: Error) {
        error!(client = client.0, %why, "client disconnected");
        self.close(client);
    }

    fn take_output(&mut self, _: &mut Vec<u8>) {
        // The face of a client may answer output with an action: the reply to a call leads to the next call, for
        // example. The error of an action that the client may not make is output, too, so this is first.
        self.requesting.extend(&self.listed);
        if self.actions.is_empty() {
            let action = self.action_of_client();
            self.actions.extend(action);
        }
        for id in std::mem::take(&mut self.listed) {
            let Some(client) = self.all.get_mut(&id) else {
                continue;
            };
            client.is_listed = false;
            let is_open = client.deliver();
            if !is_open {
                warn!(
                    client = id.0,
                    "the client does not read its output; disconnected"
                );
            }
            if !is_open || client.is_leaving {
                self.close(id);
            }
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        for client in self.all.values() {
            client.face.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::acp::client::FaceSettings;
    use acpipe_core::client::{Command, Reply};
    use acpipe_core::client_sink::ChunkAddress;
    use acpipe_host::{ClientChannel, Connector, FULL, connections};
    use acpipe_model::acp_client::AcpCommand;
    use acpipe_protocol::wire::{Done, PromptWhenBusy};
    use tokio::sync::mpsc;

    type Events = mpsc::Receiver<ConnectionEvent<NewConnection>>;

    fn loop_of_connections() -> (Connector<NewConnection>, Events, Connections) {
        let (connector, events, news) = connections();
        (
            connector,
            events,
            Connections::new(Secrets::default(), news),
        )
    }

    async fn open(
        connector: &Connector<NewConnection>,
        face: ClientFace,
        access: ClientAccess,
    ) -> ClientChannel<NewConnection> {
        let setup = ConnectionSetup {
            face,
            access,
            via: Via::Socket,
            settings: None,
        };
        let new = |output| NewConnection::Written(setup, output);
        connector.open(new).await.unwrap()
    }

    fn chunk(clients: &mut Connections, id: ClientId, size: usize) {
        let address = ChunkAddress {
            session: "s",
            turn: None,
            seq: 1,
        };
        let sink = clients.sink(id).unwrap();
        sink.json_chunk(address, &vec![b'x'; size]);
        clients.take_output(&mut Vec::new());
    }

    #[tokio::test]
    async fn call_that_waited_for_room_is_made_when_the_client_has_read() {
        let (connector, mut events, mut clients) = loop_of_connections();
        let mut connection = open(&connector, ClientFace::Neutral, ClientAccess::Full).await;
        let id = connection.input.id();
        clients.input(events.recv().await.unwrap());
        chunk(&mut clients, id, FULL + 1);
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"agent/list"}"#;
        connection.input.message(call.to_vec()).await.unwrap();
        clients.input(events.recv().await.unwrap());
        assert!(clients.next_action().is_none());
        assert!(connection.output.next().await.is_some());
        chunk(&mut clients, id, 1);
        // The client has read the large chunk, and other output shows that before the news arrive.
        assert!(connection.output.next().await.is_some());
        chunk(&mut clients, id, 1);
        clients.room(false).await;
        let action = clients.next_action();
        assert!(
            matches!(action, Some(ClientAction::Command(token, _)) if token.client == id),
            "{action:?}"
        );
    }

    /// Opens a connection of a client that speaks ACP. It has sent a load, of which the hub has the first call.
    async fn loading(
        access: ClientAccess,
    ) -> (ClientChannel<NewConnection>, Events, Connections, Token) {
        let (connector, mut events, mut clients) = loop_of_connections();
        let settings = FaceSettings {
            agents: vec!["a".to_owned()],
            id_prefix: String::new(),
            when_busy: PromptWhenBusy::default(),
        };
        let connection = open(&connector, ClientFace::Acp(settings), access).await;
        clients.input(events.recv().await.unwrap());
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#,
        ] {
            let message = message.as_bytes().to_vec();
            connection.input.message(message).await.unwrap();
            clients.input(events.recv().await.unwrap());
        }
        let mut load = None;
        while let Some(action) = clients.next_action() {
            if let ClientAction::Command(token, Command::Acp(AcpCommand::Replay { .. })) = action {
                load = Some(token);
            }
        }
        clients.take_output(&mut Vec::new());
        assert!(clients.next_action().is_none());
        (connection, events, clients, load.unwrap())
    }

    #[tokio::test]
    async fn reply_leads_to_the_next_call_without_a_message_of_the_client() {
        let (_connection, _events, mut clients, load) = loading(ClientAccess::Full).await;
        ClientSinks::reply(&mut clients, load, Ok(Reply::Done(Done::default())));
        clients.take_output(&mut Vec::new());
        let action = clients.next_action();
        assert!(
            matches!(action, Some(ClientAction::Command(_, Command::Ensure(_)))),
            "{action:?}"
        );
        assert!(clients.next_action().is_none());
    }

    #[tokio::test]
    async fn refusal_of_a_call_that_follows_a_reply_is_sent_at_once() {
        let (mut connection, _events, mut clients, load) = loading(ClientAccess::Observer).await;
        // The refusal of the connection to an agent.
        let mut output = connection.output.next().await.unwrap();
        ClientSinks::reply(&mut clients, load, Ok(Reply::Done(Done::default())));
        clients.take_output(&mut Vec::new());
        assert!(clients.next_action().is_none());
        output.extend(connection.output.next().await.unwrap());
        let output = String::from_utf8(output).unwrap();
        assert!(output.contains(r#""id":2,"error""#), "{output}");
    }

    #[tokio::test]
    async fn reply_that_the_hub_kept_for_a_lagging_client_reaches_its_call() {
        let (connector, mut events, mut clients) = loop_of_connections();
        let mut connection = open(&connector, ClientFace::Neutral, ClientAccess::Full).await;
        clients.input(events.recv().await.unwrap());
        let call = br#"{"jsonrpc":"2.0","id":7,"method":"agent/list"}"#;
        connection.input.message(call.to_vec()).await.unwrap();
        clients.input(events.recv().await.unwrap());
        let Some(ClientAction::Command(token, _)) = clients.next_action() else {
            panic!("no call");
        };
        assert_eq!(token.client, connection.input.id());
        let sink = clients.sink(token.client).unwrap();
        sink.reply(token, Ok(Reply::Done(Done::default())));
        clients.take_output(&mut Vec::new());
        let output = String::from_utf8(connection.output.next().await.unwrap()).unwrap();
        assert!(output.contains(r#""id":7,"result""#), "{output}");
    }

    #[tokio::test]
    async fn client_that_leaves_is_reported_once() {
        let (connector, mut events, mut clients) = loop_of_connections();
        let connection = open(&connector, ClientFace::Neutral, ClientAccess::Full).await;
        let id = connection.input.id();
        clients.input(events.recv().await.unwrap());
        connection.input.close().await;
        clients.input(events.recv().await.unwrap());
        drop(connection.output);
        clients.room(false).await;
        assert!(matches!(clients.next_action(), Some(ClientAction::Leave(left)) if left == id));
        assert!(clients.next_action().is_none());
    }
}
