//! Tests of the limit on the whole length of a turn.

use super::{Play, S, Timeout, params, text};
use crate::client::Command;
use crate::hub::HubCx;
use serde_json::{Value, json};

#[test]
fn turn_is_cancelled_at_its_total_limit_despite_output() {
    // (limit of all turns, limit given with the prompt, limit that applies)
    for (usual, own, limit) in [
        (Some(10), None, 10),
        (None, Some(4), 4),
        (Some(10), Some(20), 20),
    ] {
        let limits: Vec<(Timeout, u64)> = usual.map(|s| (Timeout::Turn, s)).into_iter().collect();
        let (mut play, _, call) = Play::opening(&limits, json!({}));
        play.answer(&call, &json!({"sessionId": "S"}));
        let own = own.map(|seconds| seconds * 1000);
        let message = json!({"message": "x", "timeoutMs": own});
        let prompt = play.ask(Command::Prompt(params(message.clone())));
        let call = play.sent();
        let next = play.ask(Command::Prompt(params(message)));
        for _ in 1..limit {
            play.pass(S(1));
            play.update("S", &text());
        }
        assert_eq!(play.sent(), Value::Null);
        play.pass(S(1));
        assert_eq!(play.sent()["method"], "session/cancel");
        play.answer(&call, &json!({"stopReason": "end_turn"}));
        let error = play.turn_error(prompt);
        let data = &error["data"];
        assert_eq!(
            (&data["stage"], &data["waitedMs"]),
            (&json!("turn"), &json!(limit * 1000))
        );
        // A limit of all turns begins with the turn, that of a call with the call.
        if own.is_none() {
            assert_eq!(play.sent()["method"], "session/prompt");
            play.pass(S(limit - 1));
            assert!(!play.client.answers.contains_key(&next));
        } else {
            assert_eq!(play.error(next).data["stage"], "queue");
        }
    }
}

#[test]
fn total_turn_limit_applies_during_paused_reads() {
    let (mut play, ..) = Play::prompted(&[(Timeout::Turn, 60)]);
    play.now += S(60);
    assert_eq!(play.hub.turn_deadline(), Some((play.now, "turn")));
    play.hub
        .tick_turn_limits(&mut HubCx::new(play.now, &mut play.client));
    assert_eq!(play.sent()["method"], "session/cancel");
    assert_eq!(play.hub.turn_deadline(), None);
}
