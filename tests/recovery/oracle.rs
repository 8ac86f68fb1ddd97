//! Expected outcome of a restore, derived from the rules alone.
//!
//! Strategies in order: resume, load, new; load comes before resume if no messages are stored. The next
//! strategy follows after not found, not offered and errors of the agent, never after a timeout; a required
//! sign-in ends the restore with the sign-in methods. If the agent returns an error while its own list still
//! has the session, the restore fails: no new session replaces it. A different session id, or a load that
//! replays nothing of a stored history, means that the session no longer exists. A prompt that discovers this
//! is sent once more, to a new session.

use super::cell::{Cell, List, Load, RequestedStrategy, Resume, Stored};
use super::outcome::{NextPrompt, Outcome, Receipt};

#[derive(Clone, Copy, PartialEq)]
enum RestoreStrategy {
    Resume,
    Load,
    New,
}

impl RestoreStrategy {
    fn name(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Load => "load",
            Self::New => "new",
        }
    }
}

/// Result of one strategy.
enum Answer {
    Holds,
    NotOffered,
    Refuses,
    /// The agent created a different session.
    Replaces,
    /// The agent replays nothing of the stored history.
    Forgot,
    /// The agent's list lacks the session that it claims to have loaded.
    Lacks,
    Fails(&'static str),
}

pub fn expected(cell: Cell) -> Outcome {
    let history = !cell.history().is_empty();
    let ways: &[RestoreStrategy] = match cell.wish {
        // Adopting a session never falls back to a new one.
        RequestedStrategy::Auto if cell.stored == Stored::Nothing => {
            &[RestoreStrategy::Load, RestoreStrategy::Resume]
        }
        RequestedStrategy::Auto if history => &[
            RestoreStrategy::Resume,
            RestoreStrategy::Load,
            RestoreStrategy::New,
        ],
        RequestedStrategy::Auto => &[
            RestoreStrategy::Load,
            RestoreStrategy::Resume,
            RestoreStrategy::New,
        ],
        RequestedStrategy::Resume => &[RestoreStrategy::Resume],
        RequestedStrategy::Load => &[RestoreStrategy::Load],
        RequestedStrategy::New => &[RestoreStrategy::New],
        RequestedStrategy::LoadOrNew => &[RestoreStrategy::Load, RestoreStrategy::New],
    };
    let mut failed = Vec::new();
    let mut refused = false;
    for way in ways {
        let why = match answer(cell, *way) {
            Answer::Holds if *way == RestoreStrategy::New && refused && cell.list == List::Has => {
                break;
            }
            Answer::Holds => return held(cell, *way, failed),
            Answer::Fails(kind) => {
                return Outcome::Failed(kind.to_owned(), kind == "authRequired");
            }
            Answer::Replaces if ways.contains(&RestoreStrategy::New) => {
                failed.push(format!("{} sessionNotFound", way.name()));
                return held(cell, RestoreStrategy::New, failed);
            }
            Answer::Refuses => {
                refused = true;
                "session"
            }
            Answer::Lacks if !ways.contains(&RestoreStrategy::New) => {
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

fn answer(cell: Cell, way: RestoreStrategy) -> Answer {
    match way {
        RestoreStrategy::New => Answer::Holds,
        RestoreStrategy::Resume => match cell.resume {
            Resume::NotOffered => Answer::NotOffered,
            Resume::Ok | Resume::Replays | Resume::Lies => Answer::Holds,
            Resume::Refused | Resume::Fails => Answer::Refuses,
            Resume::AnotherId => Answer::Replaces,
            Resume::Hangs => Answer::Fails("timeout"),
            Resume::Auth => Answer::Fails("authRequired"),
        },
        RestoreStrategy::Load => match cell.load {
            Load::NotOffered => Answer::NotOffered,
            Load::Empty if !cell.history().is_empty() => Answer::Forgot,
            // An adopted session: only the list shows whether the agent has it.
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

fn held(cell: Cell, way: RestoreStrategy, failed: Vec<String>) -> Outcome {
    let stored = cell.history().len() as u64;
    let replayed = (way == RestoreStrategy::Load).then_some(cell.replayed().len() as u64);
    // Only messages that certainly follow the stored ones are adopted.
    let adopted = match (replayed, cell.load) {
        (None, _) => 0,
        (Some(_), Load::Differs) if stored > 0 => 0,
        (Some(replayed), _) => replayed - stored,
    };
    let lost = way == RestoreStrategy::New && stored > 0;
    let receipt = Receipt {
        rung: way.name().to_owned(),
        memory: match way {
            RestoreStrategy::Resume => "kept",
            RestoreStrategy::Load => "replayed",
            RestoreStrategy::New if lost => "lost",
            RestoreStrategy::New => "none",
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
        (RestoreStrategy::Resume, Resume::Lies, RequestedStrategy::Auto)
            if cell.stored != Stored::Nothing =>
        {
            NextPrompt::Moved(Receipt {
                rung: "new".to_owned(),
                memory: if stored > 0 { "lost" } else { "none" }.to_owned(),
                failed: vec!["resume sessionNotFound".to_owned()],
                replayed: None,
                adopted: 0,
                // Includes the messages of the running turn, which is not split.
                messages: stored + 2,
            })
        }
        (RestoreStrategy::Resume, Resume::Lies, _) => {
            NextPrompt::Fails("sessionNotFound".to_owned())
        }
        _ => NextPrompt::Answered,
    };
    Outcome::Held(receipt, then)
}
