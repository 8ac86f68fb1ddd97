//! Lists of cards.
//!
//! Reading ten thousand cards takes a fifth of a second, so a list of many sessions leaves a copy of all cards in
//! one file ([`cache`]). A copy is used if log and card are still the files that they were; any other card is read.

mod cache;

use super::{card, names, real_path, whole_card};
use crate::regular;
use acpipe_core::store::{Card, CardQuery};
use acpipe_json::read_bytes;
use cache::{Cache, CachedCard, Stamp};
use memchr::memmem;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::thread;
use tracing::warn;

/// Number of cards that were not in the cache from which it is written again, also in proportion to all cards.
const MANY: usize = 64;
const MANY_SHARE: usize = 16;

/// Number of logs from which several threads read their metadata, and the maximum number of threads.
const LOGS_PER_THREAD: usize = 1000;
const MAX_THREADS: usize = 4;

/// Log in the directory.
struct LogEntry {
    entry: DirEntry,
    /// Name without the extension.
    name: Vec<u8>,
}

/// Stored session of a list.
struct ListedCard<'a> {
    log: &'a LogEntry,
    stamp: Option<Stamp>,
    card: CardSource<'a>,
}

enum CardSource<'a> {
    /// Copy in the cache.
    Cached(CachedCard<'a>),
    /// Card that was read from its file or computed from the log.
    Read(Box<Card>),
}

impl ListedCard<'_> {
    /// Returns the sort key: time of the last activity, then id.
    fn order(&self) -> (&str, &str) {
        match &self.card {
            CardSource::Cached(card) => (card.updated_at, card.session_id),
            CardSource::Read(card) => (&card.updated_at, &card.session_id),
        }
    }

    fn cwd(&self) -> &str {
        match &self.card {
            CardSource::Cached(card) => card.cwd,
            CardSource::Read(card) => &card.cwd,
        }
    }

    /// Returns `false` if no agent gave the session this id; its JSON form is `json`.
    fn may_have_agent_session(&self, id: &str, json: &str) -> bool {
        match &self.card {
            CardSource::Cached(card) => memmem::find(card.json, json.as_bytes()).is_some(),
            CardSource::Read(card) => card.agents.iter().any(|given| given.id == id),
        }
    }

    /// Returns `false` if the session has neither messages nor a title.
    fn is_used(&self) -> bool {
        match &self.card {
            CardSource::Cached(card) => {
                let has = |text: &[u8]| memmem::find(card.json, text).is_some();
                !(has(br#""messages":0"#) && has(br#""title":null"#))
            }
            CardSource::Read(card) => card.is_used(),
        }
    }

    fn card(&self) -> Option<Card> {
        match &self.card {
            CardSource::Cached(cached) => {
                let card = read_bytes(cached.json).ok();
                card.or_else(|| read(self.log, super::card))
            }
            CardSource::Read(card) => Some(Card::clone(card)),
        }
    }
}

/// Returns the cards of the logs in a directory that each query selects, unsorted.
///
/// # Errors
/// The directory cannot be read.
pub fn list(sessions: &Path, queries: &[CardQuery]) -> io::Result<Vec<Vec<Card>>> {
    list_with(sessions, queries, card)
}

/// Returns the selected cards, without sessions whose log a process is writing.
///
/// # Errors
/// The directory cannot be read.
pub fn list_at_rest(sessions: &Path, query: CardQuery) -> io::Result<Vec<Card>> {
    let lists = list_with(sessions, &[query], card_at_rest)?;
    Ok(lists.into_iter().flatten().collect())
}

/// Returns the card of a log. If the card does not cover the whole log, it is computed from the log, except while a
/// process has the session open: its log may be large, and it grows.
fn card_at_rest(log: &Path) -> io::Result<Option<Card>> {
    let is_open = |log: &Path| {
        let locked = regular::open_to_read(log).map(|file| file.try_lock_shared());
        matches!(locked, Ok(Err(fs::TryLockError::WouldBlock)))
    };
    match whole_card(log) {
        None if is_open(log) => Ok(None),
        None => card(log),
        card => Ok(card),
    }
}

/// Returns the cards of the logs in a directory that each query selects, unsorted, with the cards that are not in
/// the cache from `card`.
fn list_with(
    sessions: &Path,
    queries: &[CardQuery],
    card: fn(&Path) -> io::Result<Option<Card>>,
) -> io::Result<Vec<Vec<Card>>> {
    let entries = match fs::read_dir(sessions) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(vec![Vec::new(); queries.len()]);
        }
        entries => entries?,
    };
    let (mut logs, mut cards) = (Vec::new(), HashMap::new());
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_encoded_bytes();
        if let Some(name) = without(name.as_slice(), names::LOG) {
            let name = name.to_vec();
            logs.push(LogEntry { entry, name });
        } else if let Some(name) = without(name.as_slice(), names::CARD) {
            cards.insert(name.to_vec(), inode(&entry));
        }
    }
    let cache = Cache::read(sessions);
    let mut copies = cache.cards();
    let (mut missed, mut known) = (0, 0);
    let found = logs.iter().zip(stamps(&logs)).filter_map(|(log, stamp)| {
        let stamp = stamp.map(|stamp| stamp.with_card(cards.get(&log.name).copied()));
        let copy = copies.take(&log.name);
        known += usize::from(copy.is_some());
        let card = if let Some(copy) = copy.filter(|copy| Some(copy.stamp) == stamp) {
            CardSource::Cached(copy)
        } else {
            missed += 1;
            CardSource::Read(Box::new(read(log, card)?))
        };
        Some(ListedCard { log, stamp, card })
    });
    let found: Vec<ListedCard<'_>> = found.collect();
    // Nothing of a session that was removed is kept.
    let is_outdated = known < copies.len();
    if is_outdated || missed >= MANY.max(found.len() / MANY_SHARE) {
        cache::write(
            sessions,
            &found.iter().filter_map(cached).collect::<Vec<_>>(),
        );
    }
    Ok(queries.iter().map(|query| select(query, &found)).collect())
}

/// Returns a session as the cache has it.
fn cached<'a>(listed: &'a ListedCard<'_>) -> Option<cache::NewCard<'a>> {
    let stamp = listed.stamp?;
    let json = match &listed.card {
        CardSource::Cached(card) => card.json.into(),
        CardSource::Read(card) => serde_json::to_vec(card).ok()?.into(),
    };
    let (updated_at, session_id) = listed.order();
    Some(cache::NewCard {
        name: &listed.log.name,
        stamp,
        updated_at,
        session_id,
        cwd: listed.cwd(),
        json,
    })
}

fn select(query: &CardQuery, found: &[ListedCard<'_>]) -> Vec<Card> {
    let is_before = |listed: &ListedCard<'_>| match &query.before {
        Some((time, id)) => listed.order() < (time.as_str(), id.as_str()),
        None => true,
    };
    let mut wanted: Vec<&ListedCard<'_>> =
        found.iter().filter(|listed| is_before(listed)).collect();
    if let Some(cwd) = &query.cwd {
        // Many sessions share few directories.
        let mut known: HashMap<&str, bool> = HashMap::new();
        wanted.retain(|listed| {
            let is_same = |found: &&str| *found == cwd || real_path(found) == real_path(cwd);
            *known.entry(listed.cwd()).or_insert_with_key(is_same)
        });
    }
    if query.used {
        wanted.retain(|listed| listed.is_used());
    }
    if let Some(id) = &query.agent_session {
        let json = serde_json::Value::from(id.as_str()).to_string();
        wanted.retain(|listed| listed.may_have_agent_session(id, &json));
    }
    if let Some(limit) = query.limit {
        let all = wanted.clone();
        keep_latest(&mut wanted, limit);
        if !have_own_ids(&mut wanted) {
            // A log that was copied has the id of another session, and a list shows one of them.
            wanted = all;
            have_own_ids(&mut wanted);
            keep_latest(&mut wanted, limit);
        }
    }
    wanted.into_iter().filter_map(ListedCard::card).collect()
}

/// Keeps the sessions with the latest activity.
fn keep_latest(sessions: &mut Vec<&ListedCard<'_>>, limit: usize) {
    if limit < sessions.len() {
        sessions.select_nth_unstable_by_key(limit, |listed| Reverse(listed.order()));
        sessions.truncate(limit);
    }
}

/// Keeps one session of each id. Returns `true` if all ids are different.
fn have_own_ids(sessions: &mut Vec<&ListedCard<'_>>) -> bool {
    let (mut ids, before) = (HashSet::new(), sessions.len());
    sessions.retain(|listed| ids.insert(listed.order().1));
    sessions.len() == before
}

/// Reads a card, or computes it from its log. An unreadable session does not hide the others.
fn read(log: &LogEntry, card: fn(&Path) -> io::Result<Option<Card>>) -> Option<Card> {
    let log = log.entry.path();
    card(&log).unwrap_or_else(|error| {
        warn!(log = %log.display(), %error, "skipped an unreadable session");
        None
    })
}

/// Returns the stamps of logs; `None` for what is not a regular file.
fn stamps(logs: &[LogEntry]) -> Vec<Option<Stamp>> {
    let stamp = |log: &LogEntry| Stamp::of(&log.entry.metadata().ok()?);
    let available = thread::available_parallelism().map_or(1, usize::from);
    let threads = (logs.len() / LOGS_PER_THREAD).clamp(1, available.min(MAX_THREADS));
    let mut parts = logs.chunks(logs.len().div_ceil(threads).max(1));
    let own = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let others: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(stamp).collect::<Vec<_>>()))
            .collect();
        let mut all: Vec<_> = own.iter().map(stamp).collect();
        for (thread, part) in others
            .into_iter()
            .zip(logs.chunks(own.len().max(1)).skip(1))
        {
            // A panic of the thread costs the cached cards only.
            all.extend(thread.join().unwrap_or_else(|_| vec![None; part.len()]));
        }
        all
    })
}

/// Returns a file name without this extension; `None` if it has another one.
fn without<'n>(name: &'n [u8], extension: &str) -> Option<&'n [u8]> {
    name.strip_suffix(extension.as_bytes())?.strip_suffix(b".")
}

#[cfg(unix)]
fn inode(entry: &DirEntry) -> u64 {
    std::os::unix::fs::DirEntryExt::ino(entry)
}

#[cfg(not(unix))]
fn inode(_: &DirEntry) -> u64 {
    1
}

#[cfg(test)]
mod tests;
