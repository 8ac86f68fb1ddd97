//! Agents that answer each prompt in an exchange of its own and remember nothing: commands and HTTP endpoints.
//!
//! A [`Backend`] describes one exchange: what is opened, what is written to it, and how the answer is read.
//! [`Exchanges`] makes a dialect of it: sessions, cancels and ends of transports are the same for all backends.

mod exchanges;

use acpipe_model::dialect::{PromptPart, Transcript, Transport};
use acpipe_model::error::Error;
use acpipe_model::event::{AgentInfo, Exit, Original, TurnEnd, Update};
pub use acpipe_model::line_repair::UnusableLine;
use acpipe_protocol::wire::SessionOptions;
pub use exchanges::Exchanges;

/// Protocol of agents that answer each prompt in an exchange of its own.
pub trait Backend: Send {
    /// Returns the name of the protocol. Fields that only this backend adds to chunks stand under this key.
    fn name(&self) -> &'static str;

    fn about(&self) -> AgentInfo;

    /// Returns `true` if the agent receives the stored messages of the session with each prompt.
    fn takes_transcript(&self) -> bool;

    /// Returns `true` if the model of a session can be changed.
    fn takes_model(&self) -> bool;

    /// Describes the exchange for a prompt.
    ///
    /// # Errors
    /// The agent cannot take the prompt.
    fn exchange(&self, prompt: &BackendPrompt<'_>) -> Result<Exchange, Error>;
}

#[derive(Debug, Clone, Default)]
pub struct BackendSession {
    /// Agent session id.
    pub id: String,
    /// Working directory, an absolute path.
    pub cwd: String,
    pub options: SessionOptions,
}

#[derive(Debug)]
pub struct BackendPrompt<'a> {
    pub session: &'a BackendSession,
    /// Parts of the prompt, with the text that acpipe puts before it.
    pub parts: &'a [PromptPart<'a>],
    /// Whether a part that the agent cannot take is replaced by a link.
    pub degrade: bool,
    /// Stored conversation; empty unless [`Backend::takes_transcript`] returns `true`.
    pub transcript: &'a Transcript,
}

/// An exchange: one prompt and its answer.
pub struct Exchange {
    pub transport: Transport,
    /// Lines that are written to it before its input is closed.
    pub input: Vec<u8>,
    pub answer: Box<dyn AnswerReader>,
}

/// Reader of the answer to one prompt.
pub trait AnswerReader: Send {
    /// Reads a line of the transport, which is not empty: appends the updates that it contains.
    ///
    /// # Errors
    /// The line cannot be used; it is counted, and the exchange continues.
    fn read<'a>(
        &mut self,
        line: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine>;

    /// Returns `true` if nothing that follows can change the answer: the transport is stopped then.
    fn is_complete(&self) -> bool {
        false
    }

    /// Handles the end of the transport: appends the last updates and returns the end of the turn.
    ///
    /// # Errors
    /// The exchange failed.
    fn end(
        &mut self,
        how: Result<&Exit, &Error>,
        updates: &mut Vec<Update<'static>>,
    ) -> Result<TurnEnd, Error>;
}
