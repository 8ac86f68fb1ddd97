//! Elicitations: questions of an agent to its user, as opposed to permission requests. A form, a URL to
//! visit, or a plan to approve.

pub mod choices;
mod form;

pub use form::is_secret;

use acpipe_protocol::wire::{AskedTool, QuestionKind};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Content of an elicitation. The policy never answers it in place of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationDetails {
    pub kind: QuestionKind,
    /// Text of the question; for a plan, the plan itself.
    pub message: String,
    /// JSON schema of the answer to a form; `None` for other kinds.
    pub schema: Option<Value>,
    /// URL that the user is to visit; `None` for other kinds.
    pub url: Option<String>,
    /// Id that the agent gave the elicitation, if it reports later that the user has visited the URL.
    pub id: Option<String>,
    pub other: Map<String, Value>,
}

impl ElicitationDetails {
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

    /// Creates an elicitation to approve the plan in a tool call. Without a plan in the input, the message is
    /// the text of the call's content, else its title.
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

    /// Checks an answer against the schema.
    ///
    /// # Errors
    ///
    /// The first fault in the answer, as text for people.
    pub fn check(&self, content: &Map<String, Value>) -> Result<(), String> {
        match &self.schema {
            Some(schema) => form::check(schema, content),
            None => Ok(()),
        }
    }

    /// Returns what the user typed in an answer, as opposed to chosen.
    pub fn typed<'a>(
        &'a self,
        content: &'a Map<String, Value>,
    ) -> impl Iterator<Item = Cow<'a, str>> {
        form::typed(self.schema.as_ref(), content)
    }

    /// Returns the fields of an answer that may be shown and stored: all but those that the schema marks as
    /// secret, as a whole or in part.
    pub fn shown(&self, content: &Map<String, Value>) -> Map<String, Value> {
        let secret = |name: &str| {
            let schema = self.schema.as_ref();
            schema.is_some_and(|schema| is_secret(schema, name))
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
    fn plan_text_comes_from_the_call() {
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
            assert_eq!(ElicitationDetails::plan(&call).message, message);
        }
    }

    #[test]
    fn typed_text_is_what_is_not_chosen() {
        let schema = json!({"type": "object", "properties": {
            "one": {"type": "string", "oneOf": [{"const": "red"}]},
            "some": {"type": "array", "items": {"enum": ["small", "large"]}},
            "own": {"type": "string"},
        }});
        let form = ElicitationDetails::form("?".into(), schema);
        let answer = json!({"one": "red", "some": ["small", "huge"], "own": "mine", "unknown": "x", "n": 7, "f": 7.5, "b": true, "o": {"p": [["inner"]]}});
        let mut typed: Vec<_> = form.typed(answer.as_object().unwrap()).collect();
        typed.sort_unstable();
        assert_eq!(typed, ["7", "7.5", "huge", "inner", "mine", "x"]);
    }

    #[test]
    fn secrets_are_not_shown() {
        let schema = json!({"type": "object", "properties": {
            "user": {"type": "string"},
            "password": {"type": "string", "format": "password"},
            "token": {"type": "string", "writeOnly": true},
        }});
        let answer = json!({"user": "u", "password": "p", "token": "t"});
        let form = ElicitationDetails::form("Sign in".into(), schema);
        let shown = form.shown(answer.as_object().unwrap());
        assert_eq!(Value::Object(shown), json!({"user": "u"}));
    }

    #[test]
    fn marks_of_secrets_apply_at_any_depth() {
        let password = json!({"type": "string", "format": "password"});
        let write_only = json!({"type": "string", "writeOnly": true});
        let plain = json!({"type": "string"});
        let form = |field: &Value| json!({"type": "object", "properties": {"f": field}});
        for (schema, is_secret) in [
            (form(&json!({"type": "array", "items": password})), true),
            (form(&json!({"prefixItems": [plain, write_only]})), true),
            (
                form(&json!({"anyOf": [plain, {"oneOf": [password]}]})),
                true,
            ),
            (
                form(&json!({"type": "object", "properties": {"p": password}})),
                true,
            ),
            (form(&json!({"additionalProperties": write_only})), true),
            (
                json!({"properties": {"f": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": password}}),
                true,
            ),
            (
                json!({"properties": {"f": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": password}}),
                true,
            ),
            (json!({"writeOnly": true, "properties": {"f": plain}}), true),
            (
                json!({"properties": {"f": plain}, "allOf": [{"properties": {"f": password}}]}),
                true,
            ),
            (json!({"properties": {"f": plain, "g": password}}), false),
            (
                json!({"properties": {"f": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}, "b": password}}),
                false,
            ),
            (json!({"properties": {"f": {"$ref": "https://h/s"}}}), true),
            (json!({"properties": {"f": {"$ref": "#/$defs/none"}}}), true),
            (
                form(
                    &json!({"default": {"format": "password"}, "properties": {"format": plain, "writeOnly": plain}}),
                ),
                false,
            ),
        ] {
            assert_eq!(super::is_secret(&schema, "f"), is_secret, "{schema}");
        }
    }
}
