//! Hints from the built-in agents: how a program is started as an ACP agent, and how its user signs in.
//!
//! Information from the agent itself takes precedence.

use super::{BuiltinAgent, all};
use crate::asking::{Asking, AskingHabit};
use crate::package_runner::{PackageRunner, package_runner, program};
use std::borrow::Cow;

/// Built-in agent that a command line starts.
struct Recognised {
    agent: &'static BuiltinAgent,
    /// Whether the program or package can speak ACP.
    may_speak_acp: bool,
}

/// Returns the command line that starts this program as an ACP agent; `None` if the program is unknown or the
/// given command line does so already.
pub fn acp_command(command: &str, args: &[String]) -> Option<String> {
    let runner = package_runner(command, args);
    let Recognised {
        agent,
        may_speak_acp,
    } = recognise(command, runner)?;
    if !may_speak_acp {
        return other_program(agent, runner, args);
    }
    // A package may hold all of the agent's programs.
    let forms = agent
        .programs
        .iter()
        .filter(|form| runner.is_some() || form.command == program(command));
    let forms: Vec<&[String]> = forms.map(|form| form.args.as_slice()).collect();
    let is_given = |words: &[String]| {
        words.iter().all(|word| {
            args.iter()
                .any(|arg| arg == word || arg.starts_with(&format!("{word}=")))
        })
    };
    if forms.iter().any(|form| is_given(form)) {
        return None;
    }
    let missing = forms.first()?.join(" ");
    // The arguments of a package runner name the package. Other arguments may not fit the missing ones.
    let kept = if runner.is_some() { args } else { &[] };
    let words = std::iter::once(command).chain(kept.iter().map(String::as_str));
    let words: Vec<&str> = words.collect();
    Some(format!("{} {missing}", words.join(" ")))
}

/// Returns the program or package that speaks ACP for a command line that does not.
fn other_program(
    agent: &BuiltinAgent,
    runner: Option<PackageRunner<'_>>,
    args: &[String],
) -> Option<String> {
    if let (Some(package), true) = (
        &agent.distribution.npx,
        runner.is_some_and(PackageRunner::is_npm),
    ) {
        return Some(format!("npx -y {}", package.package));
    }
    let other = &agent.programs.first()?.command;
    // The program that speaks ACP may follow the package.
    let is_given = args.iter().any(|arg| arg == other);
    (!is_given).then(|| other.clone())
}

/// Returns the command by which the user of this agent signs in.
pub fn login(command: &str, args: &[String]) -> Option<&'static str> {
    let recognised = recognise(command, package_runner(command, args))?;
    recognised.agent.login.as_deref()
}

/// Returns when the agent that this command line starts asks for permission; `None` if that is not known.
pub fn asks(command: &str, args: &[String]) -> Option<Cow<'static, Asking>> {
    let agent = recognise(command, package_runner(command, args))?.agent;
    let needed = &agent.asking_args;
    if needed.is_empty() || args.windows(needed.len()).any(|words| words == needed) {
        return agent.asks.as_ref().map(Cow::Borrowed);
    }
    Some(Cow::Owned(Asking::Habit(AskingHabit::Never)))
}

/// Returns `true` if the agent that this command line starts begins the titles of tool calls with the name of the tool.
pub fn titles_name_tools(command: &str, args: &[String]) -> bool {
    let recognised = recognise(command, package_runner(command, args));
    recognised.is_some_and(|recognised| recognised.agent.titles_name_tools)
}

fn recognise(command: &str, runner: Option<PackageRunner<'_>>) -> Option<Recognised> {
    let (name, is_package) = match runner {
        None => (program(command), false),
        Some(runner) => (without_version(runner.package()?), true),
    };
    all().iter().find_map(|agent| {
        let is = |known: &String| known == name;
        let other = &agent.non_acp;
        if other.programs.iter().any(is) || is_package && other.packages.iter().any(is) {
            let may_speak_acp = false;
            return Some(Recognised {
                agent,
                may_speak_acp,
            });
        }
        let packages = agent.distribution.packages();
        let is_known = agent.programs.iter().any(|own| own.command == name)
            || is_package && agent.former_packages.iter().any(is)
            || is_package && packages.into_iter().any(|own| own.package == name);
        let may_speak_acp = true;
        is_known.then_some(Recognised {
            agent,
            may_speak_acp,
        })
    })
}

/// Strips version and extras from a package: `@scope/name@1.2`, `name==1.2`, `name[extra]`.
fn without_version(package: &str) -> &str {
    let scope = usize::from(package.starts_with('@'));
    let end = package[scope..].find(['@', '=', '[', '<', '>', '~']);
    end.map_or(package, |end| &package[..scope + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> (String, Vec<String>) {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.collect())
    }

    #[test]
    fn missing_acp_argument_is_recognised() {
        let cases = [
            ("qwen", Some("qwen --acp")),
            ("/usr/bin/qwen -m x", Some("/usr/bin/qwen --acp")),
            ("qwen --acp", None),
            ("gemini --experimental-acp", None),
            ("opencode", Some("opencode acp")),
            ("opencode acp", None),
            ("kimi --acp", None),
            ("kimi", Some("kimi acp")),
            ("vibe", Some("vibe-acp")),
            ("vibe-acp", None),
            ("droid exec", Some("droid exec --output-format acp")),
            ("droid exec --output-format acp", None),
            ("codex", Some("codex-acp")),
            (
                "npx -y @openai/codex@latest",
                Some("npx -y @agentclientprotocol/codex-acp"),
            ),
            (
                "npx -y @google/gemini-cli@0.61.0",
                Some("npx -y @google/gemini-cli@0.61.0 --acp"),
            ),
            ("npx @google/gemini-cli --acp", None),
            ("uvx --from mistral-vibe==3.0 vibe-acp", None),
            (
                "uvx --from fast-agent-mcp fast-agent",
                Some("fast-agent-acp"),
            ),
            ("my-agent", None),
            ("npx", None),
        ];
        for (line, want) in cases {
            let (command, args) = words(line);
            assert_eq!(acp_command(&command, &args).as_deref(), want, "{line}");
        }
    }

    #[test]
    fn programs_have_a_command_to_sign_in() {
        let cases = [
            ("opencode acp", Some("opencode auth login")),
            (
                "npx -y @zed-industries/codex-acp@0.16.0",
                Some("codex login"),
            ),
            ("my-agent", None),
        ];
        for (line, want) in cases {
            let (command, args) = words(line);
            assert_eq!(login(&command, &args), want, "{line}");
        }
    }
}
