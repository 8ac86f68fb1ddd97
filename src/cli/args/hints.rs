//! Hints for command-line errors for which clap's own suggestion misleads.

use super::Cli;
use super::display::color_of;
use super::single::parse_single;
use crate::cli::screen::{ScreenContent, to_stdout};
use crate::cli::styles::{Styles, choose_color};
use acpipe_model::secret::shown_arguments;
use acpipe_model::similar::distance_of;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, Parser as _};
use std::ffi::OsString;
use std::io::Write as _;

/// Parses a command line that begins with the name of the program.
///
/// # Errors
/// The command line asks for help or the version, or is not valid. The text is printed, with a hint, and the error is the
/// result of the program.
pub fn parse(words: &[OsString]) -> Result<Cli, anyhow::Result<u8>> {
    choose_color(color_of(words));
    if let Some(cli) = parse_single(words) {
        return Ok(cli);
    }
    try_parse(words).map_err(|error| {
        let words = words.iter().skip(1);
        let words: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        print(&explained(error, &words))
    })
}

/// Parses a command line like [`parse`], and prints nothing.
///
/// # Errors
/// The command line asks for help or the version, or is not valid. The text quotes no value of a variable.
pub fn try_parse(
    words: impl IntoIterator<Item: Into<OsString> + Clone>,
) -> clap::error::Result<Cli> {
    Cli::try_parse_from(words).map_err(|mut error| {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.clone(),
            _ => String::new(),
        };
        let option = text(ContextKind::InvalidArg);
        let option = option.split(' ').next().unwrap_or_default();
        if let [_, shown] = &shown_arguments(&[option, &text(ContextKind::InvalidValue)])[..]
            && !shown.is_empty()
        {
            let shown = ContextValue::String(shown.clone());
            error.insert(ContextKind::InvalidValue, shown);
        }
        error
    })
}

/// Prints help or the version on stdout, and an error on stderr. Returns the exit code.
fn print(error: &clap::Error) -> anyhow::Result<u8> {
    let text = error.render();
    let colored = |styles: Styles| {
        if styles.has_color {
            text.ansi().to_string()
        } else {
            text.to_string()
        }
    };
    if error.use_stderr() {
        // A closed stderr does not change the result.
        let _ = std::io::stderr().write_all(colored(Styles::stderr()).as_bytes());
    } else {
        let text = colored(Styles::stdout());
        to_stdout(ScreenContent::Styled, |out| {
            Ok(out.write_all(text.as_bytes())?)
        })?;
    }
    Ok(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// Replaces misleading suggestions of clap with acpipe's own.
fn explained(mut error: clap::Error, words: &[String]) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let invalid = text(&error, ContextKind::InvalidArg);
    let hints = match error.kind() {
        ErrorKind::UnknownArgument => unknown_argument(&invalid, words),
        ErrorKind::InvalidSubcommand => {
            let word = text(&error, ContextKind::InvalidSubcommand);
            let cli = Cli::command();
            let (command, path) = innermost(&cli, &word, words);
            let verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            vec![match nearest(&word, verbs.iter().copied()) {
                Some(verb) => format!("a similar subcommand exists: '{verb}'"),
                None if path.is_empty() => {
                    format!("to send a prompt to an agent, use: acpipe run \"{word}\"")
                }
                None => format!(
                    "subcommands of acpipe {}: {}",
                    path.join(" "),
                    verbs.join(", ")
                ),
            }]
        }
        _ => Vec::new(),
    };
    if hints.is_empty() {
        return error;
    }
    for guess in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::Suggested,
        ContextKind::TrailingArg,
    ] {
        error.remove(guess);
    }
    let hints = hints.into_iter().map(StyledStr::from).collect();
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(hints));
    error
}

/// Returns the innermost subcommand before the invalid word, and its path of names.
fn innermost<'a>(cli: &'a Command, wrong: &str, words: &[String]) -> (&'a Command, Vec<&'a str>) {
    let (mut command, mut path) = (cli, Vec::new());
    for word in words
        .iter()
        .take_while(|word| *word != wrong && *word != "--")
    {
        if let Some(verb) = command.find_subcommand(word) {
            command = verb;
            path.push(verb.get_name());
        }
    }
    (command, path)
}

/// Returns hints for an unknown option.
fn unknown_argument(option: &str, words: &[String]) -> Vec<String> {
    let cli = Cli::command();
    let (command, path) = innermost(&cli, option, words);
    let prompts = matches!(path[..], [] | ["run"]);
    if prompts && matches!(option, "-p" | "--print") {
        let next = words.iter().skip_while(|word| *word != option).nth(1);
        let prompt = next
            .filter(|word| !word.starts_with('-'))
            .map_or("…", String::as_str);
        return vec![format!(
            "the prompt is a plain argument: acpipe run \"{prompt}\""
        )];
    }
    let options: Vec<String> = command
        .get_arguments()
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect();
    if let Some(option) = nearest(option, options.iter().map(String::as_str)) {
        return vec![format!("a similar argument exists: '{option}'")];
    }
    if prompts {
        return vec![
            format!("for a prompt that begins with -, use --prompt='{option}…'"),
            "to pass an option to the agent, put it after the agent's command: acpipe run \"…\" -- AGENT --option"
                .to_owned(),
        ];
    }
    Vec::new()
}

/// Returns the most similar name, or `None` if none is similar enough.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.trim_start_matches('-').chars().count();
    let most = match length {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let distances = names.map(|name| {
        let lengths = name.chars().count().abs_diff(word.chars().count());
        (distance_of(word, name), lengths, name)
    });
    let near = distances.filter(|(distance, ..)| *distance <= most).min();
    near.map(|(.., name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error message for a command line.
    fn said(line: &[&str]) -> String {
        let words: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        let all = std::iter::once("acpipe").chain(line.iter().copied());
        let error = Cli::try_parse_from(all).unwrap_err();
        explained(error, &words).to_string()
    }

    #[test]
    fn hints_suggest_the_intended_argument() {
        let cases: [(&[&str], &str, &str); 11] = [
            (&["run", "-p", "hi"], "acpipe run \"hi\"", "-- -p"),
            (&["-p", "hi"], "acpipe run \"hi\"", "-- -p"),
            (&["run", "--print"], "acpipe run \"…\"", "--"),
            (&["run", "--modle", "x", "hi"], "'--model'", "'--mode'"),
            (
                &["run", "--permisions=ask", "hi"],
                "'--permissions'",
                "'-- ",
            ),
            (&["run", "-x y", "hi"], "--prompt='-", "'-- -"),
            (&["hello"], "acpipe run \"hello\"", "help'"),
            (
                &["fix the tests"],
                "acpipe run \"fix the tests\"",
                "similar",
            ),
            (&["sesions"], "'sessions'", "acpipe run"),
            (&["sessions", "lst"], "'list'", "acpipe run"),
            (&["permissions", "edit"], "permissions: show", "acpipe run"),
        ];
        for (line, has, lacks) in cases {
            let said = said(line);
            let hints: String = said.lines().filter(|line| line.contains("tip:")).collect();
            assert!(hints.contains(has), "{line:?}: {said}");
            let lacks_it = lacks == "--" || !hints.contains(lacks);
            assert!(lacks_it, "{line:?}: {said}");
        }
    }

    #[test]
    fn invalid_enum_value_is_reported_by_clap() {
        let said = said(&["run", "--output", "jsn", "hi"]);
        assert!(
            said.contains("similar value") && said.contains("'json'"),
            "{said}"
        );
    }
}
