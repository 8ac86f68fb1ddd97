//! Sign-in: the methods that an agent offers, and the recognition of errors caused by a missing or expired
//! sign-in.

use super::decode::{error_text, owned, read};
use acpipe_json::rpc::RpcError;
use acpipe_model::dialect::ProcessSpec;
use acpipe_protocol::acp::{AUTH_REQUIRED, AuthFields, AuthMeta, AuthVarFields, TerminalAuth};
use acpipe_protocol::wire::{AuthMethod, AuthVariable, CommandLine, SignIn, Variables};
use serde_json::value::RawValue;

/// Parses an element of `authMethods`; `None` without an id, since such a method cannot be chosen. The
/// terminal command of a method is the agent's own program (`launch`) with additional arguments.
pub fn method(raw: &RawValue, launch: &ProcessSpec) -> Option<AuthMethod> {
    let m: AuthFields<'_> = read(Some(raw));
    let id = owned(m.id)?;
    // Before ACP had the type `terminal`, agents put the whole command line into `_meta`.
    let meta: AuthMeta<'_> = read(m.meta);
    let terminal: TerminalAuth<'_> = read(meta.terminal_auth);
    let env = |raw: Option<&RawValue>| read::<Variables>(raw);
    let way = match (owned(m.kind).as_deref(), owned(terminal.command)) {
        (Some("terminal"), _) => {
            let mut args = launch.args.clone();
            let more: Vec<String> = read(m.args);
            let skipped = usize::from(more.first().is_some_and(|first| is_named(launch, first)));
            args.extend(more.into_iter().skip(skipped));
            SignIn::Terminal(CommandLine {
                command: launch.command.clone(),
                args,
                env: env(m.env),
            })
        }
        (Some("env_var"), _) => {
            let vars: Vec<&RawValue> = read(m.vars);
            SignIn::EnvVar {
                vars: vars.into_iter().filter_map(variable).collect(),
                link: owned(m.link),
            }
        }
        (_, Some(command)) => SignIn::Terminal(CommandLine {
            command,
            args: read(terminal.args),
            env: env(terminal.env),
        }),
        _ => SignIn::Agent,
    };
    Some(AuthMethod {
        name: owned(m.name).unwrap_or_else(|| id.clone()),
        description: owned(m.description),
        id,
        way,
    })
}

/// Whether `word` names the program that `launch` already names: some agents repeat it before its arguments.
fn is_named(launch: &ProcessSpec, word: &str) -> bool {
    let name = |word: &str| {
        word.rsplit(['/', '\\'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut launched = std::iter::once(&launch.command).chain(&launch.args);
    !word.starts_with('-') && launched.any(|known| name(known) == name(word))
}

fn variable(raw: &RawValue) -> Option<AuthVariable> {
    let v: AuthVarFields<'_> = read(Some(raw));
    let is = |raw: Option<&RawValue>, usual: bool| raw.map_or(usual, |raw| raw.get() == "true");
    Some(AuthVariable {
        name: owned(v.name)?,
        label: owned(v.label),
        secret: is(v.secret, true),
        optional: is(v.optional, false),
    })
}

/// Texts of errors about a missing, expired or rejected sign-in that do not use ACP's code for it.
const ERROR_TEXTS: &[&str] = &[
    // Texts of Claude Code, sent by its adapter with code -32603 (vellum-assistant#40585).
    "failed to authenticate.",
    "please run /login",
    "not logged in",
    // Texts of Codex: recorded, and from a token that cannot be refreshed (codex-acp#495).
    "unexpected status 401 unauthorized",
    "please sign in again",
    "please log out and sign in again",
    // Text of OpenAI for an expired token (pi-acp#107).
    "authentication token is expired",
];

/// Names of such errors in `data`: those of Codex (codex-acp#495), and those of Claude Code, which are also
/// in its own frames.
const ERROR_NAMES: &[&str] = &[
    "unauthorized",
    "authentication_failed",
    "oauth_org_not_allowed",
];

/// Texts of errors that use ACP's code for a required sign-in but mean something else (connectonion#962).
const OTHER_ERRORS: &[&str] = &[
    "not initialized",
    "already initialized",
    "already open",
    "busy",
];

/// Texts which show that an error with that code does mean a required sign-in.
const SIGN_IN_TEXTS: &[&str] = &[
    "auth",
    "log in",
    "login",
    "logged",
    "sign in",
    "credential",
    "key",
];

/// Error code of an agent that forwards the HTTP status of its model's API: Gemini CLI, recorded.
const UNAUTHORIZED: i64 = 401;

pub fn wants_sign_in(e: &RpcError<'_>) -> bool {
    let text = error_text(e).to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    match e.code {
        AUTH_REQUIRED => says(SIGN_IN_TEXTS) || !says(OTHER_ERRORS),
        UNAUTHORIZED => true,
        _ => says(ERROR_TEXTS) || has_error_name(e.data),
    }
}

fn has_error_name(data: Option<&RawValue>) -> bool {
    acpipe_json::raw_object! {
        struct Data { codex = "codexErrorInfo", zedcodex = "codex_error_info", claude = "errorKind" }
    }
    let data: Data<'_> = read(data);
    let words = [data.codex, data.zedcodex, data.claude].map(owned);
    words
        .iter()
        .flatten()
        .any(|word| ERROR_NAMES.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_json::rpc;
    use acpipe_json::rpc::Message;
    use serde_json::{Value, json};

    #[test]
    fn sign_in_methods_are_distinguished() {
        let launch = ProcessSpec {
            command: "agent".into(),
            args: vec!["--acp".into()],
            ..ProcessSpec::default()
        };
        let cases = [
            // As recorded from zedcodex.
            (
                json!({"id": "chatgpt", "name": "Login with ChatGPT", "description": "d"}),
                json!({"id": "chatgpt", "name": "Login with ChatGPT", "description": "d", "type": "agent"}),
            ),
            (
                json!({"type": "env_var", "id": "k", "name": "K", "vars": [{"name": "KEY"}, 5,
                    {"name": "ORG", "label": "Organisation", "secret": false, "optional": true}], "link": "https://k"}),
                json!({"id": "k", "name": "K", "description": null, "type": "envVar", "link": "https://k", "vars": [
                    {"name": "KEY", "label": null, "secret": true, "optional": false},
                    {"name": "ORG", "label": "Organisation", "secret": false, "optional": true}]}),
            ),
            (
                json!({"type": "terminal", "id": "t", "args": ["login"], "env": {"A": "b"}}),
                json!({"id": "t", "name": "t", "description": null, "type": "terminal", "command": "agent",
                    "args": ["--acp", "login"], "env": {"A": "b"}}),
            ),
            // As sent by vibe, which repeats its own path.
            (
                json!({"type": "terminal", "id": "v", "args": ["/usr/local/bin/agent", "--setup"]}),
                json!({"id": "v", "name": "v", "description": null, "type": "terminal", "command": "agent",
                    "args": ["--acp", "--setup"], "env": {}}),
            ),
            // As sent by opencode.
            (
                json!({"id": "o", "_meta": {"terminal-auth": {"command": "opencode", "args": ["auth", "login"], "label": "L"}}}),
                json!({"id": "o", "name": "o", "description": null, "type": "terminal", "command": "opencode",
                    "args": ["auth", "login"], "env": {}}),
            ),
            (
                json!({"id": "n", "type": "of the future", "_meta": {"terminal-auth": true}}),
                json!({"id": "n", "name": "n", "description": null, "type": "agent"}),
            ),
        ];
        for (given, want) in cases {
            let raw = serde_json::value::to_raw_value(&given).unwrap();
            let told = serde_json::to_value(method(&raw, &launch)).unwrap();
            assert_eq!(told, want);
        }
    }

    fn wants(error: &Value) -> bool {
        let line = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
        match rpc::parse(&line) {
            Ok(Message::Response { outcome, .. }) => wants_sign_in(&outcome.unwrap_err()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_login_is_distinguished_from_other_errors() {
        let signed_out = [
            json!({"code": -32000, "message": "Authentication required"}),
            json!({"code": -32000, "message": "Server error"}),
            json!({"code": -32000, "message": "Server is busy", "data": {"details": "auth required"}}),
            // As recorded from Gemini CLI and zedcodex.
            json!({"code": 401, "message": "{\"error\":{\"message\":\"mock invalid api key\",\"code\":401}}"}),
            json!({"code": -32603, "message": "Internal error", "data": {"message":
                "unexpected status 401 Unauthorized: mock invalid api key, url: http://x", "codex_error_info": "other"}}),
            // As reported for codex-acp and for Claude's adapter.
            json!({"code": -32603, "message": "Internal error", "data": {"message":
                "Your access token could not be refreshed because you have since logged out or signed in to another \
                 account. Please sign in again."}}),
            json!({"code": -32603, "message": "Internal error", "data": {"message": "x", "codexErrorInfo": "unauthorized"}}),
            json!({"code": -32603, "message": "Internal error: Failed to authenticate. API Error: 401 {}"}),
            json!({"code": -32603, "message": "Internal error: Not logged in · Please run /login"}),
            json!({"code": -32603, "message": "Internal error: x", "data": {"errorKind": "authentication_failed"}}),
            json!({"code": -32603, "message": "Provided authentication token is expired."}),
        ];
        for error in signed_out {
            assert!(wants(&error), "{error}");
        }
        let others = [
            json!({"code": -32000, "message": "Connection is already initialized"}),
            json!({"code": -32000, "message": "x", "data": {"details": "Connection is not initialized"}}),
            json!({"code": -32000, "message": "Session is busy"}),
            // As recorded.
            json!({"code": -32603, "message": "Internal error: API Error: 400 mock 400", "data": {"errorKind": "unknown"}}),
            json!({"code": -32603, "message": "Internal error", "data": {"message":
                "unexpected status 529 <unknown status code>: Overloaded", "codex_error_info": "other"}}),
            json!({"code": 400, "message": "mock bad request"}),
            // From an MCP server, not from the agent.
            json!({"code": -32603, "message": "MCP load failed for Vercel: Unauthorized"}),
        ];
        for error in others {
            assert!(!wants(&error), "{error}");
        }
    }
}
