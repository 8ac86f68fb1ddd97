//! Questions to the user: those that ask for no permission, and the answers to all of them.

use super::asks::Asking;
use super::permissions::FULL;
use super::{Bridge, Call, waits::ms};
use crate::core::ask::{ClientAnswer, ClientRequest};
use crate::core::client::Outlet;
use crate::core::error::clip;
use crate::core::event::{Elicitation, PermissionOption};
use crate::core::limits::Wait;
use crate::core::permit::{By, Decision, Feedback, choose, elicitation};
use crate::core::session::{Asked, MOST_ASKS};
use crate::core::turn::Question;
use crate::core::unknown_fields::read;
use crate::proto::json::to_raw;
use crate::proto::wire::{
    AskedTool, LedgerEntry, QuestionAction, QuestionAnswer, QuestionKind, QuestionParams,
    UnknownFields,
};
use std::time::Instant;
use tracing::{debug, warn};

impl Bridge {
    /// Hands on what an agent asks its user; what belongs to no session is asked outside of any.
    pub(super) fn elicitation(
        &mut self,
        asked: Elicitation<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let named = asked.session.as_deref().and_then(|id| self.route(id));
        let (session, subagent) = match named {
            Some(route) => (Some(route.session), route.subagent),
            None => (asked.call.and_then(|call| self.prompted_by(call)), None),
        };
        let tool = asked.tool.as_deref();
        let place = match session {
            Some(id) => {
                let turn_id = self.asking_turn(&id, tool, now, outlet);
                let session = self.sessions.get(&id);
                let allowed = session.is_some_and(|s| s.may_act(tool.unwrap_or_default()));
                turn_id.filter(|_| allowed).map(|turn_id| (id, turn_id))
            }
            None => Some((String::new(), String::new())),
        };
        let Some((id, turn_id)) = place.filter(|_| self.is_serving()) else {
            debug!("a question to the user after a cancel");
            let cancelled = Decision::cancelled(By::Cancel);
            if let Some(agent) = &mut self.agent {
                let out = &mut agent.out;
                agent.dialect.elicited(&asked.question, &cancelled, out);
            }
            return;
        };
        let open = self.sessions.get(&id).map(|session| session.asks.len());
        if open.unwrap_or(self.asks.open_outside()) >= MOST_ASKS {
            let by = By::Policy(FULL.to_owned());
            let declined = Decision::of(false, false, &elicitation(), by);
            if let Some(agent) = &mut self.agent {
                let out = &mut agent.out;
                agent.dialect.elicited(&asked.question, &declined, out);
            }
            return;
        }
        let title = asked.inquiry.message.clone();
        let mut shown = None;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.hear(now, "question", outlet);
            let inquiry = asked.inquiry.clone();
            session.with_turn_of(&turn_id, outlet, |turn, sink| {
                let question = turn.pose(subagent.as_deref(), tool, inquiry, sink);
                let call = turn.asked(&question);
                shown = Some((question, call));
            });
        }
        let (question, tool_call) = shown.unwrap_or_else(|| {
            let id = self.next_id("ask");
            (Question::outside(id, asked.inquiry), None)
        });
        let called = tool_call.as_ref();
        let entry = LedgerEntry {
            what: "question".to_owned(),
            question_id: question.id.clone(),
            tool_call_id: question.tool.clone(),
            tool_name: called.map(|call| call.tool_name.clone()),
            kind: called.and_then(|call| call.kind.clone()),
            title: Some(title),
            ..LedgerEntry::default()
        };
        let asking = Asking {
            session: &id,
            turn_id,
            key: &asked.question,
            ticket: None,
            about: Asked::Question {
                question,
                options: elicitation(),
            },
            entry,
        };
        self.ask_user(asking, tool_call, now, outlet);
    }

    /// The session whose prompt this call was.
    fn prompted_by(&self, call: crate::core::event::CallId) -> Option<String> {
        match self.calls.get(&call)? {
            Call::Prompt { session } => Some(session.clone()),
            _ => None,
        }
    }

    /// Asks the client what its user is asked.
    pub(super) fn ask_user(
        &mut self,
        asking: Asking<'_>,
        tool_call: Option<AskedTool>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let question = asking.about.question();
        let Some(inquiry) = &question.inquiry else {
            return;
        };
        let some = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
        let request = ClientRequest::Question(Box::new(QuestionParams {
            session_id: some(asking.session),
            turn_id: some(&asking.turn_id),
            question_id: question.id.clone(),
            kind: inquiry.kind,
            message: inquiry.message.clone(),
            schema: inquiry.schema.clone(),
            url: inquiry.url.clone(),
            options: question.options().to_vec(),
            tool_call,
            deadline_ms: self.settings.limits.of(Wait::Answer).map(ms),
        }));
        self.ask_client(asking, request, now, outlet);
    }

    /// The user has been at an address to which the agent sent him.
    pub(super) fn visited(&mut self, id: &str, outlet: &mut impl Outlet) {
        let mut known = false;
        self.sessions.for_each_awake(|session| {
            let running = session.running.as_ref().map(|r| r.turn_id.clone());
            let unprompted = session.unprompted.as_ref().map(|u| u.turn_id.clone());
            for turn_id in running.into_iter().chain(unprompted) {
                session.with_turn_of(&turn_id, outlet, |turn, sink| {
                    known |= turn.visited(id, sink);
                });
            }
        });
        if !known {
            debug!(id, "an address that no turn knows was visited");
        }
    }
}

/// What the client's answer to a question means. What is no answer declines: nobody answers in the user's place.
pub(super) fn question_answered(
    question: &Question,
    options: &[PermissionOption],
    answer: &ClientAnswer,
    unknown_fields: UnknownFields,
) -> Decision {
    let declined = |why: &str| {
        warn!(
            why,
            "a question is declined, since the client's answer is none"
        );
        let mut decision = Decision::of(false, false, options, By::Client);
        decision.reason = format!("declined, since the client's answer is none: {why}");
        decision
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return declined(&format!("the error {:?}", clip(&error.message))),
    };
    let QuestionAnswer { action, content } = match read(answer, unknown_fields) {
        Ok(answer) => answer,
        Err(why) => return declined(&why),
    };
    let content = content.unwrap_or_default();
    let text = |name: &str| content.get(name)?.as_str().map(str::to_owned);
    let inquiry = question.inquiry.as_ref();
    let is_plan = inquiry.is_some_and(|inquiry| inquiry.kind == QuestionKind::Plan);
    let delivery = content.get("feedbackDelivery");
    let delivery = delivery.is_some_and(|delivery| delivery == "nextPrompt");
    let feedback = Feedback::of(text("feedback").filter(|_| is_plan), delivery);
    match action {
        QuestionAction::Cancel => Decision::cancelled(By::Client),
        QuestionAction::Decline => Decision {
            feedback,
            ..Decision::of(false, false, options, By::Client)
        },
        QuestionAction::Accept if is_plan => {
            let named = content.get("optionId");
            let option = match text("optionId") {
                Some(id) => options.iter().find(|option| option.id == id),
                None if named.is_some() => None,
                None => choose(true, false, options),
            };
            let Some(option) = option else {
                let named = named.map(ToString::to_string).unwrap_or_default();
                return declined(&format!("no option {named} was offered"));
            };
            Decision::chosen(option.clone(), feedback)
        }
        QuestionAction::Accept => match inquiry.map_or(Ok(()), |i| i.check(&content)) {
            Ok(()) => {
                let is_form = inquiry.is_some_and(|inquiry| inquiry.schema.is_some());
                let content = Some(content).filter(|_| is_form);
                Decision {
                    content: content.as_ref().map(to_raw),
                    ..Decision::of(true, false, options, By::Client)
                }
            }
            Err(why) => declined(&why),
        },
    }
}
