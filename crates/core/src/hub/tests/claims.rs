//! Tests of agent session ids that an agent gives out again: the id leads no session into another one.

use super::play::{Play, params, settings};
use crate::agent_definition::AgentDefinition;
use crate::client::{Command, History};
use crate::hub::HubCx;
use crate::store::{Card, CardQuery, LogFile, MemoryStore, Store, StoreEvent};
use acpipe_model::error::Error;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A store on which other programs store sessions, too.
#[derive(Debug)]
struct Shared;

impl Store for Shared {
    fn has(&self, _: &str) -> Result<bool, Error> {
        Ok(false)
    }
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        MemoryStore.open(id)
    }
    fn list(&mut self, _: u64, query: CardQuery) -> bool {
        assert_eq!(query.agent_session.as_deref(), Some("session-1"));
        true
    }
}

impl Play {
    /// Ensures a session. The agent starts if necessary, and creates a session under this id.
    fn create(&mut self, session: &str, id: &str) {
        self.ensure(json!({ "sessionId": session }));
        let new = match self.sent() {
            // The agent has been started.
            Value::Null => panic!("nothing was sent"),
            hello if hello["method"] == "initialize" => self.hello(&hello),
            call => call,
        };
        assert_eq!(new["method"], "session/new", "{session}: {new}");
        self.answer(&new, &json!({ "sessionId": id }));
    }

    fn hello(&mut self, hello: &Value) -> Value {
        let offers = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
        self.answer(
            hello,
            &json!({"protocolVersion": 1, "agentCapabilities": offers}),
        )
    }

    fn turn(&mut self, session: &str) {
        let prompt = json!({"sessionId": session, "message": "hi"});
        self.ask(Command::Prompt(params(prompt)));
        let prompt = self.sent();
        assert_eq!(prompt["method"], "session/prompt", "{prompt}");
        self.answer(&prompt, &json!({"stopReason": "end_turn"}));
    }

    /// Ensures a session with a running agent. Returns the call to the agent and the client's.
    fn reopen(&mut self, wish: Value) -> (Value, u64) {
        let token = self.ensure(wish);
        (self.sent(), token)
    }

    /// Sessions `a` and, after a restart of the agent, `b` were created under one id.
    fn taken(store: Box<dyn Store>) -> Self {
        let mut play = Self::of(settings(Instant::now()), store);
        play.create("a", "session-1");
        play.turn("a");
        play.crash();
        play.now += Duration::from_secs(5);
        play.create("b", "session-1");
        play
    }

    fn close(&mut self, session: &str) {
        self.history(History::CloseSession(params(
            json!({ "sessionId": session }),
        )));
        self.sent();
    }
}

/// Asserts that a session gets a new session of the agent, and that its receipt names the session that has the id.
fn assert_lost(play: &mut Play, to: &str) {
    let (call, token) = play.reopen(json!({"sessionId": "a"}));
    assert_eq!(call["method"], "session/new", "{call}");
    play.answer(&call, &json!({"sessionId": "session-2"}));
    let recovery = &play.result(token)["recovery"];
    assert_eq!(recovery["memory"], "lost", "{recovery}");
    let failed = recovery["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 1, "{recovery}");
    let message = failed[0]["message"].as_str().unwrap();
    assert!(message.contains(&format!("session {to:?}")), "{message}");
    // Until a turn has reported it, another call reports it, too.
    let (call, token) = play.reopen(json!({"sessionId": "a"}));
    assert_eq!(call, Value::Null);
    let again = &play.result(token)["recovery"];
    assert_eq!(
        (&again["rung"], &again["memory"]),
        (&json!("live"), &json!("lost"))
    );
}

#[test]
fn session_whose_id_a_live_session_got_opens_with_a_new_session() {
    let mut play = Play::taken(Box::new(MemoryStore));
    assert_lost(&mut play, "b");
}

#[test]
fn closed_session_that_got_the_id_still_has_it() {
    let mut play = Play::taken(Box::new(MemoryStore));
    play.close("b");
    assert_lost(&mut play, "b");
}

#[test]
fn session_that_got_the_id_has_it_after_it_was_deleted() {
    let mut play = Play::taken(Box::new(MemoryStore));
    play.history(History::ClearSession(params(json!({ "sessionId": "b" }))));
    play.sent();
    play.crash();
    play.now += Duration::from_secs(5);
    play.ensure(json!({"sessionId": "a"}));
    let hello = play.sent();
    assert_eq!(play.hello(&hello)["method"], "session/new");
}

#[test]
fn time_of_day_does_not_matter() {
    let mut play = Play::of(settings(Instant::now()), Box::new(MemoryStore));
    play.create("a", "session-1");
    play.turn("a");
    play.crash();
    play.now += Duration::from_secs(5);
    // The clock is set back by more than the time that has passed.
    play.hub.set_time_of_day(play.now, -1_000_000);
    play.create("b", "session-1");
    play.turn("b");
    assert_lost(&mut play, "b");
    play.crash();
    play.now += Duration::from_secs(5);
    play.ensure(json!({"sessionId": "b"}));
    let hello = play.sent();
    assert_eq!(play.hello(&hello)["method"], "session/resume");
}

#[test]
fn all_names_of_a_program_have_the_same_ids() {
    let mut settings = settings(Instant::now());
    let spec = settings.default_agent.spec.clone();
    settings.agents.push(AgentDefinition::new("other", spec));
    let mut play = Play::of(settings, Box::new(MemoryStore));
    play.create("a", "session-1");
    play.turn("a");
    play.crash();
    play.now += Duration::from_secs(5);
    play.ensure(json!({"sessionId": "b", "agent": "other"}));
    let hello = play.sent();
    let new = play.hello(&hello);
    assert_eq!(new["method"], "session/new");
    play.answer(&new, &json!({"sessionId": "session-1"}));
    play.ensure(json!({"sessionId": "a"}));
    let hello = play.sent();
    assert_eq!(play.hello(&hello)["method"], "session/new");
}

#[test]
fn session_of_an_execute_call_that_got_the_id_still_has_it() {
    let mut play = Play::of(settings(Instant::now()), Box::new(MemoryStore));
    play.create("a", "session-1");
    play.turn("a");
    play.crash();
    play.now += Duration::from_secs(5);
    play.ask(Command::Execute(params(
        json!({"sessionId": "e", "message": "hi"}),
    )));
    let hello = play.sent();
    let new = play.hello(&hello);
    assert_eq!(new["method"], "session/new");
    let prompt = play.answer(&new, &json!({"sessionId": "session-1"}));
    play.answer(&prompt, &json!({"stopReason": "end_turn"}));
    assert_lost(&mut play, "e");
}

#[test]
fn strategies_without_a_new_session_fail_and_name_the_session() {
    for strategy in ["resume", "load"] {
        let mut play = Play::taken(Box::new(MemoryStore));
        let (call, token) = play.reopen(json!({"sessionId": "a", "strategy": strategy}));
        assert_eq!(call, Value::Null);
        assert!(play.error(token).contains("session \"b\""), "{strategy}");
    }
}

#[test]
fn session_that_adopts_the_agents_session_takes_no_id() {
    let mut play = Play::of(settings(Instant::now()), Box::new(MemoryStore));
    play.create("a", "session-1");
    play.turn("a");
    play.crash();
    play.now += Duration::from_secs(5);
    play.ensure(json!({"sessionId": "c", "agentSessionId": "session-1", "strategy": "resume"}));
    let hello = play.sent();
    let resume = play.hello(&hello);
    assert_eq!(resume["method"], "session/resume");
    play.answer(&resume, &json!({}));
    play.close("c");
    let (call, token) = play.reopen(json!({"sessionId": "a"}));
    assert_eq!(call["method"], "session/resume", "{call}");
    play.answer(&call, &json!({}));
    assert_eq!(play.result(token)["recovery"]["memory"], "kept");
    // The agent then gives the id to another session: the adopting session has lost it, too.
    play.crash();
    play.now += Duration::from_secs(5);
    play.create("b", "session-1");
    assert_lost(&mut play, "b");
}

#[test]
fn session_that_the_agent_created_last_keeps_its_id() {
    let mut play = Play::taken(Box::new(MemoryStore));
    play.crash();
    play.now += Duration::from_secs(5);
    play.ensure(json!({"sessionId": "b"}));
    let hello = play.sent();
    let call = play.hello(&hello);
    // Its history is not stored, so it is loaded.
    assert_eq!(call["method"], "session/load");
}

/// Returns the card of a session that another program stored.
fn card(session: &str, since: &str, created: bool) -> Card {
    let given = json!({
        "agent": "agent", "id": "session-1", "since": since, "created": created,
    });
    serde_json::from_value(json!({ "sessionId": session, "agents": [given] })).unwrap()
}

#[test]
fn stored_session_that_got_the_id_later_has_it() {
    for (since, created, is_lost) in [
        ("2999-01-01T00:00:00.000Z", true, true),
        ("1969-01-01T00:00:00.000Z", true, false),
        ("2999-01-01T00:00:00.000Z", false, false),
    ] {
        let mut play = Play::of(settings(Instant::now()), Box::new(Shared));
        play.create("a", "session-1");
        play.turn("a");
        play.crash();
        play.now += Duration::from_secs(5);
        let token = play.ensure(json!({"sessionId": "a"}));
        let hello = play.sent();
        // The restore waits for the search; the agent starts meanwhile.
        assert_eq!(play.hello(&hello), Value::Null);
        let tickets = play.hub.router.shared().pending_store_replies.keys();
        let ticket = *tickets.last().expect("a search");
        let mut found = card("other", since, created);
        found.agents[0].agent = {
            let session = play.hub.router.sessions().get("a").unwrap();
            session.known.given()[0].agent.clone()
        };
        // A card of an open session is older than the session.
        let own = card("a", "2999-01-01T00:00:00.000Z", true);
        let outcome = Ok(vec![own, found]);
        let event = StoreEvent::Listed { ticket, outcome };
        play.hub
            .stored(event, &mut HubCx::new(play.now, &mut play.client));
        let call = play.sent();
        let method = if is_lost {
            "session/new"
        } else {
            "session/resume"
        };
        assert_eq!(call["method"], method, "{since} {created}");
        assert!(!play.client.answers.contains_key(&token));
    }
}

#[test]
fn search_that_the_disk_does_not_answer_ends_in_time() {
    let mut play = Play::of(settings(Instant::now()), Box::new(Shared));
    play.create("a", "session-1");
    play.turn("a");
    play.crash();
    play.now += Duration::from_secs(5);
    play.ensure(json!({"sessionId": "a"}));
    let hello = play.sent();
    assert_eq!(play.hello(&hello), Value::Null);
    let begun = play.now;
    let call = loop {
        play.wait();
        match play.sent() {
            Value::Null => assert!(play.now - begun <= Duration::from_secs(10)),
            call => break call,
        }
    };
    assert_eq!(call["method"], "session/resume");
}
