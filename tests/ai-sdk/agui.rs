//! AG-UI events of recorded and generated turns, judged by the packages of the protocol.

use crate::generate::{ALLOW, REFUSE};
use crate::replay::{self, ReplayClient, Replayed};
use crate::{claude, generated, judge, recordings, transport, turns};
use acpipe_core::agui::RunEvents;
use acpipe_core::fold::Fold;
use acpipe_core::profile::Profile;
use acpipe_policy::Mode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write as _};

/// Chunks of a turn, and the events of each.
struct Run {
    name: String,
    chunks: Vec<Value>,
    events: Vec<Vec<Value>>,
}

impl Run {
    fn new(name: String, id: &str, chunks: Vec<Value>) -> Self {
        let mut run = RunEvents::new("thread", id);
        let translate = |chunk: &Value| {
            let mut events = Vec::new();
            run.chunk(chunk.to_string().as_bytes(), &mut |event| {
                events.push(json!(event));
            });
            events
        };
        let events = chunks.iter().map(translate).collect();
        Self {
            name,
            chunks,
            events,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Value> {
        self.events.iter().flatten()
    }
}

fn runs(name: &str, got: Replayed) -> impl Iterator<Item = Run> {
    let turns = got.turns.into_iter();
    turns.map(move |turn| Run::new(format!("{name}, {}", turn.id), &turn.id, turn.chunks))
}

fn recorded() -> Vec<Run> {
    let mut all = Vec::new();
    let profile = Profile::V7;
    for (name, recording) in recordings() {
        let name = name.as_str();
        let is_claude = name.starts_with("claude-cli-");
        for policy in [Mode::Approve, Mode::Deny] {
            let got = if is_claude {
                claude::replay(&recording, claude::resumes(name), policy, profile)
            } else {
                replay::replay(&recording, policy, profile)
            };
            all.extend(runs(&format!("{name} ({policy:?})"), got));
        }
        if !is_claude {
            for (after, kinds) in [(0, ALLOW), (1, REFUSE)] {
                let seen = ReplayClient::answering(profile, after, kinds);
                let got = replay::replay_to(seen, &recording, Mode::Ask);
                all.extend(runs(&format!("{name} (asked)"), got));
            }
        }
    }
    all
}

/// Returns the verdicts in the order of the streams.
fn ask(mut asked: impl Iterator<Item = Value> + Send) -> Vec<Value> {
    let (written, said, status) = judge::ask("agui.mjs", |stdin| {
        let mut stdin = BufWriter::new(stdin);
        asked.try_for_each(|line| writeln!(stdin, "{line}"))
    });
    written.unwrap();
    assert!(status.success(), "the judge fell over");
    said
}

#[test]
fn agui_packages_accept_every_run() {
    let mut all = recorded();
    assert!(all.len() > 500, "recordings are missing");
    // A third of them has the chunks of `ai` 7.
    let seeds = (0..).flat_map(generated).take(turns() / 5);
    let sevens = seeds.filter(|stream| stream.profile == 7);
    all.extend(sevens.map(|stream| Run::new(stream.name, "turn", stream.chunks)));
    for run in &all {
        nothing_is_lost(run);
    }
    if !judge::is_sdk_available(|| all.len()) {
        return;
    }
    let line = |run: &Run| json!({ "name": run.name, "events": run.all().collect::<Vec<_>>() });
    let verdicts = ask(all.iter().map(line));
    assert_eq!(verdicts.len(), all.len());
    let wrong = verdicts.iter().filter(|v| v["problems"] != json!([]));
    let wrong: Vec<String> = wrong
        .take(10)
        .map(|v| format!("{} {}", v["name"], v["problems"]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut compared = 0;
    for (run, verdict) in all.iter().zip(&verdicts) {
        compared += usize::from(agent_has_the_message(run, verdict));
    }
    assert!(compared > 500, "only {compared} runs were read");
}

/// Compares the messages of the AG-UI agent with the parts of the message that clients of chunks have. Returns
/// `false` for a run that the agent did not read.
fn agent_has_the_message(run: &Run, verdict: &Value) -> bool {
    let Some(messages) = verdict["messages"].as_array() else {
        return false;
    };
    let mut fold = Fold::default();
    run.chunks.iter().for_each(|chunk| fold.push(chunk));
    let message = fold.message();
    let parts = message["parts"].as_array().unwrap();
    let of = |kind: &str| {
        let parts = parts.iter().filter(move |part| part["type"] == kind);
        parts.map(|part| part["text"].clone()).collect::<Vec<_>>()
    };
    let contents = |role: &str| {
        let own = messages
            .iter()
            .filter(move |m| m["role"] == role && m.get("content").is_some());
        own.map(|m| m["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("text"), contents("assistant"), "{}", run.name);
    assert_eq!(of("reasoning"), contents("reasoning"), "{}", run.name);
    let calls = messages
        .iter()
        .filter_map(|m| m["toolCalls"].as_array())
        .flatten();
    let calls: Vec<_> = calls
        .map(|call| (&call["id"], &call["function"]["name"]))
        .collect();
    let tools = parts.iter().filter(|part| part["type"] == "dynamic-tool");
    let tools: Vec<_> = tools
        .map(|part| (&part["toolCallId"], &part["toolName"]))
        .collect();
    assert_eq!(calls, tools, "{}", run.name);
    assert_eq!(contents("tool").len(), tools.len(), "{}", run.name);
    true
}

/// Checks that each text in a chunk is in one of its events.
fn nothing_is_lost(run: &Run) {
    let mut named = BTreeSet::new();
    for (chunk, events) in run.chunks.iter().zip(&run.events) {
        let all = Value::from(events.clone()).to_string();
        let name = &run.name;
        if events.is_empty() {
            assert_eq!(chunk["delta"], "", "{name}: {chunk}");
            continue;
        }
        let mut texts = Vec::new();
        // The name of a tool is sent once, and the id of the session's state is always `session`.
        let is_first = named.insert((chunk["toolCallId"].to_string(), chunk["toolName"].is_null()));
        let is_known = |name: &str| match name {
            "type" => true,
            "id" => chunk["type"] == "data-session",
            "toolName" => !is_first,
            _ => false,
        };
        let fields = chunk.as_object().unwrap().iter();
        let fields = fields.filter(|(name, _)| !is_known(name));
        fields.for_each(|(_, value)| collect(value, &mut texts));
        for text in texts {
            let json = json!(text).to_string();
            let inner = &json[1..json.len() - 1];
            // The input of a call is JSON in a string.
            let again = json!(inner).to_string();
            let is_there = all.contains(inner) || all.contains(&again[1..again.len() - 1]);
            assert!(is_there, "{name}: {text:?} of {chunk} is not in {all}");
        }
    }
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(all) => all.iter().for_each(|value| collect(value, texts)),
        Value::Object(all) => all.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

/// The protocol's HTTP agent reads what `acpipe run -o agui` prints.
#[test]
fn agui_agent_reads_the_output_of_runs() {
    let cases = transport::cases();
    if !judge::is_sdk_available(|| cases.len()) {
        return;
    }
    let asked = cases.iter().map(|case| {
        let output = case.run(&["-o", "agui"]);
        let lines = String::from_utf8(output.stdout).unwrap();
        json!({ "name": case.name, "lines": lines })
    });
    let asked: Vec<Value> = asked.collect();
    for (case, verdict) in cases.iter().zip(ask(asked.into_iter())) {
        assert_eq!(verdict["problems"], json!([]), "{verdict}");
        let messages = verdict["messages"].as_array().unwrap().iter();
        let texts = messages.filter(|m| m["role"] == "assistant" && m["content"].is_string());
        let texts: Vec<Value> = texts.map(|message| message["content"].clone()).collect();
        let text = String::from_utf8(case.run(&["-o", "text"]).stdout).unwrap();
        assert_eq!(transport::joined(&texts), text, "{verdict}");
        let failed = case.error.is_some();
        assert_eq!(
            verdict["result"]["finishReason"].is_null(),
            failed,
            "{verdict}"
        );
    }
}

/// Shows that the judge can refuse a stream.
#[test]
fn agui_judge_finds_each_violation() {
    let start = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    let end = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
    let text = |kind: &str| json!({"type": format!("TEXT_MESSAGE_{kind}"), "messageId": "m"});
    let cases = [
        (vec![start.clone(), end.clone()], ""),
        (vec![end.clone()], "First event"),
        (vec![start.clone()], "the last event is RUN_STARTED"),
        (
            vec![start.clone(), text("START"), end.clone()],
            "still active",
        ),
        (
            vec![start.clone(), text("END"), end.clone()],
            "No active text message",
        ),
        (vec![start.clone(), text("CONTENT"), end.clone()], "delta"),
        (
            vec![start.clone(), json!({"type": "NONSENSE"}), end.clone()],
            "came out",
        ),
        (
            vec![
                start.clone(),
                json!({"type": "CUSTOM", "name": "n", "value": 1, "x": 1}),
                end,
            ],
            "unrecognised material at '/x'",
        ),
    ];
    if !judge::is_sdk_available(|| cases.len()) {
        return;
    }
    let asked = cases
        .iter()
        .map(|(events, why)| json!({"name": why, "events": events}));
    for ((_, why), verdict) in cases.iter().zip(ask(asked)) {
        let problems = verdict["problems"].to_string();
        assert!(problems.contains(why), "{verdict}");
        assert_eq!(problems == "[]", why.is_empty(), "{verdict}");
    }
}
