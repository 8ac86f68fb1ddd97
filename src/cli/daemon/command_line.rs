//! The command line of a client, as the daemon reads it.

use super::start_options::StartVariables;
use crate::cli::agent_choice::unclosed_quote;
use crate::cli::args::hints::try_parse;
use crate::cli::args::read_files::ReadFiles;
use crate::cli::args::shared::PlaceArgs;
use crate::cli::args::{AgentArgs, Cli, LimitArgs, Persist, ServeArgs, Verb};
use crate::cli::{UsageError, load_config, persists, read_files};
use acpipe_model::builtin_agents;
use clap::Parser as _;

/// Checks that a client of the daemon has no option that concerns all clients.
///
/// # Errors
/// It has one.
pub fn check(agent: &AgentArgs, limits: &LimitArgs) -> Result<(), UsageError> {
    check_agent(agent)?;
    let Some(usual) = usual() else { return Ok(()) };
    refuse(&[
        (
            "--idle-timeout",
            limits.idle_timeout.0 != usual.limits.idle_timeout.0,
        ),
        ("--max-sessions", limits.max_sessions.is_some()),
    ])
}

/// Like [`check`], for a client without limits.
///
/// # Errors
/// It has an option that concerns all clients.
pub fn check_agent(agent: &AgentArgs) -> Result<(), UsageError> {
    check_variable(agent, ", or use --no-daemon")?;
    let Some(usual) = usual() else { return Ok(()) };
    let store = &agent.store;
    if agent.record.record.is_some() {
        let why = "--record cannot be used with the daemon, because a tape has one client; use --no-daemon";
        return Err(UsageError(why.to_owned()));
    }
    refuse(&[
        #[cfg(feature = "otlp")]
        ("--otlp", agent.otlp.otlp.is_some()),
        ("--persist never", store.persist == Some(Persist::Never)),
        (
            "--durability",
            store.durability != usual.agent.store.durability,
        ),
        ("--max-line", agent.max_line != usual.agent.max_line),
        (
            "--no-path-probe",
            agent.no_path_probe != usual.agent.no_path_probe,
        ),
        ("--serve", !agent.serving.serve.is_empty()),
    ])
}

/// Checks that the environment of a client does not ask for sessions in memory, which the daemon cannot keep for one
/// client. `otherwise` is what the command offers in place of the daemon.
fn check_variable(agent: &AgentArgs, otherwise: &str) -> Result<(), UsageError> {
    if agent.store.persist.is_some() || persists(&agent.store)? {
        return Ok(());
    }
    Err(UsageError(format!(
        "PERSIST_MESSAGES=false cannot be used with the daemon, because it concerns all its clients; set it for \
         `acpipe daemon start` and unset it here{otherwise}"
    )))
}

/// Returns an error for the first option that is given.
fn refuse(options: &[(&str, bool)]) -> Result<(), UsageError> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(UsageError(format!(
            "{option} cannot be used with the daemon, because it concerns all its clients; give it to `acpipe daemon \
             start`, or use --no-daemon"
        ))),
        None => Ok(()),
    }
}

/// Returns the arguments of `acpipe serve` without options.
fn usual() -> Option<ServeArgs> {
    match Cli::try_parse_from(["acpipe", "serve"]).ok()?.verb {
        Verb::Serve(args) => Some(args),
        _ => None,
    }
}

/// Returns the options that follow the word `verb`, without those that belong to the start of the process: the state
/// directory is passed on in the environment.
pub fn options_after(verb: &str, words: &[String]) -> Vec<String> {
    let mut words = words.iter().skip_while(|word| *word != verb).skip(1);
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                options.push(word.clone());
                options.extend(words.by_ref().cloned());
            }
            "--detached" => {}
            "--state-dir" => {
                words.next();
            }
            word if word.starts_with("--state-dir=") => {}
            word => options.push(word.to_owned()),
        }
    }
    options
}

/// Command line of a client as the daemon gets it, with the files that the client has read.
#[derive(Debug, Clone)]
pub struct ClientCommand {
    /// Words after the name of the program, with the agent of `ACPIPE_AGENT`: the daemon does not have the variables of
    /// its clients.
    pub words: Vec<String>,
    pub files: ReadFiles,
}

impl ClientCommand {
    /// Returns that of this process, for the configuration of a directory.
    ///
    /// # Errors
    /// A file cannot be read or is not valid, or `ACPIPE_AGENT` cannot be read.
    pub fn own(agent: &AgentArgs, cwd: &str) -> anyhow::Result<Self> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        Self::of(&words, agent, cwd)
    }

    /// Returns that of a client without options, with the configuration of a directory: `acpipe attach`.
    ///
    /// # Errors
    /// As those of [`Self::own`].
    pub fn without_options(place: &PlaceArgs, cwd: &str) -> anyhow::Result<Self> {
        let words = ["acpipe", "serve"].map(str::to_owned);
        let Verb::Serve(ServeArgs { mut agent, .. }) = try_parse(&words)?.verb else {
            return Err(UsageError("the daemon cannot be used".to_owned()).into());
        };
        check_variable(&agent, "")?;
        agent.store.place.state_dir.clone_from(&place.state_dir);
        Self::of(&words[1..], &agent, cwd)
    }

    fn of(words: &[String], agent: &AgentArgs, cwd: &str) -> anyhow::Result<Self> {
        let files = read_files(agent, cwd)?;
        let config = load_config(agent, cwd, None)?;
        let line = StartVariables::own().agent.unwrap_or_default();
        let is_name =
            |word: &str| config.agent(word).is_some() || builtin_agents::find(word).is_some();
        let words = with_agent(words, agent, line.trim(), &is_name)?;
        Ok(Self { words, files })
    }
}

fn with_agent(
    words: &[String],
    agent: &AgentArgs,
    line: &str,
    is_name: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, UsageError> {
    let end = words.iter().position(|word| word == "--");
    let (options, command) = words.split_at(end.unwrap_or(words.len()));
    let options = options
        .iter()
        .filter(|word| *word != "--daemon" && *word != "--no-daemon");
    let mut all: Vec<String> = options.cloned().collect();
    if agent.names_agent() || line.is_empty() {
        all.extend(command.iter().cloned());
        return Ok(all);
    }
    let named = shlex::split(line).ok_or_else(unclosed_quote)?;
    match named.as_slice() {
        [name] if is_name(name) => {
            all.extend(["--agent".to_owned(), name.clone()]);
        }
        _ => {
            all.push("--".to_owned());
            all.extend(named);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str, agent: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let cli = Cli::try_parse_from(std::iter::once("acpipe".to_owned()).chain(words.clone()));
        let Verb::Serve(args) = cli.unwrap().verb else {
            panic!("not serve");
        };
        with_agent(&words, &args.agent, agent, &|word| word == "codex").unwrap()
    }

    #[test]
    fn agent_of_the_environment_becomes_an_option() {
        let table = [
            ("serve --daemon", "", "serve"),
            (
                "serve --daemon -- a --daemon",
                "codex",
                "serve -- a --daemon",
            ),
            ("serve --daemon", "codex", "serve --agent codex"),
            ("serve --daemon", "my-agent 'x y'", "serve -- my-agent x y"),
            ("serve --agent a", "codex", "serve --agent a"),
        ];
        for (line, agent, expected) in table {
            assert_eq!(words(line, agent).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn options_of_a_start_are_those_of_the_daemon() {
        let table = [
            ("daemon start", ""),
            ("daemon start --state-dir x --agent a", "--agent a"),
            (
                "daemon start --state-dir=x -- y --state-dir z",
                "-- y --state-dir z",
            ),
            ("-v daemon start --detached", ""),
        ];
        for (line, expected) in table {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(options_after("start", &words).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn options_of_all_clients_are_rejected() {
        let check_line = |line: &str| {
            let Verb::Serve(args) = Cli::try_parse_from(line.split(' ')).unwrap().verb else {
                panic!("not serve");
            };
            check(&args.agent, &args.limits)
        };
        assert!(check_line("acpipe serve --agent x --permissions ask").is_ok());
        for option in [
            "--record t",
            "--persist never",
            "--max-line 1K",
            "--serve fs",
            "--idle-timeout 1m",
        ] {
            let error = check_line(&format!("acpipe serve {option}")).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(option.split(' ').next().unwrap()),
                "{error}"
            );
        }
    }
}
