//! Options of a daemon's start that the next daemon does not have.

use crate::cli::args::Cli;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory as _};
use std::ffi::OsString;

/// Option whose value a restart keeps.
const KEPT: &str = "config";

/// Returns the names of the earlier options that are not repeated. An option with one value may have another one; of an
/// option with several, all must be repeated.
pub fn dropped_options(earlier: &[String], next: &[String]) -> Vec<String> {
    let mut command = Cli::command();
    let mut matches = |options: &[String]| -> Option<ArgMatches> {
        let words = ["acpipe", "daemon", "run"].map(str::to_owned);
        let words = words.iter().chain(options);
        let matches = command.try_get_matches_from_mut(words).ok()?;
        let daemon = matches.subcommand_matches("daemon")?;
        daemon.subcommand_matches("run").cloned()
    };
    let (Some(earlier), Some(next)) = (matches(earlier), matches(next)) else {
        return Vec::new();
    };
    let run = command.find_subcommand("daemon");
    let run = run.and_then(|daemon| daemon.find_subcommand("run"));
    let options = run.into_iter().flat_map(clap::Command::get_arguments);
    let dropped = options.filter(|option| {
        let repeated = given(&next, option);
        given(&earlier, option).is_some_and(|values| match repeated {
            None => option.get_long() != Some(KEPT),
            Some(repeated) => {
                let has_several = matches!(option.get_action(), ArgAction::Append);
                let is_missing = |value| !repeated.contains(value);
                has_several && !option.is_positional() && values.iter().any(is_missing)
            }
        })
    });
    dropped.map(name).collect()
}

/// Returns the values of an option; `None` if the command line does not have it.
fn given(matches: &ArgMatches, option: &Arg) -> Option<Vec<OsString>> {
    let id = option.get_id().as_str();
    let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
    let values = matches.get_raw(id).into_iter().flatten();
    is_given.then(|| values.map(ToOwned::to_owned).collect())
}

fn name(option: &Arg) -> String {
    match (option.get_long(), option.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => "the agent behind --".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_repeated_are_named_without_values() {
        let table = [
            ("--permissions deny -e A=b", "--permissions deny -e A=b", ""),
            ("--permissions deny", "--permissions ask", ""),
            ("--permissions deny", "--max-sessions 7", "--permissions"),
            ("--config a.toml", "--max-sessions 7", ""),
            ("-e A=b -e C=d", "-e A=b", "--env"),
            ("--no-path-probe", "--max-sessions 7", "--no-path-probe"),
            ("-- agent a", "--max-sessions 7", "the agent behind --"),
            ("-- agent a", "-- other", ""),
        ];
        for (earlier, next, expected) in table {
            let words =
                |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
            let dropped = dropped_options(&words(earlier), &words(next));
            assert_eq!(dropped.join(", "), expected, "{earlier} | {next}");
        }
    }
}
