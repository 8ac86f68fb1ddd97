//! `AskUserQuestion`: conversion of its questions to a form, and of the filled form to the CLI's input.

use acpipe_json::{Members, to_raw, value};
use acpipe_model::elicitation::choices::ChoiceAnswer;
use acpipe_model::elicitation::{ElicitationDetails, choices};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Name of the tool that asks the user questions; plain approval does not answer it.
pub const NAME: &str = "AskUserQuestion";

/// Returns the valid questions of a call.
fn questions(input: &RawValue) -> Vec<Value> {
    let Value::Array(mut questions) = value(input)["questions"].take() else {
        return Vec::new();
    };
    questions.retain(choices::is_question);
    questions
}

/// Returns the form with the questions; `None` if there are none.
pub fn form(input: &RawValue) -> Option<ElicitationDetails> {
    choices::form(&questions(input))
}

/// Returns the tool's input with the answers; `None` if no question was answered.
pub fn answered(input: &RawValue, content: &RawValue) -> Option<Box<RawValue>> {
    let questions = questions(input);
    let (mut answers, mut notes) = (Map::new(), Map::new());
    for (n, answer) in choices::answers(&questions, &value(content)) {
        let Some(asked) = questions[n]["question"].as_str() else {
            continue;
        };
        let answer = match answer {
            ChoiceAnswer::One(answer, note) => {
                if let Some(note) = note {
                    notes.insert(asked.to_owned(), json!({ "notes": note }));
                }
                answer
            }
            ChoiceAnswer::Some(all) => {
                let all: Vec<String> = all.into_iter().map(quoted).collect();
                all.join(", ")
            }
        };
        answers.insert(asked.to_owned(), answer.into());
    }
    if answers.is_empty() {
        return None;
    }
    let mut input = Members::of(input);
    input.set_owned("answers", &answers);
    if !notes.is_empty() {
        input.set_owned("annotations", &notes);
    }
    Some(to_raw(&input))
}

/// Quotes one of several answers if necessary: the CLI splits them at commas outside quotes.
fn quoted(answer: String) -> String {
    if answer.contains(", ") || answer.contains('"') {
        return Value::String(answer).to_string();
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(questions: &Value) -> Box<RawValue> {
        to_raw(&json!({ "questions": questions }))
    }

    fn colour(multiple: bool) -> Value {
        json!({"question": "Which colour?", "header": "Colour", "multiSelect": multiple, "options": [
            {"label": "red", "description": "warm"}, {"label": "blue", "preview": "~~"}]})
    }

    #[test]
    fn a_question_is_a_choice_and_a_text() {
        let form = form(&input(&json!([colour(false)]))).unwrap();
        assert_eq!(form.message, "Which colour?");
        let schema = form.schema.unwrap();
        assert_eq!(
            schema["properties"]["question_0"],
            json!({"type": "string", "title": "Colour", "oneOf": [
                {"const": "red", "title": "red", "description": "warm"},
                {"const": "blue", "title": "blue", "_meta": {"_claude/askUserQuestionOption": {"preview": "~~"}}}]})
        );
        assert_eq!(schema["properties"]["question_0_custom"]["type"], "string");
        assert_eq!(schema.get("required"), None);
    }

    #[test]
    fn several_questions_are_one_form() {
        let other = json!({"question": "Sure?", "header": "Sure", "options": [{"label": "yes"}]});
        let form = form(&input(&json!([colour(true), other]))).unwrap();
        assert_eq!(form.message, "Please answer these questions.");
        let fields = &form.schema.unwrap()["properties"];
        assert_eq!(fields["question_0"]["type"], "array");
        assert_eq!(fields["question_0"]["items"]["anyOf"][0]["const"], "red");
        assert_eq!(fields["question_1"]["description"], "Sure?");
    }

    #[test]
    fn input_without_questions_is_not_a_form() {
        for questions in [
            json!(null),
            json!([]),
            json!("x"),
            json!([{"question": 1, "options": [{"label": "a"}]}, {"question": "q", "options": []}, 7]),
        ] {
            assert_eq!(form(&input(&questions)), None, "{questions}");
        }
        assert_eq!(form(RawValue::NULL), None);
    }

    #[test]
    fn answers_have_the_shape_claude_expects() {
        let cases = [
            (
                false,
                json!({"question_0": "red"}),
                json!("red"),
                Value::Null,
            ),
            (
                false,
                json!({"question_0_custom": " green "}),
                json!("green"),
                Value::Null,
            ),
            (
                false,
                json!({"question_0": "red", "question_0_custom": "dark"}),
                json!("red"),
                json!("dark"),
            ),
            (
                true,
                json!({"question_0": ["red", "blue"]}),
                json!("red, blue"),
                Value::Null,
            ),
            (
                true,
                json!({"question_0": ["red"], "question_0_custom": "a, b"}),
                json!("red, \"a, b\""),
                Value::Null,
            ),
        ];
        for (multiple, content, answer, note) in cases {
            let input = input(&json!([colour(multiple)]));
            let updated = value(&answered(&input, &to_raw(&content)).unwrap());
            assert_eq!(updated["questions"], json!([colour(multiple)]));
            assert_eq!(
                updated["answers"],
                json!({ "Which colour?": answer }),
                "{content}"
            );
            assert_eq!(updated["annotations"]["Which colour?"]["notes"], note);
        }
        let input = input(&json!([colour(false)]));
        for nothing in [json!({}), json!({"question_0_custom": "  "}), json!(null)] {
            assert!(answered(&input, &to_raw(&nothing)).is_none(), "{nothing}");
        }
    }
}
