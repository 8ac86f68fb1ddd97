//! Turns: prompts, updates, permission requests.

use super::case::{Case, Check, Choice, ensure, ensure_distinct, members};
use super::{Requirement, must, offered, should};
use serde_json::{Value, json};

/// Stop reasons of the specification.
const STOP_REASONS: &[&str] = &[
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
];

pub const ROWS: &[Requirement] = &[
    must(
        "PROMPT-001",
        "a text prompt is answered with a stop reason of the specification",
        stop_reason,
    ),
    must(
        "PROMPT-002",
        "updates of a turn name the session of the prompt",
        updates_name_session,
    ),
    should("PROMPT-003", "a resource link is accepted", resource_link),
    must(
        "PROMPT-101",
        "a prompt of an unknown session is an error",
        unknown_session,
    ),
    should(
        "PROMPT-102",
        "a prompt without content blocks is answered, and the next prompt works",
        empty_prompt,
    ),
    should(
        "PROMPT-103",
        "a prompt during a turn is answered, and the turn continues",
        second_prompt,
    ),
    should(
        "PROMPT-104",
        "the answer arrives before the response, and nothing of it after the response",
        answer_before_response,
    ),
    should(
        "PROMPT-105",
        "an unknown content block is refused with -32602 or skipped",
        unknown_block,
    ),
    should("PROMPT-106", "turns of a session follow one another", turns),
    offered("PROMPTCAP-001", "an image is accepted", image),
    offered("PROMPTCAP-002", "audio is accepted", audio),
    offered(
        "PROMPTCAP-003",
        "an embedded resource is accepted",
        embedded_resource,
    ),
    offered(
        "PERMISSION-101",
        "a permission request names its session and tool call, and offers distinct options of known kinds",
        permission_request,
    ),
    offered(
        "PERMISSION-102",
        "an allowed tool call is completed",
        allowed,
    ),
    offered(
        "PERMISSION-103",
        "a rejected tool call is not completed, and the turn ends",
        rejected,
    ),
    offered(
        "PERMISSION-104",
        "a permission request that the client answers with an error is a refusal",
        permission_error,
    ),
    must(
        "CLIENTCAP-001",
        "the agent reads and writes no file through a client that does not offer it",
        no_files,
    ),
    must(
        "CLIENTCAP-002",
        "the agent uses no terminal of a client that does not offer it",
        no_terminals,
    ),
    must(
        "CLIENTCAP-003",
        "the agent asks no question of a client that does not offer elicitation",
        no_elicitation,
    ),
];

fn stop_reason(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.prompt(&session, case.subject.hello)?;
    ensure(STOP_REASONS.contains(&turn.stop_reason()?), || {
        format!("{}", turn.response)
    })
}

fn updates_name_session(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.hello(&session)?;
    let mut others = case.agent.received[turn.from..turn.to].iter();
    let other = others.find(|message| {
        message["method"] == "session/update" && message["params"]["sessionId"] != session.as_str()
    });
    ensure(other.is_none() && !turn.updates.is_empty(), || {
        format!("{other:?}, {} updates", turn.updates.len())
    })
}

/// Runs a turn whose prompt has this block after the text.
fn with_block(case: &mut Case, block: &Value) -> Check {
    let session = case.session()?;
    let blocks = json!([{"type": "text", "text": case.subject.hello}, block]);
    let turn = case.prompt_with(&session, &blocks)?;
    ensure(STOP_REASONS.contains(&turn.stop_reason()?), || {
        format!("{}", turn.response)
    })
}

fn resource_link(case: &mut Case) -> Check {
    case.initialize()?;
    let block = json!({"type": "resource_link", "uri": "file:///tmp/a.txt", "name": "a.txt"});
    with_block(case, &block)
}

fn unknown_session(case: &mut Case) -> Check {
    case.initialize()?;
    let params = json!({"sessionId": "no-such-session", "prompt": [{"type": "text", "text": "x"}]});
    case.agent.error("session/prompt", &params)?;
    Ok(())
}

fn empty_prompt(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.prompt_with(&session, &json!([]))?;
    case.hello(&session).map(drop)
}

fn second_prompt(case: &mut Case) -> Check {
    let session = case.opened()?;
    let (long, from) = case.long_turn(&session)?;
    let second = case.send_prompt(&session, case.subject.hello);
    case.agent.barrier()?;
    case.cancel(&session);
    let turn = case.turn(&session, &long, from)?;
    turn.was_cancelled()?;
    case.agent.response(&second)?;
    case.hello(&session).map(drop)
}

fn answer_before_response(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.hello(&session)?;
    ensure(!turn.text().is_empty(), || "no text".to_owned())?;
    case.agent.settle()?;
    case.agent.close()?;
    let after = case
        .agent
        .updates(&session, turn.to, case.agent.received.len());
    let late = after.iter().find(|update| {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        kind.ends_with("_chunk") || kind.starts_with("tool_call")
    });
    ensure(late.is_none(), || format!("{late:?}"))
}

fn unknown_block(case: &mut Case) -> Check {
    let session = case.opened()?;
    let hello = case.subject.hello;
    let blocks = json!([{"type": "text", "text": hello}, {"type": "acpipe_test", "x": 1}]);
    let turn = case.prompt_with(&session, &blocks)?;
    let response = &turn.response;
    ensure(
        response["error"]["code"] == -32602 || response["result"]["stopReason"].is_string(),
        || format!("{response}"),
    )?;
    case.finished(&session, hello)?;
    Ok(())
}

fn turns(case: &mut Case) -> Check {
    let session = case.opened()?;
    for _ in 0..3 {
        let turn = case.hello(&session)?;
        ensure(!turn.text().is_empty(), || "no text".to_owned())?;
    }
    Ok(())
}

fn image(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires("/promptCapabilities/image")?;
    // A PNG of one pixel.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    with_block(
        case,
        &json!({"type": "image", "mimeType": "image/png", "data": data}),
    )
}

fn audio(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires("/promptCapabilities/audio")?;
    with_block(
        case,
        &json!({"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}),
    )
}

fn embedded_resource(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires("/promptCapabilities/embeddedContext")?;
    let resource = json!({"uri": "file:///tmp/a.txt", "mimeType": "text/plain", "text": "a"});
    with_block(case, &json!({"type": "resource", "resource": resource}))
}

fn permission_request(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.permission(&session, Choice::Allow)?;
    let requests = case.requests("session/request_permission");
    ensure(requests.len() == 1, || format!("{requests:?}"))?;
    let params = &requests[0]["params"];
    ensure(params["sessionId"] == session.as_str(), || {
        format!("{params}")
    })?;
    let call = &params["toolCall"]["toolCallId"];
    ensure(call.is_string(), || format!("{params}"))?;
    ensure_distinct("options", &members(&params["options"], "optionId"))?;
    let kinds = members(&params["options"], "kind");
    let known = ["allow_once", "allow_always", "reject_once", "reject_always"];
    ensure(
        !kinds.is_empty() && kinds.iter().all(|kind| known.contains(kind)),
        || format!("{kinds:?}"),
    )
}

/// Returns the last status of the only tool call of a turn.
fn last_status(updates: &[Value]) -> Option<&str> {
    let mut calls = updates.iter().rev().filter(|update| {
        update["sessionUpdate"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("tool_call"))
    });
    calls.find_map(|call| call["status"].as_str())
}

fn allowed(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.permission(&session, Choice::Allow)?;
    ensure(
        turn.stop_reason()? == "end_turn" && last_status(&turn.updates) == Some("completed"),
        || format!("{turn:?}"),
    )
}

fn rejected(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.permission(&session, Choice::Reject)?;
    turn.stop_reason()?;
    ensure(last_status(&turn.updates) == Some("failed"), || {
        format!("{turn:?}")
    })
}

fn permission_error(case: &mut Case) -> Check {
    let session = case.opened()?;
    let turn = case.permission(&session, Choice::Error)?;
    ensure(last_status(&turn.updates) != Some("completed"), || {
        format!("{turn:?}")
    })?;
    case.hello(&session).map(drop)
}

/// Runs turns and fails if the agent sends a request whose method begins with `prefix`.
fn never_asks(case: &mut Case, prefix: &str) -> Check {
    let session = case.opened()?;
    case.prompt(&session, case.subject.hello)?;
    if case.subject.ask.is_some() {
        case.permission(&session, Choice::Allow)?;
    }
    let mut requests = case.agent.received.iter();
    let request = requests.find(|message| {
        let method = message["method"].as_str().unwrap_or_default();
        method.starts_with(prefix)
    });
    ensure(request.is_none(), || format!("{request:?}"))
}

fn no_files(case: &mut Case) -> Check {
    never_asks(case, "fs/")
}

fn no_terminals(case: &mut Case) -> Check {
    never_asks(case, "terminal/")
}

fn no_elicitation(case: &mut Case) -> Check {
    never_asks(case, "elicitation/")
}
