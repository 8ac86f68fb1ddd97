//! The connected clients, and what each declared in `initialize`.

use super::client::ClientId;
use super::host::Offer;
use super::profile::Profile;
use super::subscribers::Subscription;
use crate::proto::wire::{ClientCapabilities, UnknownFields};

/// What a client declared in `initialize`.
#[derive(Debug, Clone)]
pub struct ClientDeclaration {
    pub capabilities: ClientCapabilities,
    pub unknown_fields: UnknownFields,
    /// The subscription of sessions that it opens from now on.
    pub subscription: Subscription,
    /// The session that its calls without an id mean.
    pub default_session: Option<DefaultSession>,
}

/// The session that calls without an id mean, once the client ensured it.
#[derive(Debug, Clone)]
pub struct DefaultSession {
    pub id: String,
    pub cwd: String,
}

impl ClientDeclaration {
    /// What a client declares that says nothing: it receives chunks in this profile, and cannot be asked.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            capabilities: ClientCapabilities::default(),
            unknown_fields: UnknownFields::default(),
            subscription: Subscription {
                chunks: true,
                profile,
            },
            default_session: None,
        }
    }

    /// The files and terminals that the client serves.
    #[must_use]
    pub fn offer(&self) -> Offer {
        let can = &self.capabilities;
        Offer {
            read_files: can.fs.read_text_file,
            write_files: can.fs.write_text_file,
            terminals: can.terminal,
        }
    }
}

/// The clients that have called `initialize` and have not left.
#[derive(Debug, Default)]
pub struct Clients(Vec<(ClientId, ClientDeclaration)>);

impl Clients {
    /// Notes what a client declares; it may do so again.
    pub fn declare(&mut self, client: ClientId, declaration: ClientDeclaration) {
        match self.get_mut(client) {
            Some(earlier) => *earlier = declaration,
            None => self.0.push((client, declaration)),
        }
    }

    /// Forgets a client that has left.
    pub fn remove(&mut self, client: ClientId) {
        self.0.retain(|(id, _)| *id != client);
    }

    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<&ClientDeclaration> {
        let mut all = self.0.iter();
        all.find_map(|(id, declaration)| (*id == client).then_some(declaration))
    }

    #[must_use]
    pub fn get_mut(&mut self, client: ClientId) -> Option<&mut ClientDeclaration> {
        let mut all = self.0.iter_mut();
        all.find_map(|(id, declaration)| (*id == client).then_some(declaration))
    }

    pub fn ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    /// Whether a client can answer such requests.
    #[must_use]
    pub fn can(&self, client: ClientId, has: impl Fn(&ClientCapabilities) -> bool) -> bool {
        self.get(client)
            .is_some_and(|declaration| has(&declaration.capabilities))
    }

    /// The clients that can answer such requests.
    pub fn that_can(
        &self,
        has: impl Fn(&ClientCapabilities) -> bool,
    ) -> impl Iterator<Item = ClientId> {
        let able = self.0.iter().filter(move |(_, d)| has(&d.capabilities));
        able.map(|(id, _)| *id)
    }

    /// What a client does with fields that it does not know.
    #[must_use]
    pub fn unknown_fields(&self, client: ClientId) -> UnknownFields {
        self.get(client)
            .map(|declaration| declaration.unknown_fields)
            .unwrap_or_default()
    }

    /// The files and terminals that at least one client serves.
    #[must_use]
    pub fn offer(&self) -> Offer {
        let offers = self.0.iter().map(|(_, declaration)| declaration.offer());
        offers.fold(Offer::default(), Offer::or)
    }
}
