//! Calls to an agent, answers to its requests, and the texts that a dialect reads.

use super::{Opening, PromptPart, SessionSetup, Transcript};
use crate::client_answer::ClientAnswer;
use crate::decision::{Decision, Effect};
use crate::error::Error;
use crate::event::{CallId, ToolUpdate};
use crate::host::HostAnswer;
use crate::line_repair::LostLine;
use crate::setting::Setting;
use crate::update_run::UpdateRun;
use acpipe_json::repair::Faults;
use serde_json::value::RawValue;

/// Call to an agent. A `session` is an agent session id.
#[derive(Debug)]
pub enum AgentCall<'a> {
    Start,
    Open {
        call: CallId,
        way: Opening<'a>,
        place: &'a SessionSetup<'a>,
    },
    /// Discards the session that this call opens or has opened: it is no longer needed.
    Forget(CallId),
    /// Requests the next page of the agent's session list.
    List {
        call: CallId,
        /// Directory of the sessions; `None` for all.
        cwd: Option<&'a str>,
        /// Where the page begins; `None` for the first one.
        cursor: Option<&'a str>,
    },
    /// Closes a session that is no longer needed. The result is `true` if the agent answers with `Done` or `Failed`: the
    /// session must not be opened again before that.
    Close {
        call: CallId,
        session: &'a str,
    },
    /// Signs the user in. The result is `false` if there is no call to send, since the agent reads keys from its
    /// environment or files itself.
    Authenticate {
        call: CallId,
        method: &'a str,
    },
    /// Signs the user out. Made only if the agent supports it.
    Logout(CallId),
    /// Passes on the message of the next prompt and the messages before it, once for all attempts at a prompt. Made only
    /// for a dialect that takes transcripts.
    Transcript {
        session: &'a str,
        transcript: Transcript,
    },
    /// Sends a prompt. It is an error if the agent cannot take one of the parts, unless a link may be sent in its place.
    Prompt {
        call: CallId,
        session: &'a str,
        parts: &'a [PromptPart<'a>],
        /// `true` if a link may be sent in place of a part.
        degrade: bool,
    },
    /// Withdraws the prompt of this call, which was not sent after all.
    WithdrawPrompt {
        call: CallId,
        session: &'a str,
    },
    /// Sends a message into the running turn of a session; parts as for a prompt. Made only if the agent has the
    /// capability.
    Steer {
        session: &'a str,
        parts: &'a [PromptPart<'a>],
        /// `true` if a link may be sent in place of a part.
        degrade: bool,
    },
    /// Sets a mode, model or option of a session.
    Set {
        call: CallId,
        session: &'a str,
        /// The setting, with the agent's ids.
        setting: &'a Setting,
    },
    /// Cancels the turn of a session.
    Cancel(&'a str),
    /// Gives up a turn of a session whose cancel was not answered. The result is `true` if the session has its own
    /// process, which is ended: the session has to be opened again. Otherwise nothing is done.
    Abandon(&'a str),
    /// Passes on a message of a client, of a method that acpipe does not interpret. The result is `false` if the protocol
    /// has no such messages.
    Forward {
        /// Call that is answered with the result; `None` for a notification.
        call: Option<CallId>,
        session: Option<&'a str>,
        method: &'a str,
        params: Option<&'a RawValue>,
    },
    WithdrawForwarded(CallId),
}

impl<'a> AgentCall<'a> {
    #[must_use]
    pub fn prompt(
        call: CallId,
        session: &'a str,
        parts: &'a [PromptPart<'a>],
        degrade: bool,
    ) -> Self {
        Self::Prompt {
            call,
            session,
            parts,
            degrade,
        }
    }
}

/// Answer to a request of an agent.
#[derive(Debug, Clone, Copy)]
pub enum AgentAnswer<'a> {
    Permission(&'a Decision),
    /// Decision of the policy on a tool call that the agent reported before it runs.
    Hook(Effect),
    /// Answer to an elicitation. The first option of
    /// [`elicitation_options`](crate::decision::elicitation_options) means that the user answered, the second that they
    /// declined, no option that they cancelled.
    Elicitation(&'a Decision),
    Host(Result<&'a HostAnswer, &'a Error>),
    /// Response of a client, as the client wrote it.
    Forwarded(&'a ClientAnswer),
}

/// Describes a tool call with another input.
pub type Rewrite<'a> = dyn Fn(&RawValue) -> Option<ToolUpdate<'static>> + 'a;

/// Request of an agent that is not answered yet.
pub struct AgentRequest<'a> {
    /// Describes the tool call of a permission request with another input, with which a client lets it run. `None` if
    /// the agent runs calls only with their own input, or does not wait for an answer.
    pub rewrite: Option<Box<Rewrite<'a>>>,
}

/// Line of a transport.
#[derive(Debug, Clone, Copy)]
pub enum AgentLine<'a> {
    /// A line as it was sent, or repaired.
    Whole(&'a [u8]),
    /// The rest of a line that is given up, because it is too long or cannot be parsed: the call that it answered
    /// fails, and the request that it sent is answered with an error.
    Lost(&'a LostLine<'a>),
}

/// Input that was not read line by line.
#[derive(Debug, Clone, Copy)]
pub enum Noted<'a> {
    /// The lines of a run were handled and are not read one by one.
    Run(&'a UpdateRun<'a>),
    /// A line with these faults was read after a repair.
    Repaired(Faults),
}

/// Text of an agent whose meaning depends on the protocol.
#[derive(Debug, Clone, Copy)]
pub enum AgentText<'a> {
    /// A message that stands in a line with other text.
    Quoted(&'a str),
    /// A text that the agent sent in place of an error.
    Error(&'a str),
}

#[derive(Debug)]
pub enum TextMeaning {
    /// A message of the agent, or no message at all.
    Unknown,
    /// A message that only acpipe sends to agents. An agent's log may quote it.
    OwnMessage,
    /// A response to a request of acpipe, or the end of a turn. It is not read from a line that quotes it, such as a log
    /// line with the text of the model.
    Response,
    Error(Error),
}
