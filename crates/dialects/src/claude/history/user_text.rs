//! Classification of text in the user's name, much of which comes from the CLI itself.

use std::borrow::Cow;

/// Text in the user's name, by origin.
#[derive(Debug, PartialEq, Eq)]
pub enum UserText<'a> {
    Typed(Cow<'a, str>),
    /// Output of a command that the user ran.
    Printed(&'a str),
    /// Text of the CLI for the model.
    None,
}

/// Beginnings of the CLI's texts for the model.
const NOT_SHOWN: &[&str] = &[
    "<local-command-caveat>",
    "<task-notification>",
    "[Request interrupted by user",
];

/// Tags around the output of the user's commands.
const PRINTED: &[&str] = &[
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
];

pub fn user_text(text: &str) -> UserText<'_> {
    let said = without_reminders(text);
    let start = said.trim_start();
    if start.is_empty() || NOT_SHOWN.iter().any(|own| start.starts_with(own)) {
        return UserText::None;
    }
    if let Some(printed) = PRINTED.iter().find_map(|tag| begins(start, tag)) {
        return if printed.trim().is_empty() {
            UserText::None
        } else {
            UserText::Printed(printed)
        };
    }
    if begins(start, "command-name").is_some() || begins(start, "command-message").is_some() {
        let name = within(start, "command-name").unwrap_or_default();
        let arguments = within(start, "command-args").unwrap_or_default();
        let command = format!("{name} {arguments}");
        return UserText::Typed(command.trim().to_owned().into());
    }
    match begins(start, "bash-input") {
        Some(command) => UserText::Typed(format!("!{command}").into()),
        None => UserText::Typed(said.into()),
    }
}

/// Returns the text after any reminders at its start.
fn without_reminders(mut text: &str) -> &str {
    const END: &str = "</system-reminder>";
    while text.trim_start().starts_with("<system-reminder>") {
        text = text.find(END).map_or("", |at| &text[at + END.len()..]);
        text = text.trim_start_matches(['\r', '\n']);
    }
    text
}

/// Returns the content of the tag with which a text starts; `None` if it is another tag.
fn begins<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?;
    rest.starts_with('>').then(|| within(text, tag))?
}

/// Returns the content of the first tag of this name; a truncated text has no end tag.
fn within<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let open = format!("<{tag}>");
    let rest = &text[text.find(&open)? + open.len()..];
    Some(rest.split(&format!("</{tag}>")).next().unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_text_is_distinguished_from_generated_text() {
        let user = |said: &'static str| UserText::Typed(said.into());
        let cases = [
            ("hello <b>", user("hello <b>")),
            (" [x] done?", user(" [x] done?")),
            ("<div> what is it", user("<div> what is it")),
            ("", UserText::None),
            ("[Request interrupted by user for tool use]", UserText::None),
            (
                "<local-command-caveat>x</local-command-caveat>",
                UserText::None,
            ),
            ("<task-notification>\n<task-id>", UserText::None),
            ("<system-reminder>\nx\n</system-reminder>", UserText::None),
            ("<system-reminder>never ended", UserText::None),
            (
                "<system-reminder>x</system-reminder>\n<system-reminder>y</system-reminder>\n do",
                user(" do"),
            ),
            (
                "<command-name>/compact</command-name>\n  <command-message>compact</command-message>\n  \
                 <command-args></command-args>",
                user("/compact"),
            ),
            (
                "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n\
                 <command-args>all of it</command-args>",
                user("/fix all of it"),
            ),
            ("<bash-input>ls -l</bash-input>", user("!ls -l")),
            (
                "<local-command-stdout>Done </local-command-stdout>",
                UserText::Printed("Done "),
            ),
            (
                "<local-command-stdout></local-command-stdout>",
                UserText::None,
            ),
            (
                "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
                UserText::Printed("a"),
            ),
        ];
        for (text, whose) in cases {
            assert_eq!(user_text(text), whose, "{text}");
        }
    }
}
