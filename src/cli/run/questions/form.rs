//! Form that is filled in field by field.

use super::prompt_view::{PromptView, short};
use super::{NextStep, until};
use acpipe_model::elicitation;
use acpipe_protocol::wire::QuestionParams;
use serde_json::{Map, Value, json};

/// Maximum length in characters of a default, a format or a rejected word in prompts and messages.
const DEFAULT: usize = 40;

/// Form with the values entered so far.
#[derive(Debug)]
pub struct FormQuestion {
    message: String,
    deadline_ms: Option<u64>,
    fields: Vec<Field>,
    /// Index of the current field.
    at: usize,
    content: Map<String, Value>,
}

/// Field, as its JSON schema describes it.
#[derive(Debug)]
struct Field {
    name: String,
    title: String,
    description: String,
    required: bool,
    default: Option<Value>,
    kind: FieldKind,
    /// `true` if the value must not be shown while it is typed.
    is_secret: bool,
    /// Minimum and maximum of a number, of a text's length, or of how many choices are selected.
    bounds: (Option<f64>, Option<f64>),
}

#[derive(Debug)]
enum FieldKind {
    /// Text with its `format`; empty for none.
    Text(String),
    Number {
        whole: bool,
    },
    Flag,
    One(Vec<FieldChoice>),
    /// Any number of the choices; free texts if the list is empty.
    Some(Vec<FieldChoice>),
}

#[derive(Debug)]
struct FieldChoice {
    value: Value,
    title: String,
    description: String,
}

impl FormQuestion {
    pub fn new(params: &QuestionParams) -> Self {
        let schema = params.schema.as_ref();
        let required = schema.and_then(|s| s["required"].as_array());
        let required: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.and_then(|s| s["properties"].as_object());
        let field = |(name, property): (&String, &Value)| {
            let is_secret = schema.is_some_and(|schema| elicitation::is_secret(schema, name));
            let required = required.contains(&name.as_str());
            Field {
                is_secret,
                ..Field::new(name, property, required)
            }
        };
        Self {
            message: params.message.clone(),
            deadline_ms: params.deadline_ms,
            fields: properties.into_iter().flatten().map(field).collect(),
            at: 0,
            content: Map::new(),
        }
    }

    pub fn show(&self, view: &mut PromptView) {
        view.line("\x1b[1macpipe: the agent asks you\x1b[0m");
        view.words(&self.message);
        let until = until(self.deadline_ms, "it is declined automatically");
        view.line(&format!("  Ctrl-D declines{until}"));
        self.show_field(view);
    }

    /// Shows the current field.
    pub fn show_field(&self, view: &mut PromptView) {
        let Some(field) = self.fields.get(self.at) else {
            return;
        };
        view.block(
            field.title.lines().map(|line| ("\x1b[1m", line)),
            usize::MAX,
        );
        view.words(&field.description);
        let (FieldKind::One(choices) | FieldKind::Some(choices)) = &field.kind else {
            return;
        };
        for (n, choice) in choices.iter().enumerate() {
            let words = match choice.description.as_str() {
                "" => choice.title.clone(),
                description => format!("{}: {description}", choice.title),
            };
            view.choice(&(n + 1).to_string(), &words);
        }
    }

    pub fn prompt(&self) -> String {
        match self.fields.get(self.at) {
            Some(field) => format!(
                "{} of {}: {}: ",
                self.at + 1,
                self.fields.len(),
                field.wanted()
            ),
            None => "y/n (Enter declines): ".to_owned(),
        }
    }

    pub fn is_secret(&self) -> bool {
        let field = self.fields.get(self.at);
        field.is_some_and(|field| field.is_secret)
    }

    pub fn read(&mut self, line: Option<&str>) -> NextStep {
        let decline = || NextStep::Answer(json!({"action": "decline"}));
        let Some(line) = line else { return decline() };
        let line = line.trim();
        let Some(field) = self.fields.get(self.at) else {
            // A form without fields needs only consent.
            return match line.to_lowercase().as_str() {
                "y" | "yes" => self.accept(),
                "" | "n" | "no" => decline(),
                _ => NextStep::Again("enter y or n".to_owned()),
            };
        };
        match field.read(line) {
            Ok(Some(value)) => {
                self.content.insert(field.name.clone(), value);
            }
            Ok(None) => {}
            Err(why) => return NextStep::Again(why),
        }
        self.at += 1;
        if self.at < self.fields.len() {
            return NextStep::More;
        }
        self.accept()
    }

    fn accept(&self) -> NextStep {
        NextStep::Answer(json!({"action": "accept", "content": self.content}))
    }
}

impl Field {
    fn new(name: &str, schema: &Value, required: bool) -> Self {
        let text = |field: &str| schema[field].as_str().unwrap_or_default().to_owned();
        let items = &schema["items"];
        let (kind, least, most) = match schema["type"].as_str() {
            Some("integer") => (FieldKind::Number { whole: true }, "minimum", "maximum"),
            Some("number") => (FieldKind::Number { whole: false }, "minimum", "maximum"),
            Some("boolean") => (FieldKind::Flag, "", ""),
            Some("array") => (FieldKind::Some(choices(items)), "minItems", "maxItems"),
            _ => match choices(schema) {
                none if none.is_empty() => {
                    (FieldKind::Text(text("format")), "minLength", "maxLength")
                }
                choices => (FieldKind::One(choices), "", ""),
            },
        };
        let title = Some(text("title")).filter(|title| !title.is_empty());
        Self {
            name: name.to_owned(),
            title: title.unwrap_or_else(|| name.to_owned()),
            description: text("description"),
            required,
            default: schema.get("default").filter(|v| !v.is_null()).cloned(),
            kind,
            is_secret: false,
            bounds: (schema[least].as_f64(), schema[most].as_f64()),
        }
    }

    /// Describes the expected input.
    fn wanted(&self) -> String {
        let what = match &self.kind {
            FieldKind::Text(format) if format.is_empty() => "text".to_owned(),
            FieldKind::Text(format) => format!("text ({})", short(format, DEFAULT)),
            FieldKind::Number { whole: true } => "a whole number".to_owned(),
            FieldKind::Number { whole: false } => "a number".to_owned(),
            FieldKind::Flag => "y/n".to_owned(),
            FieldKind::One(choices) => format!("one of 1-{}", choices.len()),
            FieldKind::Some(choices) if choices.is_empty() => "texts, with commas".to_owned(),
            FieldKind::Some(choices) => format!("some of 1-{}, with commas", choices.len()),
        };
        match &self.default {
            Some(default) => {
                let default = match default {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                format!("{what} (Enter takes {})", short(&default, DEFAULT))
            }
            None if self.required => what,
            None => format!("{what} (Enter skips it)"),
        }
    }

    /// Parses a line to the field's value; `None` if the user skips the field.
    fn read(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => {
                    Err("an answer is required; press Ctrl-D to decline the whole form".to_owned())
                }
                None => Ok(None),
            };
        }
        let value = match &self.kind {
            FieldKind::Text(_) => {
                self.bounded(count(line.chars()), " characters")?;
                line.into()
            }
            FieldKind::Number { whole: true } => {
                let number: i64 = line.parse().map_err(|_| "enter a whole number")?;
                #[expect(clippy::cast_precision_loss, reason = "bounds are no larger")]
                self.bounded(number as f64, "")?;
                number.into()
            }
            FieldKind::Number { whole: false } => {
                let number: Option<f64> = line.parse().ok().filter(|n: &f64| n.is_finite());
                let number = number.ok_or("enter a number")?;
                self.bounded(number, "")?;
                number.into()
            }
            FieldKind::Flag => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => true.into(),
                "n" | "no" | "false" => false.into(),
                _ => return Err("enter y or n".to_owned()),
            },
            FieldKind::One(choices) => choose(choices, line)?,
            FieldKind::Some(choices) => {
                let words = line
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let mut values: Vec<Value> = Vec::new();
                for word in words {
                    let value = match choices.as_slice() {
                        [] => word.into(),
                        choices => choose(choices, word)?,
                    };
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                self.bounded(count(values.iter()), " choices")?;
                values.into()
            }
        };
        Ok(Some(value))
    }

    fn bounded(&self, size: f64, what: &str) -> Result<(), String> {
        let (least, most) = self.bounds;
        match (least, most) {
            (Some(least), _) if size < least => Err(format!("enter at least {least}{what}")),
            (_, Some(most)) if size > most => Err(format!("enter at most {most}{what}")),
            _ => Ok(()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody types so much")]
fn count(things: impl Iterator) -> f64 {
    things.count() as f64
}

/// Reads the choices of a schema: `enum` with optional `enumNames`, or `oneOf` or `anyOf` with titles.
fn choices(schema: &Value) -> Vec<FieldChoice> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(values) = schema["enum"].as_array() {
        let choice = |(n, value): (usize, &Value)| FieldChoice {
            title: schema["enumNames"][n]
                .as_str()
                .map_or_else(|| text(value), str::to_owned),
            description: String::new(),
            value: value.clone(),
        };
        return values.iter().enumerate().map(choice).collect();
    }
    let titled = schema["oneOf"]
        .as_array()
        .or_else(|| schema["anyOf"].as_array());
    let choice = |titled: &Value| {
        let value = titled.get("const")?.clone();
        Some(FieldChoice {
            title: titled["title"]
                .as_str()
                .map_or_else(|| text(&value), str::to_owned),
            description: titled["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            value,
        })
    };
    titled.into_iter().flatten().filter_map(choice).collect()
}

/// Finds a choice by its value or title, else by its number.
fn choose(choices: &[FieldChoice], word: &str) -> Result<Value, String> {
    let same = |text: &str| text.trim().to_lowercase() == word.to_lowercase();
    let named =
        |choice: &&FieldChoice| choice.value.as_str().is_some_and(same) || same(&choice.title);
    let numbered = || choices.get(word.parse::<usize>().ok()?.checked_sub(1)?);
    match choices.iter().find(named).or_else(numbered) {
        Some(choice) => Ok(choice.value.clone()),
        None => Err(format!(
            "{:?} is not one of 1-{}",
            short(word, DEFAULT),
            choices.len()
        )),
    }
}
