//! Tests of lists with and without the cache of cards.

use super::*;
use serde_json::json;
use std::path::PathBuf;

const COUNT: usize = 100;

/// Sessions in a state directory of their own.
struct State(PathBuf);

impl State {
    fn new(name: &str) -> Self {
        let state = std::env::temp_dir().join(format!("acpipe-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        fs::create_dir_all(state.join("sessions")).unwrap();
        let state = Self(state);
        for n in 0..COUNT {
            state.store(n, "first");
        }
        state
    }

    fn sessions(&self) -> PathBuf {
        self.0.join("sessions")
    }

    fn file(&self, n: usize, extension: &str) -> PathBuf {
        self.sessions().join(format!("s{n}.{extension}"))
    }

    fn line(n: usize, title: &str) -> String {
        let at = format!("2026-01-01T00:{:02}:{:02}Z", n % 7, n % 60);
        let line = json!({ "record": "session", "at": at, "format": 1, "sessionId": format!("s{n}"),
            "createdAt": at, "cwd": (["/", "/tmp", "/./tmp"][n % 3]), "title": title });
        format!("{line}\n")
    }

    /// Writes a log and its card.
    fn store(&self, n: usize, title: &str) {
        let log = Self::line(n, title);
        fs::write(self.file(n, "jsonl"), &log).unwrap();
        self.describe(n);
    }

    /// Replaces the card of a log, as acpipe does.
    fn describe(&self, n: usize) {
        let _ = fs::remove_file(self.file(n, "json"));
        let card = card(&self.file(n, "jsonl")).unwrap().unwrap();
        fs::write(self.file(n, "new-card"), serde_json::to_vec(&card).unwrap()).unwrap();
        fs::rename(self.file(n, "new-card"), self.file(n, "json")).unwrap();
    }

    fn cache(&self) -> PathBuf {
        self.0.join("cards.cache")
    }

    fn list(&self, query: CardQuery) -> Vec<Card> {
        let mut cards = list(&self.sessions(), &[query]).unwrap().remove(0);
        cards.sort_by(|a, b| (&b.updated_at, &b.session_id).cmp(&(&a.updated_at, &a.session_id)));
        cards
    }

    /// Checks that a list with the cache is the same as without it.
    #[track_caller]
    fn check(&self) -> Vec<Card> {
        let with = self.list(CardQuery::default());
        let cache = fs::read(self.cache()).unwrap();
        fs::remove_file(self.cache()).unwrap();
        let without = self.list(CardQuery::default());
        assert_eq!(with, without);
        fs::write(self.cache(), cache).unwrap();
        with
    }

    fn title(&self, n: usize) -> Option<String> {
        let cards = self.check().into_iter();
        let mut cards = cards.filter(|card| card.session_id == format!("s{n}"));
        cards.next()?.title
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn changes_after_the_cache_was_written_are_listed() {
    let state = State::new("cards-change");
    assert_eq!(state.list(CardQuery::default()).len(), COUNT);
    assert!(state.cache().exists());
    assert_eq!(state.check().len(), COUNT);
    // A log that has grown while its card is old.
    let log = State::line(1, "first") + &State::line(1, "second");
    fs::write(state.file(1, "jsonl"), &log).unwrap();
    assert_eq!(state.title(1).unwrap(), "second");
    state.describe(1);
    assert_eq!(state.title(1).unwrap(), "second");
    // A log that was replaced by one of the same length.
    fs::remove_file(state.file(2, "jsonl")).unwrap();
    fs::remove_file(state.file(2, "json")).unwrap();
    fs::write(state.file(2, "jsonl"), State::line(2, "other")).unwrap();
    assert_eq!(state.title(2).unwrap(), "other");
    // A card that was replaced although its log is the same.
    let mut changed = card(&state.file(3, "jsonl")).unwrap().unwrap();
    changed.title = Some("third".to_owned());
    fs::write(
        state.file(3, "new-card"),
        serde_json::to_vec(&changed).unwrap(),
    )
    .unwrap();
    fs::rename(state.file(3, "new-card"), state.file(3, "json")).unwrap();
    assert_eq!(state.title(3).unwrap(), "third");
    // A session that is gone, and a new one.
    fs::remove_file(state.file(4, "jsonl")).unwrap();
    assert_eq!(state.title(4), None);
    let cached = Cache::read(&state.sessions());
    assert!(cached.cards().take(b"s4").is_none());
    state.store(COUNT, "new");
    assert_eq!(state.title(COUNT).unwrap(), "new");
    fs::remove_file(state.file(5, "json")).unwrap();
    assert_eq!(state.title(5).unwrap(), "first");
}

#[test]
fn damaged_cache_is_not_used() {
    let state = State::new("cards-damage");
    state.list(CardQuery::default());
    let cache = fs::read(state.cache()).unwrap();
    for at in (0..cache.len()).step_by(211).chain(0..64) {
        let mut damaged = cache.clone();
        damaged[at] ^= 1;
        for bytes in [&cache[..at], &damaged] {
            fs::write(state.cache(), bytes).unwrap();
            let copies = Cache::read(&state.sessions());
            assert_eq!(copies.cards().len(), 0, "byte {at}");
        }
    }
    fs::write(state.cache(), &cache[..99]).unwrap();
    assert_eq!(state.list(CardQuery::default()).len(), COUNT);
    assert_eq!(fs::read(state.cache()).unwrap().len(), cache.len());
}

#[test]
fn copied_log_is_listed_once() {
    let state = State::new("cards-copied");
    for n in 0..3 {
        fs::copy(state.file(n, "jsonl"), state.file(COUNT + n, "jsonl")).unwrap();
    }
    for limit in [COUNT - 1, COUNT, COUNT + 1] {
        let page = state.list(CardQuery {
            limit: Some(limit),
            ..CardQuery::default()
        });
        assert_eq!(page.len(), limit.min(COUNT));
    }
}

#[test]
fn query_selects_the_sessions_of_a_page() {
    let state = State::new("cards-query");
    let all = state.list(CardQuery::default());
    for cwd in [None, Some("/"), Some("/tmp")] {
        let mut rest: Vec<Card> = all.clone();
        rest.retain(|card| cwd.is_none_or(|cwd| (card.cwd == "/") == (cwd == "/")));
        let mut before = None;
        while !rest.is_empty() {
            let limit = Some(7);
            let cwd = cwd.map(str::to_owned);
            let page = state.list(CardQuery {
                before,
                cwd,
                limit,
                agent_session: None,
                used: false,
            });
            let expected: Vec<Card> = rest.drain(..rest.len().min(7)).collect();
            assert_eq!(page, expected);
            let last = page.last().unwrap();
            before = Some((last.updated_at.clone(), last.session_id.clone()));
        }
    }
}

#[test]
fn sessions_that_were_never_used_are_left_out_of_a_list() {
    let state = State::new("cards-used");
    for n in [3, 5] {
        let line = State::line(n, "").replace(r#""title":"""#, r#""title":null"#);
        fs::write(state.file(n, "jsonl"), line).unwrap();
        state.describe(n);
    }
    // The first list reads the cards, the second one has their copies.
    for _ in 0..2 {
        let used = state.list(CardQuery {
            used: true,
            ..CardQuery::default()
        });
        let unused = |card: &Card| ["s3", "s5"].contains(&&*card.session_id);
        assert_eq!((used.len(), used.iter().any(unused)), (COUNT - 2, false));
        assert_eq!(state.list(CardQuery::default()).len(), COUNT);
    }
}

#[test]
fn log_that_is_being_written_is_not_read_for_cards_at_rest() {
    let state = State::new("cards-at-rest");
    let ids = || {
        let cards = list_at_rest(&state.sessions(), CardQuery::default()).unwrap();
        cards
            .into_iter()
            .map(|card| card.session_id)
            .collect::<HashSet<_>>()
    };
    for n in [3, 4] {
        fs::remove_file(state.file(n, "json")).unwrap();
    }
    let writer = fs::File::open(state.file(3, "jsonl")).unwrap();
    writer.lock().unwrap();
    let found = ids();
    assert_eq!(found.len(), COUNT - 1);
    assert!(!found.contains("s3"));
    drop(writer);
    assert_eq!(ids().len(), COUNT);
}
