//! End of a world: everything is answered, then everything ends.

use super::super::client::Client;
use super::super::logs;
use super::{MAX_ROUNDS, World};
use acpipe_core::client::Command;
use acpipe_core::hub::HubCx;
use acpipe_protocol::wire::AgentParams;
use serde_json::value::RawValue;

impl World {
    /// Ends all faults and answers everything that is open.
    pub fn end_faults(&mut self) {
        self.disk.fail(0);
        self.disk_fails = false;
        for client in self.clients.iter_mut() {
            client.disk_fails = false;
            client.room = None;
        }
        for _ in 0..MAX_ROUNDS {
            self.deliver_all();
            let mut quiet = true;
            for process in self.processes.values_mut() {
                quiet &= !process.answer_all(&mut self.dice, true);
            }
            self.deliver_all();
            while self.sync() {
                quiet = false;
            }
            self.host_ends();
            while let Some((id, ask)) = self.clients.next_ask() {
                let client = self.clients.get(id);
                client.open_requests.remove(&ask);
                client.decided.push(ask);
                self.answered.insert(ask);
                let answer = Ok(RawValue::NULL.to_owned());
                self.hub.client_answered(
                    id,
                    ask,
                    &answer,
                    &mut HubCx::new(self.now, &mut self.clients),
                );
                self.settle();
                quiet = false;
            }
            self.settle();
            // Whatever is still open must be answered by a timeout.
            if !quiet || self.process_with_output().is_some() {
                continue;
            }
            let Some((at, _)) = self.hub.deadline() else {
                break;
            };
            self.now = at.max(self.now);
            self.tick();
        }
        for client in self.clients.iter() {
            let waiting = &client.waiting;
            assert!(waiting.is_empty(), "nobody answers {waiting:?}");
        }
        self.ask("status", Command::Status(AgentParams::default()));
        let list = serde_json::from_str("{}").unwrap();
        let list = acpipe_core::client::History::ListSessions(list);
        self.ask("session/list", Command::History(list));
        while self.sync() {}
        self.settle();
        let all = self.clients.first().list.take().expect("a list");
        let opening = |s: &&serde_json::Value| s["state"] == "opening";
        let sessions = all["sessions"].as_array().unwrap();
        assert_eq!(sessions.iter().find(opening), None, "it is left so");
        let live = sessions.iter().filter(|s| s["state"] == "live").count();
        assert!(live <= self.max_sessions.unwrap_or(live), "{live} are live");
    }

    /// The client leaves, and everything comes to its end.
    pub fn finish(&mut self) {
        for client in self.clients.iter_mut() {
            client.room = None;
        }
        self.settle();
        self.hub
            .client_disconnected(&mut HubCx::new(self.now, &mut self.clients));
        for _ in 0..MAX_ROUNDS {
            self.deliver_all();
            while self.sync() {}
            self.host_ends();
            self.settle();
            if self.finished {
                break;
            }
            if let Some((at, _)) = self.hub.deadline() {
                self.now = at.max(self.now);
                self.tick();
            }
        }
        assert!(self.finished, "it does not end");
        for client in self.clients.iter() {
            let waiting = &client.waiting;
            assert!(waiting.is_empty(), "nobody answered {waiting:?}");
        }
        assert_eq!(self.hub.deadline(), None);
        let lives = self.processes.values().any(|process| process.lives);
        assert!(!lives, "a process is left");
        let open_requests = self.clients.open_requests();
        assert!(
            open_requests.is_empty(),
            "nobody waits for the answers to {open_requests:?}"
        );
        let failed = self.disk.failures() > 0;
        let open = self.clients.iter().flat_map(Client::open_turns).next();
        assert_eq!(open, None, "it did not end");
        self.clients.check_messages(&self.disk.logs());
        self.clients.check_numbers(&self.disk.logs());
        for (id, kept) in self.disk.logs() {
            if let Err(why) = logs::check(&kept.bytes, !failed) {
                panic!("the log of {id}: {why}");
            }
        }
    }
}
