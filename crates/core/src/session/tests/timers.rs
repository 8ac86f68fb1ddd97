//! Tests of the table of timers: each comes due, is handled once, and is postponed once.

use super::super::Prompting;
use super::super::timers::SessionTimer;
use super::event::On;
use super::fixture::{Fixture, all};
use On::{
    AgentLost, Answer, Cancel, Commit, DiskHangs, Ensure, Permission, Prompt, PromptRetry, Read,
    Refuse, Request, Set, Stop, Text,
};
use acpipe_model::limits::Timeout;
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::Strategy;
use serde_json::{Value, json};
use std::time::Duration;

const S: fn(u64) -> Duration = Duration::from_secs;

fn plan_and_code() -> Value {
    json!({
        "currentModeId": "plan",
        "availableModes": [{ "id": "plan", "name": "Plan" }, { "id": "code", "name": "Code" }],
    })
}

/// Creates a session that waits for a timer, and perhaps for others.
fn waiting_for(timer: SessionTimer) -> Fixture {
    let mut t = match timer {
        SessionTimer::Answer => Fixture::asking(),
        SessionTimer::RestoreLimit => Fixture::stored(all()),
        SessionTimer::OpeningStep | SessionTimer::Setting => Fixture::new(all()),
        _ => Fixture::live(all()),
    };
    t.capabilities().fs.read_text_file = true;
    let read = json!({ "sessionId": "a1", "path": "/w/a" });
    let opened = json!({ "sessionId": "a1", "modes": plan_and_code() });
    let events = match timer {
        SessionTimer::Answer => vec![Prompt("hi"), Permission("p1")],
        SessionTimer::ClientRequest => {
            vec![Prompt("hi"), Request("h1", "fs/read_text_file", read)]
        }
        SessionTimer::Quiet => vec![Text("by the way")],
        SessionTimer::RetryPause => {
            vec![
                PromptRetry("hi"),
                Refuse(-32603, "status 529: overloaded"),
                Read,
            ]
        }
        SessionTimer::NextAttempt => {
            t.session.prompting = Prompting::of_one_call(true);
            vec![Prompt("hi"), AgentLost]
        }
        SessionTimer::Setting => vec![
            Ensure(Strategy::Auto),
            Answer(opened),
            Set(Setting::Mode("code".to_owned())),
        ],
        SessionTimer::AbandonedTurn => vec![Prompt("hi"), Cancel, On::Wait(S(5))],
        SessionTimer::RestoreLimit | SessionTimer::OpeningStep => vec![Ensure(Strategy::Auto)],
        SessionTimer::CancelLimit => vec![Prompt("hi"), Cancel],
        SessionTimer::TurnLimit => {
            t.limit(Timeout::Turn, Some(S(4)));
            vec![Prompt("hi")]
        }
        SessionTimer::TurnSilence => {
            t.limit(Timeout::Prompt, Some(S(4)));
            vec![Prompt("hi")]
        }
        SessionTimer::LateOutput => {
            t.quirks().late_output_ms = Some(500);
            vec![Prompt("hi"), Stop("end_turn")]
        }
        SessionTimer::DiskAnswer => vec![Prompt("hi"), DiskHangs, Text("on"), Commit],
        SessionTimer::WaitNotice => vec![Prompt("hi")],
    };
    for event in events {
        t.on(&event);
    }
    t
}

#[test]
fn every_timer_expires_and_clears_its_deadline() {
    for timer in SessionTimer::ALL {
        let mut t = waiting_for(timer);
        let at = t.session.due(timer);
        let at = at.unwrap_or_else(|| panic!("{timer:?} does not run"));
        assert!(at > t.now, "{timer:?} is due at once");
        t.on(&On::Wait(at - t.now));
        let left = t.session.deadline().filter(|(at, _)| *at <= t.now);
        assert_eq!(left, None, "after {timer:?}");
        assert!(
            t.session.due(timer).is_none_or(|next| next > at),
            "{timer:?}"
        );
    }
}

#[test]
fn only_timers_on_the_agent_are_postponed() {
    for timer in SessionTimer::ALL {
        let mut t = waiting_for(timer);
        let before = SessionTimer::ALL.map(|timer| t.session.due(timer));
        t.session.postpone(S(60));
        for (other, before) in SessionTimer::ALL.into_iter().zip(before) {
            let by = match other {
                SessionTimer::TurnLimit | SessionTimer::DiskAnswer => S(0),
                _ => S(60),
            };
            let want = before.map(|at| at + by);
            assert_eq!(
                t.session.due(other),
                want,
                "{other:?}, waiting for {timer:?}"
            );
        }
    }
}

#[test]
fn session_without_an_agent_has_no_timer() {
    let mut t = Fixture::live(all());
    t.on(&Prompt("hi"));
    t.on(&AgentLost);
    for timer in SessionTimer::ALL {
        assert_eq!(t.session.due(timer), None, "{timer:?}");
    }
}
