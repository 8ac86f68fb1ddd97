//! Requests as the tool calls that a policy judges and a client is asked about.

use crate::core::event::{OptionKind, PermissionOption, ToolUpdate};
use crate::core::host::{HostRequest, Ticket, judged_line};
use crate::proto::json::to_raw;
use serde_json::json;
use std::borrow::Cow;

/// What a request is as a tool call, where it has to be judged; the ledger's word for it first.
pub fn tool(ticket: Ticket, request: &HostRequest) -> Option<(&'static str, ToolUpdate<'static>)> {
    let (what, name, kind, title, input, path) = match request {
        HostRequest::ReadFile { path, window } => {
            let input = json!({ "path": path, "line": window.line, "limit": window.limit });
            (
                "readFile",
                "fs/readTextFile",
                "read",
                format!("Read {path}"),
                input,
                Some(path),
            )
        }
        HostRequest::WriteFile { path, content } => {
            let input = json!({ "path": path, "content": content });
            (
                "writeFile",
                "fs/writeTextFile",
                "edit",
                format!("Write {path}"),
                input,
                Some(path),
            )
        }
        HostRequest::CreateTerminal {
            command,
            args,
            env,
            cwd,
            ..
        } => {
            // What is set for a command may change all that it does.
            let line = judged_line(command, args, env);
            let input = json!({ "command": line, "cwd": cwd });
            ("terminal", "terminal/create", "execute", line, input, None)
        }
        _ => return None,
    };
    let locations = path.map(|path| to_raw(&json!([{ "path": path }])));
    let tool = ToolUpdate {
        id: format!("host-{}", ticket.0).into(),
        begins: true,
        name: Some(name.into()),
        title: Some(title.into()),
        kind: Some(kind.into()),
        input: Some(Cow::Owned(to_raw(&input))),
        locations: locations.map(Cow::Owned),
        ..ToolUpdate::default()
    };
    Some((what, tool))
}

/// The answers to whether a request may be.
pub fn options() -> [PermissionOption; 2] {
    let option = |id: &str, name: &str, kind| PermissionOption {
        id: id.to_owned(),
        name: name.to_owned(),
        kind,
    };
    [
        option("allow", "Allow", OptionKind::AllowOnce),
        option("reject", "Reject", OptionKind::RejectOnce),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::{Effect, Policy, Subject, Tool};

    #[test]
    fn a_rule_that_allows_a_command_does_not_allow_it_with_variables() {
        let judge = |env: &[(&str, &str)]| {
            let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            let request = HostRequest::CreateTerminal {
                command: "git".into(),
                args: vec!["status".into()],
                env: env.collect(),
                cwd: None,
                output_limit: None,
            };
            let (_, tool) = tool(Ticket(1), &request).unwrap();
            let told = Tool {
                kind: tool.kind.as_deref(),
                input: tool.input.as_deref(),
                ..Tool::default()
            };
            let mut policy = Policy::default();
            policy.set_mode(crate::core::policy::Mode::Deny);
            policy
                .add_listed("Bash(git:*)", "allowed_tools", Effect::Allow)
                .unwrap();
            (
                policy.judge(&Subject::of_tool(&told, "/w")).effect,
                tool.title,
            )
        };
        assert_eq!(judge(&[]).0, Effect::Allow);
        let (effect, title) = judge(&[("GIT_SSH_COMMAND", "curl evil")]);
        assert_eq!(effect, Effect::Deny);
        assert_eq!(title.unwrap(), "GIT_SSH_COMMAND='curl evil' git status");
    }
}
