//! Tests of the hub's own timers: each becomes due, is handled once, and only waits for agents are postponed.

use super::super::timers::HubTimer;
use super::play::{Play, params};
use crate::client::{Command, History, Token};
use crate::hub::HubCx;
use crate::shared::{PendingStoreReply, StoreCall};
use crate::store::MemoryStore;
use crate::testing::SettingsBuilder;
use acpipe_model::host::{HostEffect, HostEvent, HostRequest, HostScope, Ticket};
use serde_json::json;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a hub for which this timer runs, and perhaps others.
fn waiting_for(timer: HubTimer) -> Play {
    let settings = SettingsBuilder::new(Instant::now()).idle_after(Some(MINUTE));
    let mut play = Play::of(settings.build(), Box::new(MemoryStore));
    play.ask(Command::Connect(params(json!({}))));
    play.ready();
    match timer {
        HubTimer::SessionLists => {
            let agents = params(json!({ "agent": true }));
            play.history(History::ListSessions(agents));
            assert_eq!(play.sent()["method"], "session/list");
        }
        HubTimer::IdleCheck => {}
        HubTimer::StoreAnswer => {
            let token = Token::first(99);
            let wait = PendingStoreReply {
                until: Some(play.now + MINUTE),
                call: StoreCall::List(token, params(json!({})), 0),
            };
            play.hub
                .router
                .shared_mut()
                .pending_store_replies
                .insert(99, wait);
        }
        HubTimer::TotalLimit => {
            play.ask(Command::Ensure(params(json!({ "timeoutMs": 60_000 }))));
        }
        HubTimer::Terminals => {
            let place = HostScope {
                roots: vec!["/w".to_owned()],
                ..HostScope::default()
            };
            let request = HostRequest::CreateTerminal {
                command: "cat".to_owned(),
                args: Vec::new(),
                env: Vec::new(),
                cwd: None,
                output_limit: None,
            };
            let host = &mut play.hub.router.hosting_mut().host;
            host.ask(Ticket(1), "s", &place, request);
            let Some(HostEffect::Start(id, _)) = host.take_effects().pop() else {
                panic!("no terminal is started");
            };
            host.handle_event(HostEvent::Output(id, "x".into()), play.now);
        }
    }
    play
}

#[test]
fn every_timer_expires_and_clears_its_deadline() {
    for timer in HubTimer::ALL {
        let mut play = waiting_for(timer);
        let at = play.hub.due(timer);
        let at = at.unwrap_or_else(|| panic!("{timer:?} does not run"));
        assert!(at > play.now, "{timer:?} is due at once");
        play.now = at;
        play.hub.tick(&mut HubCx::new(at, &mut play.client));
        let left = play.hub.deadline().filter(|(next, _)| *next <= at);
        assert_eq!(left, None, "after {timer:?}");
    }
}

#[test]
fn only_agent_list_timers_of_the_hub_are_postponed() {
    for timer in HubTimer::ALL {
        let mut play = waiting_for(timer);
        let before = play.hub.due(timer);
        play.hub.postpone(MINUTE);
        let by = match timer {
            HubTimer::SessionLists => MINUTE,
            HubTimer::IdleCheck
            | HubTimer::Terminals
            | HubTimer::StoreAnswer
            | HubTimer::TotalLimit => Duration::ZERO,
        };
        let want = before.map(|at| at + by);
        assert_eq!(play.hub.due(timer), want, "{timer:?}");
    }
}
