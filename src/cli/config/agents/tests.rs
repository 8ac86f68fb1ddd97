//! Tests of agents: errors, `extends`, policies, and what a project's file may do.

mod errors;
mod policies;
mod projects;

use super::*;
use crate::cli::config::source::FileOwner;
use crate::cli::config::{Config, combine};
use acpipe_model::error::Error;

const HOME: &str = "/home/me";

/// Reads a user's file and a project's file; `claude` is the built-in agent.
fn read(user: &str, project: Option<(&str, bool)>) -> Result<Config, Error> {
    let mut sources = vec![ConfigSource::parse("/u.toml", user, FileOwner::User)?];
    if let Some((text, is_trusted)) = project {
        let origin = FileOwner::Project { is_trusted };
        sources.push(ConfigSource::parse("/p/.acpipe.toml", text, origin)?);
    }
    combine(&sources, Some(HOME.to_owned()), (None, None), &|name| {
        name == "claude"
    })
}

/// Returns an agent of a user's file.
#[track_caller]
fn agent(text: &str, name: &str) -> ConfiguredAgent {
    read(text, None).unwrap().agent(name).unwrap().clone()
}

#[test]
fn agent_has_all_keys_of_its_table() {
    let text = r#"
        [agents.reviewer]
        command = "kimi"
        args = ["acp"]
        env = { KEY = "s3cret", OLD = false }
        cwd = "~/work"
        protocol = "acp"
        description = "Reviews changes"
        tags = ["review"]
        prompt = "Be strict."
        model = "big"
        mode = "plan"
        tools = "Read"
        disallowed_tools = ["Bash(rm:*)"]
        permissions = "reads"
        timeout = "10m"
        child_per_session = true

        [agents.reviewer.mcp_servers.files]
        command = "files"
        env = { TOKEN = "s3cret" }

        [agents.reviewer.options]
        effort = "high"
        max_turns = 3
        add_dirs = ["/data", "~/notes"]
        setting_sources = []
        output_schema = { type = "object" }
    "#;
    let agent = agent(text, "reviewer");
    assert_eq!(agent.place, "/u.toml:2");
    let base = Base::Command {
        command: "kimi".into(),
        args: vec!["acp".into()],
    };
    assert_eq!((agent.base, agent.protocol), (base, Some(Protocol::Acp)));
    assert_eq!(agent.cwd.as_deref(), Some("/home/me/work"));
    let env = [("KEY", Some("s3cret")), ("OLD", None)];
    let env = env.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
    assert_eq!(agent.env, env.into_iter().collect());
    assert_eq!(agent.description.as_deref(), Some("Reviews changes"));
    assert_eq!(agent.tags, ["review"]);
    assert_eq!(agent.prompt.as_deref(), Some("Be strict."));
    let options = SessionOptions {
        model: Some("big".into()),
        mode: Some("plan".into()),
        effort: Some("high".into()),
        max_turns: Some(3),
        append_system_prompt: None,
        allowed_tools: vec!["Read".into()],
        disallowed_tools: vec!["Bash(rm:*)".into()],
        additional_directories: vec!["/data".into(), "/home/me/notes".into()],
        setting_sources: Some(Vec::new()),
        output_schema: Some(serde_json::json!({ "type": "object" })),
    };
    assert_eq!(agent.options, options);
    assert_eq!(format!("{:?}", agent.mcp_servers), "[\"files\" over stdio]");
    let limit = Some(Duration::from_secs(600));
    assert_eq!(agent.limits, [(Timeout::Turn, limit)]);
    assert_eq!(agent.child_per_session, Some(true));
    assert_eq!((agent.from_project, agent.locked), (false, None));
}

#[test]
fn variant_overrides_its_parent_key_by_key() {
    let text = r#"
        [agents.child]
        extends = "parent"
        args = ["--fast"]
        prompt = "Be brief."
        tags = []
        model = "small"
        tools = ["Grep"]
        env = { B = "2", C = false }
        timeout = { prompt = "5s", turn = "none" }
        mcp_servers.b = { command = "new" }
        mcp_servers.c = { command = "c" }
        options = { max_turns = 7 }

        [agents.parent]
        command = "kimi"
        args = ["acp"]
        prompt = "Be strict.\n"
        tags = ["a"]
        model = "big"
        mode = "plan"
        tools = ["Read"]
        disallowed_tools = ["Bash"]
        cwd = "/w"
        env = { A = "1", B = "1", C = "1" }
        timeout = { open = "1s", prompt = "1s" }
        mcp_servers.a = { command = "a" }
        mcp_servers.b = { command = "old" }
        options = { effort = "low", max_turns = 1 }
        child_per_session = true
    "#;
    let config = read(text, None).unwrap();
    let names: Vec<&str> = config
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    assert_eq!(names, ["child", "parent"], "order of the file");
    let agent = config.agent("child").unwrap();
    let base = Base::Command {
        command: "kimi".into(),
        args: vec!["--fast".into()],
    };
    assert_eq!(agent.base, base);
    assert_eq!(agent.prompt.as_deref(), Some("Be strict.\n\nBe brief."));
    assert!(agent.tags.is_empty());
    let options = SessionOptions {
        model: Some("small".into()),
        mode: Some("plan".into()),
        effort: Some("low".into()),
        max_turns: Some(7),
        allowed_tools: vec!["Grep".into()],
        disallowed_tools: vec!["Bash".into()],
        ..SessionOptions::default()
    };
    assert_eq!(agent.options, options);
    assert_eq!(agent.cwd.as_deref(), Some("/w"));
    let env = [("A", Some("1")), ("B", Some("2")), ("C", None)];
    let env = env.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
    assert_eq!(agent.env, env.into_iter().collect());
    let seconds = |n| Some(Duration::from_secs(n));
    let limits = [
        (Timeout::Open, seconds(1)),
        (Timeout::Prompt, seconds(5)),
        (Timeout::Turn, None),
    ];
    assert_eq!(agent.limits, limits);
    let servers = serde_json::to_value(&agent.mcp_servers).unwrap();
    let commands = servers
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["command"]);
    assert_eq!(commands.collect::<Vec<_>>(), ["a", "new", "c"]);
    assert_eq!(agent.child_per_session, Some(true));
}

#[test]
fn agent_needs_no_more_than_a_base() {
    let claude = || Base::Builtin("claude".to_owned());
    for (text, name) in [
        ("[agents.a]\nuse = \"claude\"\nprompt = \"p\"", "a"),
        ("[agents.a]\nextends = \"claude\"\nprompt = \"p\"", "a"),
        // A variant may replace the built-in agent of its name.
        (
            "[agents.claude]\nextends = \"claude\"\nprompt = \"p\"",
            "claude",
        ),
        (
            "[agents.a]\nextends = \"claude\"\n[agents.claude]\nuse = \"claude\"\nprompt = \"p\"",
            "a",
        ),
    ] {
        let agent = agent(text, name);
        assert_eq!(agent.base, claude(), "{text}");
        assert_eq!(agent.prompt.as_deref(), Some("p"), "{text}");
    }
    let text = "[agents.a]\nuse = \"claude\"\n[agents.b]\nextends = \"a\"\ncommand = \"c\"";
    let base = Base::Command {
        command: "c".into(),
        args: Vec::new(),
    };
    assert_eq!(agent(text, "b").base, base);
}
