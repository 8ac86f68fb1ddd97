//! State of the calls of a turn's step as a browser shows it, to decide when a stream ends for an approval.

use acpipe_protocol::chunk::ChunkFacts;
use serde::Deserialize;
use std::collections::BTreeMap;

/// State of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepCallState {
    Unfinished,
    Finished,
}

/// Whether the user must answer before the turn goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserWait {
    /// No question is open.
    No,
    /// A question is open, but other tool calls run.
    WhileCallsRun,
    /// All tool calls of the step are finished, or wait for the user.
    Yes,
}

/// Tool calls of the current step, and approvals that the browser was asked for.
#[derive(Debug, Default)]
pub struct MessageStep {
    calls: BTreeMap<String, StepCallState>,
    /// Approval → tool call, until it is decided.
    asked: BTreeMap<String, String>,
}

/// Part of a message with a tool call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPart {
    /// Id of the tool call.
    pub tool_call_id: String,
    /// State of the part, for example `approval-responded`.
    pub state: String,
    /// Whether the output is preliminary.
    #[serde(default)]
    pub preliminary: bool,
    /// Approval of the call.
    #[serde(default)]
    pub approval: Option<PartApproval>,
}

/// Approval in a tool part.
#[derive(Debug, Deserialize)]
pub struct PartApproval {
    /// Id of the approval, which is that of the question.
    pub id: String,
    /// Answer of the user.
    #[serde(default)]
    pub approved: Option<bool>,
    /// Reason of the user.
    #[serde(default)]
    pub reason: Option<String>,
}

impl MessageStep {
    /// Records a tool call of the message that a stream continues.
    pub fn continue_part(&mut self, part: &ToolPart) {
        let state = match part.state.as_str() {
            "output-available" if part.preliminary => StepCallState::Unfinished,
            "output-available" | "output-error" | "output-denied" => StepCallState::Finished,
            _ => StepCallState::Unfinished,
        };
        self.calls.insert(part.tool_call_id.clone(), state);
        if let Some(approval) = &part.approval
            && part.state == "approval-requested"
        {
            let call = part.tool_call_id.clone();
            self.asked.insert(approval.id.clone(), call);
        }
    }

    /// Records a chunk.
    pub fn observe(&mut self, chunk: &ChunkFacts) {
        match chunk {
            ChunkFacts::StepStart => self.calls.clear(),
            ChunkFacts::CallRuns(call) => {
                self.calls
                    .insert(call.to_string(), StepCallState::Unfinished);
            }
            ChunkFacts::CallEnds(call) => self.finish(call),
            ChunkFacts::Asks { approval, call } => {
                self.asked.insert(approval.to_string(), call.to_string());
            }
            ChunkFacts::Decided(approval) => {
                self.asked.remove(&**approval);
            }
            _ => {}
        }
    }

    fn finish(&mut self, call: &str) {
        self.calls.insert(call.to_owned(), StepCallState::Finished);
        self.asked.retain(|_, asked| asked != call);
    }

    /// Returns whether the user must answer; `is_open` says whether a question can be answered.
    pub fn user_wait(&self, is_open: impl Fn(&str) -> bool) -> UserWait {
        let open = self.asked.iter().filter(|(approval, _)| is_open(approval));
        let waiting: Vec<&String> = open.map(|(_, call)| call).collect();
        if waiting.is_empty() {
            return UserWait::No;
        }
        let all_wait = self
            .calls
            .iter()
            .all(|(call, state)| *state == StepCallState::Finished || waiting.contains(&call));
        if all_wait {
            UserWait::Yes
        } else {
            UserWait::WhileCallsRun
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_after(chunks: &[&str], open: &[&str]) -> UserWait {
        let mut step = MessageStep::default();
        for chunk in chunks {
            step.observe(&ChunkFacts::read(chunk));
        }
        step.user_wait(|id| open.contains(&id))
    }

    const CALL_A: &str = r#"{"type":"tool-input-available","toolCallId":"a"}"#;
    const CALL_B: &str = r#"{"type":"tool-input-available","toolCallId":"b"}"#;
    const ASK_A: &str = r#"{"type":"tool-approval-request","toolCallId":"a","approvalId":"q"}"#;

    #[test]
    fn user_is_waited_for_when_no_other_call_runs() {
        assert_eq!(wait_after(&[CALL_A], &["q"]), UserWait::No);
        assert_eq!(wait_after(&[CALL_A, ASK_A], &[]), UserWait::No);
        assert_eq!(wait_after(&[CALL_A, ASK_A], &["q"]), UserWait::Yes);
        let both = [CALL_B, CALL_A, ASK_A];
        assert_eq!(wait_after(&both, &["q"]), UserWait::WhileCallsRun);
        let preliminary =
            r#"{"type":"tool-output-available","toolCallId":"b","preliminary":true,"output":1}"#;
        let chunks = [CALL_B, CALL_A, ASK_A, preliminary];
        assert_eq!(wait_after(&chunks, &["q"]), UserWait::WhileCallsRun);
        let output = r#"{"type":"tool-output-available","toolCallId":"b","output":1}"#;
        let chunks = [CALL_B, CALL_A, ASK_A, output];
        assert_eq!(wait_after(&chunks, &["q"]), UserWait::Yes);
        let chunks = [CALL_B, r#"{"type":"start-step"}"#, CALL_A, ASK_A];
        assert_eq!(wait_after(&chunks, &["q"]), UserWait::Yes);
    }

    #[test]
    fn decided_question_is_not_waited_for() {
        for decision in [
            r#"{"type":"tool-approval-response","approvalId":"q","approved":true}"#,
            r#"{"type":"data-permission","id":"q","data":{"approved":false}}"#,
            r#"{"type":"tool-output-denied","toolCallId":"a"}"#,
        ] {
            let chunks = [CALL_A, ASK_A, decision];
            assert_eq!(wait_after(&chunks, &["q"]), UserWait::No, "{decision}");
        }
        let undecided = r#"{"type":"data-permission","id":"q","data":{"options":[]}}"#;
        assert_eq!(
            wait_after(&[CALL_A, ASK_A, undecided], &["q"]),
            UserWait::Yes
        );
        let automatic = r#"{"type":"tool-approval-request","toolCallId":"a","approvalId":"q","isAutomatic":true}"#;
        assert_eq!(wait_after(&[CALL_A, automatic], &["q"]), UserWait::No);
    }
}
