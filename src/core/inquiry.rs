//! What an agent asks its user, as against what it asks to be allowed: a form, an address to go to, a plan.

pub mod choices;
mod form;

use crate::proto::wire::{AskedTool, QuestionKind};
use serde_json::{Map, Value};

/// A question to the user. No policy answers it in his place.
#[derive(Debug, Clone, PartialEq)]
pub struct Inquiry {
    pub kind: QuestionKind,
    /// The question in words; of a plan, the plan.
    pub message: String,
    /// The JSON schema of the answer to a form.
    pub schema: Option<Value>,
    /// Where the user is to go.
    pub url: Option<String>,
    /// The agent's own id, where it will tell that the user has been there.
    pub id: Option<String>,
    /// What else it said with the question.
    pub other: Map<String, Value>,
}

impl Inquiry {
    /// To fill in a form.
    #[must_use]
    pub fn form(message: String, schema: Value) -> Self {
        Self {
            kind: QuestionKind::Form,
            message,
            schema: Some(schema),
            url: None,
            id: None,
            other: Map::new(),
        }
    }

    /// To go to an address.
    #[must_use]
    pub fn url(message: String, url: String, id: Option<String>) -> Self {
        Self {
            kind: QuestionKind::Url,
            message,
            schema: None,
            url: Some(url),
            id,
            other: Map::new(),
        }
    }

    /// To approve the plan that a tool call tells, or what it tells in place of one.
    #[must_use]
    pub fn plan(call: &AskedTool) -> Self {
        let input = call.input.as_ref();
        let plan = input.and_then(|input| input["plan"].as_str());
        let content = || {
            let items = call.content.as_ref()?.as_array()?;
            let texts = items
                .iter()
                .filter_map(|item| item["content"]["text"].as_str());
            Some(texts.collect::<Vec<_>>().join("\n"))
        };
        let plan = plan.map(str::to_owned).or_else(content);
        let title = || call.title.as_ref().unwrap_or(&call.tool_name).clone();
        Self {
            kind: QuestionKind::Plan,
            message: plan.filter(|plan| !plan.is_empty()).unwrap_or_else(title),
            schema: None,
            url: None,
            id: None,
            other: Map::new(),
        }
    }

    /// Whether an answer is one; if not, why.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for people.
    pub fn check(&self, content: &Map<String, Value>) -> Result<(), String> {
        match &self.schema {
            Some(schema) => form::check(schema, content),
            None => Ok(()),
        }
    }

    /// What of an answer may be shown and stored: not what the schema calls secret.
    #[must_use]
    pub fn shown(&self, content: &Map<String, Value>) -> Map<String, Value> {
        let secret = |name: &str| {
            let schema = self.schema.as_ref();
            schema.is_some_and(|schema| form::is_secret(schema, name))
        };
        let shown = content.iter().filter(|(name, _)| !secret(name));
        shown.map(|(name, v)| (name.clone(), v.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plan_is_what_the_call_tells() {
        let text =
            json!([{"type": "content", "content": {"type": "text", "text": "from content"}}]);
        for (input, content, message) in [
            (Some(json!({"plan": "1. go"})), Some(text.clone()), "1. go"),
            (Some(json!({})), Some(text), "from content"),
            (None, Some(json!([])), "Approve Plan"),
            (Some(json!({"plan": 7})), None, "Approve Plan"),
        ] {
            let call = AskedTool {
                title: Some("Approve Plan".into()),
                input,
                content,
                ..AskedTool::default()
            };
            assert_eq!(Inquiry::plan(&call).message, message);
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let schema = json!({"type": "object", "properties": {
            "user": {"type": "string"},
            "password": {"type": "string", "format": "password"},
            "token": {"type": "string", "writeOnly": true},
        }});
        let answer = json!({"user": "u", "password": "p", "token": "t"});
        let form = Inquiry::form("Sign in".into(), schema);
        let shown = form.shown(answer.as_object().unwrap());
        assert_eq!(Value::Object(shown), json!({"user": "u"}));
    }
}
