//! Failed turns that agents report outside the protocol: in `_meta` of session updates, and as text.

use super::decode::{self, is_network};
use super::pending::Pending;
use super::{auth, session_gone};
use acpipe_json::rpc::RpcError;
use acpipe_json::{Members, text, to_raw};
use acpipe_model::builtin_agents::hints;
use acpipe_model::dialect::ProcessSpec;
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::event::{AgentEvent, AgentInfo, FailureReport, MessageRole, Update};
use acpipe_protocol::acp::AUTH_REQUIRED;
use serde_json::json;
use serde_json::value::RawValue;

/// Sign by which an agent reports that a turn fails. The text of its message after the sign is the reason.
#[derive(Debug, Clone, Copy)]
pub enum FailureSign {
    /// A value in `_meta` of session updates.
    Meta {
        /// Path of fields from `_meta` to the value.
        path: &'static [&'static str],
        /// Value while a turn fails.
        fails: &'static str,
        /// Value while a turn runs normally.
        runs: &'static str,
    },
    /// A piece of text with this prefix, in a turn whose result has no `usage`, which the agent's other turns
    /// have.
    Text(&'static str),
}

use FailureSign::{Meta, Text};

/// Signs by `agentInfo.name` of the handshake, one per line. Observed with codex-acp 2.6, Copilot 1.0 and
/// hermes 0.19: all three end a failed turn with `end_turn`.
#[rustfmt::skip]
const SIGNS: &[(&str, FailureSign)] = &[
    ("@agentclientprotocol/codex-acp", Meta { path: &["codex", "threadStatus", "type"], fails: "systemError", runs: "active" }),
    ("Copilot", Text("Error: ")),
    ("hermes-agent", Text("HTTP ")),
];

pub fn signs_of(agent: Option<&str>) -> Vec<FailureSign> {
    let own = SIGNS.iter().filter(|(name, _)| Some(*name) == agent);
    own.map(|(_, sign)| *sign).collect()
}

/// Returns the failure that an update reports by one of the signs, with its session.
fn reported(signs: &[FailureSign], event: &AgentEvent<'_>) -> Option<(String, FailureReport)> {
    let AgentEvent::Update {
        session, update, ..
    } = event
    else {
        return None;
    };
    let failing = signs.iter().find_map(|sign| match (sign, update) {
        (Meta { path, fails, runs }, Update::Session(news)) => {
            let said = at(news.get("_meta")?, path)?;
            match said {
                said if said == *fails => Some(FailureReport::Yes),
                said if said == *runs => Some(FailureReport::No),
                _ => None,
            }
        }
        (Text(begin), Update::Message(piece)) if piece.role == MessageRole::Answer => {
            let begins = piece.content.text()?.decode().starts_with(begin);
            begins.then_some(FailureReport::UnlessUsage)
        }
        _ => None,
    })?;
    Some((session.clone().into_owned(), failing))
}

/// Kinds that an agent may report by name: those of its model, its tools and its sessions. The others are
/// acpipe's own.
const REPORTED_KINDS: &[ErrorKind] = &[
    ErrorKind::Session,
    ErrorKind::AuthRequired,
    ErrorKind::Network,
    ErrorKind::Timeout,
    ErrorKind::Overloaded,
    ErrorKind::MaxTurns,
    ErrorKind::Malformed,
    ErrorKind::Streaming,
    ErrorKind::InvalidTool,
    ErrorKind::SessionNotFound,
    ErrorKind::InvalidParams,
    ErrorKind::Busy,
];

/// Returns the kind that an agent of acpipe's own framework names in `data.acpipe.kind` of an error.
pub(super) fn reported_kind(e: &RpcError<'_>) -> Option<ErrorKind> {
    let name = at(e.data?, &["acpipe", "kind"])?;
    let mut kinds = REPORTED_KINDS.iter();
    kinds.find(|kind| kind.name() == name).copied()
}

pub(super) fn agent_error(
    pending: &Pending,
    e: &RpcError<'_>,
    launch: &ProcessSpec,
    info: &AgentInfo,
) -> Error {
    let signing = matches!(pending, Pending::Authenticate(_));
    if !signing && auth::wants_sign_in(e) {
        let said = decode::error_text(e);
        let login = hints::login(&launch.command, &launch.args);
        let error = Error::auth_required(&said, &info.auth_methods, login);
        // Other codes are less certain: a configured key may be wrong. The raw error shows that.
        return match e.code {
            AUTH_REQUIRED => error,
            _ => error.with("raw", e.raw.get()),
        };
    }
    let kind = match pending {
        Pending::Authenticate(_) if !is_network(e) => ErrorKind::AuthRequired,
        Pending::Initialize => ErrorKind::Initialize,
        _ if pending.is_of_open_session() && session_gone::is_session_gone(e) => {
            ErrorKind::SessionNotFound
        }
        _ if is_network(e) => ErrorKind::Network,
        _ => ErrorKind::Session,
    };
    let kind = reported_kind(e).unwrap_or(kind);
    let message = format!(
        "the agent answered {} with an error: {} ({})",
        pending.method(),
        clip(&decode::error_text(e)),
        e.code
    );
    Error::new(kind, message).with("raw", e.raw.get())
}

/// Inserts the failure that the last event reports, before that event, since its text may be the reason.
pub(super) fn insert_turn_failing(signs: &[FailureSign], events: &mut Vec<AgentEvent<'_>>) {
    if signs.is_empty() {
        return;
    }
    let found = events.last().and_then(|event| reported(signs, event));
    if let Some((session, failing)) = found {
        let before = events.len() - 1;
        events.insert(before, AgentEvent::TurnFailing { session, failing });
    }
}

/// Converts a text that the agent wrote instead of an error to that error.
pub(super) fn error_from_text(said: &str, launch: &ProcessSpec, info: &AgentInfo) -> Error {
    let raw = to_raw(&json!({ "message": said }));
    let e = RpcError {
        code: 0,
        message: said.into(),
        data: None,
        raw: &raw,
    };
    if auth::wants_sign_in(&e) {
        let login = hints::login(&launch.command, &launch.args);
        return Error::auth_required(said, &info.auth_methods, login);
    }
    let kind = if is_network(&e) {
        ErrorKind::Network
    } else {
        ErrorKind::Session
    };
    Error::new(kind, clip(said)).with("raw", said)
}

fn at(object: &RawValue, path: &[&str]) -> Option<String> {
    let Some((first, rest)) = path.split_first() else {
        return text(Some(object)).map(std::borrow::Cow::into_owned);
    };
    at(Members::of(object).get(first)?, rest)
}

#[cfg(test)]
mod tests {
    use super::super::results;
    use super::*;
    use acpipe_json::rpc;
    use acpipe_json::rpc::Message;
    use acpipe_model::event::CallId;
    use serde_json::Value;

    #[test]
    fn login_signs_apply_to_their_agent_only() {
        for (name, _) in SIGNS {
            assert_eq!(signs_of(Some(name)).len(), 1, "{name}");
        }
        assert!(signs_of(Some("another")).is_empty());
        assert!(signs_of(None).is_empty());
    }

    #[test]
    fn kind_that_an_agent_reports_is_the_kind_of_its_error() {
        for (data, kind) in [
            (
                r#"{"acpipe":{"kind":"malformed"}}"#,
                Some(ErrorKind::Malformed),
            ),
            (
                r#"{"acpipe":{"kind":"overloaded"}}"#,
                Some(ErrorKind::Overloaded),
            ),
            // These kinds are about acpipe itself.
            (r#"{"acpipe":{"kind":"internal"}}"#, None),
            (r#"{"acpipe":{"kind":"storage"}}"#, None),
            (r#"{"kind":"malformed"}"#, None),
            (r#"{"acpipe":7}"#, None),
            (r#""acpipe""#, None),
        ] {
            let data = RawValue::from_string(data.to_owned()).unwrap();
            let e = RpcError {
                code: -32603,
                message: "m".into(),
                data: Some(&data),
                raw: &data,
            };
            assert_eq!(reported_kind(&e), kind, "{data}");
        }
    }

    #[test]
    fn printed_errors_have_kinds() {
        for (said, kind) in [
            (
                "unexpected status 529: Overloaded, url: http://127.0.0.1/v1",
                ErrorKind::Session,
            ),
            (
                "unexpected status 401 Unauthorized: no",
                ErrorKind::AuthRequired,
            ),
            (
                "stream disconnected: error sending request for url (http://x)",
                ErrorKind::Network,
            ),
        ] {
            let error = error_from_text(said, &ProcessSpec::default(), &AgentInfo::default());
            assert_eq!(error.kind, kind, "{said}");
            assert!(error.message.contains(said), "{error}");
        }
    }

    /// Returns the error of a refused `session/new`, at an agent with these sign-in methods.
    fn refused(command: &str, methods: &Value, error: &Value) -> Error {
        let launch = ProcessSpec {
            command: command.to_owned(),
            ..ProcessSpec::default()
        };
        let hello = to_raw(&json!({"protocolVersion": 1, "authMethods": methods}));
        let info = results::initialize(&hello, &launch).unwrap();
        let line = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
        let Ok(Message::Response { outcome, .. }) = rpc::parse(&line) else {
            panic!("{line}");
        };
        let call = Pending::New(CallId(1));
        agent_error(&call, &outcome.unwrap_err(), &launch, &info)
    }

    #[test]
    fn sign_in_error_names_a_command_and_the_agents_help() {
        let plain = json!({"code": -32000, "message": "Authentication required"});
        let helpful = json!({"code": -32000, "message": "Authentication required",
            "data": {"details": "set FACTORY_API_KEY"}});
        let expired = json!({"code": -32603, "message": "Internal error", "data": {
            "message": "Your access token could not be refreshed. Please sign in again."}});
        let agents_own = json!([{"id": "x", "name": "Log in"}]);
        let in_words = json!([{"id": "x", "name": "Log in", "description": "Run `my-agent login` in the terminal"}]);
        let terminal =
            json!([{"id": "x", "name": "Log in", "type": "terminal", "args": ["login"]}]);
        let key = json!([{"id": "x", "name": "Use a key", "type": "env_var", "vars": [{"name": "TOKEN"}]}]);
        for (command, methods, error, says) in [
            (
                "own",
                &agents_own,
                &helpful,
                "message of the agent: Authentication required: set FACTORY_API_KEY",
            ),
            (
                "own",
                &in_words,
                &plain,
                "Run `my-agent login` in the terminal",
            ),
            ("own", &terminal, &plain, "login`"),
            ("/bin/kimi", &agents_own, &plain, "run `kimi login`"),
            ("own", &key, &expired, "Use a key: set TOKEN"),
        ] {
            let error_of = refused(command, methods, error);
            let message = &error_of.message;
            assert!(
                message.starts_with("auth required") && message.contains(says),
                "{message}"
            );
            assert!(!message.contains("acpipe login"), "{message}");
            let is_helpful = message.contains("message of the agent");
            assert_eq!(is_helpful, error != &plain, "{message}");
            let said = error_of.data["agentMessage"].as_str().unwrap();
            assert_eq!(said.contains("refreshed"), error == &expired, "{said}");
        }
    }

    #[test]
    fn data_of_an_internal_error_is_in_the_message() {
        for (data, words) in [
            (json!({"error": "no model"}), "no model"),
            (json!({"details": "disk quota"}), "disk quota"),
            (json!({"message": "bad tool"}), "bad tool"),
            (
                json!({"error": {"message": "nested cause"}, "detail": "and this"}),
                "nested cause: and this",
            ),
            (json!("plain words"), "plain words"),
        ] {
            let error = json!({"code": -32603, "message": "Internal error", "data": data});
            let message = refused("own", &json!([]), &error).message;
            let words = format!("Internal error: {words}");
            assert!(message.contains(&words), "{message}");
        }
    }
}
