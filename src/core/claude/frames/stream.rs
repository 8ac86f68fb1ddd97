//! `stream_event` frames: the output of the model in pieces.

use super::blocks::{Block, Kind, Message, Show, json};
use super::say::{beside, empty, kind, object, piece, provider, redacted, tool, voice, words_end};
use super::{Frames, Out};
use crate::core::claude::tools;
use crate::core::event::{Content, ToolStatus, ToolUpdate, Update, Voice};
use crate::proto::claude::{self, Frame, word};
use crate::proto::json::{JsonStr, Members, non_null, text, to_raw};
use serde_json::json as value;
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Frames {
    /// Handles an event of the model's stream.
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
                out.say(Update::Passing);
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

    /// Returns the message of a stream frame.
    fn message(
        &mut self,
        frame: &Frame<'_>,
        out: &Out<'_, '_>,
    ) -> Option<(&mut Message, &mut Vec<(Kind, String)>)> {
        let id = text(frame.api_message_id);
        let speaker = self.speaker(out.parent.as_deref());
        if let Some(id) = &id {
            // The start of the message was not received.
            speaker.begin(id, true);
        }
        speaker.message(id.as_deref())
    }

    /// Starts a message; open blocks of the previous message are closed.
    pub(super) fn begin(&mut self, id: &str, streamed: bool, out: &mut Out<'_, '_>) {
        let speaker = self.speaker(out.parent.as_deref());
        let last = speaker.message(None).filter(|(last, _)| last.id != id);
        let words_open = last.is_some_and(|(last, _)| last.close_words());
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
            let why = "the model's stream ended before the tool call was complete";
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
                new.shown = kind == Kind::Redacted;
                message.blocks.push(new);
            }
        }
        match kind {
            Kind::Answer | Kind::Thought => {
                let said = block.text.or(block.thinking).and_then(JsonStr::new);
                if let Some(said) = said.filter(|said| !said.is_empty()) {
                    self.words(frame, event.index(), kind, said, out);
                }
            }
            Kind::Redacted => {
                out.say(empty(Voice::Thought, message_id, redacted()));
                beside_it(frame, out);
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
        beside_it(frame, out);
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
                beside_it(frame, out);
            }
            "signature_delta" if let Some(signature) = delta.signature => {
                if let Some((message, _)) = self.message(frame, out) {
                    let block = message.block(index, Kind::Thought);
                    block.provider = Some(("signature", signature.to_owned()));
                }
                beside_it(frame, out);
            }
            "citations_delta" if let Some(citation) = delta.citation => {
                let Some((message, _)) = self.message(frame, out) else {
                    return out.say(Update::Other);
                };
                let block = message.block(index, Kind::Answer);
                block.citations.push(citation.to_owned());
                block.shown = true;
                let mut about = Members::default();
                // Readers replace a list as a whole, so it is always complete.
                about.set_owned("citations", &block.citations);
                out.say(empty(Voice::Answer, text(frame.api_message_id), about));
                beside_it(frame, out);
            }
            _ => out.say(Update::Other),
        }
    }

    /// Reports a piece of an answer or a thought. This is the hot path.
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
        // If the input is incomplete, the stream broke; its text was shown already.
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
}

/// Reports members of a frame whose event has no field for them; none are known so far.
fn beside_it(frame: &Frame<'_>, out: &mut Out<'_, '_>) {
    if !frame.rest.is_empty() {
        out.say(Update::Passing);
    }
}
