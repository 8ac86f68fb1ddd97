//! Lines of the user: prompts, and commands that begin with a slash.

use super::offers::Offers;
use std::path::PathBuf;

/// Line that the user entered.
#[derive(Debug, PartialEq, Eq)]
pub enum ChatLine {
    /// Text for the agent.
    Prompt(String),
    /// `/help`
    Help,
    /// `/quit`
    Quit,
    /// `/cancel`: cancels the running turn.
    Cancel,
    /// `/new`
    New,
    /// `/model`: sets the model, or lists all of them.
    Model(Option<String>),
    /// `/mode`: sets the mode, or lists all of them.
    Mode(Option<String>),
    /// `/attach`: attaches files to the next prompt.
    Attach(Vec<PathBuf>),
}

/// Command of acpipe.
pub struct ChatCommand {
    pub name: &'static str,
    pub argument: &'static str,
    pub about: &'static str,
}

/// Commands of acpipe. They take precedence over those of the agent.
pub const COMMANDS: &[ChatCommand] = &[
    command("attach", " FILE", "attach a file to the next prompt"),
    command("cancel", "", "cancel the running turn"),
    command("help", "", "list the commands"),
    command("mode", " [NAME]", "show the agent's modes, or choose one"),
    command("model", " [NAME]", "show the agent's models, or choose one"),
    command("new", "", "begin a new session"),
    command("quit", "", "leave, as /detach and Ctrl-D do"),
];

const fn command(name: &'static str, argument: &'static str, about: &'static str) -> ChatCommand {
    ChatCommand {
        name,
        argument,
        about,
    }
}

impl ChatLine {
    /// Reads a line; `None` if it is empty.
    ///
    /// # Errors
    /// The command is unknown, or its argument is not valid.
    pub fn parse(line: &str, offers: &Offers) -> Result<Option<Self>, String> {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return Ok((!line.is_empty()).then(|| Self::Prompt(line.to_owned())));
        };
        if command.starts_with('/') {
            return Ok(Some(Self::Prompt(command.to_owned())));
        }
        let (name, argument) = match command.split_once(char::is_whitespace) {
            Some((name, argument)) => (name, argument.trim()),
            None => (command, ""),
        };
        let value = || (!argument.is_empty()).then(|| argument.to_owned());
        let parsed = match name {
            "attach" => return attach(argument).map(Some),
            "mode" => Self::Mode(value()),
            "model" => Self::Model(value()),
            "help" if argument.is_empty() => Self::Help,
            "new" if argument.is_empty() => Self::New,
            "cancel" if argument.is_empty() => Self::Cancel,
            "quit" | "exit" | "detach" if argument.is_empty() => Self::Quit,
            "cancel" | "help" | "new" | "quit" | "exit" | "detach" => {
                return Err(format!(
                    "/{name} takes no argument; to send the line to the agent, begin it with //"
                ));
            }
            // A path such as /etc/hosts at the beginning of a prompt is not a command.
            name if offers.has_command(name) || name.contains(['/', '.']) => {
                Self::Prompt(line.to_owned())
            }
            name => {
                return Err(format!(
                    "unknown command /{name}, which was not sent; /help lists the commands, and a line that begins with // \
                     is sent as text that begins with /"
                ));
            }
        };
        Ok(Some(parsed))
    }
}

fn attach(argument: &str) -> Result<ChatLine, String> {
    match shlex::split(argument) {
        Some(files) if !files.is_empty() => Ok(ChatLine::Attach(
            files.into_iter().map(PathBuf::from).collect(),
        )),
        Some(_) => Err("/attach needs a file: /attach shot.png".to_owned()),
        None => Err("/attach: a quotation mark is not closed".to_owned()),
    }
}

/// Returns the text of `/help`.
pub fn help(offers: &Offers) -> String {
    let mut rows: Vec<(String, &str)> = COMMANDS
        .iter()
        .map(|command| {
            (
                format!("/{}{}", command.name, command.argument),
                command.about,
            )
        })
        .collect();
    let own = rows.len();
    rows.extend(offers.commands.iter().map(|command| {
        let about = command.about.lines().next().unwrap_or_default();
        (format!("/{}", command.name), about)
    }));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or_default().min(24);
    let mut text = "commands of acpipe:".to_owned();
    for (n, (name, about)) in rows.iter().enumerate() {
        if n == own {
            text += "\ncommands of the agent:";
        }
        text.extend([&*format!("\n  {name:width$}  "), about]);
    }
    text + "\nAlt-Enter, or \\ before Enter, begins another line of the prompt. Tab completes commands. Ctrl-C cancels the \
            running turn. Text after // is sent with one /."
}

/// Returns the beginning and the candidates of the word before the cursor, for commands and their arguments. File names
/// are not among them.
pub fn completions(before: &str, offers: &Offers) -> (usize, Vec<String>) {
    let Some(command) = before.strip_prefix('/') else {
        return (0, Vec::new());
    };
    let begin_with = |begin: &str, names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        names
            .filter(|name| name.starts_with(begin))
            .map(str::to_owned)
            .collect()
    };
    match command.split_once(' ') {
        None => {
            let own = COMMANDS.iter().map(|command| command.name);
            let is_other = |name: &&str| COMMANDS.iter().all(|own| own.name != *name);
            let others = offers.commands.iter().map(|offer| offer.name.as_str());
            let mut names = own.chain(others.filter(is_other));
            (1, begin_with(command, &mut names))
        }
        Some((name @ ("mode" | "model"), begin)) => {
            let choices = if name == "mode" {
                &offers.modes
            } else {
                &offers.models
            };
            let mut names = choices.all.iter().map(|choice| choice.name.as_str());
            (before.len() - begin.len(), begin_with(begin, &mut names))
        }
        Some(_) => (0, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::offers::{Choices, Offer};

    fn offers() -> Offers {
        let offer = |name: &str| Offer {
            name: name.to_owned(),
            about: "about it\nmore".to_owned(),
        };
        Offers {
            commands: vec![offer("init"), offer("mcp:x/y"), offer("new")],
            models: Choices::default(),
            modes: Choices {
                current: None,
                all: vec![offer("plan"), offer("code")],
            },
        }
    }

    #[test]
    fn lines_are_prompts_or_commands() {
        let prompt = |text: &str| Some(ChatLine::Prompt(text.to_owned()));
        let cases = [
            ("  ", None),
            (" hello\nyou ", prompt("hello\nyou")),
            ("/init now", prompt("/init now")),
            ("/mcp:x/y", prompt("/mcp:x/y")),
            ("/etc/hosts is wrong", prompt("/etc/hosts is wrong")),
            ("/.profile", prompt("/.profile")),
            ("//help me", prompt("/help me")),
            ("/help", Some(ChatLine::Help)),
            ("/exit", Some(ChatLine::Quit)),
            ("/new", Some(ChatLine::New)),
            ("/model", Some(ChatLine::Model(None))),
            (
                "/mode  Plan first",
                Some(ChatLine::Mode(Some("Plan first".to_owned()))),
            ),
            (
                "/attach 'a b.txt' c",
                Some(ChatLine::Attach(vec!["a b.txt".into(), "c".into()])),
            ),
        ];
        for (line, want) in cases {
            assert_eq!(ChatLine::parse(line, &offers()), Ok(want), "{line}");
        }
        for (line, why) in [
            ("/ini", "unknown command /ini"),
            ("/new idea", "takes no argument"),
            ("/attach", "needs a file"),
            ("/attach 'a", "not closed"),
        ] {
            let error = ChatLine::parse(line, &offers()).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn commands_and_modes_are_completed() {
        let cases: [(&str, usize, &[&str]); 6] = [
            ("/n", 1, &["new"]),
            ("/in", 1, &["init"]),
            ("/mode ", 6, &["plan", "code"]),
            ("/mode p", 6, &["plan"]),
            ("in", 0, &[]),
            ("/init p", 0, &[]),
        ];
        for (before, start, want) in cases {
            let (at, found) = completions(before, &offers());
            assert_eq!(
                (at, found),
                (start, want.iter().map(|&w| w.to_owned()).collect()),
                "{before}"
            );
        }
    }

    #[test]
    fn help_lists_the_commands_of_the_agent_after_those_of_the_chat() {
        let text = help(&offers());
        let (own, others) = text.split_once("\ncommands of the agent:").unwrap();
        assert!(own.contains("\n  /attach FILE   attach"), "{own}");
        assert!(others.contains("\n  /init          about it\n"), "{others}");
    }
}
