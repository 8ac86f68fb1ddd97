//! Answers of browsers to questions of the agent.

use super::incoming::Ask;
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
    /// Returns the response to the request of the loop.
    pub fn response_to(&self, ask: &Ask) -> Value {
        if ask.is_permission {
            self.permission(ask)
        } else {
            self.question()
        }
    }

    fn permission(&self, ask: &Ask) -> Value {
        let kind = if self.approved { "allow" } else { "reject" };
        let once = format!("{kind}_once");
        let options = &ask.params.options;
        let chosen = match &self.option_id {
            // The core refuses an option that the agent did not offer.
            Some(id) => Some(id),
            None => options
                .iter()
                .find(|option| option.kind == once)
                .or_else(|| options.iter().find(|option| option.kind.starts_with(kind)))
                .map(|option| &option.option_id),
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

    fn ask(is_permission: bool, kinds: &[&str]) -> Ask {
        let options: Vec<_> = kinds
            .iter()
            .map(|kind| json!({ "optionId": format!("o-{kind}"), "kind": kind, "name": "n" }))
            .collect();
        let params = json!({ "questionId": "q", "options": options });
        Ask {
            id: "acpipe-1".to_owned(),
            is_permission,
            params: serde_json::from_value(params).unwrap(),
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
