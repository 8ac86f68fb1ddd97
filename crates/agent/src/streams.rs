//! ACP over any pair of streams, and over stdin and stdout.

use super::contract::Agent;
use super::erased::DynAgent;
use super::error::AgentError;
use super::server::serve;
use bytes::{Bytes, BytesMut};
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Size of a read in bytes.
const READ_SIZE: usize = 64 * 1024;

/// Capacity of the queue of input, in reads.
const INPUT_QUEUE: usize = 4;

/// Capacity of the queue of output, in messages. It is short so that turns wait if the client reads slowly.
pub const OUTPUT_QUEUE: usize = 16;

/// Maximum time for the client to read the last messages after the agent has ended.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// Serves an agent as an ACP program: reads stdin and writes stdout until stdin ends.
///
/// This is the whole `main` of an agent. Nothing else may write to stdout; stderr is free for logs.
///
/// # Errors
/// The agent failed with a fatal error, or stdin or stdout cannot be used.
pub async fn serve_acp(agent: impl Agent) -> Result<(), AgentError> {
    let input = read_stdin()?;
    let (out, written) = write_stdout()?;
    let served = serve(Arc::new(agent), input, out).await;
    match timeout(LAST_MESSAGES, written).await {
        Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => served,
    }
}

/// Serves an agent over ACP on a reader and a writer, until the reader ends.
///
/// # Errors
/// The agent failed with a fatal error.
pub async fn serve_acp_on(
    agent: impl Agent,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), AgentError> {
    serve_on(Arc::new(agent), reader, writer).await
}

async fn serve_on(
    agent: Arc<dyn DynAgent>,
    mut reader: impl AsyncRead + Send + Unpin + 'static,
    mut writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), AgentError> {
    let (to_server, input) = mpsc::channel(INPUT_QUEUE);
    let (out, mut messages) = mpsc::channel(OUTPUT_QUEUE);
    // Dropped with this future, which ends both tasks.
    let mut pumps = JoinSet::new();
    pumps.spawn(async move {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ_SIZE);
            match reader.read_buf(&mut buffer).await {
                Ok(n) if n > 0 => {}
                _ => return,
            }
            if to_server.send(buffer.split().freeze()).await.is_err() {
                return;
            }
        }
    });
    let (done, written) = oneshot::channel::<()>();
    pumps.spawn(async move {
        let mut batch = Vec::with_capacity(OUTPUT_QUEUE);
        while messages.recv_many(&mut batch, OUTPUT_QUEUE).await > 0 {
            if write(&mut writer, &mut batch).await.is_err() {
                break;
            }
        }
        // A failed write ends the server, which is the only one to react.
        drop(done);
    });
    let served = serve(agent, input, out).await;
    timeout(LAST_MESSAGES, written).await.ok();
    served
}

/// Writes messages with one flush.
async fn write(writer: &mut (impl AsyncWrite + Unpin), batch: &mut Vec<Bytes>) -> io::Result<()> {
    for message in batch.drain(..) {
        writer.write_all(&message).await?;
    }
    writer.flush().await
}

/// Starts a thread that reads stdin. A thread is needed because a blocked read must not keep the process
/// alive.
fn read_stdin() -> io::Result<mpsc::Receiver<Bytes>> {
    let (to_server, input) = mpsc::channel(INPUT_QUEUE);
    let pump = move || {
        let mut piece = vec![0; READ_SIZE];
        loop {
            match io::stdin().lock().read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(n) if n > 0 => {
                    let bytes = Bytes::copy_from_slice(&piece[..n]);
                    if to_server.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    };
    thread::Builder::new().name("stdin".into()).spawn(pump)?;
    Ok(input)
}

/// Starts a thread that writes messages to stdout. Returns its queue, and the result once all messages are
/// written.
fn write_stdout() -> io::Result<(mpsc::Sender<Bytes>, oneshot::Receiver<io::Result<()>>)> {
    let (out, mut messages) = mpsc::channel::<Bytes>(OUTPUT_QUEUE);
    let (done, written) = oneshot::channel();
    let pump = move || {
        let mut result = Ok(());
        while result.is_ok()
            && let Some(message) = messages.blocking_recv()
        {
            // Locked for each message: a `println!` of the agent is a line that clients skip, not a deadlock.
            #[expect(
                clippy::disallowed_methods,
                reason = "the stdout of the program that the agent is, not that of acpipe"
            )]
            let mut stdout = io::stdout().lock();
            result = stdout.write_all(&message).and_then(|()| stdout.flush());
        }
        // Fails only if the result is not awaited any more.
        done.send(result).ok();
    };
    thread::Builder::new().name("stdout".into()).spawn(pump)?;
    Ok((out, written))
}
