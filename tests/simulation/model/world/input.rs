//! Input from agents, in the pieces and at the time in which the loop would read it.

use super::super::agent::LineEffect;
use super::super::client::Client;
use super::process::{Agent, Backlog, ProcessOutput};
use super::{MAX_ROUNDS, World};
use acpipe_core::hub::{AgentId, AgentInput, Exit, HubCx};
use acpipe_json::frame::{Batch, Overlong, lines};

impl World {
    /// Returns a random process with undelivered output.
    pub(super) fn process_with_output(&mut self) -> Option<u64> {
        let talks = self.processes.iter().filter(|(_, p)| !p.said.is_empty());
        let ids: Vec<u64> = talks.map(|(id, _)| *id).collect();
        (!ids.is_empty()).then(|| self.dice.pick(&ids))
    }

    pub(super) fn agent_acts(&mut self) {
        let Some(id) = self.any_process() else { return };
        let dice = &mut self.dice;
        let Some(process) = self.processes.get_mut(&id).filter(|p| p.lives) else {
            return;
        };
        let lines = match &mut process.agent {
            Agent::Acp(acp) => acp.act(dice),
            Agent::Claude(claude) => claude.act(dice),
            Agent::Plain | Agent::Loopback => Vec::new(),
        };
        process
            .said
            .extend(lines.into_iter().map(ProcessOutput::Line));
    }

    pub(super) fn process_fails(&mut self) {
        let Some(id) = self.any_process() else { return };
        let how = self.dice.below(8);
        let code = Some(i32::try_from(self.dice.below(3)).unwrap());
        let Some(process) = self.processes.get_mut(&id).filter(|p| p.lives) else {
            return;
        };
        if matches!(process.agent, Agent::Plain | Agent::Loopback) && how != 0 {
            return;
        }
        let input = match how {
            0..=3 => {
                process.lives = false;
                let exit = Exit {
                    code,
                    ..Exit::default()
                };
                AgentInput::Exited(exit)
            }
            4 => AgentInput::OutputClosed,
            5 => AgentInput::InputClosed,
            6 => AgentInput::InputStuck,
            _ => {
                let head: &[u8] = self.dice.pick(&[
                    b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",".as_slice(),
                    b"{\"type\":\"control_request\",\"request_id\":\"long\",",
                    b"{\"type\":\"assistant\",",
                    b"xxxxxx",
                ]);
                AgentInput::Batch(Batch::TooLong(Overlong {
                    len: 1 << 30,
                    head: head.to_vec().into(),
                    tail: b"xxx}".as_slice().into(),
                }))
            }
        };
        process.is_stopping |= !matches!(input, AgentInput::Batch(_));
        process.said.push_back(ProcessOutput::Event(input));
    }

    /// Returns `true` if the loop does not read from agents now.
    pub(super) fn is_read_paused(&self) -> bool {
        self.clients.are_all_full() || !self.backlog.is_empty()
    }

    /// Delivers one event of a process to the hub, or a batch of at most so many lines.
    pub(super) fn deliver(&mut self, id: u64, many: usize) {
        if self.clients.are_all_full() || self.backlog.contains_key(&id) {
            return;
        }
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        let mut text = Vec::new();
        let mut marks = Vec::new();
        while marks.len() < many && matches!(process.said.front(), Some(ProcessOutput::Line(_))) {
            let Some(ProcessOutput::Line(line)) = process.said.pop_front() else {
                break;
            };
            text.extend(line.text);
            text.push(b'\n');
            if let Some(ledger) = process.agent.ledger() {
                ledger.given(&line.mark);
            }
            marks.push(line.mark);
        }
        let input = if marks.is_empty() {
            match process.said.pop_front() {
                Some(ProcessOutput::Event(input)) => input,
                _ => return,
            }
        } else {
            AgentInput::Batch(Batch::Lines(text.into()))
        };
        self.hear(id, input, marks);
    }

    pub(super) fn hear(&mut self, from: u64, input: AgentInput, marks: Vec<LineEffect>) {
        let over = matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_));
        self.trace(|| format!("process {from} says {input:?}"));
        self.hub.wake(self.now);
        let rest = self.hub.agent(
            AgentId(from),
            input,
            &mut HubCx::new(self.now, &mut self.clients),
        );
        if over {
            assert!(rest.is_none(), "an end was not taken");
            self.processes.remove(&from);
        }
        let left = match &rest {
            Some(AgentInput::Batch(Batch::Lines(left))) => lines(left).count(),
            Some(other) => panic!("{other:?} was not taken"),
            None => 0,
        };
        let mut marks = marks;
        let unread = marks.split_off(marks.len().saturating_sub(left));
        if let Some(process) = self.processes.get_mut(&from)
            && let Some(ledger) = process.agent.ledger()
        {
            for mark in &marks {
                ledger.read(mark);
            }
        }
        if let Some(rest) = rest {
            assert!(
                self.clients.is_some_full(),
                "something was not taken though there is room"
            );
            let marks = unread;
            self.backlog.insert(from, Backlog { rest, marks });
        }
        self.hand_over();
    }

    /// Delivers the backlog, as far as clients have room.
    pub(super) fn deliver_backlog(&mut self) {
        if self.clients.are_all_full() {
            self.read_paused_since.get_or_insert(self.now);
            return;
        }
        if let Some(since) = self.read_paused_since.take() {
            self.hub.postpone(self.now - since);
        }
        let waiting = std::mem::take(&mut self.backlog);
        let some = !waiting.is_empty();
        for (from, Backlog { rest, marks }) in waiting {
            self.hear(from, rest, marks);
        }
        if some {
            self.drain();
        }
        if !self.backlog.is_empty() {
            self.read_paused_since.get_or_insert(self.now);
        }
    }

    pub(super) fn drain(&mut self) {
        self.hub.drained(
            self.backlog.is_empty(),
            &mut HubCx::new(self.now, &mut self.clients),
        );
        self.hand_over();
    }

    pub(super) fn hand_over(&mut self) {
        self.hub
            .commit(&mut HubCx::new(self.now, &mut self.clients));
        self.clients.iter_mut().for_each(Client::hand_over);
    }

    pub(super) fn deliver_all(&mut self) {
        for _ in 0..MAX_ROUNDS {
            self.settle();
            let Some(id) = self.process_with_output() else {
                return;
            };
            self.deliver(id, usize::MAX);
            self.drain();
        }
        panic!("agents talk without end");
    }
}
