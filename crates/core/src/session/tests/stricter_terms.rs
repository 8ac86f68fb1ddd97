//! Tests of open requests when the terms of another client come to hold, and of questions that the policy denies.

use super::super::{CallerSettings, Queued, SessionMachine};
use super::event::On;
use super::fixture::{Fixture, all};
use crate::client::ClientId;
use crate::cx::Cx;
use crate::terms::{CallerTerms, Terms};
use crate::testing::params;
use On::{Client, Host, Permission, Prompt, Request, Wait};
use acpipe_model::limits::{Limits, Timeout as Limit};
use acpipe_policy::{Effect, Mode, Policy, Rule};
use acpipe_protocol::wire::SessionOptions;
use serde_json::json;
use std::time::Duration;

const TITLES: [&str; 2] = [
    "The permissions of this session changed",
    "The policy declined a question of the agent",
];

fn select(option: &str) -> On {
    Client(json!({ "outcome": { "outcome": "selected", "optionId": option } }))
}

fn asks_user(key: &'static str, mode: &str) -> On {
    let params = json!({
        "sessionId": "a1", "mode": mode, "message": "May I delete it?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        "url": "https://example.invalid/", "elicitationId": "e",
    });
    Request(key, "elicitation/create", params)
}

fn writes(key: &'static str) -> On {
    let params = json!({ "sessionId": "a1", "path": "/w/a", "content": "x" });
    Request(key, "fs/write_text_file", params)
}

fn caller(policy: Policy, answer: Option<Duration>) -> CallerTerms {
    let mut limits = Limits::default();
    if let Some(answer) = answer {
        limits.set(Limit::Answer, Some(answer));
    }
    CallerTerms {
        client: ClientId::FIRST,
        has_own_settings: true,
        terms: Terms { policy, limits },
        options: SessionOptions::default(),
        asking: None,
    }
}

/// Returns the settings of a client that prompts, which has the options of the session.
fn prompting(terms: CallerTerms) -> Box<CallerSettings> {
    Box::new(CallerSettings {
        terms: Some(Box::new(terms)),
        ..CallerSettings::default()
    })
}

fn join(caller: CallerTerms) -> impl FnOnce(&mut SessionMachine, &mut Cx<'_>) {
    |session, cx| {
        let (decisions, talk) = (&mut session.decisions, &mut session.talk);
        decisions.add_terms(&prompting(caller), talk, cx);
    }
}

/// Begins the prompt of a client with this policy.
fn begin(t: &mut Fixture, mode: Mode) {
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "hi" }] });
    let queued = Queued {
        is_answer: false,
        token: t.token(),
        turn_id: "t".to_owned(),
        caller: prompting(caller(Policy::from(mode), None)),
        prompt: params(json!({ "message": message })),
    };
    t.act(|s, cx| s.begin_turn(queued, cx)).unwrap();
}

/// Returns the lines for the agent since the last call, and the titles of the notices.
fn answers(t: &mut Fixture) -> (Vec<String>, Vec<String>) {
    let titles = t.client.take_chunks().into_iter().filter_map(|given| {
        let title = given.chunk["data"]["title"].as_str().map(str::to_owned);
        title.filter(|title| TITLES.contains(&title.as_str()))
    });
    let titles = titles.collect();
    let lines = t.output().into_iter();
    let lines = lines.filter(|line| line.starts_with("agent ") || line.starts_with("withdraw "));
    (lines.collect(), titles)
}

#[test]
fn open_requests_are_refused_when_a_client_that_denies_joins_the_turn() {
    let mut t = Fixture::asking();
    t.shared.served.write_files = true;
    t.on(&Prompt("hi"));
    t.on(&Permission("q1"));
    t.on(&writes("q2"));
    t.on(&asks_user("q3", "form"));
    t.act(join(caller(Policy::from(Mode::Deny), None)));
    let (lines, titles) = answers(&mut t);
    let withdrawn = "withdraw by policy";
    let refused = ["agent q1 = selected no", "agent q3 = {action:decline}"];
    assert_eq!(lines, [&refused[..], &[withdrawn; 3]].concat());
    assert_eq!(titles, TITLES);
    t.pass(&Host);
    let (lines, _) = answers(&mut t);
    assert_eq!(lines, ["agent q2 = error -32603"]);
    assert!(t.session.output.requests().is_empty());
    // The answer of a client that approves crosses with the refusal.
    t.play(&[(select("yes"), &[])]);
    assert!(t.shared.client_requests.is_empty());
}

#[test]
fn open_request_is_refused_by_a_rule_of_the_client_that_joins_the_turn() {
    for (kind, want) in [("edit", true), ("fetch", false)] {
        let mut t = Fixture::asking();
        t.on(&Prompt("hi"));
        t.on(&Permission("q1"));
        let mut policy = Policy::from(Mode::Approve);
        let mut rule = Rule::new("rule \"r\"".to_owned(), Effect::Deny);
        rule.kind(kind).unwrap();
        policy.add(rule);
        t.act(join(caller(policy, None)));
        let (lines, _) = answers(&mut t);
        assert_eq!(!lines.is_empty(), want, "{kind}: {lines:?}");
        let output = t.on(&select("yes"));
        assert_eq!(output.is_empty(), want, "{kind}: {output:?}");
    }
}

#[test]
fn open_request_waits_no_longer_than_the_client_that_joins_the_turn_allows() {
    let mut t = Fixture::asking();
    t.shared.settings.policy.set_unanswered_allows(true);
    t.on(&Prompt("hi"));
    t.on(&Permission("q1"));
    t.on(&Wait(Duration::from_secs(5)));
    let limit = Some(Duration::from_secs(10));
    t.act(join(caller(Policy::from(Mode::Ask), limit)));
    assert_eq!(answers(&mut t).0, [""; 0]);
    t.pass(&Wait(Duration::from_secs(4)));
    assert_eq!(answers(&mut t).0, [""; 0]);
    t.pass(&Wait(Duration::from_secs(1)));
    // The caller does not allow what no client answers.
    let want = ["agent q1 = selected no", "withdraw by timeout"];
    assert_eq!(answers(&mut t).0, want);
}

#[test]
fn request_of_background_work_is_refused_when_a_prompt_that_denies_begins() {
    let mut t = Fixture::asking();
    t.on(&Permission("q1"));
    begin(&mut t, Mode::Deny);
    let want = [
        "agent session/prompt hi",
        "agent q1 = selected no",
        "withdraw by policy",
    ];
    assert_eq!(answers(&mut t).0, want);
}

#[test]
fn work_left_from_a_turn_keeps_its_terms_until_the_next_prompt_begins() {
    let changed = "The permissions of this session changed";
    for (before, after, refused) in [
        (Mode::Deny, Mode::Ask, [true, false]),
        (Mode::Ask, Mode::Deny, [true, true]),
        (Mode::Ask, Mode::Ask, [false, false]),
    ] {
        let mut t = Fixture::asking();
        begin(&mut t, before);
        t.pass(&On::Stop("end_turn"));
        begin(&mut t, after);
        answers(&mut t);
        let mut shown = Vec::new();
        for (event, key, refused) in [
            (On::BackgroundBegins, "q1", refused[0]),
            (On::PromptBegins, "q2", refused[1]),
        ] {
            t.pass(&event);
            shown.extend(answers(&mut t).1);
            t.pass(&Permission(key));
            let (lines, _) = answers(&mut t);
            let answer = format!("agent {key} = selected no");
            assert_eq!(
                lines.contains(&answer),
                refused,
                "{before:?} {after:?} {key}: {lines:?}"
            );
        }
        let count = shown.iter().filter(|title| *title == changed).count();
        let want = if before == Mode::Deny { 2 } else { 0 };
        assert_eq!(count, want, "{before:?} {after:?}");
    }
}

#[test]
fn refused_file_request_of_background_work_is_no_unapproved_run() {
    for by_user in [false, true] {
        let mut t = Fixture::asking();
        t.shared.served.write_files = true;
        t.on(&writes("q1"));
        begin(&mut t, if by_user { Mode::Ask } else { Mode::Deny });
        if by_user {
            t.pass(&select("no"));
        }
        t.pass(&Host);
        let refused = "agent q1 = error -32603".to_owned();
        assert!(t.output().contains(&refused), "{by_user}");
        t.pass(&On::Answer(json!({ "stopReason": "end_turn" })));
        let chunks = t.client.take_chunks().into_iter();
        let titles = chunks.map(|given| given.chunk["data"]["title"].clone());
        let mut titles = titles.filter(serde_json::Value::is_string);
        assert!(
            titles.all(|title| TITLES.contains(&title.as_str().unwrap())),
            "{by_user}"
        );
    }
}

#[test]
fn mode_that_denies_declines_forms_and_addresses() {
    for mode in ["form", "url"] {
        for policy in Mode::ALL {
            let mut t = Fixture::live(all());
            t.shared.settings.policy = Policy::from(policy);
            t.on(&Prompt("hi"));
            t.pass(&asks_user("q1", mode));
            let is_asked = t.client.open_requests.len() == 1;
            assert_eq!(is_asked, policy != Mode::Deny, "{mode} {policy:?}");
            let (lines, titles) = answers(&mut t);
            if policy == Mode::Deny {
                assert_eq!(lines, ["agent q1 = {action:decline}"], "{mode}");
                assert_eq!(titles, [TITLES[1]], "{mode}");
            }
        }
    }
}

#[test]
fn rule_that_matches_a_question_decides_about_it() {
    type Condition = fn(&mut Rule, &Policy) -> Result<(), String>;
    let conditions: [(Condition, Effect, bool); 5] = [
        (|rule, _| rule.title("*delete*"), Effect::Deny, false),
        (|rule, _| rule.title("*rename*"), Effect::Deny, true),
        (
            |rule, policy| rule.tool("AskUserQuestion", policy.names()),
            Effect::Deny,
            false,
        ),
        (|rule, _| rule.path("/w/**", None), Effect::Deny, true),
        // Only the user can answer.
        (|rule, _| rule.title("*delete*"), Effect::Allow, true),
    ];
    for (n, (condition, effect, want)) in conditions.into_iter().enumerate() {
        let mut t = Fixture::live(all());
        let policy = &mut t.shared.settings.policy;
        let mut rule = Rule::new("rule \"r\"".to_owned(), effect);
        condition(&mut rule, policy).unwrap();
        policy.add(rule);
        t.on(&Prompt("hi"));
        t.pass(&asks_user("q1", "form"));
        assert_eq!(t.client.open_requests.len() == 1, want, "{n}");
    }
}

/// Returns the descriptions of the changes of permissions in the chunks since the last call.
fn changes(t: &mut Fixture) -> Vec<String> {
    let chunks = t.client.take_chunks().into_iter().map(|given| given.chunk);
    let changes = chunks.filter(|chunk| chunk["data"]["title"] == TITLES[0]);
    let text = |chunk: serde_json::Value| chunk["data"]["description"].as_str().unwrap().to_owned();
    changes.map(text).collect()
}

#[test]
fn change_of_permissions_is_shown_only_if_rules_or_defaults_changed() {
    let mut t = Fixture::asking();
    t.on(&Prompt("hi"));
    t.act(join(caller(Policy::from(Mode::Deny), None)));
    assert_eq!(changes(&mut t).len(), 1);
    // The owner of the turn joins it, and another client with the same settings in another home directory.
    let mut elsewhere = Policy::at_home(Some("/home/b".to_owned()));
    elsewhere.set_mode(Mode::Deny);
    for policy in [Policy::from(Mode::Ask), elsewhere] {
        t.act(join(caller(policy, None)));
        assert_eq!(changes(&mut t), [""; 0]);
    }
    let mut policy = Policy::from(Mode::Deny);
    policy.add(Rule::for_all("rule \"r\"".to_owned(), Effect::Ask));
    t.act(join(caller(policy.clone(), None)));
    let with_rule =
        "permissions \"ask\" and permissions \"deny\" and permissions \"deny\" with a rule,";
    let shown = changes(&mut t);
    assert!(
        shown.len() == 1 && shown[0].contains(with_rule),
        "{shown:?}"
    );
    policy = Policy::from(Mode::Deny);
    policy.add(Rule::for_all("rule \"s\"".to_owned(), Effect::Ask));
    t.act(join(caller(policy, None)));
    let shown = changes(&mut t);
    assert!(
        shown.len() == 1 && shown[0].contains("with other rules"),
        "{shown:?}"
    );
}
