//! The seam: what the bridge needs of any agent's protocol.
//!
//! A dialect is a pure state machine between neutral calls and events on one side and the agent's lines
//! on the other. No type of an agent's protocol passes it.

use super::error::Error;
use super::event::{AgentEvent, CallId, PermissionOption};
use super::setting::Setting;
use crate::proto::frame::Overlong;
use crate::proto::wire::LineFaults;
use serde_json::value::RawValue;

/// One agent's protocol.
pub trait Dialect {
    /// Name of the protocol; the key under which its own additions stand in chunks.
    fn name(&self) -> &'static str;

    /// Appends the handshake to `out`.
    fn start(&mut self, out: &mut Vec<u8>);

    /// Appends a call to open a session in `cwd`.
    fn open(
        &mut self,
        call: CallId,
        way: Opening<'_>,
        cwd: &str,
        mcp_servers: &[serde_json::Value],
        out: &mut Vec<u8>,
    );

    /// Appends a call for the next page of the sessions that the agent has, of those in `cwd` if there is one.
    fn list(&mut self, call: CallId, cwd: Option<&str>, cursor: Option<&str>, out: &mut Vec<u8>);

    /// Appends the word that a session is not needed any more; its answer says nothing that anybody needs.
    fn close(&mut self, session: &str, out: &mut Vec<u8>);

    /// Appends a prompt; appends nothing where the agent cannot take one of its parts, unless `degrade`
    /// allows to send a link in its place.
    fn prompt(
        &mut self,
        call: CallId,
        session: &str,
        parts: &[PromptPart],
        degrade: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Appends a call to set something, by the agent's ids.
    fn set(&mut self, call: CallId, session: &str, setting: &Setting, out: &mut Vec<u8>);

    /// Appends the cancel of the session's turn.
    fn cancel(&mut self, session: &str, out: &mut Vec<u8>);

    /// Appends the answer to a permission question: one of its options, or `None` for "cancelled".
    fn answer(&mut self, question: &RawValue, choice: Option<&PermissionOption>, out: &mut Vec<u8>);

    /// Reads one line: what it says goes to `events`, what must be answered at once to `out`.
    fn read<'a>(&mut self, line: &'a [u8], events: &mut Vec<AgentEvent<'a>>, out: &mut Vec<u8>);

    /// Takes what is left of a line over the cap: the call it answered fails, the request it asked is
    /// answered.
    fn read_overlong(
        &mut self,
        line: &Overlong,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Vec<u8>,
    );

    /// Lines that could not be used so far.
    fn faults(&self) -> LineFaults;
}

/// Where a prompt's file is said to be when it came as data: what follows is its name.
pub const ATTACHMENT: &str = "attachment:///";

/// The name of a file that came without one.
pub const UNNAMED: &str = "file";

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening<'a> {
    /// As a new one.
    New,
    /// As the one that the agent knows by this id, without a word about its history.
    Resume(&'a str),
    /// The same, but the agent repeats its history first.
    Load(&'a str),
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart {
    Text(String),
    File {
        url: String,
        media_type: Option<String>,
        name: Option<String>,
    },
}
