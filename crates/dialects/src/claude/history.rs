//! Conversion of a session's file to the events of its replay, in two passes.
//!
//! [`Chain`] finds the records that belong to the history, [`History`] converts them in order. Neither stores
//! any text. Records of the model and of tools are converted like the same frames of a running CLI.

mod chain;
mod user_text;

use super::frames::Frames;
use acpipe_json::{JsonStr, Members, non_null, raw_object, text, to_raw};
use acpipe_model::event::{AgentEvent, Content, MessagePiece, MessageRole, Original, Update};
use acpipe_model::line_repair::UnusableLine;
use acpipe_protocol::claude::{Block, Frame, ImageSource, Message, is_true, word};
use acpipe_protocol::wire::LineFaults;
pub use chain::Chain;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
pub use user_text::{UserText, user_text};

/// Hash of the id of a record or message, short because files have many.
type Id = u64;

fn id(of: &(impl Hash + ?Sized)) -> Id {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

raw_object! {
    /// Record of a session file.
    struct HistoryRecord {
        kind = "type",
        subtype = "subtype",
        uuid = "uuid",
        message = "message",
        tool_use_result = "toolUseResult",
        attachment = "attachment",
        content = "content",
        meta = "isMeta",
        compact_summary = "isCompactSummary",
        transcript_only = "isVisibleInTranscriptOnly",
        api_error = "isApiErrorMessage",
        block_index = "apiBlockIndex",
        origin = "origin",
    }
}

raw_object! {
    struct UserBlock { kind = "type", text = "text", source = "source", title = "title" }
}

raw_object! {
    struct Origin { kind = "kind" }
}

raw_object! {
    /// Attachment, such as a prompt that was sent while the agent worked.
    struct Attachment { kind = "type", mode = "commandMode", prompt = "prompt", meta = "isMeta", origin = "origin" }
}

/// Members that every record has beside its content.
const BOOKKEEPING: &[&str] = &[
    "type",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "isSidechain",
    "sessionId",
    "cwd",
    "version",
    "gitBranch",
    "userType",
    "entrypoint",
    "slug",
    "isMeta",
];

/// Text that the CLI sends in the model's place when no answer is needed.
const NO_ANSWER: &str = "No response requested.";

/// Second pass over a file.
#[derive(Debug, Default)]
pub struct History {
    /// Records that have not been converted yet.
    live: HashSet<Id>,
    faults: LineFaults,
    frames: Frames,
    /// Blocks that have been converted.
    told: HashSet<Id>,
    /// Compaction whose summary follows.
    compaction: Option<String>,
}

impl History {
    fn of(live: HashSet<Id>, faults: LineFaults) -> Self {
        Self {
            live,
            faults,
            ..Self::default()
        }
    }

    pub fn faults(&self) -> LineFaults {
        self.faults
    }

    /// Converts the next line to events if it belongs to the history.
    ///
    /// # Errors
    /// The line is not a record. The first pass has counted it.
    pub fn line<'a>(
        &mut self,
        line: &'a str,
        session: &str,
        events: &mut Vec<AgentEvent<'a>>,
    ) -> Result<(), UnusableLine> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let record: HistoryRecord<'a> = serde_json::from_str(line).map_err(|_| UnusableLine)?;
        let Some(uuid) = text(record.uuid) else {
            return Ok(());
        };
        // A record may occur twice in the file, and is converted once.
        if !self.live.remove(&id(&uuid)) {
            return Ok(());
        }
        let mut out = HistorySink {
            line,
            session,
            uuid,
            events,
        };
        match word(record.kind) {
            "assistant" => self.answer(&record, &mut out),
            "user" => self.user(&record, &mut out),
            "attachment" => attached(&record, &mut out),
            "system" => self.system(&record, &mut out),
            _ => {}
        }
        Ok(())
    }

    fn answer<'a>(&mut self, record: &HistoryRecord<'a>, out: &mut HistorySink<'a, '_>) {
        if is_true(record.api_error) {
            // Not output of the model, but not to be hidden either.
            return out.push(Update::Other);
        }
        let message: Message<'a> = object(record.message).unwrap_or_default();
        if word(message.model) == "<synthetic>" {
            let said = message.content.is_some_and(|c| c.get().contains(NO_ANSWER));
            if !said {
                out.push(Update::Other);
            }
            return;
        }
        if self.is_repeated(record, &message) {
            return;
        }
        self.frame(record, out);
    }

    /// Returns `true` if all blocks of a record were converted before: old versions wrote some records twice.
    fn is_repeated(&mut self, record: &HistoryRecord<'_>, message: &Message<'_>) -> bool {
        let blocks: Vec<&RawValue> = object(message.content).unwrap_or_default();
        let mut news = blocks.is_empty();
        for raw in blocks {
            let block: Block<'_> = object(Some(raw)).unwrap_or_default();
            let what = block.id.or(block.text).or(block.thinking).unwrap_or(raw);
            let index = record.block_index.map(RawValue::get);
            let message = message.id.map(RawValue::get);
            news |= self
                .told
                .insert(id(&(message, index, word(block.kind), what.get())));
        }
        !news
    }

    /// Converts a record like the frame from which it was written.
    fn frame<'a>(&mut self, record: &HistoryRecord<'a>, out: &mut HistorySink<'a, '_>) {
        let frame = Frame {
            kind: record.kind,
            message: record.message,
            tool_use_result: record.tool_use_result,
            // User content beside tool results is handled by the caller.
            is_synthetic: serde_json::from_str("true").ok(),
            ..Frame::default()
        };
        self.frames.read(&frame, out.line, out.session, out.events);
    }

    fn user<'a>(&mut self, record: &HistoryRecord<'a>, out: &mut HistorySink<'a, '_>) {
        let message: Message<'a> = object(record.message).unwrap_or_default();
        let Some(content) = message.content else {
            return out.push(Update::Other);
        };
        if is_true(record.compact_summary) {
            let id = self.compaction.take();
            let id = id.map_or_else(|| out.uuid.clone(), Cow::Owned);
            return out.push(Update::Compaction { id });
        }
        if is_true(record.meta) || is_true(record.transcript_only) {
            return;
        }
        if chain::has_results(content) {
            self.frame(record, out);
        } else {
            self.frames.turn_over();
        }
        if is_human(record.origin) {
            said(content, out);
        }
    }

    fn system<'a>(&mut self, record: &HistoryRecord<'a>, out: &mut HistorySink<'a, '_>) {
        match word(record.subtype) {
            "compact_boundary" => {
                let id = out.uuid.clone();
                self.compaction = Some(id.clone().into_owned());
                out.push(Update::Compaction { id });
            }
            "local_command" => {
                if let Some(content) = record.content {
                    said(content, out);
                }
            }
            "informational" => out.push(Update::Notice),
            // Transient records: attempts, figures, hooks.
            _ => {}
        }
    }
}

/// Output for the updates of a line.
struct HistorySink<'a, 'e> {
    line: &'a str,
    session: &'e str,
    /// Id of the record.
    uuid: Cow<'a, str>,
    events: &'e mut Vec<AgentEvent<'a>>,
}

impl<'a> HistorySink<'a, '_> {
    fn push(&mut self, update: Update<'a>) {
        self.events.push(AgentEvent::Update {
            session: Cow::Owned(self.session.to_owned()),
            update,
            original: original(self.line),
        });
    }

    fn piece(&mut self, role: MessageRole, content: Content<'a>, about: Members<'a>) {
        self.push(Update::Message(MessagePiece {
            role,
            message_id: Some(self.uuid.clone()),
            content,
            subagent: None,
            about,
        }));
    }

    fn text(&mut self, text: JsonStr<'a>) {
        let whole = text.decode();
        let (role, shown) = match user_text(&whole) {
            UserText::None => return,
            UserText::Typed(shown) => (MessageRole::User, shown),
            UserText::Printed(shown) => (MessageRole::Answer, Cow::Borrowed(shown)),
        };
        let content = if shown == whole {
            Content::Text(text)
        } else {
            Content::Rest(to_raw(&shown))
        };
        self.piece(role, content, Members::default());
    }
}

/// Converts a prompt that was sent while the agent worked.
fn attached<'a>(record: &HistoryRecord<'a>, out: &mut HistorySink<'a, '_>) {
    let attachment: Attachment<'a> = object(record.attachment).unwrap_or_default();
    let is_prompt = word(attachment.kind) == "queued_command"
        && matches!(word(attachment.mode), "" | "prompt")
        && !is_true(attachment.meta)
        && is_human(attachment.origin);
    if let Some(prompt) = attachment.prompt.filter(|_| is_prompt) {
        said(prompt, out);
    }
}

/// Returns `true` if a person, not a program, sent the message.
fn is_human(origin: Option<&RawValue>) -> bool {
    let origin: Option<Origin<'_>> = object(non_null(origin));
    origin.is_none_or(|origin| word(origin.kind) == "human")
}

/// Converts content that was sent in the user's name: a text, or blocks.
fn said<'a>(content: &'a RawValue, out: &mut HistorySink<'a, '_>) {
    if let Some(text) = JsonStr::new(content) {
        return out.text(text);
    }
    let blocks: Vec<UserBlock<'a>> = object(Some(content)).unwrap_or_default();
    for block in blocks {
        let text = block.text.and_then(JsonStr::new);
        match (word(block.kind), text) {
            ("tool_result", _) => {}
            ("text", Some(text)) => out.text(text),
            _ => {
                let mut about = Members::default();
                about.set_some("title", non_null(block.title));
                let content = data(&block).unwrap_or(Content::Other);
                out.piece(MessageRole::User, content, about);
            }
        }
    }
}

/// Returns an image or document.
fn data<'a>(block: &UserBlock<'a>) -> Option<Content<'a>> {
    let source: ImageSource<'a> = object(block.source)?;
    // The other fields have everything that is known.
    let details = serde_json::from_str("{}").ok()?;
    match word(source.kind) {
        "base64" => Some(Content::Data {
            media_type: text(source.media_type)?,
            base64: JsonStr::new(source.data?)?,
            details,
        }),
        "url" => Some(Content::Link {
            uri: text(source.url)?,
            name: text(block.title),
            media_type: None,
            details,
        }),
        _ => None,
    }
}

fn original(line: &str) -> Original<'_> {
    Original {
        line,
        cut: |line| serde_json::from_str::<&RawValue>(line).ok(),
        fields: |line| {
            let record: HistoryRecord<'_> = serde_json::from_str(line).unwrap_or_default();
            if is_true(record.compact_summary) {
                let message: Message<'_> = object(record.message).unwrap_or_default();
                let mut fields = Members::default();
                fields.set_some("summary", message.content);
                return fields;
            }
            let all: Members<'_> = serde_json::from_str(line).unwrap_or_default();
            all.without(BOOKKEEPING)
        },
    }
}

fn object<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests;
