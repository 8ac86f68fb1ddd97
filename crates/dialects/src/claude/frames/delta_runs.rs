//! Runs of deltas: consecutive frames of one text block that differ in their text and `uuid` only.
//!
//! Owns the shape of the last such frame. Whether a run may be shown as it is depends on the messages, which are passed in.

use super::block_updates::role;
use super::blocks::BlockKind;
use super::speakers::Speakers;
use super::{LineSink, original};
use acpipe_json::{JsonStr, text};
use acpipe_model::line_shape::{LineShape, joined, place};
use acpipe_model::update_run::{MAX_RUN, UpdateRun};
use acpipe_protocol::claude::Frame;
use std::borrow::Cow;
use std::ops::Range;

/// Shape of a frame with a delta of a text block.
#[derive(Debug)]
struct DeltaShape {
    line: LineShape,
    kind: BlockKind,
    /// Index of the block in its message.
    index: Option<u64>,
    session: Place,
    message_id: Option<Place>,
}

/// Position of a string in a frame.
#[derive(Debug)]
enum Place {
    BeforeText(Range<usize>),
    /// Relative to the end of the text.
    AfterText(Range<usize>),
}

impl Place {
    fn of(line: &str, part: &str, text: &Range<usize>) -> Option<Self> {
        let at = place(line, part)?;
        if at.end <= text.start {
            return Some(Self::BeforeText(at));
        }
        let start = at.start.checked_sub(text.end)?;
        Some(Self::AfterText(start..start + part.len()))
    }

    fn in_line(&self, text: &Range<usize>) -> Range<usize> {
        match self {
            Self::BeforeText(at) => at.clone(),
            Self::AfterText(at) => text.end + at.start..text.end + at.end,
        }
    }
}

impl DeltaShape {
    /// Returns the shape of a frame whose delta is all of its content.
    fn of(
        frame: &Frame<'_>,
        line: &str,
        session: &str,
        delta: (BlockKind, Option<u64>, JsonStr<'_>),
    ) -> Option<Self> {
        let (kind, index, said) = delta;
        let said = said.raw().get();
        let at = place(line, said)?;
        let message_id = match text(frame.api_message_id) {
            None => None,
            Some(id) => Some(Place::of(line, &id, &at)?),
        };
        let id = match text(frame.uuid) {
            Some(Cow::Borrowed(id)) => Some(id),
            _ => None,
        };
        Some(Self {
            line: LineShape::of(line, said, id)?,
            kind,
            index,
            session: Place::of(line, session, &at)?,
            message_id,
        })
    }

    fn is_of(&self, line: &[u8]) -> bool {
        self.line.place_of_text(line).is_some()
    }
}

#[derive(Debug, Default)]
pub(super) struct DeltaRuns {
    /// Shape of the last frame with a delta of a text block.
    shape: Option<DeltaShape>,
}

impl DeltaRuns {
    /// Stores the shape of a frame with a delta that is shown as it is, if other frames may have it.
    pub(super) fn learn(
        &mut self,
        frame: &Frame<'_>,
        delta: (BlockKind, Option<u64>, JsonStr<'_>),
        out: &LineSink<'_, '_>,
    ) {
        if out.parent.is_none() && frame.rest.is_empty() {
            self.shape = DeltaShape::of(frame, out.line, &out.session, delta);
        }
    }

    /// Reads the run of deltas of this session with which the lines begin. They belong to a block that is streamed for
    /// the first time.
    pub(super) fn read<'a>(
        &self,
        session: &str,
        all: &'a [u8],
        speakers: &Speakers,
    ) -> Option<UpdateRun<'a>> {
        let shape = self.shape.as_ref()?;
        let texts = shape.line.texts(&all[..all.len().min(MAX_RUN)]);
        let (first, last) = (texts.first()?, texts.last()?);
        let line = std::str::from_utf8(&all[..first.end + shape.line.end_len()]).ok()?;
        let own = shape.session.in_line(first);
        let message_id = shape.message_id.as_ref().map(|id| id.in_line(first));
        let of_message = message_id.clone().and_then(|id| line.get(id));
        if line.get(own.clone()) != Some(session) || !is_streamed_first(speakers, shape, of_message)
        {
            return None;
        }
        Some(UpdateRun {
            lines: &all[..=last.end + shape.line.end_len()],
            original: original(line),
            is_acp: false,
            session: own,
            role: role(shape.kind),
            message_id,
            text: joined(all, &texts)?,
            texts,
        })
    }

    pub(super) fn note(&self, run: &UpdateRun<'_>, speakers: &mut Speakers) {
        let line = run.original.line;
        let shape = self.shape.as_ref();
        let Some(shape) = shape.filter(|shape| shape.is_of(line.as_bytes())) else {
            return;
        };
        let (kind, index) = (shape.kind, shape.index);
        let message = run.message_id.clone().and_then(|id| line.get(id));
        if let Some((message, broken)) = speakers.of(None).message(message)
            && let Some(text) = JsonStr::new(&run.text)
        {
            message.block(index, kind).piece(text, broken);
        }
    }
}

/// Returns `true` if the deltas of this shape are shown as they are.
fn is_streamed_first(speakers: &Speakers, shape: &DeltaShape, message: Option<&str>) -> bool {
    let block = speakers
        .agent()
        .and_then(|agent| agent.open_block(message, shape.index));
    block.is_some_and(|block| block.kind == shape.kind && block.is_streamed_first())
}
