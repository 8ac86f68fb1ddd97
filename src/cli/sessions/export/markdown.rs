//! A session as Markdown that reads well on a forge: tools and thoughts are folded.

use super::html::escaped;
use crate::cli::columns::one_line;
use crate::cli::file_label::{file_facts, file_target};
use crate::cli::sessions::age::exact;
use crate::cli::sessions::conversation::{
    Author, ConversationCall, ConversationEntry, ConversationItem, PlanEntryStatus,
};
use acpipe_core::store::Card;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the title and the facts of a session.
pub fn head(card: &Card, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", plain(&one_line(super::title(card))))?;
    for (name, value) in super::facts(card) {
        writeln!(out, "- {name}: {}", code(&value))?;
    }
    Ok(())
}

/// Writes a message.
pub fn entry(entry: &ConversationEntry, out: &mut dyn Write) -> io::Result<()> {
    let time = entry
        .at
        .as_ref()
        .map_or_else(String::new, |at| format!(", {}", exact(at)));
    writeln!(out, "\n## {}{time}", plain(super::author(&entry.role)))?;
    for item in &entry.items {
        out.write_all(b"\n")?;
        write_item(item, &entry.role, out)?;
    }
    Ok(())
}

fn write_item(item: &ConversationItem, role: &Author, out: &mut dyn Write) -> io::Result<()> {
    match item {
        ConversationItem::Text(text) if *role == Author::Agent => writeln!(out, "{}", closed(text)),
        // A prompt is shown as it was typed.
        ConversationItem::Text(text) => {
            for line in text.lines() {
                let line = format!("> {}", plain(line));
                // Two spaces keep the line break.
                writeln!(out, "{}", line.trim_end().to_owned() + "  ")?;
            }
            Ok(())
        }
        ConversationItem::Thought(text) => {
            // It must not end its fold.
            let text = closed(text).replace("</", "&lt;/");
            folded("Thoughts", &text, out)
        }
        ConversationItem::File(file) => {
            let facts = [Some(file_facts(file)), file_target(file)];
            let facts: Vec<String> = facts.iter().flatten().map(|fact| code(fact)).collect();
            writeln!(out, "File: {}", facts.join(" "))
        }
        ConversationItem::Tool(call) => tool(call, out),
        ConversationItem::Plan(entries) => {
            writeln!(out, "**Plan**\n")?;
            for (progress, text) in entries {
                let (mark, note) = match progress {
                    PlanEntryStatus::Done => ("[x]", ""),
                    PlanEntryStatus::Running => ("[ ]", " (running)"),
                    PlanEntryStatus::Pending => ("[ ]", ""),
                };
                writeln!(out, "- {mark} {}{note}", plain(text))?;
            }
            Ok(())
        }
        ConversationItem::Decision(decision) => writeln!(out, "*{}*", plain(&decision.reason)),
        ConversationItem::Question(question, outcome) => {
            writeln!(out, "**Question:** {}  ", plain(&one_line(question)))?;
            writeln!(out, "*{}*", plain(&one_line(outcome)))
        }
        ConversationItem::Note(note) => writeln!(out, "*{}*", plain(note)),
        ConversationItem::Error(error) => writeln!(out, "**Error:** {}", plain(&one_line(error))),
    }
}

fn tool(call: &ConversationCall, out: &mut dyn Write) -> io::Result<()> {
    let title = match call.title.as_str() {
        "" => String::new(),
        title => format!(" {}", escaped(title)),
    };
    let name = escaped(&call.name);
    let head = format!("<code>{name}</code>{title}: {}", call.outcome.name());
    let mut body = String::new();
    for (path, line) in &call.locations {
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let _ = writeln!(body, "- {}", code(&format!("{path}{line}")));
    }
    if let Some(decision) = &call.decision {
        let _ = writeln!(body, "\n*{}*", plain(&decision.reason));
    }
    for text in [&call.input, &call.output] {
        if !text.trim().is_empty() {
            let _ = writeln!(body, "\n{}", fenced(text.trim_end()));
        }
    }
    folded(&head, body.trim(), out)
}

fn folded(head: &str, body: &str, out: &mut dyn Write) -> io::Result<()> {
    if body.is_empty() {
        return writeln!(out, "{head}");
    }
    writeln!(
        out,
        "<details><summary>{head}</summary>\n\n{body}\n\n</details>"
    )
}

/// Returns text in a code block whose fence is longer than any in it.
fn fenced(text: &str) -> String {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    format!("{fence}\n{text}\n{fence}")
}

/// Returns text as code within a line.
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{text}{space}{ticks}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// Escapes text that is not Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation()
            && !matches!(
                c,
                ',' | '.' | ':' | ';' | '\'' | '"' | '/' | '?' | '-' | '(' | ')' | '='
            )
        {
            plain.push('\\');
        }
        plain.push(c);
    }
    // Marks at the beginning of a line.
    let begin = plain.trim_start();
    let digits = begin.len() - begin.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_item = digits > 0 && begin[digits..].starts_with(['.', ')']);
    let at = plain.len() - begin.len() + if is_item { digits } else { 0 };
    if is_item || begin.starts_with(['-', '=']) {
        plain.insert(at, '\\');
    }
    plain
}

/// Returns Markdown of an agent with the end of a code block that it leaves open: it would swallow what follows.
fn closed(text: &str) -> String {
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let Some(mark) = mark else { continue };
        let info = line.trim_start_matches(mark);
        let fence = &line[..line.len() - info.len()];
        match open {
            Some(begun) if fence.starts_with(begun) && info.trim().is_empty() => open = None,
            None if fence.len() >= 3 && (mark == '~' || !info.contains('`')) => open = Some(fence),
            _ => {}
        }
    }
    match open {
        Some(fence) => format!("{text}\n{fence}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_does_not_break_the_document() {
        assert_eq!(plain("# a *b* <c> 1_2"), "\\# a \\*b\\* \\<c\\> 1\\_2");
        assert_eq!(plain("- a"), "\\- a");
        assert_eq!(plain("12. a"), "12\\. a");
        assert_eq!(code("a`b``"), "``` a`b`` ```");
        assert_eq!(fenced("```\na"), "````\n```\na\n````");
        assert_eq!(closed("a\n```rust\nb"), "a\n```rust\nb\n```");
        assert_eq!(closed("~~~\n```\n~~~~\n```a```"), "~~~\n```\n~~~~\n```a```");
    }
}
