//! Tests of agents and sessions of other clients: options that a client gives to the agent, sessions of the agent that it adopts.

use super::super::fixture::{A, B, C};
use super::{WAYS, daemon};
use crate::client::Command;
use crate::testing::params;
use acpipe_model::error::ErrorKind;
use acpipe_policy::Mode;
use serde_json::json;

#[test]
fn another_client_cannot_change_the_options_of_an_agent_that_a_client_defined() {
    for way in WAYS {
        for (client, options, is_refused) in [
            (B, json!({"disallowedTools": ["Bash"]}), true),
            (C, json!({"disallowedTools": ["Bash"]}), true),
            (B, json!({"mode": "free"}), true),
            (B, json!({"disallowedTools": ["Edit"]}), false),
            (A, json!({"disallowedTools": ["Bash"]}), false),
        ] {
            for command in [Some("own"), Some("other"), None] {
                let mut t = daemon();
                t.join(A, Mode::Approve, &[]);
                t.join(B, Mode::Approve, &[]);
                t.connect_with(C, &json!({}));
                t.define_with(A, way, &json!({"disallowedTools": ["Edit"]}));
                let mut connect = json!({"agent": "own", "options": options});
                if let Some(command) = command {
                    connect["command"] = command.into();
                }
                let call = t.call(client, Command::Connect(params(connect.clone())));
                t.answer_all();
                let case = format!("{way:?} {client:?} {connect}");
                let error = t.reply(client, call).and_then(Result::err);
                if is_refused {
                    assert_eq!(error, Some(ErrorKind::InvalidParams), "{case}");
                    t.ensure_own(A, "s");
                    assert_eq!(t.chosen_for(A, "s", "edit"), "n", "{case}");
                } else {
                    assert_ne!(error, Some(ErrorKind::InvalidParams), "{case}");
                }
            }
        }
    }
}

/// Clients with other settings have another process of the agent, which does not know that the session is open.
#[test]
fn session_of_the_agent_that_is_open_cannot_be_adopted_by_a_client_with_other_settings() {
    for mode in [Mode::Deny, Mode::Approve] {
        let mut t = daemon();
        t.join(A, Mode::Deny, &[]);
        t.join(B, mode, &[]);
        let call = t.call(A, Command::Ensure(params(json!({"sessionId": "s"}))));
        t.answer_all();
        let agent_session = t.result(A, call)["agentSessionId"].clone();
        let adopt = json!({"sessionId": "t", "agentSessionId": agent_session});
        let call = t.call(B, Command::Ensure(params(adopt)));
        t.answer_all();
        assert_eq!(
            t.reply(B, call),
            Some(Err(ErrorKind::SessionExists)),
            "{mode:?}"
        );
    }
}
