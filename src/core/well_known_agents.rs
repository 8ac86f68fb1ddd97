//! Well-known agents: how each is started as an ACP agent, and how its user signs in.
//!
//! Used only for hints. Information from the agent itself takes precedence.

use super::package_runner::{PackageRunner, package_runner, program};

/// Facts about a well-known agent.
struct Known {
    /// Names of its program.
    programs: &'static [&'static str],
    /// npm or Python packages from which package runners start it.
    packages: &'static [&'static str],
    acp: Acp,
    /// Command by which the user signs in.
    login: Option<&'static str>,
}

/// How a program is started as an ACP agent.
enum Acp {
    /// With arguments: each list is one alternative, and the first is suggested.
    Args(&'static [&'static [&'static str]]),
    /// By another program, which may be in another package.
    Other {
        program: &'static str,
        package: Option<&'static str>,
    },
    /// Without additional arguments.
    Always,
}

const FLAG: Acp = Acp::Args(&[&["--acp"], &["--experimental-acp"]]);
const SUBCOMMAND: Acp = Acp::Args(&[&["acp"], &["--acp"]]);
const DROID: Acp = Acp::Args(&[&["exec", "--output-format", "acp"]]);
const CODEX_ACP: &str = "@agentclientprotocol/codex-acp";

#[rustfmt::skip]
const TABLE: &[Known] = &[
    known(&["gemini"], &["@google/gemini-cli"], FLAG, None),
    known(&["qwen"], &["@qwen-code/qwen-code"], FLAG, None),
    known(&["copilot"], &["@github/copilot"], FLAG, Some("copilot login")),
    known(&["cline"], &["cline"], FLAG, Some("cline auth")),
    known(&["auggie"], &["@augmentcode/auggie"], FLAG, Some("auggie login")),
    known(&["qodercli"], &["@qoder-ai/qodercli"], FLAG, None),
    known(&["opencode"], &["opencode-ai"], SUBCOMMAND, Some("opencode auth login")),
    known(&["kimi", "kimi-cli"], &["kimi-cli"], SUBCOMMAND, Some("kimi login")),
    known(&["goose"], &[], SUBCOMMAND, Some("goose configure")),
    known(&["kilo", "kilocode"], &["@kilocode/cli"], SUBCOMMAND, Some("kilo auth login")),
    known(&["openhands"], &["openhands"], SUBCOMMAND, None),
    known(&["cursor-agent"], &[], SUBCOMMAND, Some("cursor-agent login")),
    known(&["kiro-cli"], &[], SUBCOMMAND, Some("kiro-cli login")),
    known(&["droid"], &["droid"], DROID, None),
    known(&["codex"], &["@openai/codex"], other("codex-acp", Some(CODEX_ACP)), Some("codex login")),
    known(&["codex-acp"], &[CODEX_ACP, "@zed-industries/codex-acp"], Acp::Always, Some("codex login")),
    known(&["pi"], &["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"], other("pi-acp", Some("pi-acp")), None),
    known(&["vibe"], &["mistral-vibe"], other("vibe-acp", None), Some("vibe --setup")),
    known(&["vibe-acp"], &[], Acp::Always, Some("vibe --setup")),
    known(&["fast-agent"], &["fast-agent-mcp"], other("fast-agent-acp", None), None),
    known(&["hermes"], &["hermes-agent"], other("hermes-acp", None), Some("hermes setup")),
    known(&["hermes-acp"], &[], Acp::Always, Some("hermes setup")),
    known(&["claude-agent-acp", "claude-code-acp"],
        &["@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-agent-acp", "@zed-industries/claude-code-acp"],
        Acp::Always, Some("claude auth login")),
];

const fn known(
    programs: &'static [&'static str],
    packages: &'static [&'static str],
    acp: Acp,
    login: Option<&'static str>,
) -> Known {
    Known {
        programs,
        packages,
        acp,
        login,
    }
}

const fn other(program: &'static str, package: Option<&'static str>) -> Acp {
    Acp::Other { program, package }
}

/// Returns the command line that starts this program as an ACP agent; `None` if the program is unknown or the
/// given command line does so already.
#[must_use]
pub fn acp_command(command: &str, args: &[String]) -> Option<String> {
    let runner = package_runner(command, args);
    let known = find(command, runner)?;
    let is_given = |words: &&[&str]| {
        words.iter().all(|word| {
            args.iter()
                .any(|arg| arg == word || arg.starts_with(&format!("{word}=")))
        })
    };
    match (&known.acp, runner) {
        (Acp::Always, _) => None,
        (Acp::Args(ways), _) if ways.iter().any(is_given) => None,
        (Acp::Args(ways), None) => Some(format!("{command} {}", ways.first()?.join(" "))),
        (Acp::Args(ways), Some(_)) => {
            let words: Vec<&str> = std::iter::once(command)
                .chain(args.iter().map(String::as_str))
                .collect();
            Some(format!("{} {}", words.join(" "), ways.first()?.join(" ")))
        }
        (
            Acp::Other {
                package: Some(package),
                ..
            },
            Some(runner),
        ) if runner.is_npm() => Some(format!("npx -y {package}")),
        // The program that speaks ACP may follow the package.
        (Acp::Other { program, .. }, _) if args.iter().any(|arg| arg == program) => None,
        (Acp::Other { program, .. }, _) => Some((*program).to_owned()),
    }
}

/// Returns the command line that starts the well-known agent with this name as an ACP agent.
#[must_use]
pub fn named(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let known = TABLE
        .iter()
        .find(|known| known.programs.contains(&name.as_str()))?;
    Some(match &known.acp {
        Acp::Args(ways) => format!("{name} {}", ways.first()?.join(" ")),
        Acp::Other { program, .. } => (*program).to_owned(),
        Acp::Always => name,
    })
}

/// Returns the command by which the user of this agent signs in.
#[must_use]
pub fn login(command: &str, args: &[String]) -> Option<&'static str> {
    find(command, package_runner(command, args))?.login
}

fn find(command: &str, runner: Option<PackageRunner<'_>>) -> Option<&'static Known> {
    let mut table = TABLE.iter();
    match runner {
        None => {
            let name = program(command);
            table.find(|known| known.programs.contains(&name))
        }
        Some(runner) => {
            let package = without_version(runner.package()?);
            table.find(|known| {
                known.packages.contains(&package) || known.programs.contains(&package)
            })
        }
    }
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
        assert_eq!(named("Gemini").as_deref(), Some("gemini --acp"));
        assert_eq!(named("codex").as_deref(), Some("codex-acp"));
        assert_eq!(named("codex-acp").as_deref(), Some("codex-acp"));
        assert_eq!(named("none"), None);
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
