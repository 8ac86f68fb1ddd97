//! Questions to the user: forms and their answers.

use serde_json::{Map, Value, json};

/// Form that the user fills in.
///
/// ```
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::agent::Form;
///
/// Form::new("How shall I deploy?")
///     .choice("target", "Target", ["staging", "production"])
///     .boolean("tests", "Run the tests first")
///     .optional_text("note", "Note for the log");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Form {
    pub(super) message: String,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Form {
    /// Creates a form with a question and no fields.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// Adds a field for text.
    pub fn text(self, name: impl Into<String>, title: impl Into<String>) -> Self {
        self.required(name, json!({ "type": "string", "title": title.into() }))
    }

    /// Adds a field for text that may stay empty.
    pub fn optional_text(mut self, name: impl Into<String>, title: impl Into<String>) -> Self {
        let field = json!({ "type": "string", "title": title.into() });
        self.properties.insert(name.into(), field);
        self
    }

    /// Adds a field with one of several values.
    pub fn choice<T: Into<String>>(
        self,
        name: impl Into<String>,
        title: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        let field = json!({ "type": "string", "title": title.into(), "enum": values });
        self.required(name, field)
    }

    /// Adds a field for yes or no.
    pub fn boolean(self, name: impl Into<String>, title: impl Into<String>) -> Self {
        self.required(name, json!({ "type": "boolean", "title": title.into() }))
    }

    /// Adds a field for a number.
    pub fn number(self, name: impl Into<String>, title: impl Into<String>) -> Self {
        self.required(name, json!({ "type": "number", "title": title.into() }))
    }

    fn required(mut self, name: impl Into<String>, field: Value) -> Self {
        let name = name.into();
        self.required.push(name.clone());
        self.properties.insert(name, field);
        self
    }

    /// Returns the JSON Schema of the answer.
    pub(super) fn schema(&self) -> Value {
        json!({ "type": "object", "properties": self.properties, "required": self.required })
    }
}

/// Answer to a [`Form`].
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The user filled in the form: the values by the names of the fields.
    Submitted(Map<String, Value>),
    /// The user refused to answer.
    Declined,
    /// The question ended without an answer, for example because the turn was cancelled.
    Cancelled,
}

impl Answer {
    /// Returns the text of a field; `None` if there is no answer, or the field has none.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        match self {
            Self::Submitted(values) => values.get(field)?.as_str(),
            Self::Declined | Self::Cancelled => None,
        }
    }

    /// Parses the result of `elicitation/create`.
    pub(super) fn of_result(result: &Value) -> Self {
        match result["action"].as_str() {
            Some("accept") => {
                Self::Submitted(result["content"].as_object().cloned().unwrap_or_default())
            }
            Some("decline") => Self::Declined,
            _ => Self::Cancelled,
        }
    }
}
