//! Texts of the demo agent: plain text that is also valid Markdown.

use super::client::ErrorMember;
use super::invalid;
use serde_json::Value;

/// Thought at the start of every turn.
pub const THOUGHT: &str = "I have no model: I look for known words and answer accordingly.";

/// Text before the first tool call.
pub const BEFORE_TOOL: &str = "I am acpipe's demo agent. I have no model but two tools: listing the working directory, and \
                                   proposing an edit. I ask before I use one.\n\n";

/// Answer after a refused tool call.
pub const REFUSED: &str =
    "The permission was refused, so I did nothing. A real agent would now try something else.";

/// Text at the start of the slow turn.
pub const SLOWLY: &str =
    "Counting to 100 takes me about ten seconds. Ctrl-C, or session/cancel, stops me at once.\n\n";

/// Maximum number of characters of a prompt that are repeated.
const ECHO: usize = 60;

/// Returns the text of a prompt, and the number of its blocks that are not text.
pub fn text_of(prompt: &Value) -> Result<(String, usize), ErrorMember> {
    let Value::Array(blocks) = prompt else {
        return Err(invalid("prompt", "must be a list of content blocks"));
    };
    let mut texts = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        match (block["type"].as_str(), block["text"].as_str()) {
            (Some("text"), Some(text)) => texts.push(text),
            (Some("image" | "resource" | "resource_link"), _) => {}
            _ => {
                let field = format!("prompt[{index}]");
                return Err(invalid(&field, "is not content that this agent accepts"));
            }
        }
    }
    Ok((texts.join("\n"), blocks.len() - texts.len()))
}

/// Returns the title of a session that begins with this prompt.
pub fn title(prompt: &str) -> String {
    let title = one_line(prompt);
    if title.is_empty() {
        "Untitled".to_owned()
    } else {
        title
    }
}

/// Shortens a prompt to one line without control characters, which could control the reader's terminal.
pub fn one_line(prompt: &str) -> String {
    let clean = prompt.replace(char::is_control, " ");
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ECHO) {
        Some((end, _)) => format!("{}…", line.split_at(end).0.trim_end()),
        None => line,
    }
}

/// Returns the answer to an ordinary prompt.
pub fn greeting(prompt: &str, attachments: usize) -> String {
    let prompt = one_line(prompt);
    let echo = match attachments {
        0 if prompt.is_empty() => "Your prompt was empty.".to_owned(),
        0 => format!("You said: \"{prompt}\""),
        1 => format!("You said: \"{prompt}\", and attached one file that I cannot read."),
        many => format!("You said: \"{prompt}\", and attached {many} files that I cannot read."),
    };
    format!(
        "Hello! I am acpipe's demo agent; I have no model. {echo}\n\n\
         acpipe started me as a child process, spoke ACP with me and streamed this answer to you. \
         With a real agent it does the same:\n\n\
         {REAL_AGENTS}\n\n\
         I can also \"list the files here\", propose to \"edit a file\", \"make a plan\" and count \"slow\"."
    )
}

/// Command lines that use a real agent.
const REAL_AGENTS: &str =
    "    acpipe run \"hello\" -- claude-agent-acp\n    acpipe run \"hello\" -- gemini --acp";

/// Returns the text after a successful tool call.
pub fn found(dir: &str, total: usize, listing: &str) -> String {
    let (entries, colon) = match total {
        0 => ("nothing".to_owned(), "."),
        1 => ("one entry".to_owned(), ":\n\n"),
        many => (format!("{many} entries"), ":\n\n"),
    };
    format!("I found {entries} in {dir}{colon}{listing}")
}

/// Returns the text after an edit.
pub fn not_written(file: &str) -> String {
    format!("I may edit {file} now. A real agent would; I wrote nothing, because this is a demo.")
}

/// Returns the text of an answer that must match a schema.
pub fn structured(value: &Value) -> String {
    format!("\n\nA small value that matches the schema:\n\n```json\n{value:#}\n```\n")
}

/// Returns the text after a failed tool call.
pub fn failed(dir: &str, error: &str) -> String {
    format!("I could not list {dir}: {error}")
}

/// Splits a text into pieces of a few words for streaming, without loss.
pub fn deltas(text: &str) -> Vec<String> {
    const ENOUGH: usize = 24;
    let mut deltas = Vec::new();
    let mut delta = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        delta.push_str(word);
        if delta.len() >= ENOUGH {
            deltas.push(std::mem::take(&mut delta));
        }
    }
    if !delta.is_empty() {
        deltas.push(delta);
    }
    deltas
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn deltas_are_small_and_add_up_to_the_text() {
        for text in [
            "",
            "word",
            "  two\n\nwords ",
            &greeting("hello", 2),
            &"ä".repeat(500),
        ] {
            let deltas = deltas(text);
            assert_eq!(deltas.concat(), *text);
            assert!(deltas.iter().all(|delta| !delta.is_empty()));
        }
        assert!(deltas(&greeting("hello", 0)).len() > 5);
    }

    #[test]
    fn titles_are_one_short_line_without_control_characters() {
        assert_eq!(title(" a\n\tb\x1b[2J\u{9b}c  "), "a b [2J c");
        let long = title(&"ü".repeat(200));
        assert_eq!(long.chars().count(), ECHO + 1);
        assert!(long.ends_with('…'));
        assert_eq!(title(" "), "Untitled");
    }

    #[test]
    fn greeting_repeats_the_prompt_and_names_real_agents() {
        let text = greeting("hello", 0);
        assert!(
            text.contains("no model")
                && text.contains("\"hello\"")
                && text.contains("claude-agent-acp")
        );
        assert!(greeting("", 0).contains("empty"));
        assert!(greeting("look", 1).contains("one file"));
    }

    #[test]
    fn blocks_that_are_not_text_are_counted_or_refused() {
        let link = json!({"type": "resource_link", "name": "n", "uri": "file:///n"});
        let text = |text| json!({"type": "text", "text": text});
        let prompt = json!([text("a"), link, text("b")]);
        assert_eq!(text_of(&prompt).unwrap(), ("a\nb".to_owned(), 1));
        for wrong in [
            json!("hello"),
            json!([{"type": "audio"}]),
            json!([5]),
            json!([{"type": "text"}]),
        ] {
            assert_eq!(text_of(&wrong).unwrap_err()["code"], -32602, "{wrong}");
        }
    }
}
