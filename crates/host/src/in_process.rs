//! Agents inside this program: a task instead of a process.
//!
//! The task exchanges lines with the loop as a process does, so the dialect and the rest of the core know no
//! difference. The agent itself is a function that was registered under a name.

use super::agent::{self, AgentHandle, ProcessRequest, TaskEnd};
use super::clock::running_now;
use super::frames::log_frames;
use super::health::LiveHealth;
use super::inbox::EventSender;
use super::recorder::ProcessRecorder;
use super::stdin_queue::StdinReceiver;
use super::supervisor::codec::SupervisorOrder;
use acpipe_core::hub::{AgentId, AgentInput, Exit, Measure};
use acpipe_json::frame::Batch;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::without_key_lines;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tracing::info;

/// Runs an agent: receives the lines of acpipe and sends those of the agent, until the input ends. The error
/// is the reason why the agent cannot continue.
///
/// `AgentFactory::runner` in the room `agent` makes one of an agent.
pub type InProcessAgent = Arc<
    dyn Fn(
            mpsc::Receiver<Bytes>,
            mpsc::Sender<Bytes>,
        ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>
        + Send
        + Sync,
>;

/// The agents inside this program, by their names.
pub type InProcessAgents = BTreeMap<String, InProcessAgent>;

/// Capacity of the queues to and from the agent, in messages. It is short so that the agent waits if the
/// client does not read.
const QUEUE: usize = 16;

/// Exit code that is reported after a panic, as for a Rust program that panicked.
const PANICKED: i32 = 101;

/// Signal numbers that are reported for an agent that was stopped.
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// Starts an agent. All its events arrive through `events` in order; `None` is reported as a failed start.
pub fn start(
    id: AgentId,
    name: &str,
    run: Option<&InProcessAgent>,
    mut events: EventSender,
    recorder: Option<ProcessRecorder>,
) -> AgentHandle {
    let (agent, end) = agent::channel(recorder);
    let run = run.cloned();
    let message = format!("cannot start agent {name:?}: it is not registered in this program");
    tokio::spawn(async move {
        if let Some(run) = run {
            live(id, run, events, end).await;
        } else {
            let error = Error::new(ErrorKind::AgentNotFound, message);
            // Fails only if the loop has ended; the event is not needed then.
            let _ = events.send(id, AgentInput::StartFailed(error)).await;
        }
    });
    agent
}

/// Runs an agent until it ends or is stopped.
async fn live(id: AgentId, run: InProcessAgent, mut events: EventSender, end: TaskEnd) {
    let (to_agent, input) = mpsc::channel(QUEUE);
    let (out, mut output) = mpsc::channel::<Bytes>(QUEUE);
    // Called inside the task, so that also its panic ends only the agent.
    let mut task = Stopping(tokio::spawn(async move { run(input, out).await }));
    if let Some(recorder) = &end.recorder {
        recorder.started();
    }
    let recorder = end.recorder.clone();
    let _writer = Stopping(tokio::spawn(write(
        end.lines,
        to_agent,
        end.health.clone(),
        recorder,
    )));
    let (mut requests, mut is_attached) = (end.requests, true);
    let (mut batch, mut is_open, mut stopped_by) = (Vec::with_capacity(QUEUE), true, None);
    let (mut ended, reports) = (None, events.clone());
    let result = loop {
        if !is_open
            && batch.is_empty()
            && let Some(result) = ended.take()
        {
            break result;
        }
        tokio::select! {
            biased;
            request = requests.next(), if is_attached => match request {
                Some(ProcessRequest::Order(order)) => {
                    stopped_by = Some(order);
                    task.0.abort();
                }
                // The agent has no processes.
                Some(ProcessRequest::Measure) => {
                    let mut reports = reports.clone();
                    tokio::spawn(async move {
                        let _ = reports.send(id, AgentInput::Measured(Measure::default())).await;
                    });
                }
                None => {
                    is_attached = false;
                    task.0.abort();
                }
            },
            slot = events.ready(), if !batch.is_empty() => match slot {
                Ok(slot) => {
                    let lines = Batch::Lines(joined(&mut batch));
                    if let Some(recorder) = &end.recorder {
                        recorder.received(&lines);
                    }
                    slot.send(id, AgentInput::Batch(lines));
                }
                // The loop has ended.
                Err(_) => return,
            },
            count = output.recv_many(&mut batch, QUEUE), if is_open && batch.is_empty() => {
                is_open = count > 0;
            }
            result = &mut task.0, if ended.is_none() => ended = Some(result),
        }
    };
    let mut exit = exit(result, stopped_by);
    exit.stderr = without_key_lines(&exit.stderr);
    if !exit.stderr.is_empty() {
        end.health.add_stderr(exit.stderr.as_bytes());
    }
    info!(code = exit.code, "agent inside this program ended");
    if let Some(recorder) = &end.recorder {
        recorder.exited(exit.code, exit.signal, &exit.stderr);
    }
    let _ = events.send(id, AgentInput::Exited(exit)).await;
}

/// Task that is aborted when its handle is dropped.
struct Stopping<T>(JoinHandle<T>);

impl<T> Drop for Stopping<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Forwards lines to the agent.
async fn write(
    mut queue: StdinReceiver,
    to_agent: mpsc::Sender<Bytes>,
    health: LiveHealth,
    recorder: Option<ProcessRecorder>,
) {
    while let Some(lines) = queue.recv().await {
        log_frames("acpipe → agent", &lines);
        if let Some(recorder) = &recorder {
            recorder.sent(&lines);
        }
        let len = lines.len();
        health.set_pending_write(Some(running_now()));
        let sent = to_agent.send(lines.into()).await;
        health.set_pending_write(None);
        queue.written(len);
        if sent.is_err() {
            // The agent has ended, which its task reports.
            return;
        }
    }
}

/// Joins messages to one batch. A single message is not copied.
fn joined(messages: &mut Vec<Bytes>) -> Bytes {
    let all = if messages.len() == 1 {
        messages.remove(0)
    } else {
        let mut all = BytesMut::with_capacity(messages.iter().map(Bytes::len).sum());
        messages
            .drain(..)
            .for_each(|message| all.extend_from_slice(&message));
        all.freeze()
    };
    log_frames("agent → acpipe", &all);
    all
}

/// Describes the end of an agent like that of a process.
fn exit(
    result: Result<Result<(), String>, JoinError>,
    stopped_by: Option<SupervisorOrder>,
) -> Exit {
    let (code, stderr) = match result {
        Ok(Ok(())) => (Some(0), String::new()),
        Ok(Err(message)) => (Some(1), message),
        Err(error) if error.is_panic() => {
            let panic = error.into_panic();
            let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
            let message = message.unwrap_or_else(|| "(no message)".to_owned());
            (Some(PANICKED), format!("the agent panicked: {message}"))
        }
        Err(_) => (None, String::new()),
    };
    let signal = match (code, stopped_by) {
        (None, Some(SupervisorOrder::Terminate)) => Some(SIGTERM),
        (None, _) => Some(SIGKILL),
        (Some(_), _) => None,
    };
    Exit {
        code,
        signal,
        stderr,
        stdout: String::new(),
    }
}

#[cfg(test)]
mod tests;
