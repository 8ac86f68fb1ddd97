//! The ladder by which a session is brought back: resume, load, new.
//!
//! Live is the first rung of all, and nobody has to climb for it. Down a rung goes whatever the agent refuses;
//! a wait that was given up, a cancel and a wanted sign-in end the climb, since the session may well be there.

use super::error::{Error, ErrorKind};
use crate::proto::wire::{AgentCapabilities, Attempt, Rung, Strategy};
use std::collections::VecDeque;

/// A climb: the rungs that are left, and what failed on the way.
#[derive(Debug, Default)]
pub struct Ladder {
    rungs: VecDeque<Rung>,
    failed: Vec<Attempt>,
}

/// What is known of the session that is brought back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Knowledge {
    /// The agent gave it an id once.
    pub id: bool,
    /// Its messages are known here: a load is not needed to have them.
    pub history: bool,
}

impl Ladder {
    /// The rungs to try, in order; those that the agent does not offer count as failed.
    #[must_use]
    pub fn plan(strategy: &Strategy, can: AgentCapabilities, knows: Knowledge) -> Self {
        let wanted = match strategy {
            Strategy::Auto if knows.history => vec![Rung::Resume, Rung::Load, Rung::New],
            Strategy::Auto => vec![Rung::Load, Rung::Resume, Rung::New],
            Strategy::Only(rung) => vec![*rung],
            Strategy::Order(rungs) => rungs.clone(),
        };
        let mut ladder = Self::default();
        for rung in wanted {
            let missing = match rung {
                Rung::Live | Rung::New => None,
                // Nothing was tried: nobody has to be told.
                _ if !knows.id && *strategy == Strategy::Auto => continue,
                _ if !knows.id => Some("the agent never had this session"),
                Rung::Resume => (!can.resume).then_some("the agent does not offer it"),
                Rung::Load => (!can.load).then_some("the agent does not offer it"),
            };
            match missing {
                None => ladder.rungs.push_back(rung),
                Some(why) => ladder.failed.push(Attempt {
                    rung,
                    kind: ErrorKind::SessionNotFound.name().to_owned(),
                    message: why.to_owned(),
                }),
            }
        }
        ladder
    }

    /// The next rung to try.
    pub fn next_rung(&mut self) -> Option<Rung> {
        self.rungs.pop_front()
    }

    /// The rung after this one, if there is one.
    #[must_use]
    pub fn peek(&self) -> Option<Rung> {
        self.rungs.front().copied()
    }

    /// Notes what failed.
    pub fn note(&mut self, rung: Rung, error: &Error) {
        self.failed.push(Attempt {
            rung,
            kind: error.kind.name().to_owned(),
            message: error.message.clone(),
        });
    }

    /// What failed so far.
    #[must_use]
    pub fn failed(&self) -> &[Attempt] {
        &self.failed
    }
}

/// Whether an error says that the session is not there, or not that way: then the next rung may be tried.
#[must_use]
pub fn leads_down(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::Session | ErrorKind::Malformed | ErrorKind::SessionNotFound
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an agent that can resume and load, and of what is known: the id and the history.
    fn plan(strategy: &Strategy, facts: [bool; 4]) -> (Vec<Rung>, usize) {
        let [resume, load, id, history] = facts;
        let can = AgentCapabilities {
            load,
            resume,
            ..AgentCapabilities::default()
        };
        let ladder = Ladder::plan(strategy, can, Knowledge { id, history });
        (ladder.rungs.iter().copied().collect(), ladder.failed.len())
    }

    #[test]
    fn rungs_follow_what_is_offered_and_known() {
        use Rung::{Load, New, Resume};
        let auto = Strategy::Auto;
        let cases = [
            (
                &auto,
                [true, true, true, true],
                (vec![Resume, Load, New], 0),
            ),
            (
                &auto,
                [true, true, true, false],
                (vec![Load, Resume, New], 0),
            ),
            (&auto, [true, false, true, false], (vec![Resume, New], 1)),
            (&auto, [false, true, true, true], (vec![Load, New], 1)),
            (&auto, [false, false, true, true], (vec![New], 2)),
            (&auto, [true, true, false, true], (vec![New], 0)),
            (
                &Strategy::Only(Load),
                [true, true, true, true],
                (vec![Load], 0),
            ),
            (
                &Strategy::Only(Load),
                [true, false, true, true],
                (vec![], 1),
            ),
            (
                &Strategy::Only(Resume),
                [true, true, false, false],
                (vec![], 1),
            ),
            (
                &Strategy::Only(New),
                [true, true, true, true],
                (vec![New], 0),
            ),
            (
                &Strategy::Order(vec![Load, New]),
                [true, true, true, true],
                (vec![Load, New], 0),
            ),
        ];
        for (strategy, facts, want) in cases {
            assert_eq!(plan(strategy, facts), want, "{strategy:?} {facts:?}");
        }
    }

    #[test]
    fn only_refusals_lead_down() {
        for kind in ErrorKind::ALL {
            let down = leads_down(&Error::new(*kind, "x"));
            let refusal = matches!(kind.name(), "session" | "malformed" | "sessionNotFound");
            assert_eq!(down, refusal, "{}", kind.name());
        }
    }
}
