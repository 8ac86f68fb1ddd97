//! Plan of a restore: the strategies resume, load and new, in order.
//!
//! The strategy live comes first and needs no plan. A refusal by the agent leads to the next strategy. A
//! timeout, a cancel and a missing sign-in end the restore, since the agent may still have the session.

use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::{AgentCapabilities, Attempt, Rung, Strategy};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Restore plan: the strategies that are left, and those that failed.
#[derive(Debug, Default)]
pub struct RestorePlan {
    /// Strategies in order, each with the reason why it cannot be tried, if there is one.
    rungs: VecDeque<(Rung, Option<Cow<'static, str>>)>,
    failed: Vec<Attempt>,
}

/// Reason why a strategy that was not tried could not have restored the session.
const NEVER: &str = "the agent never had this session";
const NOT_OFFERED: &str = "the agent does not support it";

fn had_by_other_agent(other: &str) -> Cow<'static, str> {
    format!("another agent has its history: {other}").into()
}

fn given_away(session: &str) -> Cow<'static, str> {
    format!("the agent has given the id to session {session:?} since").into()
}

#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreFacts<'a> {
    /// Whether this agent once gave the session an id.
    pub id: bool,
    /// Whether the session's messages are stored, so that no load is needed to get them.
    pub history: bool,
    /// Command line of the agent that had the session last, if that is another agent and this one gave the
    /// session no id.
    pub other: Option<&'a str>,
    /// Session that got this session's id from the agent since.
    pub given_to: Option<&'a str>,
}

impl RestorePlan {
    #[must_use]
    pub fn plan(strategy: &Strategy, can: AgentCapabilities, knows: RestoreFacts<'_>) -> Self {
        let wanted = match strategy {
            Strategy::Auto if knows.history => vec![Rung::Resume, Rung::Load, Rung::New],
            Strategy::Auto => vec![Rung::Load, Rung::Resume, Rung::New],
            Strategy::Only(rung) => vec![*rung],
            Strategy::Order(rungs) => rungs.clone(),
        };
        let lost = match (knows.given_to, knows.other) {
            (Some(session), _) => Some(given_away(session)),
            (None, Some(other)) if !knows.id => Some(had_by_other_agent(other)),
            (None, _) => None,
        };
        let has_none = !knows.id || lost.is_some();
        let mut plan = Self::default();
        for rung in wanted {
            let missing = match rung {
                Rung::Live | Rung::New => None,
                // The reason is the same for resume and load, so it is recorded once.
                _ if has_none && *strategy == Strategy::Auto => match &lost {
                    Some(why) if plan.rungs.is_empty() => Some(why.clone()),
                    _ => continue,
                },
                _ if has_none => Some(lost.clone().unwrap_or(NEVER.into())),
                Rung::Resume => (!can.resume).then_some(NOT_OFFERED.into()),
                Rung::Load => (!can.load).then_some(NOT_OFFERED.into()),
            };
            plan.rungs.push_back((rung, missing));
        }
        plan
    }

    /// Takes the next strategy to try. Strategies before it that cannot be tried are recorded as failed.
    pub fn next_strategy(&mut self) -> Option<Rung> {
        while let Some((rung, missing)) = self.rungs.pop_front() {
            match missing {
                None => return Some(rung),
                Some(why) => self.note(rung, &Error::new(ErrorKind::SessionNotFound, why)),
            }
        }
        None
    }

    /// Returns the next strategy that can be tried, without taking it.
    pub fn peek(&self) -> Option<Rung> {
        let mut rungs = self.rungs.iter();
        rungs.find_map(|(rung, missing)| missing.is_none().then_some(*rung))
    }

    /// Records a failed strategy.
    pub fn note(&mut self, rung: Rung, error: &Error) {
        self.failed.push(Attempt {
            rung,
            kind: error.kind.name().to_owned(),
            message: error.message.clone(),
        });
    }

    pub fn failed(&self) -> &[Attempt] {
        &self.failed
    }
}

/// Describes the failed strategies: the name of each with its reason.
pub fn describe_attempts(failed: &[Attempt]) -> String {
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

/// Returns `true` if the error means that the agent does not have the session or does not support the
/// strategy, so that the next strategy may be tried.
pub fn allows_next_strategy(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::Session | ErrorKind::Malformed | ErrorKind::SessionNotFound
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a plan with an agent that refuses every strategy. Returns the strategies tried, each with the
    /// number of failures before it, and the number of failures in the end. Facts: resume offered, load
    /// offered, id known, history known.
    fn outcome(strategy: &Strategy, facts: [bool; 4]) -> (Vec<(Rung, usize)>, usize) {
        let [resume, load, id, history] = facts;
        let can = AgentCapabilities {
            load,
            resume,
            ..AgentCapabilities::default()
        };
        let mut plan = RestorePlan::plan(
            strategy,
            can,
            RestoreFacts {
                id,
                history,
                other: None,
                given_to: None,
            },
        );
        let mut tried = Vec::new();
        loop {
            let next = plan.peek();
            assert_eq!(plan.next_strategy(), next);
            match next {
                Some(rung) => tried.push((rung, plan.failed().len())),
                None => return (tried, plan.failed().len()),
            }
        }
    }

    /// Strategy, facts, expected strategies with the failures before each, and failures in the end.
    type Case<'a> = (&'a Strategy, [bool; 4], &'a [(Rung, usize)], usize);

    #[test]
    fn restore_plan_follows_capabilities_and_stored_state() {
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
            // A strategy that is not reached has not failed.
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
            assert_eq!(outcome(strategy, *facts), want, "{strategy:?} {facts:?}");
        }
    }

    #[test]
    fn plan_gives_the_reason_if_another_agent_had_the_session() {
        let can = AgentCapabilities {
            load: true,
            resume: true,
            ..AgentCapabilities::default()
        };
        let knows = RestoreFacts {
            id: false,
            history: true,
            other: Some("other acp"),
            given_to: None,
        };
        for (strategy, failed) in [
            (Strategy::Auto, 1),
            (
                Strategy::Order(vec![Rung::Load, Rung::Resume, Rung::New]),
                2,
            ),
        ] {
            let mut plan = RestorePlan::plan(&strategy, can, knows);
            assert_eq!(plan.next_strategy(), Some(Rung::New));
            assert_eq!(plan.failed().len(), failed, "{strategy:?}");
            assert!(plan.failed()[0].message.contains("other acp"));
        }
    }

    #[test]
    fn id_that_another_session_has_since_is_not_used() {
        let can = AgentCapabilities {
            load: true,
            resume: true,
            ..AgentCapabilities::default()
        };
        let knows = RestoreFacts {
            id: true,
            history: true,
            other: None,
            given_to: Some("b"),
        };
        let mut plan = RestorePlan::plan(&Strategy::Auto, can, knows);
        assert_eq!(plan.next_strategy(), Some(Rung::New));
        assert_eq!(plan.failed().len(), 1);
        assert!(plan.failed()[0].message.contains("session \"b\""));
        for rung in [Rung::Resume, Rung::Load] {
            let mut plan = RestorePlan::plan(&Strategy::Only(rung), can, knows);
            assert_eq!(plan.next_strategy(), None);
            assert!(plan.failed()[0].message.contains("session \"b\""));
        }
    }
}
