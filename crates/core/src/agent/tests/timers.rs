//! Tests of the timer table: each timer becomes due, is handled once, and is postponed once.

use super::super::timers::AgentTimer;
use super::fixture::{Fixture, On};
use On::{Ask, Authenticate, Connect, Disconnect, Exit, Need, Ready, Started, Wait};
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns an agent for which this timer runs, and perhaps others.
fn waiting_for(timer: AgentTimer) -> Fixture {
    let methods = json!([{ "id": "web", "name": "Web" }]);
    let (mut t, events) = match timer {
        AgentTimer::ProcessStop => (Fixture::ready(), vec![Disconnect]),
        AgentTimer::ProcessStart => (Fixture::new(), vec![Connect(json!({}))]),
        AgentTimer::Handshake | AgentTimer::SlowStart => {
            (Fixture::new(), vec![Connect(json!({})), Started])
        }
        AgentTimer::Restart => (Fixture::ready(), vec![Exit, Need, Ready, Exit, Need]),
        AgentTimer::Question => (Fixture::ready(), vec![Ask("q1")]),
        AgentTimer::SignIn => (
            Fixture::ready_with(json!({ "protocolVersion": 1, "authMethods": methods })),
            vec![Authenticate(json!({ "methodId": "web" }))],
        ),
    };
    for event in events {
        t.on(&event);
    }
    t
}

#[test]
fn every_timer_expires_and_clears_its_deadline() {
    for timer in AgentTimer::ALL {
        let mut t = waiting_for(timer);
        let limits = t.shared.settings.limits;
        let at = t.agent.due(timer, &limits);
        let at = at.unwrap_or_else(|| panic!("{timer:?} does not run"));
        assert!(at > t.now, "{timer:?} is due at once");
        t.on(&Wait(at - t.now));
        let left = t
            .agent
            .deadline(&t.shared.settings)
            .filter(|(at, _)| *at <= t.now);
        assert_eq!(left, None, "after {timer:?}");
        let next = t.agent.due(timer, &limits);
        assert!(next.is_none_or(|next| next > at), "{timer:?}");
    }
}

#[test]
fn timers_on_agent_or_client_are_postponed_once() {
    for timer in AgentTimer::ALL {
        let mut t = waiting_for(timer);
        let limits = t.shared.settings.limits;
        let before = AgentTimer::ALL.map(|timer| t.agent.due(timer, &limits));
        t.agent.postpone(MINUTE);
        for (other, before) in AgentTimer::ALL.into_iter().zip(before) {
            let by = match other {
                AgentTimer::ProcessStop | AgentTimer::Restart => Duration::ZERO,
                _ => MINUTE,
            };
            let want = before.map(|at| at + by);
            let due = t.agent.due(other, &limits);
            assert_eq!(due, want, "{other:?}, waiting for {timer:?}");
        }
    }
}
