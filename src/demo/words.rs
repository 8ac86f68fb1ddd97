//! What the demo says, and what it takes a prompt to ask for. Plain text that also reads well as Markdown.

use std::path::Path;

use agent_client_protocol_schema::v1::ContentBlock;

use super::tool::Listing;

/// The thought that opens every turn.
pub const THOUGHT: &str = "No model here: I look for words I know and play the part that fits.";

/// What is said before the tool call.
pub const BEFORE_TOOL: &str = "I am acpipe's demo agent and have no model, but I do have one tool: listing the working directory. \
     I ask before I use it.\n\n";

/// What is said when the tool call was refused.
pub const REFUSED: &str =
    "The permission was refused, so I did not look. A real agent would now try something else.";

/// What the slow turn begins with.
pub const SLOWLY: &str =
    "Counting to 100 takes me about ten seconds. Ctrl-C, or session/cancel, stops me at once.\n\n";

/// How many characters of a prompt are repeated.
const ECHO: usize = 60;

/// What a prompt asks for. It may ask for several things.
#[derive(Debug, Default, PartialEq)]
pub struct Wish {
    /// A tool call.
    pub tool: bool,
    /// A plan.
    pub plan: bool,
    /// A stream slow enough to interrupt.
    pub slow: bool,
}

impl Wish {
    /// Looks for the known words; whole ones, since "listen" and "planet" ask for nothing.
    pub fn of(prompt: &str) -> Self {
        let mut wish = Self::default();
        for word in prompt.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
            match word {
                "file" | "files" | "list" | "ls" | "tool" | "tools" => wish.tool = true,
                "plan" | "plans" => wish.plan = true,
                "slow" | "slowly" => wish.slow = true,
                _ => {}
            }
        }
        wish
    }
}

/// The text of a prompt, and how many blocks of it are not text.
pub fn text_of(blocks: &[ContentBlock]) -> (String, usize) {
    let mut texts = Vec::new();
    for block in blocks {
        if let ContentBlock::Text(text) = block {
            texts.push(text.text.as_str());
        }
    }
    (texts.join("\n"), blocks.len() - texts.len())
}

/// A prompt as one short line without control characters, which could redraw the reader's terminal.
pub fn one_line(prompt: &str) -> String {
    let clean = prompt.replace(char::is_control, " ");
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ECHO) {
        Some((end, _)) => format!("{}…", line.split_at(end).0.trim_end()),
        None => line,
    }
}

/// The answer to an ordinary prompt.
pub fn greeting(prompt: &str, attachments: usize) -> String {
    let prompt = one_line(prompt);
    let echo = match attachments {
        0 if prompt.is_empty() => "Your prompt was empty.".to_owned(),
        0 => format!("You said: \"{prompt}\""),
        1 => format!("You said: \"{prompt}\", and attached one thing I cannot look into."),
        many => format!("You said: \"{prompt}\", and attached {many} things I cannot look into."),
    };
    format!(
        "Hello! I am acpipe's demo agent; there is no model behind me. {echo}\n\n\
         acpipe started me as a child process, talked ACP with me and streamed this answer to you. \
         With a real agent it does the same:\n\n\
         {REAL_AGENTS}\n\n\
         I can also \"list the files here\", \"make a plan\" and count \"slow\"."
    )
}

/// How to get a real answer.
const REAL_AGENTS: &str =
    "    acpipe run \"hello\" -- claude-agent-acp\n    acpipe run \"hello\" -- gemini --acp";

/// What is said when the tool found something.
pub fn found(dir: &Path, listing: &Listing) -> String {
    let entries = match listing.total {
        0 => "nothing".to_owned(),
        1 => "one entry".to_owned(),
        many => format!("{many} entries"),
    };
    let colon = if listing.total == 0 { "." } else { ":\n\n" };
    format!(
        "I found {entries} in {}{colon}{}",
        dir.display(),
        listing.text()
    )
}

/// What is said when the tool failed.
pub fn failed(dir: &Path, error: &str) -> String {
    format!("I could not list {}: {error}", dir.display())
}

/// Cuts a text into the pieces it is streamed in: a few words each, together exactly the text.
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

    #[test]
    fn a_wish_is_made_of_whole_words() {
        let wish = |tool, plan, slow| Wish { tool, plan, slow };
        assert_eq!(Wish::of("hello"), wish(false, false, false));
        assert_eq!(
            Wish::of("Listen: explain the planet's profile, slower"),
            wish(false, false, false)
        );
        assert_eq!(Wish::of("LIST the files, please"), wish(true, false, false));
        assert_eq!(
            Wish::of("make a plan, then use a tool. slowly!"),
            wish(true, true, true)
        );
    }

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
        let thoughts = deltas(THOUGHT).len();
        assert!((2..=3).contains(&thoughts), "{thoughts}");
    }

    #[test]
    fn the_echo_is_one_short_harmless_line() {
        assert_eq!(one_line(" a\n\tb\x1b[2J\u{9b}c  "), "a b [2J c");
        let long = one_line(&"ü".repeat(200));
        assert_eq!(long.chars().count(), ECHO + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn the_greeting_is_honest_short_and_repeats_the_prompt() {
        let text = greeting("hello", 0);
        assert!(
            text.contains("no model")
                && text.contains("\"hello\"")
                && text.contains("claude-agent-acp")
        );
        assert!(text.lines().filter(|line| !line.is_empty()).count() <= 5);
        assert!(greeting("", 0).contains("empty"));
        assert!(greeting("look", 1).contains("one thing"));
    }

    #[test]
    fn text_of_a_prompt_leaves_out_what_is_not_text() {
        let link: ContentBlock =
            serde_json::from_str(r#"{"type":"resource_link","name":"n","uri":"file:///n"}"#)
                .unwrap();
        assert_eq!(
            text_of(&["a".into(), link, "b".into()]),
            ("a\nb".to_owned(), 1)
        );
    }
}
