//! Tests of stored sessions that are replayed as ACP updates, piece by piece.

use super::play::{HubClient, Play, params, settings};
use crate::client::Command;
use crate::hub::{AgentId, AgentInput, Hub, HubCx};
use crate::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_json::to_raw;
use acpipe_model::acp_client::AcpCommand;
use acpipe_protocol::wire::{AgentParams, InitializeParams};
use serde_json::{Value, json};
use std::time::Instant;

/// More updates than fit into several pieces of a log.
const UPDATES: usize = 20_000;

/// Returns a client that speaks ACP, with the session `default`, whose prompt the agent answers with these lines.
fn play(lines: &str, repeated: usize) -> Play {
    let now = Instant::now();
    let mut play = Play {
        hub: Hub::new(settings(now), Box::new(MemoryStore)),
        client: HubClient::default(),
        now,
        tokens: 0,
        agent: AgentId(0),
    };
    let mut initialize: InitializeParams = params(json!({"protocolVersion": 1}));
    initialize.acp = Some(to_raw(&json!({})));
    play.ask(Command::Initialize(initialize));
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &json!({"sessionId": "S"}));
    play.ask(Command::Prompt(params(json!({"message": "go"}))));
    let prompt = play.sent();
    for _ in 0..repeated {
        play.hear(AgentInput::Batch(Batch::Lines(lines.to_owned().into())));
    }
    play.answer(&prompt, &json!({"stopReason": "end_turn"}));
    play
}

fn replay(play: &mut Play, session: &str) -> u64 {
    let session = session.to_owned();
    play.ask(Command::Acp(AcpCommand::Replay { session, cwd: None }))
}

/// Reads until the replay has ended; returns the number of pieces.
fn read_all(play: &mut Play) -> usize {
    let mut pieces = 0;
    while play.hub.is_reading(&mut play.client) {
        play.hub
            .read_on(&mut HubCx::new(play.now, &mut play.client));
        pieces += 1;
    }
    pieces
}

fn line(n: usize) -> String {
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": format!("word {n} ")}});
    let params = json!({"sessionId": "S", "update": update});
    format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    )
}

#[test]
fn long_session_is_replayed_in_pieces_and_waits_for_a_client_that_does_not_read() {
    let lines: String = (0..1000).map(line).collect();
    let mut play = play(&lines, UPDATES / 1000);
    let live = std::mem::take(&mut play.client.updates);
    assert_eq!(live.len(), UPDATES);

    let call = replay(&mut play, "default");
    play.hub
        .read_on(&mut HubCx::new(play.now, &mut play.client));
    let first = play.client.updates.len();
    assert!(first > 1 && first < UPDATES, "{first}");
    play.client.full = true;
    assert!(
        !play.hub.is_reading(&mut play.client),
        "the loop would spin"
    );
    play.hub
        .read_on(&mut HubCx::new(play.now, &mut play.client));
    assert_eq!(play.client.updates.len(), first);
    let status = play.ask(Command::Status(AgentParams::default()));
    assert!(play.client.answers.contains_key(&status));
    assert!(!play.client.answers.contains_key(&call), "answered early");

    play.client.full = false;
    assert!(read_all(&mut play) > 2);
    assert!(play.client.answers[&call].is_ok());
    let replayed = &play.client.updates;
    assert!(
        replayed[0].contains("user_message_chunk"),
        "{}",
        replayed[0]
    );
    let parsed = |line: &String| -> Value { serde_json::from_str(line).unwrap() };
    assert!(replayed[1..].iter().map(parsed).eq(live.iter().map(parsed)));
}

/// Line of a tool call's update with these members.
fn call(members: &Value) -> String {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t"});
    for (name, value) in members.as_object().unwrap() {
        update[name] = value.clone();
    }
    let params = json!({"sessionId": "S", "update": update});
    format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    )
}

fn output(lines: usize) -> Value {
    let text: String = (0..lines)
        .map(|n| format!("line {n:06} of the output\n"))
        .collect::<Vec<_>>()
        .concat();
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

/// Replays a session in which the output of a tool grows by a line each time, and checks that the client received every
/// update of the running turn. Returns the replayed updates.
fn replay_of_growing_output(lines: usize, last: &[String]) -> Vec<Value> {
    let begin =
        call(&json!({"sessionUpdate": "tool_call", "title": "build", "status": "in_progress"}));
    let updates =
        (1..=lines).map(|n| call(&json!({"status": "in_progress", "content": output(n)})));
    let all: String = std::iter::once(begin)
        .chain(updates)
        .chain(last.iter().cloned())
        .collect();
    let mut play = play(&all, 1);
    let parsed = |line: &str| -> Value {
        serde_json::from_str::<Value>(line).unwrap()["params"]["update"].clone()
    };
    let live = std::mem::take(&mut play.client.updates);
    assert_eq!(live.len(), 1 + lines + last.len());
    replay(&mut play, "default");
    read_all(&mut play);
    let replayed = &play.client.updates[1..];
    replayed.iter().map(|line| parsed(line)).collect()
}

#[test]
fn growing_output_is_recorded_in_proportion_and_replayed_whole() {
    let size = |updates: &[Value]| -> usize { updates.iter().map(|u| u.to_string().len()).sum() };
    let done = call(&json!({"status": "completed"}));
    let all = call(&json!({"status": "completed", "content": output(801)}));
    let sizes = [200, 800].map(|lines| {
        // The end of the turn, an end without the output, and one with it.
        for (last, want) in [
            (vec![], lines),
            (vec![done.clone()], lines),
            (vec![all.clone()], 801),
        ] {
            let replayed = replay_of_growing_output(lines, &last);
            let content = replayed
                .iter()
                .rev()
                .find_map(|update| update.get("content"));
            assert_eq!(content, Some(&output(want)));
            let status = replayed.last().unwrap()["status"].clone();
            assert_eq!(
                status,
                if last.is_empty() {
                    "in_progress"
                } else {
                    "completed"
                }
            );
        }
        size(&replay_of_growing_output(lines, &[]))
    });
    assert!(sizes[1] < 6 * sizes[0], "{sizes:?}");
    assert!(sizes[1] < 20 * output(800).to_string().len(), "{sizes:?}");
}

#[test]
fn members_that_the_next_update_lacks_are_recorded() {
    let updates = (1..200).flat_map(|n| {
        // Each has a member that the next one lacks.
        let named = call(&json!({"title": format!("step {n}"), "content": output(n)}));
        let located =
            call(&json!({"locations": [{"path": format!("/{n}")}], "content": output(n)}));
        [named, located]
    });
    let replayed = replay_of_growing_output(100, &updates.collect::<Vec<_>>());
    let last = |name: &str| {
        replayed
            .iter()
            .rev()
            .find_map(|update| update.get(name))
            .cloned()
    };
    assert_eq!(last("title"), Some(json!("step 199")));
    assert_eq!(last("locations"), Some(json!([{"path": "/199"}])));
    assert_eq!(last("content"), Some(output(199)));
}

#[test]
fn a_call_with_a_used_id_keeps_the_output_of_the_call_before() {
    let begin = call(&json!({"sessionUpdate": "tool_call", "title": "again", "status": "pending"}));
    let replayed = replay_of_growing_output(300, &[begin]);
    let at = replayed
        .iter()
        .position(|update| update["title"] == "again")
        .unwrap();
    assert_eq!(at, replayed.len() - 1);
    assert_eq!(replayed[at - 1]["content"], output(300));
}

#[test]
fn two_replays_are_both_answered() {
    let mut play = play(&line(0), 1);
    play.client.updates.clear();
    let calls = [replay(&mut play, "default"), replay(&mut play, "default")];
    read_all(&mut play);
    for call in calls {
        assert!(play.client.answers[&call].is_ok());
    }
    assert_eq!(play.client.updates.len(), 4);
}

#[test]
fn replay_of_an_unknown_session_fails() {
    let mut play = play(&line(0), 1);
    let call = replay(&mut play, "nowhere");
    read_all(&mut play);
    assert_eq!(
        play.failed(call),
        Some(acpipe_model::error::ErrorKind::SessionNotFound)
    );
}
