//! Host requests that a client serves instead of acpipe: conversion to client requests, and of the client's
//! answers.

use super::{HostAnswer, HostRequest, TerminalExit, TerminalOutput};
use crate::client_answer::ErrorResponse;
use crate::error::{Error, ErrorKind, clip};
use crate::unknown_fields;
use acpipe_protocol::wire::UnknownFields;
use acpipe_protocol::{acp, wire};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

#[derive(Debug, Clone)]
pub enum ClientHostRequest {
    ReadFile(wire::ReadTextFileParams),
    WriteFile(wire::WriteTextFileParams),
    Create(wire::CreateTerminalParams),
    /// Any other terminal request: the method, and parameters that all of these share.
    Terminal(&'static str, wire::TerminalParams),
}

impl ClientHostRequest {
    /// Converts a request of a session; `session_id` is the client's id of the session.
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

    /// Returns the client's id of the terminal that the request refers to.
    pub fn terminal(&self) -> Option<&str> {
        match self {
            Self::Terminal(_, params) => Some(&params.terminal_id),
            Self::ReadFile(_) | Self::WriteFile(_) | Self::Create(_) => None,
        }
    }

    pub fn method(&self) -> &'static str {
        match self {
            Self::ReadFile(_) => "fs/readTextFile",
            Self::WriteFile(_) => "fs/writeTextFile",
            Self::Create(_) => "terminal/create",
            Self::Terminal(method, _) => method,
        }
    }
}

/// Converts a client's answer to the answer for the agent.
///
/// # Errors
/// The client refused, or its answer is not valid.
pub fn parse_answer(
    method: &'static str,
    answer: &Result<Box<RawValue>, ErrorResponse>,
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
        let said = clip(&refusal.message);
        let is_file = method == "fs/readTextFile" && kind == ErrorKind::ResourceNotFound;
        let is_plain = said.contains("No such file") || said.contains("ENOENT");
        if is_file && !is_plain {
            // Some agents know a missing file by these words alone, and only then create it.
            let message = format!("No such file or directory (ENOENT): {said}");
            return Error::new(kind, message);
        }
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

/// Parses an answer. Answers without content are not parsed by the caller, because the operation is already
/// done and cannot be undone.
fn read<T: DeserializeOwned>(
    method: &str,
    answer: &RawValue,
    unknown_fields: UnknownFields,
) -> Result<T, Error> {
    unknown_fields::read(method, answer, unknown_fields).map_err(|why| {
        let message = format!("the client's response to {method} is not valid: {why}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_of_a_client_has_the_words_that_agents_know() {
        for (method, code, message, want) in [
            (
                "fs/readTextFile",
                -32002,
                "nothing there",
                "No such file or directory (ENOENT): nothing there",
            ),
            ("fs/readTextFile", -32002, "ENOENT: no x", "ENOENT: no x"),
            ("fs/readTextFile", -32603, "gone", "gone"),
            ("terminal/output", -32002, "gone", "gone"),
        ] {
            let refusal = ErrorResponse {
                code,
                message: message.to_owned(),
                data: None,
            };
            let error = parse_answer(method, &Err(refusal), UnknownFields::default()).unwrap_err();
            assert_eq!(error.message, want);
        }
    }
}
