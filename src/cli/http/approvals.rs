//! Answers of browsers to questions of the agent.

use super::question::Ask;
use acpipe_model::event::OptionKind;
use acpipe_model::option_choice::{Choosable as _, choose};
use acpipe_protocol::wire::OfferedOption;
use serde::Deserialize;
use serde_json::{Value, json};

/// Answer to a permission request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAnswer {
    /// Id of the approval, which is that of the question.
    pub approval_id: String,
    /// Whether the tool may run.
    pub approved: bool,
    /// Option of the agent. Default: the one that allows or rejects once.
    #[serde(default)]
    pub option_id: Option<String>,
    /// Feedback of the user for the agent.
    #[serde(default)]
    pub reason: Option<String>,
}

impl ApprovalAnswer {
    /// Returns an error if the chosen option is not offered, or does the opposite of `approved`: the core would refuse the
    /// tool call, while the browser reads that it was allowed.
    pub fn check_option(&self, ask: &Ask) -> Result<(), String> {
        let (Some(id), Some(options)) = (&self.option_id, &ask.options) else {
            return Ok(());
        };
        let Some(option) = options.iter().find(|option| option.option_id == *id) else {
            let offered: Vec<_> = options.iter().map(|o| o.option_id.as_str()).collect();
            return Err(format!(
                "optionId: {id:?} is not offered; use one of {}",
                offered.join(", ")
            ));
        };
        let kind = option.kind();
        let allows = matches!(kind, OptionKind::AllowOnce | OptionKind::AllowAlways);
        if allows == self.approved {
            return Ok(());
        }
        let (approved, kind) = (self.approved, json!(option.kind));
        let kind = kind.as_str().unwrap_or_default();
        Err(format!(
            "optionId: {id:?} is of the kind {kind}, but approved is {approved}"
        ))
    }

    /// Returns the response to the request of the loop.
    pub fn response_to(&self, ask: &Ask) -> Value {
        match &ask.options {
            Some(options) => self.permission(options),
            None => self.question(),
        }
    }

    fn permission(&self, options: &[OfferedOption]) -> Value {
        let chosen = match &self.option_id {
            Some(id) => Some(id),
            None => choose(self.approved, false, options).map(|option| &option.option_id),
        };
        let mut outcome = match chosen {
            Some(id) => json!({ "outcome": "selected", "optionId": id }),
            None => json!({ "outcome": "cancelled" }),
        };
        if let Some(reason) = &self.reason {
            outcome["message"] = reason.as_str().into();
        }
        json!({ "outcome": outcome })
    }

    fn question(&self) -> Value {
        let action = if self.approved { "accept" } else { "decline" };
        let mut content = serde_json::Map::new();
        if let Some(id) = &self.option_id {
            content.insert("optionId".to_owned(), id.as_str().into());
        }
        if let Some(reason) = &self.reason {
            content.insert("feedback".to_owned(), reason.as_str().into());
        }
        if content.is_empty() {
            json!({ "action": action })
        } else {
            json!({ "action": action, "content": content })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_core::client_request::ClientRequestId;

    fn ask(is_permission: bool, kinds: &[&str]) -> Ask {
        let options = kinds
            .iter()
            .map(|kind| json!({ "optionId": format!("o-{kind}"), "kind": kind, "name": "n" }))
            .map(|option| serde_json::from_value(option).unwrap());
        Ask {
            id: ClientRequestId(1),
            question_id: "q".to_owned(),
            options: is_permission.then(|| options.collect()),
        }
    }

    fn answer(body: Value) -> ApprovalAnswer {
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn approval_selects_the_option_with_the_smallest_effect() {
        let ask = ask(true, &["allow_always", "allow_once", "reject_always"]);
        let yes = answer(json!({ "approvalId": "q", "approved": true }));
        let want = json!({ "outcome": { "outcome": "selected", "optionId": "o-allow_once" } });
        assert_eq!(yes.response_to(&ask), want);
        let no = answer(json!({ "approvalId": "q", "approved": false, "reason": "why" }));
        let want = json!({ "outcome": { "outcome": "selected", "optionId": "o-reject_always", "message": "why" } });
        assert_eq!(no.response_to(&ask), want);
        let other =
            answer(json!({ "approvalId": "q", "approved": true, "optionId": "o-allow_always" }));
        let want = json!({ "outcome": { "outcome": "selected", "optionId": "o-allow_always" } });
        assert_eq!(other.response_to(&ask), want);
    }

    #[test]
    fn option_must_be_offered_and_agree_with_approved() {
        let ask = ask(true, &["allow_once", "allow_always", "reject_once"]);
        let check = |approved: bool, option: &str| {
            let body = json!({ "approvalId": "q", "approved": approved, "optionId": option });
            answer(body).check_option(&ask)
        };
        assert_eq!(check(true, "o-allow_always"), Ok(()));
        assert_eq!(check(false, "o-reject_once"), Ok(()));
        let error = check(true, "nope").unwrap_err();
        assert_eq!(
            error,
            "optionId: \"nope\" is not offered; use one of o-allow_once, o-allow_always, o-reject_once"
        );
        let error = check(true, "o-reject_once").unwrap_err();
        assert!(
            error.ends_with("is of the kind reject_once, but approved is true"),
            "{error}"
        );
    }

    #[test]
    fn approval_without_a_matching_option_cancels() {
        let yes = answer(json!({ "approvalId": "q", "approved": true }));
        let want = json!({ "outcome": { "outcome": "cancelled" } });
        assert_eq!(yes.response_to(&ask(true, &["reject_once"])), want);
    }

    #[test]
    fn approval_of_a_plan_accepts_the_question() {
        let yes = answer(json!({ "approvalId": "q", "approved": true }));
        let plan = ask(false, &["allow_once"]);
        assert_eq!(yes.response_to(&plan), json!({ "action": "accept" }));
        let no = answer(json!({ "approvalId": "q", "approved": false, "reason": "shorter" }));
        let want = json!({ "action": "decline", "content": { "feedback": "shorter" } });
        assert_eq!(no.response_to(&plan), want);
    }
}
