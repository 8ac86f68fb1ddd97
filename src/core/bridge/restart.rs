//! The agent is started again: by whoever needs it, after a crash, a few times and ever more slowly.

use super::commands::out_of_order;
use super::{AgentSpec, Bridge, Phase};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::proto::wire::{AgentSource, AgentState};
use std::time::{Duration, Instant};

/// How often an agent that ends without having ended a turn is started again.
const RESTARTS: u32 = 3;

/// How long an agent rests that ended so many times in a row.
fn pause(crashes: u32) -> Duration {
    Duration::from_secs(crashes.saturating_sub(1).into())
}

/// An agent that ended though nobody wished it, until it is ready again.
pub(super) struct Crashed {
    pub spec: AgentSpec,
    /// When it ended.
    pub at: Instant,
}

impl Bridge {
    /// There is an agent or one is started for this session, if the user named one or the session had one: nobody
    /// gets the demo agent by mistake.
    pub(super) fn need_agent_for(
        &mut self,
        id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        self.must_not_be_taken_by_demo(id)?;
        if self.agent.is_some() || self.restart_at.is_some() {
            return Ok(());
        }
        if let Some(crashed) = &self.crashed {
            if self.crashes > RESTARTS {
                let message = format!(
                    "the agent ended unexpectedly {} times in a row: call agent/connect to try again",
                    self.crashes
                );
                return Err(Error::new(ErrorKind::AgentExited, message));
            }
            let at = crashed.at + pause(self.crashes);
            if at > now {
                self.restart_at = Some(at);
                Self::tell_agent_state(AgentState::Starting, None, outlet);
            } else {
                self.start(crashed.spec.clone(), Vec::new(), now, outlet);
            }
            return Ok(());
        }
        let default = &self.settings.default_agent;
        if default.source == AgentSource::Demo {
            if let Some(own) = self.own_agent(id) {
                self.start(own, Vec::new(), now, outlet);
                return Ok(());
            }
            let why = match &self.last_end {
                Some(end) => format!("no agent is connected any more ({end})"),
                None => "no agent is connected".to_owned(),
            };
            return Err(out_of_order(&format!("{why}: call agent/connect first")));
        }
        self.start(default.clone(), Vec::new(), now, outlet);
        Ok(())
    }

    /// The pause after a crash is over.
    pub(super) fn tick_restart(&mut self, now: Instant, outlet: &mut impl Outlet) {
        if self.restart_at.is_some_and(|at| at <= now)
            && let Some(crashed) = &self.crashed
        {
            let spec = crashed.spec.clone();
            self.restarts = self.restarts.saturating_add(1);
            self.start(spec, Vec::new(), now, outlet);
        }
    }

    /// The agent is not started again: whoever waits for it is told.
    pub(super) fn give_up_restart(&mut self, now: Instant, outlet: &mut impl Outlet) {
        if self.restart_at.take().is_some() {
            let message = "the agent was disconnected before it was started again";
            self.fail_everything(&Error::new(ErrorKind::Cancelled, message), now, outlet);
            Self::tell_agent_state(AgentState::Disconnected, None, outlet);
        }
    }

    /// The agent ends though nobody wished it: one that served, or that did so before.
    pub(super) fn note_crash(&mut self, now: Instant) {
        let Some(agent) = &self.agent else { return };
        let counts = match agent.phase {
            Phase::Ready(_) => true,
            Phase::Starting { .. } => self.crashed.is_some(),
            Phase::Stopping { .. } => false,
        };
        if counts {
            self.crashes += 1;
            self.crashed = Some(Crashed {
                spec: agent.spec.clone(),
                at: now,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::bridge::tests_settings::settings;
    use crate::core::bridge::{AgentId, AgentInput, Bridge, Effect, Exit};
    use crate::core::client::{Command, Notice, Outlet, Place, Reply, Token};
    use crate::core::error::Error;
    use crate::proto::chunk::Chunk;
    use crate::proto::frame::Batch;
    use crate::proto::wire::{AgentState, CancelParams, ConnectParams, EnsureParams};
    use std::time::{Duration, Instant};

    /// A client that notes what went wrong and how the agent is.
    #[derive(Default)]
    struct Seen {
        errors: Vec<(u64, &'static str)>,
        states: Vec<AgentState>,
    }

    impl Outlet for Seen {
        fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
            if let Err(error) = answer {
                self.errors.push((token.0, error.kind.name()));
            }
        }
        fn chunk(&mut self, _: Place<'_>, _: &Chunk<'_>, _: &[u8]) {}
        fn stored_chunk(&mut self, _: Place<'_>, _: &serde_json::Value) {}
        fn retract(&mut self, _: &str, _: u64) {}
        fn notify(&mut self, notice: Notice) {
            if let Notice::AgentState(params) = notice {
                self.states.push(params.state);
            }
        }
    }

    struct Test {
        bridge: Bridge,
        seen: Seen,
        now: Instant,
        token: u64,
        started: u64,
    }

    impl Test {
        fn new() -> Self {
            let bridge = Bridge::new(
                settings(Instant::now()),
                Box::new(crate::core::store::Volatile),
            );
            let mut test = Self {
                bridge,
                seen: Seen::default(),
                now: Instant::now(),
                token: 0,
                started: 0,
            };
            let hello = serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap();
            test.ask(Command::Initialize(hello));
            test
        }

        fn ask(&mut self, command: Command) -> u64 {
            self.token += 1;
            let token = Token(self.token);
            self.bridge
                .command(token, command, self.now, &mut self.seen);
            self.token
        }

        fn ensure(&mut self) -> u64 {
            self.ask(Command::Ensure(EnsureParams::default()))
        }

        /// Whether an agent was started since the last time.
        fn starts(&mut self) -> bool {
            let before = self.started;
            for effect in self.bridge.effects(self.now) {
                if let Effect::Spawn(AgentId(id), _) = effect {
                    self.started = id;
                }
            }
            self.started > before
        }

        fn hear(&mut self, input: AgentInput) {
            let id = AgentId(self.started);
            let rest = self.bridge.agent(id, input, self.now, &mut self.seen);
            assert!(rest.is_none());
            self.bridge.drained(true, self.now, &mut self.seen);
        }

        /// The agent gets ready, then it ends.
        fn crash(&mut self) {
            let ready = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}\n";
            self.hear(AgentInput::Batch(Batch::Lines(ready.into())));
            self.hear(AgentInput::Exited(Exit::default()));
        }

        fn restart(&self) -> Option<Duration> {
            let (at, what) = self.bridge.deadline()?;
            assert_eq!(what, "restart");
            Some(at - self.now)
        }
    }

    /// An agent that ended twice in a row, and a session that waits for it.
    fn in_a_pause() -> (Test, u64) {
        let mut t = Test::new();
        for _ in 0..2 {
            t.ensure();
            assert!(t.starts());
            t.crash();
        }
        t.seen = Seen::default();
        let waits = t.ensure();
        assert!(!t.starts());
        (t, waits)
    }

    #[test]
    fn an_agent_that_crashes_is_started_ever_more_slowly_and_then_not_at_all() {
        let mut t = Test::new();
        t.ensure();
        assert!(t.starts());
        t.crash();
        // The pause begins with the end, not with the wish.
        for (late, rest) in [(0, 0), (300, 700), (400, 1600)].map(|(late, rest)| {
            let time = Duration::from_millis;
            (time(late), time(rest))
        }) {
            t.now += late;
            t.seen = Seen::default();
            let waits = t.ensure();
            if !rest.is_zero() {
                assert_eq!(t.bridge.status(t.now).state, AgentState::Starting);
                assert_eq!(t.restart(), Some(rest));
                assert!(!t.starts());
                t.now += rest;
                t.bridge.tick(t.now, &mut t.seen);
            }
            assert!(t.starts(), "{late:?} {rest:?}");
            t.crash();
            assert_eq!(t.seen.errors, [(waits, "agentExited")]);
            let states = [
                AgentState::Starting,
                AgentState::Ready,
                AgentState::Disconnected,
            ];
            assert_eq!(t.seen.states, states);
        }
        let refused = t.ensure();
        assert!(!t.starts());
        assert_eq!(t.seen.errors.last(), Some(&(refused, "agentExited")));
        assert_eq!(t.bridge.deadline(), None);
    }

    #[test]
    fn a_restart_that_fails_counts_and_is_tried_again() {
        let mut t = Test::new();
        t.ensure();
        assert!(t.starts());
        t.crash();
        t.ensure();
        assert!(t.starts());
        t.hear(AgentInput::Exited(Exit::default()));
        t.ensure();
        assert_eq!(t.restart(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_pause_can_be_cut_short() {
        let (mut t, waits) = in_a_pause();
        let message = serde_json::from_str(r#"{"message":"x"}"#).unwrap();
        let prompt = t.ask(Command::Prompt(message));
        t.ask(Command::Cancel(CancelParams::default()));
        assert_eq!(t.seen.errors, [(prompt, "cancelled")]);
        t.ask(Command::Disconnect);
        assert_eq!(t.seen.errors[1..], [(waits, "cancelled")]);
        assert_eq!(t.bridge.deadline(), None);
        let states = [AgentState::Starting, AgentState::Disconnected];
        assert_eq!(t.seen.states, states);

        let (mut t, waits) = in_a_pause();
        t.ask(Command::Shutdown);
        assert_eq!(t.seen.errors, [(waits, "cancelled")]);
        assert_eq!(t.bridge.effects(t.now), [Effect::Finished]);

        // Whoever connects wants it now.
        let (mut t, _) = in_a_pause();
        t.ask(Command::Connect(ConnectParams::default()));
        assert!(t.starts());
        assert_eq!(t.seen.states, [AgentState::Starting]);
        assert_eq!(t.seen.errors, []);
    }

    #[test]
    fn an_environment_that_is_changed_in_a_pause_is_that_of_the_next_start() {
        let (mut t, _) = in_a_pause();
        let update = serde_json::from_str(r#"{"set":{"A":"b"},"whenBusy":"reject"}"#).unwrap();
        t.ask(Command::UpdateEnvironment(update));
        assert_eq!(t.seen.errors, []);
        t.now += Duration::from_secs(1);
        t.bridge.tick(t.now, &mut t.seen);
        let effects = t.bridge.effects(t.now);
        let Some(Effect::Spawn(_, spec)) = effects.first() else {
            panic!("{effects:?}");
        };
        assert_eq!(spec.env.0["A"].as_deref(), Some("b"));
        assert!(!format!("{effects:?}").contains("\"b\""), "{effects:?}");
    }
}
