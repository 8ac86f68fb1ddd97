//! Tools that the policy refused without asking the user.

use crate::core::hub::NO_CLIENT;
use serde_json::Value;
use std::collections::HashSet;

/// Tools that the policy refused without asking the user. They are reported at the end, because the run may
/// otherwise succeed without a visible reason for missing results.
#[derive(Default)]
pub struct PolicyRefusals {
    questions: HashSet<String>,
    /// Rules that refused, without duplicates.
    rules: Vec<String>,
    /// Whether the note that there is no terminal was shown.
    unasked: bool,
}

impl PolicyRefusals {
    /// Records a decision. Returns a note for the first one that needed the user.
    pub fn decided(&mut self, question: &str, data: &Value) -> Option<&'static str> {
        if data["by"] != "policy" {
            return None;
        }
        let rule = data["rule"].as_str();
        if data["approved"] == false {
            self.questions.insert(question.to_owned());
            if let Some(rule) = rule
                && !self.rules.iter().any(|known| known == rule)
            {
                self.rules.push(rule.to_owned());
            }
        }
        let is_unasked = rule.is_some_and(|rule| rule.ends_with(NO_CLIENT)) && !self.unasked;
        self.unasked |= is_unasked;
        is_unasked
            .then_some("cannot ask for permission without a terminal; the policy decides instead")
    }

    /// Returns a note of the refusals of a turn that ends.
    pub fn take(&mut self) -> Option<String> {
        let rules = std::mem::take(&mut self.rules).join("; ");
        match std::mem::take(&mut self.questions).len() {
            0 => None,
            1 => Some(format!("the policy refused one tool call: {rules}")),
            n => Some(format!("the policy refused {n} tool calls: {rules}")),
        }
    }
}
