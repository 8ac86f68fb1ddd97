//! Tests of the hub with its machines, in virtual time.

mod acp_replay;
mod agent_requests;
mod attach;
mod background_turn;
mod call_ids;
mod changed_calls;
mod claims;
mod claude;
mod claude_rules;
mod clients;
mod closing;
mod content;
mod crossings;
mod execute;
mod fixture;
mod hook_policy;
mod idle;
mod in_process;
mod lost_calls;
mod metrics;
mod one_shot;
mod panics;
mod play;
mod reads;
mod request_ids;
mod restart;
mod run_reports;
mod scopes;
mod set;
mod slow_disk;
mod summaries;
mod timers;
mod turn_reports;
mod unended_calls;
mod update_runs;
mod waits;

use super::Hub;
use super::agents::Agents;
use crate::agent::Connection;
use acpipe_protocol::wire::AgentStatus;
use std::time::Instant;

impl Hub {
    fn status(&self, now: Instant) -> AgentStatus {
        self.router
            .agents()
            .get(Agents::DEFAULT)
            .status(&self.router.shared().settings.secrets, now)
    }

    fn connection(&mut self) -> &mut Connection {
        let agent = self.router.agents_mut().get_mut(Agents::DEFAULT);
        agent.connection_mut().expect("the agent is connected")
    }
}
