//! Agents inside the program that contains acpipe.

use crate::agent_definition::AgentDefinition;
use crate::agent_spec::AgentSpec;
use crate::client::{Command, Token};
use crate::hub::{Effect, Hub, HubCx};
use crate::testing::{RecordingClient, SettingsBuilder, params};
use acpipe_model::transport::Transport;
use acpipe_protocol::wire::{AgentListParams, ConnectParams, FoundBy, Program};
use serde_json::{Value, json};
use std::time::Instant;

/// Returns a hub whose default agent runs inside this program, its client, and the time.
fn hub() -> (Hub, RecordingClient, Instant) {
    let (now, mut client) = (Instant::now(), RecordingClient::default());
    let mut settings = SettingsBuilder::new(now).build();
    settings.default_agent = AgentDefinition::new("own", AgentSpec::in_process("own", "/"));
    let mut hub = Hub::new(settings, Box::new(crate::store::MemoryStore));
    let hello = params(json!({ "protocolVersion": 1 }));
    hub.command(
        Token::first(0),
        Command::Initialize(hello),
        &mut HubCx::new(now, &mut client),
    );
    hub.effects(now);
    (hub, client, now)
}

#[test]
fn agent_inside_the_program_is_opened_by_its_name() {
    let (mut hub, mut client, now) = hub();
    let connect = Command::Connect(ConnectParams::default());
    hub.command(Token::first(1), connect, &mut HubCx::new(now, &mut client));
    let effects = hub.effects(now);
    let opened = effects.iter().find_map(|effect| match effect {
        Effect::Open(_, transport) => Some(transport),
        _ => None,
    });
    assert_eq!(opened, Some(&Transport::InProcess("own".to_owned())));
    let is_initialize = |effect: &Effect| matches!(effect, Effect::Send(_, lines) if lines.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"initialize""#));
    assert!(effects.iter().any(is_initialize), "{effects:?}");
}

#[test]
fn agent_inside_the_program_is_installed_and_keeps_its_definition() {
    let (mut hub, mut client, now) = hub();
    let list = Command::ListAgents(AgentListParams::default());
    hub.command(Token::first(1), list, &mut HubCx::new(now, &mut client));
    let effects = hub.effects(now);
    let Some(Effect::FindPrograms(ticket, _)) = effects.first() else {
        panic!("{effects:?}");
    };
    // Another program of that name is installed.
    let other = Program {
        file: "/bin/own".into(),
        real_file: "/bin/own".into(),
        found_by: FoundBy::Path,
        passed_over: Vec::new(),
        added_path: Vec::new(),
    };
    hub.programs_found(
        (*ticket, vec![Some(other)]),
        &mut HubCx::new(now, &mut client),
    );
    let listed = client.take_answer(Token::first(1)).unwrap().unwrap();
    let own = &listed["agents"][0];
    assert_eq!(
        (&own["installed"], &own["program"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(
        (&own["command"], &own["source"]),
        (&json!("own"), &json!("inProcess"))
    );
    let connect = params(json!({ "command": "other" }));
    hub.command(
        Token::first(2),
        Command::Connect(connect),
        &mut HubCx::new(now, &mut client),
    );
    let refused = client.take_answer(Token::first(2)).unwrap().unwrap_err();
    assert!(refused.message.contains("own"), "{refused}");
}
