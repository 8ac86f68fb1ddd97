//! Object-safe form of [`Agent`], so that the server is compiled once for all agents.

use super::contract::Agent;
use super::error::{AgentError, FailureKind};
use super::facts::AgentFacts;
use super::session::{Message, Session, StoredSession};
use super::turn::{StopReason, Turn};
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::Poll;

/// Boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMethod {
    New,
    Resume,
    Load,
}

/// Object-safe form of [`Agent`].
pub trait DynAgent: Send + Sync {
    fn facts(&self) -> AgentFacts;
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason, AgentError>>;
    fn begin<'a>(
        &'a self,
        opening: OpenMethod,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<Message>, AgentError>>;
    fn stored<'a>(
        &'a self,
        cwd: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<Vec<StoredSession>, AgentError>>;
    fn end<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, ()>;
    fn interrupt<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, ()>;
    fn finish(&self) -> BoxFuture<'_, ()>;
}

impl<A: Agent> DynAgent for A {
    fn facts(&self) -> AgentFacts {
        AgentFacts {
            name: self.name().to_owned(),
            title: self.title().to_owned(),
            version: self.version().to_owned(),
            instructions: self.instructions().map(str::to_owned),
            allowed_tools: self.allowed_tools(),
            capabilities: self.capabilities(),
            options: self.options(),
            keeps_history: self.keeps_history(),
            cancel_grace: self.cancel_grace(),
        }
    }

    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason, AgentError>> {
        Box::pin(self.prompt(turn))
    }

    fn begin<'a>(
        &'a self,
        opening: OpenMethod,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<Message>, AgentError>> {
        Box::pin(async move {
            match opening {
                OpenMethod::New => self.open(session).await.map(|()| Vec::new()),
                OpenMethod::Resume => self.resume(session).await,
                OpenMethod::Load => self.load(session).await,
            }
        })
    }

    fn stored<'a>(
        &'a self,
        cwd: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<Vec<StoredSession>, AgentError>> {
        Box::pin(self.list(cwd))
    }

    fn end<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, ()> {
        Box::pin(self.close(session))
    }

    fn interrupt<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, ()> {
        Box::pin(self.cancel(session))
    }

    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shutdown())
    }
}

/// Runs a future of the agent; a panic is an error.
///
/// # Errors
/// The agent panicked. Its error names the panic.
pub async fn catch<T>(future: impl Future<Output = T>) -> Result<T, AgentError> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // The agent's state may be inconsistent after a panic, as after a panic in any task of a runtime.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => {
                let message = format!("the agent panicked: {}", panic_message(&*panic));
                Poll::Ready(Err(AgentError::new(FailureKind::Session, message)))
            }
        }
    })
    .await
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else {
        "(no message)"
    }
}
