//! Decisions that follow from a client's response to a permission request or question, or from the lack of
//! one.

use super::client_request::ClientAnswer;
use super::turn::Question;
use acpipe_json::to_raw;
use acpipe_model::decision::{Decision, DecisionSource, Feedback};
use acpipe_model::error::clip;
use acpipe_model::event::PermissionOption;
use acpipe_model::option_choice::choose;
use acpipe_model::unknown_fields::read;
use acpipe_policy::{Effect, Policy};
use acpipe_protocol::wire::{
    PermissionAnswer, PermissionOutcome, QuestionAction, QuestionAnswer, QuestionKind,
    UnknownFields,
};
use tracing::{debug, warn};

/// Returns the policy's decision for a permission request that no client answers.
pub fn unanswered(policy: &Policy, options: &[PermissionOption], by: DecisionSource) -> Decision {
    let allow = policy.unanswered() == Effect::Allow;
    Decision::of(allow, policy.prefers_always(), options, by)
}

/// Converts a client's response to a permission request into a decision.
///
/// # Errors
/// The response is an error or is not valid. The error is the decision to use if no other client can answer.
pub fn permission(
    options: &[PermissionOption],
    rule: &str,
    answer: &ClientAnswer,
    policy: &Policy,
    unknown_fields: UnknownFields,
) -> Result<Decision, Box<Decision>> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let error = &error.message;
            // The client knows.
            debug!(
                error = clip(error),
                "the client returned an error for a permission request"
            );
            let mut decision = unanswered(policy, options, DecisionSource::Policy(rule.to_owned()));
            decision.reason = format!(
                "{}; the client returned an error: {}",
                decision.reason,
                clip(error)
            );
            return Err(Box::new(decision));
        }
    };
    let refused = |why: &str| refusal(options, why);
    match read::<PermissionAnswer>("permission/request", answer, unknown_fields) {
        Ok(PermissionAnswer { outcome }) => match outcome {
            PermissionOutcome::Cancelled {
                message,
                feedback_delivery,
            } => Ok(Decision {
                feedback: Feedback::of(message, feedback_delivery.is_some()),
                ..Decision::cancelled(DecisionSource::Client)
            }),
            PermissionOutcome::Selected {
                option_id,
                message,
                feedback_delivery,
                updated_input,
            } => {
                let feedback = Feedback::of(message, feedback_delivery.is_some());
                match options.iter().find(|option| option.id == option_id) {
                    Some(option) => Ok(Decision {
                        updated_input: updated_input.map(|input| to_raw(&input)),
                        ..Decision::chosen(option.clone(), feedback)
                    }),
                    None => Err(Box::new(Decision {
                        feedback,
                        ..refused("optionId is not an option that was offered")
                    })),
                }
            }
        },
        Err(why) => Err(Box::new(refused(&why))),
    }
}

/// Returns the decision for a response to a permission request that is not valid.
pub fn refusal(options: &[PermissionOption], why: &str) -> Decision {
    warn!(
        why,
        "the client's response is not valid; treated as a refusal"
    );
    let mut decision = Decision::of(false, false, options, DecisionSource::Client);
    decision.reason = format!("refused, because the client's response is not valid: {why}");
    decision
}

/// Converts a client's response to a question into a decision.
///
/// # Errors
/// The response is an error or is not valid. The error is the decision to use if no other client can answer:
/// the question is declined, since only the user may answer it.
pub fn question(
    question: &Question,
    options: &[PermissionOption],
    answer: &ClientAnswer,
    unknown_fields: UnknownFields,
) -> Result<Decision, Box<Decision>> {
    let declined = |why: &str| {
        warn!(
            why,
            "the client's response is not valid; the question is declined"
        );
        let mut decision = Decision::of(false, false, options, DecisionSource::Client);
        decision.reason = format!("declined, because the client's response is not valid: {why}");
        Box::new(decision)
    };
    let answer = match answer {
        Ok(answer) => answer,
        // The text may be what the user typed.
        Err(error) => return Err(declined(&format!("it is an error, code {}", error.code))),
    };
    let QuestionAnswer { action, content } = match read("question/ask", answer, unknown_fields) {
        Ok(answer) => answer,
        Err(why) => return Err(declined(&why)),
    };
    let content = content.unwrap_or_default();
    let text = |name: &str| content.get(name)?.as_str().map(str::to_owned);
    let elicitation = question.elicitation.as_ref();
    let is_plan = elicitation.is_some_and(|elicitation| elicitation.kind == QuestionKind::Plan);
    let delivery = content.get("feedbackDelivery");
    let delivery = delivery.is_some_and(|delivery| delivery == "nextPrompt");
    let feedback = Feedback::of(text("feedback").filter(|_| is_plan), delivery);
    match action {
        QuestionAction::Cancel => Ok(Decision::cancelled(DecisionSource::Client)),
        QuestionAction::Decline => Ok(Decision {
            feedback,
            ..Decision::of(false, false, options, DecisionSource::Client)
        }),
        QuestionAction::Accept if is_plan => {
            let option = match text("optionId") {
                Some(id) => options.iter().find(|option| option.id == id),
                None if content.contains_key("optionId") => None,
                None => choose(true, false, options),
            };
            let Some(option) = option else {
                return Err(declined("optionId is not an option that was offered"));
            };
            Ok(Decision::chosen(option.clone(), feedback))
        }
        QuestionAction::Accept => match elicitation.map_or(Ok(()), |i| i.check(&content)) {
            Ok(()) => {
                let is_form = elicitation.is_some_and(|elicitation| elicitation.schema.is_some());
                let content = Some(content).filter(|_| is_form);
                Ok(Decision {
                    content: content.as_ref().map(to_raw),
                    ..Decision::of(true, false, options, DecisionSource::Client)
                })
            }
            Err(why) => Err(declined(&why)),
        },
    }
}
