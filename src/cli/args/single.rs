//! Parser of the subcommands that programs start most. Building the definitions of all subcommands takes about as
//! long as the rest of the start.

use super::display::DisplayArgs;
use super::{AcpArgs, Cli, LogArgs, RunArgs, ServeArgs, Verb};
use clap::{Args, Parser};
use std::ffi::OsString;

/// Command line of a single subcommand, without its name.
#[derive(Debug, Parser)]
struct Single<A: Args> {
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    display: DisplayArgs,
}

/// Parses a command line whose second word is such a subcommand. `None` for every other command line, and for each
/// that is not valid or asks for help: the parser of all subcommands handles it, which names the whole command.
pub fn parse_single(words: &[OsString]) -> Option<Cli> {
    match words.get(1)?.to_str()? {
        "run" => parse::<RunArgs>(words, Verb::Run),
        "serve" => parse::<ServeArgs>(words, Verb::Serve),
        "acp" => parse::<AcpArgs>(words, Verb::Acp),
        _ => None,
    }
}

fn parse<A: Args>(words: &[OsString], verb: fn(A) -> Verb) -> Option<Cli> {
    let own = words.iter().take(1).chain(words.iter().skip(2));
    let parsed = Single::<A>::try_parse_from(own).ok()?;
    Some(Cli {
        verb: verb(parsed.args),
        logs: parsed.logs,
        display: parsed.display,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a command line with both parsers.
    fn both(line: &[&str]) -> (Option<String>, Option<String>) {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let text = |cli: Cli| format!("{cli:?}");
        let single = parse_single(&words).map(text);
        (single, Cli::try_parse_from(&words).ok().map(text))
    }

    #[test]
    fn single_subcommand_is_parsed_like_all_subcommands() {
        let lines: [&[&str]; 9] = [
            &["acpipe", "run", "hello"],
            &[
                "acpipe",
                "run",
                "-vv",
                "--log-file",
                "x",
                "--agent",
                "a",
                "b",
                "c",
            ],
            &[
                "acpipe",
                "run",
                "--log-level=info",
                "hi",
                "--",
                "agent",
                "-v",
                "--help",
            ],
            &["acpipe", "run", "-c", "-q", "help"],
            &["acpipe", "run", "--state-dir", "d", "-o", "json", "run"],
            &["acpipe", "serve"],
            &[
                "acpipe",
                "serve",
                "--permissions",
                "ask",
                "--log-format",
                "json",
            ],
            &["acpipe", "serve", "--", "agent", "serve"],
            &["acpipe", "acp", "--agent", "a", "--agent", "b"],
        ];
        for line in lines {
            let (single, all) = both(line);
            assert!(single.is_some(), "{line:?}");
            assert_eq!(single, all, "{line:?}");
        }
    }

    #[test]
    fn other_command_lines_are_left_to_the_parser_of_all_subcommands() {
        let lines: [&[&str]; 8] = [
            &["acpipe"],
            &["acpipe", "--version"],
            &["acpipe", "-v", "run", "hello"],
            &["acpipe", "run", "--help"],
            &["acpipe", "run", "--version"],
            &["acpipe", "run", "-q", "-v", "hello"],
            &["acpipe", "serve", "--no-such-option"],
            &["acpipe", "agents"],
        ];
        for line in lines {
            assert_eq!(both(line).0, None, "{line:?}");
        }
    }
}
