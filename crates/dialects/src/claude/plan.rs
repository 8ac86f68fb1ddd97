//! Instruction for the model in plan mode.
//!
//! The CLI takes a system prompt only at the start of its process. A session that enters plan mode later gets
//! the instruction with its next prompt, as a reminder that is not part of the user's text.

use serde_json::{Value, json};

const MODE: &str = "plan";

/// Instruction for the model in plan mode, in addition to the CLI's own.
const INSTRUCTION: &str = "You are planning. Read whatever you need, but change nothing: no file, no state of any \
    system. When you know enough, write down the plan and hand it over with ExitPlanMode; begin the work only after \
    it was approved.";

/// Returns the instruction for the system prompt of a process that starts in this mode.
pub fn instruction(mode: Option<&str>) -> Option<&'static str> {
    (mode == Some(MODE)).then_some(INSTRUCTION)
}

/// Whether the model of a session has to be instructed to plan.
#[derive(Debug)]
pub struct PlanInstruction {
    is_planning: bool,
    /// `true` if the model has the instruction since the session entered plan mode.
    is_given: bool,
}

impl PlanInstruction {
    /// Creates the state of a process that starts in this mode; its system prompt has the instruction.
    #[must_use]
    pub fn started_in(mode: Option<&str>) -> Self {
        let is_planning = mode == Some(MODE);
        Self {
            is_planning,
            is_given: is_planning,
        }
    }

    pub fn mode(&mut self, mode: &str) {
        self.is_planning = mode == MODE;
        self.is_given &= self.is_planning;
    }

    /// Records that the last prompt was not sent.
    pub fn withdraw(&mut self) {
        self.is_given = false;
    }

    /// Adds the instruction to a prompt if the model does not have it. Commands of the CLI are left as they
    /// are, because the CLI recognises them by the beginning of the prompt.
    pub fn add_to(&mut self, content: &mut Vec<Value>) {
        let text = content.first().and_then(|block| block["text"].as_str());
        let is_command = text.is_some_and(|text| text.trim_start().starts_with('/'));
        if self.is_planning && !self.is_given && !is_command {
            let text = format!("<system-reminder>\n{INSTRUCTION}\n</system-reminder>");
            content.insert(0, json!({ "type": "text", "text": text }));
            self.is_given = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(plan: &mut PlanInstruction, text: &str) -> usize {
        let mut content = vec![json!({ "type": "text", "text": text })];
        plan.add_to(&mut content);
        assert_eq!(content.last().unwrap()["text"], text);
        content.len() - 1
    }

    #[test]
    fn instruction_is_given_once_for_each_entry_into_plan_mode() {
        let mut plan = PlanInstruction::started_in(Some("default"));
        assert_eq!(prompt(&mut plan, "a"), 0);
        plan.mode("plan");
        assert_eq!(prompt(&mut plan, "/compact"), 0);
        assert_eq!(prompt(&mut plan, "b"), 1);
        plan.mode("plan");
        assert_eq!(prompt(&mut plan, "c"), 0);
        plan.withdraw();
        assert_eq!(prompt(&mut plan, "c"), 1);
        plan.mode("acceptEdits");
        assert_eq!(prompt(&mut plan, "d"), 0);
        plan.mode("plan");
        assert_eq!(prompt(&mut plan, "e"), 1);
        // The system prompt has it already.
        let mut plan = PlanInstruction::started_in(Some("plan"));
        assert_eq!(prompt(&mut plan, "f"), 0);
    }
}
