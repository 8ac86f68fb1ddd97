//! Tests of which clients with settings of their own share an agent's process: what the agent may use of them, and what
//! a client changes of the agent.

use super::super::fixture::{A, B, C, Fixture};
use super::daemon;
use crate::agent_definition::AgentDefinition;
use crate::agent_spec::AgentSpec;
use crate::client::{ClientId, Command};
use crate::testing::{RecordingClient, SettingsBuilder, params};
use acpipe_json::to_raw;
use acpipe_protocol::wire::{AgentSource, InitializeParams};
use serde_json::{Value, json};

const D: ClientId = ClientId(3);
const FILES: &str = r#"{"fs": {"readTextFile": true}}"#;

impl Fixture {
    /// Connects a client that sets the variable `SAFE` for its default agent and for its agent `own`.
    fn join_with_variable(&mut self, client: ClientId) {
        let mut settings = Box::new(SettingsBuilder::new(self.now).build());
        let set = |spec: &mut AgentSpec| {
            spec.env.0.insert("SAFE".to_owned(), Some("1".to_owned()));
        };
        set(&mut settings.default_agent.spec);
        let mut own = AgentDefinition::new("own", settings.default_agent.spec.clone());
        own.spec.source = AgentSource::Configuration;
        settings.agents.push(own);
        self.hub.client_joined(client, settings).unwrap();
        self.connect_with(client, &json!({}));
    }

    /// Connects a client with these parameters of `initialize`.
    fn join_as(&mut self, client: ClientId, hello: InitializeParams) {
        let settings = Box::new(SettingsBuilder::new(self.now).build());
        self.hub.client_joined(client, settings).unwrap();
        self.sinks.0.insert(client, RecordingClient::default());
        let call = self.call(client, Command::Initialize(hello));
        self.result(client, call);
    }

    fn open(&mut self, client: ClientId, session: &str, agent: Option<&str>) -> Value {
        let wish = json!({"sessionId": session, "agent": agent});
        let call = self.call(client, Command::Ensure(params(wish)));
        self.answer_all();
        self.result(client, call)["recovery"]["differingSettings"].clone()
    }

    /// Returns the specification of the agent that has the session.
    fn spec_of(&self, session: &str) -> &AgentSpec {
        let agent = self.hub.router.sessions().get(session).unwrap().agent;
        self.hub.router.agents().get(agent).spec()
    }

    fn safe_of(&self, session: &str) -> Option<&str> {
        self.spec_of(session).env.0["SAFE"].as_deref()
    }

    /// Returns the capabilities that acpipe declared to each agent that was started.
    fn declared(&self) -> Vec<&Value> {
        let received = self.received.iter();
        let hellos = received.filter(|message| message["method"] == "initialize");
        hellos
            .map(|hello| &hello["params"]["clientCapabilities"])
            .collect()
    }
}

fn hello(capabilities: &str) -> InitializeParams {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap();
    params(json!({"protocolVersion": 1, "capabilities": capabilities}))
}

#[test]
fn change_of_an_agent_by_a_client_leaves_others_their_own_values() {
    for name in [None, Some("own")] {
        for (change, differs) in [
            (json!({"set": {"SAFE": null}}), "environment"),
            (json!({"env": {"SAFE": "2"}}), "environment"),
            (json!({"options": {"model": "other"}}), "model"),
        ] {
            let mut t = daemon();
            t.join_with_variable(A);
            t.join_with_variable(B);
            let mut change = change.clone();
            change["agent"] = json!(name.unwrap_or("default"));
            let command = if change["set"].is_object() {
                Command::UpdateEnvironment(params(change.clone()))
            } else {
                Command::Connect(params(change.clone()))
            };
            let call = t.call(B, command);
            t.answer_all();
            t.result(B, call);
            // The client that made the change has it.
            assert_eq!(t.open(B, "b", name), Value::Null);
            let changed = t.spec_of("b").clone();
            assert_ne!(
                changed.env.0["SAFE"].as_deref() == Some("1"),
                differs == "environment"
            );
            // Those that joined before and after it have their own values, and the receipt names what differs.
            t.join_with_variable(C);
            for (client, session) in [(A, "a"), (C, "c")] {
                assert_eq!(t.open(client, session, name), Value::Null);
                assert_eq!(t.safe_of(session), Some("1"), "{change}");
                assert_eq!(t.spec_of(session).options.model, None, "{change}");
                assert_eq!(t.open(client, "b", name), json!([differs]), "{change}");
            }
            assert_eq!(t.agents.len(), 2);
        }
    }
}

/// Neither the variables of the configuration nor those that a client sets for the default agent are for another program.
#[test]
fn agent_that_a_client_defines_gets_no_variables_of_the_default_agent() {
    for is_configured in [true, false] {
        let mut t = daemon();
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        let both = |value: &str| Some(value.to_owned());
        settings.variables.0.insert("LINE".to_owned(), both("1"));
        let own = &mut settings.default_agent;
        own.spec.env.clone_from(&settings.variables);
        if is_configured {
            own.name = "main".to_owned();
            own.spec.source = AgentSource::Configuration;
            own.spec.env.0.insert("SAFE".to_owned(), both("1"));
        }
        let agent = own.name.clone();
        t.hub.client_joined(A, settings).unwrap();
        t.connect_with(A, &json!({}));
        let set = json!({"agent": agent, "set": {"SET": "1"}});
        let call = t.call(A, Command::UpdateEnvironment(params(set)));
        t.result(A, call);
        let own = |name: &str| json!({"agent": name, "command": "own", "env": {"OWN": "1"}});
        t.call(A, Command::Register(params(own("registered"))));
        let call = t.call(A, Command::Connect(params(own("connected"))));
        t.answer_all();
        t.result(A, call);
        for name in ["registered", "connected"] {
            let agents = t.hub.router.agents();
            let named = agents
                .all()
                .filter(|agent| agents.get(*agent).name() == name);
            let own = agents.get(named.last().unwrap()).spec();
            let variables: Vec<&str> = own.env.0.keys().map(String::as_str).collect();
            assert_eq!(variables, ["LINE", "OWN"], "{name} {is_configured}");
        }
    }
}

/// Changes of another client with the same settings that contradict the settings, or what a client set itself.
#[test]
fn client_keeps_the_variables_that_it_set_after_a_change_of_another() {
    for name in [None, Some("own")] {
        let agent = name.unwrap_or("default");
        for change in [
            json!({"agent": agent, "set": {"SAFE": "2"}}),
            json!({"agent": agent, "set": {"OWN": "2"}}),
            json!({"agent": agent, "unset": ["OWN"]}),
            json!({"agent": agent, "options": {"model": "other"}}),
        ] {
            let mut t = daemon();
            for client in [A, B, D] {
                t.join_with_variable(client);
            }
            let own = json!({"agent": agent, "set": {"OWN": "1"}, "unset": ["GONE"]});
            let call = t.call(A, Command::UpdateEnvironment(params(own)));
            t.result(A, call);
            let command = if change["options"].is_object() {
                Command::Connect(params(change.clone()))
            } else {
                Command::UpdateEnvironment(params(change.clone()))
            };
            let call = t.call(B, command);
            t.answer_all();
            t.result(B, call);
            assert_eq!(t.open(A, "a", name), Value::Null);
            let own = &t.spec_of("a").env.0;
            assert_eq!(own["OWN"].as_deref(), Some("1"), "{change}");
            assert_eq!(own["SAFE"].as_deref(), Some("1"), "{change}");
            assert_eq!(own["GONE"], None, "{change}");
            // Also after it declares other services.
            t.connect_with(A, &json!({"fs": {"readTextFile": true}}));
            t.open(A, "b", name);
            assert_eq!(
                t.spec_of("b").env.0["OWN"].as_deref(),
                Some("1"),
                "{change}"
            );
            // A client that set nothing has the settings of both.
            t.open(D, "d", name);
            assert_eq!(t.safe_of("d"), Some("1"), "{change}");
        }
    }
}

#[test]
fn command_that_a_client_connects_leaves_others_the_one_of_their_settings() {
    for change in [json!({"command": "other"}), json!({"cwd": "/other"})] {
        let mut t = daemon();
        t.join_with_variable(A);
        t.join_with_variable(B);
        let call = t.call(A, Command::Connect(params(change.clone())));
        t.answer_all();
        t.result(A, call);
        t.open(A, "a", None);
        t.open(B, "b", None);
        let program = |t: &Fixture, session: &str| {
            let spec = t.spec_of(session);
            (spec.command.clone(), spec.cwd.clone())
        };
        assert_ne!(program(&t, "a"), program(&t, "b"), "{change}");
        assert_eq!(program(&t, "b"), ("agent".to_owned(), "/".to_owned()));
    }
}

#[test]
fn variable_that_contradicts_no_client_is_set_for_all() {
    let mut t = daemon();
    t.join_with_variable(A);
    t.join_with_variable(B);
    let set = json!({"set": {"OTHER": "1"}});
    let call = t.call(B, Command::UpdateEnvironment(params(set)));
    t.result(B, call);
    t.open(A, "a", None);
    assert!(t.spec_of("a").env.0.contains_key("OTHER"));
}

#[test]
fn clients_that_serve_files_have_an_agent_that_may_use_them() {
    let mut t = daemon();
    t.join_as(A, hello("{}"));
    t.join_as(B, hello(FILES));
    t.open(A, "a", None);
    t.open(B, "b", None);
    let files = |t: &Fixture| -> Vec<bool> {
        let declared = t.declared();
        let read = declared.iter().map(|can| &can["fs"]["readTextFile"]);
        read.map(|can| can == &json!(true)).collect()
    };
    assert_eq!(files(&t), [false, true]);
    // A session stays where it is, and the receipt names what the agent may not use.
    assert_eq!(t.open(B, "a", None), json!(["files"]));
    assert_eq!(t.open(A, "b", None), Value::Null);
    // Clients with the same abilities share a process.
    t.join_as(C, hello(FILES));
    t.open(C, "c", None);
    assert_eq!(files(&t), [false, true]);
    // So does a client with the settings of the daemon.
    t.sinks.0.insert(D, RecordingClient::default());
    let call = t.call(D, Command::Initialize(hello(FILES)));
    t.result(D, call);
    t.open(D, "e", None);
    assert_eq!(files(&t), [false, true]);
    // The capabilities of a later `initialize` count for sessions that are opened afterwards.
    let call = t.call(A, Command::Initialize(hello(FILES)));
    t.result(A, call);
    assert_eq!(t.open(A, "d", None), Value::Null);
    assert_eq!(t.agents.len(), 2);
    assert_eq!(t.open(A, "b", None), Value::Null);
}

#[test]
fn agent_serves_the_editor_that_started_it() {
    let mut t = daemon();
    let editor = |name: &str| InitializeParams {
        acp: Some(to_raw(&json!({"clientCapabilities": {"_meta": name}}))),
        ..hello("{}")
    };
    t.join_as(A, editor("first"));
    t.join_as(B, editor("second"));
    t.join_as(C, hello("{}"));
    for (client, session) in [(A, "a"), (C, "c"), (B, "b")] {
        t.open(client, session, None);
    }
    let declared = t.declared();
    let names: Vec<&Value> = declared.iter().map(|can| &can["_meta"]).collect();
    assert_eq!(names[0], "first");
    assert!(names[1].is_object(), "acpipe's own");
    assert_eq!(names[2], "second");
    t.say(&[json!({"id": "x", "method": "_own/request", "params": {}})]);
    assert_eq!((t.asked(A).len(), t.asked(B).len()), (0, 1));
}

#[test]
fn agent_can_ask_later_clients_of_a_daemon() {
    let mut t = daemon();
    t.join_as(A, hello("{}"));
    t.open(A, "s", None);
    assert!(t.declared()[0]["elicitation"].is_object());
    t.prompt(A, "s");
    let session = t.prompted();
    let ask = |id: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let asked = json!({
            "sessionId": session, "mode": "form", "message": "Name?", "requestedSchema": schema,
        });
        [json!({"id": id, "method": "elicitation/create", "params": asked})]
    };
    t.say(&ask("unanswerable"));
    let answer = |t: &Fixture, id: &str| {
        let answer = t.received.iter().find(|m| m["id"] == id);
        answer.map(|answer| answer["result"]["action"].clone())
    };
    assert_eq!(answer(&t, "unanswerable"), Some(json!("decline")));
    t.join_as(B, hello(r#"{"questions": true}"#));
    t.open(B, "s", None);
    t.say(&ask("answered"));
    let asked = t.asked(B)[0];
    t.answer(
        B,
        asked,
        &json!({"action": "accept", "content": {"a": "x"}}),
    );
    assert_eq!(answer(&t, "answered"), Some(json!("accept")));
}
