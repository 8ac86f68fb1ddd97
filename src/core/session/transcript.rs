//! Stored conversation that an agent without memory receives with each prompt.

use super::{SessionMachine, SessionOutput};
use crate::core::backend_options::HistoryLimit;
use crate::core::cx::Cx;
use crate::core::dialect::{AgentCall, Transcript};
use crate::core::error::Error;
use crate::core::log::{MessagePart, Reader};
use crate::core::profile::Profile;
use serde_json::Value;

/// Maximum number of bytes of the log that are read for one prompt; reading delays all other sessions.
const READ_BYTES: u64 = 8 << 20;

/// Bytes of JSON that are counted as one token.
const TOKEN_BYTES: usize = 4;

impl SessionMachine {
    /// Passes the stored conversation to an agent that does not remember it. The message of the prompt is not
    /// stored yet.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn give_transcript(
        &mut self,
        message: &Value,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let limit = cx.agent.spec.backend.history;
        let agent_session = self.talk.agent_session().map(str::to_owned);
        let (Some(connection), Some(agent_session)) = (&mut cx.agent.connection, agent_session)
        else {
            return Ok(());
        };
        if connection.facts().takes_transcript {
            let transcript = transcript_before(&mut self.talk.output, message, limit)?;
            connection.tell(AgentCall::Transcript {
                session: &agent_session,
                transcript,
            });
        }
        Ok(())
    }
}

/// Returns the newest stored messages within the limit, and the message of the prompt.
///
/// # Errors
/// The log cannot be read.
fn transcript_before(
    output: &mut SessionOutput,
    message: &Value,
    limit: HistoryLimit,
) -> Result<Transcript, Error> {
    output.wait_for_append()?;
    let mut budget = READ_BYTES;
    let mut bytes = limit.tokens.saturating_mul(TOKEN_BYTES);
    let mut earlier = Vec::new();
    let mut omitted = output.log().count();
    for place in (0..usize::try_from(omitted).unwrap_or(usize::MAX)).rev() {
        if earlier.len() == limit.messages || budget == 0 {
            break;
        }
        let mut reader = Reader::default();
        let MessagePart::Whole(read) =
            output
                .log()
                .read_message(place, Profile::V7, &mut reader, &mut budget)?
        else {
            break;
        };
        if let Some(read) = read {
            let size = read.to_string().len();
            if size > bytes {
                break;
            }
            bytes -= size;
            earlier.push(read);
        }
        omitted -= 1;
    }
    earlier.reverse();
    Ok(Transcript {
        earlier,
        message: message.clone(),
        omitted,
    })
}
