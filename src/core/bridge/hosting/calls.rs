//! Requests as the tool calls that a policy judges and a client is asked about.

use crate::core::event::{OptionKind, PermissionOption, ToolUpdate};
use crate::core::host::{HostRequest, Ticket, command_line};
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
            command, args, cwd, ..
        } => {
            let line = command_line(command, args);
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
