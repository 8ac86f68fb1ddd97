//! `acpipe completions`: completion of commands, options and names in shells.
//!
//! The printed script runs acpipe at each completion, with the words so far, so that names of agents and sessions are
//! those of the moment. Nushell has no such interface: its script has the commands and options only.

pub mod args;

use super::args::Cli;
use super::args::shared::PlaceArgs;
use super::columns::one_line;
use super::screen::{ScreenContent, to_stdout};
use super::{UsageError, agents, sessions};
use acpipe_core::session_id::{is_unnamed, name_of};
use args::{CompletionShell, CompletionsArgs};
use clap::{Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Variable that has the name of the shell while it completes a command line.
const VARIABLE: &str = "ACPIPE_COMPLETE";

/// Maximum number of sessions offered.
const MOST_SESSIONS: usize = 200;

/// Prints the script of a shell.
pub fn print(args: &CompletionsArgs) -> anyhow::Result<()> {
    let shell: &dyn EnvCompleter = match args.shell {
        CompletionShell::Bash => &Bash,
        CompletionShell::Zsh => &Zsh,
        CompletionShell::Fish => &Fish,
        CompletionShell::Powershell => &Powershell,
        CompletionShell::Elvish => &Elvish,
        CompletionShell::Nushell => {
            let mut script = Vec::new();
            let mut command = Cli::command();
            clap_complete::generate(
                clap_complete_nushell::Nushell,
                &mut command,
                "acpipe",
                &mut script,
            );
            return to_stdout(ScreenContent::Text, |out| Ok(out.write_all(&script)?));
        }
    };
    to_stdout(ScreenContent::Text, |out| {
        shell.write_registration(VARIABLE, "acpipe", "acpipe", "acpipe", out)?;
        Ok(())
    })
}

/// Answers a shell that completes a command line. Returns `false` if acpipe was started for something else.
///
/// # Errors
/// The shell is unknown, or stdout cannot be written.
pub fn complete() -> anyhow::Result<bool> {
    let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
        return Ok(false);
    };
    let shells = Shells::builtins();
    let shell = Path::new(&name).file_stem().and_then(OsStr::to_str);
    let Some(shell) = shell.and_then(|shell| shells.completer(shell)) else {
        let known: Vec<&str> = shells.names().collect();
        let known = known.join(", ");
        let name = name.display();
        let message = format!("{VARIABLE} must be one of {known}, not {name}");
        return Err(UsageError(message).into());
    };
    let mut command = with_names(Cli::command());
    command.build();
    // The words to complete follow `--`.
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let directory = std::env::current_dir().ok();
    to_stdout(ScreenContent::Styled, |out| {
        shell.write_complete(&mut command, words.collect(), directory.as_deref(), out)?;
        Ok(())
    })?;
    Ok(true)
}

/// Adds the completion of names to a command and its subcommands.
fn with_names(command: Command) -> Command {
    let sessions_are_given = matches!(command.get_name(), "show" | "export" | "delete");
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "agent" => arg.add(ArgValueCompleter::new(agent_names)),
        "session" => arg.add(ArgValueCompleter::new(session_names)),
        "id" | "ids" if sessions_are_given => arg.add(ArgValueCompleter::new(session_names)),
        _ => arg,
    });
    command.mut_subcommands(with_names)
}

fn agent_names(begin: &OsStr) -> Vec<CompletionCandidate> {
    let names = agents::names(&place()).unwrap_or_default();
    let names = names.into_iter().map(|(name, help)| {
        let help = help.map(|help| one_line(help).into());
        CompletionCandidate::new(name).help(help)
    });
    beginning_with(begin, names)
}

/// Returns the sessions of the working directory by their names, and those of other directories by their ids.
fn session_names(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = || -> anyhow::Result<Vec<CompletionCandidate>> {
        let here = sessions::directory(None)?;
        let cards = sessions::cards(&super::state_dir(&place())?)?;
        let cards = cards
            .into_iter()
            .filter(|card| !is_unnamed(&card.session_id) && is_word(&card.session_id));
        let candidates = cards.map(|card| {
            let is_here = sessions::same_dir(&card.cwd, &here);
            let id = card.session_id;
            let name = if is_here { name_of(&id).to_owned() } else { id };
            let help = card.title.unwrap_or(card.cwd);
            CompletionCandidate::new(name).help(Some(one_line(&help).into()))
        });
        Ok(candidates.take(MOST_SESSIONS).collect())
    };
    beginning_with(begin, found().unwrap_or_default())
}

/// Returns `true` if a shell takes the text for one word without a meaning of its own. An id can come from a browser, and some
/// shells insert a candidate as it is.
fn is_word(text: &str) -> bool {
    !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.,:@%+=/".contains(c))
}

fn beginning_with(
    begin: &OsStr,
    candidates: impl IntoIterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let begin = begin.to_string_lossy();
    let candidates = candidates.into_iter();
    let candidates = candidates.filter(|c| c.get_value().to_string_lossy().starts_with(&*begin));
    candidates.collect()
}

/// The state directory of the environment: a `--state-dir` in the completed line is not considered.
fn place() -> PlaceArgs {
    let state_dir = std::env::var_os("ACPIPE_STATE_DIR").map(PathBuf::from);
    PlaceArgs {
        state_dir: state_dir.filter(|dir| dir != Path::new("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_mean_something_to_a_shell_are_not_completed() {
        for id in ["fix", "a-b_c.d", "fix@0123456789abcdef", "größe"] {
            assert!(is_word(id), "{id}");
        }
        for id in [
            "$(touch x)",
            "a;b",
            "a b",
            "a\u{b}--config=x",
            "a\nb",
            "--help",
            "`x`",
            "~x",
            "a*",
        ] {
            assert!(!is_word(id), "{id:?}");
        }
    }
}
