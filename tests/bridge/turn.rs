//! What an agent says in a turn, as chunks and as summary; tools have tests of their own.

use crate::harness::calls;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{ask, end, say, think, tool, tool_change};
use serde_json::{Value, json};

/// Plays one run of `session/prompt`.
pub fn play(steps: &[Value]) -> Turn {
    let mut s = Server::ready(&json!({"session/prompt": [steps]}));
    s.waive("session/state");
    s.prompt("go")
}

/// Plays each run as a turn of one session.
fn play_all(runs: &[Vec<Value>]) -> Vec<Turn> {
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    runs.iter().map(|_| s.prompt("go")).collect()
}

#[test]
fn text_and_thought_come_as_blocks() {
    let turn = play(&[
        think("hm"),
        think("m"),
        say("Hel"),
        say("lo \"w\"\n\u{1F600}"),
        say(""),
        think("ok"),
        say("."),
        end("end_turn"),
    ]);
    assert_eq!(
        turn.types(),
        [
            "start",
            "start-step",
            "reasoning-start",
            "reasoning-delta",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-delta",
            "text-delta",
            "text-end",
            "reasoning-start",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ]
    );
    let s = &turn.summary;
    assert_eq!(s["text"], "Hello \"w\"\n\u{1F600}.");
    assert_eq!(s["sessionId"], "default");
    assert_eq!(s["stopReason"], "end_turn");
    assert_eq!(s["finishReason"], "stop");
    assert_eq!(s["isError"], false);
    assert_eq!(s["attempts"], 1);
    for unknown in ["usage", "cost", "numTurns", "errorReason"] {
        assert_eq!(s[unknown], Value::Null, "{unknown}");
    }
    for empty in ["errors", "toolCalls", "toolResults", "toolsUsed"] {
        assert_eq!(s[empty], json!([]), "{empty}");
    }
    let start = &turn.chunks[0];
    assert_eq!(start["messageMetadata"]["acp"]["sessionId"], "fake-1");
    assert_eq!(
        turn.last()["messageMetadata"]["acp"]["stopReason"],
        "end_turn"
    );
}

#[test]
fn the_prompt_reaches_the_agent_and_its_echo_the_client() {
    let mut s = Server::ready(&json!({}));
    let text = "line one\n\"two\" \\ \u{1F600} \u{0} end";
    let turn = s.prompt(text);
    assert_eq!(turn.summary["text"], text);
    let message = json!({"id": "m1", "role": "user", "parts": [
        {"type": "text", "text": "a"},
        {"type": "step-start"},
        {"type": "file", "url": "https://x.org/a.pdf", "mediaType": "application/pdf", "filename": "a.pdf"},
        {"type": "file", "url": "data:image/png;base64,QUJD", "mediaType": "image/png"},
        {"type": "text", "text": "b"},
    ]});
    // The agent does not take images: nothing is sent, unless a link will do.
    let refused = s.call_error("session/prompt", &json!({"message": message}));
    assert_eq!(refused["data"]["kind"], "invalidParams");
    assert_eq!(refused["data"]["field"], "message.parts");
    let id = s.send(
        "session/prompt",
        &json!({"message": message, "turnId": "my turn", "degrade": true}),
    );
    let turn = s.turn(&id);
    assert_eq!(turn.summary["turnId"], "my turn");
    let notice = turn.one("data-notice");
    assert_eq!(notice["data"]["severity"], "warning");
    assert_eq!(notice["transient"], true);
    assert_eq!(turn.summary["text"], "ab");
    assert_eq!(
        turn.summary["metadata"]["skippedParts"],
        json!(["step-start"])
    );
    let log = s.finish().log;
    let prompts = crate::harness::calls(&log, "session/prompt");
    assert_eq!(
        prompts[0]["params"],
        json!({"sessionId": "fake-1", "prompt": [{"type": "text", "text": text}]})
    );
    let blocks = &prompts[1]["params"]["prompt"];
    assert_eq!(blocks.as_array().unwrap().len(), 4);
    assert_eq!(blocks[1]["type"], "resource_link");
    assert_eq!(blocks[1]["uri"], "https://x.org/a.pdf");
    assert_eq!(blocks[1]["name"], "a.pdf");
    assert_eq!(blocks[1]["mimeType"], "application/pdf");
    assert_eq!(blocks[2]["type"], "resource_link");
}

#[test]
fn images_reach_agents_that_take_them() {
    let mut s = Server::ready(&json!({"initialize": [[{"reply": {
        "protocolVersion": 1, "agentCapabilities": {"promptCapabilities": {"image": true}},
    }}]]}));
    let parts =
        json!([{"type": "file", "url": "data:image/png;base64,QUJD", "mediaType": "image/png"}]);
    let id = s.send("session/prompt", &json!({"message": {"parts": parts}}));
    s.turn(&id);
    let log = s.finish().log;
    let prompt = crate::harness::calls(&log, "session/prompt")[0];
    assert_eq!(
        prompt["params"]["prompt"],
        json!([{"type": "image", "data": "QUJD", "mimeType": "image/png"}])
    );
}

#[test]
fn every_stop_reason_has_an_ending() {
    /// As reported, finishReason, last chunk, errorReason, kind of the error.
    type Case = (
        Value,
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
    );
    let cases: &[Case] = &[
        (json!("end_turn"), "stop", "finish", None, None),
        (json!("max_tokens"), "length", "finish", None, None),
        (
            json!("max_turn_requests"),
            "length",
            "finish",
            Some("max_turns limit reached"),
            Some("maxTurns"),
        ),
        (json!("refusal"), "content-filter", "finish", None, None),
        (json!("cancelled"), "other", "abort", None, None),
        (json!("tired"), "other", "finish", None, None),
        (json!(""), "other", "finish", None, None),
        (json!("error"), "error", "error", None, Some("session")),
        (json!("Failed"), "error", "error", None, Some("session")),
        (json!(5), "error", "error", None, Some("malformed")),
        (json!(null), "error", "error", None, Some("malformed")),
    ];
    let runs: Vec<Vec<Value>> = cases
        .iter()
        .map(|(reason, ..)| vec![say("x"), json!({"reply": {"stopReason": reason}})])
        .collect();
    for (turn, (reason, finish, last, error_reason, kind)) in play_all(&runs).iter().zip(cases) {
        let s = &turn.summary;
        assert_eq!(s["finishReason"], *finish, "{reason}");
        let told = reason.as_str().filter(|_| *finish != "error");
        assert_eq!(s["stopReason"], told.unwrap_or("error"), "{reason}");
        assert_eq!(turn.last()["type"], *last, "{reason}");
        assert_eq!(s["errorReason"], json!(error_reason), "{reason}");
        assert_eq!(s["isError"], kind.is_some(), "{reason}");
        if let Some(kind) = kind {
            assert_eq!(s["errors"][0]["kind"], *kind, "{reason}");
        }
        assert_eq!(s["text"], "x", "{reason}");
    }
}

#[test]
fn the_answer_to_a_prompt_may_be_odd() {
    let cases = [
        r#"{"jsonrpc":"2.0","id":{id},"error":null,"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn"},"extra":[1]}"#,
        r#"{"id":{id},"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":"{id}","result":{"stopReason":"end_turn"}}"#,
        r#"{"result":{"stopReason":"end_turn"},"jsonrpc":"1.0","id":{id}}"#,
    ];
    let runs = cases.map(|line| vec![say("x"), json!({"line": line})]);
    for (turn, run) in play_all(&runs).iter().zip(&runs) {
        assert_eq!(turn.summary["stopReason"], "end_turn", "{run:?}");
        assert_eq!(turn.summary["isError"], false, "{run:?}");
        assert_eq!(turn.last()["type"], "finish", "{run:?}");
    }
}

#[test]
fn an_answer_without_a_stop_reason_fails_the_turn() {
    let results = [
        "null",
        "{}",
        "[]",
        "5",
        "true",
        r#""nonsense""#,
        r#"{"stop":"end_turn"}"#,
    ];
    let runs = results.map(|result| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{result}}}"#);
        vec![say("kept"), json!({ "line": line })]
    });
    for (turn, result) in play_all(&runs).iter().zip(results) {
        let summary = &turn.summary;
        let error = &summary["errors"][0];
        assert_eq!(error["kind"], "malformed", "{result}");
        assert_eq!(error["data"]["raw"], result);
        assert_eq!(
            (&summary["isError"], &summary["stopReason"]),
            (&json!(true), &json!("error"))
        );
        assert_eq!(summary["text"], "kept", "{result}");
        assert_eq!(turn.last()["type"], "error", "{result}");
    }
}

#[test]
fn errors_of_the_agent_end_the_turn_after_what_it_said() {
    // (error, kind, a part of the message)
    let cases = [
        (
            json!({"code": -32603, "message": "Internal error"}),
            "session",
            "Internal error",
        ),
        (
            json!({"code": -32603, "message": "Internal error", "data": {"details": "rate limit of org x"}}),
            "session",
            "rate limit of org x",
        ),
        (
            json!({"code": -32603, "message": "Internal error", "data": {"message": "deep reason"}}),
            "session",
            "deep reason",
        ),
        (
            json!({"code": -32603, "message": "Internal error", "data": "just text"}),
            "session",
            "just text",
        ),
        (
            json!({"code": -32603, "message": "connect ECONNREFUSED 127.0.0.1:443"}),
            "network",
            "ECONNREFUSED",
        ),
        (
            json!({"code": -32603, "message": "x", "data": {"details": "fetch failed"}}),
            "network",
            "fetch failed",
        ),
        (json!("only text"), "session", "only text"),
        (json!({"message": 5}), "session", ""),
        (
            json!({"code": "E_BAD", "message": "odd code"}),
            "session",
            "odd code",
        ),
    ];
    let runs: Vec<Vec<Value>> = cases
        .iter()
        .map(|(error, ..)| vec![say("partial"), json!({"error": error})])
        .collect();
    for (turn, (error, kind, part)) in play_all(&runs).iter().zip(&cases) {
        let s = &turn.summary;
        assert_eq!(s["errors"][0]["kind"], *kind, "{error}");
        assert_eq!(s["errors"][0]["data"]["kind"], Value::Null, "{error}");
        let message = s["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{error}: {message}");
        assert_eq!(s["text"], "partial", "{error}");
        assert_eq!(s["stopReason"], "error", "{error}");
        assert_eq!(s["errorReason"], Value::Null, "{error}");
        assert_eq!(turn.last()["type"], "error", "{error}");
        assert_eq!(turn.last()["errorText"], message);
        let metadata = turn.one("message-metadata");
        assert_eq!(
            metadata["messageMetadata"]["acp"]["error"]["kind"], *kind,
            "{error}"
        );
    }
}

#[test]
fn the_fixed_reasons_of_failures() {
    let failed = [
        tool(
            "t",
            &json!({"title": "Run", "name": "bash", "status": "in_progress", "rawInput": {}}),
        ),
        tool_change("t", &json!({"status": "failed"})),
    ];
    let error = json!({"error": {"code": -32603, "message": "x"}});
    let with = |more: &[Value]| [&failed[..], more].concat();
    let runs = [
        with(std::slice::from_ref(&error)),
        // It went on after the failure: that was not the reason.
        with(&[say("never mind"), error.clone()]),
        with(&[end("end_turn")]),
        with(&[end("max_turn_requests")]),
    ];
    let wanted = [
        json!("tool execution failed: bash"),
        Value::Null,
        Value::Null,
        json!("max_turns limit reached"),
    ];
    for (turn, wanted) in play_all(&runs).iter().zip(wanted) {
        assert_eq!(turn.summary["errorReason"], wanted, "{}", turn.summary);
    }
}

#[test]
fn usage_in_all_spellings() {
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
fn cost_is_that_of_the_turn() {
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

#[test]
fn a_second_answer_of_the_agent_is_ignored() {
    let turns = play_all(&[
        vec![say("a"), end("end_turn"), end("max_tokens")],
        vec![say("b"), end("end_turn")],
    ]);
    assert_eq!(turns[0].summary["stopReason"], "end_turn");
    assert_eq!(turns[1].summary["stopReason"], "end_turn");
    assert_eq!(turns[1].summary["text"], "b");
}

#[test]
fn what_is_read_with_the_answer_belongs_to_the_turn() {
    let both = format!("{}\n{}", line_of(&end("end_turn")), line_of(&say("late")));
    let mut s = Server::ready(&json!({"session/prompt": [[say("a"), {"line": both}]]}));
    assert_eq!(s.prompt("1").summary["text"], "alate");
}

/// What a step writes.
fn line_of(step: &Value) -> String {
    let update = &step["update"];
    if update.is_null() {
        format!(
            r#"{{"jsonrpc":"2.0","id":{{id}},"result":{}}}"#,
            step["reply"]
        )
    } else {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","update":{update}}}}}"#
        )
    }
}

/// After the end of a turn: what a later `session/ensure` makes the agent say in the first session.
fn unasked(steps: &[Value]) -> (Server, Vec<Value>) {
    let late = steps.iter().map(|update| {
        json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update": update}}})
    });
    let opens = std::iter::once(json!({"default": true}))
        .chain(late)
        .collect::<Vec<_>>();
    let mut s = Server::ready(&json!({
        "session/new": [[{"default": true}], opens],
        "session/prompt": [
            [said("a", "m1"), tool("t", &json!({"name": "Bash"})), end("end_turn")],
            [say("b"), end("end_turn")],
        ],
    }));
    assert_eq!(s.prompt("1").summary["text"], "a");
    s.ensure("other");
    s.await_chunk("default", |c| {
        c["type"] == "text-delta" || c["type"] == "tool-output-available"
    });
    let id = s.send_prompt("default", "2");
    let unprompted = s.unprompted("default");
    assert_eq!(s.turn(&id).summary["text"], "b");
    (s, unprompted)
}

fn said(text: &str, id: &str) -> Value {
    json!({"update": {"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}}})
}

#[test]
fn what_an_agent_says_unasked_is_a_message_of_its_own() {
    let (_, message) = unasked(&[said("late", "m2")["update"].clone()]);
    assert_eq!(
        message[0]["messageMetadata"]["acp"],
        json!({"sessionId": "fake-1", "unprompted": true})
    );
    let deltas: Vec<_> = message
        .iter()
        .filter(|c| c["type"] == "text-delta")
        .collect();
    assert_eq!(deltas.len(), 1);
    assert_eq!(deltas[0]["delta"], "late");
    assert_eq!(message.last().unwrap()["finishReason"], "other");
}

/// The id of the session's first answer.
fn first_answer(s: &mut Server) -> Value {
    let messages = s.call("message/list", &json!({}))["messages"].clone();
    assert_eq!(messages[1]["role"], "assistant");
    messages[1]["id"].clone()
}

#[test]
fn late_news_name_the_message_that_they_go_on_with() {
    let (mut s, message) = unasked(&[
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}),
    ]);
    let answer = first_answer(&mut s);
    let end = s.finish();
    assert!(end.stderr.is_empty(), "{}", end.stderr);
    assert_eq!(message[0]["messageMetadata"]["acp"]["continues"], answer);
    let shown = message
        .iter()
        .find(|c| c["type"] == "tool-input-available")
        .unwrap();
    assert_eq!(shown["toolName"], "Bash");
    let (mut s, message) = unasked(&[said("more", "m1")["update"].clone()]);
    let answer = first_answer(&mut s);
    assert_eq!(message[0]["messageMetadata"]["acp"]["continues"], answer);
}

#[test]
fn news_of_an_earlier_call_do_not_land_in_the_next_turn() {
    let late = tool_change("t", &json!({"status": "completed", "rawOutput": "done"}));
    let own = tool("u", &json!({"name": "Read", "status": "completed"}));
    // The same id again, but as a new call: another agent's habit.
    let again = tool("t", &json!({"name": "Write", "status": "completed"}));
    let mut s = Server::ready(&json!({"session/prompt": [
        [tool("t", &json!({"name": "Bash"})), end("end_turn")],
        [say("b"), late, own, end("end_turn")],
        [again, end("end_turn")],
    ]}));
    let first = s.prompt("1");
    let second = s.prompt("2");
    assert_eq!(second.summary["toolsUsed"], json!(["Read"]));
    let third = s.send_prompt("default", "3");
    let late = s.unprompted("default");
    assert_eq!(
        late[0]["messageMetadata"]["acp"]["continues"],
        first.summary["messageId"]
    );
    let shown = |kind: &str| late.iter().find(|c| c["type"] == kind).unwrap();
    assert_eq!(shown("tool-input-available")["toolName"], "Bash");
    assert_eq!(
        shown("tool-output-available")["output"]["rawOutput"],
        "done"
    );
    assert_eq!(s.turn(&third).summary["toolsUsed"], json!(["Write"]));
}

#[test]
fn what_an_agent_does_unasked_can_be_cancelled() {
    let mut s = Server::initialized(&[]);
    s.connect(&json!({"session/new": [[
        {"default": true},
        said("on and on", "m"),
        {"wait": "session/cancel"},
        ask(&json!({"toolCallId": "t"}), &[("y", "allow_once")]),
        tool_change("t", &json!({"status": "failed"})),
    ]]}));
    s.ensure("default");
    s.await_chunk("default", |c| c["delta"] == "on and on");
    let other = s.call("session/cancel", &json!({"turnId": "x"}));
    assert_eq!(other["cancelled"], false);
    assert_eq!(s.call("session/cancel", &json!({}))["cancelled"], true);
    // Its failure is the last that the agent tells.
    s.await_chunk("default", |c| c["type"] == "data-tool-call");
    let id = s.send_prompt("default", "next");
    let message = s.unprompted("default");
    let refused = |c: &&Value| c["data"]["approved"] == false;
    assert_eq!(message.iter().filter(refused).count(), 1);
    assert_eq!(s.turn(&id).summary["text"], "next");
    assert_eq!(calls(&s.finish().log, "session/cancel").len(), 1);
}

#[test]
fn late_figures_are_the_sessions_and_make_no_message() {
    let usage = |used: u32, cost: f64| json!({"sessionUpdate": "usage_update", "used": used, "size": 9, "cost": {"amount": cost, "currency": "USD"}});
    let mut s = Server::ready(&json!({
        "session/new": [[{"default": true}], [{"default": true}, {"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update": usage(3, 1.0)}}}]],
        "session/prompt": [[end("end_turn")], [{"update": usage(4, 1.5)}, end("end_turn")]],
    }));
    s.prompt("1");
    s.ensure("other");
    let state = s.notification("session/state");
    assert_eq!(state["sessionId"], "default");
    assert_eq!(state["state"]["context"]["used"], 3);
    // What it cost meanwhile is not the next turn's.
    assert_eq!(s.prompt("2").summary["cost"], 0.5);
    assert_eq!(s.ensure("default")["state"]["context"]["used"], 4);
}

#[test]
fn what_is_no_part_of_a_message_makes_none() {
    let update = |update: Value| json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "_meta": {"n": 1}, "update": update}}});
    let mut s = Server::ready(&json!({"session/new": [[{"default": true}], [
        {"default": true},
        update(json!({"sessionUpdate": "_mine", "x": 1})),
        update(json!({"sessionUpdate": "notice", "severity": "info", "title": "T"})),
    ]]}));
    s.ensure("other");
    let other = s.stray("default");
    assert_eq!(other["type"], "data-acp");
    assert_eq!(
        other["data"],
        json!({"update": {"sessionUpdate": "_mine", "x": 1}, "notification": {"_meta": {"n": 1}}})
    );
    let notice = s.stray("default");
    assert_eq!(notice["type"], "data-notice");
    assert_eq!(notice["data"]["title"], "T");
}

#[test]
fn a_message_that_nobody_asked_for_ends_with_the_agent() {
    let late = json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update": said("late", "m2")["update"]}}});
    let mut s = Server::ready(&json!({
        "session/new": [[{"default": true}], [{"default": true}, late]],
    }));
    s.ensure("other");
    s.await_chunk("default", |c| c["delta"] == "late");
    s.call("agent/disconnect", &json!({}));
    s.agent_states(&["stopping", "disconnected"]);
    let message = s.unprompted("default");
    assert_eq!(message.last().unwrap()["type"], "finish");
}

#[test]
fn ids_of_messages_and_turns_are_unique() {
    let turns = play_all(&[
        vec![say("a"), end("end_turn")],
        vec![say("b"), end("end_turn")],
    ]);
    let (a, b) = (&turns[0].summary, &turns[1].summary);
    assert_ne!(a["turnId"], b["turnId"]);
    assert_ne!(a["messageId"], b["messageId"]);
}

#[test]
fn overhead_is_not_the_agents_time() {
    let turn = play(&[say("a"), json!({"sleep": 300}), end("end_turn")]);
    let overhead = turn.summary["overheadMs"].as_f64().unwrap();
    let duration = turn.summary["durationMs"].as_f64().unwrap();
    assert!(duration >= 300.0, "{duration}");
    assert!(overhead <= duration - 250.0, "{overhead} of {duration}");
}
