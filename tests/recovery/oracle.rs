//! What should come of a recovery, from its rules alone.
//!
//! The ladder, in order: resume, load, new; load before resume where nothing is stored. Down a rung lead not
//! found, not offered and errors of the agent, never a timeout, and a wanted sign-in ends it with the ways to do
//! so. An error while the agent's own list still has the session is told: no fresh session takes its place.
//! Another id, and a load that repeats nothing of a history, say that the session is not there any more. A prompt
//! that finds this out goes once more to a new session.

use super::cell::{Cell, List, Load, Resume, Stored, Wish};
use super::outcome::{Outcome, Receipt, Then};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Resume,
    Load,
    New,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Load => "load",
            Self::New => "new",
        }
    }
}

/// What the agent makes of a way.
enum Answer {
    Holds,
    NotOffered,
    Refuses,
    /// It began another session.
    Replaces,
    /// It repeats nothing of what there was.
    Forgot,
    /// Its list does not hold what it says it loaded.
    Lacks,
    Fails(&'static str),
}

pub fn expected(cell: Cell) -> Outcome {
    let history = !cell.history().is_empty();
    let ways: &[Way] = match cell.wish {
        // What is to be adopted is that or nothing.
        Wish::Auto if cell.stored == Stored::Nothing => &[Way::Load, Way::Resume],
        Wish::Auto if history => &[Way::Resume, Way::Load, Way::New],
        Wish::Auto => &[Way::Load, Way::Resume, Way::New],
        Wish::Resume => &[Way::Resume],
        Wish::Load => &[Way::Load],
        Wish::New => &[Way::New],
        Wish::LoadOrNew => &[Way::Load, Way::New],
    };
    let mut failed = Vec::new();
    let mut refused = false;
    for way in ways {
        let why = match answer(cell, *way) {
            Answer::Holds if *way == Way::New && refused && cell.list == List::Has => break,
            Answer::Holds => return held(cell, *way, failed),
            Answer::Fails(kind) => {
                return Outcome::Failed(kind.to_owned(), kind == "authRequired");
            }
            Answer::Replaces if ways.contains(&Way::New) => {
                failed.push(format!("{} sessionNotFound", way.name()));
                return held(cell, Way::New, failed);
            }
            Answer::Refuses => {
                refused = true;
                "session"
            }
            Answer::Lacks if !ways.contains(&Way::New) => {
                return Outcome::Failed("sessionNotFound".to_owned(), false);
            }
            Answer::Forgot | Answer::Lacks | Answer::Replaces => {
                refused = false;
                "sessionNotFound"
            }
            Answer::NotOffered => "sessionNotFound",
        };
        failed.push(format!("{} {why}", way.name()));
    }
    let kind = if refused {
        "session"
    } else {
        "sessionNotFound"
    };
    Outcome::Failed(kind.to_owned(), false)
}

fn answer(cell: Cell, way: Way) -> Answer {
    match way {
        Way::New => Answer::Holds,
        Way::Resume => match cell.resume {
            Resume::NotOffered => Answer::NotOffered,
            Resume::Ok | Resume::Replays | Resume::Lies => Answer::Holds,
            Resume::Refused | Resume::Fails => Answer::Refuses,
            Resume::AnotherId => Answer::Replaces,
            Resume::Hangs => Answer::Fails("timeout"),
            Resume::Auth => Answer::Fails("authRequired"),
        },
        Way::Load => match cell.load {
            Load::NotOffered => Answer::NotOffered,
            Load::Empty if !cell.history().is_empty() => Answer::Forgot,
            // Adopted: nothing but the list says whether the agent has it.
            Load::Empty if cell.stored == Stored::Nothing && cell.list == List::Lacks => {
                Answer::Lacks
            }
            Load::Ok | Load::Late | Load::WentOn | Load::Differs | Load::Empty => Answer::Holds,
            Load::Refused => Answer::Refuses,
            Load::AnotherId => Answer::Replaces,
            Load::Hangs => Answer::Fails("timeout"),
            Load::Auth => Answer::Fails("authRequired"),
        },
    }
}

fn held(cell: Cell, way: Way, failed: Vec<String>) -> Outcome {
    let stored = cell.history().len() as u64;
    let replayed = (way == Way::Load).then_some(cell.replayed().len() as u64);
    // Only what surely follows the stored messages is taken over.
    let adopted = match (replayed, cell.load) {
        (None, _) => 0,
        (Some(_), Load::Differs) if stored > 0 => 0,
        (Some(replayed), _) => replayed - stored,
    };
    let lost = way == Way::New && stored > 0;
    let receipt = Receipt {
        rung: way.name().to_owned(),
        memory: match way {
            Way::Resume => "kept",
            Way::Load => "replayed",
            Way::New if lost => "lost",
            Way::New => "none",
        }
        .to_owned(),
        failed,
        replayed,
        adopted,
        messages: if lost && cell.clear {
            0
        } else {
            stored + adopted
        },
    };
    let then = match (way, cell.resume, cell.wish) {
        (Way::Resume, Resume::Lies, Wish::Auto) if cell.stored != Stored::Nothing => {
            Then::Moved(Receipt {
                rung: "new".to_owned(),
                memory: if stored > 0 { "lost" } else { "none" }.to_owned(),
                failed: vec!["resume sessionNotFound".to_owned()],
                replayed: None,
                adopted: 0,
                // Those of the turn that runs too: it is not cut in two.
                messages: stored + 2,
            })
        }
        (Way::Resume, Resume::Lies, _) => Then::Fails("sessionNotFound".to_owned()),
        _ => Then::Answered,
    };
    Outcome::Held(receipt, then)
}
