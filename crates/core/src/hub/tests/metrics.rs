//! Tests of the metrics.

use super::fixture::{A, B, Fixture};
use crate::client::{Command, History};
use crate::testing::params;
use serde_json::json;
use std::time::Duration;

#[test]
fn turns_are_counted_by_their_outcome_with_their_times() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    t.now += Duration::from_millis(40);
    t.say(&[Fixture::words(&session, "one")]);
    t.now += Duration::from_millis(200);
    t.end_turn();
    t.prompt(A, "s");
    t.say(&[Fixture::words(&session, "two")]);
    t.call(A, Command::Cancel(params(json!({"sessionId": "s"}))));
    t.end_turn();
    t.prompt(A, "s");
    // A turn without any output fails, and has no time to its first output.
    t.end_turn();
    let metrics = t.hub.metrics();
    let counters = &metrics.counters;
    assert_eq!(counters.turns_started, 3);
    assert_eq!(counters.turns_completed, 1);
    assert_eq!(counters.turns_cancelled, 1);
    assert_eq!(counters.turns_failed, 1);
    assert_eq!(counters.updates, 2);
    assert_eq!(counters.chunks, *t.seqs(A).last().unwrap());
    assert_eq!(counters.turn_duration.count, 3);
    assert_eq!(counters.turn_duration.sum, Duration::from_millis(240));
    assert_eq!(counters.first_output.count, 2);
    assert_eq!(counters.first_output.sum, Duration::from_millis(40));
    assert_eq!(metrics.running_turns, 0);
}

#[test]
fn metrics_show_what_goes_on_now() {
    let mut t = Fixture::with(&[A, B]);
    t.prompt(A, "s");
    t.prompt(B, "s");
    t.set_full(B, true);
    t.ask_permission();
    let metrics = t.hub.metrics();
    assert_eq!(metrics.running_turns, 1);
    assert_eq!(metrics.queued_prompts, 1);
    assert_eq!(metrics.open_requests, 1);
    assert_eq!((metrics.open_sessions, metrics.live_sessions), (1, 1));
    assert_eq!((metrics.clients, metrics.lagging_clients), (2, 1));
    assert_eq!(metrics.agents_running, 1);
}

#[test]
fn chunks_of_a_closed_session_stay_counted() {
    let mut t = Fixture::with(&[A]);
    t.prompt(A, "s");
    t.say(&[Fixture::words(&t.prompted(), "one")]);
    t.end_turn();
    let before = t.hub.metrics().counters.chunks;
    let close = params(json!({"sessionId": "s"}));
    t.call(A, Command::History(History::CloseSession(close)));
    let metrics = t.hub.metrics();
    assert_eq!(metrics.counters.chunks, before);
    assert_eq!(metrics.open_sessions, 0);
}
