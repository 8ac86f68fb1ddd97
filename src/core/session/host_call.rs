//! An open request of an agent for a file or a terminal.

use crate::core::ask::AskId;
use crate::core::client::ClientId;
use crate::core::event::{OptionKind, PermissionOption, ToolUpdate};
use crate::core::host::{HostRequest, Ticket, judged_line};
use crate::core::request_key::RequestKey;
use crate::proto::json::to_raw;
use serde_json::json;
use std::borrow::Cow;
use std::time::Instant;

/// An open request of an agent for a file or a terminal.
#[derive(Debug)]
pub struct HostCall {
    /// The connection of the agent.
    pub agent: u64,
    pub key: RequestKey,
    /// The tool call as which it is shown, where the client was asked about it.
    pub tool: Option<String>,
    pub stage: HostStage,
}

impl HostCall {
    /// How many bytes of the agent's it holds: its key, and what is to be done while that is judged.
    pub fn size(&self) -> usize {
        let request = match &self.stage {
            HostStage::Judged(request) => request.size(),
            HostStage::Terminal | HostStage::File | HostStage::Client(_) => 0,
        };
        self.key.size() + request
    }
}

/// How far a request is.
#[derive(Debug)]
pub enum HostStage {
    /// The policy or the client decides whether it may be done.
    Judged(HostRequest),
    /// acpipe does it, with a terminal.
    Terminal,
    /// acpipe reads or writes a file.
    File,
    /// The client does it.
    Client(ForwardedCall),
}

/// A request that was forwarded to the client.
#[derive(Debug)]
pub struct ForwardedCall {
    pub id: AskId,
    pub client: ClientId,
    pub method: &'static str,
    /// The terminal that it is about.
    pub terminal: Option<String>,
    /// When the wait for the answer is over.
    pub until: Option<Instant>,
}

/// What a request is as a tool call, where it has to be judged; the ledger's word for it first.
pub(super) fn tool(
    ticket: Ticket,
    request: &HostRequest,
) -> Option<(&'static str, ToolUpdate<'static>)> {
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
pub(super) fn options() -> [PermissionOption; 2] {
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
