//! Task of an agent process, which owns the process, its stdout and stderr; a second task writes its stdin.

use super::clock::running_now;
use super::discover::{self, FoundProgram, LoginShell};
use super::frames::log_frames;
use super::health::LiveHealth;
use super::inbox::EventSender;
use super::path::explain;
pub use super::process_settings::ProcessSettings;
use super::recorder::ProcessRecorder;
use super::stderr::Stderr;
use super::stdin_queue::{self, StdinFull, StdinReceiver, StdinSender};
use super::supervised::{Supervised, TreeRoot};
use super::supervisor::KILL_LIMIT;
use super::supervisor::codec::{SupervisorEvent, SupervisorOrder};
use super::supervisor::orders::{self, OrderReceiver, OrderSender};
use acpipe_core::hub::{AgentId, AgentInput, Exit, Measure};
use acpipe_json::frame::{Batch, LineBatches, release_memory};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::process_health::HealthChange;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::Program;
use bytes::BytesMut;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::codec::Decoder as _;
use tracing::{debug, info, warn};

/// Size of a read in bytes. 256 KiB gains nothing, 8 KiB costs a tenth.
const READ_SIZE: usize = 64 * 1024;

/// Maximum time that the pipes of an exited process stay open because other processes inherited them, and
/// that a process which closed its stdout takes to exit.
const GRACE: Duration = Duration::from_millis(250);

/// Maximum time that a supervisor takes in addition to its own limit for killing.
const SUPERVISOR_EXIT_GRACE: Duration = Duration::from_secs(1);

/// The loop's handle of an agent process, or of an agent inside this program.
pub struct AgentHandle {
    input: Option<StdinSender>,
    /// Dropped to cancel the search for the program: until the process is started, nothing reads `input`.
    needed: Option<oneshot::Sender<()>>,
    orders: OrderSender,
    measure: mpsc::Sender<()>,
    health: LiveHealth,
    recorder: Option<ProcessRecorder>,
}

/// Request to the task that owns a process.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProcessRequest {
    Order(SupervisorOrder),
    Measure,
}

/// Receiving ends of the task of an agent, for all that its [`AgentHandle`] sends.
pub(super) struct TaskEnd {
    pub lines: StdinReceiver,
    pub requests: Requests,
    pub health: LiveHealth,
    pub recorder: Option<ProcessRecorder>,
    /// Ends when the program need not be started any more.
    needed: oneshot::Receiver<()>,
}

/// Creates the handle of an agent, and the receiving ends of its task.
pub(super) fn channel(recorder: Option<ProcessRecorder>) -> (AgentHandle, TaskEnd) {
    let (input, lines) = stdin_queue::channel();
    let (needed, unneeded) = oneshot::channel();
    let (orders, ordered) = orders::channel();
    let (measure, measured) = mpsc::channel(1);
    let health = LiveHealth::default();
    let agent = AgentHandle {
        input: Some(input),
        needed: Some(needed),
        orders,
        measure,
        health: health.clone(),
        recorder: recorder.clone(),
    };
    let requests = Requests {
        orders: ordered,
        measure: measured,
    };
    let needed = unneeded;
    let end = TaskEnd {
        lines,
        requests,
        health,
        recorder,
        needed,
    };
    (agent, end)
}

/// Receiving end of the requests that an [`AgentHandle`] sends to its task.
pub(super) struct Requests {
    orders: OrderReceiver,
    measure: mpsc::Receiver<()>,
}

impl Requests {
    /// Receives the next request; `None` once the [`AgentHandle`] is dropped. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<ProcessRequest> {
        tokio::select! {
            biased;
            Some(order) = self.orders.recv() => Some(ProcessRequest::Order(order)),
            Some(()) = self.measure.recv() => Some(ProcessRequest::Measure),
            else => None,
        }
    }
}

/// Starts an agent process. All its events, including a failure to start, arrive through `events` in order.
pub fn start(
    id: AgentId,
    spec: ProcessSpec,
    terms: ProcessSettings,
    login: Arc<LoginShell>,
    mut events: EventSender,
    recorder: Option<ProcessRecorder>,
) -> AgentHandle {
    let (agent, end) = channel(recorder);
    let mut requests = end.requests;
    let streams = (end.lines, end.health, end.recorder);
    tokio::spawn(async move {
        let found = tokio::select! {
            found = discover::program(&spec, &login, terms.clone()) => found,
            () = until_unneeded(end.needed, &mut requests) => {
                let message = "the agent was stopped before its program was found";
                Err(Error::new(ErrorKind::Cancelled, message))
            }
        };
        match found {
            Ok(found) => live(id, spec, found, terms, events, streams, requests).await,
            Err(error) => {
                if let Some(recorder) = &streams.2 {
                    recorder.failed(&error.message);
                }
                // Fails only if the loop has ended; the event is not needed then.
                let _ = events.send(id, AgentInput::StartFailed(error)).await;
            }
        }
    });
    agent
}

impl AgentHandle {
    /// Takes the changes in the health of the process since the last call.
    pub fn health_change(&self) -> Option<HealthChange> {
        self.health.take_change()
    }

    /// Queues lines for stdin; they are dropped after [`AgentHandle::close_input`].
    ///
    /// # Errors
    /// The queue is full.
    pub fn send(&self, lines: Vec<u8>) -> Result<(), StdinFull> {
        self.input
            .as_ref()
            .map_or(Ok(()), |input| input.send(lines))
    }

    /// Closes stdin once everything queued is written. The process keeps running, or is still started.
    pub fn finish_input(&mut self) {
        self.input = None;
    }

    /// Closes stdin as the first step of a stop. If the program is still being searched, the process is not
    /// started.
    pub fn close_input(&mut self) {
        self.finish_input();
        self.needed = None;
    }

    /// Orders the supervisor to end the agent process. The order is never dropped while the process runs.
    pub fn order(&self, order: SupervisorOrder) {
        if let Some(recorder) = &self.recorder {
            recorder.killed(order == SupervisorOrder::Kill);
        }
        self.orders.send(order);
    }

    /// Requests a measurement, which arrives as an event.
    pub fn measure(&self) {
        // A full queue holds a measurement that has not begun and serves this request too.
        let _ = self.measure.try_send(());
    }
}

/// Waits until a process that has not been started is no longer needed.
async fn until_unneeded(unneeded: oneshot::Receiver<()>, requests: &mut Requests) {
    let ordered = async { while let Some(ProcessRequest::Measure) = requests.next().await {} };
    tokio::select! {
        _ = unneeded => {}
        () = ordered => {}
    }
}

/// Runs an agent process from its start to its exit.
async fn live(
    id: AgentId,
    mut spec: ProcessSpec,
    found: FoundProgram,
    terms: ProcessSettings,
    mut events: EventSender,
    (lines, health, recorder): (StdinReceiver, LiveHealth, Option<ProcessRecorder>),
    mut requests: Requests,
) {
    if let Some(fallback) = found.fallback {
        (spec.args, spec.cwd) = (fallback.args, fallback.cwd);
    }
    if let Some(path) = found.path {
        spec.env.0.insert("PATH".to_owned(), Some(path));
    }
    let max_line = terms.max_line;
    let (supervised, pipes) = match Supervised::start(found.file.as_os_str(), &spec, terms).await {
        Ok(started) => started,
        Err(error) => {
            let error = explain(&found.file, &error);
            if let Some(recorder) = &recorder {
                recorder.failed(&error.message);
            }
            let _ = events.send(id, AgentInput::StartFailed(error)).await;
            return;
        }
    };
    let mut process = RunningProcess {
        id,
        supervised,
        stdout: Some(pipes.stdout),
        stderr: Stderr::new(pipes.stderr, health.clone()),
        buffer: BytesMut::with_capacity(READ_SIZE),
        frames: LineBatches::new(max_line),
        health: health.clone(),
        events: events.clone(),
        hangs: None,
        recorder: recorder.clone(),
    };
    if process
        .begin(&found.file, found.program, &mut requests)
        .await
    {
        let streams = (pipes.stdin, lines, recorder);
        tokio::spawn(write(id, streams, health, events));
        process.watch(requests).await;
    }
}

async fn write(
    id: AgentId,
    (mut stdin, mut queue, recorder): (Sender, StdinReceiver, Option<ProcessRecorder>),
    health: LiveHealth,
    mut events: EventSender,
) {
    while let Some(lines) = queue.recv().await {
        log_frames("acpipe → agent", &lines);
        if let Some(recorder) = &recorder {
            recorder.sent(&lines);
        }
        health.set_pending_write(Some(running_now()));
        let written = stdin.write_all(&lines).await;
        health.set_pending_write(None);
        queue.written(lines.len());
        if let Err(error) = written {
            debug!(%error, "the agent's stdin is closed");
            // Usually the process has exited. The task that watches it reports that, which is more specific.
            tokio::time::sleep(GRACE).await;
            let _ = events.send(id, AgentInput::InputClosed).await;
            return;
        }
    }
    if let Some(recorder) = &recorder {
        recorder.closed();
    }
}

/// Running process with its buffered output.
struct RunningProcess {
    id: AgentId,
    supervised: Supervised,
    stdout: Option<Receiver>,
    stderr: Stderr,
    buffer: BytesMut,
    frames: LineBatches,
    health: LiveHealth,
    events: EventSender,
    /// Time at which a supervisor that was ordered to kill but has not exited is given up.
    hangs: Option<Instant>,
    recorder: Option<ProcessRecorder>,
}

impl RunningProcess {
    /// Waits until the agent runs. Returns `false` if it did not start, after reporting the failure.
    async fn begin(&mut self, file: &Path, program: Program, requests: &mut Requests) -> bool {
        let failed = loop {
            let hangs = self.hangs;
            tokio::select! {
                news = self.supervised.news() => match news {
                    Some(SupervisorEvent::Running(pid)) => {
                        let pid = pid.unsigned_abs();
                        if let Some(recorder) = &self.recorder {
                            recorder.started();
                        }
                        info!(pid, file = program.file, found_by = ?program.found_by, "process of the agent started");
                        let program = Box::new(program);
                        self.send_event(AgentInput::Started { pid, program }).await;
                        return true;
                    }
                    Some(SupervisorEvent::Failed(errno)) => {
                        break explain(file, &io::Error::from_raw_os_error(errno));
                    }
                    Some(SupervisorEvent::Ended(_)) => {}
                    None => {
                        let message = "the agent's supervisor exited before it started the agent";
                        break Error::new(ErrorKind::AgentStart, message);
                    }
                },
                Some(request) = requests.next() => self.perform(request),
                () = tokio::time::sleep_until(hangs.unwrap_or_else(Instant::now)), if hangs.is_some() => {
                    self.hangs = None;
                    self.supervised.give_up();
                }
            }
        };
        if let Some(recorder) = &self.recorder {
            recorder.failed(&failed.message);
        }
        self.send_event(AgentInput::StartFailed(failed)).await;
        false
    }

    async fn watch(mut self, mut requests: Requests) {
        let mut queue: Option<AgentInput> = None;
        let mut ended: Option<ExitStatus> = None;
        let mut gone = false;
        let mut events = self.events.clone();
        // Runs from the exit of the supervisor, or the end of stdout, until the other has ended, too.
        let grace = tokio::time::sleep(Duration::MAX);
        tokio::pin!(grace);
        let mut in_grace = false;
        loop {
            if queue.is_none() {
                queue = self.next_batch();
            }
            if gone && queue.is_none() && self.stdout.is_none() && !self.stderr.is_open() {
                break;
            }
            let hangs = self.hangs.filter(|_| !gone);
            tokio::select! {
                // Requests come first, so that an agent which writes without pause does not delay its own
                // end. Output comes next, before any timeout.
                biased;
                Some(request) = requests.next() => self.perform(request),
                place = events.ready(), if queue.is_some() => match place {
                    Ok(place) => {
                        if let Some(input) = queue.take() {
                            place.send(self.id, input);
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
                () = self.stderr.read(), if self.stderr.is_open() => {}
                news = self.supervised.news(), if !gone => match news {
                    Some(SupervisorEvent::Ended(status)) => ended = Some(ExitStatus::from_raw(status)),
                    Some(SupervisorEvent::Running(_) | SupervisorEvent::Failed(_)) => {}
                    None => {
                        if ended.is_none() {
                            warn!("the agent's supervisor was killed, and the agent with it");
                            self.supervised.kill_orphaned();
                        }
                        gone = true;
                        grace.as_mut().reset(Instant::now() + GRACE);
                        in_grace = true;
                    }
                },
                () = tokio::time::sleep_until(hangs.unwrap_or_else(Instant::now)), if hangs.is_some() => {
                    self.hangs = None;
                    self.supervised.give_up();
                }
                () = &mut grace, if in_grace && queue.is_none() => {
                    in_grace = false;
                    if gone {
                        warn!("another process keeps the agent's pipes open; no longer waiting for it");
                        self.stdout = None;
                        self.stderr.close();
                    } else if ended.is_none() {
                        queue = Some(AgentInput::OutputClosed);
                    }
                }
            }
        }
        let exit = report(ended, self.health.stderr());
        info!(
            code = exit.code,
            signal = exit.signal,
            "process of the agent exited"
        );
        if let Some(recorder) = &self.recorder {
            recorder.exited(exit.code, exit.signal, &exit.stderr);
        }
        self.send_event(AgentInput::Exited(exit)).await;
    }

    fn perform(&mut self, request: ProcessRequest) {
        match request {
            ProcessRequest::Order(order) => {
                self.supervised.order(order);
                if order == SupervisorOrder::Kill {
                    let limit = KILL_LIMIT + SUPERVISOR_EXIT_GRACE;
                    self.hangs.get_or_insert_with(|| Instant::now() + limit);
                }
            }
            ProcessRequest::Measure => {
                let root = self.supervised.root();
                let (id, mut events) = (self.id, self.events.clone());
                // Runs as its own task because it takes time if there are many processes.
                tokio::spawn(async move {
                    let measure = tokio::task::spawn_blocking(move || measure(root));
                    let measure = measure.await.unwrap_or_default();
                    let _ = events.send(id, AgentInput::Measured(measure)).await;
                });
            }
        }
    }

    async fn send_event(&mut self, input: AgentInput) {
        // Fails only if the loop has ended; the event is not needed then.
        let _ = self.events.send(self.id, input).await;
    }

    fn next_batch(&mut self) -> Option<AgentInput> {
        let before = self.buffer.len();
        let batch = self.frames.decode(&mut self.buffer).ok().flatten();
        release_memory(&mut self.buffer, before);
        batch.map(|batch| self.logged(batch))
    }

    fn last_batch(&mut self) -> Option<AgentInput> {
        let batch = self.frames.decode_eof(&mut self.buffer).ok().flatten();
        batch.map(|batch| self.logged(batch))
    }

    /// Converts a batch to an event, and logs and records its frames.
    fn logged(&self, batch: Batch) -> AgentInput {
        if let Batch::Lines(lines) = &batch {
            log_frames("agent → acpipe", lines);
        }
        if let Some(recorder) = &self.recorder {
            recorder.received(&batch);
        }
        AgentInput::Batch(batch)
    }
}

fn measure(root: TreeRoot) -> Measure {
    let below = root.members();
    let pages: u64 = below.iter().map(|member| member.pages).sum();
    Measure {
        processes: u32::try_from(below.len()).unwrap_or(u32::MAX),
        rss: pages.saturating_mul(rustix::param::page_size() as u64),
    }
}

/// Reads more of stdout; returns `true` at its end.
async fn read(stdout: Option<&mut Receiver>, buffer: &mut BytesMut) -> bool {
    let Some(stdout) = stdout else {
        return true;
    };
    buffer.reserve(READ_SIZE);
    !matches!(stdout.read_buf(buffer).await, Ok(n) if n > 0)
}

fn report(status: Option<ExitStatus>, stderr: String) -> Exit {
    Exit {
        code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        stderr,
        // The core has read it.
        stdout: String::new(),
    }
}
