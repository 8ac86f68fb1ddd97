//! Command line of a session's process.

use super::plan;
use acpipe_model::dialect::{Opening, SessionSetup};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::SessionOptions;

/// Arguments of every session: stream-json in both directions, all deltas, permission requests on stdout.
const FIXED: [&str; 7] = [
    "--output-format",
    "stream-json",
    "--input-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool=stdio",
];

/// Mode without permission requests; the process must be started with permission to enter it.
const BYPASS: &str = "bypassPermissions";

/// Arguments of the user that set the permission mode.
pub const MODE_ARGUMENTS: [&str; 2] = ["--permission-mode", "--dangerously-skip-permissions"];

pub fn version_args(own: &[String]) -> Vec<String> {
    let (mut args, _) = split(own);
    args.push("--version".to_owned());
    args
}

/// Splits the agent's own arguments into those before and those after acpipe's. Arguments that begin with a
/// word name the CLI itself, as in `node cli.js`, so acpipe's options follow them. Options add to acpipe's.
fn split(own: &[String]) -> (Vec<String>, &[String]) {
    match own.first() {
        Some(word) if !word.starts_with('-') => (own.to_vec(), &[]),
        _ => (Vec::new(), own),
    }
}

/// Returns the arguments for a session of this id; `own` are those of the agent.
pub fn args(way: Opening<'_>, id: &str, place: &SessionSetup<'_>, own: &[String]) -> Vec<String> {
    let (mut args, more) = split(own);
    args.extend(FIXED.map(str::to_owned));
    if let Opening::Resume(source) | Opening::Load(source) = way {
        args.push(format!("--resume={source}"));
    }
    if place.fork {
        args.push("--fork-session".to_owned());
    }
    if place.fork || way == Opening::New {
        args.push(format!("--session-id={id}"));
    }
    let o = place.options;
    let mut say = |flag: &str, value: &str| args.push(format!("--{flag}={value}"));
    if let Some(model) = &o.model {
        say("model", model);
    }
    if let Some(mode) = &o.mode {
        say("permission-mode", mode);
    }
    if let Some(effort) = &o.effort {
        say("effort", effort);
    }
    if let Some(turns) = o.max_turns {
        say("max-turns", &turns.to_string());
    }
    let plan = plan::instruction(o.mode.as_deref());
    let system: Vec<&str> = o
        .append_system_prompt
        .as_deref()
        .into_iter()
        .chain(plan)
        .collect();
    if !system.is_empty() {
        say("append-system-prompt", &system.join("\n\n"));
    }
    if !o.allowed_tools.is_empty() {
        say("allowedTools", &o.allowed_tools.join(","));
    }
    if !o.disallowed_tools.is_empty() {
        say("disallowedTools", &o.disallowed_tools.join(","));
    }
    if let Some(sources) = &o.setting_sources {
        say("setting-sources", &sources.join(","));
    }
    for directory in &o.additional_directories {
        say("add-dir", directory);
    }
    if let Some(schema) = &o.output_schema {
        say("json-schema", &schema.to_string());
    }
    if may_bypass(o) {
        args.push("--allow-dangerously-skip-permissions".to_owned());
    }
    args.extend(more.iter().cloned());
    args
}

/// Longest argument that systems accept, in bytes: 128 KiB including the terminating NUL on Linux.
const LONGEST: usize = 128 * 1024 - 1;

/// Checks that a process can be started with these options.
///
/// # Errors
/// An option is too long for a command line.
pub fn check_length(options: &SessionOptions) -> Result<(), Error> {
    let place = SessionSetup {
        acp: &serde_json::Map::new(),
        cwd: "",
        mcp_servers: &[],
        options,
        fork: false,
    };
    let args = args(Opening::New, "", &place, &[]);
    let Some(long) = args.iter().find(|arg| arg.len() > LONGEST) else {
        return Ok(());
    };
    let flag = long.split('=').next().unwrap_or_default();
    let message = format!(
        "options: {flag} is too long for the CLI's command line: at most {LONGEST} bytes, not {}; put the text into a \
             file that the prompt or the CLI's settings name",
        long.len()
    );
    Err(Error::new(ErrorKind::InvalidParams, message).with("field", "options"))
}

/// Returns `true` if the session starts in the mode that bypasses all permissions.
pub fn may_bypass(options: &SessionOptions) -> bool {
    options.mode.as_deref() == Some(BYPASS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::Claude;
    use acpipe_model::dialect::{Outgoing, ProcessSpec, Transport, TransportOrder};
    use acpipe_model::event::CallId;
    use acpipe_model::nested;
    use acpipe_protocol::wire::{Protocol, Variables};
    use serde_json::{Value, json};

    /// Returns the launch of the process that opens a session, as the dialect requests it.
    fn launch(way: Opening<'_>, fork: bool, options: Value) -> ProcessSpec {
        let options: SessionOptions = serde_json::from_value(options).unwrap();
        let agent = ProcessSpec {
            command: "claude".to_owned(),
            args: vec!["--debug".to_owned()],
            cwd: "/agent".to_owned(),
            env: nested::environment(),
            protocol: Protocol::Claude,
            fallback: None,
        };
        let place = SessionSetup {
            acp: &serde_json::Map::new(),
            cwd: "/session",
            mcp_servers: &[],
            options: &options,
            fork,
        };
        let mut out = Outgoing::default();
        Claude::new(agent, Variables::default(), "seed", false).open(
            CallId(1),
            way,
            &place,
            &mut out,
        );
        let launches = out.take().into_iter();
        let mut launches = launches.filter_map(|(_, order)| match order {
            TransportOrder::Open(Transport::Process(launch)) => Some(launch),
            _ => None,
        });
        let launch = launches.next().unwrap();
        assert_eq!(launches.next(), None);
        launch
    }

    /// Removes and returns the id that the dialect generated for the session, which a test cannot predict.
    fn take_new_id(launch: &mut ProcessSpec) -> Option<String> {
        let flag = "--session-id=";
        let at = launch.args.iter().position(|arg| arg.starts_with(flag))?;
        let id = launch.args[at].split_off(flag.len());
        Some(id)
    }

    /// Returns a complete launch; `flags` are between the fixed arguments and those of the client.
    fn expected(flags: &[&str]) -> ProcessSpec {
        let all = [
            "--output-format",
            "stream-json",
            "--input-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool=stdio",
        ];
        let all = all.iter().chain(flags).chain(&["--debug"]);
        ProcessSpec {
            command: "claude".to_owned(),
            args: all.map(|&arg| arg.to_owned()).collect(),
            cwd: "/session".to_owned(),
            env: nested::environment(),
            protocol: Protocol::Claude,
            fallback: None,
        }
    }

    #[test]
    fn options_become_the_launch_of_a_session() {
        let cases: [(Opening<'_>, bool, Value, &[&str]); 7] = [
            (Opening::New, false, json!({}), &["--session-id="]),
            (
                Opening::Resume("old"),
                false,
                json!({"model": "m"}),
                &["--resume=old", "--model=m"],
            ),
            (
                Opening::Load("old"),
                false,
                json!({"maxTurns": 3, "effort": "low", "allowedTools": ["Read", "Bash(git:*)"],
                    "disallowedTools": ["Edit", "Write"]}),
                &[
                    "--resume=old",
                    "--effort=low",
                    "--max-turns=3",
                    "--allowedTools=Read,Bash(git:*)",
                    "--disallowedTools=Edit,Write",
                ],
            ),
            (
                Opening::Load("old"),
                true,
                json!({}),
                &["--resume=old", "--fork-session", "--session-id="],
            ),
            (
                Opening::New,
                false,
                json!({"settingSources": [], "additionalDirectories": ["/a", "/b"]}),
                &[
                    "--session-id=",
                    "--setting-sources=",
                    "--add-dir=/a",
                    "--add-dir=/b",
                ],
            ),
            (
                Opening::New,
                false,
                json!({"settingSources": ["user", "project"], "appendSystemPrompt": "Be brief."}),
                &[
                    "--session-id=",
                    "--append-system-prompt=Be brief.",
                    "--setting-sources=user,project",
                ],
            ),
            (
                Opening::New,
                false,
                json!({"mode": BYPASS, "outputSchema": {"type": "object"}}),
                &[
                    "--session-id=",
                    "--permission-mode=bypassPermissions",
                    "--json-schema={\"type\":\"object\"}",
                    "--allow-dangerously-skip-permissions",
                ],
            ),
        ];
        for (way, fork, options, flags) in cases {
            let mut launch = launch(way, fork, options);
            let id = take_new_id(&mut launch);
            assert_eq!(launch, expected(flags));
            assert_eq!(id.is_some(), fork || way == Opening::New, "{way:?}");
            assert!(id.is_none_or(|id| id.len() == 36 && id != "old"));
        }
    }

    #[test]
    fn arguments_that_name_the_cli_precede_the_options() {
        let options = SessionOptions::default();
        let place = SessionSetup {
            acp: &serde_json::Map::new(),
            cwd: "",
            mcp_servers: &[],
            options: &options,
            fork: false,
        };
        let own = ["cli.js", "--debug"].map(str::to_owned);
        let args = args(Opening::New, "s", &place, &own);
        assert_eq!(args[..3], ["cli.js", "--debug", "--output-format"]);
        assert_eq!(version_args(&own), ["cli.js", "--debug", "--version"]);
        assert_eq!(version_args(&own[1..]), ["--version"]);
    }

    #[test]
    fn plan_instruction_follows_the_clients_system_prompt() {
        let options = json!({"mode": "plan", "appendSystemPrompt": "Be brief."});
        let args = launch(Opening::New, false, options).args;
        let plan = plan::instruction(Some("plan")).unwrap();
        let want = format!("--append-system-prompt=Be brief.\n\n{plan}");
        assert!(args.contains(&want), "{args:?}");
        let args = launch(Opening::New, false, json!({"mode": "plan"})).args;
        assert!(args.contains(&format!("--append-system-prompt={plan}")));
    }

    #[test]
    fn option_too_long_for_a_command_line_is_refused() {
        let flag = "--append-system-prompt=".len();
        let said = |length: usize| {
            let options = SessionOptions {
                append_system_prompt: Some("x".repeat(length)),
                ..SessionOptions::default()
            };
            check_length(&options).map_err(|error| error.message)
        };
        assert_eq!(said(LONGEST - flag), Ok(()));
        let error = said(LONGEST - flag + 1).unwrap_err();
        assert!(
            error.contains("--append-system-prompt is too long"),
            "{error}"
        );
    }
}
