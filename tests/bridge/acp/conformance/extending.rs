//! Extensions: methods, notifications and metadata that the specification does not have.

use super::case::{Case, Check, ensure, session_id};
use super::{Requirement, must, should};
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    must(
        "EXT-001",
        "an unknown request whose method begins with `_` is answered",
        unknown_extension,
    ),
    should(
        "EXT-101",
        "an unknown request whose method begins with `_` is refused with -32601",
        refused_extension,
    ),
    must(
        "EXT-102",
        "unknown notifications leave the session usable, also during a turn",
        unknown_notification,
    ),
    should("META-001", "`_meta` in a prompt is accepted", |case| {
        with_members(
            case,
            &json!({"_meta": {"traceparent": "00-0-0-01", "x": [1]}}),
        )
    }),
    should(
        "META-101",
        "`_meta` and unknown members are accepted in all requests",
        |case| with_members(case, &json!({"_meta": {"x": null}, "acpipeTest": {"x": 1}})),
    ),
];

fn unknown_extension(case: &mut Case) -> Check {
    case.initialize()?;
    for params in [
        json!({}),
        json!({"sessionId": "x"}),
        json!([1]),
        Value::Null,
    ] {
        case.agent.call("_acpipe_test/x", &params)?;
    }
    Ok(())
}

fn refused_extension(case: &mut Case) -> Check {
    let session = case.opened()?;
    for params in [json!({}), json!({"sessionId": session})] {
        let error = case.agent.error("_acpipe_test/x", &params)?;
        ensure(error["code"] == -32601, || format!("{error}"))?;
    }
    Ok(())
}

fn unknown_notification(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.agent
        .notify("_acpipe_test/x", &json!({"sessionId": session}));
    case.agent.notify("acpipe_test/x", &json!({}));
    let (prompt, from) = case.long_turn(&session)?;
    case.agent
        .notify("_acpipe_test/x", &json!({"sessionId": session}));
    case.agent.barrier()?;
    case.cancel(&session);
    case.turn(&session, &prompt, from)?.stop_reason()?;
    case.hello(&session).map(drop)
}

/// Runs a turn whose requests have these members, too.
fn with_members(case: &mut Case, members: &Value) -> Check {
    let with = |mut params: Value| {
        for (name, value) in members.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        params
    };
    let cwd = case.cwd();
    let hello = json!([{"type": "text", "text": case.subject.hello}]);
    let initialize = with(json!({"protocolVersion": 1, "clientCapabilities": {}}));
    case.agent.result("initialize", &initialize)?;
    let open = with(json!({"cwd": cwd, "mcpServers": []}));
    let session = session_id(&case.agent.result("session/new", &open)?)?;
    let prompt = with(json!({"sessionId": session, "prompt": hello}));
    let result = case.agent.result("session/prompt", &prompt)?;
    ensure(result["stopReason"] == "end_turn", || format!("{result}"))
}
