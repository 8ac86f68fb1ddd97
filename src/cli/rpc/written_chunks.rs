//! Positions of chunks in the output, so that those which could not be stored can be removed.

use acpipe_core::client_sink::ChunkAddress;
use std::ops::Range;

/// Positions of the chunks in an output buffer.
#[derive(Default)]
pub struct WrittenChunks(Vec<ChunkRange>);

/// Adjacent chunks of one session in the output buffer.
struct ChunkRange {
    session: String,
    /// Sequence number and start offset of each chunk.
    begins: Vec<(u64, usize)>,
    end: usize,
}

impl WrittenChunks {
    /// Adds the last chunk of the buffer.
    pub fn add(&mut self, place: ChunkAddress<'_>, range: Range<usize>) {
        let Range { start: begin, end } = range;
        match self.0.last_mut() {
            Some(last) if last.end == begin && last.session == place.session => {
                last.begins.push((place.seq, begin));
                last.end = end;
            }
            _ => self.0.push(ChunkRange {
                session: place.session.to_owned(),
                begins: vec![(place.seq, begin)],
                end,
            }),
        }
    }

    /// Removes the chunks of a session after this number from the buffer.
    pub fn retract(&mut self, session: &str, after: u64, out: &mut Vec<u8>) {
        let mut gone = 0;
        for chunks in &mut self.0 {
            // Earlier ranges may already have been removed.
            chunks.end -= gone;
            for (_, begin) in &mut chunks.begins {
                *begin -= gone;
            }
            let first = chunks.begins.iter().position(|(seq, _)| *seq > after);
            if let Some(first) = first.filter(|_| chunks.session == session) {
                let begin = chunks.begins[first].1;
                out.drain(begin..chunks.end);
                gone += chunks.end - begin;
                chunks.begins.truncate(first);
                chunks.end = begin;
            }
        }
    }

    /// Forgets all chunks, since the buffer was taken.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
