//! `assistant` frames: the output of the model in whole blocks.

use super::block_updates::{
    beside, empty, is_object, kind, message_id, object, piece, provider, redacted, role, said,
    text_end, tool_name, tool_whole,
};
use super::blocks::{Block, BlockKind, MessageSource, TextToShow, json};
use super::user::other_block;
use super::{Failure, Frames, LineSink};
use acpipe_json::{JsonStr, non_null, text};
use acpipe_model::event::{Content, Update, call_id};
use acpipe_protocol::claude;
use acpipe_protocol::claude::{Frame, is_true, word};
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Frames {
    /// Handles whole blocks of a message.
    pub(super) fn assistant<'a>(&mut self, frame: &Frame<'a>, out: &mut LineSink<'a, '_>) {
        let message: claude::Message<'a> = object(frame.message).unwrap_or_default();
        let Some(blocks) = blocks_of(&message) else {
            return out.unread();
        };
        if !blocks.iter().all(|raw| is_object(raw)) {
            out.unread();
        }
        let blocks = blocks.into_iter().map(|raw| object(Some(raw)));
        let mut blocks: Vec<claude::Block<'a>> = blocks.map(Option::unwrap_or_default).collect();
        if word(message.model) == "<synthetic>" || is_true(frame.is_api_error) {
            let is_local = frame.rest.get("local_command_source").is_some()
                || frame.rest.get("local_command_run").is_some();
            let is_error = is_true(frame.is_api_error) || non_null(frame.error).is_some();
            let is_failure = is_error && out.parent.is_none();
            if is_failure {
                self.failed(frame, &blocks);
            }
            if is_failure || !is_error && !is_local {
                // The text is not that of a model, but a tool call may run.
                blocks.retain(|block| kind(block) == BlockKind::Tool);
                if blocks.is_empty() {
                    if !is_failure {
                        out.push(Update::Other);
                    }
                    return;
                }
            }
        }
        let speaker = self.speakers.of(out.parent.as_deref());
        let id = whole_id(speaker, message.id, frame);
        self.speakers.begin(&id, false, out);
        for block in self.new_blocks(&id, &blocks, out) {
            self.whole(&id, block, frame, out);
        }
    }

    /// Returns the blocks of a frame without those at its start that earlier frames of the message had: some
    /// versions repeat all blocks with each new one.
    fn new_blocks<'b, 'a>(
        &mut self,
        id: &str,
        blocks: &'b [claude::Block<'a>],
        out: &LineSink<'a, '_>,
    ) -> &'b [claude::Block<'a>] {
        let speaker = self.speakers.of(out.parent.as_deref());
        let Some((message, _)) = speaker.message(Some(id)).filter(|_| blocks.len() > 1) else {
            return blocks;
        };
        let known = message.blocks.iter().filter(|block| block.whole);
        let same = known.zip(blocks).take_while(|(known, block)| {
            known.kind == kind(block)
                && match &known.tool {
                    Some((id, _)) => call_id(block.id) == *id,
                    None => said(block).is_some_and(|text| text.decode() == known.received()),
                }
        });
        let same = same.count();
        &blocks[same..]
    }

    /// Records an error that the CLI sent instead of an answer; the result of the turn reports it.
    fn failed(&mut self, frame: &Frame<'_>, blocks: &[claude::Block<'_>]) {
        let texts = blocks
            .iter()
            .filter_map(|block| text(block.text).map(Cow::into_owned));
        self.failure = Some(Failure {
            code: text(frame.error).map(Cow::into_owned),
            text: texts.collect::<Vec<_>>().join("\n"),
        });
    }

    fn whole<'a>(
        &mut self,
        id: &str,
        block: &claude::Block<'a>,
        frame: &Frame<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        match kind(block) {
            BlockKind::Answer | BlockKind::Thought | BlockKind::Redacted => {
                self.whole_words(id, block, frame, out);
            }
            BlockKind::Tool => self.whole_call(id, block, frame, out),
            BlockKind::Other => {
                let speaker = self.speakers.of(out.parent.as_deref());
                let blocks = speaker
                    .message(Some(id))
                    .map(|(message, _)| &mut message.blocks);
                let received = |b: &&mut Block| b.kind == BlockKind::Other && !b.whole;
                match blocks.and_then(|blocks| blocks.iter_mut().find(received)) {
                    Some(known) => known.whole = true,
                    None => other_block(&mut self.calls, block, out),
                }
            }
        }
    }

    /// Reports the parts of an answer or thought that were neither streamed nor shown before its stream
    /// broke.
    fn whole_words<'a>(
        &mut self,
        id: &str,
        block: &claude::Block<'a>,
        frame: &Frame<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let (kind, all) = (kind(block), said(block));
        let speaker = self.speakers.of(out.parent.as_deref());
        let Some((message, broken)) = speaker.message(Some(id)) else {
            return;
        };
        let again = message.find_received(kind, &all.map(JsonStr::decode).unwrap_or_default());
        let others_open = again.is_none() && message.close_text();
        let (at, rest) = match &again {
            Some((at, rest)) => (*at, Some(json(rest))),
            None => (message.add(kind), None),
        };
        let known = &mut message.blocks[at];
        let was_shown = known.shown;
        known.whole = true;
        known.provider = provider(block).or(known.provider.take());
        let new = rest.as_deref().map_or(all, JsonStr::new);
        let show = new.map_or(TextToShow::Nothing, |new| known.piece(new, broken));
        let content = match show {
            TextToShow::Nothing => None,
            TextToShow::All => Some(match rest {
                Some(rest) => Content::Rest(rest),
                None => all.map_or_else(|| Content::Rest(json("")), Content::Text),
            }),
            TextToShow::Rest(rest) => Some(Content::Rest(json(&rest))),
        };
        let mut about = frame.rest.clone().without(&["local_command_source"]);
        about.extend(block.rest.clone());
        if known.citations.is_empty() {
            about.set_some("citations", non_null(block.citations));
        }
        if kind == BlockKind::Redacted && again.is_none() {
            about.extend(redacted());
        }
        // Nothing is reported for text that was shown before its stream broke, or that is closed.
        let goes_on = again.is_none() || (was_shown && known.open);
        let says = content.is_some() || (goes_on && !about.is_empty());
        known.shown |= says;
        let end = text_end(known).filter(|_| says && !known.open);
        if others_open && says {
            out.push(Update::TextEnd { provider: None });
        }
        let message_id = Some(Cow::Owned(id.to_owned()));
        match content {
            Some(content) => out.push(piece(role(kind), message_id, content, about)),
            None if says => out.push(empty(role(kind), message_id, about)),
            None => {}
        }
        if let Some(end) = end {
            out.push(end);
        }
    }

    fn whole_call<'a>(
        &mut self,
        id: &str,
        block: &claude::Block<'a>,
        frame: &Frame<'a>,
        out: &mut LineSink<'a, '_>,
    ) {
        let (call, name) = (call_id(block.id), tool_name(block.name));
        let mut begins = !self.calls.contains(call.as_ref());
        let speaker = self.speakers.of(out.parent.as_deref());
        if let Some((message, _)) = speaker.message(Some(id)) {
            let of = |b: &Block| b.tool.as_ref().is_some_and(|(id, _)| *id == *call);
            let known = message.blocks.iter().position(of);
            begins |= known.is_none();
            let at = known.unwrap_or_else(|| message.add(BlockKind::Tool));
            let known = &mut message.blocks[at];
            known.whole = true;
            known.tool = Some((call.to_string(), name.to_string()));
        }
        let input = Cow::Borrowed(block.input.unwrap_or(RawValue::NULL));
        let mut other = beside(block);
        other.extend(frame.rest.clone());
        tool_whole(&mut self.calls, (call, name), input, other, begins, out);
    }
}

/// Returns the blocks of a message; `None` if its content cannot be read. A single block may stand for its list.
fn blocks_of<'a>(message: &claude::Message<'a>) -> Option<Vec<&'a RawValue>> {
    let single = || Some(vec![message.content.filter(|raw| is_object(raw))?]);
    object(message.content).or_else(single)
}

/// Returns the id of a message that is sent whole. Without one, it continues the stream that has none either; otherwise
/// the id of the frame stands for it.
fn whole_id<'a>(
    speaker: &mut MessageSource,
    id: Option<&'a RawValue>,
    frame: &Frame<'a>,
) -> Cow<'a, str> {
    match message_id(id) {
        Some(id) => id,
        None if speaker.message(Some("")).is_some() => Cow::Borrowed(""),
        None => text(frame.uuid).unwrap_or_default(),
    }
}
