//! Reads a prompt of the demo agent: keywords in it, and the schema of the answer.

use super::tool::DemoTool;
use serde_json::Value;

/// Features that a prompt requests; several are possible.
#[derive(Debug, Default, PartialEq)]
pub struct PromptIntent {
    /// Tools in the order of their calls.
    pub tools: Vec<DemoTool>,
    pub plan: bool,
    /// A stream slow enough to be interrupted.
    pub slow: bool,
}

impl PromptIntent {
    /// Finds keywords in a prompt. Only whole words count: "listen" and "planet" request nothing.
    pub fn of(prompt: &str) -> Self {
        let prompt = prompt.to_lowercase();
        let words: Vec<&str> = prompt.split(|c: char| !c.is_alphanumeric()).collect();
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
        let edits = has(&["edit", "edits", "write"]);
        // "edit a file" requests only the edit.
        let lists = has(&["files", "list", "ls", "tool", "tools"]) || has(&["file"]) && !edits;
        let tools = [(lists, DemoTool::List), (edits, DemoTool::Edit)];
        let tools = tools
            .iter()
            .filter_map(|(is_wanted, tool)| is_wanted.then_some(*tool));
        Self {
            tools: tools.collect(),
            plan: has(&["plan", "plans"]),
            slow: has(&["slow", "slowly"]),
        }
    }
}

/// Text of acpipe before the schema of an answer.
const BEFORE_SCHEMA: &str = "JSON Schema:\n\n";

/// Splits a prompt into the text of the user and the schema that acpipe appended.
pub fn without_schema(prompt: &str) -> (&str, Option<Value>) {
    let Some((text, rest)) = prompt.rsplit_once(BEFORE_SCHEMA) else {
        return (prompt, None);
    };
    match serde_json::Deserializer::from_str(rest).into_iter().next() {
        Some(Ok(schema)) => (
            text.rsplit_once('\n').map_or("", |(text, _)| text),
            Some(schema),
        ),
        _ => (prompt, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn demo_intent_matches_whole_words() {
        let asked = |prompt| {
            let asked = PromptIntent::of(prompt);
            (asked.tools, asked.plan, asked.slow)
        };
        assert_eq!(asked("hello"), (vec![], false, false));
        let others = "Listen: explain the planet's profile, slower, and credit the writer";
        assert_eq!(asked(others), (vec![], false, false));
        assert_eq!(
            asked("LIST the files, please"),
            (vec![DemoTool::List], false, false)
        );
        assert_eq!(asked("edit a file"), (vec![DemoTool::Edit], false, false));
        let all = "make a plan, list files, then edit one. slowly!";
        assert_eq!(
            asked(all),
            (vec![DemoTool::List, DemoTool::Edit], true, true)
        );
    }

    #[test]
    fn schema_is_separated_from_the_text_of_the_user() {
        let request =
            acpipe_core::output_schema::first_request(&json!({"type": "object", "title": "list"}));
        let prompt = format!("hello\n{request}");
        let (text, schema) = without_schema(&prompt);
        assert_eq!(
            (text, schema),
            ("hello", Some(json!({"type": "object", "title": "list"})))
        );
        for other in ["hello", "my JSON Schema:\n\nis missing"] {
            assert_eq!(without_schema(other), (other, None));
        }
    }
}
