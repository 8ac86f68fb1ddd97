//! Calls and answers of clients, and the served files and terminals.

use super::super::client::PendingCall;
use super::super::client_calls;
use super::World;
use acpipe_core::client::{ClientId, Command, Token};
use acpipe_core::client_request::{ClientRequestId, ErrorResponse};
use acpipe_core::hub::HubCx;
use serde_json::value::RawValue;

impl World {
    pub(super) fn client_calls(&mut self) {
        let ask = client_calls::any(&mut self.dice, &mut self.turns);
        for client in self.clients.iter_mut() {
            client.again.extend(ask.again.clone());
        }
        let id = self.clients.any(&mut self.dice);
        self.give(id, ask.command, ask.asked);
    }

    /// Advances the served files and terminals.
    pub(super) fn host_acts(&mut self) {
        self.host.act(&mut self.dice);
        for _ in 0..=self.dice.below(3) {
            if let Some(event) = self.host.next() {
                self.trace(|| format!("{event:?}"));
                self.hub.wake(self.now);
                self.hub
                    .handle_host_event(event, &mut HubCx::new(self.now, &mut self.clients));
            }
        }
    }

    /// Ends all served files and terminals.
    pub(super) fn host_ends(&mut self) {
        self.host.end_all();
        while let Some(event) = self.host.next() {
            self.hub.wake(self.now);
            self.hub
                .handle_host_event(event, &mut HubCx::new(self.now, &mut self.clients));
            self.settle();
            self.host.end_all();
        }
    }

    /// A client answers an open request, or one that was decided before.
    pub(super) fn client_answers(&mut self) {
        let id = self.clients.any(&mut self.dice);
        let client = self.clients.get(id);
        let open: Vec<ClientRequestId> = client.open_requests.iter().copied().collect();
        let decided = &client.decided;
        let late = open.is_empty() || self.dice.percent(20);
        let from = if late { decided } else { &open };
        if from.is_empty() {
            return;
        }
        let ask = self.dice.pick(from);
        let answer = self.dice.pick(&[
            r#"{"outcome":{"outcome":"selected","optionId":"y"}}"#,
            r#"{"outcome":{"outcome":"selected","optionId":"n","message":"no"}}"#,
            r#"{"outcome":{"outcome":"selected","optionId":"allow"}}"#,
            r#"{"outcome":{"outcome":"cancelled"}}"#,
            r#"{"action":"accept","content":{"a":"b"}}"#,
            r#"{"action":"decline"}"#,
            r#"{"content":"x"}"#,
            r#"{"terminalId":"own"}"#,
            r#"{"output":"o","truncated":false}"#,
            "{}",
            "null",
        ]);
        let answer = if self.dice.percent(10) {
            Err(ErrorResponse {
                code: -32603,
                message: "went wrong".to_owned(),
                data: None,
            })
        } else {
            Ok(RawValue::from_string(answer.to_owned()).unwrap())
        };
        self.trace(|| format!("{ask:?} is answered {answer:?}"));
        let client = self.clients.get(id);
        if client.open_requests.remove(&ask) {
            client.decided.push(ask);
            self.answered.insert(ask);
        }
        self.hub.wake(self.now);
        self.hub.client_answered(
            id,
            ask,
            &answer,
            &mut HubCx::new(self.now, &mut self.clients),
        );
    }

    pub(super) fn ask(&mut self, what: &'static str, command: Command) {
        self.ask_as(ClientId::FIRST, what, command);
    }

    pub(super) fn ask_as(&mut self, client: ClientId, what: &'static str, command: Command) {
        let session = "default".to_owned();
        self.give(client, command, PendingCall { what, session });
    }

    fn give(&mut self, client: ClientId, command: Command, asked: PendingCall) {
        self.tokens += 1;
        let call = self.tokens;
        self.clients.get(client).waiting.insert(call, asked);
        let token = Token { client, call };
        self.trace(|| format!("{token:?} {command:?}"));
        self.hub.wake(self.now);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.clients));
    }
}
