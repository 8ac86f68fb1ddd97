//! Logs that are damaged at any byte: the session keeps its agent session, and all other lines remain
//! readable.

use super::disk::{Dice, Disk, StoredLog};
use super::drive::World;
use acpipe_core::log::{Identity, Log};
use acpipe_core::store::{Card, Store as _};
use std::collections::BTreeMap;

const SESSION: &str = "a";

/// Kinds of damage at a byte offset.
const DAMAGE: &[fn(&mut Vec<u8>, usize)] = &[
    |bytes, at| bytes[at] ^= 1,
    |bytes, at| bytes[at] = b'\n',
    |bytes, at| bytes[at] = b'"',
    |bytes, at| bytes[at] = 0xff,
    |bytes, at| {
        bytes.remove(at);
    },
    |bytes, at| bytes.insert(at, b'x'),
    |bytes, at| {
        let end = bytes.len().min(at + 512);
        bytes[at..end].fill(0);
    },
];

/// Returns the log of a session with so many turns, and its card.
fn stored(turns: usize) -> (Vec<u8>, Card) {
    let disk = Disk::new(1, BTreeMap::new());
    let mut world = World::new(disk.clone(), "first");
    let mut dice = Dice(7);
    world.ensure(SESSION);
    world.settle();
    for turn in 0..turns {
        world.prompt(SESSION, &format!("turn{turn}"));
        world.settle();
        world.agent_sends_random_updates(&mut dice);
        world.agent_ends_all();
        while world.sync() {}
    }
    let bytes = disk.logs()[SESSION].bytes.clone();
    (bytes, disk.cards()[SESSION].clone())
}

fn disk(bytes: Vec<u8>, card: Option<Card>) -> Disk {
    let synced = bytes.len();
    let log = StoredLog {
        bytes,
        synced,
        index: None,
    };
    let logs = BTreeMap::from([(SESSION.to_owned(), log)]);
    let cards = card.map(|card| (SESSION.to_owned(), card));
    Disk::new(1, logs).with_cards(cards.into_iter().collect())
}

fn opened(bytes: Vec<u8>, card: Option<Card>) -> Log {
    Log::open(disk(bytes, card).open(SESSION).unwrap()).unwrap()
}

fn who(identity: Option<&Identity>) -> Option<(&str, &str)> {
    let identity = identity?;
    Some((identity.agent_session_id.as_deref()?, identity.cwd.as_str()))
}

#[test]
fn damage_at_any_byte_keeps_the_identity_of_a_session() {
    for (turns, step) in [(1, 1), (3, 7)] {
        let (bytes, card) = stored(turns);
        let intact = opened(bytes.clone(), None);
        let identity = intact.identity().cloned();
        let want = who(identity.as_ref());
        assert_eq!(want, Some(("first-1", "/")));
        let mut tried = 0;
        for damage in DAMAGE {
            for at in (0..bytes.len()).step_by(step) {
                let mut damaged = bytes.clone();
                damage(&mut damaged, at);
                let log = opened(damaged, Some(card.clone()));
                assert_eq!(who(log.identity()), want, "byte {at} of {}", bytes.len());
                tried += 1;
            }
        }
        assert!(tried > 2000, "{tried}");
    }
}

#[test]
fn log_without_its_card_keeps_the_identity_where_the_first_line_is_damaged() {
    let (bytes, _) = stored(1);
    let first = bytes.iter().position(|b| *b == b'\n').unwrap();
    for damage in DAMAGE {
        for at in 0..first {
            let mut damaged = bytes.clone();
            damage(&mut damaged, at);
            let log = opened(damaged, None);
            assert_eq!(who(log.identity()), Some(("first-1", "/")), "byte {at}");
        }
    }
}

#[test]
fn session_that_never_had_a_turn_is_found_by_its_card() {
    let (bytes, card) = stored(0);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] = b'\n';
        let log = opened(damaged, Some(card.clone()));
        assert_eq!(who(log.identity()), Some(("first-1", "/")), "byte {at}");
    }
    // A card of a removed session must not identify a new one.
    assert!(opened(Vec::new(), Some(card)).identity().is_none());
}

#[test]
fn damaged_session_is_resumed_with_its_agents_id() {
    let (bytes, card) = stored(2);
    for at in (0..bytes.len()).step_by(199) {
        let mut damaged = bytes.clone();
        damaged[at] = b'\n';
        let mut world = World::new(disk(damaged, Some(card.clone())), "later");
        let token = world.ensure(SESSION);
        world.settle();
        while world.sync() {}
        let answer = world.client.replies[&token].as_ref().unwrap();
        assert_eq!(answer["recovery"]["rung"], "resume", "byte {at}: {answer}");
        assert_eq!(answer["agentSessionId"], "first-1", "byte {at}: {answer}");
        // The new turn writes the identity again, so that a second damage is survived too.
        world.prompt(SESSION, "more");
        world.settle();
        world.agent_ends_all();
        while world.sync() {}
        let again = world.disk.logs()[SESSION].bytes.clone();
        let log = opened(again, None);
        assert_eq!(who(log.identity()), Some(("first-1", "/")), "byte {at}");
    }
}
