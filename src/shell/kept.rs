//! An agent's process, or a terminal's, as acpipe has it: its pipes, and the keeper between them that starts and
//! ends it.

use super::keeper::orders::{self, OrderSender};
use super::keeper::words::{News, Order, send_pipes};
use super::keeper::{SUPERVISOR, tree};
use super::launches::{self, Launch};
use super::terms::Terms;
use crate::core::host::TerminalSpec;
use crate::core::transport::ProcessSpec;
use crate::proto::wire::Variables;
use bytes::{Buf as _, BytesMut};
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

/// A process of an agent and its keeper.
pub struct Kept {
    keeper: Child,
    socket: Option<OwnedReadHalf>,
    orders: OrderSender,
    heard: BytesMut,
    agent: Option<tree::Member>,
    /// The mark in the environment of the agent and of all that it starts.
    mark: String,
    launch: Arc<Launch>,
}

/// acpipe's ends of the agent's standard streams.
pub struct Pipes {
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
}

/// The program that a supervisor starts.
struct Spawn {
    program: OsString,
    args: Vec<String>,
    cwd: String,
    /// On top of acpipe's own environment.
    env: Variables,
}

impl Kept {
    /// Starts a keeper, which starts the agent: whether that succeeds, [`Kept::news`] tells.
    ///
    /// # Errors
    /// The keeper could not be started; mostly because there is no such working directory.
    pub async fn start(
        program: &OsStr,
        spec: &ProcessSpec,
        terms: Terms,
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
            let kept = Self::spawn(&spawn, streams, terms)?;
            let pipes = Pipes {
                stdin: Sender::from_owned_fd(to_agent.into())?,
                stdout: Receiver::from_owned_fd(from_agent.into())?,
                stderr: Receiver::from_owned_fd(errors.into())?,
            };
            Ok((kept, pipes))
        };
        starter.run(start).await
    }

    /// The same with a terminal's command: stdin is at its end at once, stdout and stderr are one pipe, in which
    /// they keep their order.
    ///
    /// # Errors
    /// As with [`Kept::start`].
    pub async fn start_terminal(spec: &TerminalSpec, terms: Terms) -> io::Result<(Self, Receiver)> {
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
            let kept = Self::spawn(&spawn, streams, terms)?;
            Ok((kept, Receiver::from_owned_fd(output.into())?))
        };
        starter.run(start).await
    }

    fn spawn(spawn: &Spawn, streams: [BorrowedFd<'_>; 3], terms: Terms) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "this is who starts keepers")]
        let mut command = Command::new(itself()?);
        command
            .arg0(SUPERVISOR)
            .arg(terms.grace.as_millis().to_string())
            .arg(terms.descriptors.unwrap_or_default().to_string())
            .arg(&spawn.program)
            .args(&spawn.args)
            .current_dir(&spawn.cwd)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        for (name, value) in &spawn.env.0 {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mark = terms.launch.next_mark();
        command.env(launches::MARK, &mark);
        let keeper = command.spawn()?;
        // Its end of the socket must not live on here.
        drop(command);
        send_pipes(&ours, streams)?;
        ours.set_nonblocking(true)?;
        let (socket, to_supervisor) = UnixStream::from_std(ours)?.into_split();
        let (orders, issued) = orders::channel();
        tokio::spawn(orders::deliver(issued, to_supervisor));
        Ok(Self {
            keeper,
            socket: Some(socket),
            orders,
            heard: BytesMut::new(),
            agent: None,
            mark,
            launch: terms.launch,
        })
    }

    /// The next thing that the keeper tells; `None`, once, when it has ended. May be dropped and called again.
    pub async fn news(&mut self) -> Option<News> {
        loop {
            if let Some((bytes, _)) = self.heard.split_first_chunk::<{ News::SIZE }>() {
                let news = News::of(*bytes);
                self.heard.advance(News::SIZE);
                if let Some(News::Running(pid)) = news {
                    self.agent = Pid::from_raw(pid).and_then(tree::look);
                }
                if news.is_some() {
                    return news;
                }
            }
            let Some(socket) = &mut self.socket else {
                // Its status tells nothing more.
                let _ = self.keeper.wait().await;
                return None;
            };
            match socket.read_buf(&mut self.heard).await {
                Ok(n) if n > 0 => {}
                Ok(_) | Err(_) => self.socket = None,
            }
        }
    }

    /// Sends an order to the supervisor. It is delivered even if [`Kept`] is dropped, unless the supervisor has ended.
    pub fn order(&self, order: Order) {
        self.orders.send(order);
    }

    /// Ends a keeper that does not do its work, and whatever can be found of its agent.
    pub fn give_up(&mut self) {
        warn!("the agent's keeper did not do its work: what it kept may be left");
        self.launch.keep_record();
        for member in self.pid().map(tree::below).unwrap_or_default() {
            member.signal(Signal::KILL);
        }
        // It may have ended by itself.
        drop(self.keeper.start_kill());
    }

    /// Kills the agent, and all processes with its mark, after the supervisor ended without having done so.
    pub fn bereft(&self) {
        self.launch.keep_record();
        if let Some(agent) = self.agent {
            let left = tree::below(agent.pid);
            for member in left.into_iter().chain([agent]) {
                member.signal(Signal::KILL);
            }
        }
        // Orphans are no longer below the agent, and new ones may come meanwhile: that takes a while.
        let mark = self.mark.clone();
        tokio::task::spawn_blocking(move || launches::kill_marked(&mark));
    }

    /// The keeper's own process.
    pub fn pid(&self) -> Option<Pid> {
        let pid = self.keeper.id()?;
        Pid::from_raw(i32::try_from(pid).ok()?)
    }
}

/// The program that runs, even if its file was replaced meanwhile.
fn itself() -> io::Result<PathBuf> {
    let file = std::env::current_exe()?;
    // Linux says "(deleted)" behind the name of a file that was; under this one it can still be had.
    let by_link = PathBuf::from("/proc/self/exe");
    Ok(if !file.exists() && by_link.exists() {
        by_link
    } else {
        file
    })
}
