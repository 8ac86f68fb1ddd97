//! Options of a session that its user can change, such as the model.

use serde_json::{Value, json};

/// Option with a list of choices. The first choice is the default.
///
/// ```
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::agent::{OptionCategory, SelectOption};
///
/// SelectOption::new("model", "Model")
///     .category(OptionCategory::Model)
///     .choice("fast", "Fast")
///     .choice("careful", "Careful");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct SelectOption {
    id: String,
    name: String,
    category: Option<OptionCategory>,
    choices: Vec<(String, String)>,
}

/// Meaning of an option, by which clients choose where to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionCategory {
    /// The mode in which the agent works, such as planning.
    Mode,
    /// The model.
    Model,
    /// How much the model thinks.
    ThoughtLevel,
}

impl SelectOption {
    /// Creates an option without choices. `name` is for people.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            category: None,
            choices: Vec::new(),
        }
    }

    /// Sets the meaning of the option.
    pub fn category(mut self, category: OptionCategory) -> Self {
        self.category = Some(category);
        self
    }

    /// Adds a choice.
    pub fn choice(mut self, id: impl Into<String>, name: impl Into<String>) -> Self {
        self.choices.push((id.into(), name.into()));
        self
    }

    /// Returns the id of the option.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the id of the first choice.
    pub(super) fn default_choice(&self) -> &str {
        self.choices.first().map_or("", |(id, _)| id)
    }

    pub(super) fn has_choice(&self, value: &str) -> bool {
        self.choices.iter().any(|(id, _)| id == value)
    }

    /// Returns the ids of the choices for an error message.
    pub(super) fn choice_ids(&self) -> String {
        let ids = self.choices.iter().map(|(id, _)| id.as_str());
        ids.collect::<Vec<_>>().join(", ")
    }

    /// Returns the option as in `configOptions`.
    pub(super) fn config(&self, current: &str) -> Value {
        let choices = self.choices.iter();
        let choices: Vec<Value> = choices
            .map(|(id, name)| json!({ "value": id, "name": name }))
            .collect();
        let mut config = json!({ "id": self.id, "name": self.name, "type": "select" });
        config["currentValue"] = current.into();
        config["options"] = choices.into();
        if let Some(category) = self.category {
            config["category"] = match category {
                OptionCategory::Mode => "mode",
                OptionCategory::Model => "model",
                OptionCategory::ThoughtLevel => "thought_level",
            }
            .into();
        }
        config
    }
}
