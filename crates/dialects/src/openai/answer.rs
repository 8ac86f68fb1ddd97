//! Answer of an endpoint for chat completions, as a stream or as a whole.

use super::pieces::{CallPiece, Pieces, TextPiece, pieces};
use crate::backend::UnusableLine;
use crate::endpoint::{BodyReader, Caller};
use acpipe_json::{JsonStr, Members, non_null, text, to_raw, value};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{
    Content, MessagePiece, MessageRole, Original, StopReason, ToolStatus, ToolUpdate, TurnEnd,
    Update,
};
use acpipe_model::line_repair::repaired_answer;
use acpipe_protocol::openai::{Completion, CompletionChoice};
use acpipe_protocol::wire::TokenUsage;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Last event of a stream.
const DONE: &str = "[DONE]";

const NOT_RUN: &str = "Not run: acpipe runs no tools for chat completions";

/// Maximum size of the collected arguments of a tool call, and of a text that is parsed as JSON.
const MAX_COLLECTED: usize = 16 << 20;

const MAX_CALLS: usize = 1000;

/// Maximum number of members of the completion that nothing else shows.
const MAX_MEMBERS: usize = 100;

/// Reader of an answer.
#[derive(Debug, Default)]
pub struct CompletionBody {
    caller: Caller,
    /// Text of the answer, collected if it is to be JSON.
    json: Option<String>,
    calls: Vec<PartialCall>,
    refused: bool,
    finish_reason: Option<String>,
    is_done: bool,
    has_choice: bool,
    usage: Option<Value>,
    error: Option<Error>,
    /// Members of the completion that nothing else shows.
    others: Members<'static>,
    other_members: usize,
}

#[derive(Debug)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    /// Id in the answer, which several calls may have.
    agents_id: String,
    name: String,
    arguments: String,
}

impl CompletionBody {
    /// Creates the reader of an answer; `is_json` if the client requested an answer that matches a schema.
    #[must_use]
    pub fn new(caller: Caller, is_json: bool) -> Self {
        Self {
            caller,
            json: is_json.then(String::new),
            ..Self::default()
        }
    }

    /// Takes what concerns the completion as a whole; returns its first choice.
    fn take<'a>(&mut self, completion: &Completion<'a>) -> Option<CompletionChoice<'a>> {
        if let Some(error) = non_null(completion.error) {
            let error = self.caller.reported_error(&value(error));
            self.error.get_or_insert(error);
        }
        if let Some(usage) = non_null(completion.usage) {
            self.usage = Some(value(&self.caller.clean_json(usage)));
        }
        for (name, other) in completion.rest.iter() {
            let is_known = self.others.get(name).is_some();
            if !is_known
                && self.other_members < MAX_MEMBERS
                && other.get() != "null"
                && name != "choices"
            {
                self.other_members += 1;
                let other = self.caller.clean_json(other);
                self.others.set_owned(name.to_owned(), &other);
            }
        }
        let choices = non_null(completion.choices)?;
        let choices: Vec<CompletionChoice<'a>> = serde_json::from_str(choices.get()).ok()?;
        let is_first =
            |choice: &CompletionChoice<'_>| choice.index.is_none_or(|index| index.get() == "0");
        let choice = choices.into_iter().find(is_first)?;
        self.has_choice = true;
        if let Some(reason) = text(non_null(choice.finish_reason)).filter(|text| !text.is_empty()) {
            self.finish_reason = Some(self.caller.clean(&reason));
        }
        Some(choice)
    }

    fn collect(&mut self, piece: &TextPiece<'_>) {
        if let Some(json) = &mut self.json
            && piece.role == MessageRole::Answer
            && json.len() < MAX_COLLECTED
            && let Some(text) = JsonStr::new(piece.text)
        {
            text.decode_into(json);
        }
    }

    /// Merges a piece of a tool call; returns its number and whether it begins the call. `None` if there are too
    /// many calls.
    fn merge(&mut self, piece: &CallPiece<'_>) -> Option<(usize, bool)> {
        // Some servers give every call the index 0, so that another id begins another call.
        let continues = |call: &PartialCall| {
            (piece.index.is_none() || call.index == piece.index)
                && piece.id.as_ref().is_none_or(|id| *id == call.agents_id)
        };
        let known = self.calls.iter().rposition(continues);
        if known.is_none() && self.calls.len() == MAX_CALLS {
            let message = format!("the endpoint's answer has more than {MAX_CALLS} tool calls");
            let error = Error::new(ErrorKind::Malformed, message);
            self.error.get_or_insert(error);
            return None;
        }
        let at = known.unwrap_or_else(|| {
            let number = self.calls.len() + 1;
            let id = piece.id.clone();
            let id = id.unwrap_or_else(|| format!("call_{number}"));
            let is_used = self.calls.iter().any(|call| call.id == id);
            self.calls.push(PartialCall {
                index: piece.index,
                // The answer ends all calls at once, so an id that is used again would name an open call.
                id: if is_used {
                    format!("{id}#{number}")
                } else {
                    id.clone()
                },
                agents_id: id,
                name: piece.name.clone().unwrap_or_else(|| "function".to_owned()),
                arguments: String::new(),
            });
            number - 1
        });
        let call = &mut self.calls[at];
        if let Some(arguments) = piece.arguments.and_then(JsonStr::new)
            && call.arguments.len() < MAX_COLLECTED
        {
            arguments.decode_into(&mut call.arguments);
        }
        Some((at, known.is_none()))
    }

    fn stop_reason(&self) -> StopReason {
        if self.refused {
            return StopReason::Refusal;
        }
        match self.finish_reason.as_deref() {
            None | Some("stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn") => {
                StopReason::EndTurn
            }
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter" | "safety") => StopReason::Refusal,
            Some(_) => StopReason::Unknown,
        }
    }

    /// Shows the complete input of the tool calls, which end without having run.
    fn complete_calls(&self, updates: &mut Vec<Update<'static>>) {
        for call in &self.calls {
            let arguments = match call.arguments.trim() {
                "" => "{}",
                arguments => arguments,
            };
            let input = serde_json::from_str::<&RawValue>(arguments).map(ToOwned::to_owned);
            let input = input.unwrap_or_else(|_| to_raw(&call.arguments));
            let id: Cow<'static, str> = Cow::Owned(call.id.clone());
            updates.push(Update::Tool(Box::new(ToolUpdate {
                id: id.clone(),
                input: Some(Cow::Owned(input)),
                ..ToolUpdate::default()
            })));
            let why =
                json!([{ "type": "content", "content": { "type": "text", "text": NOT_RUN } }]);
            updates.push(Update::Tool(Box::new(ToolUpdate {
                id,
                status: Some(Cow::Borrowed(ToolStatus::Failed.as_str())),
                content: Some(Cow::Owned(to_raw(&why))),
                ..ToolUpdate::default()
            })));
        }
    }
}

impl BodyReader for CompletionBody {
    fn read<'a>(
        &mut self,
        data: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine> {
        if data.trim() == DONE {
            self.is_done = true;
            return Ok(());
        }
        let completion: Completion<'a> = serde_json::from_str(data).map_err(|_| UnusableLine)?;
        let Some(choice) = self.take(&completion) else {
            return Ok(());
        };
        let Pieces {
            texts,
            refuses,
            calls,
            mut others,
        } = pieces(&choice);
        self.refused |= refuses;
        let original = original(data);
        for piece in &texts {
            self.collect(piece);
            if let Some(text) = JsonStr::new(piece.text) {
                let about = std::mem::take(&mut others);
                let update = message(piece.role, Content::Text(text), about);
                updates.push((update, original));
            }
        }
        for piece in &calls {
            let Some((at, begins)) = self.merge(piece) else {
                break;
            };
            let call = &self.calls[at];
            let update = ToolUpdate {
                id: Cow::Owned(call.id.clone()),
                begins,
                name: begins.then(|| Cow::Owned(call.name.clone())),
                status: begins.then_some(Cow::Borrowed("pending")),
                input_delta: piece.arguments.and_then(JsonStr::new),
                ..ToolUpdate::default()
            };
            updates.push((Update::Tool(Box::new(update)), original));
        }
        if !others.is_empty() && texts.is_empty() {
            updates.push((Update::Other, original));
        }
        Ok(())
    }

    fn read_whole(&mut self, body: &str, updates: &mut Vec<Update<'static>>) -> Result<(), Error> {
        let repaired;
        let completion: Completion<'_> = match serde_json::from_str(body) {
            Ok(completion) => completion,
            Err(error) => {
                let what = format!("is not JSON: {error}");
                let malformed = || self.caller.malformed(&what, body);
                repaired = repaired_answer(body).ok_or_else(malformed)?;
                serde_json::from_str(&repaired).map_err(|_| malformed())?
            }
        };
        let choice = self.take(&completion);
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let choice = choice.ok_or_else(|| self.caller.malformed("has no `choices`", body))?;
        let found = pieces(&choice);
        self.refused |= found.refuses;
        let mut others = found.others.into_owned();
        for piece in &found.texts {
            self.collect(piece);
            let content = Content::Rest(piece.text.to_owned());
            updates.push(message(piece.role, content, std::mem::take(&mut others)));
        }
        for piece in &found.calls {
            let Some((at, begins)) = self.merge(piece) else {
                break;
            };
            updates.push(Update::Tool(Box::new(ToolUpdate {
                id: Cow::Owned(self.calls[at].id.clone()),
                begins,
                name: Some(Cow::Owned(self.calls[at].name.clone())),
                status: Some(Cow::Borrowed("pending")),
                ..ToolUpdate::default()
            })));
        }
        self.is_done = true;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_done || self.error.is_some()
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.error.is_some()
    }

    fn end(&mut self, updates: &mut Vec<Update<'static>>) -> Result<TurnEnd, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !self.is_done && self.finish_reason.is_none() {
            let message = "the endpoint's answer ended early, without a finish reason; the part before it was kept, \
                           try again";
            return Err(Error::new(ErrorKind::Streaming, message));
        }
        if !self.has_choice {
            return Err(self.caller.malformed("has no `choices`", ""));
        }
        self.complete_calls(updates);
        let stop_reason = self.stop_reason();
        let mut other = std::mem::take(&mut self.others);
        if let Some(usage) = &self.usage {
            other.set_owned("usage", usage);
        }
        let structured = self
            .json
            .take()
            .filter(|_| stop_reason == StopReason::EndTurn);
        let structured = structured.and_then(|json| RawValue::from_string(json).ok());
        let finish_reason = self.finish_reason.take().unwrap_or_default();
        let reported = stop_reason.acp_name().unwrap_or(&finish_reason).to_owned();
        if !finish_reason.is_empty() {
            other.set_owned("finishReason", &finish_reason);
        }
        Ok(TurnEnd {
            stop_reason,
            reported,
            usage: self.usage.as_ref().map(usage),
            structured_output: structured,
            other,
            ..TurnEnd::default()
        })
    }
}

fn message<'a>(role: MessageRole, content: Content<'a>, about: Members<'a>) -> Update<'a> {
    Update::Message(MessagePiece {
        role,
        message_id: None,
        content,
        subagent: None,
        about,
    })
}

fn original(line: &str) -> Original<'_> {
    fn cut(line: &str) -> Option<&RawValue> {
        serde_json::from_str(line).ok()
    }
    fn fields(line: &str) -> Members<'_> {
        serde_json::from_str(line).unwrap_or_default()
    }
    Original { line, cut, fields }
}

/// Reads token counts, in the forms of the common servers.
fn usage(usage: &Value) -> TokenUsage {
    let count = |places: &[&str]| {
        places
            .iter()
            .find_map(|place| usage.pointer(place)?.as_u64())
    };
    let input_tokens = count(&["/prompt_tokens", "/input_tokens"]);
    let output_tokens = count(&["/completion_tokens", "/output_tokens"]);
    let sum = || Some(input_tokens?.saturating_add(output_tokens?));
    TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens: count(&["/total_tokens"]).or_else(sum),
        cached_read_tokens: count(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cache_read_input_tokens",
        ]),
        cached_write_tokens: count(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/cache_creation_input_tokens",
        ]),
        thought_tokens: count(&["/completion_tokens_details/reasoning_tokens"]),
    }
}

#[cfg(test)]
mod tests;
