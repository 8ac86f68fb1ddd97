//! Modes, models and options: set by the client, and set again in a session that was brought back.

use super::commands::{STOPPING, out_of_order};
use super::{Bridge, Call};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Wait;
use crate::core::session::{Session, Stage};
use crate::core::setting::Setting;
use crate::proto::json::Members;
use crate::proto::wire::{Protocol, SettingResult, Strategy};
use serde_json::Value;
use std::time::Instant;

/// What the agent was asked to set.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    session: String,
    agent_session: String,
    setting: Setting,
}

impl Bridge {
    /// Sets something; in a session that is not live once it was brought back.
    pub(super) fn set(
        &mut self,
        token: Token,
        id: &str,
        setting: Setting,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let session = self.session(id)?;
        let (resting, agent_session) = (
            matches!(session.stage, Stage::Resting),
            session.agent_session().map(str::to_owned),
        );
        let resolved = agent_session
            .as_ref()
            .map(|_| setting.clone().resolve(&session.state));
        session.used = Some(now);
        let comes_back = agent_session.is_none() && self.is_renewing();
        if self.is_stopping() && !comes_back {
            return Err(out_of_order(STOPPING));
        }
        if let (Some(agent_session), Some(setting)) = (agent_session, resolved) {
            let setting = setting?;
            let call = self.ask_to_set(id, &agent_session, &setting);
            let until = self.settings.limits.until(Wait::Set, now);
            if let Some(session) = self.sessions.get_mut(id) {
                session.settings.wait(call, token, until);
            }
            return Ok(());
        }
        if resting {
            self.make_room(id, now, outlet)?;
            self.need_agent_for(id, now, outlet)?;
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.settings.queue(token, setting);
            if resting {
                session.begin_opening(Strategy::Auto, Vec::new());
                self.climb(id, now, outlet);
            }
        }
        Ok(())
    }

    fn ask_to_set(&mut self, id: &str, agent_session: &str, setting: &Setting) -> CallId {
        let call = self.next_call(Call::Set(Asked {
            session: id.to_owned(),
            agent_session: agent_session.to_owned(),
            setting: setting.clone(),
        }));
        if let Some(agent) = &mut self.agent {
            let out = &mut agent.out;
            agent.dialect.set(call, agent_session, setting, out);
        }
        call
    }

    /// The session is live: what was to be set meanwhile is set.
    pub(super) fn set_queued(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let queued = self.sessions.get_mut(id).map(|s| s.settings.take_queued());
        for (token, setting) in queued.into_iter().flatten() {
            if let Err(error) = self.set(token, id, setting, now, outlet) {
                outlet.reply(token, Err(error));
            }
        }
    }

    /// The agent answered: it has set something and told this, or it has not.
    pub(super) fn was_set(
        &mut self,
        call: CallId,
        asked: Asked,
        told: Result<&Members<'_>, Error>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let id = asked.session;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.is_asked(call) {
            match told {
                Ok(news) => {
                    session.was_restored(&asked.setting, news);
                    self.restore(&id, now, outlet);
                }
                Err(error) => self.not_restored(&id, error, now, outlet),
            }
            return;
        }
        let answer = match told {
            Ok(_) if session.agent_session() != Some(&*asked.agent_session) => {
                let message = format!("session {id:?} was opened anew before the agent answered");
                Err(Error::new(ErrorKind::Cancelled, message))
            }
            Ok(news) => {
                session.take_over(asked.setting, news, outlet);
                let state = Value::Object(session.state.clone());
                self.identify(&id, now, outlet)
                    .map(|()| Reply::Setting(SettingResult { state }))
            }
            Err(error) => Err(error),
        };
        let waiter = |s: &mut Session| s.settings.answered(call);
        if let Some(token) = self.sessions.get_mut(&id).and_then(waiter) {
            outlet.reply(token, answer);
        }
    }

    /// The agent has the session: checks the mode that it was started in, then sets what is to be set.
    pub(super) fn begin_to_restore(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let starts_in_mode = self.spec_in_use().protocol == Protocol::Claude;
        let session = self.sessions.get_mut(id).filter(|_| starts_in_mode);
        match session.map_or(Ok(()), Session::check_mode) {
            Ok(()) => self.restore(id, now, outlet),
            Err(error) => self.opening_refused(id, &error, now, outlet),
        }
    }

    /// Sets again what the client had set and the session does not show, one after the other; then it is live.
    pub(super) fn restore(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let (agent_session, setting) = match session.next_to_restore() {
            Ok(Some(next)) => next,
            Ok(None) => {
                self.live(id, now, outlet);
                return;
            }
            Err(error) => {
                self.opening_refused(id, &error, now, outlet);
                return;
            }
        };
        let call = self.ask_to_set(id, &agent_session, &setting);
        if let Some(session) = self.sessions.get_mut(id) {
            session.opening(call, now, self.settings.limits.of(Wait::Set));
        }
    }

    /// One of them could not be set: the receipt says so, or the session is not opened where it was required.
    fn not_restored(&mut self, id: &str, error: Error, now: Instant, outlet: &mut impl Outlet) {
        let session = self.sessions.get_mut(id);
        match session.map_or(Ok(()), |session| session.not_restored(error)) {
            Ok(()) => self.restore(id, now, outlet),
            Err(error) => self.opening_refused(id, &error, now, outlet),
        }
    }

    /// The agent has the session, but not with the settings that are required: it is closed there, and nothing is
    /// prompted.
    pub(super) fn opening_refused(
        &mut self,
        id: &str,
        error: &Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let agent_session = session.restoring().map(|r| r.agent_session.clone());
        session.reset_options();
        // The agent may have said something meanwhile that nobody asked for: that ends, and is kept.
        session.end_unprompted(Some(error), outlet);
        if session.log.identity().is_none() && session.log.seq() == 0 {
            // It was made for this session, and what the agent repeated belongs to none now.
            let _ = session.log.remove(false);
        }
        if let Some(agent_session) = agent_session {
            self.close_at_agent(&agent_session, now);
        }
        self.opening_failed(id, error, now, outlet);
    }

    /// The agent did not answer in time. The call is not forgotten: a late answer still counts.
    pub(super) fn restored_too_late(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let error = self.set_too_late(id, now);
        self.not_restored(id, error, now, outlet);
    }

    /// Gives up the waits for what was to be set that are due.
    pub(super) fn tick_settings(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let due = self.sessions.get_mut(id).map(|s| s.settings.take_due(now));
        for token in due.into_iter().flatten() {
            outlet.reply(token, Err(self.set_too_late(id, now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::bridge::tests_settings::settings;
    use crate::core::bridge::{AgentId, AgentInput, Effect};
    use crate::core::client::{Command, Notice, Place};
    use crate::proto::chunk::Chunk;
    use crate::proto::frame::Batch;
    use serde_json::json;
    use std::time::Duration;

    /// The client: the last answer, and how often the state was told.
    #[derive(Default)]
    struct Heard {
        answer: Option<Result<Value, Error>>,
        states: usize,
    }

    impl Outlet for Heard {
        fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
            self.answer = Some(answer.map(|reply| serde_json::to_value(reply).unwrap()));
        }
        fn chunk(&mut self, _: Place<'_>, _: &Chunk<'_>, _: &[u8]) {}
        fn stored_chunk(&mut self, _: Place<'_>, _: &Value) {}
        fn retract(&mut self, _: &str, _: u64) {}
        fn notify(&mut self, notice: Notice) {
            self.states += usize::from(matches!(notice, Notice::SessionState(_)));
        }
    }

    struct Play {
        bridge: Bridge,
        heard: Heard,
        now: Instant,
    }

    impl Play {
        /// Gives a command and returns the call it made to the agent.
        fn command(&mut self, command: Command) -> Value {
            let (now, heard) = (self.now, &mut self.heard);
            self.bridge.command(Token(1), command, now, heard);
            self.sent()
        }

        fn sent(&mut self) -> Value {
            let sent = |effect| match effect {
                Effect::Send(_, line) => Some(serde_json::from_slice(&line).unwrap()),
                _ => None,
            };
            let calls: Vec<Value> = self
                .bridge
                .effects(self.now)
                .into_iter()
                .filter_map(sent)
                .collect();
            calls.last().cloned().unwrap_or_default()
        }

        /// Answers a call and returns the next.
        fn answer(&mut self, call: &Value, result: &Value) -> Value {
            let line = json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
            let batch = AgentInput::Batch(Batch::Lines(format!("{line}\n").into()));
            let (now, heard) = (self.now, &mut self.heard);
            assert!(self.bridge.agent(AgentId(1), batch, now, heard).is_none());
            self.sent()
        }

        /// Lets the limit pass, and no less than that.
        fn wait(&mut self) {
            self.heard.answer = None;
            let limit = self.bridge.settings.limits.of(Wait::Set).unwrap();
            self.now += limit.saturating_sub(Duration::from_millis(1));
            self.bridge.tick(self.now, &mut self.heard);
            assert!(self.heard.answer.is_none());
            self.now += Duration::from_millis(1);
            self.bridge.tick(self.now, &mut self.heard);
        }
    }

    /// With a live session whose agent has two modes.
    fn play() -> (Play, Value) {
        let mut play = Play {
            bridge: Bridge::new(
                settings(Instant::now()),
                Box::new(crate::core::store::Volatile),
            ),
            heard: Heard::default(),
            now: Instant::now(),
        };
        let new = json!({"sessionId": "S", "modes": {"currentModeId": "a",
            "availableModes": [{"id": "a"}, {"id": "b"}]}});
        let hello = serde_json::from_value(json!({"protocolVersion": 1})).unwrap();
        play.command(Command::Initialize(hello));
        let call = play.command(ensure(&json!("auto")));
        let call = play.answer(&call, &json!({"protocolVersion": 1}));
        play.answer(&call, &new);
        (play, new)
    }

    fn ensure(strategy: &Value) -> Command {
        Command::Ensure(serde_json::from_value(json!({ "strategy": strategy })).unwrap())
    }

    fn set_mode() -> Command {
        Command::SetMode(serde_json::from_value(json!({"mode": "b"})).unwrap())
    }

    #[test]
    fn a_wait_is_given_up_and_a_late_answer_still_counts() {
        let (mut play, _) = play();
        let call = play.command(set_mode());
        play.wait();
        let error = play.heard.answer.take().unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert_eq!((play.bridge.deadline(), play.heard.states), (None, 0));
        play.answer(&call, &json!({}));
        assert_eq!(play.heard.states, 1);
        assert!(play.heard.answer.is_none());
        play.command(ensure(&json!("auto")));
        let state = play.heard.answer.unwrap().unwrap()["state"].clone();
        assert_eq!(state["modes"]["currentModeId"], "b");
    }

    #[test]
    fn an_agent_that_does_not_restore_in_time_gives_the_session_all_the_same() {
        let (mut play, mut new) = play();
        let call = play.command(set_mode());
        play.answer(&call, &json!({}));
        play.heard.answer = None;
        let call = play.command(ensure(&json!("new")));
        new["sessionId"] = json!("T");
        let again = play.answer(&call, &new);
        assert_eq!(again["params"], json!({"sessionId": "T", "modeId": "b"}));
        assert!(play.heard.answer.is_none());
        play.wait();
        let answer = play.heard.answer.take().unwrap().unwrap();
        let lost = &answer["recovery"]["notRestored"][0];
        assert_eq!(
            (&lost["setting"], &lost["value"]),
            (&json!("mode"), &json!("b"))
        );
        assert_eq!(answer["state"]["modes"]["currentModeId"], "a");
    }

    #[test]
    fn an_answer_for_a_session_that_was_opened_anew_changes_nothing() {
        let (mut play, mut new) = play();
        let late = play.command(set_mode());
        let call = play.command(ensure(&json!("new")));
        new["sessionId"] = json!("T");
        play.answer(&call, &new);
        play.heard.answer = None;
        play.answer(&late, &json!({}));
        let error = play.heard.answer.take().unwrap().unwrap_err();
        assert_eq!((error.kind, play.heard.states), (ErrorKind::Cancelled, 0));
    }
}
