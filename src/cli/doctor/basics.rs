//! Steps of every check of an ACP agent: the handshake, a session, and the stop.

use super::acp::{DoctorConnection, Fault, Outcome};
use super::limits::ProbeLimits;
use super::report::{Check, shown};
use super::subject::CheckedAgent;
use acpipe_dialects::acp::{initialize_request, initialize_result};
use acpipe_host::{AgentStarter, StopStep, Stopped};
use acpipe_model::asking::asking_fault;
use acpipe_model::dialect::AgentServices;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::AgentInfo;
use acpipe_model::setting;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::AgentCapabilities;
use serde_json::{Value, json, value::RawValue};
use std::time::Duration;

/// Sends the handshake. Returns what the agent reported, and the time.
pub async fn initialize(
    connection: &mut DoctorConnection,
    spec: &ProcessSpec,
    limits: &ProbeLimits,
) -> (Check, Option<(AgentInfo, Duration)>) {
    const NAME: &str = "initialize";
    let params = initialize_request(&AgentServices::default());
    let params = serde_json::to_value(params).unwrap_or_default();
    let outcome = connection.request(NAME, &params, limits.initialize);
    let check = match outcome.await {
        Outcome::Result(result, time) => {
            let raw = RawValue::from_string(result.to_string());
            let info = raw.map_err(|error| {
                let message = format!("cannot read the agent's response to initialize: {error}");
                Error::new(ErrorKind::Malformed, message)
            });
            match info.and_then(|raw| initialize_result(&raw, spec)) {
                Ok(info) => {
                    let check = Check::ok(NAME, format!("ACP 1, answered after {}", shown(time)));
                    let check = check.time("ms", time).fact("result", result);
                    return (check, Some((info, time)));
                }
                Err(error) => {
                    let advice = "use another version of the agent";
                    Check::problem(NAME, error.message, advice).fact("result", result)
                }
            }
        }
        outcome @ Outcome::NoAnswer(_) => {
            let last = connection.last_words().unwrap_or_default();
            let hint = acp_hint(spec);
            let hint = hint.unwrap_or_else(|| {
                "check that the program speaks ACP with these arguments, or raise --timeout initialize=…"
                    .to_owned()
            });
            Check::problem(NAME, format!("{}{last}", outcome.describe()), hint)
        }
        outcome @ (Outcome::Exited(_) | Outcome::Error(_) | Outcome::OtherSession(_)) => {
            let hint = acp_hint(spec);
            let hint = hint.unwrap_or_else(|| {
                "check that the program speaks ACP with these arguments".to_owned()
            });
            Check::problem(NAME, outcome.describe(), hint)
        }
    };
    (check, None)
}

/// Returns the command line that starts the same program as an ACP agent, if this one does not.
fn acp_hint(spec: &ProcessSpec) -> Option<String> {
    let line = acpipe_model::builtin_agents::hints::acp_command(&spec.command, &spec.args)?;
    Some(format!("did you mean `{line}`?"))
}

/// Describes what the agent reported in its handshake.
pub fn about(info: &AgentInfo) -> Check {
    let name = info.title.as_ref().or(info.name.as_ref());
    let name = name.map_or("the agent has no name", String::as_str);
    let version = info.version.as_deref().unwrap_or("without a version");
    let can = capabilities(&info.capabilities);
    let can = if can.is_empty() {
        "nothing beyond prompts".to_owned()
    } else {
        can.join(", ")
    };
    let methods: Vec<&str> = info.auth_methods.iter().map(|m| m.name.as_str()).collect();
    let methods = match methods.as_slice() {
        [] => String::new(),
        methods => format!("; sign-in: {}", methods.join(", ")),
    };
    Check::ok("agent", format!("{name} {version}; offers {can}{methods}"))
        .fact("name", json!(info.name))
        .fact("agentVersion", json!(info.version))
        .fact("capabilities", json!(info.capabilities))
        .fact("authMethods", json!(info.auth_methods))
}

fn capabilities(can: &AgentCapabilities) -> Vec<&'static str> {
    let all = [
        (can.load, "load"),
        (can.resume, "resume"),
        (can.list, "list"),
        (can.close, "close"),
        (can.image, "images"),
        (can.audio, "audio"),
        (can.embedded_context, "embedded context"),
        (can.mcp_http, "MCP over HTTP"),
        (can.mcp_sse, "MCP over SSE"),
        (can.logout, "logout"),
        (can.updated_input, "changed tool input"),
        (can.steer, "steering"),
    ];
    let has = all.into_iter().filter(|(has, _)| *has);
    has.map(|(_, name)| name).collect()
}

/// Opens a session. Returns its id.
pub async fn new_session(
    connection: &mut DoctorConnection,
    cwd: &str,
    limits: &ProbeLimits,
    subject: &CheckedAgent,
) -> (Check, Option<String>) {
    const NAME: &str = "session/new";
    let params = json!({"cwd": cwd, "mcpServers": []});
    let outcome = connection.request(NAME, &params, limits.new).await;
    let check = match &outcome {
        Outcome::Result(result, time) => {
            if let Some(id) = result["sessionId"].as_str() {
                let check = opened(NAME, &outcome.describe(), result, subject);
                return (check.time("ms", *time), Some(id.to_owned()));
            }
            let advice = "use another version of the agent";
            Check::problem(NAME, "the answer has no sessionId", advice)
        }
        Outcome::Error(fault) if fault.wants_sign_in => sign_in(NAME, fault, subject),
        Outcome::Error(_)
        | Outcome::OtherSession(_)
        | Outcome::NoAnswer(_)
        | Outcome::Exited(_) => {
            let advice = "see the agent's own log, or raise --timeout open=…";
            Check::problem(NAME, outcome.describe(), advice)
        }
    };
    (check, None)
}

/// Reports an opened session: its mode, and whether the agent asks for permission in it.
fn opened(name: &str, found: &str, result: &Value, subject: &CheckedAgent) -> Check {
    let state = result.as_object().cloned().unwrap_or_default();
    let mode = setting::mode(&state);
    let asking = subject.definition.asking(&subject.definition.spec);
    let title = mode
        .as_deref()
        .and_then(|mode| setting::mode_name(&state, mode));
    // The doctor measures anew and has read no profile.
    let check = match asking_fault(asking.as_deref(), mode.as_deref(), title.as_deref(), None) {
        None => Check::ok(name, found),
        Some(fault) => {
            let mut modes = asking.iter().flat_map(|asking| asking.modes());
            let advice = match modes.find(|mode| setting::offers_mode(&state, mode)) {
                Some(mode) => format!("acpipe chooses the mode {mode:?} if the permissions restrict"),
                None => "permissions that restrict may not hold; use the agent's own settings or a sandbox".to_owned(),
            };
            Check::warning(name, format!("{found}; {fault}"), advice)
        }
    };
    match mode {
        Some(mode) => check.fact("mode", mode),
        None => check,
    }
}

/// Reports that the user has to sign in.
pub fn sign_in(name: &str, fault: &Fault, subject: &CheckedAgent) -> Check {
    let found = format!("sign-in required: {}", fault.message);
    Check::problem(name, found, subject.login_advice()).fact("signInRequired", true)
}

/// Stops an agent process.
pub async fn stop(
    starter: &AgentStarter,
    connection: DoctorConnection,
    limits: &ProbeLimits,
) -> Stopped {
    let process = connection.into_process();
    starter.stop(process, limits.close, limits.terminate).await
}

/// Describes how an agent process stopped.
pub fn stop_check(stopped: &Stopped, limits: &ProbeLimits) -> Check {
    const NAME: &str = "stop";
    let time = shown(stopped.time);
    let check = match (stopped.left, stopped.step) {
        (left @ 1.., _) => Check::problem(
            NAME,
            format!("{left} processes of the agent are left"),
            "list them with acpipe processes",
        ),
        (0, StopStep::EndOfInput) => {
            let found = format!("exited {time} after the end of stdin; no process is left");
            Check::ok(NAME, found)
        }
        (0, StopStep::Before) => Check::problem(
            NAME,
            "the agent had exited by itself",
            "see the agent's own log",
        ),
        (0, StopStep::Terminate | StopStep::Kill) => Check::warning(
            NAME,
            format!(
                "did not exit within {} after the end of stdin",
                shown(limits.close)
            ),
            "acpipe sends SIGTERM, then SIGKILL; nothing is left",
        ),
    };
    let step = match stopped.step {
        StopStep::Before => "before",
        StopStep::EndOfInput => "endOfInput",
        StopStep::Terminate => "SIGTERM",
        StopStep::Kill => "SIGKILL",
    };
    check
        .time("ms", stopped.time)
        .fact("by", step)
        .fact("left", Value::from(stopped.left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SettingsBuilder;
    use std::time::Instant;

    #[test]
    fn session_in_a_mode_in_which_the_agent_does_not_ask_is_a_warning() {
        let settings = SettingsBuilder::new(Instant::now()).build();
        let mut definition = settings.default_agent.clone();
        definition.asks = serde_json::from_value(json!(["default"])).unwrap();
        let subject = CheckedAgent::own(definition, &settings);
        for (mode, offered, status, advice) in [
            ("default", "default", "ok", Value::Null),
            (
                "auto",
                "default",
                "warning",
                json!("acpipe chooses the mode \"default\" if the permissions restrict"),
            ),
            (
                "auto",
                "other",
                "warning",
                json!(
                    "permissions that restrict may not hold; use the agent's own settings or a sandbox"
                ),
            ),
        ] {
            let modes =
                json!({"currentModeId": mode, "availableModes": [{"id": offered}, {"id": mode}]});
            let check = opened(
                "session/new",
                "answered",
                &json!({"modes": modes}),
                &subject,
            );
            let check = json!(check);
            assert_eq!(
                (&check["status"], &check["mode"]),
                (&json!(status), &json!(mode))
            );
            assert_eq!(check["advice"], advice);
        }
    }
}
