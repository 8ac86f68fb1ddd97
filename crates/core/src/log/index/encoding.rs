//! Encoding of an index for the file beside its log, so that opening a long log need not read all of it.
//!
//! An encoded index covers the log up to a length. It is used only if the log still has that length or more, and
//! the bytes at both ends of the covered part are unchanged: a log is appended to, replaced as a whole, or
//! shortened by a crash. Otherwise the log is read, as it is without an index.

use super::{IdentityCopies, Index, IndexedTurn, Mark, Message, Source};
use crate::log::record::Identity;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Version of the encoding. It changes with the encoding, and with the records that an index considers.
const VERSION: u32 = 1;

/// Bytes at each end of the covered part of the log that are compared.
const COMPARED: u64 = 4 << 10;

/// First line of an encoded index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    version: u32,
    /// Length of the log that the index covers, in bytes.
    covered: u64,
    /// Hash of the log's bytes at both ends of that part.
    log_hash: u64,
    /// Hash of the rest of the encoded index.
    hash: u64,
}

/// Second line of an encoded index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    seq: u64,
    #[serde(borrow)]
    updated_at: Cow<'a, str>,
    corrupt: u64,
    copies: IdentityCopies,
    #[serde(borrow)]
    turns: Vec<EncodedTurn<'a>>,
    #[serde(borrow)]
    messages: Vec<EncodedMessage<'a>>,
    /// Numbers of chunks with their offsets.
    marks: Vec<(u64, u64)>,
}

/// Id, begin, `over`, `prompted`, ranges of the summary and of the updates.
type EncodedTurn<'a> = (
    Cow<'a, str>,
    u64,
    bool,
    bool,
    Option<(u64, u64)>,
    Option<(u64, u64)>,
);

/// Id, turn (its position in the list of turns), begin, end (of a message in one line).
type EncodedMessage<'a> = (Cow<'a, str>, Option<usize>, u64, u64);

impl Index {
    /// Encodes the index of a log of this length. Returns `None` if the log cannot be read, or if its identity is
    /// not the one of its last identity record.
    pub fn encode(
        &self,
        covered: u64,
        read: impl Fn(Range<u64>) -> io::Result<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if self.copies.count == 0 {
            return None;
        }
        let mut turns: Vec<(&String, &IndexedTurn)> = self.turns.iter().collect();
        turns.sort_unstable_by_key(|(id, turn)| (turn.begin, *id));
        let places: HashMap<&str, usize> = turns
            .iter()
            .enumerate()
            .map(|(place, (id, _))| (id.as_str(), place))
            .collect();
        let pair = |range: &Range<u64>| (range.start, range.end);
        let message = |message: &'_ Message| {
            let (turn, begin, end) = match &message.source {
                Source::Line(at) => (None, at.start, at.end),
                Source::Chunks { turn, begin } => (Some(*places.get(turn.as_str())?), *begin, 0),
            };
            Some((Cow::Owned(message.id.clone()), turn, begin, end))
        };
        let body = Body {
            seq: self.seq,
            updated_at: Cow::Borrowed(&self.updated_at),
            corrupt: self.corrupt,
            copies: self.copies.clone(),
            messages: self.messages.iter().map(message).collect::<Option<_>>()?,
            turns: turns
                .iter()
                .map(|(id, turn)| {
                    let summary = turn.summary.as_ref().map(pair);
                    let updates = turn.updates.as_ref().map(pair);
                    let id = Cow::Borrowed(id.as_str());
                    (id, turn.begin, turn.over, turn.prompted, summary, updates)
                })
                .collect(),
            marks: self.marks.iter().map(|mark| (mark.seq, mark.at)).collect(),
        };
        let body = serde_json::to_vec(&body).ok()?;
        let header = Header {
            version: VERSION,
            covered,
            log_hash: hash_of_log(covered, read).ok()?,
            hash: hash(&body),
        };
        let mut encoded = serde_json::to_vec(&header).ok()?;
        encoded.push(b'\n');
        encoded.extend_from_slice(&body);
        Some(encoded)
    }

    /// Decodes an index of a log with this length; returns the length that it covers, too. Returns `None` if the
    /// index is damaged, of another version, or may belong to other content.
    pub fn decode(
        encoded: &[u8],
        len: u64,
        read: impl Fn(Range<u64>) -> io::Result<Vec<u8>>,
    ) -> Option<(Self, u64)> {
        let line = memchr::memchr(b'\n', encoded)?;
        let (header, body) = (&encoded[..line], &encoded[line + 1..]);
        let header: Header = serde_json::from_slice(header).ok()?;
        if header.version != VERSION || header.covered > len || header.hash != hash(body) {
            return None;
        }
        if header.log_hash != hash_of_log(header.covered, &read).ok()? {
            return None;
        }
        let body: Body<'_> = serde_json::from_slice(body).ok()?;
        let last = body.copies.last.clone()?;
        let identity = Identity::of_line(&read(last).ok()?)?;
        let message = |(id, turn, begin, end): EncodedMessage<'_>| {
            let source = match turn {
                None => Source::Line(begin..end),
                Some(place) => Source::Chunks {
                    turn: body.turns.get(place)?.0.clone().into_owned(),
                    begin,
                },
            };
            let id = id.into_owned();
            Some(Message { id, source })
        };
        let messages: Vec<Message> = body
            .messages
            .into_iter()
            .map(message)
            .collect::<Option<_>>()?;
        let ids = messages.iter().enumerate();
        let by_id = ids.map(|(n, message)| (message.id.clone(), n)).collect();
        let range = |(start, end): (u64, u64)| start..end;
        let turn = |(id, begin, over, prompted, summary, updates): EncodedTurn<'_>| {
            let turn = IndexedTurn {
                begin,
                over,
                prompted,
                summary: summary.map(range),
                updates: updates.map(range),
            };
            (id.into_owned(), turn)
        };
        let index = Self {
            identity: Some(identity),
            copies: body.copies,
            seq: body.seq,
            updated_at: body.updated_at.into_owned(),
            messages,
            corrupt: body.corrupt,
            corrupt_since_chunk: 0,
            by_id,
            turns: body.turns.into_iter().map(turn).collect(),
            marks: body
                .marks
                .into_iter()
                .map(|(seq, at)| Mark { seq, at })
                .collect(),
        };
        Some((index, header.covered))
    }
}

/// Returns the hash of the bytes at both ends of a log of this length.
fn hash_of_log(len: u64, read: impl Fn(Range<u64>) -> io::Result<Vec<u8>>) -> io::Result<u64> {
    let mut ends = read(0..len.min(COMPARED))?;
    ends.extend(read(len.saturating_sub(COMPARED)..len)?);
    Ok(hash(&ends))
}

/// FNV-1a: files outlive the process, so the hash must not change with the standard library.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
