//! ACP v1 messages that agents send, parsed so that one invalid field does not lose the whole message.
//!
//! The types of `agent-client-protocol-schema` serve only in tests: their closed enums reject a whole message
//! for an unknown update, content block, stop reason or option kind, or for a missing title.

use acpipe_json::{Key, Members, raw_object};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Protocol version of ACP; acpipe supports no other.
pub const VERSION: u16 = 1;

/// Error code of an agent that requires a sign-in.
pub const AUTH_REQUIRED: i64 = -32000;

/// Error code for a resource that does not exist.
pub const RESOURCE_NOT_FOUND: i32 = -32002;

/// A `session/update` line, parsed in one pass.
#[derive(Debug, Default, serde::Deserialize)]
pub struct SessionUpdateLine<'a> {
    /// Present in a request. An update must not have one.
    #[serde(default)]
    pub id: Option<IgnoredAny>,
    /// `session/update`.
    #[serde(borrow, default)]
    pub method: Cow<'a, str>,
    /// Parameters of the notification.
    #[serde(borrow, default)]
    pub params: UpdateParams<'a>,
}

/// Parameters of `session/update`.
#[derive(Debug, Default)]
pub struct UpdateParams<'a> {
    /// The agent's id of the session.
    pub session_id: Option<&'a RawValue>,
    /// The update itself.
    pub update: Option<Box<UpdateFields<'a>>>,
    /// All other members, including `_meta`.
    pub rest: Members<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for UpdateParams<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct ParamsVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for ParamsVisitor<'a> {
            type Value = UpdateParams<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut params = UpdateParams::default();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    match &*key.0 {
                        b"sessionId" => params.session_id = Some(map.next_value()?),
                        b"update" => params.update = Some(map.next_value()?),
                        _ => params.rest.set(key.text(), map.next_value()?),
                    }
                }
                Ok(params)
            }
        }
        d.deserialize_map(ParamsVisitor(PhantomData))
    }
}

raw_object! {
    /// A `session/update` line whose parameters are kept as raw JSON.
    pub struct WholeLine { params = "params" }
}

raw_object! {
    /// Parameters of `session/update` with the update as raw JSON.
    pub struct WholeParams { session_id = "sessionId", update = "update", .. }
}

raw_object! {
    /// Fields of all kinds of updates; `session_update` determines which of them apply.
    pub struct UpdateFields {
        session_update = "sessionUpdate",
        content = "content",
        message_id = "messageId",
        tool_call_id = "toolCallId",
        title = "title",
        name = "name",
        kind = "kind",
        status = "status",
        raw_input = "rawInput",
        raw_output = "rawOutput",
        locations = "locations",
        entries = "entries",
        cost = "cost",
        available_commands = "availableCommands",
        current_mode_id = "currentModeId",
        config_options = "configOptions",
        updated_at = "updatedAt",
        compaction_id = "compactionId",
        plan = "plan",
        plan_id = "planId",
        subagent = "sessionId",
        meta = "_meta",
        ..
    }
}

raw_object! {
    /// A content block of any type.
    pub struct AnyContentBlock {
        kind = "type",
        text = "text",
        data = "data",
        mime_type = "mimeType",
        uri = "uri",
        name = "name",
        resource = "resource",
        annotations = "annotations",
        meta = "_meta",
        ..
    }
}

raw_object! {
    /// Contents of an embedded resource.
    pub struct Resource {
        uri = "uri",
        mime_type = "mimeType",
        text = "text",
        blob = "blob",
    }
}

raw_object! {
    /// Members of a tool call's `_meta` that describe a terminal which the agent itself runs.
    pub struct TerminalMeta {
        info = "terminal_info",
        output = "terminal_output",
        delta = "terminal_output_delta",
        exit = "terminal_exit",
    }
}

raw_object! {
    /// Any part of [`TerminalMeta`].
    pub struct TerminalPart {
        id = "terminal_id",
        data = "data",
    }
}

raw_object! {
    /// Parameters of `session/request_permission`.
    pub struct RequestPermissionParams {
        session_id = "sessionId",
        tool_call = "toolCall",
        options = "options",
        ..
    }
}

raw_object! {
    /// Parameters of `elicitation/create`, of every mode and scope.
    pub struct ElicitationParams {
        mode = "mode",
        message = "message",
        session_id = "sessionId",
        tool_call_id = "toolCallId",
        request_id = "requestId",
        requested_schema = "requestedSchema",
        url = "url",
        elicitation_id = "elicitationId",
        ..
    }
}

raw_object! {
    /// An option of a permission request.
    pub struct OptionFields {
        option_id = "optionId",
        name = "name",
        kind = "kind",
    }
}

raw_object! {
    /// Result of `initialize`.
    pub struct AcpInitializeResult {
        protocol_version = "protocolVersion",
        agent_capabilities = "agentCapabilities",
        agent_info = "agentInfo",
        auth_methods = "authMethods",
    }
}

raw_object! {
    /// `agentInfo` in the result of `initialize`.
    pub struct Described {
        name = "name",
        title = "title",
        version = "version",
    }
}

raw_object! {
    /// An element of `authMethods` in the result of `initialize`.
    pub struct AuthFields {
        id = "id",
        name = "name",
        description = "description",
        kind = "type",
        vars = "vars",
        link = "link",
        args = "args",
        env = "env",
        meta = "_meta",
    }
}

raw_object! {
    /// An element of `vars` of an authentication method.
    pub struct AuthVarFields {
        name = "name",
        label = "label",
        secret = "secret",
        optional = "optional",
    }
}

raw_object! {
    /// `_meta` of an authentication method.
    pub struct AuthMeta { terminal_auth = "terminal-auth" }
}

raw_object! {
    /// Command that the user runs in a terminal to sign in.
    pub struct TerminalAuth {
        command = "command",
        args = "args",
        env = "env",
    }
}

raw_object! {
    /// `agentCapabilities` in the result of `initialize`.
    pub struct Capabilities {
        load_session = "loadSession",
        prompt = "promptCapabilities",
        mcp = "mcpCapabilities",
        session = "sessionCapabilities",
        auth = "auth",
    }
}

raw_object! {
    /// Members of all nested capability objects.
    pub struct Flags {
        image = "image",
        audio = "audio",
        embedded_context = "embeddedContext",
        http = "http",
        sse = "sse",
        resume = "resume",
        list = "list",
        close = "close",
        logout = "logout",
    }
}

raw_object! {
    /// Result of `session/new`.
    pub struct NewSessionResult { session_id = "sessionId", .. }
}

raw_object! {
    /// Result of `session/prompt`.
    pub struct PromptResult {
        stop_reason = "stopReason",
        usage = "usage",
        meta = "_meta",
        ..
    }
}

raw_object! {
    /// Token counts in all spellings that agents use: ACP's `usage`, and `_meta.quota.token_count` of Gemini
    /// CLI.
    pub struct TokenCounts {
        input = "inputTokens",
        output = "outputTokens",
        total = "totalTokens",
        cached_read = "cachedReadTokens",
        cached_write = "cachedWriteTokens",
        thought = "thoughtTokens",
        quota = "quota",
        token_count = "token_count",
        input_snake = "input_tokens",
        output_snake = "output_tokens",
        ..
    }
}

raw_object! {
    /// `usage_update.cost`.
    pub struct Cost { amount = "amount" }
}
