//! The handshake.

use super::case::{Case, Check, ensure, ensure_distinct, members};
use super::{Requirement, must, should};
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    must(
        "INIT-001",
        "`initialize` succeeds with an integer `protocolVersion`",
        has_version,
    ),
    must(
        "INIT-002",
        "version 1 is answered with version 1",
        version_1,
    ),
    must(
        "INIT-003",
        "an unknown version is answered with a version that the agent supports",
        unknown_version,
    ),
    should(
        "INIT-004",
        "`agentInfo` has a name and a version",
        agent_info,
    ),
    must(
        "INIT-101",
        "members of `agentCapabilities` have the types of the specification",
        capability_types,
    ),
    should(
        "INIT-102",
        "unknown client capabilities and members are accepted",
        unknown_capabilities,
    ),
    should(
        "INIT-103",
        "a request before `initialize` is answered",
        before_initialize,
    ),
    should(
        "INIT-104",
        "a second `initialize` is answered and leaves the sessions open",
        second_initialize,
    ),
    should(
        "AUTH-001",
        "the ids of `authMethods` are distinct",
        distinct_methods,
    ),
    must(
        "AUTH-002",
        "a client that cannot show a terminal is offered no sign-in in a terminal",
        no_terminal_sign_in,
    ),
    should(
        "AUTH-005",
        "an agent without `authMethods` opens sessions without a sign-in",
        opens_without_sign_in,
    ),
    should(
        "AUTH-101",
        "`authenticate` with an unknown method is an error",
        unknown_sign_in,
    ),
];

fn initialize(case: &mut Case, version: &Value) -> Result<Value, String> {
    // A later version has `info` and `capabilities` in place of `clientInfo` and `clientCapabilities`.
    let info = json!({"name": "conformance", "version": "0"});
    let params = json!({
        "protocolVersion": version,
        "clientCapabilities": {},
        "clientInfo": info,
        "info": info,
        "capabilities": {},
    });
    case.agent.result("initialize", &params)
}

fn has_version(case: &mut Case) -> Check {
    case.initialize()?;
    ensure(case.offered["protocolVersion"].is_u64(), || {
        format!("{}", case.offered)
    })
}

fn version_1(case: &mut Case) -> Check {
    let result = initialize(case, &json!(1))?;
    ensure(result["protocolVersion"] == 1, || format!("{result}"))
}

fn unknown_version(case: &mut Case) -> Check {
    for version in [65535, 0] {
        let result = initialize(case, &json!(version))?;
        ensure(result["protocolVersion"] == 1, || format!("{result}"))?;
        case.restart()?;
    }
    Ok(())
}

fn agent_info(case: &mut Case) -> Check {
    case.initialize()?;
    let info = &case.offered["agentInfo"];
    ensure(
        ["name", "version"]
            .iter()
            .all(|member| info[member].as_str().is_some_and(|text| !text.is_empty())),
        || format!("{info}"),
    )
}

fn capability_types(case: &mut Case) -> Check {
    case.initialize()?;
    let offered = &case.offered["agentCapabilities"];
    let flags = [
        "/loadSession",
        "/promptCapabilities/image",
        "/promptCapabilities/audio",
        "/promptCapabilities/embeddedContext",
        "/mcpCapabilities/http",
        "/mcpCapabilities/sse",
    ];
    for flag in flags {
        let value = offered.pointer(flag);
        ensure(value.is_none_or(Value::is_boolean), || {
            format!("{flag}: {value:?}")
        })?;
    }
    let markers = [
        "/sessionCapabilities/list",
        "/sessionCapabilities/resume",
        "/sessionCapabilities/close",
        "/sessionCapabilities/delete",
        "/sessionCapabilities/additionalDirectories",
        "/auth/logout",
    ];
    for marker in markers {
        let value = offered.pointer(marker);
        ensure(
            value.is_none_or(|value| value.is_object() || value.is_null()),
            || format!("{marker}: {value:?}"),
        )?;
    }
    let methods = &case.offered["authMethods"];
    ensure(methods.is_array() || methods.is_null(), || {
        format!("authMethods: {methods}")
    })
}

fn unknown_capabilities(case: &mut Case) -> Check {
    let capabilities = json!({
        "fs": {"readTextFile": true, "writeTextFile": true, "acpipeTest": true},
        "terminal": true,
        "acpipeTest": {"x": [1]},
        "_meta": {"acpipe_test": {"x": null}},
    });
    case.initialize_with(&capabilities)?;
    let session = case.session()?;
    case.hello(&session).map(drop)
}

fn before_initialize(case: &mut Case) -> Check {
    let params = json!({"cwd": case.cwd(), "mcpServers": []});
    case.agent.call("session/new", &params)?;
    case.initialize()?;
    case.session()?;
    Ok(())
}

fn second_initialize(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.agent
        .call("initialize", &json!({"protocolVersion": 1}))?;
    case.hello(&session).map(drop)
}

fn distinct_methods(case: &mut Case) -> Check {
    case.initialize()?;
    ensure_distinct("ids", &members(&case.offered["authMethods"], "id"))
}

fn no_terminal_sign_in(case: &mut Case) -> Check {
    case.initialize()?;
    let types = members(&case.offered["authMethods"], "type");
    ensure(!types.contains(&"terminal"), || {
        format!("{}", case.offered["authMethods"])
    })
}

fn opens_without_sign_in(case: &mut Case) -> Check {
    case.initialize()?;
    let methods = case.offered["authMethods"].as_array();
    if methods.is_none_or(Vec::is_empty) {
        case.session()?;
    }
    Ok(())
}

fn unknown_sign_in(case: &mut Case) -> Check {
    case.initialize()?;
    case.agent
        .error("authenticate", &json!({"methodId": "no-such-method"}))?;
    case.session()?;
    Ok(())
}
