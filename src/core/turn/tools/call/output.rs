//! The output of a tool call as text: for its result, and for the error text of a call that failed.

use super::{Call, Source, Stage};
use crate::proto::json::{JsonStr, prefix, raw_object};
use serde_json::value::RawValue;

impl Call {
    /// The output of the tool as text: its text content, else its raw output.
    pub(in crate::core) fn output_text(&self) -> Option<String> {
        self.output_up_to(usize::MAX).map(|(text, _)| text)
    }

    /// Takes over the output of its terminals. Returns whether that changed anything.
    pub(in crate::core::turn) fn set_terminal_output(&mut self, output: String) -> bool {
        let known = self.terminal_output.as_ref() == Some(&output);
        // A failure was reported with the error text that was known then.
        if known || matches!(self.stage, Stage::Failed | Stage::Denied) {
            return false;
        }
        self.terminal_output = Some(output);
        true
    }

    /// Why the call failed.
    pub(in crate::core) fn error_text(&self) -> String {
        let said = || self.output_text().filter(|text| !text.is_empty());
        self.settled
            .map(str::to_owned)
            .or_else(said)
            .unwrap_or_else(|| "Tool call failed".to_owned())
    }

    /// The output of its terminals, where nothing else of its output is text.
    pub(in crate::core) fn result_of_terminals(&self) -> Option<&str> {
        let shown = self.terminal_output.as_deref().filter(|s| !s.is_empty())?;
        let own = self.own_output(BLANK_LIMIT);
        own.as_ref().is_none_or(is_blank).then_some(shown)
    }

    /// As much of it as there is room for, and how many bytes more there are.
    pub(super) fn output_up_to(&self, room: usize) -> Option<(String, usize)> {
        if let Some(shown) = self.result_of_terminals() {
            let fits = prefix(shown, room);
            return Some((shown[..fits].to_owned(), shown.len() - fits));
        }
        self.own_output(room)
    }

    /// The text of its content, else its raw output. Some agents repeat no content after their question.
    pub(super) fn own_output(&self, room: usize) -> Option<(String, usize)> {
        let content = self
            .content
            .as_deref()
            .filter(|_| self.content_from == Source::Update);
        content_text(content, room).or_else(|| {
            let raw = self.output.as_deref()?;
            let mut text = String::new();
            let beyond = if let Some(string) = JsonStr::new(raw) {
                string.decode_up_to(room, &mut text)
            } else {
                let fits = prefix(raw.get(), room);
                text.push_str(&raw.get()[..fits]);
                raw.get().len() - fits
            };
            Some((text, beyond))
        })
    }
}

/// How much of an output is read to find out whether it is blank, in bytes.
const BLANK_LIMIT: usize = 256;

/// Whether an output holds nothing to read: white space, or JSON without any field.
fn is_blank((said, beyond): &(String, usize)) -> bool {
    *beyond == 0 && matches!(said.trim(), "" | "{}" | "[]" | "null")
}

fn content_text(content: Option<&RawValue>, room: usize) -> Option<(String, usize)> {
    raw_object! {
        struct Item { content = "content", text = "text" }
    }
    let items: Vec<&RawValue> = serde_json::from_str(content?.get()).ok()?;
    let texts = items.iter().filter_map(|item| {
        let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
        let inner: Item<'_> = serde_json::from_str(item.content?.get()).ok()?;
        inner.text.and_then(JsonStr::new)
    });
    let mut all: Option<(String, usize)> = None;
    for more in texts {
        if let Some((text, _)) = &mut all {
            text.push('\n');
        }
        let (text, beyond) = all.get_or_insert_default();
        *beyond += more.decode_up_to(room.saturating_sub(text.len()), text);
    }
    all
}
