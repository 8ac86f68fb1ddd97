//! Plan of a turn.

use serde_json::{Value, json};

/// Step of a plan. A new step is pending and of medium priority.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct PlanEntry {
    text: String,
    status: &'static str,
    priority: &'static str,
}

impl PlanEntry {
    /// Creates a pending step.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            status: "pending",
            priority: "medium",
        }
    }

    /// Marks the step as the one that the agent works on.
    pub fn in_progress(mut self) -> Self {
        self.status = "in_progress";
        self
    }

    /// Marks the step as completed.
    pub fn completed(mut self) -> Self {
        self.status = "completed";
        self
    }

    /// Sets a high priority.
    pub fn important(mut self) -> Self {
        self.priority = "high";
        self
    }

    /// Sets a low priority.
    pub fn optional(mut self) -> Self {
        self.priority = "low";
        self
    }

    pub(super) fn json(&self) -> Value {
        json!({ "content": self.text, "status": self.status, "priority": self.priority })
    }
}

impl From<&str> for PlanEntry {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
