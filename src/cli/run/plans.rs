//! Plans of the agent in text output: each entry is shown when it is new and when its state changes.

use super::questions::prompt_view::short;
use super::view::ACTIVITY;
use crate::cli::sessions::{PlanEntryStatus, plan_entries};
use serde_json::Value;

/// Maximum number of plans whose changes are followed.
const PLANS: usize = 16;

/// Maximum number of lines of one change.
const LINES: usize = 20;

/// Plans as last shown, by id.
#[derive(Debug, Default)]
pub struct ShownPlans(Vec<(String, Vec<(PlanEntryStatus, String)>)>);

impl ShownPlans {
    /// Takes a plan. Returns a line for each entry that is new or has another state.
    pub fn changes(&mut self, id: &str, data: &Value) -> Vec<String> {
        let at = self.0.iter().position(|(known, _)| known == id);
        let earlier = at.map(|at| self.0.remove(at).1).unwrap_or_default();
        if data["removed"] == true {
            return vec!["removed".to_owned()];
        }
        let entries: Vec<_> = plan_entries(data)
            .into_iter()
            .map(|(status, text)| (status, short(&text, ACTIVITY)))
            .collect();
        let changed = entries.iter().filter(|entry| !earlier.contains(entry));
        let mut lines: Vec<String> = changed
            .map(|(status, text)| format!("{} {text}", status.mark()))
            .collect();
        if lines.len() > LINES {
            let more = lines.split_off(LINES).len();
            lines.push(format!("and {more} more"));
        }
        if self.0.len() >= PLANS {
            self.0.remove(0);
        }
        self.0.push((id.to_owned(), entries));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(entries: &[(&str, &str)]) -> Value {
        let entries = entries.iter().map(
            |(content, status)| json!({"content": content, "priority": "medium", "status": status}),
        );
        json!({"entries": entries.collect::<Vec<_>>()})
    }

    #[test]
    fn only_the_changes_of_a_plan_are_shown() {
        let mut plans = ShownPlans::default();
        let first = plan(&[("read", "in_progress"), ("write", "pending")]);
        assert_eq!(plans.changes("plan", &first), ["[~] read", "[ ] write"]);
        assert!(plans.changes("plan", &first).is_empty());
        let second = plan(&[
            ("read", "completed"),
            ("test", "pending"),
            ("write", "pending"),
        ]);
        assert_eq!(plans.changes("plan", &second), ["[x] read", "[ ] test"]);
        // Another plan has its own entries.
        assert_eq!(plans.changes("other", &first), ["[~] read", "[ ] write"]);
        assert_eq!(
            plans.changes("plan", &json!({"removed": true})),
            ["removed"]
        );
        assert_eq!(plans.changes("plan", &second).len(), 3);
    }

    #[test]
    fn lines_and_plans_are_limited() {
        let mut plans = ShownPlans::default();
        let texts: Vec<String> = (0..LINES + 5).map(|n| n.to_string()).collect();
        let entries: Vec<(&str, &str)> = texts.iter().map(|text| (&**text, "pending")).collect();
        let long = plan(&entries);
        for n in 0..PLANS + 5 {
            let lines = plans.changes(&n.to_string(), &long);
            assert_eq!(lines.len(), LINES + 1);
            assert_eq!(lines[LINES], "and 5 more");
        }
        assert_eq!(plans.0.len(), PLANS);
    }
}
