//! An agent's process: one task owns it, its stdout and stderr; another writes its stdin.

use super::discover;
use super::path::explain;
use crate::core::bridge::{AgentId, AgentInput, AgentSpec, Exit};
use crate::core::claude::CLAUDE;
use crate::core::error::{Error, ErrorKind};
use crate::proto::frame::LineBatches;
use crate::proto::wire::Protocol;
use bytes::BytesMut;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::codec::Decoder;
use tracing::{debug, warn};

/// How much is read at once; 256 KiB gains nothing, 8 KiB costs a tenth.
const READ_SIZE: usize = 64 * 1024;

/// How much of stderr is kept for error messages.
const STDERR_TAIL: usize = 64 * 1024;

/// How many messages may wait for an agent that does not read its stdin.
const INPUT_QUEUE: usize = 1024;

/// How long a process that ended may keep its pipes open through others that inherited them, and how long
/// one that closed its stdout may take to end.
const GRACE: Duration = Duration::from_millis(250);

/// What the loop holds of an agent.
pub struct Agent {
    input: Option<mpsc::Sender<Vec<u8>>>,
    signals: mpsc::Sender<Signal>,
}

/// Starts an agent; whatever it says, its failure to start included, comes through `events` in order.
pub fn start(
    id: AgentId,
    spec: &AgentSpec,
    max_line: usize,
    events: mpsc::Sender<(AgentId, AgentInput)>,
) -> Agent {
    let (input, lines) = mpsc::channel(INPUT_QUEUE);
    let (signals, wanted) = mpsc::channel(4);
    match spawn(spec) {
        Ok((child, stdin, program)) => {
            tokio::spawn(write(id, stdin, lines, events.clone()));
            let process = Process::new(id, child, max_line, events);
            tokio::spawn(process.watch(program, wanted));
        }
        Err(error) => {
            tokio::spawn(async move {
                // The loop is gone only when nobody cares any more.
                let _ = events.send((id, AgentInput::StartFailed(error))).await;
            });
        }
    }
    Agent {
        input: Some(input),
        signals,
    }
}

impl Agent {
    /// Hands lines over to its stdin; false when too many wait there already.
    #[must_use]
    pub fn send(&self, lines: Vec<u8>) -> bool {
        let Some(input) = &self.input else {
            return true;
        };
        !matches!(
            input.try_send(lines),
            Err(mpsc::error::TrySendError::Full(_))
        )
    }

    /// Closes its stdin once everything handed over is written.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Signals its whole group.
    pub fn signal(&self, signal: Signal) {
        // A full queue means that signals wait already; a closed one that there is nobody to signal.
        let _ = self.signals.try_send(signal);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where processes are made"
)]
fn spawn(spec: &AgentSpec) -> Result<(Child, ChildStdin, Option<String>), Error> {
    let program = found(spec)?;
    let command = program.as_deref().unwrap_or(Path::new(&spec.command));
    let mut command = Command::new(command);
    command
        .args(&spec.args)
        .current_dir(&spec.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for (name, value) in &spec.env.0 {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn().map_err(|e| explain(spec, &e))?;
    match child.stdin.take() {
        Some(stdin) => {
            let program = program.map(|program| program.to_string_lossy().into_owned());
            Ok((child, stdin, program))
        }
        None => Err(Error::new(ErrorKind::Internal, "the agent has no stdin")),
    }
}

/// The program of an agent that has to be looked for.
fn found(spec: &AgentSpec) -> Result<Option<PathBuf>, Error> {
    if spec.protocol != Protocol::Claude || spec.command != CLAUDE {
        return Ok(None);
    }
    let lookup = |name: &str| match spec.env.0.get(name) {
        Some(set) => set.as_ref().map(OsString::from),
        None => std::env::var_os(name),
    };
    discover::claude(lookup, Path::new(&spec.cwd)).map(Some)
}

async fn write(
    id: AgentId,
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    events: mpsc::Sender<(AgentId, AgentInput)>,
) {
    while let Some(lines) = lines.recv().await {
        if let Err(error) = stdin.write_all(&lines).await {
            debug!(%error, "the agent's stdin is closed");
            // As a rule it has ended, which says more and is told by whoever watches the process.
            tokio::time::sleep(GRACE).await;
            let _ = events.send((id, AgentInput::InputClosed)).await;
            return;
        }
    }
}

/// A running process and what it has said so far.
struct Process {
    id: AgentId,
    child: Child,
    group: Option<Pid>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffer: BytesMut,
    frames: LineBatches,
    tail: Vec<u8>,
    events: mpsc::Sender<(AgentId, AgentInput)>,
}

impl Process {
    fn new(
        id: AgentId,
        mut child: Child,
        max_line: usize,
        events: mpsc::Sender<(AgentId, AgentInput)>,
    ) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Self {
            id,
            group: pid.and_then(Pid::from_raw),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            buffer: BytesMut::with_capacity(READ_SIZE),
            frames: LineBatches::new(max_line),
            tail: Vec::new(),
            events,
        }
    }

    async fn watch(mut self, program: Option<String>, mut signals: mpsc::Receiver<Signal>) {
        if let Some(pid) = self.child.id() {
            self.tell(AgentInput::Started { pid, program }).await;
        }
        let mut queue: Option<AgentInput> = None;
        let mut ended: Option<ExitStatus> = None;
        let events = self.events.clone();
        // Runs from the end of the process or of its stdout until the other has ended too.
        let grace = tokio::time::sleep(Duration::MAX);
        tokio::pin!(grace);
        let mut in_grace = false;
        loop {
            if queue.is_none() {
                queue = self.next_batch();
            }
            if ended.is_some() && queue.is_none() && self.stdout.is_none() && self.stderr.is_none()
            {
                break;
            }
            tokio::select! {
                // In this order: what the agent said comes before any conclusion from its silence.
                biased;
                permit = events.reserve(), if queue.is_some() => match permit {
                    Ok(permit) => {
                        if let Some(input) = queue.take() {
                            permit.send((self.id, input));
                        }
                    }
                    Err(_) => break,
                },
                closed = read(self.stdout.as_mut(), &mut self.buffer), if queue.is_none() && self.stdout.is_some() => {
                    if closed {
                        self.stdout = None;
                        queue = self.last_batch();
                        if ended.is_none() {
                            grace.as_mut().reset(Instant::now() + GRACE);
                            in_grace = true;
                        }
                    }
                }
                closed = read_tail(self.stderr.as_mut(), &mut self.tail), if self.stderr.is_some() => {
                    if closed {
                        self.stderr = None;
                    }
                }
                status = self.child.wait(), if ended.is_none() => {
                    ended = Some(status.unwrap_or_default());
                    self.signal(Signal::KILL);
                    grace.as_mut().reset(Instant::now() + GRACE);
                    in_grace = true;
                }
                Some(signal) = signals.recv() => self.signal(signal),
                () = &mut grace, if in_grace && queue.is_none() => {
                    in_grace = false;
                    if ended.is_none() {
                        queue = Some(AgentInput::OutputClosed);
                    } else {
                        warn!("another process holds the agent's pipes open: not waiting for it");
                        self.stdout = None;
                        self.stderr = None;
                    }
                }
            }
        }
        let exit = report(ended.unwrap_or_default(), &self.tail);
        self.tell(AgentInput::Exited(exit)).await;
    }

    async fn tell(&self, input: AgentInput) {
        // The loop is gone only when nobody cares any more.
        let _ = self.events.send((self.id, input)).await;
    }

    fn next_batch(&mut self) -> Option<AgentInput> {
        let batch = self.frames.decode(&mut self.buffer).ok().flatten();
        batch.map(AgentInput::Batch)
    }

    fn last_batch(&mut self) -> Option<AgentInput> {
        let batch = self.frames.decode_eof(&mut self.buffer).ok().flatten();
        batch.map(AgentInput::Batch)
    }

    /// Signals the group; once the leader is reaped, this still reaches those it left behind.
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
            && error != rustix::io::Errno::SRCH
        {
            warn!(%error, ?signal, "the agent could not be signalled");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only while the leader is not reaped: its number cannot belong to anybody else yet.
        if self.child.id().is_some() {
            self.signal(Signal::KILL);
        }
    }
}

/// Reads more of stdout; true at its end.
async fn read(stdout: Option<&mut ChildStdout>, buffer: &mut BytesMut) -> bool {
    let Some(stdout) = stdout else {
        return true;
    };
    if buffer.is_empty() && buffer.capacity() > 16 * READ_SIZE {
        // It grew for one long line: its memory is given back.
        *buffer = BytesMut::new();
    }
    buffer.reserve(READ_SIZE);
    !matches!(stdout.read_buf(buffer).await, Ok(n) if n > 0)
}

/// Reads more of stderr and keeps its end; true when it is closed.
async fn read_tail(stderr: Option<&mut ChildStderr>, tail: &mut Vec<u8>) -> bool {
    let Some(stderr) = stderr else {
        return true;
    };
    let n = stderr.read_buf(tail).await.unwrap_or(0);
    let new = &tail[tail.len() - n..];
    debug!(target: "acpipe::agent_stderr", "{}", String::from_utf8_lossy(new).trim_end());
    if tail.len() > 2 * STDERR_TAIL {
        tail.drain(..tail.len() - STDERR_TAIL);
    }
    n == 0
}

fn report(status: ExitStatus, tail: &[u8]) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    Exit {
        code: status.code(),
        signal: status.signal(),
        stderr: String::from_utf8_lossy(&tail[tail.len().saturating_sub(STDERR_TAIL)..])
            .into_owned(),
    }
}
