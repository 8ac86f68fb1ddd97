//! Command line of a session's agent: its stored form, and the key of the program that it starts.

use acpipe_dialects::traits;
use acpipe_model::http::shown_url;
use acpipe_model::package_runner::{PackageRunner, package_runner, program, without_wrapper};
use acpipe_model::secret::{hide, shown_arguments, shown_words};
use acpipe_protocol::wire::Protocol;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Stored command line by which the agent of a session is started again. The environment is not stored, since
/// it may hold secrets.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own in stored files"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand {
    /// Program: a path, or a name that is searched for in `PATH`.
    pub command: String,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Working directory of the agent process.
    #[serde(default)]
    pub cwd: String,
    /// Protocol that the agent speaks.
    #[serde(default)]
    pub protocol: Protocol,
    /// Whether each session gets its own agent process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub child_per_session: bool,
    /// Whether the agent was one of the configuration: it is started only by its definition, whose rules are
    /// not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub configured: bool,
    /// Whether the agent is acpipe's demo agent. Its path is not used: the demo agent is found again if
    /// acpipe has moved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo: bool,
    /// Whether the agent ran inside the program that contained acpipe. `command` is its name then, and no
    /// program is started for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
}

impl AgentCommand {
    /// Returns the command line as it is stored. It is not shown, since it may hold secrets.
    pub fn line(&self) -> String {
        self.line_of(|words| words.join(" "))
    }

    /// Returns the command line as it is shown and sent to clients.
    pub fn shown_line(&self) -> String {
        self.line_of(|words| shown_arguments(words).join(" "))
    }

    fn line_of(&self, join: impl FnOnce(&[&str]) -> String) -> String {
        if let Some(identity) = traits(self.protocol).identity {
            return identity.to_owned();
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        join(&words.map(String::as_str).collect::<Vec<_>>())
    }
}

/// Returns the command line of a session's agent as it is shown. `line` is its stored text, which is all that earlier versions
/// stored.
pub fn shown_line(command: Option<&AgentCommand>, line: Option<&str>) -> Option<String> {
    let command = command.map(AgentCommand::shown_line);
    command.or_else(|| line.map(shown_words))
}

/// Replaces the command lines of a session's agents with those that are shown. `session` is the JSON of a session's record
/// in its log, or of its card.
pub fn hide_command_lines(session: &mut Value) {
    let command = serde_json::from_value(session["agentCommand"].clone()).ok();
    if let Some(line) = shown_line(command.as_ref(), session["agent"].as_str()) {
        session["agent"] = line.into();
    }
    if let Some(args) = session
        .pointer_mut("/agentCommand/args")
        .and_then(Value::as_array_mut)
    {
        let words: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
        let shown = shown_arguments(&words);
        *args = shown.into_iter().map(Value::from).collect();
    }
    // The key of a program that is text of a shell is that text.
    let known = session.get_mut("agents").and_then(Value::as_array_mut);
    for known in known.into_iter().flatten() {
        for member in ["agent", "program"] {
            if let Some(line) = known.get_mut(member).filter(|line| line.is_string()) {
                *line = shown_words(line.as_str().unwrap_or_default()).into();
            }
        }
    }
}

/// Returns the key of an agent's program.
///
/// Command lines with equal keys start the same program, so each of these agents knows the sessions of the
/// others. Directories, package versions and arguments do not change the key. The key of a package runner,
/// container or interpreter is the package, image or script that it runs, that of an HTTP endpoint its address. All agents of the Claude Code CLI
/// have one key, since they share their sessions however the CLI is installed or started.
pub fn key(protocol: Protocol, command: &str, args: &[String]) -> String {
    if let Some(identity) = traits(protocol).identity {
        return identity.to_owned();
    }
    if protocol.is_http() {
        return shown_url(command);
    }
    if let Some(package) = package_runner(command, args).and_then(PackageRunner::package) {
        return without_version(package).to_owned();
    }
    let words: Vec<&str> = std::iter::once(command)
        .chain(args.iter().map(String::as_str))
        .collect();
    let Some((first, rest)) = without_wrapper(&words).split_first() else {
        return program(command).to_owned();
    };
    let name = program(first);
    let interpreter = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let script = script(rest);
    match script {
        Some(script) if INTERPRETERS.contains(&interpreter) => format!("{interpreter} {script}"),
        _ => name.to_owned(),
    }
}

/// Returns the script among the arguments of an interpreter.
fn script<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if TAKES_VALUE.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

/// Options of interpreters whose next word is neither a script nor a module.
const TAKES_VALUE: &[&str] = &[
    "-o",
    "+o",
    "-O",
    "+O",
    "--rcfile",
    "--init-file",
    "-W",
    "-X",
    "-r",
    "--require",
    "--import",
];

/// Returns a [`key`] that may leave this machine: without the text of a program that is given to an interpreter as an
/// argument (`sh -c TEXT`, `cmd /c TEXT`).
pub fn public_key(protocol: Protocol, command: &str, args: &[String]) -> String {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let words = [&[command], &words[..]].concat();
    let started = without_wrapper(&words);
    let is_text = started
        .first()
        .is_some_and(|word| word.contains(char::is_whitespace));
    if is_text && started.len() < words.len() {
        return program(command).to_owned();
    }
    let key = key(protocol, command, args);
    if let Some((interpreter, script)) = key.split_once(' ') {
        let before = args.iter().take_while(|arg| *arg != script);
        let mut options = before.filter(|arg| arg.starts_with('-'));
        if options.any(|option| !FILE_OPTIONS.contains(&option.as_str())) {
            return interpreter.to_owned();
        }
    }
    hide(&key).into_owned()
}

/// Options of interpreters whose next word names a file or a module.
const FILE_OPTIONS: &[&str] = &["-m", "-jar", "-u"];

/// Returns the [`key`] of an ACP agent whose command line was stored as one string, joined by spaces.
pub fn key_of_line(line: &str) -> String {
    let mut words = line.split(' ').map(str::to_owned);
    let command = words.next().unwrap_or_default();
    let args: Vec<String> = words.collect();
    key(Protocol::Acp, &command, &args)
}

/// Programs whose first argument without a dash names the agent.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "deno", "java", "node", "perl", "php", "python", "ruby", "sh", "tsx", "zsh",
];

/// Strips scope, registry, version and tag from the name of a package or image.
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
    use acpipe_dialects::claude::CLAUDE;
    use serde_json::json;

    #[test]
    fn shown_session_has_no_values_of_arguments_of_any_agent() {
        let line = "sh exec agent --token x";
        let args = ["-c", "exec agent --token x"];
        let known = json!({"agent": line, "program": line, "id": "1"});
        let other = json!({"agent": "a", "id": "2"});
        let mut session = json!({
            "record": "session", "agent": "sh -c exec agent --token x", "agents": [known, other],
            "agentCommand": {"command": "sh", "args": args}
        });
        hide_command_lines(&mut session);
        assert!(!session.to_string().contains("token x"), "{session}");
        assert_eq!(
            session["agents"][0]["program"],
            "sh exec agent --token [hidden]"
        );
        assert_eq!(session["agents"][1], other, "nothing is added");
        for none in [json!({"record": "session"}), json!({"agents": []})] {
            let mut same = none.clone();
            hide_command_lines(&mut same);
            assert_eq!(same, none);
        }
    }

    #[test]
    fn shown_line_has_no_values_of_arguments() {
        let words = ["-e", "N=x", "--token", "x", "--header", "X-Key: x"];
        let command = AgentCommand {
            command: "agent".to_owned(),
            args: words.map(str::to_owned).to_vec(),
            ..AgentCommand::default()
        };
        let line = command.line();
        let want = "agent -e N=[hidden] --token [hidden] --header X-Key:[hidden]";
        for command in [Some(&command), None] {
            assert_eq!(shown_line(command, Some(&line)).as_deref(), Some(want));
        }
        assert_eq!(shown_line(None, None), None);
    }

    #[test]
    fn public_name_of_an_agent_has_no_text_of_a_program() {
        for (words, want) in [
            (&["sh", "-c", "KEY=hunter exec agent"][..], "sh"),
            (&["/bin/bash", "-lc", "agent"], "bash"),
            (&["node", "--eval", "run('hunter')"], "node"),
            (&["node", "agent.mjs", "--acp"], "node agent.mjs"),
            (&["python3", "-m", "agent"], "python agent"),
            (&["opencode", "acp"], "opencode"),
            (&["cmd", "/c", "set KEY=hunter && agent"], "cmd"),
            (&["env", "-S", "KEY=hunter agent"], "env"),
        ] {
            let args: Vec<String> = words[1..].iter().map(|&word| word.to_owned()).collect();
            assert_eq!(
                public_key(Protocol::Acp, words[0], &args),
                want,
                "{words:?}"
            );
        }
    }

    #[test]
    fn agent_identity_ignores_path_version_and_arguments() {
        let cases = [
            ("opencode acp", "opencode"),
            ("/opt/opencode-1.2/bin/opencode acp --verbose", "opencode"),
            ("npx -y @scope/agent-acp@0.5.1", "agent-acp"),
            ("npx @scope/agent-acp --debug", "agent-acp"),
            ("agent-acp", "agent-acp"),
            ("env A=1 agent-acp", "agent-acp"),
            ("env -i -u B --chdir / A=1 /x/agent-acp", "agent-acp"),
            ("env -S agent-acp --debug", "agent-acp"),
            ("env -iS/x/agent-acp", "agent-acp"),
            ("env -uSHELL agent-acp", "agent-acp"),
            ("env --split-string=/x/agent-acp", "agent-acp"),
            ("env A=1 env -i agent-acp", "agent-acp"),
            ("bash -o errexit /x/agent.sh", "bash /x/agent.sh"),
            ("python3 -W ignore agent.py", "python agent.py"),
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
