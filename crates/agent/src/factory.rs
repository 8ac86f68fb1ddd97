//! Agents that run inside the program that uses them.

use super::contract::Agent;
use super::erased::{BoxFuture, DynAgent};
use super::server::serve;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Runs an agent: receives the client's messages and sends the agent's, until the input ends. The error is
/// the message of a fatal failure.
///
/// The type names no type of this module, so that what starts the agent need not know it.
pub type AgentRunner = Arc<
    dyn Fn(mpsc::Receiver<Bytes>, mpsc::Sender<Bytes>) -> BoxFuture<'static, Result<(), String>>
        + Send
        + Sync,
>;

/// Makes the agents that run inside the program that uses them, one for each connection.
///
/// Such an agent runs on the runtime of the program, so it must not block its thread. It ends with its
/// connection: after a crash or an idle time, the next prompt makes a new one. Environment variables that
/// clients set for the agent do not reach it.
///
/// ```
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::agent::AgentFactory;
/// use acpipe::testing::{Reply, ScriptedAgent};
///
/// let factory = AgentFactory::new(|| ScriptedAgent::new().on_any(Reply::text("hi")));
/// assert_eq!(factory.name(), "scripted");
/// ```
#[derive(Clone)]
pub struct AgentFactory {
    make: Arc<dyn Fn() -> Arc<dyn DynAgent> + Send + Sync>,
}

impl AgentFactory {
    /// Creates a factory from a function that makes the agent.
    pub fn new<A: Agent>(make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(move || Arc::new(make())),
        }
    }

    /// Creates a factory whose connections share one agent.
    pub fn shared<A: Agent>(agent: A) -> Self {
        let agent: Arc<dyn DynAgent> = Arc::new(agent);
        Self {
            make: Arc::new(move || Arc::clone(&agent)),
        }
    }

    /// Makes an agent and returns its name.
    #[must_use]
    pub fn name(&self) -> String {
        (self.make)().facts().name
    }

    /// Returns what runs an agent of this factory. A panic of the function that makes it is a panic of the
    /// future.
    #[must_use]
    pub fn runner(&self) -> AgentRunner {
        let make = Arc::clone(&self.make);
        Arc::new(move |input, out| {
            let make = Arc::clone(&make);
            Box::pin(async move {
                let served = serve(make(), input, out).await;
                served.map_err(|error| error.message().to_owned())
            })
        })
    }
}

impl std::fmt::Debug for AgentFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentFactory").finish_non_exhaustive()
    }
}
