//! Sessions after their first process: load, resume, list, close, delete.

use super::case::{Case, Check, Turn, ensure, ensure_distinct, members, text_of};
use super::{Requirement, offered, should};
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    offered(
        "LOAD-001",
        "a session of an earlier process is loaded",
        |case| loaded(case).map(drop),
    ),
    offered(
        "LOAD-002",
        "the history arrives before the response of `session/load`, and none of it after the response",
        history_before_response,
    ),
    should(
        "LOAD-003",
        "the result of `session/load` is an object",
        load_result,
    ),
    offered(
        "LOAD-101",
        "the history has the text of all prompts and answers, in their order",
        whole_history,
    ),
    offered(
        "LOAD-102",
        "loading an unknown session is an error",
        |case| unknown(case, "/loadSession", "session/load"),
    ),
    offered(
        "LOAD-103",
        "a loaded session takes prompts, and the next load has them",
        prompt_after_load,
    ),
    offered(
        "RESUME-001",
        "a session of an earlier process is resumed",
        |case| resumed(case).map(drop),
    ),
    offered(
        "RESUME-002",
        "no history arrives before the response of `session/resume`",
        no_history,
    ),
    offered(
        "RESUME-101",
        "resuming an unknown session is an error",
        |case| unknown(case, RESUME, "session/resume"),
    ),
    offered(
        "RESUME-102",
        "a resumed session takes prompts",
        prompt_after_resume,
    ),
    offered(
        "LIST-001",
        "`session/list` returns a list of sessions with id and directory",
        list,
    ),
    offered(
        "LIST-002",
        "the list of a directory without sessions is empty",
        empty_list,
    ),
    offered(
        "LIST-101",
        "a session with a turn is listed with its directory, also by the next process",
        listed,
    ),
    offered(
        "LIST-102",
        "the list of a directory has the sessions of that directory only",
        list_of_directory,
    ),
    offered(
        "LIST-103",
        "pages are followed to the end, and each session is listed once",
        pages,
    ),
    should(
        "LIST-104",
        "an unknown cursor is an error or an empty page",
        unknown_cursor,
    ),
    offered("CLOSE-001", "an idle session is closed", closed),
    offered(
        "CLOSE-002",
        "closing a session with a turn ends the turn with `cancelled`",
        closed_in_turn,
    ),
    should(
        "CLOSE-101",
        "a prompt of a closed session is an error",
        prompt_after_close,
    ),
    offered("DELETE-001", "a session is deleted", deleted),
    should(
        "DELETE-002",
        "deleting an unknown or deleted session succeeds",
        deleted_twice,
    ),
    offered(
        "DELETE-101",
        "a deleted session is neither listed nor loaded",
        gone,
    ),
];

const LOAD: &str = "/loadSession";
const RESUME: &str = "/sessionCapabilities/resume";
const LIST: &str = "/sessionCapabilities/list";
const CLOSE: &str = "/sessionCapabilities/close";
const DELETE: &str = "/sessionCapabilities/delete";

/// Runs two turns in a session and starts another process. Returns the session's id and the turns.
fn earlier(case: &mut Case, capability: &str) -> Result<(String, [Turn; 2]), super::Unmet> {
    case.initialize()?;
    case.requires(capability)?;
    let session = case.session()?;
    let hello = case.subject.hello;
    let turns = [
        case.finished(&session, hello)?,
        case.finished(&session, hello)?,
    ];
    case.restart()?;
    Ok((session, turns))
}

/// Loaded session.
struct Loaded {
    session: String,
    turns: [Turn; 2],
    result: Value,
    /// Updates before the response.
    history: Vec<Value>,
}

fn loaded(case: &mut Case) -> Result<Loaded, super::Unmet> {
    let (session, turns) = earlier(case, LOAD)?;
    let (result, history) = load(case, &session)?;
    Ok(Loaded {
        session,
        turns,
        result,
        history,
    })
}

/// Loads a session. Returns the result and the updates before it.
fn load(case: &mut Case, session: &str) -> Result<(Value, Vec<Value>), String> {
    let from = case.agent.received.len();
    let params = json!({"sessionId": session, "cwd": case.cwd(), "mcpServers": []});
    let result = case.agent.result("session/load", &params)?;
    let to = case.agent.received.len();
    let history = case.agent.updates(session, from, to);
    Ok((result, history.into_iter().cloned().collect()))
}

fn is_history(update: &Value) -> bool {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    kind.ends_with("_chunk") || kind.starts_with("tool_call")
}

fn history_before_response(case: &mut Case) -> Check {
    let session = loaded(case)?.session;
    let from = case.agent.received.len();
    case.agent.settle()?;
    case.agent.close()?;
    let after = case
        .agent
        .updates(&session, from, case.agent.received.len());
    let late = after.iter().find(|update| is_history(update));
    ensure(late.is_none(), || format!("{late:?}"))
}

fn load_result(case: &mut Case) -> Check {
    let result = loaded(case)?.result;
    ensure(result.is_object(), || format!("{result}"))
}

fn whole_history(case: &mut Case) -> Check {
    let Loaded { turns, history, .. } = loaded(case)?;
    let hello = case.subject.hello;
    let prompts = text_of(&history, "user_message_chunk");
    ensure(prompts == hello.repeat(2), || {
        format!("prompts in the history: {prompts}")
    })?;
    let answers = text_of(&history, "agent_message_chunk");
    let wanted: String = turns.iter().map(Turn::text).collect();
    ensure(answers == wanted, || {
        format!("answers in the history: {answers}; answers of the turns: {wanted}")
    })?;
    let mut roles = history.iter().filter_map(|update| {
        let kind = update["sessionUpdate"].as_str()?;
        ["user_message_chunk", "agent_message_chunk"]
            .contains(&kind)
            .then_some(kind)
    });
    let mut changes = vec![roles.next()];
    for role in roles {
        if changes.last() != Some(&Some(role)) {
            changes.push(Some(role));
        }
    }
    ensure(changes.len() == 4, || format!("order: {changes:?}"))
}

fn prompt_after_load(case: &mut Case) -> Check {
    let Loaded { session, turns, .. } = loaded(case)?;
    let turn = case.hello(&session)?;
    case.restart()?;
    let (_, history) = load(case, &session)?;
    let wanted: String = turns.iter().chain([&turn]).map(Turn::text).collect();
    let answers = text_of(&history, "agent_message_chunk");
    ensure(answers == wanted, || {
        format!("answers in the history: {answers}; answers of the turns: {wanted}")
    })
}

fn unknown(case: &mut Case, capability: &str, method: &str) -> Check {
    case.initialize()?;
    case.requires(capability)?;
    let params = json!({"sessionId": "no-such-session", "cwd": case.cwd(), "mcpServers": []});
    case.agent.error(method, &params)?;
    case.session()?;
    Ok(())
}

/// Resumes a session of an earlier process. Returns its id and the updates before the response.
fn resumed(case: &mut Case) -> Result<(String, Vec<Value>), super::Unmet> {
    let (session, _) = earlier(case, RESUME)?;
    let from = case.agent.received.len();
    // The servers may be omitted.
    let params = json!({"sessionId": session, "cwd": case.cwd()});
    let result = case.agent.result("session/resume", &params)?;
    ensure(result.is_object(), || format!("{result}"))?;
    let to = case.agent.received.len();
    let updates = case.agent.updates(&session, from, to);
    Ok((session.clone(), updates.into_iter().cloned().collect()))
}

fn no_history(case: &mut Case) -> Check {
    let (_, updates) = resumed(case)?;
    let history = updates.iter().find(|update| is_history(update));
    ensure(history.is_none(), || format!("{history:?}"))
}

fn prompt_after_resume(case: &mut Case) -> Check {
    let (session, _) = resumed(case)?;
    let turn = case.hello(&session)?;
    ensure(!turn.text().is_empty(), || "no text".to_owned())
}

fn list(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(LIST)?;
    let session = case.session()?;
    case.hello(&session)?;
    let listed = case.agent.result("session/list", &json!({}))?;
    ensure(listed["sessions"].is_array(), || format!("{listed}"))?;
    let entries = listed["sessions"].as_array().into_iter().flatten();
    for entry in entries {
        ensure(
            entry["sessionId"].is_string() && entry["cwd"].is_string(),
            || format!("{entry}"),
        )?;
    }
    Ok(())
}

fn empty_list(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(LIST)?;
    let session = case.session()?;
    case.hello(&session)?;
    let params = json!({"cwd": "/no/such/directory"});
    let listed = case.agent.result("session/list", &params)?;
    ensure(listed["sessions"] == json!([]), || format!("{listed}"))
}

fn listed(case: &mut Case) -> Check {
    let (session, _) = earlier(case, LIST)?;
    let listed = all(case, None)?;
    let cwd = case.cwd();
    let mut entries = listed.as_array().into_iter().flatten();
    let entry = entries.find(|entry| entry["sessionId"] == session.as_str());
    ensure(
        entry.is_some_and(|entry| entry["cwd"] == cwd.as_str()),
        || format!("session {session} in {listed}"),
    )
}

fn list_of_directory(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(LIST)?;
    let other = format!("{}/other", case.cwd());
    std::fs::create_dir_all(&other).unwrap();
    let mut ids = Vec::new();
    for cwd in [&case.cwd(), &other] {
        let opened = case.open_in(cwd)?;
        let session = super::case::session_id(&opened)?;
        case.hello(&session)?;
        ids.push(session);
    }
    let listed = all(case, Some(&other))?;
    ensure(members(&listed, "sessionId") == [&ids[1]], || {
        format!("sessions {ids:?}, those of {other}: {listed}")
    })
}

/// Returns the sessions of all pages.
fn all(case: &mut Case, cwd: Option<&str>) -> Result<Value, String> {
    let mut sessions = Vec::new();
    let mut params = json!({});
    if let Some(cwd) = cwd {
        params["cwd"] = cwd.into();
    }
    for _ in 0..1000 {
        let page = case.agent.result("session/list", &params)?;
        sessions.extend(page["sessions"].as_array().into_iter().flatten().cloned());
        let cursor = &page["nextCursor"];
        if cursor.is_null() {
            return Ok(sessions.into());
        }
        params["cursor"] = cursor.clone();
    }
    Err("the list has no last page".to_owned())
}

fn pages(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(LIST)?;
    let mut wanted = Vec::new();
    for _ in 0..3 {
        let session = case.session()?;
        case.hello(&session)?;
        wanted.push(session);
    }
    let listed = all(case, None)?;
    let ids = members(&listed, "sessionId");
    ensure_distinct("listed sessions", &ids)?;
    ensure(wanted.iter().all(|id| ids.contains(&id.as_str())), || {
        format!("sessions {wanted:?}, listed {ids:?}")
    })
}

fn unknown_cursor(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(LIST)?;
    let params = json!({"cursor": "no-such-cursor"});
    let response = case.agent.call("session/list", &params)?;
    let is_empty = response["result"]["sessions"] == json!([]);
    ensure(is_empty || response["error"].is_object(), || {
        format!("{response}")
    })
}

fn closed(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(CLOSE)?;
    let session = case.session()?;
    case.hello(&session)?;
    close(case, &session)
}

fn close(case: &mut Case, session: &str) -> Check {
    let params = json!({"sessionId": session});
    let result = case.agent.result("session/close", &params)?;
    ensure(result.is_object(), || format!("{result}"))
}

fn closed_in_turn(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(CLOSE)?;
    let session = case.session()?;
    let (prompt, from) = case.long_turn(&session)?;
    close(case, &session)?;
    let turn = case.turn(&session, &prompt, from)?;
    turn.was_cancelled()
}

fn prompt_after_close(case: &mut Case) -> Check {
    closed(case)?;
    let mut messages = case.agent.received.iter();
    let session = messages.find_map(|message| message["result"]["sessionId"].as_str());
    let session = session.unwrap_or_default().to_owned();
    let turn = case.prompt(&session, case.subject.hello)?;
    ensure(turn.response["error"].is_object(), || {
        format!("{}", turn.response)
    })
}

fn delete(case: &mut Case, session: &str) -> Check {
    let params = json!({"sessionId": session});
    let result = case.agent.result("session/delete", &params)?;
    ensure(result.is_object(), || format!("{result}"))
}

fn deleted(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(DELETE)?;
    let session = case.session()?;
    case.hello(&session)?;
    delete(case, &session)
}

fn deleted_twice(case: &mut Case) -> Check {
    case.initialize()?;
    case.requires(DELETE)?;
    let session = case.session()?;
    case.hello(&session)?;
    delete(case, &session)?;
    delete(case, &session)?;
    delete(case, "no-such-session")
}

fn gone(case: &mut Case) -> Check {
    let (session, _) = earlier(case, DELETE)?;
    delete(case, &session)?;
    if case.requires(LIST).is_ok() {
        let listed = all(case, None)?;
        ensure(
            !members(&listed, "sessionId").contains(&session.as_str()),
            || format!("{session} is listed: {listed}"),
        )?;
    }
    if case.requires(LOAD).is_ok() {
        let params = json!({"sessionId": session, "cwd": case.cwd(), "mcpServers": []});
        case.agent.error("session/load", &params)?;
    }
    Ok(())
}
