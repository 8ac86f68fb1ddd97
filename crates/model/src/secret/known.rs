//! Known values of secrets, as fingerprints of bounded size.

use crate::cut::CUT;
use memchr::memmem;
use std::collections::HashMap;
use std::ops::Range;
use tracing::warn;

/// Minimum length in bytes of a known value; shorter values occur in ordinary text.
pub const SHORTEST: usize = 6;

/// Maximum length of a fingerprinted piece. A longer value has several pieces, so that its parts are known, too.
const PIECE: usize = SHORTEST + u64::BITS as usize - 1;

/// Maximum length of what a cut leaves of an escape or a character.
const ESCAPE: usize = 12;

/// Maximum number of pieces of one owner, about 4 MB of values. Its oldest are dropped.
const ROOM: usize = 1 << 16;

/// Maximum number of pieces of all clients that have left. Those of the client with most of them are dropped.
const ROOM_OF_LEFT: usize = 1 << 17;

/// Part of what is dropped beyond the maximum, so that this work is rare.
const SLACK: usize = 8;

const FILTER_BITS: usize = 1 << 16;

/// Fingerprints of the known values of all owners.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Fingerprint → piece.
    pieces: HashMap<u64, SecretPiece>,
    /// Pieces by their first bytes.
    beginnings: PieceIndex,
    /// Pieces by their last bytes, to find what is left of a value behind a cut.
    endings: PieceIndex,
    owners: HashMap<u64, Holding>,
    /// Number of the last owner. Owner 0 is acpipe itself.
    last_owner: u64,
    /// Number of additions.
    age: u64,
}

/// Lengths of pieces by their first or last bytes.
#[derive(Debug, Default)]
struct PieceIndex {
    /// Bytes → lengths of the pieces that have them. Bit 0 is the shortest length.
    lengths: HashMap<u64, u64>,
    /// Bits of the hashes of all bytes.
    filter: Vec<u64>,
}

#[derive(Debug)]
struct SecretPiece {
    first: u64,
    last: u64,
    len: usize,
    holders: u32,
}

/// Pieces of an owner.
#[derive(Debug, Default)]
struct Holding {
    /// Fingerprints with the number of their last addition.
    pieces: HashMap<u64, u64>,
    has_left: bool,
}

impl Known {
    pub fn new_owner(&mut self) -> u64 {
        self.last_owner += 1;
        self.last_owner
    }

    /// Adds values of an owner. Shorter values than [`SHORTEST`] are ignored.
    pub fn add(&mut self, owner: u64, values: &[Vec<u8>]) {
        let holding = self.owners.entry(owner).or_default();
        for piece in values.iter().flat_map(|value| pieces(value)) {
            self.age += 1;
            let (first, print) = (number(piece), fingerprint(piece));
            if holding.pieces.insert(print, self.age).is_some() {
                continue;
            }
            let known = self.pieces.entry(print).or_insert(SecretPiece {
                first,
                last: number(&piece[piece.len() - SHORTEST..]),
                len: piece.len(),
                holders: 0,
            });
            known.holders += 1;
            self.beginnings.note(known.first, known.len);
            self.endings.note(known.last, known.len);
        }
        if holding.pieces.len() > ROOM {
            // The name of this module would look like that of a secret.
            warn!(
                target: "acpipe::logs",
                "a client or the configuration has more secrets than acpipe can know (about 4 MB); logs and tapes may \
                 show the values that came first; pass large values in files"
            );
            let excess = holding.pieces.len() - ROOM + ROOM / SLACK;
            let dropped = holding.drop_oldest(excess);
            self.forget(&dropped);
        }
    }

    /// Marks the owner as one that has left. Its values stay known, since agents may still use them.
    pub fn leave(&mut self, owner: u64) {
        if let Some(holding) = self.owners.get_mut(&owner) {
            holding.has_left = true;
        }
        loop {
            let left = self.owners.values_mut().filter(|holding| holding.has_left);
            let sizes: usize = left.map(|holding| holding.pieces.len()).sum();
            if sizes <= ROOM_OF_LEFT {
                break;
            }
            let left = self
                .owners
                .iter_mut()
                .filter(|(_, holding)| holding.has_left);
            let Some((owner, largest)) = left.max_by_key(|(_, holding)| holding.pieces.len())
            else {
                break;
            };
            let owner = *owner;
            let excess = largest
                .pieces
                .len()
                .div_ceil(SLACK)
                .max(sizes - ROOM_OF_LEFT);
            let dropped = largest.drop_oldest(excess);
            if largest.pieces.is_empty() {
                self.owners.remove(&owner);
            }
            self.forget(&dropped);
        }
    }

    /// Reports the places of known values in a text, which may overlap.
    pub fn find(&self, text: &[u8], found: &mut dyn FnMut(Range<usize>)) {
        if self.pieces.is_empty() {
            return;
        }
        for (at, window) in text.windows(SHORTEST).enumerate() {
            let Some(lengths) = self.beginnings.lengths(number(window)) else {
                continue;
            };
            let rest = &text[at..text.len().min(at + longest(lengths))];
            let mut state = BASIS;
            let mut end = None;
            for (n, byte) in rest.iter().enumerate() {
                state = step(state, *byte);
                let len = n + 1;
                let is_a_length = len >= SHORTEST && lengths >> (len - SHORTEST) & 1 == 1;
                if is_a_length && self.pieces.contains_key(&finished(state, len)) {
                    end = Some(at + len);
                }
            }
            if let Some(end) = end {
                found(at..end);
            }
        }
        self.find_at_cuts(text, found);
    }

    /// Reports what is left of known values where a text was cut: their beginnings before a mark, their ends behind it.
    fn find_at_cuts(&self, text: &[u8], found: &mut dyn FnMut(Range<usize>)) {
        let most = PIECE + ESCAPE;
        let mut from = 0;
        let mut marks = memmem::find_iter(text, CUT).peekable();
        while let Some(mark) = marks.next() {
            let before = from.max(mark.saturating_sub(most))..mark;
            let is_cut = |at: &usize| {
                let lengths = self.beginnings.lengths(number(&text[*at..]));
                lengths.is_some_and(|lengths| longest(lengths) + ESCAPE > mark - at)
            };
            let last = before.end.saturating_sub(SHORTEST - 1);
            if let Some(at) = (before.start..last).find(is_cut) {
                found(at..mark);
            }
            from = mark + CUT.len();
            let until = marks.peek().copied().unwrap_or(text.len());
            let until = until.min(from + most);
            let is_cut = |end: &usize| {
                let lengths = self.endings.lengths(number(&text[end - SHORTEST..]));
                lengths.is_some_and(|lengths| longest(lengths) + ESCAPE > end - from)
            };
            if let Some(end) = (from + SHORTEST..=until).rev().find(is_cut) {
                found(from..end);
            }
        }
    }

    /// Removes pieces that an owner no longer holds, unless others do.
    fn forget(&mut self, dropped: &[u64]) {
        for print in dropped {
            if let Some(piece) = self.pieces.get_mut(print) {
                piece.holders -= 1;
                if piece.holders == 0 {
                    self.pieces.remove(print);
                }
            }
        }
        self.beginnings.clear();
        self.endings.clear();
        let (beginnings, endings) = (&mut self.beginnings, &mut self.endings);
        self.pieces.values().for_each(|piece| {
            beginnings.note(piece.first, piece.len);
            endings.note(piece.last, piece.len);
        });
    }
}

impl Holding {
    fn drop_oldest(&mut self, count: usize) -> Vec<u64> {
        let mut all: Vec<(u64, u64)> = self
            .pieces
            .iter()
            .map(|(print, age)| (*age, *print))
            .collect();
        all.sort_unstable();
        all.truncate(count);
        let dropped = all.into_iter().map(|(_, print)| print);
        let dropped: Vec<u64> = dropped.collect();
        for print in &dropped {
            self.pieces.remove(print);
        }
        dropped
    }
}

impl PieceIndex {
    fn note(&mut self, bytes: u64, len: usize) {
        *self.lengths.entry(bytes).or_default() |= 1 << (len - SHORTEST);
        self.filter.resize(FILTER_BITS / u64::BITS as usize, 0);
        let (word, bit) = filter_bit(bytes);
        self.filter[word] |= bit;
    }

    fn lengths(&self, bytes: u64) -> Option<u64> {
        let (word, bit) = filter_bit(bytes);
        let may_be = self.filter.get(word)? & bit != 0;
        may_be.then(|| self.lengths.get(&bytes).copied()).flatten()
    }

    fn clear(&mut self) {
        self.lengths.clear();
        self.filter.clear();
    }
}

fn longest(lengths: u64) -> usize {
    SHORTEST + (u64::BITS - 1 - lengths.leading_zeros()) as usize
}

/// Returns the pieces that cover a value. The last one ends with the value.
fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = value.chunks_exact(PIECE);
    let is_rest = !whole.remainder().is_empty() && value.len() >= SHORTEST;
    let rest = is_rest.then(|| &value[value.len().saturating_sub(PIECE)..]);
    whole.chain(rest)
}

/// Returns the first bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().take(SHORTEST);
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the word and the bit of a filter for these bytes.
fn filter_bit(bytes: u64) -> (usize, u64) {
    let bit = (bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
    (bit / 64, 1 << (bit % 64))
}

/// First state of a fingerprint, as of FNV-1a.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn step(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

fn finished(state: u64, len: usize) -> u64 {
    (state ^ len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn fingerprint(piece: &[u8]) -> u64 {
    let state = piece.iter().fold(BASIS, |state, byte| step(state, *byte));
    finished(state, piece.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_known(known: &Known, text: &str) -> bool {
        let mut covered = vec![false; text.len()];
        known.find(text.as_bytes(), &mut |range| covered[range].fill(true));
        covered.iter().all(|is_covered| *is_covered)
    }

    fn values(name: &str, count: usize) -> Vec<Vec<u8>> {
        let all = (0..count).map(|n| format!("{name}-{n:08}").into_bytes());
        all.collect()
    }

    #[test]
    fn values_of_any_length_are_found_and_nothing_else() {
        let mut known = Known::default();
        let parts: Vec<String> = (0..40).map(|n| format!("{n:08x}")).collect();
        let long = parts.concat();
        let texts = ["short1", "0123456789", &long];
        let all = texts.map(|text| text.as_bytes().to_vec());
        known.add(0, &all);
        for text in texts {
            assert!(is_known(&known, text), "{text}");
            let mut found = Vec::new();
            known.find(format!("x{text}y").as_bytes(), &mut |range| {
                found.push(range);
            });
            assert_eq!(found.iter().map(|r| r.start).min(), Some(1));
            assert_eq!(found.iter().map(|r| r.end).max(), Some(text.len() + 1));
        }
        for text in ["short", "short2", "012345678", &long[1..PIECE]] {
            known.find(text.as_bytes(), &mut |_| panic!("{text}"));
        }
        // A part of a long value that has a whole piece.
        let part = &long[..PIECE + 5];
        known.find(part.as_bytes(), &mut |range| assert_eq!(range, 0..PIECE));
    }

    #[test]
    fn parts_of_values_are_found_at_cuts_only() {
        let mut known = Known::default();
        let long: Vec<String> = (0..20).map(|n| format!("{n:08x}")).collect();
        let long = long.concat();
        known.add(
            0,
            &["hunter-of-secrets", &long].map(|text| text.as_bytes().to_vec()),
        );
        let found = |text: &str| {
            let mut found = Vec::new();
            known.find(text.as_bytes(), &mut |range| {
                found.push(text[range].to_owned());
            });
            found
        };
        assert_eq!(found("a hunter-of\u{2026} b"), ["hunter-of"]);
        assert_eq!(found("a \u{2026}-secrets b"), ["-secrets"]);
        assert_eq!(found("hunter-o\u{2026}secrets"), ["hunter-o", "secrets"]);
        for text in [
            "hunter-of",
            "hunter-of.",
            "\u{2026} hunter-of",
            "secrets \u{2026}",
            "hunte\u{2026}",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
        for cut in [SHORTEST, 50, PIECE, 100, 150] {
            for text in [
                format!("{}\u{2026}", &long[..cut]),
                format!("\u{2026}{}", &long[long.len() - cut..]),
            ] {
                let mut covered = vec![false; text.len()];
                known.find(text.as_bytes(), &mut |range| covered[range].fill(true));
                let shown = covered.iter().filter(|covered| !**covered).count();
                assert!(
                    shown < CUT.len() + SHORTEST,
                    "{cut}: {shown} bytes of {text}"
                );
            }
        }
    }

    #[test]
    fn owner_with_many_values_loses_its_own_oldest() {
        let mut known = Known::default();
        known.add(0, &values("own", 3));
        let (one, other) = (known.new_owner(), known.new_owner());
        known.add(one, &values("first", 3));
        for n in 0..4 {
            known.add(other, &values(&format!("flood{n}"), ROOM / 2));
        }
        assert!(is_known(&known, "own-00000000") && is_known(&known, "first-00000002"));
        assert!(is_known(&known, "flood3-00000000"), "the newest");
        assert!(!is_known(&known, "flood0-00000000"), "the oldest");
        assert!(known.owners[&other].pieces.len() <= ROOM);
        assert!(known.pieces.len() <= ROOM + 6);
    }

    #[test]
    fn values_of_clients_that_have_left_are_bounded_and_the_largest_loses_first() {
        let mut known = Known::default();
        let small = known.new_owner();
        known.add(small, &values("small", 10));
        known.leave(small);
        for n in 0..4 {
            let large = known.new_owner();
            known.add(large, &values(&format!("large{n}"), ROOM / 4 * 3));
            known.leave(large);
        }
        assert!(is_known(&known, "small-00000000"));
        assert!(known.pieces.len() <= ROOM_OF_LEFT);
        assert!(known.beginnings.lengths.len() <= known.pieces.len());
        assert!(known.endings.lengths.len() <= known.pieces.len());
    }

    #[test]
    fn value_stays_known_while_one_owner_holds_it() {
        let mut known = Known::default();
        let (one, other) = (known.new_owner(), known.new_owner());
        known.add(one, &values("both", 1));
        known.add(other, &values("both", 1));
        for n in 0..3 {
            known.add(one, &values(&format!("flood{n}"), ROOM / 2));
        }
        assert!(
            !known.owners[&one]
                .pieces
                .contains_key(&fingerprint(b"both-00000000"))
        );
        assert!(is_known(&known, "both-00000000"));
    }
}
