//! Agents' responses to requests of acpipe, converted to events.

use super::auth;
use super::decode::{owned, read};
use acpipe_json::{Members, non_null, text};
use acpipe_model::dialect::ProcessSpec;
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::event::{
    AgentEvent, AgentInfo, CallId, ListedSession, OptionKind, PermissionOption, StopReason, TurnEnd,
};
use acpipe_protocol::acp::{
    AcpInitializeResult, Capabilities, Described, Flags, NewSessionResult, OptionFields,
    PromptResult, TokenCounts, VERSION,
};
use acpipe_protocol::wire::{AgentCapabilities, TokenUsage};
use serde_json::value::RawValue;

/// Converts the result of `initialize`; any protocol version other than 1 is an error.
pub fn initialize(result: &RawValue, launch: &ProcessSpec) -> Result<AgentInfo, Error> {
    let r: AcpInitializeResult<'_> = read(Some(result));
    let version = r.protocol_version.map_or("none", RawValue::get);
    if version != VERSION.to_string() {
        let message = format!(
            "the agent speaks ACP version {}, but acpipe speaks version {VERSION}; use a version of the agent that \
                 speaks {VERSION}",
            clip(version)
        );
        return Err(Error::new(ErrorKind::Initialize, message).with("raw", result.get()));
    }
    let about: Described<'_> = read(r.agent_info);
    let methods: Vec<&RawValue> = read(r.auth_methods);
    Ok(AgentInfo {
        name: owned(about.name),
        title: owned(about.title),
        version: owned(about.version),
        capabilities: capabilities(r.agent_capabilities),
        auth_methods: methods
            .iter()
            .filter_map(|m| auth::method(m, launch))
            .collect(),
        acp: Some(result.get().into()),
    })
}

fn capabilities(raw: Option<&RawValue>) -> AgentCapabilities {
    let c: Capabilities<'_> = read(raw);
    let prompt: Flags<'_> = read(c.prompt);
    let mcp: Flags<'_> = read(c.mcp);
    let session: Flags<'_> = read(c.session);
    let auth: Flags<'_> = read(c.auth);
    // A capability is `true` or an object; `false`, `null` and absence mean that the agent does not have it.
    let on = |flag: Option<&RawValue>| flag.is_some_and(|f| !matches!(f.get(), "false" | "null"));
    AgentCapabilities {
        load: on(c.load_session),
        resume: on(session.resume),
        list: on(session.list),
        close: on(session.close),
        image: on(prompt.image),
        audio: on(prompt.audio),
        embedded_context: on(prompt.embedded_context),
        mcp_http: on(mcp.http),
        mcp_sse: on(mcp.sse),
        logout: on(auth.logout),
        updated_input: false,
        steer: false,
    }
}

/// Maximum length of an agent's session id in bytes, since all calls and responses about the session contain
/// it.
const LONGEST_SESSION_ID: usize = 4096;

pub fn new_session(call: CallId, result: &RawValue) -> AgentEvent<'_> {
    let r: NewSessionResult<'_> = read(Some(result));
    let Some(agent_session) = owned(r.session_id) else {
        let message = "cannot use the agent's response to session/new: it has no sessionId";
        let error = Error::new(ErrorKind::Malformed, message).with("raw", result.get());
        return AgentEvent::Failed { call, error };
    };
    session_opened(call, agent_session, r.rest, result)
}

fn session_opened<'a>(
    call: CallId,
    agent_session: String,
    state: Members<'a>,
    result: &RawValue,
) -> AgentEvent<'a> {
    if agent_session.len() > LONGEST_SESSION_ID {
        let message = format!(
            "cannot use the agent's session id: it is longer than {LONGEST_SESSION_ID} bytes"
        );
        let error = Error::new(ErrorKind::Malformed, message).with("raw", result.get());
        return AgentEvent::Failed { call, error };
    }
    AgentEvent::SessionOpened {
        call,
        agent_session,
        state: state.without_null(),
    }
}

/// Converts the result of `session/resume` or `session/load`. Some agents start a new session instead and
/// report its id only here, or only in `_meta`.
pub fn opened(call: CallId, asked: String, result: &RawValue) -> AgentEvent<'_> {
    let r: NewSessionResult<'_> = read(Some(result));
    let in_meta = || {
        let meta: NewSessionResult<'_> = read(r.rest.get("_meta"));
        let nested = || {
            let members = meta.rest.iter();
            members.map(|(_, value)| value).find_map(named_session)
        };
        owned(meta.session_id).or_else(nested)
    };
    let agent_session = owned(r.session_id).or_else(in_meta).unwrap_or(asked);
    session_opened(call, agent_session, r.rest, result)
}

/// Finds the id of a session in an agent's own part of `_meta`. hermes nests it one level deeper and under
/// another name.
fn named_session(own: &RawValue) -> Option<String> {
    acpipe_json::raw_object! {
        struct Provenance { acp_session = "acpSessionId" }
    }
    let own: NewSessionResult<'_> = read(Some(own));
    let deeper = || {
        let members = own.rest.iter();
        members
            .map(|(_, value)| read::<Provenance<'_>>(Some(value)).acp_session)
            .find_map(owned)
    };
    owned(own.session_id).or_else(deeper)
}

pub fn listed(call: CallId, result: &RawValue) -> AgentEvent<'_> {
    acpipe_json::raw_object! {
        struct Page { sessions = "sessions", next = "nextCursor" }
    }
    acpipe_json::raw_object! {
        struct Listed { id = "sessionId", cwd = "cwd", title = "title", updated_at = "updatedAt" }
    }
    let page: Page<'_> = read(Some(result));
    let list = page.sessions.map(|list| serde_json::from_str(list.get()));
    let Some(Ok::<Vec<&RawValue>, _>(sessions)) = list else {
        let message = "cannot use the agent's response to session/list: it has no list of sessions";
        let error = Error::new(ErrorKind::Malformed, message).with("raw", result.get());
        return AgentEvent::Failed { call, error };
    };
    let session = |session: &&RawValue| {
        let s: Listed<'_> = read(Some(session));
        Some(ListedSession {
            id: owned(s.id)?,
            cwd: owned(s.cwd),
            title: owned(s.title),
            updated_at: owned(s.updated_at),
        })
    };
    AgentEvent::Listed {
        call,
        sessions: sessions.iter().filter_map(session).collect(),
        next: owned(page.next),
    }
}

/// Converts the result of `session/prompt`. A stop reason that ACP does not define is kept as it is; a result
/// without a stop reason fails the turn.
pub fn prompt(result: &RawValue) -> TurnEnd {
    let r: PromptResult<'_> = read(Some(result));
    let reported = owned(r.stop_reason);
    let error = reported.is_none().then(|| {
        let message = "cannot use the agent's response to session/prompt: it has no stopReason; it is unknown whether \
                           the turn succeeded";
        Error::new(ErrorKind::Malformed, message).with("raw", result.get())
    });
    let reported = reported.unwrap_or_else(|| "unknown".to_owned());
    TurnEnd {
        error,
        stop_reason: match reported.as_str() {
            "end_turn" => StopReason::EndTurn,
            "max_tokens" => StopReason::MaxTokens,
            "max_turn_requests" => StopReason::MaxTurns,
            "refusal" => StopReason::Refusal,
            "cancelled" => StopReason::Cancelled,
            _ => StopReason::Unknown,
        },
        usage: usage(r.usage, r.meta),
        details: non_null(r.meta).map(ToOwned::to_owned),
        structured_output: structured_output(r.meta).map(ToOwned::to_owned),
        other: unknown(&r, r.stop_reason.is_some_and(|s| !s.get().starts_with('"'))),
        acp: Some(result.get().into()),
        reported,
        ..TurnEnd::default()
    }
}

/// Returns the structured answer in the `_meta` of a result, where agents of acpipe's own framework put it.
fn structured_output(meta: Option<&RawValue>) -> Option<&RawValue> {
    acpipe_json::raw_object! {
        struct Meta { acpipe = "acpipe" }
    }
    acpipe_json::raw_object! {
        struct Own { structured_output = "structuredOutput" }
    }
    let meta: Meta<'_> = read(meta);
    let own: Own<'_> = read(meta.acpipe);
    non_null(own.structured_output)
}

/// Members of a result that no other field of [`TurnEnd`] holds.
fn unknown(r: &PromptResult<'_>, odd_reason: bool) -> Members<'static> {
    let mut other = r.rest.clone();
    if odd_reason {
        other.set_some("stopReason", r.stop_reason);
    }
    if let Some(usage) = non_null(r.usage) {
        let counts: TokenCounts<'_> = read(Some(usage));
        let counted = |raw: Option<&RawValue>| raw.is_none() || count(raw).is_some();
        let known = [
            counts.input,
            counts.output,
            counts.total,
            counts.cached_read,
            counts.cached_write,
            counts.thought,
        ];
        let all_known = counts.without(KNOWN_COUNTS).is_empty() && known.into_iter().all(counted);
        if !all_known || !usage.get().starts_with('{') {
            other.set("usage", usage);
        }
    }
    other.into_owned()
}

/// Token counts that [`TokenUsage`] has fields for.
const KNOWN_COUNTS: &[&str] = &[
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "cachedReadTokens",
    "cachedWriteTokens",
    "thoughtTokens",
];

fn count(raw: Option<&RawValue>) -> Option<u64> {
    serde_json::from_str(raw?.get()).ok()
}

fn usage(usage: Option<&RawValue>, meta: Option<&RawValue>) -> Option<TokenUsage> {
    let given: TokenCounts<'_> = if let Some(usage) = non_null(usage) {
        read(Some(usage))
    } else {
        let meta: TokenCounts<'_> = read(meta);
        let quota: TokenCounts<'_> = read(meta.quota);
        read(quota.token_count)
    };
    let input = count(given.input.or(given.input_snake));
    let output = count(given.output.or(given.output_snake));
    let total = count(given.total).or_else(|| input?.checked_add(output?));
    let usage = TokenUsage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: total,
        cached_read_tokens: count(given.cached_read),
        cached_write_tokens: count(given.cached_write),
        thought_tokens: count(given.thought),
    };
    (usage != TokenUsage::default()).then_some(usage)
}

/// Parses an option of a permission request; `None` without an id, since such an option cannot be chosen.
pub fn option(raw: &RawValue) -> Option<PermissionOption> {
    let o: OptionFields<'_> = read(Some(raw));
    let id = owned(o.option_id)?;
    Some(PermissionOption {
        name: owned(o.name).unwrap_or_else(|| id.clone()),
        kind: match text(o.kind).as_deref() {
            Some("allow_once") => OptionKind::AllowOnce,
            Some("allow_always") => OptionKind::AllowAlways,
            Some("reject_once") => OptionKind::RejectOnce,
            Some("reject_always") => OptionKind::RejectAlways,
            _ => OptionKind::Unknown,
        },
        id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn only_version_1_is_spoken() {
        for (version, ok) in [
            ("1", true),
            ("2", false),
            ("99", false),
            ("\"1\"", false),
            ("null", false),
        ] {
            let result = raw(&format!(r#"{{"protocolVersion":{version}}}"#));
            assert_eq!(
                initialize(&result, &ProcessSpec::default()).is_ok(),
                ok,
                "{version}"
            );
        }
        assert!(
            initialize(&raw("{}"), &ProcessSpec::default())
                .unwrap_err()
                .message
                .contains("version none")
        );
    }

    #[test]
    fn long_texts_of_an_agent_are_not_repeated() {
        let long = "x".repeat(LONGEST_SESSION_ID + 1);
        let result = raw(&format!(r#"{{"protocolVersion":{long:?}}}"#));
        let error = initialize(&result, &ProcessSpec::default()).unwrap_err();
        assert!(
            error.message.len() < LONGEST_SESSION_ID,
            "{}",
            error.message.len()
        );
        let result = raw(&format!(r#"{{"sessionId":{long:?}}}"#));
        for event in [
            new_session(CallId(1), &result),
            opened(CallId(1), "S".into(), &result),
        ] {
            assert!(matches!(event, AgentEvent::Failed { .. }), "{event:?}");
        }
    }

    #[test]
    fn one_invalid_field_keeps_the_others() {
        let info = initialize(&raw(
            r#"{"protocolVersion":1,"agentInfo":{"name":7,"version":"2"},"authMethods":[{"id":"a"},5],
               "agentCapabilities":{"loadSession":"yes","sessionCapabilities":{"resume":{},"close":null},"promptCapabilities":3}}"#,
        ), &ProcessSpec::default())
        .unwrap();
        assert_eq!((info.name, info.version), (None, Some("2".into())));
        assert!(info.capabilities.load && info.capabilities.resume && !info.capabilities.close);
        assert_eq!(info.auth_methods.len(), 1);
    }

    #[test]
    fn stop_reasons_and_usage_are_read_in_all_spellings() {
        let end = prompt(&raw(
            r#"{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4}}"#,
        ));
        assert_eq!(end.usage.and_then(|u| u.total_tokens), Some(7));
        let end = prompt(&raw(
            r#"{"stopReason":"error","_meta":{"quota":{"token_count":{"input_tokens":1,"output_tokens":2}}}}"#,
        ));
        assert_eq!(
            (end.stop_reason, end.reported.as_str()),
            (StopReason::Unknown, "error")
        );
        assert_eq!(end.usage.and_then(|u| u.total_tokens), Some(3));
        assert!(end.error.is_none());
        let end = prompt(&raw(
            r#"{"usage":{"inputTokens":18446744073709551615,"outputTokens":1}}"#,
        ));
        assert_eq!(end.usage.and_then(|u| u.total_tokens), None);
    }

    #[test]
    fn structured_answer_is_read_from_the_meta_of_acpipe() {
        let output = |json: &str| {
            let end = prompt(&raw(json));
            end.structured_output.map(|output| output.get().to_owned())
        };
        let result = r#"{"stopReason":"end_turn","_meta":{"acpipe":{"structuredOutput":{"a":1}}}}"#;
        assert_eq!(output(result).as_deref(), Some(r#"{"a":1}"#));
        for none in [
            r#"{"stopReason":"end_turn","_meta":{"structuredOutput":{"a":1}}}"#,
            r#"{"stopReason":"end_turn","_meta":{"acpipe":{"structuredOutput":null}}}"#,
            r#"{"stopReason":"end_turn","_meta":{"acpipe":3}}"#,
        ] {
            assert_eq!(output(none), None, "{none}");
        }
    }

    #[test]
    fn answers_that_cannot_be_read_are_errors() {
        for result in [
            "null",
            "{}",
            "[]",
            "\"end_turn\"",
            "5",
            "true",
            r#"{"stopReason":5}"#,
            r#"{"stopReason":null}"#,
        ] {
            let error = prompt(&raw(result)).error.unwrap();
            assert_eq!(error.kind, ErrorKind::Malformed, "{result}");
            assert_eq!(error.data["raw"], result);
        }
        for (result, ok) in [
            (r#"{"sessions":[]}"#, true),
            ("{}", false),
            (r#"{"sessions":{}}"#, false),
        ] {
            let result = raw(result);
            let listed = matches!(listed(CallId(1), &result), AgentEvent::Listed { .. });
            assert_eq!(listed, ok, "{result}");
        }
    }
}
