//! The updates in which blocks are told.

use super::blocks::{Block, Kind, json};
use super::{Frames, Out};
use crate::core::claude::tools;
use crate::core::event::{Content, MessagePiece, ToolStatus, ToolUpdate, Update, Voice};
use crate::proto::claude::{self, word};
use crate::proto::json::{JsonStr, Members, non_null, to_raw};
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Frames {
    /// The whole input of a tool call.
    pub(super) fn tool_whole<'a>(
        &mut self,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, RawValue>,
        other: Members<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let plan = tools::plan(&name, &input);
        let wished = tools::wished(&name, &input);
        let begins = self
            .tools
            .insert(id.to_string(), name.to_string())
            .is_none();
        out.say(tool(ToolUpdate {
            id,
            begins,
            kind: Some(tools::kind(&name).into()),
            title: Some(tools::title(&name, Some(&input)).into()),
            locations: tools::locations(&name, &input).map(Cow::Owned),
            content: (!wished.is_empty()).then(|| Cow::Owned(to_raw(&wished))),
            status: begins.then(|| ToolStatus::Pending.as_str().into()),
            name: Some(name),
            input: Some(input),
            other,
            ..ToolUpdate::default()
        }));
        if let Some(data) = plan {
            let id = Cow::Borrowed("plan");
            out.say(Update::Plan { id, data });
        }
    }

    /// A block that is neither words nor a call: what came of a call that the model's provider made itself,
    /// or something new.
    pub(super) fn other_block<'a>(&mut self, block: &claude::Block<'a>, out: &mut Out<'a, '_>) {
        if block.tool_use_id.is_some() && word(block.kind).ends_with("_tool_result") {
            let result = self.tool_result(block, None);
            return out.say(tool(result));
        }
        out.say(Update::Other);
    }
}

/// An object of any type; `None` where it is none.
pub fn object<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

pub fn kind(block: &claude::Block<'_>) -> Kind {
    match word(block.kind) {
        "text" => Kind::Answer,
        "thinking" => Kind::Thought,
        "redacted_thinking" => Kind::Redacted,
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Kind::Tool,
        _ => Kind::Other,
    }
}

/// The words of a block.
pub fn said<'a>(block: &claude::Block<'a>) -> Option<JsonStr<'a>> {
    block.text.or(block.thinking).and_then(JsonStr::new)
}

pub fn voice(kind: Kind) -> Voice {
    match kind {
        Kind::Thought | Kind::Redacted => Voice::Thought,
        _ => Voice::Answer,
    }
}

/// What is said of a thought as a whole.
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

/// The end of a block of words, unless nothing was shown of it.
pub fn words_end<'a>(block: &Block) -> Option<Update<'a>> {
    let provider = block.provider.as_ref().map(|(name, said)| {
        let mut members = Members::default();
        members.set_owned(*name, said);
        ("anthropic", members)
    });
    (block.shown || provider.is_some()).then_some(Update::WordsEnd { provider })
}

pub fn piece<'a>(
    voice: Voice,
    message_id: Option<Cow<'a, str>>,
    content: Content<'a>,
    about: Members<'a>,
) -> Update<'a> {
    Update::Message(MessagePiece {
        voice,
        message_id,
        content,
        subagent: None,
        about,
    })
}

/// No more words, but something said of them.
pub fn empty<'a>(voice: Voice, message_id: Option<Cow<'a, str>>, about: Members<'a>) -> Update<'a> {
    piece(voice, message_id, Content::Rest(json("")), about)
}

pub fn tool(update: ToolUpdate<'_>) -> Update<'_> {
    Update::Tool(Box::new(update))
}

/// What is said of a call beside what every call has.
pub fn beside<'a>(block: &claude::Block<'a>) -> Members<'a> {
    let mut other = block.rest.clone();
    if word(block.kind) != "tool_use" {
        other.set_some("type", block.kind);
    }
    other
}
