//! Connected clients, and the declarations of each in `initialize`.

use super::client::ClientId;
use super::profile::Profile;
use super::subscribers::{Participation, Subscription};
use acpipe_model::acp_client::AcpClient;
use acpipe_model::host::HostServices;
use acpipe_protocol::wire::{
    ClientCapabilities, DecidingClient, OnDisconnect, PeerInfo, Role, UnknownFields,
};
use std::sync::Arc;

/// Declarations of a client in `initialize`, and its defaults.
#[derive(Debug, Clone)]
pub struct ClientDeclaration {
    pub info: Option<PeerInfo>,
    /// Effect of the client's departure on sessions for which it names no other one.
    pub on_disconnect: OnDisconnect,
    /// The most that the client may do.
    pub role: Role,
    /// Notifications that the client receives, and requests that it answers.
    pub capabilities: ClientCapabilities,
    pub unknown_fields: UnknownFields,
    /// Subscription for sessions that the client opens from now on.
    pub subscription: Subscription,
    /// Session for calls without a session id; `None` until the client ensures one.
    pub default_session: Option<DefaultSession>,
    /// Declarations of a client that speaks ACP; `None` for other clients.
    pub acp: Option<Arc<AcpClient>>,
}

/// Services of clients that an agent may use: files and terminals, and what a client that speaks ACP declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientServices {
    /// Files and terminals.
    pub host: HostServices,
    /// Client that speaks ACP; it also gets requests of methods that acpipe does not interpret.
    pub acp: Option<Arc<AcpClient>>,
}

/// Default session of a client: the session for calls without a session id, once the client ensured it.
#[derive(Debug, Clone)]
pub struct DefaultSession {
    /// The client's id of the session.
    pub id: String,
    pub cwd: String,
}

impl ClientDeclaration {
    /// Creates the default declaration: the client receives chunks in this profile and answers no requests.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            info: None,
            on_disconnect: OnDisconnect::default(),
            role: Role::default(),
            capabilities: ClientCapabilities::default(),
            unknown_fields: UnknownFields::default(),
            subscription: Subscription {
                chunks: true,
                updates: false,
                profile,
            },
            default_session: None,
            acp: None,
        }
    }

    /// Returns the part that the client takes in a session unless it attaches with another one.
    #[must_use]
    pub fn participation(&self) -> Participation {
        Participation {
            role: self.role,
            on_disconnect: self.on_disconnect,
        }
    }

    /// Returns the files and terminals that the client serves.
    #[must_use]
    pub fn offer(&self) -> HostServices {
        let can = &self.capabilities;
        HostServices {
            read_files: can.fs.read_text_file,
            write_files: can.fs.write_text_file,
            terminals: can.terminal,
        }
    }

    #[must_use]
    pub fn services(&self) -> ClientServices {
        ClientServices {
            host: self.offer(),
            acp: self.acp.clone(),
        }
    }
}

/// Clients that have called `initialize` and have not left.
#[derive(Debug, Default)]
pub struct Clients {
    all: Vec<(ClientId, ClientDeclaration)>,
    /// Whether a client speaks ACP; checked for each update.
    have_acp: bool,
}

impl Clients {
    /// Stores the declaration of a client, and replaces an earlier one.
    pub fn declare(&mut self, client: ClientId, declaration: ClientDeclaration) {
        match self.get_mut(client) {
            Some(earlier) => *earlier = declaration,
            None => self.all.push((client, declaration)),
        }
        self.have_acp = self.acp().is_some();
    }

    pub fn remove(&mut self, client: ClientId) {
        self.all.retain(|(id, _)| *id != client);
        self.have_acp = self.acp().is_some();
    }

    #[inline]
    #[must_use]
    pub fn have_acp(&self) -> bool {
        self.have_acp
    }

    /// Returns the declaration of a client; `None` before its `initialize`.
    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<&ClientDeclaration> {
        let mut all = self.all.iter();
        all.find_map(|(id, declaration)| (*id == client).then_some(declaration))
    }

    /// Returns the declaration of a client for changes; `None` before its `initialize`.
    #[must_use]
    pub fn get_mut(&mut self, client: ClientId) -> Option<&mut ClientDeclaration> {
        let mut all = self.all.iter_mut();
        all.find_map(|(id, declaration)| (*id == client).then_some(declaration))
    }

    /// Returns the id and the name of a client in the form in which other clients receive them.
    #[must_use]
    pub fn deciding(&self, client: ClientId) -> DecidingClient {
        let info = self.get(client).and_then(|d| d.info.as_ref());
        DecidingClient {
            client_id: client.to_string(),
            name: info.map(|info| info.name.clone()),
        }
    }

    pub fn ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.all.iter().map(|(id, _)| *id)
    }

    #[must_use]
    pub fn can(&self, client: ClientId, has: impl Fn(&ClientCapabilities) -> bool) -> bool {
        self.get(client)
            .is_some_and(|declaration| has(&declaration.capabilities))
    }

    pub fn declared(
        &self,
        wanted: impl Fn(&ClientDeclaration) -> bool,
    ) -> impl Iterator<Item = ClientId> {
        let all = self
            .all
            .iter()
            .filter(move |(_, declaration)| wanted(declaration));
        all.map(|(id, _)| *id)
    }

    pub fn with_capability(
        &self,
        has: impl Fn(&ClientCapabilities) -> bool,
    ) -> impl Iterator<Item = ClientId> {
        let able = self.all.iter().filter(move |(_, d)| has(&d.capabilities));
        able.map(|(id, _)| *id)
    }

    /// Returns the declarations of a client that speaks ACP, the first one if there are several.
    #[must_use]
    pub fn acp(&self) -> Option<(ClientId, &Arc<AcpClient>)> {
        let mut all = self.all.iter();
        all.find_map(|(id, declaration)| Some((*id, declaration.acp.as_ref()?)))
    }

    #[must_use]
    pub fn speaks_acp(&self, client: ClientId) -> bool {
        self.get(client)
            .is_some_and(|declaration| declaration.acp.is_some())
    }

    /// Returns the handling of unknown fields in a client's messages; the default before its `initialize`.
    #[must_use]
    pub fn unknown_fields(&self, client: ClientId) -> UnknownFields {
        self.get(client)
            .map(|declaration| declaration.unknown_fields)
            .unwrap_or_default()
    }

    #[must_use]
    pub fn services(&self) -> ClientServices {
        let offers = self.all.iter().map(|(_, declaration)| declaration.offer());
        ClientServices {
            host: offers.fold(HostServices::default(), HostServices::or),
            acp: self.acp().map(|(_, client)| Arc::clone(client)),
        }
    }
}
