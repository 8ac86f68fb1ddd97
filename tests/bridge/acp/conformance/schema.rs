//! Shapes of the agent's messages, by the types of the protocol.

use super::case::{Case, Check, Choice, Unmet, ensure};
use super::{Requirement, must, should};
use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    must(
        "SCHEMA-001",
        "every message of the agent has the shape of the specification",
        shapes,
    ),
    should(
        "SCHEMA-002",
        "messages have no members that the specification does not have, except in `_meta`",
        members,
    ),
];

/// Reads a value as a type of the protocol and writes it again.
fn read<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let typed: T =
        serde_json::from_value(value.clone()).map_err(|error| format!("{error} in {value}"))?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// Values of an exchange with what the protocol's types keep of them.
fn exchange(case: &mut Case) -> Result<Vec<(Value, Value)>, Unmet> {
    case.initialize()?;
    let mut pairs = vec![(
        case.offered.clone(),
        read::<v1::InitializeResponse>(&case.offered)?,
    )];
    let opened = case.open()?;
    pairs.push((opened.clone(), read::<v1::NewSessionResponse>(&opened)?));
    let session = super::case::session_id(&opened)?;
    let mut turns = vec![case.hello(&session)?];
    if case.subject.ask.is_some() {
        turns.push(case.permission(&session, Choice::Allow)?);
        turns.push(case.permission(&session, Choice::Reject)?);
    }
    for turn in turns {
        let result = &turn.response["result"];
        pairs.push((result.clone(), read::<v1::PromptResponse>(result)?));
    }
    for message in case.agent.received.clone() {
        let params = &message["params"];
        let kept = match message["method"].as_str() {
            Some("session/update") => read::<v1::SessionNotification>(params)?,
            Some("session/request_permission") => read::<v1::RequestPermissionRequest>(params)?,
            _ => continue,
        };
        pairs.push((params.clone(), kept));
    }
    Ok(pairs)
}

fn shapes(case: &mut Case) -> Check {
    let pairs = exchange(case)?;
    ensure(pairs.len() > 4, || "the agent sent no update".to_owned())
}

fn members(case: &mut Case) -> Check {
    for (value, kept) in exchange(case)? {
        let mut lost = Vec::new();
        find_lost(&value, &kept, "", &mut lost);
        ensure(lost.is_empty(), || format!("{lost:?} in {value}"))?;
    }
    Ok(())
}

/// Collects the paths of members that a type of the protocol does not have. Content that the protocol leaves
/// to the agent is skipped.
fn find_lost(value: &Value, kept: &Value, path: &str, lost: &mut Vec<String>) {
    match (value, kept) {
        (Value::Object(value), Value::Object(kept)) => {
            for (name, member) in value {
                let path = format!("{path}/{name}");
                match kept.get(name) {
                    Some(kept) => find_lost(member, kept, &path, lost),
                    // The types omit what has the default value.
                    None if is_default(member) || name == "_meta" => {}
                    None => lost.push(path),
                }
            }
        }
        (Value::Array(value), Value::Array(kept)) => {
            if value.len() != kept.len() {
                lost.push(path.to_owned());
            }
            for (n, (value, kept)) in value.iter().zip(kept).enumerate() {
                find_lost(value, kept, &format!("{path}/{n}"), lost);
            }
        }
        _ => {}
    }
}

fn is_default(value: &Value) -> bool {
    [
        json!(null),
        json!(false),
        json!([]),
        json!({}),
        json!("pending"),
        json!("other"),
    ]
    .contains(value)
}
