//! A stored session as readable text.

use super::age::short;
use super::table::{clip, one_line, visible};
use crate::core::log::Log;
use crate::core::profile::Profile;
use crate::core::store::Card;
use serde_json::Value;
use std::io::{self, Write};

/// Maximum length in characters of a tool's error.
const REASON: usize = 200;

/// Writes the conversation of a session: the user's text marked with `>`, tools in brackets.
pub fn show(log: &Log, out: &mut dyn Write) -> anyhow::Result<()> {
    head(&log.card(), out)?;
    for place in 0..usize::try_from(log.count())? {
        if let Some(message) = log.message(place, Profile::V7)? {
            write_message(&message, out)?;
        }
    }
    Ok(())
}

/// Writes the last messages: `count` of them, or those from the last message of the user on. The message with the id
/// `without` and all later ones are left out.
pub fn show_last(
    log: &Log,
    count: Option<usize>,
    without: Option<&str>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
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
    for message in messages.iter().rev() {
        write_message(message, out)?;
    }
    Ok(())
}

/// Returns a message as text.
pub fn message_text(message: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = write_message(message, &mut text);
    text
}

fn head(card: &Card, out: &mut dyn Write) -> io::Result<()> {
    let agent = card.agent.as_deref().unwrap_or("no agent yet");
    writeln!(out, "session    {}", visible(&card.session_id))?;
    if let Some(title) = &card.title {
        writeln!(out, "title      {}", one_line(title))?;
    }
    writeln!(out, "agent      {}", one_line(agent))?;
    writeln!(out, "directory  {}", visible(&card.cwd))?;
    let (made, changed) = (short(&card.created_at), short(&card.updated_at));
    writeln!(out, "created    {made}, changed {changed}")?;
    writeln!(out, "messages   {}", card.messages)
}

fn write_message(message: &Value, out: &mut dyn Write) -> io::Result<()> {
    let role = message["role"].as_str().unwrap_or_default();
    for part in message["parts"].as_array().into_iter().flatten() {
        let Some(text) = part_text(part) else {
            continue;
        };
        writeln!(out)?;
        for line in text.trim_end().lines() {
            match role {
                "assistant" => writeln!(out, "{line}")?,
                "user" => writeln!(out, "{}", format!("> {line}").trim_end())?,
                _ => writeln!(out, "{}", format!("{role}: {line}").trim_end())?,
            }
        }
    }
    Ok(())
}

/// Formats a message part as text; `None` for parts that are not shown.
fn part_text(part: &Value) -> Option<String> {
    let text = |field: &str| part[field].as_str().unwrap_or_default();
    match text("type") {
        "text" => Some(text("text").to_owned()).filter(|text| !text.trim().is_empty()),
        "file" => {
            let name = [text("filename"), text("mediaType"), "unnamed"];
            let name = name.into_iter().find(|name| !name.is_empty());
            Some(format!("[file: {}]", one_line(name.unwrap_or_default())))
        }
        "dynamic-tool" => Some(tool(part)),
        "data-recovery" if part["data"]["memory"] == "lost" => {
            Some("--- the agent does not remember the messages above ---".to_owned())
        }
        _ => None,
    }
}

/// Formats a tool call on one line: name, title and outcome.
fn tool(part: &Value) -> String {
    let text = |field: &str| one_line(part[field].as_str().unwrap_or_default());
    let (name, title) = (text("toolName"), text("title"));
    let title = if title.is_empty() || title == name {
        String::new()
    } else {
        format!(" {title}")
    };
    let outcome = match part["state"].as_str() {
        Some("output-available") if part["preliminary"] != true => "done".to_owned(),
        Some("output-error") => format!("failed: {}", clip(&text("errorText"), REASON)),
        Some("output-denied") => "refused".to_owned(),
        _ => "not finished".to_owned(),
    };
    format!("[{name}]{title}: {outcome}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_parts_are_shown_as_text() {
        let cases = [
            (json!({"type": "text", "text": "hi"}), Some("hi")),
            (json!({"type": "text", "text": " \n"}), None),
            (json!({"type": "reasoning", "text": "hm"}), None),
            (
                json!({"type": "file", "filename": "a.png", "mediaType": "image/png"}),
                Some("[file: a.png]"),
            ),
            (
                json!({"type": "file", "mediaType": "image/png"}),
                Some("[file: image/png]"),
            ),
            (
                json!({"type": "dynamic-tool", "toolName": "bash", "title": "List\nfiles", "state": "output-available"}),
                Some("[bash] List files: done"),
            ),
            (
                json!({"type": "dynamic-tool", "toolName": "bash", "title": "bash", "state": "output-error", "errorText": "no\nway"}),
                Some("[bash]: failed: no way"),
            ),
            (
                json!({"type": "dynamic-tool", "toolName": "x", "state": "output-denied"}),
                Some("[x]: refused"),
            ),
            (
                json!({"type": "dynamic-tool", "toolName": "x", "state": "output-available", "preliminary": true}),
                Some("[x]: not finished"),
            ),
            (
                json!({"type": "data-recovery", "data": {"memory": "kept"}}),
                None,
            ),
            (
                json!({"type": "data-recovery", "data": {"memory": "lost"}}),
                Some("--- the agent does not remember the messages above ---"),
            ),
            (json!(7), None),
        ];
        for (part, want) in cases {
            assert_eq!(part_text(&part).as_deref(), want, "{part}");
        }
    }
}
