//! Tests that rules make no tool call of Claude Code run looser or less visibly than it would without them.

use super::hook_policy::Play;
use acpipe_policy::{Effect, Mode, PRESETS, Policy, Rule};
use serde_json::{Value, json};

const BYPASS: &str = "bypassPermissions";
const WARNED: &str = "The agent may run tools without asking";
const RAN: &str = "The agent ran a tool without asking";
const MAY_HAVE_RUN: &str = "The agent may have run a tool without asking";

/// Returns the titles of the notices.
fn titles(play: &Play) -> Vec<Value> {
    let notices = play.chunks("data-notice").into_iter();
    notices
        .map(|notice| notice["data"]["title"].clone())
        .collect()
}

/// Visibility of a tool call. Later variants are more visible, or stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Silent,
    Reported,
    WarnedAndReported,
    /// The policy refused the call, or required a request that no client answered.
    Refused,
}

/// Sets the default of a policy: a mode, or a preset.
fn set_default(policy: &mut Policy, name: &str) {
    if let Some(mode) = Mode::ALL.into_iter().find(|mode| mode.name() == name) {
        return policy.set_mode(mode);
    }
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    policy.set_preset(preset.unwrap());
}

fn rule(effect: Effect, fill: impl FnOnce(&mut Rule)) -> Policy {
    let mut rule = Rule::new("rule".to_owned(), effect);
    fill(&mut rule);
    let mut policy = Policy::default();
    policy.add(rule);
    policy
}

/// Policies with a rule that does not concern the tools, or asks about edits. One is a restriction, as the file of a
/// project has it.
fn ruled() -> Vec<(&'static str, Policy)> {
    let harmless = || rule(Effect::Deny, |rule| rule.command("zzz *").unwrap());
    let mut read = Policy::default();
    read.add_listed("Read", "allowed_tools", Effect::Allow)
        .unwrap();
    let project = Policy::default().restricted_by(harmless());
    vec![
        ("deny zzz", harmless()),
        ("deny zzz, of the project", project),
        ("allow Read", read),
        (
            "ask edits",
            rule(Effect::Ask, |rule| rule.kind("edit").unwrap()),
        ),
    ]
}

/// Runs a tool as Claude Code does in this mode: its own settings allow `ls`.
fn outcome(policy: &Policy, mode: &str, tool: &str, input: &Value) -> Outcome {
    let (mut play, hello) = Play::with_options(policy.clone(), &json!({"mode": mode}));
    let call = json!({"type": "tool_use", "id": "t", "name": tool, "input": input});
    play.says_block("m", None, &call);
    let hooked = if hello["hooks"].is_null() {
        Value::Null
    } else {
        play.hooks(tool, input)["hookSpecificOutput"]["permissionDecision"].clone()
    };
    let is_own = match mode {
        "default" => input["command"] == "ls",
        "acceptEdits" => input["command"] == "ls" || tool == "Write",
        _ => true,
    };
    let is_refused = match hooked.as_str() {
        Some("deny") => true,
        None if is_own => false,
        _ => play.requests("q", "t", tool, input)[0]["response"]["response"]["behavior"] == "deny",
    };
    if !is_refused {
        play.ends("t", None, "x");
    }
    play.ends_turn();
    let titles = titles(&play);
    let has = |title: &str| titles.iter().any(|shown| shown == title);
    match (is_refused, has(WARNED), has(RAN)) {
        (true, ..) => Outcome::Refused,
        (_, true, true) => Outcome::WarnedAndReported,
        (_, _, true) => Outcome::Reported,
        _ => Outcome::Silent,
    }
}

#[test]
fn rule_makes_no_call_looser_or_less_visible() {
    let tools = [
        ("Bash", json!({"command": "rm x"})),
        ("Bash", json!({"command": "ls"})),
        ("Write", json!({"file_path": "/w/x", "content": "a"})),
    ];
    let modes = ["default", "acceptEdits", BYPASS];
    let defaults = ["ask", "reads", "deny", "approve", "leashd"];
    for ((tool, input), mode) in tools.iter().flat_map(|tool| modes.map(|mode| (tool, mode))) {
        for default in defaults {
            let mut none = Policy::default();
            set_default(&mut none, default);
            let without = outcome(&none, mode, tool, input);
            let cell = format!("{tool} {input}, {default}, {mode}");
            assert_eq!(default == "approve", without == Outcome::Silent, "{cell}");
            if default != "approve" && mode == BYPASS {
                assert!(without >= Outcome::WarnedAndReported, "{cell}: {without:?}");
            }
            for (name, mut policy) in ruled() {
                set_default(&mut policy, default);
                let with = outcome(&policy, mode, tool, input);
                assert!(with >= without, "{cell}, {name}: {with:?}, {without:?}");
                // The hook enforces the policy in every mode.
                let concerns = name == "ask edits" && *tool == "Write";
                let is_judged = default != "approve" || concerns;
                assert_eq!(with == Outcome::Refused, is_judged, "{cell}, {name}");
            }
        }
    }
}

#[test]
fn tool_that_runs_although_the_hook_requires_a_request_is_reported() {
    for (name, mut policy) in ruled() {
        policy.set_mode(Mode::Ask);
        let (mut play, _) = Play::with_options(policy, &json!({"mode": BYPASS}));
        let input = json!({"file_path": "/w/x", "content": "a"});
        let call = json!({"type": "tool_use", "id": "t", "name": "Write", "input": input});
        play.says_block("m", None, &call);
        let answer = play.hooks("Write", &input);
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "ask");
        play.ends("t", None, "x");
        play.ends_turn();
        assert_eq!(titles(&play), [RAN], "{name}");
    }
}

#[test]
fn second_request_under_an_open_id_refuses_the_first_and_keeps_its_own_input() {
    let input = |command: &str| json!({"command": command});
    for (option, behavior) in [("allow", "allow"), ("reject", "deny")] {
        let can = json!({"permissions": true});
        let (mut play, _) = Play::with(Mode::Ask.into(), &json!({}), &can);
        for (call, command) in [("t1", "ls"), ("t2", "rm x")] {
            let tool =
                json!({"type": "tool_use", "id": call, "name": "Bash", "input": input(command)});
            play.says_block(call, None, &tool);
        }
        assert!(play.requests("q", "t1", "Bash", &input("ls")).is_empty());
        let (first, _) = play.client.1[0].clone();
        let sent = play.requests("q", "t2", "Bash", &input("rm x"));
        let refused = &sent[0]["response"];
        assert_eq!(refused["request_id"], "q");
        assert_eq!(refused["response"]["behavior"], "deny");
        assert_eq!(refused["response"].get("interrupt"), None);
        // The client cannot approve the first any more.
        let (second, asked) = play.client.1[0].clone();
        assert_eq!((play.client.1.len(), asked.as_deref()), (1, Some("rm x")));
        assert!(play.answers(first, "allow").is_empty());
        let sent = play.answers(second, option);
        let answer = &sent[0]["response"]["response"];
        assert_eq!(answer["behavior"], behavior, "{sent:?}");
        let updated = (option == "allow").then(|| input("rm x"));
        assert_eq!(answer.get("updatedInput"), updated.as_ref());
    }
}

#[test]
fn tool_call_in_an_unusual_message_is_reported() {
    let call = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "rm x"}});
    let frame =
        |message: Value| json!({"type": "assistant", "session_id": "s", "message": message});
    let judged = [
        frame(json!({"content": [call]})),
        frame(json!({"id": 5, "content": [call]})),
        frame(json!({"id": null, "content": [call]})),
        frame(json!({"id": "m", "content": call})),
        frame(json!({"id": "m", "model": "<synthetic>", "content": [call]})),
    ];
    let failed = json!({"type": "assistant", "session_id": "s", "is_error": true, "error": "unknown",
        "message": {"id": "m", "model": "<synthetic>", "content": [{"type": "text", "text": "no"}, call]}});
    let mut unreported = Vec::new();
    for frame in judged.into_iter().chain([failed]) {
        let (mut play, _) = Play::new(Mode::Deny.into());
        play.says(&frame);
        play.ends("t", None, "x");
        let notices = play.chunks("data-notice");
        let is_reported = |notice: &&&Value| {
            let data = &notice["data"];
            let about = data["description"].as_str().unwrap_or_default();
            data["title"] == RAN && data["toolCallId"] == "t" && about.contains("rm x")
        };
        if notices.iter().filter(is_reported).count() != 1 || notices.len() != 1 {
            unreported.push(frame);
        }
    }
    let lost = [
        serde_json::to_string_pretty(&frame(json!({"id": "m", "content": [call]}))).unwrap(),
        frame(json!([{"content": [call]}])).to_string(),
        frame(json!({"id": "m", "content": [[call]]})).to_string(),
        json!({"type": "assistant", "event": [], "message": {"id": "m", "content": [call]}}).to_string(),
        json!({"type": "stream_event", "event": {"type": "content_block_start", "content_block": [call]}}).to_string(),
        json!({"type": "novel", "message": {"id": "m", "content": [call]}}).to_string(),
    ];
    for lines in lost {
        let (mut play, _) = Play::new(Mode::Deny.into());
        play.prints(&lines);
        if titles(&play) != [MAY_HAVE_RUN] {
            unreported.push(lines.into());
        }
    }
    assert_eq!(unreported, Vec::<Value>::new());
}

#[test]
fn messages_without_ids_begin_calls_of_their_own() {
    let (mut play, _) = Play::new(Mode::Deny.into());
    for (uuid, command) in [("u1", "ls"), ("u2", "rm x")] {
        let call =
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": command}});
        play.says(&json!({"type": "assistant", "session_id": "s", "uuid": uuid, "message": {"content": [call]}}));
        play.ends("t", None, "x");
    }
    let notices = play.chunks("data-notice");
    let ids: Vec<&Value> = notices.iter().map(|n| &n["data"]["toolCallId"]).collect();
    assert_eq!(ids, ["t", "t#2"]);
}

#[test]
fn call_that_cannot_be_read_is_reported_in_a_daemon_without_rules() {
    let cut = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","#;
    let (mut play, hello) = Play::in_daemon(Mode::Deny.into());
    assert!(hello["hooks"].is_object(), "a client may bring rules");
    play.prints(cut);
    assert_eq!(titles(&play), [MAY_HAVE_RUN]);
}
