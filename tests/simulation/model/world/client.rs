//! Calls and answers of the client, and the files and terminals that are served.

use super::super::asks;
use super::super::client::Asked;
use super::World;
use acpipe::core::ask::{AskId, Refusal};
use acpipe::core::client::{Command, Token};
use serde_json::value::RawValue;

impl World {
    pub(super) fn client_asks(&mut self) {
        let ask = asks::any(&mut self.dice, &mut self.turns);
        self.client.again.extend(ask.again);
        self.give(ask.command, ask.asked);
    }

    /// What is served goes on.
    pub(super) fn host_acts(&mut self) {
        self.host.act(&mut self.dice);
        for _ in 0..=self.dice.below(3) {
            if let Some(event) = self.host.next() {
                self.tell(|| format!("{event:?}"));
                self.hub.wake(self.now);
                self.hub.hosted(event, self.now, &mut self.client);
            }
        }
    }

    /// All that is served comes to its end.
    pub(super) fn host_ends(&mut self) {
        self.host.end_all();
        while let Some(event) = self.host.next() {
            self.hub.wake(self.now);
            self.hub.hosted(event, self.now, &mut self.client);
            self.settle();
            self.host.end_all();
        }
    }

    /// The client answers what it was asked, or what is decided long since.
    pub(super) fn client_answers(&mut self) {
        let open: Vec<AskId> = self.client.asks.iter().copied().collect();
        let decided = &self.client.decided;
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
            Err(Refusal {
                code: -32603,
                message: "went wrong".to_owned(),
            })
        } else {
            Ok(RawValue::from_string(answer.to_owned()).unwrap())
        };
        self.tell(|| format!("{ask:?} is answered {answer:?}"));
        if self.client.asks.remove(&ask) {
            self.client.decided.push(ask);
        }
        self.hub.wake(self.now);
        self.hub
            .client_answered(ask, &answer, self.now, &mut self.client);
    }

    pub(super) fn ask(&mut self, what: &'static str, command: Command) {
        let session = "default".to_owned();
        self.give(command, Asked { what, session });
    }

    fn give(&mut self, command: Command, asked: Asked) {
        self.tokens += 1;
        self.client.waiting.insert(self.tokens, asked);
        let token = Token(self.tokens);
        self.tell(|| format!("{token:?} {command:?}"));
        self.hub.wake(self.now);
        self.hub.command(token, command, self.now, &mut self.client);
    }
}
