//! Tools that the policy refused without asking the user.

use acpipe_core::hub::NO_CLIENT;
use serde_json::Value;

/// Maximum number of refused tool calls that the note names.
const NAMED: usize = 3;

/// Maximum length of a title in the note, in characters.
const TITLE: usize = 60;

/// Tools that the policy refused without asking the user. They are reported at the end, because the run may
/// otherwise succeed without a visible reason for missing results.
#[derive(Default)]
pub struct PolicyRefusals {
    /// Ids of the questions and titles of their tool calls, in order.
    questions: Vec<(String, Option<String>)>,
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
            if !self.questions.iter().any(|(known, _)| known == question) {
                let title = data["toolCall"]["title"].as_str();
                self.questions
                    .push((question.to_owned(), title.map(shortened)));
            }
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
        let questions = std::mem::take(&mut self.questions);
        let calls = match questions.len() {
            0 => return None,
            1 => "one tool call".to_owned(),
            n => format!("{n} tool calls"),
        };
        let titles = questions.iter().filter_map(|(_, title)| title.as_ref());
        // Escaped, because a title may contain control sequences of a terminal.
        let titles: Vec<_> = titles.map(|title| format!("{title:?}")).collect();
        let named = match titles.len() {
            0 => String::new(),
            n if n > NAMED => format!(" ({}, …)", titles[..NAMED].join(", ")),
            _ => format!(" ({})", titles.join(", ")),
        };
        Some(format!("the policy refused {calls}{named}: {rules}"))
    }
}

fn shortened(title: &str) -> String {
    match title.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(refusals: &mut PolicyRefusals, question: &str, title: &Value) {
        let data =
            json!({"by": "policy", "approved": false, "rule": "r", "toolCall": {"title": title}});
        refusals.decided(question, &data);
    }

    #[test]
    fn note_names_the_refused_tool_calls() {
        let mut refusals = PolicyRefusals::default();
        assert_eq!(refusals.take(), None);
        // The decision of a question may be sent twice.
        refused(&mut refusals, "a", &json!("Edit \u{1b}[2Ja.txt"));
        refused(&mut refusals, "a", &json!("Edit a.txt"));
        let note = r#"the policy refused one tool call ("Edit \u{1b}[2Ja.txt"): r"#;
        assert_eq!(refusals.take().as_deref(), Some(note));
        refused(&mut refusals, "a", &Value::Null);
        refused(&mut refusals, "b", &Value::Null);
        assert_eq!(
            refusals.take().as_deref(),
            Some("the policy refused 2 tool calls: r")
        );
        for question in ["a", "b", "c", "d"] {
            refused(&mut refusals, question, &json!(question.repeat(100)));
        }
        let note = refusals.take().unwrap();
        let a = format!("\"{}…\"", "a".repeat(60));
        assert!(note.starts_with(&format!("the policy refused 4 tool calls ({a}, ")));
        assert!(note.ends_with("c…\", …): r"), "{note}");
    }
}
