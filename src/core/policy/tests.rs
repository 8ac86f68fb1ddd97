//! Tables of the whole: rules, lists, presets, and what holds whatever the rules are.

mod inputs;
mod unreadable;

use super::*;
use serde_json::json;
use serde_json::value::to_raw_value;

/// A tool of this kind that works on a file.
fn file(kind: &str, path: &str, cwd: &str) -> Subject {
    let places = to_raw_value(&json!([{ "path": path }])).unwrap();
    let tool = Tool {
        kind: Some(kind),
        locations: Some(&places),
        ..Tool::default()
    };
    Subject::of_tool(&tool, cwd)
}

/// `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n).unwrap()).unwrap()
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Some of what is there, joined.
    fn text(&mut self, of: &[&str], most: usize) -> String {
        let n = self.below(most + 1);
        (0..n).map(|_| self.pick(of)).collect()
    }
}

const PATHS: &[&str] = &[
    "/w/src/a.rs",
    "/w/.env",
    "src/b",
    "../x",
    "~/.ssh/id",
    "/etc/passwd",
    "/w/secrets",
    "a\0b",
    "",
    "/w/a/../b",
];
const PATTERNS: &[&str] = &[
    "src/**", "**/.env", "/**", "~/**", "secrets/", "../*", "**", "*.rs",
];
const PIECES: &[&str] = &[
    "rm",
    "git",
    " ",
    " ",
    ";",
    "&&",
    "|",
    "&",
    "$(",
    ")",
    "(",
    "`",
    "\"",
    "'",
    "\\",
    ">",
    "<",
    "2>&1",
    "/dev/null",
    "x",
    "sudo ",
    "env ",
    "bash -c ",
    "{",
    "}",
    ",",
    "\n",
    "=",
    "é",
    "\0",
    "$'",
    "<<",
];
const COMMANDS: &[&str] = &["rm *", "git *", "git push:*", "*", "x", "sudo *"];
const NAMES: &[&str] = &[
    "Bash",
    "Read",
    "edit",
    "mcp__s__*",
    "*",
    "deploy",
    "execute",
];
const TOOLS: &[&str] = &[
    "Bash",
    "Read",
    "bash",
    "mcp__s__t",
    "mcp__t__deploy",
    "strange",
];

fn subject(dice: &mut Dice) -> Subject {
    let line = dice.text(PIECES, 9);
    let mut input = json!({});
    if dice.below(2) == 0 {
        input["command"] = line.clone().into();
    }
    if dice.below(2) == 0 {
        input["file_path"] = dice.pick(PATHS).into();
    }
    if dice.below(4) == 0 {
        input["paths"] = json!([dice.pick(PATHS), dice.pick(PATHS)]);
    }
    let input = to_raw_value(&input).unwrap();
    let some = dice.below(2) == 0;
    let tool = Tool {
        name: some.then(|| dice.pick(TOOLS)),
        title: Some(line.as_str()),
        kind: (dice.below(3) > 0).then(|| dice.pick(names::KINDS)),
        input: Some(&input),
        ..Tool::default()
    };
    Subject::of_tool(&tool, "/w")
}

fn rule(dice: &mut Dice, effect: Effect) -> Rule {
    let names = Names {
        declared: vec!["deploy".into()],
        servers: None,
    };
    let mut rule = Rule::new("r".into(), effect);
    while rule.is_empty() {
        for _ in 0..dice.below(3) {
            let done = match dice.below(5) {
                0 => rule.kind(dice.pick(names::KINDS)),
                1 => rule.tool(dice.pick(NAMES), &names),
                2 => rule.title(dice.pick(&["*", "*git*", "x"])),
                3 => rule.path(dice.pick(PATTERNS), Some("/home/me")),
                _ => rule.command(dice.pick(COMMANDS)),
            };
            done.unwrap();
        }
    }
    rule
}

fn policy(dice: &mut Dice) -> Policy {
    let mut policy = Policy::from(Mode::ALL[dice.below(4)]);
    if dice.below(3) == 0 {
        policy.set_preset(&PRESETS[dice.below(PRESETS.len())]);
    }
    for _ in 0..dice.below(5) {
        let effect = Effect::ALL[dice.below(3)];
        policy.add(rule(dice, effect));
    }
    policy
}

#[test]
fn rules_hold_together_whatever_they_are() {
    // How often a rule said something.
    let mut counts = [0; 3];
    for seed in 0..3_000 {
        let dice = &mut Dice(seed);
        let (policy, subject) = (policy(dice), subject(dice));
        let before = policy.judge(&subject);
        if !before.by.contains(' ') {
            counts[before.effect as usize] += 1;
        }

        let mut more = policy.clone();
        let added = rule(dice, Effect::Deny);
        more.add(added.clone());
        let after = more.judge(&subject);
        // A deny never allows more, and always wins where it fits.
        assert!(after.effect >= before.effect, "{seed}: {subject:?}");
        let line = subject.line();
        if added.fits(&subject, line.as_ref()) {
            assert_eq!(after.effect, Effect::Deny, "{seed}: {subject:?}");
        } else if !subject.opaque {
            assert_eq!(after, before, "{seed}");
        }

        // An allow goes before what is no rule, and before nothing else.
        let mut more = policy.clone();
        more.add(rule(dice, Effect::Allow));
        let after = more.judge(&subject);
        if before.by == "r" {
            assert_eq!(after.effect, before.effect, "{seed}: {subject:?}");
        } else {
            assert!(after.effect <= before.effect, "{seed}: {subject:?}");
        }

        let mut turned = policy.clone();
        turned.rules.reverse();
        assert_eq!(turned.judge(&subject).effect, before.effect, "{seed}");

        // What a rule allows it does not allow less of if it were to refuse it.
        let mut allowing = rule(dice, Effect::Allow);
        if allowing.fits(&subject, line.as_ref()) {
            allowing.effect = Effect::Deny;
            assert!(
                allowing.fits(&subject, line.as_ref()),
                "{seed}: {subject:?}"
            );
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

#[test]
fn judging_never_panics_on_any_text() {
    let odd = [
        "{\"command\":",
        "[",
        "]",
        "}",
        "{",
        "\"",
        "\\",
        "\\ud800",
        ",",
        ":",
        "\"path\"",
        "\"cmd\"",
        "null",
        "1e999",
        "é",
        "🙂",
        " ",
    ];
    for seed in 0..3_000 {
        let dice = &mut Dice(seed);
        let policy = policy(dice);
        let (input, title) = (dice.text(&odd, 12), dice.text(PIECES, 12));
        let tool = Tool {
            name: Some(&title),
            title: Some(&title),
            kind: Some("execute"),
            input: serde_json::from_str(&input).ok(),
            ..Tool::default()
        };
        let cwd = dice.pick(&["", "/", "/w", "w", "/é/"]);
        let _ = policy.judge(&Subject::of_tool(&tool, cwd));
        let words: Vec<String> = (0..dice.below(4)).map(|_| dice.text(PIECES, 3)).collect();
        let input = to_raw_value(&json!({ "command": words, "cwd": title })).unwrap();
        let tool = Tool {
            input: Some(&input),
            ..Tool::default()
        };
        let _ = policy.judge(&Subject::of_tool(&tool, cwd));
        let _ = CommandPattern::new(&title);
        let _ = path::PathPattern::new(&title, Some(cwd));
    }
}

use command::CommandPattern;

/// A call with this name, kind and input, and what a list with these entries says of it.
type Case = (Option<&'static str>, &'static str, serde_json::Value, bool);

fn listed(entry: &str, case: &Case, effect: Effect) -> bool {
    let (name, kind, input, _) = case;
    let input = to_raw_value(input).unwrap();
    let tool = Tool {
        name: *name,
        kind: Some(kind),
        input: Some(&input),
        ..Tool::default()
    };
    let mut policy = Policy::at_home(Some("/home/me".into()));
    policy.set_mode(Mode::Ask);
    policy.declare("deploy");
    policy.add_listed(entry, "list", effect).unwrap();
    let verdict = policy.judge(&Subject::of_tool(&tool, "/w"));
    let by = verdict.by == format!("list {entry:?}");
    assert_eq!(verdict.effect == effect, by, "{verdict:?}");
    by
}

#[test]
fn lists_name_tools_as_claude_code_does() {
    let none = || json!({});
    let run = |line: &str| json!({ "command": line });
    let file = |path: &str| json!({ "file_path": path });
    let cases: Vec<(&str, Case)> = vec![
        ("Read", (Some("Read"), "read", none(), true)),
        ("Read", (Some("Write"), "edit", none(), false)),
        ("bash", (Some("Bash"), "execute", none(), true)),
        // An agent that tells kinds alone.
        ("Read", (None, "read", none(), true)),
        ("Bash", (None, "execute", none(), true)),
        ("Bash", (Some("terminal/create"), "execute", none(), true)),
        ("Read", (Some("fs/readTextFile"), "read", none(), true)),
        ("Write", (None, "edit", none(), true)),
        ("NotebookEdit", (None, "edit", none(), false)),
        ("Bash", (Some("run_it"), "execute", none(), false)),
        ("execute", (Some("run_it"), "execute", none(), true)),
        ("edit", (Some("Write"), "edit", none(), true)),
        (
            "Bash(git:*)",
            (Some("Bash"), "execute", run("git log"), true),
        ),
        ("Bash(git *)", (None, "execute", run("git log"), true)),
        ("Bash(git:*)", (None, "execute", run("ls"), false)),
        ("read", (None, "read", run("cat x"), true)),
        (
            "execute(git:*)",
            (Some("run_it"), "execute", run("git log"), true),
        ),
        (
            "Edit(src/**)",
            (Some("Write"), "edit", file("/w/src/a"), true),
        ),
        (
            "Edit(src/**)",
            (Some("Read"), "read", file("/w/src/a"), false),
        ),
        ("Edit(src/**)", (None, "edit", file("src/a"), true)),
        ("Edit(/src/**)", (None, "edit", file("src/a"), true)),
        ("Edit(./src/**)", (None, "edit", file("src/a"), true)),
        ("Read(.env)", (Some("Read"), "read", file("a/b/.env"), true)),
        (
            "Read(**/.env)",
            (Some("Grep"), "search", file(".env"), true),
        ),
        (
            "Read(//etc/**)",
            (Some("Read"), "read", file("/etc/passwd"), true),
        ),
        (
            "Read({//etc,/src,~/x}/**)",
            (Some("Read"), "read", file("/etc/passwd"), true),
        ),
        (
            "Read({//etc,/src,~/x}/**)",
            (Some("Read"), "read", file("src/a"), true),
        ),
        (
            "Read(~/**)",
            (Some("Read"), "read", file("/home/me/x"), true),
        ),
        ("mcp__s", (Some("mcp__s__t"), "other", none(), true)),
        ("mcp__s__*", (Some("mcp__s__t"), "other", none(), true)),
        ("mcp__s__t", (Some("mcp__s__t"), "other", none(), true)),
        ("mcp__s__t", (Some("mcp__s__u"), "other", none(), false)),
        ("mcp__s", (Some("mcp__st__t"), "other", none(), false)),
        ("deploy", (Some("mcp__s__deploy"), "other", none(), true)),
        ("Read", (Some("mcp__s__Read"), "other", none(), false)),
        ("*", (None, "other", none(), true)),
        ("db_*", (Some("db_drop"), "other", none(), true)),
    ];
    for (entry, case) in &cases {
        for effect in [Effect::Allow, Effect::Deny] {
            assert_eq!(listed(entry, case, effect), case.3, "{entry} {case:?}");
        }
    }
}

#[test]
fn tool_of_another_name_is_refused_by_what_it_does() {
    let command = json!({ "command": "rm x" });
    let path = json!({ "file_path": "/w/src/a" });
    for (entry, name, kind, input, denied) in [
        ("Bash(rm:*)", "Monitor", "execute", &command, true),
        ("Bash(rm:*)", "mcp__shell__run", "execute", &command, true),
        ("Bash(rm:*)", "mcp__shell__run", "other", &command, true),
        ("Bash(rm:*)", "Write", "edit", &path, false),
        ("Bash", "Monitor", "execute", &command, true),
        ("Bash", "TaskStop", "execute", &json!({ "id": "1" }), false),
        ("Edit(src/**)", "apply_patch", "edit", &path, true),
        ("Edit(src/**)", "ReadFile", "read", &path, false),
        ("Read(src/**)", "ReadFile", "read", &path, true),
        ("Edit", "apply_patch", "edit", &path, false),
    ] {
        let case = (Some(name), kind, input.clone(), denied);
        assert_eq!(listed(entry, &case, Effect::Deny), denied, "{entry} {name}");
        // To allow, the name counts.
        assert!(!listed(entry, &case, Effect::Allow), "{entry} {name}");
    }
}

#[test]
fn lists_that_cannot_be_held_are_refused() {
    let policy = Policy::default();
    for (entry, why) in [
        ("Raed", "did you mean \"Read\"?"),
        ("Bash(git", "no closing parenthesis"),
        ("Bash(a | b)", "not one command"),
        ("Bash()", "names no command"),
        ("Edit()", "names nothing"),
        (
            "WebFetch(domain:x.org)",
            "nothing but its name is looked at",
        ),
        ("mcp__other__t", "there is no MCP server \"other\""),
    ] {
        let options = SessionOptions {
            allowed_tools: vec!["Read".into(), entry.into()],
            ..SessionOptions::default()
        };
        let error = policy
            .check_lists(&options, Some(vec!["mine".into()]))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidTool);
        assert!(
            error.message.starts_with("options.allowedTools: "),
            "{error}"
        );
        assert!(error.message.contains(why), "{error}");
    }
}

#[test]
fn a_session_adds_its_own_lists() {
    let of = |name| {
        let tool = Tool {
            name: Some(name),
            ..Tool::default()
        };
        Subject::of_tool(&tool, "/w")
    };
    let options = SessionOptions {
        allowed_tools: vec!["Read".into(), "Bash".into(), "gone".into()],
        disallowed_tools: vec!["Bash".into()],
        ..SessionOptions::default()
    };
    let policy = Policy::from(Mode::Ask);
    let said = |name, options: &SessionOptions| policy.judge_in(&of(name), options);
    assert_eq!(said("Read", &options).by, "allowedTools \"Read\"");
    // A form of Claude Code's own is denied for its tool, and for no other.
    let domain = SessionOptions {
        disallowed_tools: vec!["WebFetch(domain:x.org)".into()],
        ..SessionOptions::default()
    };
    assert_eq!(said("WebFetch", &domain).effect, Effect::Deny);
    assert_eq!(said("Read", &domain).effect, Effect::Ask);
    assert_eq!(said("Bash", &options).by, "disallowedTools \"Bash\"");
    assert_eq!(said("Write", &options).by, "permissions \"ask\"");
    // A stored list with a word that is not known any more.
    let options = SessionOptions {
        disallowed_tools: vec!["gone".into()],
        ..options
    };
    assert_eq!(said("Read", &options).effect, Effect::Deny);
}

#[test]
fn presets_act_as_the_systems_they_are_named_after() {
    use Effect::{Allow, Ask, Deny};
    // Columns: Read, Grep, Write, a deletion, Bash, WebFetch, ExitPlanMode, AskUserQuestion, a tool of an MCP server.
    let calls = [
        ("Read", "read"),
        ("Grep", "search"),
        ("Write", "edit"),
        ("", "delete"),
        ("Bash", "execute"),
        ("WebFetch", "fetch"),
        ("ExitPlanMode", "switch_mode"),
        ("AskUserQuestion", "other"),
        ("mcp__s__t", "other"),
    ];
    let table = [
        ("leashd", [Ask; 9]),
        (
            "leashd-accept-edits",
            [Allow, Allow, Allow, Allow, Ask, Ask, Ask, Ask, Ask],
        ),
        (
            "holodeck",
            [Allow, Allow, Deny, Deny, Deny, Deny, Deny, Deny, Deny],
        ),
        (
            "holodeck-chat",
            [Allow, Allow, Allow, Allow, Ask, Ask, Ask, Ask, Ask],
        ),
        (
            "discobot",
            [Allow, Allow, Allow, Allow, Allow, Allow, Ask, Ask, Allow],
        ),
        (
            "maverick",
            [Allow, Allow, Allow, Allow, Deny, Deny, Deny, Deny, Deny],
        ),
        (
            "maverick-deny-dangerous",
            [Allow, Allow, Deny, Deny, Deny, Allow, Allow, Allow, Allow],
        ),
    ];
    assert_eq!(table.len(), PRESETS.len());
    for (name, wanted) in table {
        let mut policy = Policy::default();
        policy.set_preset(Preset::named(name).unwrap());
        let effects = calls.map(|(name, kind)| {
            let tool = Tool {
                name: Some(name).filter(|name| !name.is_empty()),
                kind: Some(kind),
                ..Tool::default()
            };
            policy.judge(&Subject::of_tool(&tool, "/w")).effect
        });
        assert_eq!(effects, wanted, "{name}");
        // A rule goes before it.
        policy.add_listed("Bash", "allowed_tools", Allow).unwrap();
        let bash = Tool {
            name: Some("Bash"),
            ..Tool::default()
        };
        assert_eq!(policy.judge(&Subject::of_tool(&bash, "/w")).effect, Allow);
        assert_eq!(policy.unanswered(), Deny);
    }
}

#[test]
fn the_first_of_the_strongest_rules_is_named() {
    let mut policy = Policy::from(Mode::Approve);
    for (label, effect) in [
        ("a", Effect::Allow),
        ("b", Effect::Ask),
        ("c", Effect::Deny),
        ("d", Effect::Deny),
    ] {
        let mut rule = Rule::new(label.into(), effect);
        rule.kind("read").unwrap();
        policy.add(rule);
    }
    let verdict = policy.judge(&file("read", "/w/a", "/w"));
    assert_eq!((verdict.effect, verdict.by.as_str()), (Effect::Deny, "c"));
    let verdict = policy.judge(&file("edit", "/w/a", "/w"));
    assert_eq!(
        (verdict.effect, verdict.by.as_str()),
        (Effect::Allow, "permissions \"approve\"")
    );
}

#[test]
fn modes_are_what_their_names_say() {
    use Effect::{Allow, Ask, Deny};
    for (mode, read, write) in [
        (Mode::Approve, Allow, Allow),
        (Mode::Reads, Allow, Ask),
        (Mode::Ask, Ask, Ask),
        (Mode::Deny, Deny, Deny),
    ] {
        let policy = Policy::from(mode);
        assert_eq!(policy.judge(&file("read", "a", "/w")).effect, read);
        let verdict = policy.judge(&file("edit", "a", "/w"));
        assert_eq!(verdict.effect, write);
        assert_eq!(verdict.by, format!("permissions {:?}", mode.name()));
    }
}

#[test]
fn a_command_is_not_allowed_by_less_than_its_words() {
    let of = |kind, json: &serde_json::Value| {
        let input = to_raw_value(json).unwrap();
        let tool = Tool {
            kind: Some(kind),
            input: Some(&input),
            ..Tool::default()
        };
        Subject::of_tool(&tool, "/w")
    };
    let call = json!({"command": "cat src/a; curl x", "path": "src/a"});
    let mut policy = Policy::from(Mode::Reads);
    let mut rule = Rule::new("r".into(), Effect::Allow);
    rule.path("**", None).unwrap();
    policy.add(rule);
    policy.add_listed("Read", "list", Effect::Allow).unwrap();
    assert_eq!(policy.judge(&of("execute", &call)).effect, Effect::Ask);
    assert_eq!(policy.judge(&of("read", &call)).effect, Effect::Ask);
    let file = json!({"path": "src/a"});
    assert_eq!(policy.judge(&of("edit", &file)).by, "r");
    // To refuse, either is enough.
    policy
        .add_listed("Read(src/**)", "list", Effect::Deny)
        .unwrap();
    assert_eq!(policy.judge(&of("read", &call)).effect, Effect::Deny);
}

#[test]
fn what_cannot_be_read_is_refused_by_what_it_may_be() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for before in ["1e999", deep.as_str()] {
        let input = format!(r#"{{"x":{before},"command":"rm x","path":".env"}}"#);
        let tool = Tool {
            kind: Some("execute"),
            input: Some(serde_json::from_str(&input).unwrap()),
            ..Tool::default()
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
