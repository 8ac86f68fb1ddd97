//! `acpipe demo-agent`: a small agent without a model, and an example of how an ACP agent works.
//!
//! An agent is a child process: requests come in on stdin, answers and updates go out on stdout. To follow
//! one prompt, read `methods` (what the client can send), `sessions` (what it can ask for), `turn` (what
//! happens then) and `agent` (how that reaches the client). `serve` is the one loop that owns all state; a
//! turn is a task that owns nothing and reports to it. So everything about a session happens in one order,
//! and every update is kept in the session's file (`store`) before it is sent.

mod agent;
mod methods;
mod params;
mod place;
mod sessions;
mod stdio;
mod store;
mod tool;
mod turn;
mod wire;
mod words;

#[cfg(test)]
mod harness;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sessions;
#[cfg(test)]
mod tests_store;
#[cfg(test)]
mod tests_tool;
#[cfg(test)]
mod tests_turns;

use std::io::{self, Write};

use anyhow::Context;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use agent::Agent;
use store::Store;
use wire::Lines;

/// With this much unwritten, turns wait until the client has read some of it.
const TURNS_WAIT: usize = 256 << 10;

/// With this much unwritten, requests wait too. Far more than above: a client that sends a cancel
/// while it is slow to read should be heard.
const READING_WAITS: usize = 16 << 20;

/// How long the last answers may take to be read after the end of input.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs the demo agent on stdin and stdout until the end of input.
pub async fn run() -> anyhow::Result<()> {
    let dir = place::directory(|name| std::env::var_os(name));
    // Not a log line: whoever runs the demo should see this whatever the log level is.
    let say = |note: &str| {
        writeln!(io::stderr(), "acpipe demo agent: {note}").ok();
    };
    let store = Store::new(dir, say);
    let stdin = stdio::stdin().context("cannot read stdin")?;
    let (stdout, written) = stdio::stdout().context("cannot write stdout")?;
    serve(stdin, stdout, store).await?;
    match timeout(LAST_WORDS, written).await {
        Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write stdout")
        }
        _ => Ok(()),
    }
}

/// Speaks ACP on any pair of streams until the client closes its end of either.
async fn serve<R, W>(reader: R, mut writer: W, store: Store) -> anyhow::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = Lines::new(reader);
    let (events, mut reports) = mpsc::channel(16);
    let mut agent = Agent::new(store, events);
    loop {
        tokio::select! {
            line = lines.next(), if agent.out.len() < READING_WAITS => {
                match line.context("cannot read from the client")? {
                    Some(line) => agent.on_line(&line),
                    None => break,
                }
            }
            Some((turn, event)) = reports.recv(), if agent.out.len() < TURNS_WAIT => agent.on_event(turn, event),
            written = writer.write(agent.out.front()), if !agent.out.is_empty() => match written {
                // Nobody reads any more, so there is nobody to work for.
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error).context("cannot write to the client"),
                Ok(count) => agent.out.written(count),
            },
        }
        if agent.out.is_empty() {
            writer.flush().await.ok();
        }
    }
    agent.end_all();
    let rest = async {
        while !agent.out.is_empty() {
            match writer.write(agent.out.front()).await {
                Ok(count) if count > 0 => agent.out.written(count),
                _ => return,
            }
        }
        writer.shutdown().await.ok();
    };
    // A client that is gone may have left its end of the pipe open to nobody.
    timeout(LAST_WORDS, rest).await.ok();
    Ok(())
}
