//! Files and commands that acpipe serves to agents: every path and program exists, unless a random failure
//! occurs; commands print a little and end at some time.

use super::dice::Dice;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::host::{Access, HostAnswer, HostEffect, HostEvent, TerminalExit, TerminalId};
use std::collections::{BTreeSet, VecDeque};

/// Running commands, and events that the hub has not received.
#[derive(Debug, Default)]
pub struct Host {
    running: BTreeSet<TerminalId>,
    said: VecDeque<HostEvent>,
}

impl Host {
    /// Performs an effect of the hub.
    pub fn perform(&mut self, effect: HostEffect, dice: &mut Dice) {
        let fails = dice.percent(10);
        match effect {
            HostEffect::File { ticket, access, .. } => {
                let answer = match access {
                    _ if fails => Err(Error::new(ErrorKind::Resource, "it cannot be had")),
                    Access::Read { .. } => Ok(HostAnswer::Content("x".to_owned())),
                    Access::Write { .. } => Ok(HostAnswer::Written),
                };
                self.said.push_back(HostEvent::File(ticket, answer));
            }
            HostEffect::Start(id, _) if fails => {
                let error = Error::new(ErrorKind::AgentNotFound, "there is no such program");
                self.said.push_back(HostEvent::StartFailed(id, error));
            }
            HostEffect::Start(id, _) => {
                assert!(self.running.insert(id), "{id:?} was started twice");
                self.said.push_back(HostEvent::Started(id));
            }
            HostEffect::Kill(id) => self.end(id, None),
            // Every request was answered above, and this host has no directories.
            HostEffect::StopFile(_)
            | HostEffect::HoldRoots { .. }
            | HostEffect::ReleaseRoots(_) => {}
        }
    }

    fn end(&mut self, id: TerminalId, code: Option<i32>) {
        if self.running.remove(&id) {
            let exit = TerminalExit { code, signal: None };
            self.said.push_back(HostEvent::Ended(id, exit));
            self.said.push_back(HostEvent::Gone(id));
        }
    }

    /// Lets a command print something, or end.
    pub fn act(&mut self, dice: &mut Dice) {
        let running: Vec<TerminalId> = self.running.iter().copied().collect();
        if running.is_empty() {
            return;
        }
        let id = dice.pick(&running);
        if dice.percent(40) {
            self.end(id, Some(0));
        } else {
            let output = HostEvent::Output(id, "out \u{e9}\n".into());
            self.said.push_back(output);
        }
    }

    /// Ends all commands.
    pub fn end_all(&mut self) {
        for id in self.running.clone() {
            self.end(id, Some(0));
        }
    }

    /// Returns the next event for the hub.
    pub fn next(&mut self) -> Option<HostEvent> {
        self.said.pop_front()
    }

    /// Returns `true` if events are still to come.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.said.is_empty()
    }
}
