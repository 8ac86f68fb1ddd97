//! New sessions.

use super::case::{Case, Check, ensure, ensure_distinct, session_id};
use super::{Requirement, must, offered, should};
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    must(
        "SESSION-001",
        "`session/new` with an absolute directory returns a session id",
        opens,
    ),
    must(
        "SESSION-002",
        "sessions of one connection have distinct ids",
        distinct,
    ),
    should(
        "SESSION-101",
        "a relative directory is refused with -32602",
        relative_directory,
    ),
    must(
        "SESSION-102",
        "an MCP server with a command is accepted",
        mcp_server,
    ),
    should(
        "SESSION-103",
        "turns of several sessions run at once, and each update names its session",
        at_once,
    ),
    should(
        "SESSION-104",
        "a cancel ends the turn of its session alone",
        cancels_one,
    ),
    should(
        "SESSION-105",
        "the result of `session/new` arrives before the first update of the session",
        no_early_update,
    ),
    offered(
        "ADDDIRS-001",
        "`session/new` with additional directories is accepted",
        additional_directories,
    ),
];

fn opens(case: &mut Case) -> Check {
    case.initialize()?;
    case.session()?;
    Ok(())
}

fn distinct(case: &mut Case) -> Check {
    case.initialize()?;
    let ids = [case.session()?, case.session()?, case.session()?];
    ensure_distinct("session ids", &ids.each_ref().map(String::as_str))
}

fn relative_directory(case: &mut Case) -> Check {
    case.initialize()?;
    for cwd in ["relative", ".", ""] {
        let params = json!({"cwd": cwd, "mcpServers": []});
        let error = case.agent.error("session/new", &params)?;
        ensure(error["code"] == -32602, || format!("{cwd:?}: {error}"))?;
    }
    Ok(())
}

fn mcp_server(case: &mut Case) -> Check {
    case.initialize()?;
    let server = json!({
        "name": "files",
        "command": "/bin/true",
        "args": ["--stdio"],
        "env": [{"name": "A", "value": "b"}],
    });
    let params = json!({"cwd": case.cwd(), "mcpServers": [server]});
    let opened = case.agent.result("session/new", &params)?;
    let session = session_id(&opened)?;
    case.hello(&session).map(drop)
}

fn at_once(case: &mut Case) -> Check {
    case.initialize()?;
    let sessions = [case.session()?, case.session()?, case.session()?];
    let from = case.agent.received.len();
    let prompts: Vec<Value> = sessions
        .iter()
        .map(|session| case.send_prompt(session, case.subject.hello))
        .collect();
    let mut texts = Vec::new();
    for (session, prompt) in sessions.iter().zip(&prompts) {
        let turn = case.turn(session, prompt, from)?;
        ensure(turn.stop_reason()? == "end_turn", || {
            format!("{}", turn.response)
        })?;
        texts.push(turn.text());
    }
    ensure(
        !texts[0].is_empty() && texts.iter().all(|text| *text == texts[0]),
        || format!("the same prompt in three sessions is answered with {texts:?}"),
    )
}

fn cancels_one(case: &mut Case) -> Check {
    case.initialize()?;
    let [one, other] = [case.session()?, case.session()?];
    let (long, from) = case.long_turn(&one)?;
    case.cancel(&other);
    case.hello(&other)?;
    let answered = case.agent.received[from..]
        .iter()
        .any(|message| crate::acp::peer::is_response(message, &long));
    ensure(!answered, || "the other session's turn ended".to_owned())?;
    case.cancel(&one);
    let turn = case.turn(&one, &long, from)?;
    turn.was_cancelled()
}

fn no_early_update(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.hello(&session)?;
    let mut messages = case.agent.received.iter();
    let opened = messages.position(|message| message["result"]["sessionId"] == session.as_str());
    let mut messages = case.agent.received.iter();
    let update = messages.position(|message| message["params"]["sessionId"] == session.as_str());
    ensure(opened < update, || {
        format!("update {update:?} before response {opened:?}")
    })
}

fn additional_directories(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires("/sessionCapabilities/additionalDirectories")?;
    let params = json!({"cwd": case.cwd(), "mcpServers": [], "additionalDirectories": ["/tmp"]});
    let opened = case.agent.result("session/new", &params)?;
    session_id(&opened)?;
    Ok(())
}
