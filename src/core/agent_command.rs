//! The command line of a session's agent: how it is stored, and which program it is.

use super::dialects::traits;
use super::launcher::{Launcher, launcher, program, unwrapped};
use crate::proto::wire::Protocol;
use serde::{Deserialize, Serialize};

/// How the agent of a session is started again. Its environment is not stored, since it may hold secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand {
    /// The program: a path, or a name that is searched for in `PATH`.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The directory where it is started.
    #[serde(default)]
    pub cwd: String,
    /// The protocol that it speaks.
    #[serde(default)]
    pub protocol: Protocol,
    /// Whether each session has a process of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub child_per_session: bool,
    /// Whether it is acpipe's demo agent, which is found again where acpipe is installed elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo: bool,
}

impl AgentCommand {
    /// The command line as lists show it.
    #[must_use]
    pub fn line(&self) -> String {
        if let Some(identity) = traits(self.protocol).identity {
            return identity.to_owned();
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The key of an agent: command lines with equal keys start the same program, so that one knows the sessions of the
/// other. Directories, versions of packages and arguments make no difference; of package runners, containers and
/// interpreters the key is what they run. The Claude Code CLI has the same sessions wherever it is installed and
/// however it is started.
#[must_use]
pub fn key(protocol: Protocol, command: &str, args: &[String]) -> String {
    if let Some(identity) = traits(protocol).identity {
        return identity.to_owned();
    }
    if let Some(package) = launcher(command, args).and_then(Launcher::package) {
        return without_version(package).to_owned();
    }
    let words: Vec<&str> = std::iter::once(command)
        .chain(args.iter().map(String::as_str))
        .collect();
    let Some((first, rest)) = unwrapped(&words).split_first() else {
        return program(command).to_owned();
    };
    let name = program(first);
    let interpreter = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let script = rest.iter().find(|word| !word.starts_with('-'));
    match script {
        Some(script) if INTERPRETERS.contains(&interpreter) => format!("{interpreter} {script}"),
        _ => name.to_owned(),
    }
}

/// The key of a command line of which only the words joined by spaces are stored.
#[must_use]
pub fn key_of_line(line: &str) -> String {
    let mut words = line.split(' ').map(str::to_owned);
    let command = words.next().unwrap_or_default();
    let args: Vec<String> = words.collect();
    key(Protocol::Acp, &command, &args)
}

/// Programs whose first argument without a dash says which agent they run.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "deno", "java", "node", "perl", "php", "python", "ruby", "sh", "tsx", "zsh",
];

/// The name of a package or image without scope, registry, version and tag.
fn without_version(package: &str) -> &str {
    let name = package.trim_end_matches('/').rsplit('/').next();
    let name = name.unwrap_or(package);
    let end = name.find(['@', ':', '=', '[', '<', '>', '~', '!']);
    match end {
        Some(end) if end > 0 => &name[..end],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::CLAUDE;

    #[test]
    fn an_agent_is_the_same_whatever_its_place_version_and_arguments() {
        let cases = [
            ("opencode acp", "opencode"),
            ("/opt/opencode-1.2/bin/opencode acp --verbose", "opencode"),
            ("npx -y @scope/agent-acp@0.5.1", "agent-acp"),
            ("npx @scope/agent-acp --debug", "agent-acp"),
            ("agent-acp", "agent-acp"),
            ("env A=1 agent-acp", "agent-acp"),
            ("uvx --from agent==2.0 agent acp", "agent"),
            ("docker run -i registry.io/x/agent:1.2", "agent"),
            ("node /a/dist/index.js --acp", "node /a/dist/index.js"),
            ("node /b/dist/index.js", "node /b/dist/index.js"),
            ("python3.12 -m agent acp", "python agent"),
            ("python -m agent", "python agent"),
            ("node", "node"),
            ("", ""),
        ];
        for (line, want) in cases {
            assert_eq!(key_of_line(line), want, "{line}");
        }
        assert_eq!(key(Protocol::Claude, "/opt/claude-2/claude", &[]), CLAUDE);
        assert_eq!(key_of_line(CLAUDE), CLAUDE);
    }
}
