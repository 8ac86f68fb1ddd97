//! Pieces of an answer: texts and tool calls of a message or of a piece of one.

use acpipe_json::{JsonStr, Members, non_null};
use acpipe_model::event::MessageRole;
use acpipe_protocol::openai::{
    CompletionChoice, CompletionMessage, CompletionToolCall, ContentPart, Function,
};
use serde_json::value::RawValue;

#[derive(Debug)]
pub struct TextPiece<'a> {
    pub role: MessageRole,
    /// The text, a JSON string.
    pub text: &'a RawValue,
}

#[derive(Debug, Default)]
pub struct Pieces<'a> {
    pub texts: Vec<TextPiece<'a>>,
    /// Whether one of the texts is a refusal.
    pub refuses: bool,
    pub calls: Vec<CallPiece<'a>>,
    /// Members that no other field has.
    pub others: Members<'a>,
}

/// Tool call, or a piece of one.
#[derive(Debug)]
pub struct CallPiece<'a> {
    pub index: Option<u64>,
    pub id: Option<String>,
    pub name: Option<String>,
    /// The next piece of the arguments, a JSON string.
    pub arguments: Option<&'a RawValue>,
}

pub fn pieces<'a>(choice: &CompletionChoice<'a>) -> Pieces<'a> {
    let message = choice.delta.or(choice.message);
    let message: CompletionMessage<'a> = message.and_then(parsed).unwrap_or_default();
    let mut found = Pieces::default();
    let reasoning = [
        message.reasoning_content,
        message.reasoning,
        message.reasoning_text,
    ];
    // Some servers send the same reasoning under two names.
    let reasoning = reasoning.into_iter().flatten().find(|text| has_text(text));
    found.add_text(MessageRole::Thought, reasoning);
    match non_null(message.content) {
        Some(content) if content.get().starts_with('[') => {
            let parts: Vec<ContentPart<'a>> = parsed(content).unwrap_or_default();
            for part in parts {
                found.add_part(&part);
            }
        }
        content => found.add_text(MessageRole::Answer, content),
    }
    if let Some(refusal) = message.refusal.filter(|text| has_text(text)) {
        found.add_text(MessageRole::Answer, Some(refusal));
        found.refuses = true;
    }
    let calls: Vec<CompletionToolCall<'a>> = non_null(message.tool_calls)
        .and_then(parsed)
        .unwrap_or_default();
    for call in &calls {
        let function: Function<'a> = call.function.and_then(parsed).unwrap_or_default();
        found.calls.push(CallPiece {
            index: call.index.and_then(|index| index.get().parse().ok()),
            id: string(call.id),
            name: string(function.name),
            arguments: function.arguments,
        });
    }
    if let Some(function) = non_null(message.function_call).and_then(parsed::<Function<'a>>) {
        found.calls.push(CallPiece {
            index: Some(0),
            id: None,
            name: string(function.name),
            arguments: function.arguments,
        });
    }
    let mut others = message.rest.without_null();
    others.extend(choice.rest.clone().without_null());
    found.others = others.without(&["content_filter_results"]);
    found
}

impl<'a> Pieces<'a> {
    fn add_text(&mut self, role: MessageRole, text: Option<&'a RawValue>) {
        if let Some(text) = text.filter(|text| has_text(text)) {
            self.texts.push(TextPiece { role, text });
        }
    }

    fn add_part(&mut self, part: &ContentPart<'a>) {
        self.add_text(MessageRole::Answer, part.text);
        // Mistral: `{"type": "thinking", "thinking": [{"type": "text", "text": …}]}`.
        let inner = part.thinking.and_then(parsed::<Vec<ContentPart<'a>>>);
        match inner {
            Some(inner) => {
                for part in inner {
                    self.add_text(MessageRole::Thought, part.text);
                }
            }
            None => self.add_text(MessageRole::Thought, part.thinking),
        }
    }
}

/// Returns `true` for a JSON string that is not empty.
fn has_text(raw: &RawValue) -> bool {
    JsonStr::new(raw).is_some_and(|text| !text.is_empty())
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    let text = acpipe_json::text(raw)?;
    (!text.is_empty()).then(|| text.into_owned())
}

fn parsed<'a, T: serde::Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
