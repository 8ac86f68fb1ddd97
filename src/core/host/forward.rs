//! Requests to the host that a client serves in acpipe's place: as it is asked, and what its answers mean.

use super::{HostAnswer, HostRequest, TerminalExit, TerminalOutput};
use crate::core::client_answer::Refusal;
use crate::core::error::{Error, ErrorKind, clip};
use crate::core::unknown_fields;
use crate::proto::acp;
use crate::proto::wire;
use crate::proto::wire::UnknownFields;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What a client is asked.
#[derive(Debug, Clone)]
pub enum Forwarded {
    ReadFile(wire::ReadTextFileParams),
    WriteFile(wire::WriteTextFileParams),
    Create(wire::CreateTerminalParams),
    /// The method, as all that is asked of a terminal has the same parameters.
    Terminal(&'static str, wire::TerminalParams),
}

impl Forwarded {
    /// A request of a session, by the client's own id of it.
    #[must_use]
    pub fn of(request: HostRequest, session_id: String) -> Self {
        let terminal = |method, terminal_id, session_id| {
            let params = wire::TerminalParams {
                session_id,
                terminal_id,
            };
            Self::Terminal(method, params)
        };
        match request {
            HostRequest::ReadFile { path, window } => Self::ReadFile(wire::ReadTextFileParams {
                session_id,
                path,
                line: window.line,
                limit: window.limit,
            }),
            HostRequest::WriteFile { path, content } => {
                Self::WriteFile(wire::WriteTextFileParams {
                    session_id,
                    path,
                    content,
                })
            }
            HostRequest::CreateTerminal {
                command,
                args,
                env,
                cwd,
                output_limit,
            } => Self::Create(wire::CreateTerminalParams {
                session_id,
                command,
                args,
                env: env
                    .into_iter()
                    .map(|(name, value)| wire::EnvVariable { name, value })
                    .collect(),
                cwd,
                output_byte_limit: output_limit,
            }),
            HostRequest::TerminalOutput { terminal: id } => {
                terminal("terminal/output", id, session_id)
            }
            HostRequest::WaitForExit { terminal: id } => {
                terminal("terminal/waitForExit", id, session_id)
            }
            HostRequest::KillTerminal { terminal: id } => terminal("terminal/kill", id, session_id),
            HostRequest::ReleaseTerminal { terminal: id } => {
                terminal("terminal/release", id, session_id)
            }
        }
    }

    /// The client's id of the terminal that it is about.
    #[must_use]
    pub fn terminal(&self) -> Option<&str> {
        match self {
            Self::Terminal(_, params) => Some(&params.terminal_id),
            Self::ReadFile(_) | Self::WriteFile(_) | Self::Create(_) => None,
        }
    }

    /// Its method on the wire.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::ReadFile(_) => "fs/readTextFile",
            Self::WriteFile(_) => "fs/writeTextFile",
            Self::Create(_) => "terminal/create",
            Self::Terminal(method, _) => method,
        }
    }
}

/// What a client's answer means for the agent that asked.
pub fn answered(
    method: &'static str,
    answer: &Result<Box<RawValue>, Refusal>,
    unknown_fields: UnknownFields,
) -> Result<HostAnswer, Error> {
    let answer = answer.as_ref().map_err(|refusal| {
        let is = |kind: ErrorKind| refusal.code == i64::from(kind.rpc_code());
        let kind = if refusal.code == i64::from(acp::RESOURCE_NOT_FOUND)
            || is(ErrorKind::ResourceNotFound)
        {
            ErrorKind::ResourceNotFound
        } else if is(ErrorKind::InvalidParams) {
            ErrorKind::InvalidParams
        } else {
            ErrorKind::Resource
        };
        Error::new(kind, clip(&refusal.message))
    })?;
    match method {
        "fs/readTextFile" => read(method, answer, unknown_fields)
            .map(|file: wire::TextFile| HostAnswer::Content(file.content)),
        "fs/writeTextFile" => Ok(HostAnswer::Written),
        "terminal/create" => read(method, answer, unknown_fields)
            .map(|made: wire::CreatedTerminal| HostAnswer::Created(made.terminal_id)),
        "terminal/output" => {
            read(method, answer, unknown_fields).map(|said: wire::TerminalSaid| {
                HostAnswer::Output(TerminalOutput {
                    text: said.output,
                    truncated: said.truncated,
                    exit: said.exit_status.map(TerminalExit::from),
                })
            })
        }
        "terminal/waitForExit" => read(method, answer, unknown_fields)
            .map(|exit: wire::TerminalExited| HostAnswer::Exit(exit.into())),
        _ => Ok(HostAnswer::Done),
    }
}

/// Reads an answer. One that only says that it was done cannot be undone: its fields are not looked at.
fn read<T: DeserializeOwned + JsonSchema>(
    method: &str,
    answer: &RawValue,
    unknown_fields: UnknownFields,
) -> Result<T, Error> {
    unknown_fields::read(answer, unknown_fields).map_err(|why| {
        let message = format!("the client's answer to {method} is not valid: {why}");
        Error::new(ErrorKind::Resource, message)
    })
}

impl From<wire::TerminalExited> for TerminalExit {
    fn from(exited: wire::TerminalExited) -> Self {
        Self {
            code: exited.exit_code,
            signal: exited.signal,
        }
    }
}
