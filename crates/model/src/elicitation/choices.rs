//! Questions with answers to choose from, as a form.
//!
//! Several agents send the same format: a list of `{question, header, options: [{label, description}],
//! multiSelect}`. The form's fields have the names that claude-agent-acp gives them, so a client can show
//! both in the same way.

use super::ElicitationDetails;
use serde_json::{Map, Value, json};

/// Answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoiceAnswer {
    /// One of the choices with an optional note, or text that the user entered instead of a choice.
    One(String, Option<String>),
    /// Several of the choices; text that the user entered is last.
    Some(Vec<String>),
}

/// Returns `true` if the value is a question with text and at least one option.
pub fn is_question(question: &Value) -> bool {
    let options = question["options"].as_array();
    question["question"].is_string() && options.is_some_and(|options| !options.is_empty())
}

fn is_multiple(question: &Value) -> bool {
    question["multiSelect"] == true
}

/// Converts questions to a form; `None` if the list is empty.
pub fn form(questions: &[Value]) -> Option<ElicitationDetails> {
    let (first, more) = questions.split_first()?;
    let mut properties = Map::new();
    for (n, question) in questions.iter().enumerate() {
        let mut field = json!({ "title": question["header"] });
        if !more.is_empty() {
            field["description"] = question["question"].clone();
        }
        let options = question["options"].as_array().into_iter().flatten();
        let options: Value = options.filter_map(option).collect();
        if is_multiple(question) {
            field["type"] = "array".into();
            field["items"] = json!({ "anyOf": options });
        } else {
            field["type"] = "string".into();
            field["oneOf"] = options;
        }
        properties.insert(chosen(n), field);
        let own = if is_multiple(question) {
            "Another answer, in addition to the options above"
        } else {
            "Another answer, or a note on the option above"
        };
        let own = json!({ "type": "string", "title": "Other", "description": own });
        properties.insert(written(n), own);
    }
    let message = match first["question"].as_str() {
        Some(question) if more.is_empty() => question,
        _ => "Please answer these questions.",
    };
    let schema = json!({ "type": "object", "properties": properties });
    Some(ElicitationDetails::form(message.to_owned(), schema))
}

/// Converts an option to a choice of an ACP form. Its preview is stored under the name that claude-agent-acp
/// uses.
fn option(option: &Value) -> Option<Value> {
    let label = option["label"].as_str()?;
    let mut choice = json!({ "const": label, "title": label });
    if option["description"].is_string() {
        choice["description"] = option["description"].clone();
    }
    if option["preview"].is_string() {
        choice["_meta"] =
            json!({ "_claude/askUserQuestionOption": { "preview": option["preview"] } });
    }
    Some(choice)
}

fn chosen(n: usize) -> String {
    format!("question_{n}")
}

fn written(n: usize) -> String {
    format!("question_{n}_custom")
}

/// Returns the answers in a filled-in form, each with the index of its question.
pub fn answers(questions: &[Value], content: &Value) -> Vec<(usize, ChoiceAnswer)> {
    let text = |value: &Value| value.as_str().map(|text| text.trim().to_owned());
    let answer = |(n, question): (usize, &Value)| {
        let own = text(&content[written(n)]).filter(|own| !own.is_empty());
        let choice = &content[chosen(n)];
        let answer = if is_multiple(question) {
            let choices = choice.as_array().into_iter().flatten();
            let all: Vec<String> = choices.filter_map(text).chain(own).collect();
            ChoiceAnswer::Some(Some(all).filter(|all| !all.is_empty())?)
        } else {
            match choice.as_str() {
                Some(choice) => ChoiceAnswer::One(choice.to_owned(), own),
                None => ChoiceAnswer::One(own?, None),
            }
        };
        Some((n, answer))
    };
    questions.iter().enumerate().filter_map(answer).collect()
}
