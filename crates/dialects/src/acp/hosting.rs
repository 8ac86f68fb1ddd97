//! Requests of agents for files and terminals in ACP, and the responses.

use acpipe_json::rpc::ErrorObject;
use acpipe_json::{rpc, to_raw};
use acpipe_model::dialect::Child;
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::event::HostRequestReceived;
use acpipe_model::host::{HostAnswer, HostRequest, HostServices, LineRange, TerminalExit};
use acpipe_model::request_key::RequestKey;
use acpipe_protocol::acp;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Parameters of `fs/read_text_file`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadTextFile {
    session_id: String,
    path: String,
    line: Option<u32>,
    limit: Option<u32>,
}

/// Parameters of `fs/write_text_file`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct WriteTextFile {
    session_id: String,
    path: String,
    content: String,
}

/// Parameters of `terminal/create`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateTerminal {
    session_id: String,
    command: String,
    #[serde(default, deserialize_with = "list_or_null")]
    args: Vec<String>,
    #[serde(default, deserialize_with = "list_or_null")]
    env: Vec<TerminalVariable>,
    cwd: Option<String>,
    output_byte_limit: Option<u64>,
}

#[derive(serde::Deserialize)]
struct TerminalVariable {
    name: String,
    value: String,
}

/// Parameters that all requests about a terminal have in common.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExistingTerminal {
    session_id: String,
    terminal_id: String,
}

fn list_or_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Parses a request for files or terminals; `None` if acpipe did not offer the method, an error if parameters
/// are missing.
pub fn wanted<'a>(
    offer: HostServices,
    id: &RawValue,
    method: &str,
    params: Option<&'a RawValue>,
) -> Option<Result<HostRequestReceived<'a>, String>> {
    let offered = match method {
        "fs/read_text_file" => offer.read_files,
        "fs/write_text_file" => offer.write_files,
        _ => offer.terminals,
    };
    if !offered {
        return None;
    }
    let raw = params.map_or("{}", RawValue::get);
    let read = match method {
        "fs/read_text_file" => parse(raw).map(|p: ReadTextFile| {
            let window = LineRange {
                line: p.line.map(u64::from),
                limit: p.limit.map(u64::from),
            };
            let path = p.path;
            (p.session_id, HostRequest::ReadFile { path, window })
        }),
        "fs/write_text_file" => parse(raw).map(|p: WriteTextFile| {
            let (path, content) = (p.path, p.content);
            (p.session_id, HostRequest::WriteFile { path, content })
        }),
        "terminal/create" => parse(raw).map(|p: CreateTerminal| {
            let env = p.env.into_iter().map(|v| (v.name, v.value)).collect();
            let create = HostRequest::CreateTerminal {
                command: p.command,
                args: p.args,
                env,
                cwd: p.cwd,
                output_limit: p.output_byte_limit,
            };
            (p.session_id, create)
        }),
        "terminal/output" => {
            parse_terminal_request(raw, |terminal| HostRequest::TerminalOutput { terminal })
        }
        "terminal/wait_for_exit" => {
            parse_terminal_request(raw, |terminal| HostRequest::WaitForExit { terminal })
        }
        "terminal/kill" => {
            parse_terminal_request(raw, |terminal| HostRequest::KillTerminal { terminal })
        }
        "terminal/release" => {
            parse_terminal_request(raw, |terminal| HostRequest::ReleaseTerminal { terminal })
        }
        _ => return None,
    };
    let named = read.map(|(session, request)| HostRequestReceived {
        session: session.into(),
        key: RequestKey::new(Child::MAIN, id),
        request,
        method: method.to_owned().into(),
        acp: params,
    });
    Some(named.map_err(|why| format!("{method}: {why}")))
}

fn parse<T: DeserializeOwned>(params: &str) -> Result<T, String> {
    serde_json::from_str(params).map_err(|error| clip(&error.to_string()))
}

/// Parses a request about an existing terminal.
fn parse_terminal_request(
    params: &str,
    request: impl FnOnce(String) -> HostRequest,
) -> Result<(String, HostRequest), String> {
    let p: ExistingTerminal = parse(params)?;
    Ok((p.session_id, request(p.terminal_id)))
}

pub fn write_answer(out: &mut Vec<u8>, id: &RawValue, answer: Result<&HostAnswer, &Error>) {
    match answer {
        Ok(answer) => rpc::write_result(out, id, &result(answer)),
        Err(error) => {
            let data = to_raw(&error.data());
            let error = ErrorObject {
                code: code(error.kind),
                message: &error.message,
                data: Some(&data),
            };
            rpc::write_error(out, id, &error);
        }
    }
    out.push(b'\n');
}

fn result(answer: &HostAnswer) -> Value {
    match answer {
        HostAnswer::Content(content) => json!({ "content": content }),
        HostAnswer::Created(id) => json!({ "terminalId": id }),
        HostAnswer::Output(output) => {
            let mut said = json!({ "output": output.text, "truncated": output.truncated });
            if let Some(status) = &output.exit {
                said["exitStatus"] = exit(status);
            }
            said
        }
        HostAnswer::Exit(status) => exit(status),
        HostAnswer::Written | HostAnswer::Done => json!({}),
    }
}

fn exit(exit: &TerminalExit) -> Value {
    json!({ "exitCode": exit.code, "signal": exit.signal })
}

/// Error code of ACP for a kind of error, which agents can interpret.
fn code(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::ResourceNotFound => acp::RESOURCE_NOT_FOUND,
        ErrorKind::InvalidParams | ErrorKind::MethodNotFound | ErrorKind::Cancelled => {
            kind.rpc_code()
        }
        _ => ErrorKind::Internal.rpc_code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::host::TerminalOutput;

    const ALL: HostServices = HostServices {
        read_files: true,
        write_files: true,
        terminals: true,
    };

    fn read(method: &str, params: &str) -> Option<Result<HostRequest, String>> {
        let (id, params) = (
            RawValue::NULL,
            RawValue::from_string(params.to_owned()).unwrap(),
        );
        let wanted = wanted(ALL, id, method, Some(&params))?;
        Some(wanted.map(|wanted| {
            assert_eq!(wanted.session, "s");
            wanted.request
        }))
    }

    #[test]
    fn requests_are_read() {
        let file = |params: &str| read("fs/read_text_file", params).unwrap();
        let window = |line, limit| {
            let window = LineRange { line, limit };
            let path = "/w/a".to_owned();
            Ok(HostRequest::ReadFile { path, window })
        };
        assert_eq!(
            file(r#"{"sessionId":"s","path":"/w/a"}"#),
            window(None, None)
        );
        assert_eq!(
            file(r#"{"sessionId":"s","path":"/w/a","line":2,"limit":null,"_meta":{}}"#),
            window(Some(2), None)
        );
        let create = r#"{"sessionId":"s","command":"ls","args":["-l"],"env":[{"name":"A","value":"b"}],
                         "cwd":"/w","outputByteLimit":9}"#;
        assert_eq!(
            read("terminal/create", create).unwrap(),
            Ok(HostRequest::CreateTerminal {
                command: "ls".into(),
                args: vec!["-l".into()],
                env: vec![("A".into(), "b".into())],
                cwd: Some("/w".into()),
                output_limit: Some(9),
            })
        );
        for method in ["output", "wait_for_exit", "kill", "release"] {
            let params = r#"{"sessionId":"s","terminalId":"t"}"#;
            assert!(read(&format!("terminal/{method}"), params).unwrap().is_ok());
        }
        assert!(read("terminal/other", "{}").is_none());
        let none = HostServices::default();
        assert!(wanted(none, RawValue::NULL, "terminal/kill", None).is_none());
    }

    #[test]
    fn invalid_host_request_error_names_the_method() {
        let cases = [
            ("fs/read_text_file", r#"{"sessionId":"s"}"#, "path"),
            (
                "fs/read_text_file",
                r#"{"sessionId":"s","path":"/a","line":-1}"#,
                "-1",
            ),
            (
                "fs/write_text_file",
                r#"{"sessionId":"s","path":"/a"}"#,
                "content",
            ),
            ("terminal/create", r#"{"command":"ls"}"#, "sessionId"),
            ("terminal/kill", "{}", "sessionId"),
            ("terminal/kill", r#"{"sessionId":"s","terminalId":7}"#, "7"),
        ];
        for (method, params, why) in cases {
            let said = read(method, params).unwrap().unwrap_err();
            assert!(said.starts_with(method) && said.contains(why), "{said}");
        }
    }

    #[test]
    fn answers_are_written() {
        let exit = || TerminalExit {
            code: None,
            signal: Some("SIGKILL".into()),
        };
        let output = |exit| {
            HostAnswer::Output(TerminalOutput {
                text: "x".into(),
                truncated: true,
                exit,
            })
        };
        let cases = [
            (HostAnswer::Content("c".into()), r#"{"content":"c"}"#),
            (HostAnswer::Written, "{}"),
            (HostAnswer::Created("t".into()), r#"{"terminalId":"t"}"#),
            (output(None), r#"{"output":"x","truncated":true}"#),
            (
                output(Some(exit())),
                r#"{"output":"x","truncated":true,"exitStatus":{"exitCode":null,"signal":"SIGKILL"}}"#,
            ),
            (
                HostAnswer::Exit(exit()),
                r#"{"exitCode":null,"signal":"SIGKILL"}"#,
            ),
        ];
        for (answer, want) in cases {
            let mut out = Vec::new();
            write_answer(&mut out, RawValue::NULL, Ok(&answer));
            let said: Value = serde_json::from_slice(&out).unwrap();
            let want: Value = serde_json::from_str(want).unwrap();
            assert_eq!(said["result"], want);
        }
        for (kind, code) in [
            (ErrorKind::ResourceNotFound, -32002),
            (ErrorKind::InvalidParams, -32602),
            (ErrorKind::MethodNotFound, -32601),
            (ErrorKind::Cancelled, -32800),
            (ErrorKind::Overloaded, -32603),
        ] {
            let mut out = Vec::new();
            write_answer(&mut out, RawValue::NULL, Err(&Error::new(kind, "why")));
            let said: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(said["error"]["code"], code);
            assert_eq!(said["error"]["data"]["kind"], kind.name());
        }
    }
}
