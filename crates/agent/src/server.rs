//! ACP server: reads the client's messages, calls the agent, and sends its responses.
//!
//! Each call of the agent runs in a task of its own, so the server always reads cancels and responses. Output
//! and responses share one bounded queue, so a response never overtakes the output before it.

mod calls;
mod play;

use super::client::ClientHandle;
use super::connection::AgentConnection;
use super::erased::{DynAgent, catch};
use super::error::AgentError;
use super::sessions::HeldSessions;
use acpipe_json::frame::{Batch, DEFAULT_MAX_LINE, LineBatches, lines, sniff, sniff_all};
use acpipe_json::rpc;
use acpipe_json::rpc::{Message, NotAMessage, code};
use bytes::{Bytes, BytesMut};
use calls::ClientCall;
use play::StartedTurn;
use serde_json::Value;
use serde_json::value::RawValue;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::codec::Decoder as _;

/// Maximum number of calls other than turns that run at once. The server reads no further call until one
/// ends.
const CALLS: usize = 64;

/// Maximum time that turns take to end after the client has left.
const END_GRACE: Duration = Duration::from_secs(1);

struct Server {
    connection: Arc<AgentConnection>,
    tasks: JoinSet<()>,
    calls: Arc<Semaphore>,
    /// Number of turns so far.
    turns: u64,
}

/// Serves ACP until the input ends, the output is closed, or the agent fails with a fatal error.
///
/// `input` receives the bytes of the client in pieces of any size, `out` sends whole lines.
///
/// # Errors
/// The agent cannot continue.
pub(super) async fn serve(
    agent: Arc<dyn DynAgent>,
    mut input: mpsc::Receiver<Bytes>,
    out: mpsc::Sender<Bytes>,
) -> Result<(), AgentError> {
    let (fatal, mut failures) = mpsc::channel(1);
    let client = ClientHandle::new(out);
    let mut server = Server {
        connection: Arc::new(AgentConnection {
            facts: Arc::new(agent.facts()),
            agent,
            client: client.clone(),
            sessions: HeldSessions::default(),
            fatal,
        }),
        tasks: JoinSet::new(),
        calls: Arc::new(Semaphore::new(CALLS)),
        turns: 0,
    };
    let (mut frames, mut buffer) = (LineBatches::new(DEFAULT_MAX_LINE), BytesMut::new());
    loop {
        tokio::select! {
            biased;
            Some(error) = failures.recv() => return Err(error),
            () = client.closed() => break,
            Some(_) = server.tasks.join_next() => {}
            bytes = input.recv() => {
                let ended = bytes.is_none();
                buffer.extend_from_slice(&bytes.unwrap_or_default());
                while let Some(batch) = next_batch(&mut frames, &mut buffer, ended) {
                    server.batch(&batch).await;
                }
                if ended {
                    break;
                }
            }
        }
    }
    server.finish().await;
    // A turn may have failed while it was cancelled.
    failures.try_recv().map_or(Ok(()), Err)
}

fn next_batch(frames: &mut LineBatches, buffer: &mut BytesMut, ended: bool) -> Option<Batch> {
    // The decoder returns bad lines as items, and no errors.
    let batch = if ended {
        frames.decode_eof(buffer)
    } else {
        frames.decode(buffer)
    };
    batch.ok().flatten()
}

impl Server {
    async fn batch(&mut self, batch: &Batch) {
        match batch {
            Batch::Lines(bytes) => {
                for line in lines(bytes) {
                    self.line(line.text).await;
                }
            }
            Batch::TooLong(line) => {
                let why = format!(
                    "the line has {} bytes, more than {DEFAULT_MAX_LINE}",
                    line.len
                );
                let id = sniff(&line.head, &line.tail).id;
                let id = id.and_then(|id| RawValue::from_string(id).ok());
                let id = id.as_deref().unwrap_or(RawValue::NULL);
                self.reject(id, code::INVALID_REQUEST, why).await;
            }
        }
    }

    async fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return self.not_parsed(line, "the line is not UTF-8").await;
        };
        match rpc::parse(text) {
            Ok(Message::Request { id, method, params }) => match parse(params) {
                Ok(params) => self.request(id, &method, params).await,
                Err(error) => {
                    let why = format!("the parameters are not valid: {error}");
                    self.reject(id, code::INVALID_PARAMS, why).await;
                }
            },
            Ok(Message::Notification { method, params }) => {
                let params = parse(params).unwrap_or_default();
                let sessions = &self.connection.sessions;
                match &*method {
                    "session/cancel" => {
                        sessions.cancel(params["sessionId"].as_str().unwrap_or_default());
                    }
                    // Calls other than turns end by themselves.
                    "$/cancel_request" => sessions.cancel_request(&params["requestId"]),
                    // Unknown notifications are ignored, as ACP requires.
                    _ => {}
                }
            }
            Ok(Message::Response { id, outcome }) => {
                let outcome = match outcome {
                    Ok(result) => parse(Some(result)).map_err(|error| error.to_string()),
                    Err(error) => Err(error.message.into_owned()),
                };
                if let Some(id) = id {
                    self.connection.client.responded(id, outcome);
                }
            }
            Err(NotAMessage::Json(error)) if !error.is_data() => {
                let why = format!("the line is not JSON: {error}");
                self.not_parsed(line, &why).await;
            }
            Err(_) => {
                let why = "the line is neither a request nor a response".to_owned();
                self.reject(RawValue::NULL, code::INVALID_REQUEST, why)
                    .await;
            }
        }
    }

    /// Handles a line that cannot be parsed: each request in it gets an error, and each response counts as one.
    async fn not_parsed(&mut self, line: &[u8], error: &str) {
        let (why, found) = sniff_all(line, error);
        for message in found {
            let id = message.id.and_then(|id| RawValue::from_string(id).ok());
            let id = match (id, message.method) {
                (Some(id), Some(_)) => id,
                (Some(id), None) => {
                    self.connection.client.responded(&id, Err(why.clone()));
                    RawValue::NULL.to_owned()
                }
                (None, _) => RawValue::NULL.to_owned(),
            };
            self.reject(&id, code::PARSE_ERROR, why.clone()).await;
        }
    }

    async fn request(&mut self, id: &RawValue, method: &str, params: Value) {
        if method == "session/prompt" {
            // Started here and not in a task, so that a cancel that follows finds the turn.
            self.turns += 1;
            // The id of a request is valid JSON.
            let request = parse(Some(id)).unwrap_or_default();
            match StartedTurn::start(&self.connection, self.turns, request, &params) {
                Ok(turn) => {
                    let (connection, id) = (Arc::clone(&self.connection), id.to_owned());
                    self.tasks.spawn(turn.play(connection, id));
                }
                Err(error) => self.call(id, ready(Err(error))).await,
            }
            return;
        }
        if let Some(call) = ClientCall::of(method) {
            let connection = Arc::clone(&self.connection);
            self.call(id, call.run(connection, params)).await;
        } else {
            let why = format!("method `{method}` not found");
            self.reject(id, code::METHOD_NOT_FOUND, why).await;
        }
    }

    /// Runs a call in a task, which sends the response.
    async fn call(
        &mut self,
        id: &RawValue,
        call: impl Future<Output = Result<Value, AgentError>> + Send + 'static,
    ) {
        let (connection, id) = (Arc::clone(&self.connection), id.to_owned());
        // Fails only if the semaphore is closed, which it never is.
        let permit = Arc::clone(&self.calls).acquire_owned().await.ok();
        self.tasks.spawn(async move {
            let result = catch(call).await.and_then(|result| result);
            connection.client.respond(&id, &result).await;
            drop(permit);
        });
    }

    async fn reject(&mut self, id: &RawValue, code: i32, why: String) {
        let (connection, id) = (Arc::clone(&self.connection), id.to_owned());
        let permit = Arc::clone(&self.calls).acquire_owned().await.ok();
        self.tasks.spawn(async move {
            connection.client.reject(&id, code, &why).await;
            drop(permit);
        });
    }

    /// Cancels all turns, waits for them, and shuts the agent down.
    async fn finish(mut self) {
        self.connection.sessions.cancel_all();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Limited because a client that has exited may have left the pipe open in another process.
        timeout(END_GRACE, ended).await.ok();
        self.tasks.shutdown().await;
        // The panic hook has reported a panic; the agent ends anyway.
        catch(self.connection.agent.finish()).await.ok();
    }
}

fn parse(params: Option<&RawValue>) -> serde_json::Result<Value> {
    params.map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()))
}
