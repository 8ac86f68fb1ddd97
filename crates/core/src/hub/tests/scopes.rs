//! Tests of clients with settings of their own, and of agents that such a client defines.

mod differing;
mod options_of_others;
mod read_sessions;
mod shared_processes;

use super::fixture::{A, B, C, Fixture};
use crate::agent_definition::AgentDefinition;
use crate::client::{ClientId, Command, History};
use crate::hub::HubCx;
use crate::testing::{SettingsBuilder, params};
use acpipe_model::error::ErrorKind;
use acpipe_model::limits::Timeout;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::wire::AgentSource;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Ways in which a client defines the agent `own`.
const WAYS: [Way; 2] = [Way::Register, Way::Connect];

#[derive(Debug, Clone, Copy)]
enum Way {
    Register,
    Connect,
}

/// Creates a daemon without clients, whose own settings approve.
fn daemon() -> Fixture {
    let settings = SettingsBuilder::new(Instant::now());
    let store = Box::new(crate::store::MemoryStore);
    let daemon = Fixture::under(Mode::Approve, store, settings, &[]);
    Fixture {
        hub: daemon.hub.resident(),
        ..daemon
    }
}

impl Fixture {
    /// Connects a client with this policy, and these options of the command line.
    fn join(
        &mut self,
        client: ClientId,
        policy: impl Into<Policy>,
        limits: &[(Timeout, Duration)],
    ) {
        let settings = SettingsBuilder::new(self.now).policy(policy);
        let mut settings = Box::new(settings.build());
        for (timeout, limit) in limits {
            settings.limits.set(*timeout, Some(*limit));
        }
        self.hub.client_joined(client, settings).unwrap();
        self.connect_with(client, &json!({}));
    }

    fn define(&mut self, client: ClientId, way: Way) {
        self.define_with(client, way, &json!({}));
    }

    fn define_with(&mut self, client: ClientId, way: Way, options: &Value) {
        let own = json!({"agent": "own", "command": "own", "options": options});
        match way {
            Way::Register => {
                self.call(client, Command::Register(params(own)));
            }
            Way::Connect => {
                let call = self.call(client, Command::Connect(params(own)));
                self.answer_all();
                self.result(client, call);
            }
        }
    }

    /// Ensures a session at the agent `own`; returns the receipt.
    fn ensure_own(&mut self, client: ClientId, session: &str) -> Value {
        let wish = json!({"sessionId": session, "agent": "own"});
        let call = self.call(client, Command::Ensure(params(wish)));
        self.answer_all();
        self.result(client, call)["recovery"].clone()
    }

    /// Runs a turn in which the agent requests permission for a call; returns the option that is chosen.
    fn chosen_for(&mut self, client: ClientId, session: &str, kind: &str) -> String {
        self.received.clear();
        self.prompt(client, session);
        self.answer_all();
        let tool = json!({"toolCallId": "t", "title": "do it", "kind": kind});
        self.request_permission("q", &self.prompted(), &tool);
        let chosen = self.chosen("q");
        self.end_turn();
        chosen
    }
}

#[test]
fn opener_and_caller_both_decide_at_an_agent_that_a_client_defined() {
    let modes = [Mode::Approve, Mode::Deny];
    for way in WAYS {
        for (opener, caller) in modes
            .iter()
            .flat_map(|one| modes.map(|other| (*one, other)))
        {
            for (definer, ensures) in [(A, false), (A, true), (B, false), (B, true), (C, true)] {
                let mut t = daemon();
                t.join(A, opener, &[]);
                t.join(B, caller, &[]);
                t.join(C, Mode::Approve, &[]);
                t.define(definer, way);
                t.ensure_own(A, "s");
                let differing = if ensures {
                    t.ensure_own(B, "s")["differingSettings"].clone()
                } else {
                    Value::Null
                };
                let case = format!("{way:?} {opener:?} {caller:?} {definer:?} {ensures}");
                if ensures && opener != caller {
                    assert_eq!(differing, json!(["permissions"]), "{case}");
                } else {
                    assert_eq!(differing, Value::Null, "{case}");
                }
                let both = opener == Mode::Approve && caller == Mode::Approve;
                let want = if both { "y" } else { "n" };
                assert_eq!(t.chosen_for(B, "s", "edit"), want, "{case}");
                let own = if opener == Mode::Approve { "y" } else { "n" };
                assert_eq!(t.chosen_for(A, "s", "edit"), own, "{case}");
            }
        }
    }
}

/// A client without settings of its own, such as a browser, has those of the daemon.
#[test]
fn client_with_the_settings_of_the_daemon_does_not_escape_those_of_the_opener() {
    for way in WAYS {
        let mut t = daemon();
        t.join(A, Mode::Deny, &[]);
        t.connect_with(B, &json!({}));
        t.define(A, way);
        t.ensure_own(A, "s");
        assert_eq!(t.chosen_for(B, "s", "edit"), "n", "{way:?}");
        t.ensure_own(B, "t");
        assert_eq!(t.chosen_for(B, "t", "edit"), "y", "{way:?}");
        assert_eq!(t.chosen_for(A, "t", "edit"), "n", "{way:?}");
    }
}

#[test]
fn time_limits_of_opener_and_caller_hold_at_an_agent_that_a_client_defined() {
    let second = [(Timeout::Turn, Duration::from_secs(1))];
    for (opener, caller) in [(&second[..], &[][..]), (&[], &second)] {
        let mut t = daemon();
        t.join(A, Mode::Approve, opener);
        t.join(B, Mode::Approve, caller);
        t.define(A, Way::Register);
        t.ensure_own(A, "s");
        t.prompt(B, "s");
        t.answer_all();
        t.received.clear();
        t.now += Duration::from_secs(2);
        t.hub.tick(&mut HubCx::new(t.now, &mut t.sinks));
        t.settle();
        let is_cancel = |message: &Value| message["method"] == "session/cancel";
        assert!(t.received.iter().any(is_cancel), "{:?}", t.received);
    }
}

#[test]
fn tool_lists_of_opener_and_caller_hold_at_an_agent_that_a_client_defined() {
    let mut refusing = Policy::from(Mode::Approve);
    refusing.set_lists(&[], &["Edit".to_owned()]);
    let mut allowing = Policy::from(Mode::Deny);
    allowing.set_lists(&["Edit".to_owned()], &[]);
    let approving = Policy::from(Mode::Approve);
    for (opener, caller, edit, execute) in [
        (&refusing, &approving, "n", "y"),
        (&approving, &refusing, "n", "y"),
        (&approving, &allowing, "y", "n"),
        (&allowing, &approving, "y", "n"),
        (&allowing, &Policy::from(Mode::Deny), "n", "n"),
        (&allowing, &refusing, "n", "n"),
    ] {
        let mut t = daemon();
        t.join(A, opener.clone(), &[]);
        t.join(B, caller.clone(), &[]);
        t.define(A, Way::Register);
        t.ensure_own(A, "s");
        let chosen = ["edit", "execute"].map(|kind| t.chosen_for(B, "s", kind));
        assert_eq!(chosen, [edit, execute], "{opener:?} {caller:?}");
    }
}

/// Bash is what a list of allowed tools of the agent allows, and Edit what its list of refused tools refuses.
#[test]
fn allowed_tools_of_an_agent_count_only_for_the_client_that_defined_it() {
    let lists = json!({"allowedTools": ["Bash"], "disallowedTools": ["Edit"]});
    let own = json!({"agent": "own", "command": "own", "options": lists});
    for way in WAYS {
        for mode in [Mode::Approve, Mode::Deny] {
            let mut t = daemon();
            t.hub.router.shared_mut().settings.policy = Mode::Deny.into();
            t.join(A, mode, &[]);
            t.join(B, Mode::Deny, &[]);
            t.connect_with(C, &json!({}));
            let call = match way {
                Way::Register => t.call(A, Command::Register(params(own.clone()))),
                Way::Connect => t.call(A, Command::Connect(params(own.clone()))),
            };
            t.answer_all();
            assert!(!matches!(t.reply(A, call), Some(Err(_))));
            for (client, session) in [(A, "a"), (B, "b"), (C, "c")] {
                t.ensure_own(client, session);
                let case = format!("{way:?} {mode:?} {session}");
                for client in [B, C] {
                    let chosen = t.chosen_for(client, session, "execute");
                    assert_eq!(chosen, "n", "{case} {client:?}");
                }
                assert_eq!(t.chosen_for(A, session, "edit"), "n", "{case}");
                let own = if session == "a" { "y" } else { "n" };
                assert_eq!(t.chosen_for(A, session, "execute"), own, "{case}");
            }
        }
    }
}

#[test]
fn other_command_of_a_registered_agent_leaves_its_tool_lists() {
    let lists = json!({"allowedTools": ["Bash"], "disallowedTools": ["Edit"]});
    for (connecting, options, execute) in [
        (A, json!({}), ["y", "n"]),
        (B, json!({}), ["y", "n"]),
        (B, json!({"allowedTools": ["Bash"]}), ["n", "y"]),
    ] {
        let mut t = daemon();
        t.join(A, Mode::Deny, &[]);
        t.join(B, Mode::Deny, &[]);
        let own = json!({"agent": "own", "command": "own", "options": lists});
        t.call(A, Command::Register(params(own)));
        let other = json!({"agent": "own", "command": "other", "options": options});
        let call = t.call(connecting, Command::Connect(params(other)));
        t.answer_all();
        t.result(connecting, call);
        let case = format!("{connecting:?} {options}");
        // The process of the connecting client runs already.
        let other = if connecting == A { B } else { A };
        for client in [connecting, other] {
            let session = format!("{client:?}");
            t.ensure_own(client, &session);
            let agent = t.hub.router.sessions().get(&session).unwrap().agent;
            assert_eq!(
                t.hub.router.agents().get(agent).spec().command,
                "other",
                "{case}"
            );
            assert_eq!(t.chosen_for(client, &session, "edit"), "n", "{case}");
            let want = execute[usize::from(client == B)];
            assert_eq!(t.chosen_for(client, &session, "execute"), want, "{case}");
        }
    }
}

#[test]
fn refused_tools_of_a_client_hold_for_it_after_another_opened_the_session_with_others() {
    let mut t = daemon();
    t.join(A, Mode::Approve, &[]);
    t.join(B, Mode::Approve, &[]);
    t.define(A, Way::Register);
    for (client, tool) in [(A, "Bash"), (B, "Write"), (B, "Read")] {
        let wish =
            json!({"sessionId": "s", "agent": "own", "options": {"disallowedTools": [tool]}});
        let call = t.call(client, Command::Ensure(params(wish)));
        t.answer_all();
        t.result(client, call);
        assert_eq!(t.chosen_for(A, "s", "execute"), "n", "{tool}");
        let id = json!({"sessionId": "s"});
        let end = match tool {
            "Bash" => History::CloseSession(params(id)),
            _ => History::ClearSession(params(id)),
        };
        let call = t.call(B, Command::History(end));
        t.answer_all();
        t.result(B, call);
    }
    // A client that clears a session itself begins anew.
    t.ensure_own(A, "s");
    t.call(
        A,
        Command::History(History::ClearSession(params(json!({"sessionId": "s"})))),
    );
    t.answer_all();
    t.ensure_own(A, "s");
    assert_eq!(t.chosen_for(A, "s", "execute"), "y");
}

/// A stored list is that of a client that is gone, or of another one.
#[test]
fn allowed_tools_of_a_stored_session_count_only_for_a_client_that_gives_them() {
    let list = json!({"allowedTools": ["Bash"]});
    let mut t = daemon();
    t.join(A, Mode::Deny, &[]);
    t.join(B, Mode::Deny, &[]);
    t.join(C, Mode::Approve, &[]);
    t.define(A, Way::Register);
    for (opener, options, chosen) in [
        (A, &list, ["y", "n"]),
        (B, &json!({}), ["n", "n"]),
        (A, &list, ["y", "n"]),
        // It gave the list before.
        (A, &json!({}), ["y", "n"]),
    ] {
        let wish = json!({"sessionId": "s", "agent": "own", "strategy": "new", "options": options});
        let call = t.call(opener, Command::Ensure(params(wish)));
        t.answer_all();
        t.result(opener, call);
        let case = format!("{opener:?} {options}");
        let own = [A, B].map(|client| t.chosen_for(client, "s", "execute"));
        assert_eq!(own, chosen, "{case}");
        if chosen == ["n", "n"] {
            assert_eq!(t.chosen_for(C, "s", "execute"), "n", "{case}");
        }
    }
}

#[test]
fn agent_ends_for_all_clients_with_the_client_that_registered_it() {
    let mut t = daemon();
    t.join(A, Mode::Approve, &[]);
    t.join(B, Mode::Deny, &[]);
    t.define(A, Way::Register);
    t.ensure_own(A, "a");
    t.ensure_own(B, "b");
    t.leave(A);
    let wish = json!({"sessionId": "c", "agent": "own"});
    let call = t.call(B, Command::Ensure(params(wish)));
    assert_eq!(t.reply(B, call), Some(Err(ErrorKind::AgentNotFound)));
    let wish = json!({"sessionId": "b", "message": "go"});
    let call = t.call(B, Command::Prompt(params(wish)));
    assert!(matches!(t.reply(B, call), Some(Err(_))));
    // Another client can define one of the same name, also in the same words.
    t.define(B, Way::Register);
    t.ensure_own(B, "c");
    assert_eq!(t.chosen_for(B, "c", "edit"), "n");
}

#[test]
fn other_command_of_a_registered_agent_holds_for_all_clients() {
    let mut t = daemon();
    t.join(A, Mode::Approve, &[]);
    t.join(B, Mode::Deny, &[]);
    t.define(A, Way::Register);
    let other = json!({"agent": "own", "command": "other"});
    let call = t.call(A, Command::Connect(params(other)));
    t.answer_all();
    t.result(A, call);
    for (client, session) in [(A, "a"), (B, "b")] {
        t.ensure_own(client, session);
        let agent = t.hub.router.sessions().get(session).unwrap().agent;
        assert_eq!(t.hub.router.agents().get(agent).spec().command, "other");
    }
    assert_eq!(t.agents.len(), 2);
}

#[test]
fn changed_environment_leaves_a_client_its_agent() {
    let mut t = daemon();
    t.join(A, Mode::Deny, &[]);
    t.define(A, Way::Register);
    let set = json!({"agent": "own", "set": {"X": "1"}});
    let call = t.call(A, Command::UpdateEnvironment(params(set)));
    t.result(A, call);
    t.ensure_own(A, "a");
    let agent = t.hub.router.sessions().get("a").unwrap().agent;
    let env = &t.hub.router.agents().get(agent).spec().env.0;
    assert_eq!(env.get("X"), Some(&Some("1".to_owned())));
}

/// The client would not get what it defined, since its own agent has the name.
#[test]
fn client_cannot_define_an_agent_of_its_configuration() {
    for way in WAYS {
        let mut t = daemon();
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        let spec = settings.default_agent.spec.clone();
        let mut own = AgentDefinition::new("own", spec);
        own.spec.source = AgentSource::Configuration;
        settings.agents.push(own);
        t.hub.client_joined(A, settings).unwrap();
        t.connect_with(A, &json!({}));
        t.join(B, Mode::Approve, &[]);
        let own = json!({"agent": "own", "command": "other"});
        let call = match way {
            Way::Register => t.call(A, Command::Register(params(own))),
            Way::Connect => t.call(A, Command::Connect(params(own))),
        };
        assert_eq!(t.reply(A, call), Some(Err(ErrorKind::DuplicateAgent)));
        let wish = json!({"sessionId": "s", "agent": "own"});
        let call = t.call(B, Command::Ensure(params(wish)));
        assert_eq!(t.reply(B, call), Some(Err(ErrorKind::AgentNotFound)));
    }
}

/// Returns the answer to a call that is answered.
fn receipt(t: &mut Fixture, client: ClientId, call: u64) -> Value {
    t.result(client, call)["recovery"].clone()
}

#[test]
fn client_that_joins_an_opening_gets_a_comparison_of_its_own() {
    let mut t = daemon();
    t.join(A, Mode::Approve, &[]);
    t.join(B, Mode::Deny, &[]);
    t.join(C, Mode::Approve, &[(Timeout::Turn, Duration::from_secs(1))]);
    let wish = json!({"sessionId": "s"});
    let calls = [A, B, C].map(|client| t.call(client, Command::Ensure(params(wish.clone()))));
    t.answer_all();
    let [a, b, c] = calls;
    let none = receipt(&mut t, A, a)["differingSettings"].clone();
    assert_eq!(none, Value::Null);
    assert_eq!(
        receipt(&mut t, B, b)["differingSettings"],
        json!(["permissions"])
    );
    assert_eq!(
        receipt(&mut t, C, c)["differingSettings"],
        json!(["limits"])
    );
}

/// The key of the agent's program is the same if only its arguments differ.
#[test]
fn receipt_names_an_agent_of_the_same_name_that_is_another_command_line() {
    let own = |command: &str, args: &[&str]| {
        let mut settings = Box::new(SettingsBuilder::new(Instant::now()).build());
        let mut spec = settings.default_agent.spec.clone();
        spec.command = command.to_owned();
        spec.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        spec.source = AgentSource::Configuration;
        settings
            .agents
            .push(AgentDefinition::new("own", spec.clone()));
        settings.default_agent.spec = spec;
        settings
    };
    let opener = ["serve", "--token", "hunter2-hunter2"];
    for (command, args, is_other) in [
        ("one", &opener[..], false),
        ("one", &["serve"], true),
        ("two", &opener, true),
    ] {
        for agent in [Some("own"), None] {
            let mut t = daemon();
            t.hub.client_joined(A, own("one", &opener)).unwrap();
            t.connect_with(A, &json!({}));
            t.hub.client_joined(B, own(command, args)).unwrap();
            t.connect_with(B, &json!({}));
            let call = json!({"sessionId": "s", "agent": agent});
            let call = t.call(A, Command::Ensure(params(call)));
            t.answer_all();
            let first = receipt(&mut t, A, call);
            let call = t.call(B, Command::Ensure(params(json!({"sessionId": "s"}))));
            t.answer_all();
            let receipt = receipt(&mut t, B, call);
            let case = format!("{command} {args:?} {agent:?}: {receipt}");
            assert_eq!(first["differingSettings"], Value::Null, "{case}");
            if !is_other {
                assert_eq!(receipt["differingSettings"], Value::Null, "{case}");
                continue;
            }
            assert_eq!(receipt["differingSettings"], json!(["agent"]), "{case}");
            let line = receipt["agentCommand"].as_str().unwrap();
            assert!(line.starts_with("one serve --token"), "{case}");
            assert!(!line.contains("hunter2"), "{case}");
        }
    }
}

const FORM: &str = r#"{"mode": "form", "message": "Password?", "requestedSchema": {"type": "object",
    "properties": {"a": {"type": "string"}}}}"#;

const ADDRESS: &str =
    r#"{"mode": "url", "message": "Open it?", "url": "https://a.invalid/", "elicitationId": "u"}"#;

#[test]
fn question_that_names_no_session_is_judged_by_the_terms_of_running_turns() {
    for (question, policy) in [FORM, ADDRESS]
        .into_iter()
        .flat_map(|question| [Mode::Deny, Mode::Ask].map(|policy| (question, policy)))
    {
        let mut t = daemon();
        for (client, mode) in [(A, Mode::Approve), (B, policy)] {
            t.join(client, mode, &[]);
            t.connect_with(client, &json!({"questions": true}));
        }
        t.define(A, Way::Register);
        t.ensure_own(A, "s");
        let params: Value = serde_json::from_str(question).unwrap();
        let ask = |id: &str| [json!({"id": id, "method": "elicitation/create", "params": params})];
        t.prompt(B, "s");
        t.answer_all();
        t.say(&ask("e"));
        let declined = t.received.iter().find(|message| message["id"] == "e");
        let action = declined.map(|answer| answer["result"]["action"].clone());
        let want = (policy == Mode::Deny).then(|| json!("decline"));
        assert_eq!(action, want, "{question} {policy:?}");
        assert_eq!(t.asked(A).is_empty(), policy == Mode::Deny, "{question}");
    }
}

#[test]
fn open_question_that_names_no_session_is_judged_by_the_terms_of_the_next_turn() {
    for policy in [Mode::Deny, Mode::Ask] {
        let mut t = daemon();
        for (client, mode) in [(A, Mode::Approve), (B, policy)] {
            t.join(client, mode, &[]);
            t.connect_with(client, &json!({"questions": true}));
        }
        t.define(A, Way::Register);
        t.ensure_own(A, "s");
        let params: Value = serde_json::from_str(FORM).unwrap();
        t.say(&[json!({"id": "e", "method": "elicitation/create", "params": params})]);
        let action = |t: &Fixture| {
            let answer = t.received.iter().find(|message| message["id"] == "e");
            answer.map(|answer| answer["result"]["action"].clone())
        };
        t.prompt(A, "s");
        t.answer_all();
        t.end_turn();
        assert_eq!(action(&t), None, "a turn that allows it");
        t.prompt(B, "s");
        t.answer_all();
        let want = (policy == Mode::Deny).then(|| json!("decline"));
        assert_eq!(action(&t), want, "{policy:?}");
    }
}

#[test]
fn client_that_names_no_agent_differs_in_none() {
    let mut t = daemon();
    t.join(A, Mode::Approve, &[]);
    let call = t.call(A, Command::Ensure(params(json!({"sessionId": "s"}))));
    t.answer_all();
    t.result(A, call);
    let mut settings = Box::new(SettingsBuilder::new(t.now).build());
    let unnamed = &mut settings.default_agent;
    unnamed.spec.command = "demo".into();
    for (client, source) in [(B, AgentSource::Demo), (C, AgentSource::Client)] {
        settings.default_agent.spec.source = source;
        t.hub.client_joined(client, settings.clone()).unwrap();
        t.connect_with(client, &json!({}));
        let wish = json!({"sessionId": "s"});
        let call = t.call(client, Command::Ensure(params(wish)));
        t.answer_all();
        let recovery = t.result(client, call)["recovery"].clone();
        let differing = recovery["differingSettings"].to_string();
        let is_named = source == AgentSource::Client;
        assert_eq!(differing.contains(r#""agent""#), is_named, "{differing}");
    }
}
