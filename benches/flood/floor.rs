//! Baseline: a client that copies lines without parsing them, and the minimal JSON-RPC client that it needs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use memchr::{memchr_iter, memrchr};
use serde_json::{Value, json};

use crate::Outcome;

pub(crate) fn run(program: &str, args: &[String]) -> Outcome {
    const HEADER: &[u8] = br#"{"type":"line","line":"#;
    const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":3,"#;
    let Rpc {
        mut child,
        stdin,
        stdout,
    } = Rpc::prompted(Command::new(program).args(args))?;
    // std's own stdout searches its input for newlines.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut input = stdout.buffer().to_vec();
    let mut source = stdout.into_inner();
    let mut output = Vec::new();
    let mut filled = input.len();
    input.resize(64 * 1024, 0);
    'turn: loop {
        let read = source.read(&mut input[filled..])?;
        if read == 0 {
            return Err("the agent ended within the turn".into());
        }
        filled += read;
        let whole = memrchr(b'\n', &input[..filled]).map_or(0, |at| at + 1);
        let mut begin = 0;
        for end in memchr_iter(b'\n', &input[..whole]) {
            let line = &input[begin..end];
            if line.starts_with(ANSWER) {
                break 'turn;
            }
            output.extend_from_slice(HEADER);
            output.extend_from_slice(line);
            output.extend_from_slice(b"}\n");
            begin = end + 1;
        }
        input.copy_within(whole..filled, 0);
        filled -= whole;
        if filled == input.len() {
            input.resize(filled * 2, 0);
        }
        out.write_all(&output)?;
        output.clear();
    }
    out.write_all(&output)?;
    drop(stdin);
    child.wait()?;
    Ok(())
}

/// Minimal JSON-RPC client over a child's pipes.
pub(crate) struct Rpc {
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: BufReader<ChildStdout>,
}

impl Rpc {
    pub(crate) fn start(command: &mut Command) -> Outcome<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".into());
        };
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        })
    }

    /// Starts an ACP agent and sends it a prompt, with id 3.
    pub(crate) fn prompted(command: &mut Command) -> Outcome<Self> {
        let mut agent = Self::start(command)?;
        agent.call(
            1,
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": {}}),
        )?;
        let session = agent.call(2, "session/new", &json!({"cwd": "/", "mcpServers": []}))?;
        let prompt = json!([{"type": "text", "text": "go"}]);
        agent.send(
            3,
            "session/prompt",
            &json!({"sessionId": session["sessionId"], "prompt": prompt}),
        )?;
        Ok(agent)
    }

    pub(crate) fn send(&mut self, id: u32, method: &str, params: &Value) -> Outcome {
        send(&mut self.stdin, id, method, params)
    }

    /// Sends a request and waits for its response, skipping notifications.
    pub(crate) fn call(&mut self, id: u32, method: &str, params: &Value) -> Outcome<Value> {
        self.send(id, method, params)?;
        let mut line = String::new();
        while self.stdout.read_line(&mut line)? > 0 {
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id && message.get("method").is_none() {
                let result = message.get("result").cloned();
                return result
                    .ok_or_else(|| format!("{method} failed: {}", message["error"]).into());
            }
            line.clear();
        }
        Err(format!("no answer to {method}").into())
    }

    /// Ends the child as the protocols require, by closing its stdin.
    pub(crate) fn finish(mut self) -> Outcome {
        drop(self.stdin);
        io::copy(&mut self.stdout, &mut io::sink())?;
        self.child.wait()?;
        Ok(())
    }
}

pub(crate) fn send(mut stdin: impl Write, id: u32, method: &str, params: &Value) -> Outcome {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    Ok(stdin.write_all(format!("{message}\n").as_bytes())?)
}
