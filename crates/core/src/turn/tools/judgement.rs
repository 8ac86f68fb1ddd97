//! Judgement of a call: the facts by which it was allowed or refused. It holds for these facts only.

use acpipe_json::Members;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_policy::{Subject, SubjectChange};
use serde_json::value::RawValue;

/// Maximum size of an input that is kept for comparison, in bytes.
const MAX_KEPT_INPUT: usize = 64 << 10;

/// Facts of a call when it was judged.
#[derive(Debug, Clone)]
struct Basis {
    subject: Subject,
    /// Input of a call of which rules know neither a command nor a path.
    input: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Default)]
pub struct Judgement {
    /// Ids of the open permission requests, with the facts that each is about.
    open: Vec<(String, Basis)>,
    /// Facts that were approved last.
    approved: Option<Basis>,
    /// Facts that the call was last found to have run with.
    ran: Option<Basis>,
    refusal: Option<Refusal>,
    /// `true` if the call itself asked the user something.
    has_asked_user: bool,
}

/// Last decision on a call that did not approve it.
#[derive(Debug, Clone)]
enum Refusal {
    /// A client or the policy refused the call, or the agent did by its own rules. The subject is what was refused.
    Refused(Option<Box<Subject>>),
    /// The agent withdrew its request, or its turn ended without an answer.
    Withdrawn,
}

#[derive(Debug, Clone, Copy)]
pub struct RunEvidence {
    /// The call succeeded.
    pub is_complete: bool,
    /// The call runs, or ran until it failed, according to an update that followed the last permission request.
    pub has_started: bool,
}

/// Relation of a run to what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunKind {
    Unapproved {
        has_asked_user: bool,
    },
    /// The call was approved, and something else is reported of it later.
    Changed {
        approved: Box<Subject>,
        change: SubjectChange,
    },
    Refused {
        refused: Option<Box<Subject>>,
    },
}

/// Run that was not approved as it ran.
#[derive(Debug)]
pub struct JudgedRun {
    pub kind: RunKind,
    /// Subject by which the run was judged before, if it only says more now, or less.
    pub before: Option<Box<Subject>>,
}

impl Basis {
    fn new(subject: &Subject, input: Option<&RawValue>) -> Self {
        let is_plain = subject.lines.is_empty() && subject.paths.is_empty();
        let input = input.filter(|input| is_plain && input.get().len() <= MAX_KEPT_INPUT);
        Self {
            subject: subject.clone(),
            input: input.map(ToOwned::to_owned),
        }
    }

    fn changed_by(&self, later: &Self) -> Option<SubjectChange> {
        let change = self.subject.changed_by(&later.subject);
        let is_other = || contradicts(self.input.as_deref()?, later.input.as_deref()?);
        change.or_else(|| is_other().map(|()| SubjectChange::Replaced))
    }
}

/// Returns `Some` if a member of the input has another value in a later input.
fn contradicts(input: &RawValue, later: &RawValue) -> Option<()> {
    let (input, later) = (Members::of(input), Members::of(later));
    let mut both = input
        .iter()
        .filter_map(|(name, said)| Some((said, later.get(name)?)));
    both.any(|(said, later)| !later.get().starts_with(beginning(said.get())))
        .then_some(())
}

/// Returns the text of a JSON value without its end: the model continues the value there.
pub fn beginning(json: &str) -> &str {
    json.trim_end_matches(['}', ']', '"'])
}

impl Judgement {
    /// Returns the judgement of a call that was approved by these facts without a permission request.
    pub fn approving(subject: &Subject, input: Option<&RawValue>) -> Self {
        Self {
            approved: Some(Basis::new(subject, input)),
            ..Self::default()
        }
    }

    /// Returns the judgement of a call for which another one asks; `part` is its subject.
    pub fn asking(question: &str, part: &Subject) -> Self {
        let mut judgement = Self::default();
        judgement.ask(question, part, None);
        judgement
    }

    pub fn asking_user() -> Self {
        Self {
            has_asked_user: true,
            ..Self::default()
        }
    }

    pub fn is_asking(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns `true` if the last decision approved the call.
    pub fn is_approved(&self) -> bool {
        self.approved.is_some() && self.refusal.is_none()
    }

    pub fn add(&mut self, other: Self) {
        self.open.extend(other.open);
        self.has_asked_user |= other.has_asked_user;
        self.refusal = other.refusal.or(self.refusal.take());
        if other.approved.is_some() {
            self.approved = other.approved;
            self.refusal = None;
        }
    }

    pub fn ask(&mut self, question: &str, subject: &Subject, input: Option<&RawValue>) {
        self.open
            .push((question.to_owned(), Basis::new(subject, input)));
    }

    /// Replaces the facts of a permission request: the client lets the call run with another input.
    pub fn rewrite(&mut self, question: &str, subject: &Subject, input: Option<&RawValue>) {
        self.open.retain(|(id, _)| id != question);
        self.ask(question, subject, input);
    }

    pub fn decide(&mut self, question: &str, decision: &Decision) {
        let Some(at) = self.open.iter().position(|(id, _)| id == question) else {
            return;
        };
        let (_, basis) = self.open.swap_remove(at);
        if !decision.approved() {
            // An approval of something else stays.
            let is_same = |approved: &mut Basis| approved.changed_by(&basis).is_none();
            self.approved.take_if(is_same);
        }
        if decision.approved() {
            self.approved = Some(basis);
            self.refusal = None;
        } else {
            self.refusal = Some(match decision.by {
                DecisionSource::Agent | DecisionSource::End => Refusal::Withdrawn,
                _ => Refusal::Refused(Some(Box::new(basis.subject))),
            });
        }
    }

    /// Records that the agent refused the call by its own rules.
    pub fn refuse(&mut self) {
        self.refusal = Some(Refusal::Refused(None));
    }

    /// Returns `true` if all that a subject says was approved, or found to have run.
    pub fn covers(&self, subject: &Subject) -> bool {
        let mut known = self.approved.iter().chain(&self.ran);
        known.any(|known| known.subject.includes(subject))
    }

    /// Records that the call ran, or may have run, with these facts. Returns how that relates to what was approved;
    /// `None` if it was approved, could not run, or is already known.
    pub fn note_run(
        &mut self,
        subject: &Subject,
        input: Option<&RawValue>,
        evidence: RunEvidence,
    ) -> Option<JudgedRun> {
        let basis = Basis::new(subject, input);
        let before = match self.ran.as_ref().map(|ran| (ran, ran.changed_by(&basis))) {
            Some((_, None)) => return None,
            Some((ran, Some(SubjectChange::Described))) => Some(Box::new(ran.subject.clone())),
            Some((_, Some(_))) | None => None,
        };
        let change = self.approved.as_ref();
        let change = change.map(|approved| approved.changed_by(&basis));
        let kind = match (&self.refusal, &self.approved) {
            _ if change == Some(None) => return None,
            // The agent ended a call that it was not allowed to run, or waits for the answer.
            (Some(_), _) if !(evidence.is_complete || evidence.has_started) => return None,
            (None, None) if self.is_asking() && !(evidence.is_complete || evidence.has_started) => {
                return None;
            }
            (Some(Refusal::Refused(_)), _) if before.is_some() => return None,
            (Some(Refusal::Refused(refused)), _) => RunKind::Refused {
                refused: refused.clone(),
            },
            (None, Some(approved)) => RunKind::Changed {
                approved: Box::new(approved.subject.clone()),
                change: change.flatten()?,
            },
            (Some(Refusal::Withdrawn) | None, _) => RunKind::Unapproved {
                has_asked_user: self.has_asked_user,
            },
        };
        self.ran = Some(basis);
        Some(JudgedRun { kind, before })
    }
}
