//! The file with copies of all cards, `cards.cache` in the state directory. It can be deleted at any time.
//!
//! It has a header, a hash of the rest, and for each session the stamp of its files, what lists are sorted and
//! filtered by, and the card's JSON. Numbers are little-endian; a text is preceded by its length.

use crate::regular;
use crate::store::names::card_cache;
use crate::store::replaced::{inode, put};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;
use tracing::debug;

/// Beginning of the file. Another version of acpipe may write other cards.
const HEADER: &str = concat!("acpipe cards 1 ", env!("CARGO_PKG_VERSION"), "\n");

/// Maximum size of the file in bytes: about 200,000 sessions.
const MAX_BYTES: u64 = 64 << 20;

/// Identification of the content of a log and of its card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    /// Time of the last change of the log, in nanoseconds since 1970.
    changed: u64,
    log: u64,
    /// Inode of the card's file; 0 without a card.
    card: u64,
}

impl Stamp {
    /// Returns the stamp of a log, without its card; `None` if it is not a regular file.
    pub fn of(log: &Metadata) -> Option<Self> {
        let changed = log.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH);
        log.is_file().then_some(Self {
            len: log.len(),
            changed: changed.ok()?.as_nanos().try_into().ok()?,
            log: inode(log).1,
            card: 0,
        })
    }

    /// Adds the inode of the card's file.
    pub fn with_card(self, card: Option<u64>) -> Self {
        let card = card.unwrap_or_default();
        Self { card, ..self }
    }
}

/// Card in the cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedCard<'a> {
    pub stamp: Stamp,
    pub updated_at: &'a str,
    pub session_id: &'a str,
    pub cwd: &'a str,
    /// The whole card.
    pub json: &'a [u8],
}

/// Card to write, with the name of its file.
#[derive(Debug)]
pub struct NewCard<'a> {
    pub name: &'a [u8],
    pub stamp: Stamp,
    pub updated_at: &'a str,
    pub session_id: &'a str,
    pub cwd: &'a str,
    pub json: Cow<'a, [u8]>,
}

/// Content of the file; empty if it is missing, damaged, or of another version.
#[derive(Debug)]
pub struct Cache(Vec<u8>);

impl Cache {
    /// Reads the cache beside a directory of logs.
    pub fn read(sessions: &Path) -> Self {
        Self(regular::read(&card_cache(sessions), MAX_BYTES).unwrap_or_default())
    }

    /// Returns the cards.
    pub fn cards(&self) -> Copies<'_> {
        let entries = self.0.strip_prefix(HEADER.as_bytes());
        let entries = entries.and_then(|rest| {
            let (checked, entries) = rest.split_at_checked(8)?;
            (checked == hash(entries).to_le_bytes()).then_some(entries)
        });
        let mut rest = entries.unwrap_or_default();
        Copies {
            all: std::iter::from_fn(|| entry(&mut rest)).collect(),
            next: 0,
            by_name: HashMap::new(),
        }
    }
}

/// Cards of the cache. A directory is usually read in the same order each time, so the next card is tried first.
#[derive(Debug)]
pub struct Copies<'a> {
    all: Vec<(&'a [u8], CachedCard<'a>)>,
    next: usize,
    /// Positions of all cards by the names of their files, once a card was not the next.
    by_name: HashMap<&'a [u8], usize>,
}

impl<'a> Copies<'a> {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the card of this name.
    pub fn take(&mut self, name: &[u8]) -> Option<CachedCard<'a>> {
        let is_next = |(found, _): &&(&[u8], _)| *found == name;
        if let Some((_, card)) = self.all.get(self.next).filter(is_next) {
            self.next += 1;
            return Some(*card);
        }
        if self.by_name.is_empty() {
            let places = self.all.iter().enumerate();
            self.by_name = places.map(|(place, (name, _))| (*name, place)).collect();
        }
        let place = *self.by_name.get(name)?;
        self.next = place + 1;
        Some(self.all[place].1)
    }
}

/// Writes the cache. Without it, lists read the cards.
pub fn write(sessions: &Path, cards: &[NewCard<'_>]) {
    let mut entries = Vec::new();
    for card in cards {
        let Stamp {
            len,
            changed,
            log,
            card: card_file,
        } = card.stamp;
        for number in [len, changed, log, card_file] {
            entries.extend_from_slice(&number.to_le_bytes());
        }
        let texts = [
            card.name,
            card.updated_at.as_bytes(),
            card.session_id.as_bytes(),
            card.cwd.as_bytes(),
            &card.json,
        ];
        for text in texts {
            entries.extend_from_slice(&(text.len() as u64).to_le_bytes());
            entries.extend_from_slice(text);
        }
    }
    let bytes = [HEADER.as_bytes(), &hash(&entries).to_le_bytes(), &entries].concat();
    if bytes.len() as u64 > MAX_BYTES {
        return;
    }
    if let Err(error) = put(&card_cache(sessions), "cache-new", &bytes) {
        debug!(%error, "cannot write the cache of cards");
    }
}

/// Takes the next entry.
fn entry<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], CachedCard<'a>)> {
    let stamp = Stamp {
        len: number(rest)?,
        changed: number(rest)?,
        log: number(rest)?,
        card: number(rest)?,
    };
    let name = text(rest)?;
    let card = CachedCard {
        stamp,
        updated_at: std::str::from_utf8(text(rest)?).ok()?,
        session_id: std::str::from_utf8(text(rest)?).ok()?,
        cwd: std::str::from_utf8(text(rest)?).ok()?,
        json: text(rest)?,
    };
    Some((name, card))
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(number(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(text)
}

/// FNV-1a over words: the file is large, and read for each list.
fn hash(bytes: &[u8]) -> u64 {
    let (words, end) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let words = words.chain(end.iter().map(|byte| u64::from(*byte)));
    words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        (hash.rotate_left(5) ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}
