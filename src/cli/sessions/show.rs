//! A stored session as a conversation in text.

use super::age::{exact, short};
use super::conversation::{
    Author, CallStatus, ConversationCall, ConversationEntry, ConversationItem, PermissionDecision,
};
use crate::cli::columns::{clip, one_line, visible};
use crate::cli::file_label::file_line;
use crate::cli::markdown::{render, wrapped};
use crate::cli::styles::{BAD, DIM, GOOD, HEAD, Styles, USER, WARNING};
use acpipe_core::log::{Log, MessageFacts};
use acpipe_core::profile::Profile;
use acpipe_core::store::Card;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Maximum number of lines of a tool's input and of its output.
const LINES: usize = 6;

/// Maximum length in columns of such a line if there is no terminal.
const COLUMNS: usize = 200;

/// Margin of input and output.
const MARGIN: &str = "    ";

/// Writes the conversation of a session: the user's text marked with `>`, tools in brackets.
pub fn show(log: &Log, styles: Styles, out: &mut dyn Write) -> anyhow::Result<()> {
    head(&log.card(), styles, out)?;
    for place in 0..usize::try_from(log.count())? {
        if let Some(message) = log.message(place, Profile::V7)? {
            let entry = ConversationEntry::of(&message, log.message_facts(place)?);
            out.write_all(b"\n")?;
            writeln!(out, "{}", title(&entry, styles))?;
            out.write_all(entry_text(&entry, styles).as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the last messages: `count` of them, or those from the last message of the user on. The message with the id
/// `without` and all later ones are left out.
pub fn show_last(
    log: &Log,
    count: Option<usize>,
    without: Option<&str>,
    styles: Styles,
) -> anyhow::Result<String> {
    let all = usize::try_from(log.count())?;
    let end = without.and_then(|id| log.position(id)).unwrap_or(all);
    let mut messages = Vec::new();
    for place in (0..end).rev() {
        if count.is_some_and(|count| messages.len() >= count) {
            break;
        }
        let Some(message) = log.message(place, Profile::V7)? else {
            continue;
        };
        let is_prompt = message["role"] == "user";
        messages.push(message);
        if count.is_none() && is_prompt {
            break;
        }
    }
    let messages = messages.iter().rev();
    Ok(messages
        .map(|message| message_text(message, styles))
        .collect())
}

/// Returns a message as text that is escaped for a terminal, after an empty line.
pub fn message_text(message: &Value, styles: Styles) -> String {
    let entry = ConversationEntry::of(message, MessageFacts::default());
    let text = entry_text(&entry, styles);
    if text.is_empty() {
        return text;
    }
    format!("\n{text}")
}

fn head(card: &Card, styles: Styles, out: &mut dyn Write) -> io::Result<()> {
    let agent = card.shown_agent();
    let agent = agent.as_deref().unwrap_or("no agent yet");
    let directory = styles.file_link(&card.cwd, &visible(&card.cwd));
    let (made, changed) = (short(&card.created_at), short(&card.updated_at));
    let name = |name: &str| styles.paint(DIM, &format!("{name:10}"));
    let shown = |text: &str| styles.shown(text).into_owned();
    let id = styles.paint(HEAD, &visible(&card.session_id));
    writeln!(out, "{} {id}", name("session"))?;
    if let Some(title) = &card.title {
        writeln!(out, "{} {}", name("title"), shown(&one_line(title)))?;
    }
    writeln!(out, "{} {}", name("agent"), shown(&one_line(agent)))?;
    writeln!(out, "{} {directory}", name("directory"))?;
    writeln!(out, "{} {made}, changed {changed}", name("created"))?;
    writeln!(out, "{} {}", name("messages"), card.messages)
}

fn title(entry: &ConversationEntry, styles: Styles) -> String {
    let name = match &entry.role {
        Author::User => styles.paint(USER, "you"),
        Author::Agent => styles.paint(HEAD, "agent"),
        Author::Other(name) => styles.paint(HEAD, &one_line(name)),
    };
    match &entry.at {
        Some(at) => name + &styles.paint(DIM, &format!(", {}", exact(at))),
        None => name,
    }
}

/// Returns the items of a message, with an empty line between them except between tools.
fn entry_text(entry: &ConversationEntry, styles: Styles) -> String {
    let mut text = String::new();
    let mut was_tool = false;
    for item in &entry.items {
        let shown = item_text(item, &entry.role, styles);
        if shown.is_empty() {
            continue;
        }
        let is_tool = matches!(item, ConversationItem::Tool(_));
        if !(text.is_empty() || (was_tool && is_tool)) {
            text.push('\n');
        }
        was_tool = is_tool;
        text += &shown;
    }
    text
}

/// Returns the lines of an item; none for an item that is not shown.
fn item_text(item: &ConversationItem, role: &Author, styles: Styles) -> String {
    match item {
        ConversationItem::Text(text) => match role {
            Author::User => wrapped(text, &styles.paint(DIM, "> "), styles),
            Author::Agent if styles.is_terminal && styles.has_color => render(text, styles),
            Author::Agent => wrapped(text, "", styles),
            Author::Other(name) => wrapped(text, &format!("{}: ", one_line(name)), styles),
        },
        ConversationItem::Thought(_) => String::new(),
        ConversationItem::File(file) => file_line(file, styles) + "\n",
        ConversationItem::Tool(call) => tool(call, styles),
        ConversationItem::Plan(entries) => {
            let entries = entries.iter().map(|(progress, text)| {
                let text = format!("{} {text}\n", progress.mark());
                styles.shown(&text).into_owned()
            });
            format!(
                "{}\n{}",
                styles.paint(HEAD, "plan"),
                entries.collect::<String>()
            )
        }
        ConversationItem::Decision(decision) => format!("{}\n", decided(decision, styles)),
        ConversationItem::Question(question, outcome) => {
            let question = wrapped(question, &styles.paint(WARNING, "? "), styles);
            question + &styles.paint(DIM, &one_line(outcome)) + "\n"
        }
        ConversationItem::Note(note) => styles.paint(DIM, &format!("--- {note} ---")) + "\n",
        ConversationItem::Error(error) => wrapped(error, &styles.paint(BAD, "error: "), styles),
    }
}

/// Returns a tool call: name, title and outcome on one line, then its files, decision, input and output.
fn tool(call: &ConversationCall, styles: Styles) -> String {
    let style = match call.outcome {
        CallStatus::Done => GOOD,
        CallStatus::Failed | CallStatus::Refused => BAD,
        CallStatus::Unfinished => WARNING,
    };
    let name = styles.paint(HEAD, &format!("[{}]", call.name));
    let title = match call.title.as_str() {
        "" => String::new(),
        title => format!(" {}", styles.shown(title)),
    };
    let outcome = styles.paint(style, call.outcome.name());
    // An error of one line needs no lines of its own.
    let reason = call.output.trim();
    let is_short = call.outcome == CallStatus::Failed && reason.lines().count() == 1;
    let mut text = if is_short {
        let reason = clip(&one_line(reason), COLUMNS);
        format!("{name}{title}: {outcome}: {}\n", styles.shown(&reason))
    } else {
        format!("{name}{title}: {outcome}\n")
    };
    for (path, line) in &call.locations {
        let place = line.map_or_else(|| visible(path), |line| format!("{}:{line}", visible(path)));
        // The title often has the path.
        if !call.title.contains(path.as_str()) {
            let _ = writeln!(text, "{MARGIN}{}", styles.file_link(path, &place));
        }
    }
    if let Some(decision) = &call.decision {
        let _ = writeln!(text, "{MARGIN}{}", decided(decision, styles));
    }
    text += &first_lines(&call.input, MARGIN, styles);
    if !is_short {
        let margin = format!("{MARGIN}{}", styles.paint(DIM, "| "));
        text += &first_lines(&call.output, &margin, styles);
    }
    text
}

fn decided(decision: &PermissionDecision, styles: Styles) -> String {
    let style = if decision.is_allowed { DIM } else { BAD };
    styles.paint(style, &decision.reason)
}

/// Returns the first lines of a text, each cut to the width of the terminal.
fn first_lines(text: &str, margin: &str, styles: Styles) -> String {
    let width = styles
        .width
        .unwrap_or(COLUMNS)
        .saturating_sub(MARGIN.len() + 2);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let mut shown = String::new();
    for line in lines.iter().take(LINES) {
        let _ = writeln!(shown, "{margin}{}", clip(&styles.shown(line), width));
    }
    if lines.len() > LINES {
        let more = format!("… {} more lines", lines.len() - LINES);
        let _ = writeln!(shown, "{margin}{}", styles.paint(DIM, &more));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SCREEN: Styles = Styles {
        is_terminal: true,
        has_color: true,
        has_links: true,
        width: Some(40),
    };

    fn message() -> Value {
        json!({"role": "assistant", "parts": [
            {"type": "reasoning", "text": "hm"},
            {"type": "text", "text": "I **look**\u{1b}[2J at it"},
            {"type": "dynamic-tool", "toolCallId": "t", "toolName": "read", "title": "Read a.rs", "state": "output-available",
             "input": {"path": "/p/a.rs"}, "output": {"rawOutput": "1\n2\n3\n4\n5\n6\n7\n8"},
             "toolMetadata": {"acp": {"locations": [{"path": "/p/a.rs", "line": 3}]}}},
            {"type": "dynamic-tool", "toolCallId": "u", "toolName": "bash", "title": "List\nfiles", "state": "output-error",
             "errorText": "no\nway"},
            {"type": "dynamic-tool", "toolCallId": "v", "toolName": "x", "state": "output-denied"},
            {"type": "data-permission", "data": {"toolCallId": "v", "approved": false, "reason": "refused by you"}},
            {"type": "dynamic-tool", "toolCallId": "w", "toolName": "x", "state": "output-available", "preliminary": true},
            {"type": "data-plan", "data": {"entries": [{"content": "a", "status": "completed"}]}},
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGVsbG8="},
            {"type": "source-document", "sourceId": "file:///p/out.pdf", "title": "out.pdf", "mediaType": "a/b"},
            {"type": "data-recovery", "data": {"memory": "lost"}},
        ]})
    }

    #[test]
    fn message_is_shown_as_text() {
        let want = "\nI **look**\u{1b}[2J at it\n\n\
            [read] Read a.rs: done\n    /p/a.rs:3\n    {\"path\":\"/p/a.rs\"}\n    | 1\n    | 2\n    | 3\n    | 4\n    \
            | 5\n    | 6\n    | … 2 more lines\n\
            [bash] List files: failed\n    | no\n    | way\n\
            [x]: refused\n    refused by you\n\
            [x]: not finished\n\n\
            plan\n[x] a\n\n\
            [image/png, 5 B]\n\n[out.pdf, a/b] file:///p/out.pdf\n\n\
            --- the agent does not remember the messages above ---\n";
        assert_eq!(message_text(&message(), Styles::PLAIN), want);
    }

    #[test]
    fn message_at_a_terminal_has_styles_and_links() {
        let text = message_text(&message(), SCREEN);
        assert!(
            text.starts_with("\nI \u{1b}[1mlook\u{1b}[0m at it\n"),
            "{text:?}"
        );
        let link = "    \u{1b}]8;;file:///p/a.rs\u{1b}\\/p/a.rs:3\u{1b}]8;;\u{1b}\\\n";
        assert!(text.contains(link), "{text:?}");
        assert!(text.contains("\u{1b}[32mdone\u{1b}[0m\n"), "{text:?}");
    }

    #[test]
    fn prompts_are_quoted() {
        let prompt = json!({"role": "user", "parts": [{"type": "text", "text": "what?\n\nnow"}]});
        let text = message_text(&prompt, Styles::PLAIN);
        assert_eq!(text, "\n> what?\n>\n> now\n");
        let system = json!({"role": "system", "parts": [{"type": "text", "text": "be brief"}]});
        let text = message_text(&system, Styles::PLAIN);
        assert_eq!(text, "\nsystem: be brief\n");
    }
}
