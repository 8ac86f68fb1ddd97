//! acpipe's side of a supervised process: the pipes of an agent or terminal, and the supervisor that starts
//! and ends it.

mod group;

use super::launches::{self, Launch};
use super::process_settings::{ProcessSettings, Supervision};
use super::supervisor::codec::{SupervisorEvent, SupervisorOrder, send_pipes};
use super::supervisor::orders::{self, OrderSender};
use super::supervisor::{SUPERVISOR, tree};
use acpipe_model::host::TerminalSpec;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::Variables;
use bytes::{Buf as _, BytesMut};
use group::ProcessGroup;
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::io::{self, pipe};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tracing::warn;

/// Supervised process and its supervisor.
pub struct Supervised {
    supervisor: SupervisorHandle,
    orders: OrderSender,
    agent: Option<tree::Member>,
    /// Mark in the environment of the process and its descendants.
    mark: String,
    launch: Arc<Launch>,
}

/// Supervisor of a process.
enum SupervisorHandle {
    /// A process.
    Process {
        child: Box<Child>,
        socket: Option<OwnedReadHalf>,
        heard: BytesMut,
    },
    /// A task of this program, for [`Supervision::Direct`].
    Task(ProcessGroup),
}

/// acpipe's ends of the agent's standard streams.
pub struct Pipes {
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
}

/// Program that a supervisor starts.
struct Spawn {
    program: OsString,
    args: Vec<String>,
    cwd: String,
    /// Changes to acpipe's own environment.
    env: Variables,
}

impl Supervised {
    /// Starts a supervisor, which starts the agent; [`Supervised::news`] reports whether the agent runs.
    ///
    /// # Errors
    /// The supervisor could not be started, usually because the working directory does not exist.
    pub async fn start(
        program: &OsStr,
        spec: &ProcessSpec,
        terms: ProcessSettings,
    ) -> io::Result<(Self, Pipes)> {
        let spawn = Spawn {
            program: program.to_owned(),
            args: spec.args.clone(),
            cwd: spec.cwd.clone(),
            env: spec.env.clone(),
        };
        let starter = terms.starter.clone();
        let start = move || {
            let (stdin, to_agent) = pipe()?;
            let (from_agent, stdout) = pipe()?;
            let (errors, stderr) = pipe()?;
            let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
            let supervised = Self::spawn(&spawn, streams, terms)?;
            let pipes = Pipes {
                stdin: Sender::from_owned_fd(to_agent.into())?,
                stdout: Receiver::from_owned_fd(from_agent.into())?,
                stderr: Receiver::from_owned_fd(errors.into())?,
            };
            Ok((supervised, pipes))
        };
        starter.run(start).await
    }

    /// Starts a terminal's command: stdin is empty, stdout and stderr share one pipe so that their order is
    /// kept.
    ///
    /// # Errors
    /// As with [`Supervised::start`].
    pub async fn start_terminal(
        spec: &TerminalSpec,
        terms: ProcessSettings,
    ) -> io::Result<(Self, Receiver)> {
        let spawn = Spawn {
            program: OsString::from(&spec.command),
            args: spec.args.clone(),
            cwd: spec.cwd.clone(),
            env: spec.env.clone(),
        };
        let starter = terms.starter.clone();
        let start = move || {
            let (nothing, _) = pipe()?;
            let (output, said) = pipe()?;
            let streams = [nothing.as_fd(), said.as_fd(), said.as_fd()];
            let supervised = Self::spawn(&spawn, streams, terms)?;
            Ok((supervised, Receiver::from_owned_fd(output.into())?))
        };
        starter.run(start).await
    }

    fn spawn(
        spawn: &Spawn,
        streams: [BorrowedFd<'_>; 3],
        terms: ProcessSettings,
    ) -> io::Result<Self> {
        let mark = terms.launch.next_mark();
        let (orders, issued) = orders::channel();
        let program = match terms.supervision {
            Supervision::OwnProgram => own_program()?,
            Supervision::Program(program) => program,
            Supervision::Direct => {
                let group = ProcessGroup::spawn(spawn, streams, &mark, issued)?;
                return Ok(Self {
                    supervisor: SupervisorHandle::Task(group),
                    orders,
                    agent: None,
                    mark,
                    launch: terms.launch,
                });
            }
        };
        let (ours, theirs) = StdUnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "this is who starts keepers")]
        let mut command = Command::new(program);
        command
            .arg0(SUPERVISOR)
            .arg(terms.grace.as_millis().to_string())
            .arg(terms.descriptors.unwrap_or_default().to_string())
            .arg(&spawn.program)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        spawn.configure(&mut command, &mark);
        let child = command.spawn()?;
        // Closes this process's copy of the supervisor's end of the socket.
        drop(command);
        send_pipes(&ours, streams)?;
        ours.set_nonblocking(true)?;
        let (socket, to_supervisor) = UnixStream::from_std(ours)?.into_split();
        tokio::spawn(orders::deliver(issued, to_supervisor));
        Ok(Self {
            supervisor: SupervisorHandle::Process {
                child: Box::new(child),
                socket: Some(socket),
                heard: BytesMut::new(),
            },
            orders,
            agent: None,
            mark,
            launch: terms.launch,
        })
    }

    /// Receives the supervisor's next message; `None`, once, when the supervisor has exited. Cancel safe.
    pub async fn news(&mut self) -> Option<SupervisorEvent> {
        let (child, socket, heard) = match &mut self.supervisor {
            SupervisorHandle::Process {
                child,
                socket,
                heard,
            } => (child, socket, heard),
            SupervisorHandle::Task(group) => {
                let event = group.next_event().await;
                self.note_event(event);
                return event;
            }
        };
        let event = loop {
            if let Some((bytes, _)) = heard.split_first_chunk::<{ SupervisorEvent::SIZE }>() {
                let event = SupervisorEvent::of(*bytes);
                heard.advance(SupervisorEvent::SIZE);
                if event.is_some() {
                    break event;
                }
            }
            let Some(open) = socket else {
                // The exit status of a supervisor carries no information.
                let _ = child.wait().await;
                break None;
            };
            match open.read_buf(heard).await {
                Ok(n) if n > 0 => {}
                Ok(_) | Err(_) => *socket = None,
            }
        };
        self.note_event(event);
        event
    }

    fn note_event(&mut self, event: Option<SupervisorEvent>) {
        if let Some(SupervisorEvent::Running(pid)) = event {
            self.agent = Pid::from_raw(pid).and_then(tree::look);
        }
    }

    /// Sends an order to the supervisor. It is delivered even if [`Supervised`] is dropped, unless the supervisor
    /// has ended.
    pub fn order(&self, order: SupervisorOrder) {
        self.orders.send(order);
    }

    /// Kills a supervisor that does not end, and all descendants that can be found.
    pub fn give_up(&mut self) {
        warn!("the agent's supervisor failed; processes of the agent may be left");
        self.launch.keep_record();
        for member in self.root().members() {
            member.signal(Signal::KILL);
        }
        match &mut self.supervisor {
            // The supervisor may have exited.
            SupervisorHandle::Process { child, .. } => drop(child.start_kill()),
            SupervisorHandle::Task(group) => group.give_up(),
        }
    }

    /// Kills the agent, and all processes with its mark, after the supervisor ended without having done so.
    pub fn kill_orphaned(&self) {
        self.launch.keep_record();
        if let Some(agent) = self.agent {
            let left = tree::below(agent.pid);
            for member in left.into_iter().chain([agent]) {
                member.signal(Signal::KILL);
            }
        }
        // Orphans are no longer below the agent, and new processes may start meanwhile: this search takes a
        // while.
        let mark = self.mark.clone();
        tokio::task::spawn_blocking(move || launches::kill_marked(&mark));
    }

    /// Returns the root of the agent's process tree.
    pub fn root(&self) -> TreeRoot {
        match &self.supervisor {
            SupervisorHandle::Process { child, .. } => {
                let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
                TreeRoot {
                    supervisor: pid.and_then(Pid::from_raw),
                    agent: None,
                }
            }
            SupervisorHandle::Task(_) => TreeRoot {
                supervisor: None,
                agent: self.agent,
            },
        }
    }
}

/// Root of an agent's process tree: its supervisor, or without one the agent itself.
#[derive(Debug, Clone, Copy)]
pub struct TreeRoot {
    /// The supervisor, which is not part of the tree; `None` once it was reaped.
    supervisor: Option<Pid>,
    agent: Option<tree::Member>,
}

impl TreeRoot {
    /// Returns the processes of the tree.
    pub fn members(self) -> Vec<tree::Member> {
        let above = self.supervisor.or(self.agent.map(|agent| agent.pid));
        let mut members = above.map(tree::below).unwrap_or_default();
        members.extend(self.agent.and_then(|agent| tree::look(agent.pid)));
        members
    }
}

impl Spawn {
    /// Sets arguments, working directory and environment of a process with this mark.
    fn configure(&self, command: &mut Command, mark: &str) {
        command.args(&self.args).current_dir(&self.cwd);
        for (name, value) in &self.env.0 {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env(launches::MARK, mark);
    }
}

/// Returns the path of the running program, even if its file was replaced meanwhile.
///
/// # Errors
/// The system does not know the path.
pub fn own_program() -> io::Result<PathBuf> {
    let file = std::env::current_exe()?;
    // Linux appends "(deleted)" to the path of a replaced file; this link still opens it.
    let by_link = PathBuf::from("/proc/self/exe");
    Ok(if !file.exists() && by_link.exists() {
        by_link
    } else {
        file
    })
}
