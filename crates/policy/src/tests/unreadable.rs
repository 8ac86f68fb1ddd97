//! Tests of subjects of which little or nothing is known: unreadable data must never bypass a rule.

use super::generated::{self, Dice, PIECES, policy, rule};
use super::*;

/// Returns the verdict on a call, given its permission request and its earlier description.
fn judged(asked: &serde_json::Value, known: &serde_json::Value, policy: &Policy) -> Verdict {
    policy.judge(&read(asked, known))
}

fn read(asked: &serde_json::Value, known: &serde_json::Value) -> Subject {
    let raw = |call: &serde_json::Value, field: &str| {
        call.get(field).map(|value| to_raw_value(value).unwrap())
    };
    let fields = ["rawInput", "content", "locations"];
    let raws = [asked, known].map(|call| fields.map(|field| raw(call, field)));
    let tools = [(asked, &raws[0]), (known, &raws[1])].map(|(call, raws)| ToolProperties {
        name: call["name"].as_str(),
        title: call["title"].as_str(),
        kind: call["kind"].as_str(),
        input: raws[0].as_deref(),
        content: raws[1].as_deref(),
        locations: raws[2].as_deref(),
    });
    Subject::of_tools(&[&tools[0], &tools[1]], "/w")
}

fn text(text: &str) -> serde_json::Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

fn listed(mode: Mode, entries: &[(&str, Effect)]) -> Policy {
    let mut policy = Policy::from(mode);
    for (entry, effect) in entries {
        policy.add_listed(entry, "list", *effect).unwrap();
    }
    policy
}

/// Returns a permission request in Kimi's form, with neither kind nor input.
fn kimi(command: &str) -> (serde_json::Value, serde_json::Value) {
    let title = format!("Shell: {command}");
    let asked = format!("Requesting approval to perform: Run command `{command}`");
    let arguments = json!({ "command": command }).to_string();
    (
        json!({"title": title, "content": text(&asked)}),
        json!({"title": title, "content": text(&arguments)}),
    )
}

#[test]
fn a_command_in_title_and_text_is_denied() {
    let (asked, known) = kimi("uname -a");
    let none = json!({});
    for entry in ["Bash", "Bash(uname:*)", "execute", "Shell"] {
        let policy = listed(Mode::Approve, &[(entry, Effect::Deny)]);
        for known in [&known, &none] {
            let verdict = judged(&asked, known, &policy);
            assert_eq!(
                (verdict.effect, verdict.is_certain),
                (Effect::Deny, true),
                "{entry}"
            );
        }
    }
    let policy = listed(Mode::Approve, &[("Bash(rm:*)", Effect::Deny)]);
    assert_eq!(judged(&asked, &known, &policy).effect, Effect::Allow);
    let mut policy = Policy::default();
    let mut rule = Rule::new("r".into(), Effect::Ask);
    rule.kind("execute").unwrap();
    policy.add(rule);
    assert_eq!(judged(&asked, &none, &policy).effect, Effect::Ask);
}

#[test]
fn prose_allows_only_facts_from_two_sources() {
    let policy = listed(Mode::Deny, &[("Bash(echo *)", Effect::Allow)]);
    let (asked, known) = kimi("echo hi");
    let none = json!({});
    assert_eq!(judged(&asked, &known, &policy).effect, Effect::Allow);
    assert_eq!(judged(&asked, &none, &policy).effect, Effect::Allow);
    // The title alone, a text that differs from it, arguments that differ from it.
    let other = kimi("rm x");
    let alone = json!({"title": "Shell: echo hi"});
    let differs = json!({"title": "Shell: echo hi", "content": text("Run command `rm x`")});
    for (asked, known) in [(&alone, &none), (&differs, &none), (&asked, &other.1)] {
        assert_eq!(
            judged(asked, known, &policy).effect,
            Effect::Deny,
            "{asked} {known}"
        );
    }
    // A kind in a title is not enough to match a whole kind of tools.
    let read = json!({"title": "ReadFile: src/a"});
    for policy in [
        listed(Mode::Deny, &[("Read", Effect::Allow)]),
        listed(Mode::Reads, &[]),
    ] {
        assert_ne!(judged(&read, &none, &policy).effect, Effect::Allow);
    }
    let mut policy = Policy::default();
    policy.set_preset(Preset::named("maverick").unwrap());
    assert_eq!(judged(&read, &none, &policy).effect, Effect::Deny);
    let everything = listed(Mode::Deny, &[("*", Effect::Allow)]);
    assert_eq!(judged(&read, &none, &everything).effect, Effect::Allow);
}

#[test]
fn a_shortened_title_is_read_where_the_arguments_are() {
    let title = "Shell: echo aaaaaaa...bbbbbbb";
    let whole = json!({"command": "echo aaaaaaa; rm x; echo bbbbbbb"}).to_string();
    let policy = listed(Mode::Approve, &[("Bash(rm:*)", Effect::Deny)]);
    let known = json!({"title": title, "content": text(&whole)});
    let verdict = judged(&json!({"title": title}), &known, &policy);
    assert_eq!((verdict.effect, verdict.is_certain), (Effect::Deny, true));
    // The truncated part is unknown.
    let verdict = judged(&json!({"title": title}), &json!({}), &policy);
    assert_eq!((verdict.effect, verdict.is_certain), (Effect::Deny, false));
    assert!(
        verdict
            .by
            .ends_with("because part of the call cannot be read"),
        "{verdict:?}"
    );
}

#[test]
fn request_with_only_a_call_id_uses_the_call() {
    let known =
        json!({"kind": "execute", "title": "bash: echo", "rawInput": {"command": "echo hi"}});
    let policy = listed(Mode::Approve, &[("Bash(echo:*)", Effect::Deny)]);
    assert_eq!(judged(&json!({}), &known, &policy).effect, Effect::Deny);
    // Other text in the request does not hide it.
    let asked = json!({"kind": "other", "rawInput": {"command": "ls"}, "content": text("nothing")});
    assert_eq!(judged(&asked, &known, &policy).effect, Effect::Deny);
}

#[test]
fn call_without_its_required_field_is_unreadable() {
    let mut by_path = Policy::default();
    let mut rule = Rule::new("r".into(), Effect::Deny);
    rule.path("secrets/**", None).unwrap();
    by_path.add(rule);
    let by_command = listed(Mode::Approve, &[("Bash(rm:*)", Effect::Deny)]);
    for (call, policy, effect) in [
        (
            json!({"kind": "execute", "title": "Shell"}),
            &by_command,
            Effect::Deny,
        ),
        (json!({"kind": "execute"}), &by_command, Effect::Deny),
        (
            json!({"kind": "execute", "title": "ls", "rawInput": {"script": "rm x"}}),
            &by_command,
            Effect::Deny,
        ),
        (
            json!({"kind": "execute", "title": "ls"}),
            &by_command,
            Effect::Allow,
        ),
        (
            json!({"kind": "execute", "name": "BashOutput", "rawInput": {"id": 1}}),
            &by_command,
            Effect::Allow,
        ),
        (
            json!({"kind": "edit", "title": "Edit"}),
            &by_path,
            Effect::Deny,
        ),
        (json!({"kind": "read"}), &by_path, Effect::Deny),
        (
            json!({"kind": "search", "rawInput": {"pattern": "x"}}),
            &by_path,
            Effect::Allow,
        ),
        (
            json!({"kind": "other", "name": "mcp__s__t"}),
            &by_path,
            Effect::Allow,
        ),
        (
            json!({"kind": "other", "rawInput": {"a": 1}}),
            &by_path,
            Effect::Allow,
        ),
    ] {
        assert_eq!(judged(&call, &json!({}), policy).effect, effect, "{call}");
    }
}

#[test]
fn call_without_facts_matches_deny_rules() {
    let phantom = json!({"kind": "other", "title": "Confirm Agent Actions"});
    let none = json!({});
    for entry in ["Bash(rm:*)", "WebFetch", "mcp__s", "Edit(src/**)"] {
        let policy = listed(
            Mode::Approve,
            &[(entry, Effect::Deny), ("*", Effect::Allow)],
        );
        let verdict = judged(&phantom, &none, &policy);
        assert_eq!(
            (verdict.effect, verdict.is_certain),
            (Effect::Deny, false),
            "{entry}"
        );
        assert!(
            verdict.by.ends_with("because the call cannot be read"),
            "{verdict:?}"
        );
    }
    assert_eq!(
        judged(&phantom, &none, &listed(Mode::Approve, &[])).effect,
        Effect::Allow
    );
    let allowing = listed(Mode::Deny, &[("*", Effect::Allow)]);
    assert_eq!(judged(&phantom, &none, &allowing).effect, Effect::Allow);
    for (preset, effect) in [
        ("maverick-deny-dangerous", Effect::Deny),
        ("discobot", Effect::Ask),
    ] {
        let mut policy = Policy::default();
        policy.set_preset(Preset::named(preset).unwrap());
        assert_eq!(judged(&phantom, &none, &policy).effect, effect, "{preset}");
    }
}

#[test]
fn request_that_covers_several_calls_is_judged_by_each_call() {
    let none = json!({});
    let call = |line: &str| {
        read(
            &json!({"kind": "execute", "rawInput": {"command": line}}),
            &none,
        )
    };
    let phantom = || read(&json!({"kind": "other", "title": "Confirm"}), &none);
    let of = |lines: &[&str]| {
        let parts = lines.iter().map(|line| ((*line).to_owned(), call(line)));
        phantom().standing_for(parts.collect())
    };
    let policy = listed(
        Mode::Ask,
        &[
            ("Bash(echo *)", Effect::Allow),
            ("Bash(rm:*)", Effect::Deny),
        ],
    );
    let effect = |lines: &[&str]| policy.judge(&of(lines)).effect;
    assert_eq!(effect(&["echo a", "echo b"]), Effect::Allow);
    assert_eq!(effect(&["echo a", "ls"]), Effect::Ask);
    assert_eq!(effect(&["echo a", "rm x", "ls"]), Effect::Deny);
    let both = of(&["echo a", "rm x"]);
    assert_eq!(both.command.as_deref(), Some("echo a\nrm x"));
    assert_eq!((both.kind.as_str(), both.calls.len()), ("execute", 2));
}

#[test]
fn text_that_contradicts_the_title_is_denied_and_keeps_the_title_from_allowing() {
    let run = || text("It wants: Run command `rm x`");
    let none = json!({});
    let denying = listed(Mode::Approve, &[("Bash(rm:*)", Effect::Deny)]);
    let by_kind = listed(Mode::Approve, &[("execute", Effect::Deny)]);
    for title in [
        "ls",
        "Glob",
        "todo",
        "read",
        "WriteFile: a",
        "ReadFile: a",
        "Grep: x",
        "Shell: git log",
        "git log",
    ] {
        let asked = json!({"title": title, "content": run()});
        for policy in [&denying, &by_kind] {
            let verdict = judged(&asked, &none, policy);
            assert_eq!(verdict.effect, Effect::Deny, "{title}");
        }
    }
    let mut allowing = listed(Mode::Deny, &[("Bash(git log *)", Effect::Allow)]);
    let mut rule = Rule::new("r".into(), Effect::Allow);
    rule.command("git log *").unwrap();
    allowing.add(rule);
    for title in ["git log", "Shell: git log"] {
        for call in [
            json!({"kind": "execute", "title": title, "content": run()}),
            json!({"kind": "execute", "name": "Bash", "title": title, "content": run()}),
        ] {
            assert_eq!(
                judged(&call, &none, &denying).effect,
                Effect::Deny,
                "{call}"
            );
            assert_eq!(
                judged(&call, &none, &allowing).effect,
                Effect::Deny,
                "{call}"
            );
        }
        let agrees = text("Run command `git log`");
        let call = json!({"kind": "execute", "title": title, "content": agrees});
        assert_eq!(
            judged(&call, &none, &allowing).effect,
            Effect::Allow,
            "{call}"
        );
    }
    // With an input, too.
    let call = json!({"title": "ls", "rawInput": {"command": "ls"}, "content": run()});
    assert_eq!(judged(&call, &none, &denying).effect, Effect::Deny);
    // A plan names actions that it does not run.
    let plan = json!({"kind": "switch_mode", "title": "Plan", "content": run()});
    assert_eq!(judged(&plan, &none, &denying).effect, Effect::Allow);
}

#[test]
fn title_or_text_that_is_too_long_is_unread() {
    let long = "a".repeat((1 << 20) + 1);
    let policy = listed(Mode::Approve, &[("Bash(rm:*)", Effect::Deny)]);
    for call in [
        json!({"kind": "execute", "title": long}),
        json!({"title": "Shell: ls", "content": text(&long)}),
    ] {
        assert_eq!(judged(&call, &json!({}), &policy).effect, Effect::Deny);
    }
}

/// Returns a call of which only prose is known.
fn opaque(dice: &mut Dice) -> Subject {
    let words = [
        "Confirm ", "Agent ", "actions ", "Shell ", "these ", "please ",
    ];
    let (title, said) = (dice.text(&words, 4), dice.text(&words, 4));
    let call = json!({"title": title, "content": text(&said)});
    let kinds = [json!({}), json!({"kind": "other"}), json!({"rawInput": {}})];
    let subject = read(&call, &kinds[dice.below(3)]);
    assert!(subject.opaque, "{call}");
    subject
}

#[test]
fn nothing_unreadable_is_allowed_where_a_rule_denies() {
    for seed in 0..3_000 {
        let dice = &mut Dice(seed);
        let (policy, subject) = (policy(dice), opaque(dice));
        let verdict = policy.judge(&subject);
        for rule in &policy.rules {
            assert!(
                rule.effect == Effect::Allow || verdict.effect >= rule.effect,
                "{seed}"
            );
        }
        let mut more = policy.clone();
        more.add(rule(dice, Effect::Deny));
        assert_eq!(more.judge(&subject).effect, Effect::Deny, "{seed}");
        // A subject that stands for calls has the strongest of their verdicts.
        let parts: Vec<_> = (0..dice.below(4))
            .map(|n| (n.to_string(), generated::subject(dice)))
            .collect();
        let effects = parts
            .iter()
            .map(|(_, part)| policy.judge(part).effect)
            .max();
        let whole = opaque(dice).standing_for(parts);
        if let Some(effect) = effects {
            assert_eq!(policy.judge(&whole).effect, effect, "{seed}");
        }
    }
}

#[test]
fn reading_prose_never_allows_more_than_not_reading_it() {
    let forms = [
        "Shell: ",
        "Bash(",
        "ReadFile: ",
        "deploy: ",
        "`",
        ")",
        "...",
        "Run ",
    ];
    for seed in 0..3_000 {
        let dice = &mut Dice(seed);
        let policy = policy(dice);
        let title =
            dice.pick(&forms).to_owned() + &dice.text(PIECES, 4) + dice.pick(&["", ")", "`"]);
        let call = json!({"title": title});
        let subject = read(&call, &json!({}));
        let plain = Subject {
            kind: "other".into(),
            title: Some(title),
            cwd: "/w".into(),
            ..Subject::default()
        };
        // A rule that asks may replace a default that denies.
        if policy.judge(&subject).effect == Effect::Allow {
            assert_eq!(policy.judge(&plain).effect, Effect::Allow, "{seed} {call}");
        }
    }
}

#[test]
fn unreadable_call_matches_deny_rules_for_commands_and_paths() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for before in ["1e999", deep.as_str()] {
        let input = format!(r#"{{"x":{before},"command":"rm x","path":".env"}}"#);
        let tool = ToolProperties {
            kind: Some("execute"),
            input: Some(serde_json::from_str(&input).unwrap()),
            ..ToolProperties::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        for entry in ["Bash(rm:*)", "execute(rm:*)"] {
            let mut policy = Policy::default();
            policy.add_listed(entry, "list", Effect::Deny).unwrap();
            assert_eq!(policy.judge(&subject).effect, Effect::Deny, "{before}");
        }
        let mut policy = Policy::default();
        let mut rule = Rule::new("r".into(), Effect::Deny);
        rule.path("**/.env", None).unwrap();
        policy.add(rule);
        assert_eq!(policy.judge(&subject).effect, Effect::Deny, "{before}");
    }
}
