//! Tests of imported registry files.

use super::*;

const LINUX: &str = "linux-x86_64";

/// Returns the command line, the variables and the download of the only agent of a file.
fn launch_of(json: &str) -> (String, Vec<(String, String)>, Option<String>) {
    let agents = parse(json).unwrap();
    let [agent] = &agents[..] else {
        panic!("{agents:?}");
    };
    let ImportedLaunch { launch, download } = agent.launch(LINUX).unwrap();
    (launch.line(), launch.env.into_iter().collect(), download)
}

fn with_distribution(distribution: &str) -> String {
    format!(
        r#"{{"id":"a","name":"A","version":"1.0.0","description":"An agent","distribution":{distribution},"preview":true}}"#
    )
}

#[test]
fn distributions_give_command_lines() {
    let url = "https://example.com/a.tar.gz";
    let cases = [
        (
            r#"{"npx":{"package":"@s/a@1.0.0","args":["--acp"],"new":1}}"#,
            "npx -y @s/a@1.0.0 --acp",
            None,
        ),
        (
            r#"{"npx":{"package":"a","cmd":"b","args":["c"]}}"#,
            "npx -y --package a b c",
            None,
        ),
        (r#"{"uvx":{"package":"a@1"}}"#, "uvx a@1", None),
        (
            r#"{"uvx":{"package":"a","cmd":"b"}}"#,
            "uvx --from a b",
            None,
        ),
        (
            r#"{"binary":{"linux-x86_64":{"archive":"https://example.com/a.tar.gz","cmd":"./bin/a","args":["acp"],"sha256":"0"}}}"#,
            "a acp",
            Some(url),
        ),
        (
            r#"{"binary":{"linux-x86_64":{"archive":"https://example.com/a.tar.gz","cmd":"./bin\\a.exe"}},"wasm":{}}"#,
            "a.exe",
            Some(url),
        ),
        (
            r#"{"binary":{"linux-x86_64":{"archive":"https://example.com/a.tar.gz","cmd":"a"}},"npx":{"package":"b"}}"#,
            "npx -y b",
            None,
        ),
    ];
    for (distribution, line, download) in cases {
        let found = launch_of(&with_distribution(distribution));
        let want = (line.to_owned(), vec![], download.map(str::to_owned));
        assert_eq!(found, want, "{distribution}");
    }
    let env = r#"{"npx":{"package":"a","env":{"A":"1"}}}"#;
    let (_, env, _) = launch_of(&with_distribution(env));
    assert_eq!(env, [("A".to_owned(), "1".to_owned())]);
}

#[test]
fn registry_is_a_list_of_agents() {
    let one = with_distribution(r#"{"npx":{"package":"a"}}"#);
    let other = one.replace(r#""id":"a""#, r#""id":"b""#);
    let agents = parse(&format!(
        r#"{{"version":"1.0.0","agents":[{one},{other}],"extensions":[]}}"#
    ));
    let ids: Vec<String> = agents.unwrap().into_iter().map(|agent| agent.id).collect();
    assert_eq!(ids, ["a", "b"]);
    let agent = parse(&one).unwrap().remove(0);
    let texts = (agent.name, agent.description, agent.version);
    assert_eq!(texts, ("A".into(), "An agent".into(), "1.0.0".into()));
    assert_eq!(parse(r#"{"agents":[]}"#), Ok(vec![]));
}

#[test]
fn errors_name_agent_and_member() {
    let one = with_distribution(r#"{"npx":{"package":"a"}}"#);
    let cases = [
        ("{".to_owned(), "not valid JSON: EOF"),
        ("[]".to_owned(), "must be an object"),
        (r#"{"agents":{}}"#.to_owned(), "agents: must be an array"),
        (
            r#"{"agents":[{"name":"A"}]}"#.to_owned(),
            "agent number 1: missing field `id`",
        ),
        (
            r#"{"id":"a","name":"A"}"#.to_owned(),
            "agent \"a\": missing field `distribution`",
        ),
        (
            r#"{"id":"A b","name":"A","distribution":{"npx":{"package":"a"}}}"#.to_owned(),
            "agent \"A b\": id must have at most 64 bytes, only small letters",
        ),
        (
            format!(r#"{{"agents":[{one},{one}]}}"#),
            "agent \"a\": id occurs twice",
        ),
        (
            with_distribution("{}"),
            "agent \"a\": distribution must have npx, uvx or binary",
        ),
        (
            with_distribution(r#"{"npx":{"package":1}}"#),
            "agent \"a\": distribution.npx.package: invalid type: integer",
        ),
        (
            with_distribution(r#"{"npx":{"package":"a","args":"--token s3cret"}}"#),
            "agent \"a\": distribution.npx.args: invalid type: string, expected a sequence",
        ),
        (
            with_distribution(r#"{"npx":{"package":"a","env":"A_TOKEN=s3cret"}}"#),
            "agent \"a\": distribution.npx.env: invalid type: string, expected a map",
        ),
        (
            with_distribution(r#"{"binary":{"linux-x86_64":{"archive":"x"}}}"#),
            "agent \"a\": distribution.binary.linux-x86_64: missing field `cmd`",
        ),
        (
            with_distribution(r#"{"npx":{"package":"--call"}}"#),
            "agent \"a\": distribution.npx.package must not be empty or begin with `-`",
        ),
        (
            with_distribution(r#"{"uvx":{"package":"a","cmd":""}}"#),
            "agent \"a\": distribution.uvx.cmd must not be empty",
        ),
        (
            with_distribution(r#"{"binary":{"linux-x86_64":{"archive":"x","cmd":"bin/"}}}"#),
            "agent \"a\": distribution.binary.linux-x86_64.cmd must name a program",
        ),
    ];
    for (json, want) in cases {
        let error = parse(&json).unwrap_err();
        assert!(error.starts_with(want), "{json}: {error}");
        assert!(!error.contains("s3cret"), "{json}: {error}");
    }
}

#[test]
fn archive_of_another_platform_is_an_error() {
    let json = with_distribution(r#"{"binary":{"darwin-aarch64":{"archive":"x","cmd":"a"}}}"#);
    let agent = parse(&json).unwrap().remove(0);
    let mac = agent.launch(&platform("macos", "aarch64")).unwrap();
    assert_eq!(mac.launch.command, "a");
    let error = agent.launch(&platform("linux", "x86_64")).unwrap_err();
    let want =
        "agent \"a\": distribution.binary has no archive for linux-x86_64, only for darwin-aarch64";
    assert_eq!(error, want);
}
