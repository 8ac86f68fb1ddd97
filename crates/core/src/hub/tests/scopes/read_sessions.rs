//! Tests of stored sessions that a client reads before another client opens them: those of the client that opens a session hold,
//! however it was loaded.

use super::super::fixture::{A, B, C, Fixture};
use super::super::idle::Disk;
use crate::agent_definition::AgentDefinition;
use crate::client::{ClientId, Command, History};
use crate::hub::{AgentInput, Exit, HubCx};
use crate::testing::{SettingsBuilder, params};
use acpipe_model::error::ErrorKind;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::wire::AgentSource;
use serde_json::{Value, json};
use std::time::Instant;

/// Client with the settings of the daemon, such as a browser.
const BROWSER: ClientId = ClientId(3);

/// Name of a call, and the call.
type NamedCall = (&'static str, fn() -> Command);

/// Calls that read a session.
const READS: [NamedCall; 7] = [
    ("session/get", || {
        Command::History(History::GetSession(params(json!({"sessionId": "s"}))))
    }),
    ("message/list", || {
        Command::History(History::ListMessages(params(json!({"sessionId": "s"}))))
    }),
    ("message/last", || {
        Command::History(History::LastMessage(params(json!({"sessionId": "s"}))))
    }),
    ("session/replay", || {
        let asked = json!({"sessionId": "s", "afterSeq": 0});
        Command::History(History::Replay(params(asked)))
    }),
    ("session/attach", || {
        Command::Attach(params(json!({"sessionId": "s", "afterSeq": 0})))
    }),
    ("session/attach as observer", || {
        let asked = json!({"sessionId": "s", "role": "observer"});
        Command::Attach(params(asked))
    }),
    ("session/subscribe", || {
        Command::Subscribe(params(json!({"sessionId": "s", "chunks": true})))
    }),
];

/// Calls that open a session.
const OPENS: [NamedCall; 4] = [
    ("session/prompt", || {
        Command::Prompt(params(json!({"sessionId": "s", "message": "go"})))
    }),
    ("session/setMode", || {
        Command::SetMode(params(json!({"sessionId": "s", "mode": "m"})))
    }),
    ("session/setOption", || {
        let option = json!({"sessionId": "s", "option": "o", "value": "v"});
        Command::SetOption(params(option))
    }),
    ("session/ensure", || {
        Command::Ensure(params(json!({"sessionId": "s"})))
    }),
];

fn daemon_on(disk: &Disk) -> Fixture {
    let settings = SettingsBuilder::new(Instant::now());
    let daemon = Fixture::under(Mode::Approve, Box::new(disk.clone()), settings, &[]);
    Fixture {
        hub: daemon.hub.resident(),
        ..daemon
    }
}

/// Returns a daemon that has a stored session `s` of this agent, and no agent.
fn with_stored(agent: Option<&str>) -> Fixture {
    let disk = Disk::default();
    let mut t = daemon_on(&disk);
    t.join_with_mark(C, Mode::Approve, "before", agent.is_some());
    t.ensure_at(C, agent);
    t.prompt(C, "s");
    t.end_turn();
    daemon_on(&disk)
}

impl Fixture {
    /// Connects a client that gives its agents the variable `MARK`. It has an agent `named` if `has_named` is `true`.
    fn join_with_mark(&mut self, client: ClientId, mode: Mode, mark: &str, has_named: bool) {
        let mut settings = Box::new(SettingsBuilder::new(self.now).policy(mode).build());
        let spec = &mut settings.default_agent.spec;
        spec.env.0.insert("MARK".to_owned(), Some(mark.to_owned()));
        if has_named {
            let mut named = AgentDefinition::new("named", spec.clone());
            named.spec.source = AgentSource::Configuration;
            settings.agents.push(named);
        }
        self.hub.client_joined(client, settings).unwrap();
        self.connect_with(client, &json!({}));
    }

    fn ensure_at(&mut self, client: ClientId, agent: Option<&str>) {
        let wish = json!({"sessionId": "s", "agent": agent});
        let call = self.call(client, Command::Ensure(params(wish)));
        self.answer_all();
        self.result(client, call);
    }

    fn mark(&self) -> Option<&str> {
        let agent = self.hub.router.sessions().get("s").unwrap().agent;
        let spec = self.hub.router.agents().get(agent).spec();
        spec.env.0.get("MARK")?.as_deref()
    }

    /// Opens `s` by a call of client `B`, which denies, and checks that its settings hold, also for a later prompt of `A`.
    fn open_by_b(&mut self, open: fn() -> Command, case: &str) {
        self.call(B, open());
        // An observer may not prompt.
        let attach = json!({"sessionId": "s", "role": "controller"});
        self.call(A, Command::Attach(params(attach)));
        // A prompt that waits for the opening does not change it.
        self.prompt(A, "s");
        self.answer_all();
        assert_eq!(self.mark(), Some("B"), "{case}");
        while !self.requests.is_empty() {
            self.end_turn();
            self.answer_all();
        }
        assert_eq!(self.chosen_for(A, "s", "edit"), "n", "{case}");
    }
}

#[test]
fn settings_of_the_client_that_opens_a_session_hold_whichever_client_has_read_it() {
    for agent in [None, Some("named")] {
        for (reader, read_first) in [(A, true), (BROWSER, true), (A, false)] {
            for (read, asked) in READS {
                for (how, open) in OPENS {
                    let case = format!("{agent:?} {reader:?} {read_first} {read} {how}");
                    let mut t = with_stored(agent);
                    t.join_with_mark(A, Mode::Approve, "A", true);
                    t.join_with_mark(B, Mode::Deny, "B", true);
                    t.connect_with(BROWSER, &json!({}));
                    if read_first {
                        let call = t.call(reader, asked());
                        let mut answer = t.reply(reader, call);
                        while answer.is_none() && t.hub.is_reading(&mut t.sinks) {
                            t.hub.read_on(&mut HubCx::new(t.now, &mut t.sinks));
                            t.settle();
                            answer = t.reply(reader, call);
                        }
                        assert!(matches!(answer, Some(Ok(_))), "{case}: {answer:?}");
                    }
                    t.open_by_b(open, &case);
                }
            }
        }
    }
}

/// The agent of `A`, which had the session, has ended: a prompt or setting keeps the settings of `A`.
#[test]
fn session_whose_agent_has_ended_keeps_its_settings_unless_it_is_ensured() {
    for agent in [None, Some("named")] {
        for (how, open) in OPENS {
            for is_stopped in [false, true] {
                let case = format!("{agent:?} {how} {is_stopped}");
                let mut t = with_stored(agent);
                t.join_with_mark(A, Mode::Approve, "A", true);
                t.join_with_mark(B, Mode::Deny, "B", true);
                t.ensure_at(A, agent);
                assert_eq!(t.mark(), Some("A"), "{case}");
                if is_stopped {
                    t.call(A, Command::Disconnect(params(json!({"agent": agent}))));
                }
                let process = *t.agents.last().unwrap();
                let exited = AgentInput::Exited(Exit::default());
                let cx = &mut HubCx::new(t.now, &mut t.sinks);
                assert!(t.hub.agent(process, exited, cx).is_none());
                t.settle();
                t.call(B, open());
                t.answer_all();
                let want = if how == "session/ensure" { "B" } else { "A" };
                assert_eq!(t.mark(), Some(want), "{case}");
            }
        }
    }
}

/// A session of an agent that the client's configuration does not have is refused, also if the reader's has it.
#[test]
fn agent_of_a_reader_does_not_open_a_session_for_a_client_without_it() {
    for (how, open) in OPENS {
        let outcome = |reads: bool| -> Option<Result<Value, ErrorKind>> {
            let mut t = with_stored(Some("named"));
            t.join_with_mark(A, Mode::Approve, "A", true);
            t.join_with_mark(B, Mode::Deny, "B", false);
            if reads {
                t.call(A, READS[0].1());
            }
            let call = t.call(B, open());
            let started = t.agents.len();
            assert_eq!(started, 0, "{how} {reads}");
            t.reply(B, call)
        };
        assert!(matches!(outcome(false), Some(Err(_))), "{how}");
        assert_eq!(outcome(true), outcome(false), "{how}");
    }
}

/// The session had an agent without a name, which is the default agent of no client.
#[test]
fn reader_does_not_give_its_settings_to_an_agent_that_only_the_session_knows() {
    for (how, open) in OPENS {
        let join = |t: &mut Fixture, client, mode, command: &str| {
            let mut settings = Box::new(SettingsBuilder::new(t.now).policy(mode).build());
            settings.default_agent.spec.command = command.to_owned();
            t.hub.client_joined(client, settings).unwrap();
            t.connect_with(client, &json!({}));
        };
        let disk = Disk::default();
        let mut before = daemon_on(&disk);
        join(&mut before, C, Mode::Approve, "another");
        before.ensure_at(C, None);
        let mut t = daemon_on(&disk);
        join(&mut t, A, Mode::Approve, "own");
        join(&mut t, B, Mode::Deny, "own");
        t.call(A, READS[0].1());
        t.call(B, open());
        t.answer_all();
        while !t.requests.is_empty() {
            t.end_turn();
            t.answer_all();
        }
        let agent = t.hub.router.sessions().get("s").unwrap().agent;
        let definition = t.hub.router.agents().get(agent).definition();
        let policy = definition.policy.as_deref();
        assert!(policy == Some(&Policy::from(Mode::Deny)), "{how}");
    }
}

/// The session has an agent that a client defined, or one without a name that is another program than the default agent.
#[test]
fn stored_session_of_another_program_gets_no_variables_of_the_default_agent() {
    for is_named in [true, false] {
        let disk = Disk::default();
        let mut t = daemon_on(&disk);
        let mut settings = Box::new(SettingsBuilder::new(t.now).build());
        settings.default_agent.spec.command = "other".to_owned();
        t.hub.client_joined(A, settings).unwrap();
        t.connect_with(A, &json!({}));
        if is_named {
            let own = json!({"agent": "own", "command": "own"});
            t.call(A, Command::Register(params(own)));
        }
        t.ensure_at(A, is_named.then_some("own"));
        t.prompt(A, "s");
        t.end_turn();
        let mut t = daemon_on(&disk);
        t.join_with_mark(B, Mode::Approve, "b", false);
        t.ensure_at(B, None);
        let agent = t.hub.router.sessions().get("s").unwrap().agent;
        let spec = t.hub.router.agents().get(agent).spec();
        assert_eq!(spec.command, if is_named { "own" } else { "other" });
        assert_eq!(t.mark(), None, "{is_named}");
    }
}
