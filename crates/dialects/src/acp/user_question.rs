//! Questions to the user that an agent sends as a permission request: an approval alone does not answer them,
//! and no policy answers them for the user.
//!
//! [`READERS`] lists how agents mark such a question, where its questions are, and which field of the
//! response has the answers.

use acpipe_json::value;
use acpipe_model::decision::Decision;
use acpipe_model::elicitation::choices::ChoiceAnswer;
use acpipe_model::elicitation::{ElicitationDetails, choices};
use acpipe_model::event::{PermissionOption, ToolUpdate};
use acpipe_model::option_choice::choose;
use serde_json::{Map, Value, json};

/// Format in which an agent sends questions by `session/request_permission`.
#[derive(Debug)]
struct Reader {
    /// JSON pointer to the field of the tool call that marks the question, and its value.
    mark: (&'static str, &'static str),
    /// JSON pointers to the list of questions in the tool call; the first that exists is used.
    questions: &'static [&'static str],
    /// Field of the response for the answers: an object of texts with the indices of their questions as keys.
    answers: &'static str,
}

const READERS: &[Reader] = &[
    // Qwen Code: `ask_user_question`. It expects several answers to one question as one text, separated by
    // commas.
    Reader {
        mark: ("/_meta/qwenInteractionKind", "user_question"),
        questions: &["/_meta/qwenQuestions", "/rawInput/questions"],
        answers: "answers",
    },
];

/// A question that the agent sent, with the data needed for its response.
#[derive(Debug)]
pub struct UserQuestion {
    reader: &'static Reader,
    /// Questions that could be parsed, each with its index among all.
    asked: Vec<(usize, Value)>,
    /// Option to choose if nothing was answered.
    decline_option: Option<PermissionOption>,
}

impl UserQuestion {
    /// Parses such a question and builds its form; `None` if the call is an ordinary permission request.
    pub fn of(
        tool: &ToolUpdate<'_>,
        options: &[PermissionOption],
    ) -> Option<(Self, ElicitationDetails)> {
        let meta = value(tool.meta?);
        let marked = |reader: &&Reader| {
            let (at, mark) = reader.mark;
            let at = at.strip_prefix("/_meta");
            at.and_then(|at| meta.pointer(at))
                .is_some_and(|said| said == mark)
        };
        let reader = READERS.iter().find(marked)?;
        let input = tool.input.as_deref().map(value);
        let call = json!({ "_meta": meta, "rawInput": input });
        let mut lists = reader
            .questions
            .iter()
            .filter_map(|at| call.pointer(at)?.as_array());
        let all = lists.next().into_iter().flatten().enumerate();
        let asked = all.filter(|(_, question)| choices::is_question(question));
        let asked: Vec<(usize, Value)> = asked.map(|(n, question)| (n, question.clone())).collect();
        let questions: Vec<Value> = asked.iter().map(|(_, question)| question.clone()).collect();
        // A call without any question that can be parsed is still a question to the user.
        let unread = || {
            let title = tool.title.as_deref().unwrap_or("The agent has a question");
            ElicitationDetails::form(
                title.to_owned(),
                json!({ "type": "object", "properties": {} }),
            )
        };
        let form = choices::form(&questions).unwrap_or_else(unread);
        let question = Self {
            reader,
            asked,
            decline_option: choose(false, false, options).cloned(),
        };
        Some((question, form))
    }

    /// Builds the response: the chosen option with the answers, or a refusal if there are none.
    pub fn response(&self, decision: &Decision) -> Value {
        let answers = self.answers(decision);
        let choice = match &decision.choice {
            Some(option) if answers.is_none() && !option.kind.refuses() => {
                self.decline_option.as_ref()
            }
            choice => choice.as_ref(),
        };
        let outcome = match choice {
            Some(option) => json!({ "outcome": "selected", "optionId": option.id }),
            None => json!({ "outcome": "cancelled" }),
        };
        let mut response = json!({ "outcome": outcome });
        if let Some(answers) = answers {
            response[self.reader.answers] = answers.into();
        }
        response
    }

    fn answers(&self, decision: &Decision) -> Option<Map<String, Value>> {
        let content = decision
            .content
            .as_deref()
            .filter(|_| decision.approved())?;
        let questions: Vec<Value> = self
            .asked
            .iter()
            .map(|(_, question)| question.clone())
            .collect();
        let text = |answer| match answer {
            ChoiceAnswer::One(answer, None) => answer,
            ChoiceAnswer::One(answer, Some(note)) => format!("{answer} ({note})"),
            ChoiceAnswer::Some(all) => all.join(", "),
        };
        let answers = choices::answers(&questions, &value(content)).into_iter();
        let answers = answers.map(|(n, answer)| (self.asked[n].0.to_string(), text(answer).into()));
        let answers: Map<String, Value> = answers.collect();
        (!answers.is_empty()).then_some(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_json::to_raw;
    use acpipe_model::decision::DecisionSource;
    use acpipe_model::event::OptionKind;
    use serde_json::value::RawValue;

    fn options() -> Vec<PermissionOption> {
        let option = |id: &str, kind| PermissionOption {
            id: id.to_owned(),
            name: id.to_owned(),
            kind,
        };
        vec![
            option("proceed_once", OptionKind::AllowOnce),
            option("cancel", OptionKind::RejectOnce),
        ]
    }

    fn question(meta: &RawValue) -> Option<(UserQuestion, ElicitationDetails)> {
        let tool = ToolUpdate {
            title: Some("Ask user 2 questions".into()),
            meta: Some(meta),
            ..ToolUpdate::default()
        };
        UserQuestion::of(&tool, &options())
    }

    fn colours() -> Box<RawValue> {
        let colour = json!({"question": "Which colour?", "header": "Colour",
            "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]});
        let sizes = json!({"question": "Which sizes?", "header": "Sizes", "multiSelect": true,
            "options": [{"label": "small", "description": ""}, {"label": "large", "description": ""}]});
        to_raw(
            &json!({"toolName": "ask_user_question", "qwenInteractionKind": "user_question",
            "qwenQuestions": [colour, {"question": 7}, sizes]}),
        )
    }

    #[test]
    fn answers_are_keyed_by_the_index_of_their_question() {
        let meta = colours();
        let (question, form) = question(&meta).unwrap();
        let schema = form.schema.unwrap();
        assert_eq!(
            schema["properties"]["question_0"]["oneOf"][1]["const"],
            "blue"
        );
        assert_eq!(schema["properties"]["question_1"]["type"], "array");
        let content = json!({"question_0": "blue", "question_0_custom": "dark",
            "question_1": ["small", "large"]});
        let decision = Decision {
            content: Some(to_raw(&content)),
            ..Decision::of(true, false, &options(), DecisionSource::Client)
        };
        let want = json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"},
            "answers": {"0": "blue (dark)", "2": "small, large"}});
        assert_eq!(question.response(&decision), want);
    }

    #[test]
    fn empty_answers_submit_nothing() {
        let meta = colours();
        let (question, _) = question(&meta).unwrap();
        let refused = json!({"outcome": {"outcome": "selected", "optionId": "cancel"}});
        for decision in [
            Decision::of(true, false, &options(), DecisionSource::Policy("r".into())),
            Decision::of(false, false, &options(), DecisionSource::Client),
            Decision {
                content: Some(to_raw(&json!({}))),
                ..Decision::of(true, false, &options(), DecisionSource::Client)
            },
        ] {
            assert_eq!(question.response(&decision), refused);
        }
        let cancelled = question.response(&Decision::cancelled(DecisionSource::Cancel));
        assert_eq!(cancelled, json!({"outcome": {"outcome": "cancelled"}}));
    }

    #[test]
    fn unreadable_questions_become_one_plain_question() {
        let meta = to_raw(&json!({"qwenInteractionKind": "user_question", "qwenQuestions": 7}));
        let (_, form) = question(&meta).unwrap();
        assert_eq!(form.message, "Ask user 2 questions");
        for meta in [
            json!({}),
            json!({"qwenInteractionKind": "plan"}),
            json!(null),
        ] {
            assert!(question(&to_raw(&meta)).is_none(), "{meta}");
        }
    }
}
