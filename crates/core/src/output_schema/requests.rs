//! Texts that acpipe sends to an agent about the schema of its answer.

use super::Violation;
use serde_json::Value;

/// Returns the request that follows the message of a prompt, for agents that take no schema by other means.
pub fn first_request(schema: &Value) -> String {
    format!(
        "The final answer to the message above must be one JSON value that matches this JSON Schema:\n\n{schema}\n\n\
         Do the work first. Then write the JSON value as the last thing, in a code block marked json, and \
         nothing after it."
    )
}

pub fn repair_request(violations: &[Violation]) -> String {
    let list: Vec<String> = violations.iter().map(|v| format!("- {v}")).collect();
    let list = list.join("\n");
    format!(
        "The answer does not match the JSON Schema that was given for it:\n\n{list}\n\nAnswer again with the \
         corrected JSON value only."
    )
}
