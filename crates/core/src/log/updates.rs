//! Reading of the ACP updates in a log.

use super::index::Source;
use super::{Log, storage_error};
use acpipe_json::{string_len, to_raw};
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::error::Error;
use acpipe_model::update_run::UpdateRun;
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
    /// Offset of the text in the notification of a run.
    #[serde(default)]
    text_at: usize,
    /// Texts of the further notifications of a run, which are otherwise like the first one.
    #[serde(borrow, default)]
    texts: Vec<&'a RawValue>,
}

impl Log {
    /// Records an ACP update, which has no number.
    pub fn update(&mut self, turn: Option<&str>, update: AcpNotification<'_>) {
        let turn_json = to_raw(&turn);
        let (name, body, is_own) = match update {
            AcpNotification::Line { line, session } => (
                "notification",
                line.trim_ascii_end().as_bytes(),
                session.is_some(),
            ),
            AcpNotification::Update(update) => ("update", update, true),
        };
        let own = if is_own { "" } else { "\"ofSubagent\":true," };
        let head = format!(r#"{{"record":"update","turnId":{turn_json},{own}"{name}":"#);
        let at = self
            .storage
            .add_parts(head.as_bytes(), body, self.index.seq);
        self.forget_lost();
        if let (Some(at), Some(turn)) = (at, turn) {
            self.index.update(turn, &at);
        }
    }

    /// Records a run of ACP updates, which have no numbers: the first one, and the texts of the others.
    pub fn update_run(&mut self, turn: Option<&str>, run: &UpdateRun<'_>) {
        let Some((first, others)) = run.texts.split_first() else {
            return;
        };
        let head = format!(
            r#"{{"record":"update","turnId":{},"notification":{},"textAt":{},"texts":["#,
            to_raw(&turn),
            run.original.line,
            first.start,
        );
        let at = self.storage.add(|out| {
            out.extend_from_slice(head.as_bytes());
            for (n, text) in others.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(&run.lines[text.clone()]);
            }
            out.extend_from_slice(b"]}\n");
        });
        if let Some(turn) = turn {
            self.index.update(turn, &at);
        }
    }

    /// Returns the turn of the message at a position, with the range of the log that has the turn's ACP updates.
    /// `None` if the message was not received as ACP updates.
    pub fn updates_of(&self, place: usize) -> Option<(String, Range<u64>)> {
        let message = self.index.messages.get(place)?;
        let Source::Chunks { turn, .. } = &message.source else {
            return None;
        };
        let updates = self.index.turn(turn)?.updates.clone()?;
        Some((turn.clone(), updates))
    }

    /// Returns `true` if the message at a position is the prompt of the turn whose message follows it.
    pub fn is_answered_next(&self, place: usize) -> bool {
        let Some([prompt, answer]) = self.index.messages.get(place..place.saturating_add(2)) else {
            return false;
        };
        let (Source::Line(at), Source::Chunks { turn, .. }) = (&prompt.source, &answer.source)
        else {
            return false;
        };
        let turn = self.index.turn(turn);
        turn.is_some_and(|turn| turn.prompted && turn.begin == at.start)
    }

    /// Returns `true` if the turn did not end, because acpipe exited or the disk failed. Its last chunk is then one
    /// of the next acpipe.
    pub fn is_interrupted(&self, turn: &str) -> bool {
        let turn = self.index.turn(turn);
        turn.is_some_and(|turn| turn.over && turn.prompted && turn.summary.is_none())
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
        let begin = range.start.max(self.storage.file().begin());
        let end = range.end.min(self.storage.end());
        let next = self.storage.lines(begin..end, |line, _| {
            *budget = budget.saturating_sub(line.len() as u64 + 1);
            if let Ok(stored) = serde_json::from_slice::<UpdateLine<'_>>(line)
                && stored.record == "update"
                && stored.turn_id.as_deref() == Some(turn)
            {
                *budget = budget.saturating_sub(stored.repeated_bytes());
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
            let Some((before, after)) = self.around_text(line) else {
                return;
            };
            for text in &self.texts {
                let line = [before, text.get(), after].concat();
                take(AcpNotification::Line {
                    line: &line,
                    session,
                });
            }
        }
    }

    /// Returns the parts of a run's first notification before and after its text.
    fn around_text<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str)> {
        let (before, text) = line.split_at_checked(self.text_at)?;
        Some((before, text.get(string_len(text.as_bytes())?..)?))
    }

    /// Returns the size of the notifications that are recorded as texts only.
    fn repeated_bytes(&self) -> u64 {
        let line = self.notification.map_or(0, |line| line.get().len());
        (line * self.texts.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Record;
    use crate::store::{MemoryStore, Store as _};
    use acpipe_protocol::chunk::Chunk;

    #[test]
    fn updates_of_each_turn_are_found_again_after_the_log_is_read() {
        let mut log = Log::open(MemoryStore.open("a").unwrap()).unwrap();
        for turn in ["one", "two"] {
            log.append(&Record::Prompt {
                at: "2026-01-02T03:04:05Z",
                turn_id: turn,
                message: &serde_json::json!({ "id": format!("user-{turn}"), "role": "user", "parts": [] }),
            });
            let start = Chunk::Start {
                message_id: turn,
                message_metadata: None,
            };
            log.chunk(Some(turn), &start);
            log.update(Some(turn), AcpNotification::Update(br#"{"n":1.50}"#));
            log.update(None, AcpNotification::Update(b"{}"));
            log.update(Some("other"), AcpNotification::Update(b"{}"));
            log.update(Some(turn), AcpNotification::Update(br#"{"n":2}"#));
        }
        log.write().unwrap();
        let log = Log::open(log.storage.into_file()).unwrap();
        assert!(log.updates_of(0).is_none(), "a prompt has no updates");
        for (place, turn) in [(1, "one"), (3, "two")] {
            let (found, range) = log.updates_of(place).unwrap();
            assert_eq!(found, turn);
            // Each piece has one line, as its budget is smaller than the line.
            let (mut texts, mut next) = (Vec::new(), Some(range.start));
            while let Some(start) = next {
                let mut budget = 1;
                let read = log.read_updates(turn, start..range.end, &mut budget, |update| {
                    let mut text = Vec::new();
                    update.write("0", &mut text);
                    texts.push(String::from_utf8(text).unwrap());
                });
                next = read.unwrap();
            }
            assert_eq!(texts.len(), 2, "{texts:?}");
            assert!(texts[0].contains(r#""update":{"n":1.50}"#), "{texts:?}");
            assert!(texts[1].contains(r#""update":{"n":2}"#), "{texts:?}");
        }
    }
}
