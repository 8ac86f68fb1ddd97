//! The part of ACP v1 that agents send, read without losing a message over one odd field.
//!
//! What acpipe sends to agents is built from `agent-client-protocol-schema` types; what it reads goes
//! through these, because the schema's closed enums refuse whole messages (an unknown update, content
//! block, stop reason or option kind, a missing title).

use super::json::{Key, Members, raw_object};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The protocol version that is spoken, exactly.
pub const VERSION: u16 = 1;

/// Error code: the agent wants its user to sign in.
pub const AUTH_REQUIRED: i64 = -32000;

/// Error code: what is asked for is not there.
pub const RESOURCE_NOT_FOUND: i32 = -32002;

/// A `session/update` line, read in one pass.
#[derive(Debug, Default, serde::Deserialize)]
pub struct UpdateLine<'a> {
    /// A request has one; an update must not.
    #[serde(default)]
    pub id: Option<IgnoredAny>,
    /// `session/update`.
    #[serde(borrow, default)]
    pub method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub params: UpdateParams<'a>,
}

/// The parameters of `session/update`.
#[derive(Debug, Default)]
pub struct UpdateParams<'a> {
    pub session_id: Option<&'a RawValue>,
    pub update: Option<Box<UpdateFields<'a>>>,
    /// All other members, `_meta` among them.
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
    /// A `session/update` line whose update stays whole.
    pub struct WholeLine { params = "params" }
}

raw_object! {
    /// Its parameters.
    pub struct WholeParams { session_id = "sessionId", update = "update", .. }
}

raw_object! {
    /// The fields of every update kind; which of them count is told by `session_update`.
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
    pub struct Block {
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
    /// The contents of an embedded resource.
    pub struct Resource {
        uri = "uri",
        mime_type = "mimeType",
        text = "text",
        blob = "blob",
    }
}

raw_object! {
    /// What a tool's `_meta` says of a terminal that the agent runs itself.
    pub struct TerminalMeta {
        info = "terminal_info",
        output = "terminal_output",
        delta = "terminal_output_delta",
        exit = "terminal_exit",
    }
}

raw_object! {
    /// One of the three parts of [`TerminalMeta`].
    pub struct TerminalPart {
        id = "terminal_id",
        data = "data",
    }
}

raw_object! {
    /// `session/request_permission`.
    pub struct PermissionParams {
        session_id = "sessionId",
        tool_call = "toolCall",
        options = "options",
        ..
    }
}

raw_object! {
    /// `elicitation/create`, of every mode and scope.
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
    /// One of the options of a permission request.
    pub struct OptionFields {
        option_id = "optionId",
        name = "name",
        kind = "kind",
    }
}

raw_object! {
    /// The answer to `initialize`.
    pub struct InitializeResult {
        protocol_version = "protocolVersion",
        agent_capabilities = "agentCapabilities",
        agent_info = "agentInfo",
        auth_methods = "authMethods",
    }
}

raw_object! {
    /// `agentInfo`.
    pub struct Described {
        name = "name",
        title = "title",
        version = "version",
    }
}

raw_object! {
    /// One of `authMethods`.
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
    /// One of the `vars` of an authentication method.
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
    /// What is run in a terminal to sign in.
    pub struct TerminalAuth {
        command = "command",
        args = "args",
        env = "env",
    }
}

raw_object! {
    /// `agentCapabilities`.
    pub struct Capabilities {
        load_session = "loadSession",
        prompt = "promptCapabilities",
        mcp = "mcpCapabilities",
        session = "sessionCapabilities",
        auth = "auth",
    }
}

raw_object! {
    /// The members of all nested capability objects.
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
    /// The answer to `session/new`.
    pub struct NewSessionResult { session_id = "sessionId", .. }
}

raw_object! {
    /// The answer to `session/prompt`.
    pub struct PromptResult {
        stop_reason = "stopReason",
        usage = "usage",
        meta = "_meta",
        ..
    }
}

raw_object! {
    /// Token counts, in the spellings seen: ACP's `usage` and gemini's `_meta.quota.token_count`.
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
