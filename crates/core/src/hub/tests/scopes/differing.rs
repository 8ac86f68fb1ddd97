//! Tests of the receipt of a client whose definition of the agent differs from what the session has.

use super::super::fixture::{A, B, Fixture};
use super::super::idle::Disk;
use super::daemon;
use crate::client::{ClientId, Command, History};
use crate::config::Settings;
use crate::hub::Hub;
use crate::testing::{SettingsBuilder, params};
use acpipe_model::secret::Secrets;
use acpipe_policy::Mode;
use serde_json::{Value, json};
use std::time::Instant;

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
const OTHERS: [&str; 5] = [
    "nothing",
    "environment",
    "agent",
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
                        spec.env.0.extend([("X".to_owned(), Some("1".to_owned()))])
                    }
                    (B, "agent") => spec.args.push("--other".to_owned()),
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
                let text = format!("differs from this client in {name}:");
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
