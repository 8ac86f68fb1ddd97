//! Updates for the blocks of a message.

use super::LineSink;
use super::blocks::{Block, BlockKind, json};
use crate::claude::tools;
use acpipe_json::{JsonStr, Members, non_null, text, to_raw};
use acpipe_model::event::{
    Content, MessagePiece, MessageRole, NO_CALL_ID, ToolStatus, ToolUpdate, Update, call_id,
};
use acpipe_protocol::claude;
use acpipe_protocol::claude::word;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// Returns the name of a tool. Readers of chunks refuse a call without a name.
pub(super) fn tool_name(raw: Option<&RawValue>) -> Cow<'_, str> {
    let name = text(raw).filter(|name| !name.is_empty());
    name.unwrap_or(Cow::Borrowed("tool"))
}

/// Reports the complete input of a tool call, and adds it to the known calls. `begins` is `true` if no other block of the message has
/// begun the call.
pub(super) fn tool_whole<'a>(
    calls: &mut HashSet<String>,
    (id, name): (Cow<'a, str>, Cow<'a, str>),
    input: Cow<'a, RawValue>,
    other: Members<'a>,
    begins: bool,
    out: &mut LineSink<'a, '_>,
) {
    let plan = tools::plan(&name, &input);
    let planned_diffs = tools::planned_diffs(&name, &input);
    calls.insert(id.to_string());
    out.push(tool(ToolUpdate {
        id,
        begins,
        kind: Some(tools::kind(&name).into()),
        title: Some(tools::title(&name, Some(&input)).into()),
        locations: tools::locations(&name, &input).map(Cow::Owned),
        content: (!planned_diffs.is_empty()).then(|| Cow::Owned(to_raw(&planned_diffs))),
        status: begins.then(|| ToolStatus::Pending.as_str().into()),
        name: Some(name),
        input: Some(input),
        other,
        ..ToolUpdate::default()
    }));
    if let Some(data) = plan {
        let id = Cow::Borrowed("plan");
        out.push(Update::Plan { id, data });
    }
}

pub fn object<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

pub fn kind(block: &claude::Block<'_>) -> BlockKind {
    match word(block.kind) {
        "text" => BlockKind::Answer,
        "thinking" => BlockKind::Thought,
        "redacted_thinking" => BlockKind::Redacted,
        "tool_use" | "server_tool_use" | "mcp_tool_use" => BlockKind::Tool,
        _ => BlockKind::Other,
    }
}

/// Returns the id of a message: a number is the text of its digits.
pub fn message_id(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let id = call_id(raw);
    (id != NO_CALL_ID).then_some(id)
}

pub fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

pub fn said<'a>(block: &claude::Block<'a>) -> Option<JsonStr<'a>> {
    block.text.or(block.thinking).and_then(JsonStr::new)
}

pub fn role(kind: BlockKind) -> MessageRole {
    match kind {
        BlockKind::Thought | BlockKind::Redacted => MessageRole::Thought,
        _ => MessageRole::Answer,
    }
}

/// Returns the signature or the redacted data of a thought.
pub fn provider(block: &claude::Block<'_>) -> Option<(&'static str, Box<RawValue>)> {
    let redacted = block.data.map(|data| ("redactedData", data.to_owned()));
    let signature = non_null(block.signature).filter(|signature| signature.get() != "\"\"");
    redacted.or_else(|| signature.map(|signature| ("signature", signature.to_owned())))
}

pub fn redacted() -> Members<'static> {
    let mut about = Members::default();
    about.set_owned("redacted", &true);
    about
}

/// Returns the end of a text block; `None` if nothing of it was shown.
pub fn text_end<'a>(block: &Block) -> Option<Update<'a>> {
    let provider = block.provider.as_ref().map(|(name, said)| {
        let mut members = Members::default();
        members.set_owned(*name, said);
        ("anthropic", members)
    });
    (block.shown || provider.is_some()).then_some(Update::TextEnd { provider })
}

pub fn piece<'a>(
    role: MessageRole,
    message_id: Option<Cow<'a, str>>,
    content: Content<'a>,
    about: Members<'a>,
) -> Update<'a> {
    Update::Message(MessagePiece {
        role,
        message_id,
        content,
        subagent: None,
        about,
    })
}

/// Returns an empty piece of text that only carries metadata.
pub fn empty<'a>(
    role: MessageRole,
    message_id: Option<Cow<'a, str>>,
    about: Members<'a>,
) -> Update<'a> {
    piece(role, message_id, Content::Rest(json("")), about)
}

pub fn tool(update: ToolUpdate<'_>) -> Update<'_> {
    Update::Tool(Box::new(update))
}

/// Returns the members of a call that have no field of their own.
pub fn beside<'a>(block: &claude::Block<'a>) -> Members<'a> {
    let mut other = block.rest.clone();
    if word(block.kind) != "tool_use" {
        other.set_some("type", block.kind);
    }
    other
}
