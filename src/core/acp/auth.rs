//! Signing in: the ways that an agent has.

use super::answers::{owned, read};
use crate::core::dialect::Launch;
use crate::proto::acp::{AuthFields, AuthMeta, AuthVarFields, TerminalAuth};
use crate::proto::wire::{AuthMethod, AuthVariable, CommandLine, SignIn, Variables};
use serde_json::value::RawValue;

/// One of `authMethods`; one without an id cannot be chosen and is left out. What is run in a terminal is the agent's
/// own program, which `launch` tells, with more arguments.
pub fn method(raw: &RawValue, launch: &Launch) -> Option<AuthMethod> {
    let m: AuthFields<'_> = read(Some(raw));
    let id = owned(m.id)?;
    // Before ACP had the type, the whole command line stood in `_meta`.
    let meta: AuthMeta<'_> = read(m.meta);
    let terminal: TerminalAuth<'_> = read(meta.terminal_auth);
    let env = |raw: Option<&RawValue>| read::<Variables>(raw);
    let way = match (owned(m.kind).as_deref(), owned(terminal.command)) {
        (Some("terminal"), _) => {
            let mut args = launch.args.clone();
            args.extend(read::<Vec<String>>(m.args));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ways_are_told_apart() {
        let launch = Launch {
            command: "agent".into(),
            args: vec!["--acp".into()],
            ..Launch::default()
        };
        let cases = [
            // As recorded of zedcodex.
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
            // As opencode says it.
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
}
