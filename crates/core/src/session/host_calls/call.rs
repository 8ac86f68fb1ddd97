//! Open request of an agent for a file or a terminal.

use super::HostWork;
use crate::client::ClientId;
use crate::client_request::ClientRequestId;
use acpipe_json::to_raw;
use acpipe_model::acp_client::AcpRequest;
use acpipe_model::client_answer::ClientAnswer;
use acpipe_model::event::{OptionKind, PermissionOption, ToolUpdate};
use acpipe_model::host::{HostRequest, Ticket, judged_line};
use acpipe_model::request_key::RequestKey;
use serde_json::json;
use std::borrow::Cow;
use std::time::Instant;

#[derive(Debug)]
pub struct NewCall {
    /// Number of the agent connection.
    pub agent: u64,
    pub key: RequestKey,
    /// The request as an ACP agent sent it, for a client that speaks ACP.
    pub original: Option<AcpRequest>,
    pub request: HostRequest,
}

/// Open request of an agent for a file or a terminal.
#[derive(Debug)]
pub(super) struct HostCall {
    /// Number of the agent connection.
    pub agent: u64,
    pub key: RequestKey,
    /// Id of the tool call that shows the request, if a client was asked about it.
    pub tool: Option<String>,
    /// The request as an ACP agent sent it, until a client that speaks ACP gets it.
    pub original: Option<AcpRequest>,
    /// Whether a client got the request as the agent sent it.
    pub is_original: bool,
    /// Response of such a client.
    pub answer: Option<ClientAnswer>,
    pub stage: HostStage,
}

impl From<NewCall> for HostCall {
    fn from(new: NewCall) -> Self {
        Self {
            agent: new.agent,
            key: new.key,
            tool: None,
            original: new.original,
            is_original: false,
            answer: None,
            stage: HostStage::Judged(new.request),
        }
    }
}

impl HostCall {
    /// Size of the agent's data that the request holds, in bytes: its key, and while it is judged the request
    /// itself.
    pub fn size(&self) -> usize {
        let request = match &self.stage {
            HostStage::Judged(request) => request.size(),
            HostStage::Terminal | HostStage::File | HostStage::Client(_) => 0,
        };
        let original = self.original.as_ref().map_or(0, AcpRequest::size);
        self.key.size() + request + original
    }

    /// Takes the request once it is judged. Work on a terminal begins.
    pub fn take_judged(&mut self) -> Option<HostRequest> {
        if !matches!(self.stage, HostStage::Judged(_)) {
            return None;
        }
        match std::mem::replace(&mut self.stage, HostStage::Terminal) {
            HostStage::Judged(request) => Some(request),
            HostStage::Terminal | HostStage::File | HostStage::Client(_) => None,
        }
    }

    pub fn forwarded(&self) -> Option<&Forwarded> {
        match &self.stage {
            HostStage::Client(forwarded) => Some(forwarded),
            HostStage::Judged(_) | HostStage::Terminal | HostStage::File => None,
        }
    }

    pub fn forwarded_mut(&mut self) -> Option<&mut Forwarded> {
        match &mut self.stage {
            HostStage::Client(forwarded) => Some(forwarded),
            HostStage::Judged(_) | HostStage::Terminal | HostStage::File => None,
        }
    }

    /// Returns the work that can be stopped. Operations on terminals continue.
    pub fn work(&self) -> Option<HostWork> {
        match &self.stage {
            HostStage::Client(forwarded) => Some(HostWork::Client(forwarded.client, forwarded.id)),
            HostStage::File => Some(HostWork::File),
            HostStage::Judged(_) | HostStage::Terminal => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum HostStage {
    /// The policy or a client decides whether it is allowed.
    Judged(HostRequest),
    /// acpipe carries it out with a terminal.
    Terminal,
    /// acpipe reads or writes a file.
    File,
    Client(Forwarded),
}

#[derive(Debug)]
pub(super) struct Forwarded {
    pub id: ClientRequestId,
    pub client: ClientId,
    pub method: &'static str,
    /// Id of the terminal that the request concerns.
    pub terminal: Option<String>,
    /// When the wait for the response ends.
    pub until: Option<Instant>,
}

/// Converts a request that must be judged into a tool call, with its name in the ledger. `None` if it needs
/// no judgement.
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
            // Environment variables may change the effect of a command.
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
