//! The restore matrix: every response of an agent to a restore, for every stored state and every strategy of
//! the client, compared with the receipt that the rules require (`oracle`). `matrix.md` lists all outcomes;
//! `UPDATE_MATRIX=1` rewrites it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agent;
mod cell;
mod oracle;
mod outcome;
mod play;
mod store;
mod table;

use agent::{Agent, KNOWN};
use cell::{Cell, HISTORY, List, Load, RequestedStrategy, Resume, Stored};
use outcome::{NextPrompt, Outcome, Receipt};
use play::Play;
use serde_json::{Value, json};
use std::thread;
use store::{Disk, Shared};

/// Prompt after the restore.
const NEXT: &str = "next question";

/// Returns the disk of an earlier acpipe with a session, and the number of its last chunk.
fn left(stored: Stored) -> (Disk, u64) {
    let disk = Shared::default();
    let mut play = Play::new(disk.clone(), Agent::new(None), 0, false);
    if stored != Stored::Nothing {
        play.ensure(&json!({})).unwrap();
    }
    if stored == Stored::History {
        play.prompt(HISTORY[0]);
        assert_eq!(play.messages(), HISTORY);
    }
    (std::mem::take(&mut *disk.0.borrow_mut()), play.heard.seq)
}

/// Returns the outcome of a cell, and checks what must hold in every cell.
fn outcome(cell: Cell, (disk, seq): &(Disk, u64)) -> Outcome {
    let disk = Shared(acpipe::testing::SharedCell::new(disk.clone()));
    let mut play = Play::new(disk.clone(), Agent::new(Some(cell)), *seq, cell.clear);
    let strategy = match cell.wish {
        RequestedStrategy::LoadOrNew => json!(["load", "new"]),
        wish => json!(wish.words()),
    };
    let mut wish = json!({ "strategy": strategy });
    if cell.stored == Stored::Nothing {
        wish["agentSessionId"] = KNOWN.into();
    }
    let outcome = match play.ensure(&wish) {
        Ok(opened) => held(cell, &mut play, &opened),
        Err(error) => {
            let kind = error.data["kind"].as_str().unwrap().to_owned();
            let ways = &error.data["authMethods"];
            let way =
                json!({ "id": "login", "name": "Log in", "description": null, "type": "agent" });
            let auth = *ways == json!([way]);
            let advice = if auth { "sign in" } else { "\"new\"" };
            assert!(error.message.contains(advice), "{}", error.message);
            Outcome::Failed(kind, auth)
        }
    };
    if !matches!(
        outcome,
        Outcome::Held(_, NextPrompt::Answered | NextPrompt::Moved(_))
    ) {
        get_out(cell, &mut play);
    }
    assert!(
        play.heard
            .chunks
            .iter()
            .all(|c| !c.to_string().contains("once:")),
        "what was repeated was shown as news"
    );
    let cleared = disk.0.borrow().archived.iter().any(|log| {
        let log = String::from_utf8_lossy(log);
        HISTORY.iter().all(|text| log.contains(text))
    });
    let lost = !cell.history().is_empty() && play.messages()[..2] != HISTORY;
    assert_eq!(lost, cleared, "the history is there, or was archived");
    outcome
}

/// Checks that the next prompt reports the restore and works as its receipt requires.
fn held(cell: Cell, play: &mut Play, opened: &Value) -> Outcome {
    assert!(play.heard.chunks.is_empty());
    let receipt = Receipt::of(&opened["recovery"]);
    let mut messages: Vec<String> = Vec::new();
    if receipt.messages > 0 {
        messages.extend(cell.history().iter().map(|&text| text.to_owned()));
        let adopted = usize::try_from(receipt.adopted).unwrap();
        let replayed = cell.replayed();
        let adopted = &replayed[replayed.len() - adopted..];
        messages.extend(adopted.iter().map(|&text| text.to_owned()));
    }
    assert_eq!(play.messages(), messages);
    let is_new = opened["agentSessionId"] != KNOWN;
    assert_eq!(is_new, receipt.rung == "new");

    let summary = play.prompt(NEXT);
    let mut told = play
        .heard
        .chunks
        .clone()
        .into_iter()
        .filter(|c| c["type"] == "data-recovery");
    if receipt.memory != "none" {
        assert_eq!(told.next().unwrap()["data"], opened["recovery"]);
    }
    assert_eq!(play.agent.prompted[0].0, opened["agentSessionId"]);
    messages.push(NEXT.to_owned());
    let then = match (summary["errors"][0]["kind"].as_str(), told.next()) {
        (Some(kind), None) => NextPrompt::Fails(kind.to_owned()),
        (Some(kind), Some(_)) => panic!("moved, and failed: {kind}"),
        (None, None) => NextPrompt::Answered,
        (None, Some(moved)) => {
            assert_eq!(summary["metadata"]["recovery"], moved["data"]);
            assert_eq!(play.agent.prompted.len(), 2);
            NextPrompt::Moved(Receipt::of(&moved["data"]))
        }
    };
    let last = match &then {
        NextPrompt::Moved(receipt) => receipt,
        _ => &receipt,
    };
    check_sent(cell, play, NEXT, last);
    let fails = matches!(then, NextPrompt::Fails(_));
    messages.push(if fails { "" } else { "answer" }.to_owned());
    assert_eq!(play.messages(), messages);
    Outcome::Held(receipt, then)
}

/// Checks that strategy `new` works after any outcome, and that late responses of the agent change nothing.
fn get_out(cell: Cell, play: &mut Play) {
    let opened = play.ensure(&json!({ "strategy": "new" })).unwrap();
    let receipt = Receipt::of(&opened["recovery"]);
    assert_eq!(receipt.rung, "new");
    if !cell.history().is_empty() {
        assert_eq!(receipt.memory, "lost");
    }
    play.answer_late();
    let summary = play.prompt("go on");
    assert_eq!(summary["text"], "answer");
    check_sent(cell, play, "go on", &receipt);
}

/// Checks that the last prompt went to the right session, and includes the earlier messages only if the agent
/// lost them.
fn check_sent(cell: Cell, play: &Play, asked: &str, receipt: &Receipt) {
    let (session, text) = play.agent.prompted.last().unwrap();
    assert_eq!(session != KNOWN, receipt.rung == "new");
    let lost = receipt.memory == "lost";
    assert_eq!(text != asked, lost, "{text}");
    let mut said = cell.history().iter();
    assert!(!lost || said.all(|said| text.contains(said)), "{text}");
    assert_eq!(text.matches(asked).count(), 1, "{text}");
}

fn cells(stored: Stored, wish: RequestedStrategy) -> impl Iterator<Item = Cell> {
    let loads = Load::ALL.iter();
    let agents = loads.flat_map(|&load| Resume::ALL.iter().map(move |&resume| (resume, load)));
    let agents = agents.flat_map(|agent| List::ALL.iter().map(move |&list| (agent, list)));
    agents.map(move |((resume, load), list)| Cell {
        stored,
        wish,
        resume,
        load,
        list,
        clear: false,
    })
}

/// Returns the outcomes of a state and a strategy, and descriptions of those that differ from the rules.
fn section(
    stored: Stored,
    wish: RequestedStrategy,
    left: &(Disk, u64),
) -> (Vec<(Cell, Outcome)>, Vec<String>) {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for cell in cells(stored, wish) {
        let got = outcome(cell, left);
        let mut verdicts = vec![(cell, got.clone())];
        if matches!(&got, Outcome::Held(receipt, _) if receipt.memory == "lost") {
            let clear = Cell {
                clear: true,
                ..cell
            };
            verdicts.push((clear, outcome(clear, left)));
        }
        for (cell, got) in verdicts {
            let want = oracle::expected(cell);
            if got != want {
                wrong.push(format!("{cell:?}\n  got  {got:?}\n  want {want:?}"));
            }
        }
        all.push((cell, got));
    }
    (all, wrong)
}

#[test]
fn every_restore_matches_the_rules() {
    let mut wrong = Vec::new();
    let mut table = table::Table::default();
    for &stored in Stored::ALL {
        let left = &left(stored);
        let sections: Vec<_> = thread::scope(|scope| {
            let wishes = RequestedStrategy::ALL.iter();
            let sections =
                wishes.map(|&wish| (wish, scope.spawn(move || section(stored, wish, left))));
            let sections: Vec<_> = sections.collect();
            let sections = sections.into_iter();
            sections
                .map(|(wish, section)| (wish, section.join().unwrap()))
                .collect()
        });
        for (wish, (all, faults)) in sections {
            table.section(stored, wish, &all);
            wrong.extend(faults);
        }
    }
    let (count, first) = (wrong.len(), &wrong[..wrong.len().min(20)]);
    assert!(wrong.is_empty(), "{count} are wrong:\n{}", first.join("\n"));
    table.compare();
}
