//! Stored conversation that an agent without memory receives with each prompt.

use super::SessionOutput;
use crate::log::{MessagePart, Reader};
use crate::profile::Profile;
use acpipe_model::backend_options::HistoryLimit;
use acpipe_model::dialect::Transcript;
use acpipe_model::error::Error;
use serde_json::Value;

/// Maximum number of bytes of the log that are read for one prompt; reading delays all other sessions.
const READ_BYTES: u64 = 8 << 20;

/// Bytes of JSON that are counted as one token.
const TOKEN_BYTES: usize = 4;

/// Returns the newest stored messages within the limit, and the message of the prompt.
///
/// # Errors
/// The log cannot be read.
pub fn transcript_before(
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
