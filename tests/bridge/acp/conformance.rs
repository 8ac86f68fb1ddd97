//! Requirements on ACP agents, checked against each agent that acpipe has or is.
//!
//! `docs/internals/conformance.md` shows the results. A requirement below number 100 has the number that it
//! has in acp-tck, the compatibility kit of ACP; the others are acpipe's own.

mod cancelling;
mod case;
mod extending;
mod faulty;
mod initializing;
mod messages;
mod page;
mod prompting;
mod schema;
mod sessions;
mod settings;
mod stored;
mod subjects;

use case::{Case, Check, Unmet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use subjects::{SUBJECTS, Subject};

/// How binding a requirement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The specification says MUST.
    Mandatory,
    /// The specification says MUST for agents that offer a capability.
    Capability,
    /// The specification says SHOULD, or acpipe's own requirement.
    Optional,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Mandatory => "mandatory",
            Self::Capability => "capability",
            Self::Optional => "optional",
        }
    }
}

/// One requirement and its check.
struct Requirement {
    id: &'static str,
    level: Level,
    text: &'static str,
    /// Checks an agent that has been started, but not initialized.
    check: fn(&mut Case) -> Check,
}

const fn must(id: &'static str, text: &'static str, check: fn(&mut Case) -> Check) -> Requirement {
    Requirement {
        id,
        level: Level::Mandatory,
        text,
        check,
    }
}

const fn offered(
    id: &'static str,
    text: &'static str,
    check: fn(&mut Case) -> Check,
) -> Requirement {
    Requirement {
        id,
        level: Level::Capability,
        text,
        check,
    }
}

const fn should(
    id: &'static str,
    text: &'static str,
    check: fn(&mut Case) -> Check,
) -> Requirement {
    Requirement {
        id,
        level: Level::Optional,
        text,
        check,
    }
}

/// All requirements, in the order of the table.
const REQUIREMENTS: &[&[Requirement]] = &[
    messages::ROWS,
    initializing::ROWS,
    schema::ROWS,
    sessions::ROWS,
    prompting::ROWS,
    cancelling::ROWS,
    stored::ROWS,
    settings::ROWS,
    extending::ROWS,
];

/// Number of agents that run at once.
const WORKERS: usize = 4;

/// Result of one requirement for one agent.
enum Verdict {
    Met,
    NotOffered,
    Failed(String),
}

fn check(requirement: &Requirement, subject: &'static Subject) -> Verdict {
    check_in(requirement, Case::start(subject))
}

fn check_in(requirement: &Requirement, mut case: Case) -> Verdict {
    let outcome = (requirement.check)(&mut case);
    // An agent that does not end is a fault, whatever the requirement is about.
    let outcome = match outcome {
        Err(Unmet::Failed(why)) => Err(Unmet::Failed(why)),
        other => case.end().map_err(Unmet::Failed).and(other),
    };
    match outcome {
        Ok(()) => Verdict::Met,
        Err(Unmet::NotOffered) => Verdict::NotOffered,
        Err(Unmet::Failed(why)) => {
            case.world.kill_all();
            Verdict::Failed(why)
        }
    }
}

/// Checks all requirements against all agents: one row for each requirement, one cell for each agent.
fn results(requirements: &[&Requirement]) -> Vec<Vec<Verdict>> {
    let columns = SUBJECTS.len();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= requirements.len() * columns {
                return done;
            }
            let (requirement, subject) = (requirements[n / columns], &SUBJECTS[n % columns]);
            done.push((n, check(requirement, subject)));
        }
    };
    let mut done: Vec<(usize, Verdict)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let done = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        done.collect()
    });
    done.sort_by_key(|(n, _)| *n);
    let mut verdicts = done.into_iter().map(|(_, verdict)| verdict);
    requirements
        .iter()
        .map(|_| verdicts.by_ref().take(columns).collect())
        .collect()
}

#[test]
fn agents_meet_the_requirements_of_acp() {
    let requirements: Vec<&Requirement> = REQUIREMENTS.iter().copied().flatten().collect();
    let results = results(&requirements);
    let mut wrong = String::new();
    for (requirement, verdicts) in requirements.iter().zip(&results) {
        for (verdict, subject) in verdicts.iter().zip(SUBJECTS) {
            let (id, name) = (requirement.id, subject.name);
            match verdict {
                Verdict::Met | Verdict::NotOffered if page::reason(id, name).is_some() => {
                    let _ = writeln!(wrong, "{name}: {id} is met: strike the exception");
                }
                Verdict::Failed(why) if page::reason(id, name).is_none() => {
                    let level = requirement.level.name();
                    let text = requirement.text;
                    let _ = writeln!(wrong, "{name}: {id} ({level}): {text}\n  {why}");
                }
                Verdict::Failed(_) if requirement.level != Level::Optional => {
                    let _ = writeln!(wrong, "{name}: {id} is not optional");
                }
                Verdict::Met | Verdict::NotOffered | Verdict::Failed(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    page::compare(&requirements, &results);
}

#[test]
fn requirements_have_distinct_ids() {
    let ids: Vec<&str> = REQUIREMENTS
        .iter()
        .copied()
        .flatten()
        .map(|requirement| requirement.id)
        .collect();
    assert!(ids.len() > 70, "requirements are missing");
    for (n, id) in ids.iter().enumerate() {
        assert!(!ids[..n].contains(id), "{id} is listed twice");
    }
}
