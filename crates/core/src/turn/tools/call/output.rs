//! Output of a tool call as text: for its result, and for the error text of a failed call.

use super::{Call, ContentSource, Stage};
use acpipe_json::{JsonStr, Scanner, prefix, raw_object};
use serde_json::value::RawValue;

impl Call {
    /// Returns the output of the tool as text: its text content, otherwise its raw output.
    pub(crate) fn output_text(&self) -> Option<String> {
        self.output_up_to(usize::MAX).map(|(text, _)| text)
    }

    /// Sets the output of the call's terminals. Returns `true` if it changed.
    pub(in crate::turn) fn set_terminal_output(&mut self, output: String) -> bool {
        let known = self.terminal_output.as_ref() == Some(&output);
        // A failure was already reported with the error text known at that time.
        if known || matches!(self.stage, Stage::Failed | Stage::Denied) {
            return false;
        }
        self.terminal_output = Some(output);
        true
    }

    pub(crate) fn error_text(&self) -> String {
        let said = || self.output_text().filter(|text| !text.is_empty());
        self.settled
            .map(str::to_owned)
            .or_else(said)
            .unwrap_or_else(|| "Tool call failed".to_owned())
    }

    /// Returns the output of the call's terminals if it has no other text output.
    pub(crate) fn result_of_terminals(&self) -> Option<&str> {
        let shown = self.terminal_output.as_deref().filter(|s| !s.is_empty())?;
        let own = self.own_output(BLANK_LIMIT);
        own.as_ref().is_none_or(is_blank).then_some(shown)
    }

    /// Returns up to `room` bytes of the output, and the number of bytes left out.
    pub(super) fn output_up_to(&self, room: usize) -> Option<(String, usize)> {
        if let Some(shown) = self.result_of_terminals() {
            let fits = prefix(shown, room);
            return Some((shown[..fits].to_owned(), shown.len() - fits));
        }
        self.own_output(room)
    }

    /// Returns the text of the content, otherwise the raw output. Content from a permission request does not
    /// count: some agents send none afterwards.
    pub(super) fn own_output(&self, room: usize) -> Option<(String, usize)> {
        let content = self
            .content
            .as_deref()
            .filter(|_| self.content_from == ContentSource::Update);
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

/// Maximum number of output bytes that are read to check for a blank output.
const BLANK_LIMIT: usize = 256;

/// Returns `true` if an output is white space or JSON without any field.
fn is_blank((said, beyond): &(String, usize)) -> bool {
    *beyond == 0 && matches!(said.trim(), "" | "{}" | "[]" | "null")
}

fn content_text(content: Option<&RawValue>, room: usize) -> Option<(String, usize)> {
    let content = content?;
    let texts = usual_texts(content).or_else(|| texts(content))?;
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

/// Returns the texts of content that has only texts, in the form in which most agents write it: every other form takes three
/// times as many instructions to read. `None` for another form.
fn usual_texts(content: &RawValue) -> Option<Vec<JsonStr<'_>>> {
    let mut scanner = Scanner::new(content.get());
    let mut texts = Vec::new();
    scanner.skip("[")?;
    loop {
        scanner.skip(r#"{"type":"content","content":{"type":"text","text":"#)?;
        texts.push(JsonStr::new(scanner.value()?)?);
        scanner.skip("}}")?;
        if scanner.skip(",").is_none() {
            break;
        }
    }
    scanner.skip("]")?;
    scanner.is_at_end().then_some(texts)
}

fn texts(content: &RawValue) -> Option<Vec<JsonStr<'_>>> {
    raw_object! {
        struct Item { content = "content", text = "text" }
    }
    let items: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let texts = items.iter().filter_map(|item| {
        let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
        let inner: Item<'_> = serde_json::from_str(item.content?.get()).ok()?;
        inner.text.and_then(JsonStr::new)
    });
    Some(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::{texts, usual_texts};
    use acpipe_json::JsonStr;
    use serde_json::value::RawValue;

    #[test]
    fn usual_content_is_read_as_every_other() {
        let text = r#"{"type":"content","content":{"type":"text","text":"a\n\u00e9"}}"#;
        for (content, is_usual) in [
            (format!("[{text}]"), true),
            (format!("[{text},{text}]"), true),
            ("[]".to_owned(), false),
            (format!("[{text}, {text}]"), false),
            (format!(r#"[{text},{{"type":"diff","path":"a"}}]"#), false),
            (text.replace("}}", r#","annotations":{}}}"#), false),
            (
                format!("[{}]", text.replace(r#""text":"a\n\u00e9""#, r#""text":7"#)),
                false,
            ),
        ] {
            let content = RawValue::from_string(content).unwrap();
            let decoded = |texts: Vec<JsonStr<'_>>| -> Vec<String> {
                texts
                    .iter()
                    .map(|text| text.decode().into_owned())
                    .collect()
            };
            let usual = usual_texts(&content).map(decoded);
            assert_eq!(usual.is_some(), is_usual, "{content}");
            if let Some(usual) = usual {
                assert_eq!(usual, decoded(texts(&content).unwrap()), "{content}");
            }
        }
    }
}
