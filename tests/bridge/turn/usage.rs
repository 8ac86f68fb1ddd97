//! Usage and cost of turns.

use super::play_all;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

#[test]
fn usage_is_read_in_every_known_form() {
    let usage = |fields: [Value; 6]| {
        let names = [
            "inputTokens",
            "outputTokens",
            "totalTokens",
            "cachedReadTokens",
            "cachedWriteTokens",
            "thoughtTokens",
        ];
        Value::Object(names.map(str::to_owned).into_iter().zip(fields).collect())
    };
    let none = Value::Null;
    let cases = [
        (
            json!({"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 16, "cachedReadTokens": 3, "cachedWriteTokens": 0, "thoughtTokens": 1}}),
            usage([json!(10), json!(5), json!(16), json!(3), json!(0), json!(1)]),
        ),
        (
            json!({"usage": {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": null, "thoughtTokens": "many"}}),
            usage([
                json!(10),
                json!(5),
                json!(15),
                none.clone(),
                none.clone(),
                none.clone(),
            ]),
        ),
        (
            json!({"_meta": {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 2}}}}),
            usage([
                json!(7),
                json!(2),
                json!(9),
                none.clone(),
                none.clone(),
                none.clone(),
            ]),
        ),
        (
            json!({"usage": {"inputTokens": 0}}),
            usage([
                json!(0),
                none.clone(),
                none.clone(),
                none.clone(),
                none.clone(),
                none.clone(),
            ]),
        ),
        (json!({"usage": null}), Value::Null),
        (json!({"usage": {}}), Value::Null),
        (json!({"usage": 5}), Value::Null),
    ];
    let runs: Vec<Vec<Value>> = cases
        .iter()
        .map(|(answer, _)| {
            let mut answer = answer.clone();
            answer["stopReason"] = json!("end_turn");
            vec![say("x"), json!({"reply": answer})]
        })
        .collect();
    for (turn, (answer, usage)) in play_all(&runs).iter().zip(&cases) {
        assert_eq!(turn.summary["usage"], *usage, "{answer}");
        let shown = &turn.last()["messageMetadata"]["acp"]["usage"];
        let known = usage.as_object().map(|u| {
            let known = u.iter().filter(|(_, n)| !n.is_null());
            Value::Object(known.map(|(k, v)| (k.clone(), v.clone())).collect())
        });
        assert_eq!(*shown, json!(known), "{answer}");
    }
}

#[test]
fn summary_cost_is_the_cost_of_the_turn() {
    let context = |used: u64, cost: Value| json!({"update": {"sessionUpdate": "usage_update", "used": used, "size": 1000, "cost": cost}});
    let usd = |amount: f64| json!({"amount": amount, "currency": "USD"});
    let turns = play_all(&[
        vec![
            context(10, usd(0.25)),
            context(20, usd(0.5)),
            end("end_turn"),
        ],
        vec![context(30, usd(0.75)), end("end_turn")],
        vec![context(30, Value::Null), end("end_turn")],
        vec![context(40, json!("much")), end("end_turn")],
        vec![end("end_turn")],
        vec![context(50, usd(1.0)), end("end_turn")],
    ]);
    let costs: Vec<&Value> = turns.iter().map(|t| &t.summary["cost"]).collect();
    let null = Value::Null;
    assert_eq!(
        costs,
        [&json!(0.5), &json!(0.25), &null, &null, &null, &json!(0.25)]
    );
    assert_eq!(
        turns[0].summary["metadata"]["context"],
        json!({"used": 20, "size": 1000, "cost": {"amount": 0.5, "currency": "USD"}})
    );
    assert_eq!(
        turns[0].of("message-metadata")[1]["messageMetadata"]["acp"]["context"]["used"],
        20
    );
    assert_eq!(turns[4].summary["metadata"].get("context"), None);
}
