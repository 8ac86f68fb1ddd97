//! Clients that join and leave.

use super::super::client::Client;
use super::World;
use acpipe_core::client::{ClientId, Command};
use acpipe_core::hub::HubCx;

impl World {
    /// Connects a client with this profile and random capabilities.
    pub(super) fn connect_client(&mut self, profile: u8) -> ClientId {
        let answers = self.dice.percent(70);
        let serves = self.dice.percent(30);
        let can = format!(
            r#"{{"permissions":{answers},"questions":{answers},"fs":{{"readTextFile":{serves}}},"terminal":{serves}}}"#
        );
        let hello =
            format!(r#"{{"protocolVersion":1,"chunkProfile":{profile},"capabilities":{can}}}"#);
        let hello = serde_json::from_str(&hello).unwrap();
        let fails = self.disk.failures() > 0;
        let mut client = Client::default();
        (client.answers, client.serves) = (answers, serves);
        client.slow_disk = self.disk.is_slow();
        client.disk_fails = self.disk_fails;
        client.disk_failed = fails || self.disk_fails;
        client.verbose = self.verbose;
        let id = self.clients.add(client);
        self.ask_as(id, "initialize", Command::Initialize(hello));
        self.clients.get(id).sees_all = profile == 7;
        self.settle();
        id
    }

    /// Connects another client.
    pub(super) fn client_joins(&mut self) {
        let profile = self.dice.pick(&[7, 7, 7, 7, 7, 7, 6, 5]);
        self.connect_client(profile);
    }

    /// Disconnects a random client, except the first.
    pub(super) fn client_leaves(&mut self) {
        let id = self.clients.any(&mut self.dice);
        if id == ClientId::FIRST {
            return;
        }
        self.trace(|| format!("{id:?} leaves"));
        self.clients.remove(id);
        self.hub.wake(self.now);
        self.hub
            .client_left(id, &mut HubCx::new(self.now, &mut self.clients));
    }
}
