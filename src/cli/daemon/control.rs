//! Calls of `acpipe daemon` to a running daemon, in the neutral protocol.

use super::connect::DaemonConnection;
use super::hello::DaemonInfo;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::PROTOCOL_VERSION;
use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// Connection of a command that manages the daemon.
pub struct Control {
    stream: BufReader<UnixStream>,
    pub info: DaemonInfo,
    last_id: u64,
}

impl Control {
    /// Begins the conversation.
    ///
    /// # Errors
    /// The connection fails.
    pub async fn begin(connection: DaemonConnection) -> anyhow::Result<Self> {
        let mut control = Self {
            stream: BufReader::new(connection.stream),
            info: connection.info,
            last_id: 0,
        };
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientInfo": { "name": "acpipe daemon" },
            "capabilities": { "chunks": false },
        });
        control.call("initialize", params).await?;
        Ok(control)
    }

    /// Calls a method and returns its result.
    ///
    /// # Errors
    /// The daemon returns an error, or the connection fails.
    pub async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        let lost = "the daemon closed the connection; `acpipe daemon logs` shows why";
        self.stream.write_all(&line).await.context(lost)?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await.context(lost)? == 0 {
                return Err(Error::new(ErrorKind::AgentExited, lost).into());
            }
            let message: Value =
                serde_json::from_str(&line).context("invalid message of the daemon")?;
            if message["id"] != id {
                continue;
            }
            if let Some(error) = message.get("error") {
                let text = error["message"].as_str().unwrap_or("unknown error");
                return Err(Error::new(ErrorKind::Internal, text).into());
            }
            return Ok(message["result"].clone());
        }
    }

    /// Stops the daemon, and returns when it has ended.
    ///
    /// # Errors
    /// The connection fails before the daemon has ended.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.call("shutdown", json!({})).await?;
        let mut rest = Vec::new();
        // The connection ends with the daemon.
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut self.stream, &mut rest).await;
        Ok(())
    }
}
