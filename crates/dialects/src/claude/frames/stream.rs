//! `stream_event` frames: the output of the model in pieces.

use super::block_updates::{
    beside, empty, is_object, kind, message_id, object, piece, provider, redacted, role, text_end,
    tool, tool_name, tool_whole,
};
use super::blocks::{Block, BlockKind, TextToShow, json};
use super::user::other_block;
use super::{Frames, LineSink};
use crate::claude::tools;
use acpipe_json::{JsonStr, Members, non_null, text, to_raw};
use acpipe_model::event::{Content, MessageRole, ToolStatus, ToolUpdate, Update, call_id};
use acpipe_protocol::claude;
use acpipe_protocol::claude::{Frame, word};
use serde_json::json as value;
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Frames {
    pub(super) fn stream<'a>(&mut self, frame: &Frame<'a>, out: &mut LineSink<'a, '_>) {
        let Some(event) = &frame.event else {
            return out.unread();
        };
        match word(event.kind) {
            "content_block_delta" => self.delta(frame, event, out),
            "content_block_start" => self.block_start(frame, event, out),
            "content_block_stop" => self.block_stop(frame, event, out),
            "message_start" => {
                let message: claude::Message<'_> = object(event.message).unwrap_or_default();
                let id = text(frame.api_message_id).or_else(|| message_id(message.id));
                self.speakers.begin(&id.unwrap_or_default(), true, out);
                out.push(Update::TransientUpdate);
            }
            "message_delta" => {
                let delta = event.delta.as_ref();
                let ended = delta.is_some_and(|d| non_null(d.stop_reason).is_some());
                if let Some((message, _)) = self.speakers.message(frame, out) {
                    message.ended |= ended;
                }
                out.push(Update::TransientUpdate);
            }
            "message_stop" => self.message_stop(frame, out),
            "ping" => {}
            _ => out.unread(),
        }
    }

    fn message_stop(&mut self, frame: &Frame<'_>, out: &mut LineSink<'_, '_>) {
        let abandoned = non_null(frame.rest.get("abandoned_blocks")).is_some();
        if !abandoned && frame.rest.is_empty() {
            return;
        }
        let mut calls = Vec::new();
        if let Some((message, _)) = self.speakers.message(frame, out).filter(|_| abandoned) {
            message.ended = false;
            for block in message.blocks.iter().filter(|block| !block.whole) {
                calls.extend(block.tool.clone());
            }
        }
        for (id, name) in calls {
            let why = "the model's stream ended before the tool call was complete";
            out.push(tool(ToolUpdate {
                id: id.into(),
                name: Some(name.into()),
                status: Some(ToolStatus::Failed.as_str().into()),
                content: Some(Cow::Owned(to_raw(&value!([
                    {"type": "content", "content": {"type": "text", "text": why}}
                ])))),
                ..ToolUpdate::default()
            }));
        }
        out.push(Update::TransientUpdate);
    }

    fn block_start<'a>(
        &mut self,
        frame: &Frame<'a>,
        event: &claude::StreamEvent<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let Some(raw) = event.block.filter(|raw| is_object(raw)) else {
            return out.unread();
        };
        let block: claude::Block<'a> = object(Some(raw)).unwrap_or_default();
        let kind = kind(&block);
        let message_id = text(frame.api_message_id);
        if let Some((message, _)) = self.speakers.message(frame, out) {
            let known = message
                .blocks
                .iter()
                .any(|b| b.index == event.index() && b.open);
            if !known {
                let mut new = Block::new(kind, event.index());
                new.provider = provider(&block);
                new.shown = kind == BlockKind::Redacted;
                message.blocks.push(new);
            }
        }
        match kind {
            BlockKind::Answer | BlockKind::Thought => {
                let said = block.text.or(block.thinking).and_then(JsonStr::new);
                if let Some(said) = said.filter(|said| !said.is_empty()) {
                    self.words(frame, event.index(), kind, said, out);
                }
            }
            BlockKind::Redacted => {
                out.push(empty(MessageRole::Thought, message_id, redacted()));
                report_other_members(frame, out);
            }
            BlockKind::Tool => self.tool_start(frame, event.index(), &block, out),
            BlockKind::Other => other_block(&mut self.calls, &block, out),
        }
    }

    fn tool_start<'a>(
        &mut self,
        frame: &Frame<'a>,
        index: Option<u64>,
        block: &claude::Block<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let (id, name) = (call_id(block.id), tool_name(block.name));
        if let Some((message, _)) = self.speakers.message(frame, out) {
            message.block(index, BlockKind::Tool).tool = Some((id.to_string(), name.to_string()));
        }
        self.calls.insert(id.to_string());
        let input = block.input.filter(|input| input.get() != "{}");
        out.push(tool(ToolUpdate {
            id,
            begins: true,
            kind: Some(tools::kind(&name).into()),
            title: Some(tools::title(&name, None).into()),
            name: Some(name),
            status: Some(ToolStatus::Pending.as_str().into()),
            input: input.map(Cow::Borrowed),
            other: beside(block),
            ..ToolUpdate::default()
        }));
        report_other_members(frame, out);
    }

    fn delta<'a>(
        &mut self,
        frame: &Frame<'a>,
        event: &claude::StreamEvent<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let Some(delta) = &event.delta else {
            return out.push(Update::Other);
        };
        let string = |raw: Option<&'a RawValue>| raw.and_then(JsonStr::new);
        let index = event.index();
        match word(delta.kind) {
            "text_delta" if let Some(said) = string(delta.text) => {
                self.words(frame, index, BlockKind::Answer, said, out);
            }
            "thinking_delta" if let Some(said) = string(delta.thinking) => {
                self.words(frame, index, BlockKind::Thought, said, out);
            }
            "input_json_delta" if let Some(said) = string(delta.partial_json) => {
                let block = self.speakers.message(frame, out);
                let block = block.map(|(message, _)| message.block(index, BlockKind::Tool));
                let Some(block) = block.filter(|block| block.tool.is_some()) else {
                    return out.push(Update::Other);
                };
                block.piece(said, &mut Vec::new());
                let id = block.tool.as_ref().map(|(id, _)| id.clone());
                if !said.is_empty() {
                    out.push(tool(ToolUpdate {
                        id: id.unwrap_or_default().into(),
                        input_delta: Some(said),
                        ..ToolUpdate::default()
                    }));
                }
                report_other_members(frame, out);
            }
            "signature_delta" if let Some(signature) = delta.signature => {
                if let Some((message, _)) = self.speakers.message(frame, out) {
                    let block = message.block(index, BlockKind::Thought);
                    block.provider = Some(("signature", signature.to_owned()));
                }
                report_other_members(frame, out);
            }
            "citations_delta" if let Some(citation) = delta.citation => {
                let Some((message, _)) = self.speakers.message(frame, out) else {
                    return out.push(Update::Other);
                };
                let block = message.block(index, BlockKind::Answer);
                block.citations.push(citation.to_owned());
                block.shown = true;
                let mut about = Members::default();
                // Readers replace a list as a whole, so it is always complete.
                about.set_owned("citations", &block.citations);
                out.push(empty(
                    MessageRole::Answer,
                    text(frame.api_message_id),
                    about,
                ));
                report_other_members(frame, out);
            }
            _ => out.push(Update::Other),
        }
    }

    /// Reports a piece of an answer or a thought. This is the hot path.
    fn words<'a>(
        &mut self,
        frame: &Frame<'a>,
        index: Option<u64>,
        kind: BlockKind,
        said: JsonStr<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let message_id = text(frame.api_message_id);
        let Some((message, broken)) = self.speakers.message(frame, out) else {
            return out.push(Update::Other);
        };
        let block = message.block(index, kind);
        if block.kind != kind {
            return out.push(Update::Other);
        }
        let content = match block.piece(said, broken) {
            TextToShow::Nothing => return,
            TextToShow::All => {
                self.deltas.learn(frame, (kind, index, said), out);
                Content::Text(said)
            }
            TextToShow::Rest(rest) => Content::Rest(json(&rest)),
        };
        let about = frame.rest.clone();
        out.push(piece(role(kind), message_id, content, about));
    }

    fn block_stop<'a>(
        &mut self,
        frame: &Frame<'a>,
        event: &claude::StreamEvent<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let index = event.index();
        let Some((message, _)) = self.speakers.message(frame, out) else {
            return;
        };
        let ends = |block: &&mut Block| block.index == index && block.open;
        let Some(block) = message.blocks.iter_mut().rev().find(ends) else {
            return;
        };
        block.open = false;
        if block.is_text() {
            if let Some(end) = text_end(block) {
                out.push(end);
            }
            return;
        }
        let input = block.received();
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
            let call = (id.into(), name.into());
            let other = Members::default();
            tool_whole(&mut self.calls, call, Cow::Owned(input), other, false, out);
        }
    }
}

/// Reports members of a frame whose event has no field for them; none are known so far.
fn report_other_members(frame: &Frame<'_>, out: &mut LineSink<'_, '_>) {
    if !frame.rest.is_empty() {
        out.push(Update::TransientUpdate);
    }
}
