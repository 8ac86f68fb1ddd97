//! Reading of the ACP updates in a log.

use super::index::Source;
use super::{Log, storage_error};
use crate::core::acp_notification::AcpNotification;
use crate::core::error::Error;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Record of an ACP update.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateLine<'a> {
    #[serde(borrow)]
    record: Cow<'a, str>,
    #[serde(borrow, default)]
    turn_id: Option<Cow<'a, str>>,
    #[serde(default)]
    of_subagent: bool,
    #[serde(borrow, default)]
    notification: Option<&'a RawValue>,
    #[serde(borrow, default)]
    update: Option<&'a RawValue>,
}

impl Log {
    /// Returns the turn of the message at a position, with the range of the log that has the turn's ACP updates.
    /// `None` if the message was not received as ACP updates.
    #[must_use]
    pub fn updates_of(&self, place: usize) -> Option<(String, Range<u64>)> {
        let message = self.index.messages.get(place)?;
        let Source::Chunks { turn, .. } = &message.source else {
            return None;
        };
        let updates = self.index.turn(turn)?.updates.clone()?;
        Some((turn.clone(), updates))
    }

    /// Passes the ACP updates of a turn in a range to `take`, and subtracts the bytes read from `budget`, which ends
    /// the reading. Returns where to continue; `None` at the end of the range.
    ///
    /// # Errors
    /// The disk fails.
    pub fn read_updates(
        &self,
        turn: &str,
        range: Range<u64>,
        budget: &mut u64,
        mut take: impl FnMut(AcpNotification<'_>),
    ) -> Result<Option<u64>, Error> {
        let begin = range.start.max(self.file.begin());
        let end = range.end.min(self.end());
        let next = self.lines(begin..end, |line, _| {
            *budget = budget.saturating_sub(line.len() as u64 + 1);
            if let Ok(stored) = serde_json::from_slice::<UpdateLine<'_>>(line)
                && stored.record == "update"
                && stored.turn_id.as_deref() == Some(turn)
            {
                stored.pass_to(&mut take);
            }
            *budget > 0
        });
        let next = next.map_err(|e| storage_error("read", &e))?;
        Ok((next < end && *budget == 0).then_some(next))
    }
}

impl UpdateLine<'_> {
    fn pass_to(&self, take: &mut impl FnMut(AcpNotification<'_>)) {
        if let Some(update) = self.update {
            take(AcpNotification::Update(update.get().as_bytes()));
        }
        if let Some(line) = self.notification {
            let line = line.get();
            // The id is not a part of the line, so the notification is parsed.
            let session = (!self.of_subagent).then_some("");
            take(AcpNotification::Line { line, session });
        }
    }
}
