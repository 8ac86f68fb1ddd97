//! Modes and options of a session.

use super::case::{Case, Check, Unmet, ensure, members, session_id};
use super::{Requirement, must, offered};
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    offered(
        "MODES-001",
        "the current mode is one of the available modes",
        |case| modes(case).map(drop),
    ),
    offered("MODES-002", "each mode can be set", set_mode),
    offered(
        "MODES-101",
        "setting an unknown mode is an error",
        unknown_mode,
    ),
    offered(
        "CONFIG-001",
        "the current value of each option is one of its values",
        |case| options(case).map(drop),
    ),
    offered(
        "CONFIG-002",
        "`session/set_config_option` returns all options, with the new value",
        set_option,
    ),
    must(
        "CONFIG-003",
        "a client that does not offer boolean options gets none",
        no_boolean,
    ),
    offered(
        "CONFIG-101",
        "an unknown option and an unknown value are errors",
        unknown_option,
    ),
];

/// Opens a session with this member in its result. Returns the session's id and the member.
fn open_with(case: &mut Case, member: &str) -> Result<(String, Value), Unmet> {
    case.initialize()?;
    let opened = case.open()?;
    let value = &opened[member];
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    if value.is_null() || is_empty {
        return Err(Unmet::NotOffered);
    }
    Ok((session_id(&opened)?, value.clone()))
}

fn modes(case: &mut Case) -> Result<(String, Value), Unmet> {
    let (session, modes) = open_with(case, "modes")?;
    let available = members(&modes["availableModes"], "id");
    let current = modes["currentModeId"].as_str().unwrap_or_default();
    ensure(available.contains(&current), || format!("{modes}"))?;
    Ok((session, modes))
}

fn set_mode(case: &mut Case) -> Check {
    let (session, modes) = modes(case)?;
    let available = members(&modes["availableModes"], "id");
    for mode in &available {
        let from = case.agent.received.len();
        let params = json!({"sessionId": session, "modeId": mode});
        case.agent.result("session/set_mode", &params)?;
        let to = case.agent.received.len();
        for update in case.agent.updates(&session, from, to) {
            if update["sessionUpdate"] == "current_mode_update" {
                // The update of an earlier change may be late.
                let current = update["currentModeId"].as_str().unwrap_or_default();
                ensure(available.contains(&current), || format!("{update}"))?;
            }
        }
    }
    Ok(())
}

fn unknown_mode(case: &mut Case) -> Check {
    let (session, _) = modes(case)?;
    let params = json!({"sessionId": session, "modeId": "no-such-mode"});
    case.agent.error("session/set_mode", &params)?;
    case.hello(&session).map(drop)
}

/// Returns the values of a select option, grouped or not.
fn values(option: &Value) -> Vec<&str> {
    let mut values = members(&option["options"], "value");
    for group in option["options"].as_array().into_iter().flatten() {
        values.extend(members(&group["options"], "value"));
    }
    values
}

fn options(case: &mut Case) -> Result<(String, Value), Unmet> {
    let (session, options) = open_with(case, "configOptions")?;
    for option in options.as_array().into_iter().flatten() {
        let current = &option["currentValue"];
        let is_valid = match current.as_str() {
            Some(current) => values(option).contains(&current),
            None => option["type"] == "boolean" && current.is_boolean(),
        };
        ensure(is_valid, || format!("{option}"))?;
    }
    Ok((session, options))
}

fn set_option(case: &mut Case) -> Check {
    let (session, options) = options(case)?;
    let ids = members(&options, "id");
    for option in options.as_array().into_iter().flatten() {
        for value in values(option) {
            let id = &option["id"];
            let params = json!({"sessionId": session, "configId": id, "value": value});
            let result = case.agent.result("session/set_config_option", &params)?;
            let returned = &result["configOptions"];
            ensure(members(returned, "id") == ids, || {
                format!("options {ids:?}, returned {returned}")
            })?;
            let mut all = returned.as_array().into_iter().flatten();
            let changed = all.find(|option| option["id"] == *id);
            ensure(
                changed.is_some_and(|option| option["currentValue"] == value),
                || format!("{id} was set to {value}: {returned}"),
            )?;
        }
    }
    Ok(())
}

fn no_boolean(case: &mut Case) -> Check {
    case.initialize()?;
    let opened = case.open()?;
    let types = members(&opened["configOptions"], "type");
    ensure(!types.contains(&"boolean"), || format!("{opened}"))
}

fn unknown_option(case: &mut Case) -> Check {
    let (session, options) = options(case)?;
    let unknown = [
        json!({"sessionId": session, "configId": "no-such-option", "value": "x"}),
        json!({"sessionId": session, "configId": options[0]["id"], "value": "no-such-value"}),
    ];
    for params in unknown {
        case.agent.error("session/set_config_option", &params)?;
    }
    case.hello(&session).map(drop)
}
