//! Tests of the receipt of a client whose definition of the agent differs from what the session has.

use super::super::fixture::{A, B, C, Fixture};
use super::super::idle::Disk;
use super::daemon;
use crate::agent_definition::AgentDefinition;
use crate::client::{ClientId, Command, History};
use crate::config::Settings;
use crate::hub::{AgentInput, Exit, Hub, HubCx};
use crate::testing::{SettingsBuilder, params};
use acpipe_model::error::ErrorKind;
use acpipe_model::limits::Timeout;
use acpipe_model::secret::Secrets;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::wire::Protocol;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

impl Fixture {
    /// Opens session `s` at the default agent, which can resume sessions; returns the receipt.
    fn receipt(&mut self, client: ClientId) -> Value {
        let call = self.call(client, Command::Ensure(params(json!({"sessionId": "s"}))));
        let hello = self.requests.iter();
        let hello = hello
            .enumerate()
            .find(|(_, r)| r["method"] == "initialize")
            .map(|(at, _)| at);
        if let Some(at) = hello {
            let hello = self.requests.remove(at);
            let can = json!({"sessionCapabilities": {"resume": {}}});
            let ready = json!({"protocolVersion": 1, "agentCapabilities": can});
            self.say(&[json!({"id": hello["id"], "result": ready})]);
        }
        self.answer_all();
        self.result(client, call)["recovery"].clone()
    }
}

fn with_instructions(now: Instant, text: Option<&str>) -> Settings {
    let mut settings = SettingsBuilder::new(now).policy(Mode::Approve).build();
    settings.default_agent.instructions = text.map(str::to_owned);
    settings
}

#[test]
fn receipt_names_the_directory_of_the_agent_if_the_client_defines_another() {
    for (own, other, differs) in [
        ("/", "/a", true),
        ("/a", "/b", true),
        ("/a", "/a", false),
        // A client without a directory in its definition may have been started anywhere.
        ("/a", "/", false),
    ] {
        let mut t = daemon();
        for (client, cwd) in [(A, own), (B, other)] {
            let mut settings = Box::new(SettingsBuilder::new(t.now).build());
            cwd.clone_into(&mut settings.default_agent.spec.cwd);
            t.hub.client_joined(client, settings).unwrap();
            t.connect_with(client, &json!({}));
        }
        assert_eq!(t.receipt(A)["differingSettings"], Value::Null);
        let want = if differs { json!(["cwd"]) } else { Value::Null };
        assert_eq!(t.receipt(B)["differingSettings"], want, "{own} {other}");
    }
}

#[test]
fn command_line_of_the_session_in_a_receipt_has_no_known_secret() {
    let secrets = Secrets::default();
    let settings = SettingsBuilder::new(Instant::now()).secrets(secrets.clone());
    let store = Box::new(crate::store::MemoryStore);
    let daemon = Fixture::under(Mode::Approve, store, settings, &[]);
    let mut t = Fixture {
        hub: daemon.hub.resident(),
        ..daemon
    };
    secrets.add_values(["plain-word"]);
    for (client, command) in [(A, "one"), (B, "two")] {
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        let spec = &mut settings.default_agent.spec;
        command.clone_into(&mut spec.command);
        spec.args = vec!["plain-word".to_owned(), "acp".to_owned()];
        t.hub.client_joined(client, settings).unwrap();
        t.connect_with(client, &json!({}));
    }
    t.receipt(A);
    assert_eq!(t.receipt(B)["agentCommand"], "one [hidden] acp");
}

/// An agent without an option for a system prompt gets the instructions with the first prompt of its session alone.
#[test]
fn receipt_names_instructions_that_the_agent_did_not_get_in_its_session() {
    for is_resident in [false, true] {
        for (first, second) in [
            (Some("be brief"), Some("be brief")),
            (Some("be brief"), Some("be long")),
            (Some("be brief"), None),
            (None, Some("be long")),
            (None, None),
        ] {
            let disk = Disk::default();
            let open = |text: Option<&str>| {
                let now = Instant::now();
                let settings = with_instructions(now, text);
                let mut t = Fixture::of(SettingsBuilder::new(now), &[]);
                t.hub = Hub::new(settings.clone(), Box::new(disk.clone()));
                if is_resident {
                    t.hub = t.hub.resident();
                    t.hub.client_joined(A, Box::new(settings)).unwrap();
                }
                t.connect(A);
                let receipt = t.receipt(A);
                // A second call compares with the live session.
                assert_eq!(
                    t.receipt(A)["differingSettings"],
                    receipt["differingSettings"]
                );
                t.prompt(A, "s");
                t.end_turn();
                receipt
            };
            let case = format!("{is_resident} {first:?} {second:?}");
            assert_eq!(open(first)["differingSettings"], Value::Null, "{case}");
            let receipt = open(second);
            assert_eq!(receipt["rung"], "resume", "{case}");
            let want = (first != second).then(|| json!(["instructions"]));
            let want = want.unwrap_or_default();
            assert_eq!(receipt["differingSettings"], want, "{case}");
        }
    }
}

/// Ways in which another client opens a session that a client has, by what then differs.
const OTHERS: [&str; 6] = [
    "nothing",
    "environment",
    "agent",
    "limits",
    "mcpServers",
    "fewer mcpServers",
];

impl Fixture {
    /// Opens session `s` with this call; returns the receipt.
    fn open_with(&mut self, client: ClientId, mut call: Value) -> Value {
        call["sessionId"] = "s".into();
        let call = self.call(client, Command::Ensure(params(call)));
        self.answer_all();
        self.result(client, call)["recovery"].clone()
    }

    /// Returns the texts of the notices of other settings in a turn of a client.
    fn other_settings(&mut self, client: ClientId) -> Vec<String> {
        let before = self.chunks(client, &["data-notice"]).len();
        self.prompt(client, "s");
        self.answer_all();
        self.end_turn();
        let notices = self.chunks(client, &["data-notice"]);
        let notices = notices.into_iter().skip(before);
        let notices =
            notices.filter(|notice| notice["data"]["title"] == "The session has other settings");
        let text = |notice: Value| notice["data"]["description"].as_str().unwrap().to_owned();
        notices.map(text).collect()
    }
}

#[test]
fn next_prompt_names_the_settings_with_which_another_client_opened_the_session() {
    let servers = json!({"mcpServers": [{"name": "a", "command": "/a"}]});
    for other in OTHERS {
        for is_removed in [false, true] {
            let mut t = daemon();
            for client in [A, B] {
                let mut settings = Box::new(SettingsBuilder::new(t.now).build());
                let spec = &mut settings.default_agent.spec;
                match (client, other) {
                    (B, "environment") => {
                        spec.env.0.extend([("X".to_owned(), Some("1".to_owned()))]);
                    }
                    (B, "agent") => spec.args.push("--other".to_owned()),
                    (B, "limits") => {
                        let limit = Some(Duration::from_secs(2));
                        settings.limits.set(Timeout::Turn, limit);
                    }
                    _ => {}
                }
                t.hub.client_joined(client, settings).unwrap();
                t.connect_with(client, &json!({}));
            }
            let (first, mut second) = match other {
                "mcpServers" => (json!({}), servers.clone()),
                "fewer mcpServers" => (servers.clone(), json!({})),
                _ => (json!({}), json!({})),
            };
            let case = format!("{other} {is_removed}");
            t.open_with(A, first);
            assert_eq!(t.other_settings(A), [""; 0], "{case}");
            if is_removed {
                let close = History::CloseSession(params(json!({"sessionId": "s"})));
                t.call(B, Command::History(close));
                t.answer_all();
            } else {
                second["strategy"] = "new".into();
            }
            t.open_with(B, second);
            let name = other.trim_start_matches("fewer ");
            let texts = t.other_settings(A);
            // A live session stays at its agent, and has what no call replaces.
            let stays = !is_removed && other != "mcpServers";
            if stays || other == "nothing" {
                assert_eq!(texts, [""; 0], "{case}");
            } else {
                assert_eq!(texts.len(), 1, "{case}");
                let text = format!("differs from the client that sent this prompt in {name}:");
                assert!(texts[0].contains(&text), "{case} {texts:?}");
            }
            assert_eq!(t.other_settings(A), [""; 0], "{case}");
            // Another client has opened it with its own settings.
            assert_eq!(t.other_settings(B), [""; 0], "{case}");
        }
    }
}

#[test]
fn receipt_of_other_settings_is_not_repeated_in_a_turn() {
    let mut t = daemon();
    for (client, variable) in [(A, "1"), (B, "2")] {
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        let env = &mut settings.default_agent.spec.env.0;
        env.extend([("X".to_owned(), Some(variable.to_owned()))]);
        t.hub.client_joined(client, settings).unwrap();
        t.connect_with(client, &json!({}));
    }
    t.open_with(A, json!({}));
    let receipt = t.open_with(B, json!({}));
    assert_eq!(receipt["differingSettings"], json!(["environment"]));
    assert_eq!(t.other_settings(B), [""; 0]);
    assert_eq!(t.other_settings(A), [""; 0]);
}

/// Connects A, whose agent `m` denies, and B, whose agents `m` and `n` approve; without `defines_other`, A has no agent `n`.
fn with_agents(defines_other: bool) -> Fixture {
    let now = Instant::now();
    let settings = SettingsBuilder::new(now).policy(Mode::Approve).build();
    let mut t = Fixture::of(SettingsBuilder::new(now), &[]);
    t.hub = Hub::new(settings, Box::new(Disk::default())).resident();
    for client in [A, B] {
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        for name in ["m", "n"] {
            let mut spec = settings.default_agent.spec.clone();
            name.clone_into(&mut spec.command);
            let mut own = AgentDefinition::new(name, spec);
            if (client, name) == (A, "m") {
                own.policy = Some(Policy::from(Mode::Deny).into());
            }
            if defines_other || (client, name) != (A, "n") {
                settings.agents.push(own);
            }
        }
        t.hub.client_joined(client, settings).unwrap();
        t.connect_with(client, &json!({}));
    }
    t
}

/// Another client moves the session to an agent that the first one does not define, or defines without permissions.
#[test]
fn permissions_of_the_agent_at_which_a_client_opened_a_session_hold_at_another_agent() {
    for (defines_other, is_closed) in [(true, true), (true, false), (false, true), (false, false)] {
        let case = format!("{defines_other} {is_closed}");
        let mut t = with_agents(defines_other);
        t.open_with(A, json!({"agent": "m"}));
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{case}");
        if is_closed {
            let close = History::CloseSession(params(json!({"sessionId": "s"})));
            t.call(B, Command::History(close));
            t.answer_all();
        }
        t.open_with(B, json!({"agent": "n"}));
        assert_eq!(t.chosen_for(B, "s", "execute"), "y", "{case}");
        let texts = t.other_settings(A);
        assert!(texts[0].contains(" in agent: "), "{case} {texts:?}");
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{case}");
        // A call that names no agent continues at the agent of the session.
        let receipt = t.open_with(A, json!({}));
        assert_eq!(
            receipt["differingSettings"],
            json!(["agent", "permissions"]),
            "{case}"
        );
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{case}");
        if defines_other {
            t.open_with(A, json!({"agent": "n"}));
            assert_eq!(t.chosen_for(A, "s", "execute"), "y", "{case}");
        }
    }
}

#[test]
fn turn_that_a_client_takes_over_names_the_settings_that_differ() {
    for is_queued in [false, true] {
        let mut t = daemon();
        for (client, variable) in [(A, "1"), (B, "2"), (C, "2")] {
            let mut settings = Box::new(SettingsBuilder::new(t.now).build());
            let spec = &mut settings.default_agent.spec;
            spec.env
                .0
                .extend([("X".to_owned(), Some(variable.to_owned()))]);
            t.hub.client_joined(client, settings).unwrap();
            t.connect_with(client, &json!({}));
        }
        t.open_with(B, json!({}));
        if is_queued {
            t.prompt(C, "s");
        }
        let prompt = json!({"sessionId": "s", "turnId": "t", "message": "go"});
        t.call(B, Command::Prompt(params(prompt.clone())));
        t.leave(B);
        t.call(A, Command::Prompt(params(prompt)));
        t.end_turn();
        if is_queued {
            t.end_turn();
        }
        let notices = t.chunks(A, &["data-notice"]);
        let is = |notice: &&Value| notice["data"]["title"] == "The session has other settings";
        assert_eq!(
            notices.iter().filter(is).count(),
            1,
            "{is_queued} {notices:?}"
        );
    }
}

#[test]
fn endpoint_with_other_headers_is_another_agent() {
    let mut t = daemon();
    for (client, tenant) in [(A, "a"), (B, "b")] {
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        let headers = &mut settings.default_agent.spec.backend.headers.0;
        headers.insert("X-Tenant".to_owned(), tenant.to_owned());
        t.hub.client_joined(client, settings).unwrap();
        t.connect_with(client, &json!({}));
    }
    t.open_with(A, json!({}));
    let receipt = t.open_with(B, json!({}));
    assert_eq!(receipt["differingSettings"], json!(["agent"]));
}

#[test]
fn permissions_hold_at_another_agent_for_a_client_that_only_prompted_or_set_a_mode() {
    for sets in [false, true] {
        let mut t = with_agents(true);
        t.open_with(B, json!({"agent": "m"}));
        if sets {
            let mode = json!({"sessionId": "s", "mode": "plan"});
            t.call(A, Command::SetMode(params(mode)));
            t.answer_all();
        } else {
            assert_eq!(t.chosen_for(A, "s", "execute"), "n");
        }
        t.open_with(B, json!({"agent": "n"}));
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{sets}");
    }
}

#[test]
fn demands_of_a_client_in_very_many_sessions_hold() {
    let mut t = with_agents(true);
    let list = json!({"agent": "m", "options": {"disallowedTools": ["Bash"]}});
    t.open_with(A, list);
    t.open_with(B, json!({"agent": "n"}));
    for n in 0..1100 {
        let other = json!({"sessionId": format!("t{n}"), "agent": "n"});
        t.call(A, Command::Ensure(params(other)));
        t.answer_all();
        let close = params(json!({"sessionId": format!("t{n}")}));
        t.call(A, Command::History(History::CloseSession(close)));
        t.answer_all();
    }
    assert_eq!(t.chosen_for(A, "s", "execute"), "n");
    // It holds only where the client's own demand is not known.
    let call = t.call(
        A,
        Command::Ensure(params(json!({"sessionId": "u", "agent": "n"}))),
    );
    t.answer_all();
    t.result(A, call);
    assert_eq!(t.chosen_for(A, "u", "execute"), "y");
}

/// The agent fails to open the session, or the client waits for a turn.
#[test]
fn hand_over_that_fails_changes_neither_terms_nor_options() {
    for client in [A, B] {
        let mut t = with_agents(true);
        t.open_with(
            A,
            json!({"agent": "m", "options": {"disallowedTools": ["Write"]}}),
        );
        let call =
            json!({"sessionId": "s", "agent": "n", "options": {"disallowedTools": ["Read"]}});
        let call = t.call(client, Command::Ensure(params(call)));
        while let Some(request) = t.requests.pop() {
            let id = &request["id"];
            let answer = match request["method"].as_str().unwrap() {
                "initialize" => json!({"id": id, "result": {"protocolVersion": 1}}),
                _ => json!({"id": id, "error": {"code": -32603, "message": "no"}}),
            };
            t.say(&[answer]);
        }
        assert!(t.reply(client, call).unwrap().is_err());
        // The next answers are those of the first agent.
        t.agents.rotate_left(1);
        // The session is at the agent of A still, also for another client that opens it.
        let receipt = t.open_with(B, json!({}));
        let names = if client == B {
            // It asked for the other agent.
            json!(["agent", "permissions"])
        } else {
            json!(["permissions"])
        };
        assert_eq!(receipt["differingSettings"], names, "{client:?}");
        assert_eq!(t.chosen_for(B, "s", "execute"), "n", "{client:?}");
        assert_eq!(t.chosen_for(B, "s", "edit"), "n", "{client:?}");
        t.agents.rotate_left(1);
        t.open_with(B, json!({"agent": "n"}));
        // A call that failed has not moved A.
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{client:?}");
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{client:?}");
        assert_eq!(t.chosen_for(B, "s", "execute"), "y", "{client:?}");
    }
}

#[test]
fn session_does_not_move_to_another_agent_during_a_turn() {
    let mut t = with_agents(true);
    t.open_with(A, json!({"agent": "m"}));
    let of = |t: &Fixture| t.hub.router.sessions().get("s").unwrap().agent;
    let before = of(&t);
    t.prompt(A, "s");
    t.answer_all();
    let wish = json!({"sessionId": "s", "agent": "n"});
    let call = t.call(A, Command::Ensure(params(wish)));
    assert_eq!(t.reply(A, call), Some(Err(ErrorKind::Busy)));
    assert_eq!(of(&t), before);
    t.end_turn();
}

#[test]
fn another_agent_does_not_get_the_servers_that_a_client_named() {
    let mut t = with_agents(true);
    let servers =
        json!([{"name": "a", "command": "/a", "env": [{"name": "K", "value": "secret"}]}]);
    t.open_with(A, json!({"agent": "m", "mcpServers": servers}));
    t.received.clear();
    t.open_with(B, json!({"agent": "n"}));
    let opened = t
        .received
        .iter()
        .find(|line| line["method"] == "session/new")
        .unwrap();
    assert_eq!(opened["params"]["mcpServers"], json!([]), "{opened}");
    assert!(t.other_settings(A)[0].contains("agent and mcpServers"));
    // The client that named them moves the session back.
    t.agents.rotate_left(1);
    let call = t.call(
        A,
        Command::Ensure(params(json!({"sessionId": "s", "agent": "m"}))),
    );
    t.answer_all();
    let lost = &t.result(A, call)["recovery"]["notRestored"][0];
    assert_eq!(
        (&lost["setting"], &lost["value"]),
        (&json!("mcpServers"), &json!("a"))
    );
}

#[test]
fn another_program_of_the_same_name_does_not_get_the_servers_that_a_client_named() {
    for is_other in [false, true] {
        let mut t = daemon();
        for client in [A, B] {
            let mut settings = Box::new(SettingsBuilder::new(t.now).build());
            if is_other && client == B {
                settings.default_agent.spec.args.push("--other".to_owned());
            }
            t.hub.client_joined(client, settings).unwrap();
            t.connect_with(client, &json!({}));
        }
        let server = json!({"name": "a", "command": "/a", "args": [], "env": []});
        t.open_with(A, json!({"mcpServers": [server]}));
        let agent = *t.agents.last().unwrap();
        let exited = AgentInput::Exited(Exit::default());
        let rest = t
            .hub
            .agent(agent, exited, &mut HubCx::new(t.now, &mut t.sinks));
        assert!(rest.is_none());
        t.settle();
        t.received.clear();
        let receipt = t.open_with(B, json!({}));
        let opened = t
            .received
            .iter()
            .find(|line| line["method"] == "session/new");
        let servers = &opened.unwrap()["params"]["mcpServers"];
        let want = if is_other { json!([]) } else { json!([server]) };
        assert_eq!(*servers, want);
        let lost = &receipt["notRestored"];
        assert_eq!(
            lost.as_array().unwrap().len(),
            usize::from(is_other),
            "{lost}"
        );
    }
}

/// The endpoint is ready from its first session on, and takes no servers.
#[test]
fn servers_that_a_client_named_are_withheld_from_an_endpoint_in_every_session() {
    let mut t = daemon();
    for client in [A, B] {
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        let mut spec = settings.default_agent.spec.clone();
        "http://127.0.0.1:9/ui".clone_into(&mut spec.command);
        spec.protocol = Protocol::UiStream;
        settings.agents.push(AgentDefinition::new("n", spec));
        t.hub.client_joined(client, settings).unwrap();
        t.connect_with(client, &json!({}));
    }
    let server = json!({"name": "a", "command": "/a", "args": [], "env": []});
    for id in ["s", "other", "third"] {
        let named = json!({"sessionId": id, "mcpServers": [server]});
        t.call(A, Command::Ensure(params(named)));
        t.answer_all();
        let moved = json!({"sessionId": id, "agent": "n"});
        let call = t.call(B, Command::Ensure(params(moved)));
        let lost = &t.result(B, call)["recovery"]["notRestored"];
        assert_eq!(lost[0]["setting"], "mcpServers", "{id}");
        if id == "s" {
            t.agents.rotate_left(1);
        }
    }
}
