//! Positions of updates in the output, so that those which could not be stored are removed.

use acpipe_json::to_raw;
use std::ops::Range;

/// Positions of the updates in the output, by session.
#[derive(Debug, Default)]
pub struct Updates {
    sessions: Vec<SessionUpdates>,
    /// Position of the session of the last update in `sessions`.
    last: usize,
}

/// Updates of one session in the output.
#[derive(Debug)]
struct SessionUpdates {
    id: String,
    /// The id as a JSON string.
    quoted: String,
    /// Number of the session's last chunk at the time of an update, and the update's range in the output.
    ranges: Vec<(u64, Range<usize>)>,
}

impl Updates {
    /// Returns the id of a session as a JSON string; the next call of [`Updates::note`] is about this session.
    pub fn quoted(&mut self, session: &str) -> &str {
        if self
            .sessions
            .get(self.last)
            .is_none_or(|last| last.id != session)
        {
            let known = self.sessions.iter().position(|known| known.id == session);
            self.last = known.unwrap_or(self.sessions.len());
            if known.is_none() {
                self.sessions.push(SessionUpdates {
                    id: session.to_owned(),
                    quoted: to_raw(&session).get().to_owned(),
                    ranges: Vec::new(),
                });
            }
        }
        &self.sessions[self.last].quoted
    }

    /// Records an update in the output.
    pub fn note(&mut self, seq: u64, range: Range<usize>) {
        if let Some(session) = self.sessions.get_mut(self.last) {
            session.ranges.push((seq, range));
        }
    }

    /// Removes the updates of a session after a number from the output.
    pub fn retract(&mut self, session: &str, after: u64, out: &mut Vec<u8>) {
        let own = self.sessions.iter_mut().find(|own| own.id == session);
        let Some(own) = own else { return };
        let first = own.ranges.partition_point(|(seq, _)| *seq <= after);
        let gone: Vec<Range<usize>> = own.ranges.drain(first..).map(|(_, range)| range).collect();
        for range in gone.iter().rev() {
            out.drain(range.clone());
        }
        for (_, range) in self
            .sessions
            .iter_mut()
            .flat_map(|session| &mut session.ranges)
        {
            let before = gone.iter().filter(|gone| gone.end <= range.start);
            let removed: usize = before.map(ExactSizeIterator::len).sum();
            *range = range.start - removed..range.end - removed;
        }
    }

    /// Forgets all positions: the output was handed over.
    pub fn clear(&mut self) {
        for session in &mut self.sessions {
            session.ranges.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(updates: &mut Updates, out: &mut Vec<u8>, session: &str, seq: u64, text: &str) {
        let begin = out.len();
        assert_eq!(updates.quoted(session), format!("{session:?}"));
        out.extend_from_slice(text.as_bytes());
        updates.note(seq, begin..out.len());
    }

    #[test]
    fn updates_that_were_not_stored_are_removed_from_the_output() {
        let (mut updates, mut out) = (Updates::default(), Vec::new());
        written(&mut updates, &mut out, "a", 1, "a1 ");
        written(&mut updates, &mut out, "b", 7, "b7 ");
        written(&mut updates, &mut out, "a", 2, "a2 ");
        written(&mut updates, &mut out, "a", 3, "a3 ");
        written(&mut updates, &mut out, "b", 8, "b8 ");
        updates.retract("a", 1, &mut out);
        assert_eq!(out, b"a1 b7 b8 ");
        updates.retract("b", 7, &mut out);
        assert_eq!(out, b"a1 b7 ");
        updates.retract("a", 0, &mut out);
        assert_eq!(out, b"b7 ");
    }
}
