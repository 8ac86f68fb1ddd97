//! Tests of processes that get all of their input at once and exit by themselves.

use super::play::{Play, params};
use crate::client::Command;
use crate::hub::AgentInput;
use acpipe_model::dialect::{Child, TransportOrder};
use acpipe_protocol::wire::AgentState;
use serde_json::json;

#[test]
fn closed_streams_of_a_one_shot_process_are_accepted() {
    for one_shot in [true, false] {
        for input in [AgentInput::OutputClosed, AgentInput::InputClosed] {
            let mut play = Play::new();
            play.ask(Command::Connect(params(json!({}))));
            play.ready();
            if one_shot {
                let out = play.hub.connection();
                out.order(Child::MAIN, TransportOrder::FinishInput);
            }
            play.sent();
            play.hear(input);
            let state = play.hub.status(play.now).state;
            let want = if one_shot {
                AgentState::Ready
            } else {
                AgentState::Stopping
            };
            assert_eq!(state, want);
        }
    }
}
