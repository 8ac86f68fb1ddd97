//! Tests of inputs that contain more than a rule that allows covers, and of what rules that deny find in
//! them.

use super::generated::Dice;
use super::*;
use serde_json::Value;

fn subject_of(name: Option<&str>, kind: &str, input: &Value) -> Subject {
    let input = to_raw_value(input).unwrap();
    let tool = ToolProperties {
        name,
        kind: Some(kind),
        input: Some(&input),
        ..ToolProperties::default()
    };
    Subject::of_tool(&tool, "/w")
}

/// Returns rules that allow by command and by path.
fn narrow() -> Policy {
    let mut policy = Policy::from(Mode::Deny);
    let mut commands = Rule::new("r".into(), Effect::Allow);
    for pattern in ["git log *", "<read-only>"] {
        commands.command(pattern).unwrap();
    }
    policy.add(commands);
    let mut paths = Rule::new("r".into(), Effect::Allow);
    paths.path("**", None).unwrap();
    policy.add(paths);
    for entry in ["Bash(git log:*)", "Edit(**)", "Read(**)"] {
        policy.add_listed(entry, "list", Effect::Allow).unwrap();
    }
    policy
}

const BASES: &[(Option<&str>, &str, &str)] = &[
    (
        Some("Bash"),
        "execute",
        r#"{"command":"git log -1","description":"d"}"#,
    ),
    (None, "execute", r#"{"command":["git","log"],"cwd":"/w"}"#),
    (None, "read", r#"{"command":"cat a"}"#),
    (
        Some("Write"),
        "edit",
        r#"{"file_path":"/w/a","content":"x"}"#,
    ),
    (
        None,
        "edit",
        r#"{"path":"a","old_string":"a","new_string":"b"}"#,
    ),
    (Some("Read"), "read", r#"{"file_path":"/w/a","limit":2}"#),
];

/// Inserts a string under a known or unknown key at some depth; returns the key.
fn plant(dice: &mut Dice, input: &mut Value, text: &str) -> String {
    let keys = [
        "script",
        "then",
        "arguments",
        "args",
        "env",
        "shell",
        "hook",
        "tool_input",
        "params",
        "steps",
        "destination_path",
        "target",
        "to",
        "output",
        "uri",
        "base_path",
        "cwd",
        "files",
        "cmd",
        "a",
        "before",
        "patch",
        "input",
        "changes",
    ];
    let mut value = match dice.below(4) {
        0 => json!([text]),
        1 => json!(text.split(' ').collect::<Vec<_>>()),
        2 => json!(json!({ "command": text, "path": text }).to_string()),
        _ => json!(text),
    };
    for _ in 0..dice.below(3) {
        let key = dice.pick(&keys);
        value = json!({ key: value });
    }
    let key = dice.pick(&keys).to_owned();
    input[&key] = value;
    key
}

#[test]
fn planted_command_is_never_allowed_and_always_denied() {
    let allowing = narrow();
    let mut denying = Policy::default();
    let mut rule = Rule::new("r".into(), Effect::Deny);
    for pattern in ["rm:*", "bash:*"] {
        rule.command(pattern).unwrap();
    }
    denying.add(rule);
    let lines = ["rm -rf y", "cd x && rm y", "bash -c 'rm y'", "sudo rm y"];
    let (mut tried, mut missed) = (0, Vec::new());
    for (name, kind, base) in BASES {
        let plain: Value = serde_json::from_str(base).unwrap();
        assert_eq!(
            allowing.judge(&subject_of(*name, kind, &plain)).effect,
            Effect::Allow,
            "{base}"
        );
        for seed in 0..3_000 {
            let dice = &mut Dice(seed);
            let mut input = plain.clone();
            let text = dice.pick(&lines);
            let key = plant(dice, &mut input, text);
            let subject = subject_of(*name, kind, &input);
            // A path with that name is a file that path rules may allow, and a directory with that name may
            // be a working directory.
            let is_path = subject.paths.iter().any(|path| path.contains("rm"));
            let verdict = allowing.judge(&subject).effect;
            let is_directory = input.to_string().contains("\"cwd\"");
            if verdict == Effect::Allow && !(is_path && (*kind != "execute" || is_directory)) {
                missed.push(format!("allowed: {kind} {key} {input}"));
            }
            if !is_path && denying.judge(&subject).effect != Effect::Deny {
                missed.push(format!("not denied: {kind} {key} {input}"));
            }
            tried += 1;
        }
    }
    assert_none_missed(tried, &missed);
}

/// Fails with the first of the inputs that were judged wrongly.
fn assert_none_missed(tried: u32, missed: &[String]) {
    let first = &missed[..missed.len().min(12)];
    assert!(missed.is_empty(), "{} of {tried}: {first:#?}", missed.len());
}

#[test]
fn planted_path_is_never_allowed_and_always_denied() {
    let allowing = narrow();
    let mut denying = Policy::default();
    let mut rule = Rule::new("r".into(), Effect::Deny);
    for pattern in ["/etc/**", "/**/.env"] {
        rule.path(pattern, None).unwrap();
    }
    denying.add(rule);
    let paths = [
        "/etc/x",
        "file:///etc/x",
        "file://localhost/etc/%78",
        "FILE:/etc/x",
        " /etc/x",
        "/w/../etc/x",
        "/x/.env",
    ];
    let (mut tried, mut missed) = (0, Vec::new());
    for (name, kind, base) in BASES {
        for seed in 0..3_000 {
            let dice = &mut Dice(seed);
            let mut input: Value = serde_json::from_str(base).unwrap();
            let text = dice.pick(&paths);
            let key = plant(dice, &mut input, text);
            let subject = subject_of(*name, kind, &input);
            // A command is judged by its words, whatever its working directory.
            let is_only_directory =
                base.contains("command") && input.to_string().contains("\"cwd\"");
            if allowing.judge(&subject).effect == Effect::Allow && !is_only_directory {
                missed.push(format!("allowed: {kind} {key} {input}"));
            }
            let is_command = subject
                .command
                .as_deref()
                .is_some_and(|c| c.contains("etc") || c.contains(".env"));
            if !is_command && denying.judge(&subject).effect != Effect::Deny {
                missed.push(format!("not denied: {kind} {key} {input}"));
            }
            tried += 1;
        }
    }
    assert_none_missed(tried, &missed);
}

#[test]
fn contradictory_call_is_not_allowed_by_its_claimed_kind() {
    let run = json!({"command": "rm x"});
    let diff = json!({"path": "a", "diff": "--- a\n+++ b\n"});
    for (name, kind, input) in [
        (Some("Read"), "execute", &run),
        (Some("Read"), "read", &run),
        (Some("Bash"), "read", &run),
        (None, "read", &run),
        (None, "search", &run),
        (None, "edit", &run),
        (
            Some("Write"),
            "read",
            &json!({"file_path": "a", "content": "x"}),
        ),
        (None, "read", &diff),
        (None, "think", &json!({"changes": {"a": {}}})),
        (None, "read", &json!({"file_path": "a", "content": "x"})),
        (
            None,
            "search",
            &json!({"path": "a", "edits": [{"old": "a"}]}),
        ),
        (None, "think", &json!({"path": "a", "insert_text": "x"})),
    ] {
        let subject = subject_of(name, kind, input);
        for policy in [
            Policy::from(Mode::Reads),
            listed_policy(&["Read", "Read(**)", "read", "search", "think", "Grep"]),
        ] {
            let verdict = policy.judge(&subject);
            assert_ne!(verdict.effect, Effect::Allow, "{name:?} {kind} {input}");
        }
        for preset in ["holodeck", "holodeck-chat"] {
            let mut policy = Policy::default();
            policy.set_preset(Preset::named(preset).unwrap());
            let is_edit =
                !subject.other_kinds.contains(&"execute".to_owned()) && name != Some("Read");
            let is_editing = preset == "holodeck-chat" && is_edit;
            let verdict = policy.judge(&subject);
            assert!(
                verdict.effect != Effect::Allow || is_editing,
                "{preset} {name:?} {kind} {input}"
            );
        }
        // A rule that denies any of the kinds denies the call.
        let refused: &[&str] = if input == &run {
            &["Bash", "execute"]
        } else {
            &["edit"]
        };
        for entry in refused
            .iter()
            .filter(|entry| name.is_none() || **entry != "Bash")
        {
            let mut policy = Policy::default();
            policy.add_listed(entry, "list", Effect::Deny).unwrap();
            assert_eq!(
                policy.judge(&subject).effect,
                Effect::Deny,
                "{entry} {name:?} {kind}"
            );
        }
    }
}

fn listed_policy(entries: &[&str]) -> Policy {
    let mut policy = Policy::from(Mode::Deny);
    for entry in entries {
        policy.add_listed(entry, "list", Effect::Allow).unwrap();
    }
    policy
}

#[test]
fn option_that_a_rule_forbids_keeps_it_from_allowing() {
    let mut policy = Policy::from(Mode::Deny);
    let mut rule = Rule::new("r".into(), Effect::Allow);
    rule.command("cargo test *").unwrap();
    for option in ["--config", "-Z", "--target-dir"] {
        rule.without(option).unwrap();
    }
    policy.add(rule);
    for (line, want) in [
        ("cargo test -q foo", true),
        ("cargo test --config x", false),
        ("cargo test --config=x", false),
        ("cargo test -q -Zunstable", false),
        ("cargo test --target-dir /etc", false),
        ("cargo test; cargo test --config x", false),
        ("cargo test $X", false),
        ("cargo test *", false),
        ("cargo test 'a*'", true),
    ] {
        let subject = subject_of(None, "execute", &json!({ "command": line }));
        let is_allowed = policy.judge(&subject).effect == Effect::Allow;
        assert_eq!(is_allowed, want, "{line}");
    }
    let mut rule = Rule::new("r".into(), Effect::Deny);
    rule.command("git *").unwrap();
    assert!(rule.without("--output").is_err());
    assert!(rule.command("<read-only>").is_err());
    assert!(Rule::new("r".into(), Effect::Allow).without("-o").is_err());
}

/// Returns `true` if a rule that denies this path matches.
fn is_denied(path: &str, kind: &str, input: &Value) -> bool {
    let mut policy = Policy::default();
    let mut rule = Rule::new("r".into(), Effect::Deny);
    rule.path(path, Some("/home/me")).unwrap();
    policy.add(rule);
    policy.judge(&subject_of(None, kind, input)).effect == Effect::Deny
}

#[test]
fn path_below_a_directory_of_the_input_is_denied() {
    for (path, input) in [
        (
            "config/secrets/**",
            json!({"path": "config", "pattern": "secrets/*"}),
        ),
        (
            "config/secrets/**",
            json!({"path": "config", "glob": "secrets/*"}),
        ),
        (
            "config/secrets/**",
            json!({"dir": "config", "file": "secrets/k"}),
        ),
        (
            "config/secrets/**",
            json!({"root": "config", "files": ["secrets/k"]}),
        ),
        (
            "config/secrets/k",
            json!({"cwd": "config", "dir": "secrets", "file": "k"}),
        ),
        (
            "config/secrets/k",
            json!({"root": "config", "dir": "secrets", "file": "k"}),
        ),
        ("/etc/**", json!({"dir": "/", "file": "etc/x"})),
        (
            "/etc/**",
            json!({"base_path": "/", "relative_path": "etc/x"}),
        ),
        (
            "/etc/**",
            json!({"base_uri": "file:///", "relative_path": "etc/x"}),
        ),
        ("~/.ssh/**", json!({"dir": "~", "file": ".ssh/x"})),
    ] {
        for kind in ["read", "search", "edit", "other"] {
            assert!(is_denied(path, kind, &input), "{path} {kind} {input}");
        }
    }
    // Many paths are not tried as parents of each other.
    let paths: Vec<String> = (0..1_000).map(|n| format!("src/{n:04}.rs")).collect();
    for input in [
        json!({ "paths": paths }),
        json!({"path": "src", "files": paths}),
    ] {
        assert!(!is_denied("secrets/**", "read", &input));
    }
}

#[test]
fn path_that_a_shell_makes_is_denied() {
    for (path, line) in [
        (".env", "echo x > ~+/.env"),
        (".env", "echo x > $PWD/.env"),
        (".env", "echo x > \"${PWD}\"/.env"),
        (".env", "echo x > $(pwd)/.env"),
        (".env", "echo x > `pwd`/.env"),
        (".env", "echo x >;.env"),
        (".env", "echo x >; .env"),
        (".env", "echo x >!.env"),
        (".env", "echo x > {a,.env}"),
        ("/root/.ssh/**", "echo k > ~root/.ssh/authorized_keys"),
        ("/**/.env", "bash -c 'echo x > $x/.env'"),
    ] {
        let input = json!({ "command": line });
        assert!(is_denied(path, "execute", &input), "{path} {line}");
    }
    let input = json!({"file_path": "~me/.ssh/x"});
    assert!(is_denied("~/.ssh/**", "edit", &input));
    assert!(!is_denied(
        ".env",
        "execute",
        &json!({"command": "echo x > $PWD/a"})
    ));
}
