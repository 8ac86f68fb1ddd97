//! The ladder by which a session is brought back: resume, load, new.
//!
//! Live is the first rung of all, and nobody has to climb for it. Down a rung goes whatever the agent refuses;
//! a wait that was given up, a cancel and a wanted sign-in end the climb, since the session may well be there.

use super::error::{Error, ErrorKind};
use crate::proto::wire::{AgentCapabilities, Attempt, Rung, Strategy};
use std::borrow::Cow;
use std::collections::VecDeque;

/// A climb: the rungs that are left, and what failed on the way.
#[derive(Debug, Default)]
pub struct Ladder {
    /// In order, each with the reason why it cannot be tried, if there is one.
    rungs: VecDeque<(Rung, Option<Cow<'static, str>>)>,
    failed: Vec<Attempt>,
}

/// Why a way that was not tried could not have brought the session back.
const NEVER: &str = "the agent never had this session";
const NOT_OFFERED: &str = "the agent does not offer it";

fn had_by(other: &str) -> Cow<'static, str> {
    format!("another agent has its memory: {other}").into()
}

/// What is known of the session that is brought back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Knowledge<'a> {
    /// The agent gave it an id once.
    pub id: bool,
    /// Its messages are known here: a load is not needed to have them.
    pub history: bool,
    /// The command line of the agent that had it last, where that is another one and this one gave it no id.
    pub other: Option<&'a str>,
}

impl Ladder {
    /// The rungs to try, in order.
    #[must_use]
    pub fn plan(strategy: &Strategy, can: AgentCapabilities, knows: Knowledge<'_>) -> Self {
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
                // The reason is the same for each way: it is given once.
                _ if !knows.id && *strategy == Strategy::Auto => match knows.other {
                    Some(other) if ladder.rungs.is_empty() => Some(had_by(other)),
                    _ => continue,
                },
                _ if !knows.id => Some(knows.other.map_or(NEVER.into(), had_by)),
                Rung::Resume => (!can.resume).then_some(NOT_OFFERED.into()),
                Rung::Load => (!can.load).then_some(NOT_OFFERED.into()),
            };
            ladder.rungs.push_back((rung, missing));
        }
        ladder
    }

    /// The next rung to try; those before it that cannot be tried failed.
    pub fn next_rung(&mut self) -> Option<Rung> {
        while let Some((rung, missing)) = self.rungs.pop_front() {
            match missing {
                None => return Some(rung),
                Some(why) => self.note(rung, &Error::new(ErrorKind::SessionNotFound, why)),
            }
        }
        None
    }

    /// The rung after this one, if there is one that can be tried.
    #[must_use]
    pub fn peek(&self) -> Option<Rung> {
        let mut rungs = self.rungs.iter();
        rungs.find_map(|(rung, missing)| missing.is_none().then_some(*rung))
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

/// The ways that failed, each by its name and with the reason.
#[must_use]
pub fn in_words(failed: &[Attempt]) -> String {
    let failed = failed.iter().map(|attempt| {
        let way = match attempt.rung {
            Rung::Live => "live",
            Rung::Resume => "resume",
            Rung::Load => "load",
            Rung::New => "new",
        };
        format!("{way}: {}", attempt.message)
    });
    failed.collect::<Vec<_>>().join("; ")
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

    /// The rungs that an agent is tried on which refuses all, and how many failed before each and after the
    /// last. The agent: whether it can resume and load, and whether the id and the history are known.
    fn climbed(strategy: &Strategy, facts: [bool; 4]) -> (Vec<(Rung, usize)>, usize) {
        let [resume, load, id, history] = facts;
        let can = AgentCapabilities {
            load,
            resume,
            ..AgentCapabilities::default()
        };
        let mut ladder = Ladder::plan(
            strategy,
            can,
            Knowledge {
                id,
                history,
                other: None,
            },
        );
        let mut tried = Vec::new();
        loop {
            let next = ladder.peek();
            assert_eq!(ladder.next_rung(), next);
            match next {
                Some(rung) => tried.push((rung, ladder.failed().len())),
                None => return (tried, ladder.failed().len()),
            }
        }
    }

    /// A strategy, an agent; where it was tried with how many failures before, and how many in the end.
    type Case<'a> = (&'a Strategy, [bool; 4], &'a [(Rung, usize)], usize);

    #[test]
    fn rungs_follow_what_is_offered_and_known() {
        use Rung::{Load, New, Resume};
        let auto = &Strategy::Auto;
        let (resume, load, new) = (
            &Strategy::Only(Resume),
            &Strategy::Only(Load),
            &Strategy::Only(New),
        );
        let both = &Strategy::Order(vec![Load, Resume]);
        let (yes, no) = (true, false);
        #[rustfmt::skip]
        let cases: &[Case<'_>] = &[
            (auto, [yes, yes, yes, yes], &[(Resume, 0), (Load, 0), (New, 0)], 0),
            (auto, [yes, yes, yes, no], &[(Load, 0), (Resume, 0), (New, 0)], 0),
            (auto, [yes, no, yes, no], &[(Resume, 1), (New, 1)], 1),
            // What is not reached did not fail.
            (auto, [yes, no, yes, yes], &[(Resume, 0), (New, 1)], 1),
            (auto, [no, yes, yes, no], &[(Load, 0), (New, 1)], 1),
            (auto, [no, yes, yes, yes], &[(Load, 1), (New, 1)], 1),
            (auto, [no, no, yes, yes], &[(New, 2)], 2),
            (auto, [yes, yes, no, yes], &[(New, 0)], 0),
            (load, [yes, yes, yes, yes], &[(Load, 0)], 0),
            (load, [yes, no, yes, yes], &[], 1),
            (resume, [yes, yes, no, no], &[], 1),
            (new, [yes, yes, yes, yes], &[(New, 0)], 0),
            (both, [yes, yes, yes, yes], &[(Load, 0), (Resume, 0)], 0),
            (both, [no, yes, yes, yes], &[(Load, 0)], 1),
            (both, [no, no, yes, yes], &[], 2),
        ];
        for (strategy, facts, tried, failed) in cases {
            let want = (tried.to_vec(), *failed);
            assert_eq!(climbed(strategy, *facts), want, "{strategy:?} {facts:?}");
        }
    }

    #[test]
    fn the_reason_is_given_where_another_agent_had_the_session() {
        let can = AgentCapabilities {
            load: true,
            resume: true,
            ..AgentCapabilities::default()
        };
        let knows = Knowledge {
            id: false,
            history: true,
            other: Some("other acp"),
        };
        for (strategy, failed) in [
            (Strategy::Auto, 1),
            (
                Strategy::Order(vec![Rung::Load, Rung::Resume, Rung::New]),
                2,
            ),
        ] {
            let mut ladder = Ladder::plan(&strategy, can, knows);
            assert_eq!(ladder.next_rung(), Some(Rung::New));
            assert_eq!(ladder.failed().len(), failed, "{strategy:?}");
            assert!(ladder.failed()[0].message.contains("other acp"));
        }
    }
}
