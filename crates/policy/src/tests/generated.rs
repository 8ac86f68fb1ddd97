//! Property tests with generated rules and tool calls.

use super::super::command::CommandPattern;
use super::super::*;
use serde_json::json;
use serde_json::value::to_raw_value;

/// Pseudo-random numbers: `SplitMix64`.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n).unwrap()).unwrap()
    }

    pub fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Returns some of the given texts, joined.
    pub fn text(&mut self, of: &[&str], most: usize) -> String {
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

pub const PIECES: &[&str] = &[
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

pub fn subject(dice: &mut Dice) -> Subject {
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
    let tool = ToolProperties {
        name: some.then(|| dice.pick(TOOLS)),
        title: Some(line.as_str()),
        kind: (dice.below(3) > 0).then(|| dice.pick(names::KINDS)),
        input: Some(&input),
        ..ToolProperties::default()
    };
    Subject::of_tool(&tool, "/w")
}

pub fn rule(dice: &mut Dice, effect: Effect) -> Rule {
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

pub fn policy(dice: &mut Dice) -> Policy {
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
fn random_rule_sets_keep_the_policy_invariants() {
    // Number of verdicts by a rule, by effect.
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
        // An added deny never allows more, and always wins if it matches.
        assert!(after.effect >= before.effect, "{seed}: {subject:?}");
        let line = subject.line();
        if added.matches(&subject, line.as_ref()) {
            assert_eq!(after.effect, Effect::Deny, "{seed}: {subject:?}");
        } else if !subject.opaque {
            assert_eq!(after, before, "{seed}");
        }

        // An added allow has precedence over the default, and over nothing else.
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

        // If a rule that allows matches, the same rule with the effect deny matches, too.
        let mut allowing = rule(dice, Effect::Allow);
        if allowing.matches(&subject, line.as_ref()) {
            allowing.effect = Effect::Deny;
            assert!(
                allowing.matches(&subject, line.as_ref()),
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
        let tool = ToolProperties {
            name: Some(&title),
            title: Some(&title),
            kind: Some("execute"),
            input: serde_json::from_str(&input).ok(),
            ..ToolProperties::default()
        };
        let cwd = dice.pick(&["", "/", "/w", "w", "/é/"]);
        let _ = policy.judge(&Subject::of_tool(&tool, cwd));
        let words: Vec<String> = (0..dice.below(4)).map(|_| dice.text(PIECES, 3)).collect();
        let input = to_raw_value(&json!({ "command": words, "cwd": title })).unwrap();
        let tool = ToolProperties {
            input: Some(&input),
            ..ToolProperties::default()
        };
        let _ = policy.judge(&Subject::of_tool(&tool, cwd));
        let _ = CommandPattern::new(&title);
        let _ = path::PathPattern::new(&title, Some(cwd));
    }
}
