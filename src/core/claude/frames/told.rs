//! What the model says: bit by bit in `stream_event` frames, and block by block in `assistant` frames.

use super::blocks::{Block, Kind, Show, json};
use super::{Failure, Frames, Out};
use crate::core::claude::tools;
use crate::core::event::{Content, MessagePiece, ToolStatus, ToolUpdate, Update, Voice};
use crate::proto::claude::{self, Frame, is_true, word};
use crate::proto::json::{JsonStr, Members, non_null, text, to_raw};
use serde_json::json as value;
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Frames {
    /// An event of the model's stream.
    pub(super) fn stream<'a>(&mut self, frame: &Frame<'a>, out: &mut Out<'a, '_>) {
        let Some(event) = &frame.event else {
            return out.say(Update::Other);
        };
        match word(event.kind) {
            "content_block_delta" => self.delta(frame, event, out),
            "content_block_start" => self.block_start(frame, event, out),
            "content_block_stop" => self.block_stop(frame, event, out),
            "message_start" => {
                let message: claude::Message<'_> = object(event.message).unwrap_or_default();
                let id = text(frame.api_message_id).or_else(|| text(message.id));
                self.begin(&id.unwrap_or_default(), true, out);
            }
            "message_delta" => {
                let delta = event.delta.as_ref();
                let ended = delta.is_some_and(|d| non_null(d.stop_reason).is_some());
                if let Some((message, _)) = self.message(frame, out) {
                    message.ended |= ended;
                }
                out.say(Update::Passing);
            }
            "message_stop" => self.message_stop(frame, out),
            "ping" => {}
            _ => out.say(Update::Other),
        }
    }

    /// The message that a frame of the stream is about.
    fn message(
        &mut self,
        frame: &Frame<'_>,
        out: &Out<'_, '_>,
    ) -> Option<(&mut super::blocks::Message, &mut Vec<(Kind, String)>)> {
        let id = text(frame.api_message_id);
        let speaker = self.speaker(out.parent.as_deref());
        if let Some(id) = &id {
            // Its beginning did not come.
            speaker.begin(id, true);
        }
        speaker.message(id.as_deref())
    }

    /// A message begins; what was open of the one before it, is not any more.
    fn begin(&mut self, id: &str, streamed: bool, out: &mut Out<'_, '_>) {
        let speaker = self.speaker(out.parent.as_deref());
        let mut words_open = false;
        if let Some((last, _)) = speaker.message(None).filter(|(last, _)| last.id != id) {
            for block in last.blocks.iter_mut().filter(|block| block.open) {
                words_open |= block.is_words() && block.shown;
                block.open = false;
            }
        }
        let is_step = speaker.begin(id, streamed);
        if words_open {
            out.say(Update::WordsEnd { provider: None });
        }
        if is_step {
            out.say(Update::Step);
        }
    }

    fn message_stop(&mut self, frame: &Frame<'_>, out: &mut Out<'_, '_>) {
        let abandoned = non_null(frame.rest.get("abandoned_blocks")).is_some();
        if !abandoned && frame.rest.is_empty() {
            return;
        }
        let mut calls = Vec::new();
        if let Some((message, _)) = self.message(frame, out).filter(|_| abandoned) {
            message.ended = false;
            for block in message.blocks.iter().filter(|block| !block.whole) {
                calls.extend(block.tool.clone());
            }
        }
        for (id, name) in calls {
            let why = "the model's stream broke off before the call was made";
            out.say(tool(ToolUpdate {
                id: id.into(),
                name: Some(name.into()),
                status: Some(ToolStatus::Failed.as_str().into()),
                content: Some(Cow::Owned(to_raw(&value!([
                    {"type": "content", "content": {"type": "text", "text": why}}
                ])))),
                ..ToolUpdate::default()
            }));
        }
        out.say(Update::Passing);
    }

    fn block_start<'a>(
        &mut self,
        frame: &Frame<'a>,
        event: &claude::Event<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let Some(raw) = event.block else {
            return out.say(Update::Other);
        };
        let block: claude::Block<'a> = object(Some(raw)).unwrap_or_default();
        let kind = kind(&block);
        let message_id = text(frame.api_message_id);
        if let Some((message, _)) = self.message(frame, out) {
            let known = message
                .blocks
                .iter()
                .any(|b| b.index == event.index() && b.open);
            if !known {
                let mut new = Block::new(kind, event.index());
                new.provider = provider(&block);
                message.blocks.push(new);
            }
        }
        match kind {
            Kind::Answer | Kind::Thought => {
                let said = block.text.or(block.thinking).and_then(JsonStr::new);
                if let Some(said) = said.filter(|said| !said.is_empty()) {
                    self.words(frame, event.index(), kind, said, out);
                }
                if word(block.kind) == "redacted_thinking" {
                    self.shown_empty(frame, event.index());
                    out.say(empty(Voice::Thought, message_id, redacted()));
                }
            }
            Kind::Tool => self.tool_start(frame, event.index(), &block, out),
            Kind::Other => self.other_block(&block, out),
        }
    }

    fn tool_start<'a>(
        &mut self,
        frame: &Frame<'a>,
        index: Option<u64>,
        block: &claude::Block<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let (Some(id), name) = (text(block.id), text(block.name).unwrap_or_default()) else {
            return out.say(Update::Other);
        };
        if let Some((message, _)) = self.message(frame, out) {
            message.block(index, Kind::Tool).tool = Some((id.to_string(), name.to_string()));
        }
        let begins = self
            .tools
            .insert(id.to_string(), name.to_string())
            .is_none();
        let input = block.input.filter(|input| input.get() != "{}");
        out.say(tool(ToolUpdate {
            id,
            begins,
            kind: Some(tools::kind(&name).into()),
            title: Some(tools::title(&name, None).into()),
            name: Some(name),
            status: begins.then(|| ToolStatus::Pending.as_str().into()),
            input: input.map(Cow::Borrowed),
            other: beside(block),
            ..ToolUpdate::default()
        }));
    }

    fn delta<'a>(&mut self, frame: &Frame<'a>, event: &claude::Event<'a>, out: &mut Out<'a, '_>) {
        let Some(delta) = &event.delta else {
            return out.say(Update::Other);
        };
        let string = |raw: Option<&'a RawValue>| raw.and_then(JsonStr::new);
        let index = event.index();
        match word(delta.kind) {
            "text_delta" if let Some(said) = string(delta.text) => {
                self.words(frame, index, Kind::Answer, said, out);
            }
            "thinking_delta" if let Some(said) = string(delta.thinking) => {
                self.words(frame, index, Kind::Thought, said, out);
            }
            "input_json_delta" if let Some(said) = string(delta.partial_json) => {
                let block = self.message(frame, out);
                let block = block.map(|(message, _)| message.block(index, Kind::Tool));
                let Some(block) = block.filter(|block| block.tool.is_some()) else {
                    return out.say(Update::Other);
                };
                block.piece(said, &mut Vec::new());
                let id = block.tool.as_ref().map(|(id, _)| id.clone());
                if !said.is_empty() {
                    out.say(tool(ToolUpdate {
                        id: id.unwrap_or_default().into(),
                        input_delta: Some(said),
                        ..ToolUpdate::default()
                    }));
                }
            }
            "signature_delta" if let Some(signature) = delta.signature => {
                if let Some((message, _)) = self.message(frame, out) {
                    let block = message.block(index, Kind::Thought);
                    block.provider = Some(("signature", signature.to_owned()));
                }
            }
            "citations_delta" if let Some(citation) = delta.citation => {
                let Some((message, _)) = self.message(frame, out) else {
                    return out.say(Update::Other);
                };
                let block = message.block(index, Kind::Answer);
                block.citations.push(citation.to_owned());
                block.shown = true;
                let mut about = Members::default();
                // Readers replace a list: it is said whole.
                about.set_owned("citations", &block.citations);
                out.say(empty(Voice::Answer, text(frame.api_message_id), about));
            }
            _ => out.say(Update::Other),
        }
    }

    /// A piece of an answer or a thought: the hot path.
    fn words<'a>(
        &mut self,
        frame: &Frame<'a>,
        index: Option<u64>,
        kind: Kind,
        said: JsonStr<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let message_id = text(frame.api_message_id);
        let Some((message, broken)) = self.message(frame, out) else {
            return out.say(Update::Other);
        };
        let block = message.block(index, kind);
        if block.kind != kind {
            return out.say(Update::Other);
        }
        let content = match block.piece(said, broken) {
            Show::Nothing => return,
            Show::All => Content::Text(said),
            Show::Rest(rest) => Content::Rest(json(&rest)),
        };
        let about = frame.rest.clone();
        out.say(piece(voice(kind), message_id, content, about));
    }

    fn shown_empty(&mut self, frame: &Frame<'_>, index: Option<u64>) {
        let parent = frame.parent();
        let speaker = self.speaker(parent.as_deref());
        if let Some((message, _)) = speaker.message(text(frame.api_message_id).as_deref()) {
            message.block(index, Kind::Thought).shown = true;
        }
    }

    fn block_stop<'a>(
        &mut self,
        frame: &Frame<'a>,
        event: &claude::Event<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let index = event.index();
        let Some((message, _)) = self.message(frame, out) else {
            return;
        };
        let ends = |block: &&mut Block| block.index == index && block.open;
        let Some(block) = message.blocks.iter_mut().rev().find(ends) else {
            return;
        };
        block.open = false;
        if block.is_words() {
            if let Some(end) = words_end(block) {
                out.say(end);
            }
            return;
        }
        let input = block.told();
        let Some((id, name)) = block.tool.clone().filter(|_| !block.whole) else {
            return;
        };
        let input = if input.is_empty() {
            "{}".to_owned()
        } else {
            input
        };
        // Where the input breaks off, the stream did: its text was shown.
        if let Ok(input) = RawValue::from_string(input) {
            self.tool_whole(
                id.into(),
                name.into(),
                Cow::Owned(input),
                Members::default(),
                out,
            );
        }
    }

    /// The whole input of a tool call.
    fn tool_whole<'a>(
        &mut self,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, RawValue>,
        other: Members<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let plan = tools::plan(&name, &input);
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

    /// Blocks of a message, whole.
    pub(super) fn assistant<'a>(&mut self, frame: &Frame<'a>, out: &mut Out<'a, '_>) {
        let message: claude::Message<'a> = object(frame.message).unwrap_or_default();
        let blocks: Option<Vec<&'a RawValue>> = object(message.content);
        let (Some(id), Some(blocks)) = (text(message.id), blocks) else {
            return out.say(Update::Other);
        };
        if word(message.model) == "<synthetic>" || is_true(frame.is_api_error) {
            let is_local = frame.rest.get("local_command_source").is_some()
                || frame.rest.get("local_command_run").is_some();
            if is_true(frame.is_api_error) || non_null(frame.error).is_some() {
                if out.parent.is_none() {
                    return self.failed(frame, &blocks);
                }
            } else if !is_local {
                return out.say(Update::Other);
            }
        }
        self.begin(&id, false, out);
        let blocks: Vec<claude::Block<'a>> = blocks
            .into_iter()
            .map(|raw| object(Some(raw)).unwrap_or_default())
            .collect();
        for block in self.not_repeated(&id, &blocks, out) {
            self.whole(&id, block, frame, out);
        }
    }

    /// The blocks of a frame but those at its head that an earlier frame of the message had there: some
    /// versions tell all blocks anew with each.
    fn not_repeated<'b, 'a>(
        &mut self,
        id: &str,
        blocks: &'b [claude::Block<'a>],
        out: &Out<'a, '_>,
    ) -> &'b [claude::Block<'a>] {
        let speaker = self.speaker(out.parent.as_deref());
        let Some((message, _)) = speaker.message(Some(id)).filter(|_| blocks.len() > 1) else {
            return blocks;
        };
        let known = message.blocks.iter().filter(|block| block.whole);
        let same = known.zip(blocks).take_while(|(known, block)| {
            known.kind == kind(block)
                && match &known.tool {
                    Some((id, _)) => text(block.id).is_some_and(|told| told == *id),
                    None => said(block).is_some_and(|text| text.decode() == known.told()),
                }
        });
        let same = same.count();
        &blocks[same..]
    }

    /// The CLI said an error in the place of an answer: the result tells it.
    fn failed(&mut self, frame: &Frame<'_>, blocks: &[&RawValue]) {
        let texts = blocks.iter().filter_map(|raw| {
            let block: claude::Block<'_> = object(Some(raw))?;
            text(block.text).map(Cow::into_owned)
        });
        self.failure = Some(Failure {
            code: text(frame.error).map(Cow::into_owned),
            text: texts.collect::<Vec<_>>().join("\n"),
        });
    }

    fn whole<'a>(
        &mut self,
        id: &Cow<'a, str>,
        block: &claude::Block<'a>,
        frame: &Frame<'a>,
        out: &mut Out<'a, '_>,
    ) {
        let kind = kind(block);
        let speaker = self.speaker(out.parent.as_deref());
        let Some((message, broken)) = speaker.message(Some(id)) else {
            return;
        };
        match kind {
            Kind::Answer | Kind::Thought => {
                let all = said(block);
                let redacted_again = |b: &Block| b.kind == kind && !b.whole && b.provider.is_some();
                let known = match all {
                    Some(all) => message.told_again(kind, &all.decode()),
                    None => {
                        let at = message.blocks.iter().position(redacted_again);
                        at.map(|at| (at, String::new()))
                    }
                };
                let again = known.is_some();
                let words_open = message
                    .blocks
                    .iter_mut()
                    .any(|b| b.open && b.is_words() && b.shown);
                let (at, rest) = known.unwrap_or_else(|| {
                    message.blocks.push(Block::new(kind, None));
                    (message.blocks.len() - 1, String::new())
                });
                let known = &mut message.blocks[at];
                known.whole = true;
                known.provider = provider(block).or(known.provider.take());
                let rest_json = json(&rest);
                let new = if again { JsonStr::new(&rest_json) } else { all };
                let show = new
                    .filter(|new| !new.is_empty())
                    .map_or(Show::Nothing, |new| known.piece(new, broken));
                let content = match (show, all) {
                    (Show::Nothing, _) => None,
                    (Show::All, Some(all)) if !again => Some(Content::Text(all)),
                    (Show::All, _) => Some(Content::Rest(rest_json)),
                    (Show::Rest(rest), _) => Some(Content::Rest(json(&rest))),
                };
                let mut about = frame.rest.clone();
                if known.citations.is_empty() {
                    about.set_some("citations", non_null(block.citations));
                }
                if all.is_none() && !again {
                    about.extend(redacted());
                }
                let tells = !about.is_empty() && (!again || (known.shown && known.open));
                let says = content.is_some() || tells;
                let ends = !again || !known.open;
                if !again {
                    known.open = false;
                    known.shown |= says;
                }
                let end = words_end(known).filter(|_| ends && says);
                if words_open && !again && says {
                    out.say(Update::WordsEnd { provider: None });
                }
                match content {
                    Some(content) => out.say(piece(voice(kind), Some(id.clone()), content, about)),
                    None if says => out.say(empty(voice(kind), Some(id.clone()), about)),
                    None => {}
                }
                if let Some(end) = end {
                    out.say(end);
                }
            }
            Kind::Tool => {
                let (Some(call), name) = (text(block.id), text(block.name).unwrap_or_default())
                else {
                    return out.say(Update::Other);
                };
                let of = |b: &&mut Block| b.tool.as_ref().is_some_and(|(id, _)| *id == *call);
                if let Some(known) = message.blocks.iter_mut().find(of) {
                    known.whole = true;
                } else {
                    let mut new = Block::new(Kind::Tool, None);
                    new.tool = Some((call.to_string(), name.to_string()));
                    (new.whole, new.open) = (true, false);
                    message.blocks.push(new);
                }
                let input = Cow::Borrowed(block.input.unwrap_or(RawValue::NULL));
                let mut other = beside(block);
                other.extend(frame.rest.clone());
                self.tool_whole(call, name, input, other, out);
            }
            Kind::Other => {
                let told = |b: &&mut Block| b.kind == Kind::Other && !b.whole;
                match message.blocks.iter_mut().find(told) {
                    Some(known) => known.whole = true,
                    None => self.other_block(block, out),
                }
            }
        }
    }

    /// A block that is neither words nor a call: what came of a call that the model's provider made itself,
    /// or something new.
    fn other_block<'a>(&mut self, block: &claude::Block<'a>, out: &mut Out<'a, '_>) {
        if block.tool_use_id.is_some() && word(block.kind).ends_with("_tool_result") {
            let result = self.tool_result(block, None);
            return out.say(tool(result));
        }
        out.say(Update::Other);
    }
}

/// An object of any type; `None` where it is none.
pub(super) fn object<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

fn kind(block: &claude::Block<'_>) -> Kind {
    match word(block.kind) {
        "text" => Kind::Answer,
        "thinking" | "redacted_thinking" => Kind::Thought,
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Kind::Tool,
        _ => Kind::Other,
    }
}

/// The words of a block.
fn said<'a>(block: &claude::Block<'a>) -> Option<JsonStr<'a>> {
    block.text.or(block.thinking).and_then(JsonStr::new)
}

fn voice(kind: Kind) -> Voice {
    match kind {
        Kind::Thought => Voice::Thought,
        _ => Voice::Answer,
    }
}

/// What is said of a thought as a whole.
fn provider(block: &claude::Block<'_>) -> Option<(&'static str, Box<RawValue>)> {
    let redacted = block.data.map(|data| ("redactedData", data.to_owned()));
    let signature = non_null(block.signature).filter(|signature| signature.get() != "\"\"");
    redacted.or_else(|| signature.map(|signature| ("signature", signature.to_owned())))
}

fn redacted() -> Members<'static> {
    let mut about = Members::default();
    about.set_owned("redacted", &true);
    about
}

/// The end of a block of words, unless nothing was shown of it.
fn words_end<'a>(block: &Block) -> Option<Update<'a>> {
    let provider = block.provider.as_ref().map(|(name, said)| {
        let mut members = Members::default();
        members.set_owned(*name, said);
        ("anthropic", members)
    });
    (block.shown || provider.is_some()).then_some(Update::WordsEnd { provider })
}

fn piece<'a>(
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
fn empty<'a>(voice: Voice, message_id: Option<Cow<'a, str>>, about: Members<'a>) -> Update<'a> {
    piece(voice, message_id, Content::Rest(json("")), about)
}

fn tool(update: ToolUpdate<'_>) -> Update<'_> {
    Update::Tool(Box::new(update))
}

/// What is said of a call beside what every call has.
fn beside<'a>(block: &claude::Block<'a>) -> Members<'a> {
    let mut other = block.rest.clone();
    if word(block.kind) != "tool_use" {
        other.set_some("type", block.kind);
    }
    other
}
