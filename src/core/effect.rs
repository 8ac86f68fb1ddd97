//! What the core and the shell exchange: effects that the shell performs, and inputs from agents.

use super::error::Error;
use super::event::Exit;
use super::host::HostEffect;
use super::process_health::HealthChange;
use super::transport::Transport;
use crate::proto::frame::Batch;
use crate::proto::wire::Program;

/// Identifies a transport of an agent in effects and inputs. Numbers are not used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(pub u64);

/// What the shell has to do, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Open a transport.
    Open(AgentId, Transport),
    /// Write to the process's stdin.
    Send(AgentId, Vec<u8>),
    /// Close the process's stdin behind what was sent. This stops nothing: a process whose program is still searched is
    /// started all the same, and the process ends by itself.
    FinishInput(AgentId),
    /// Close the process's stdin, as the first step of a stop: [`Effect::Terminate`] and [`Effect::Kill`] follow unless the
    /// process ends. One that was not started yet is not started.
    CloseInput(AgentId),
    /// Send SIGTERM to the process group.
    Terminate(AgentId),
    /// Send SIGKILL to the process and everything below it.
    Kill(AgentId),
    /// Measure the process tree: count and resident memory.
    Measure(AgentId),
    /// Read or write a file, or use a terminal, for an agent.
    Host(HostEffect),
    /// Shut down, as when the client disconnects, once this process has exited.
    Watch(u32),
    /// Everything has ended: the program may exit.
    Finished,
}

/// What the shell reports about a transport of an agent. A read-only transport delivers only `Batch`, then `Exited` or
/// `StartFailed`.
#[derive(Debug)]
pub enum AgentInput {
    /// The process runs.
    Started { pid: u32, program: Box<Program> },
    /// Its health changed. It is reported before every other input, so that it need not keep its place among them.
    Health(HealthChange),
    /// The process could not be started, or the file could not be read.
    StartFailed(Error),
    /// Lines from its stdout.
    Batch(Batch),
    /// Its stdout was closed, but the process runs.
    OutputClosed,
    /// Its stdin was closed, but the process runs.
    InputClosed,
    /// It does not read its stdin, and the queue for it is full.
    InputStuck,
    /// Result of [`Effect::Measure`].
    Measured(Measure),
    /// The process and everything below it has exited, or the file was read to its end.
    Exited(Exit),
}

/// Size of an agent's process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    pub processes: u32,
    /// Resident memory in bytes; memory that processes share counts for each.
    pub rss: u64,
}
