//! Size of the log in proportion to the agent's output: about twice as large at most, whatever the agent
//! repeats.

use super::disk::{Dice, Disk};
use super::drive::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SESSION: &str = "a";

/// Bytes that one tool may take beyond the proportion: its first changes, and the end of its terminals'
/// output in its result.
const FREE: usize = 100 * 1024;

/// Number of times that a small update is sent.
const TIMES: usize = 150;

fn update(id: &str, fields: &Value) -> Value {
    let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id });
    for (name, value) in fields.as_object().unwrap() {
        update[name] = value.clone();
    }
    update
}

/// Plays a turn. Returns the number of bytes that the agent sent, and the bytes of chunks in the log.
fn play(batches: &[Vec<Value>]) -> (usize, usize) {
    let disk = Disk::new(1, BTreeMap::new());
    let mut world = World::new(disk.clone(), "first");
    world.ensure(SESSION);
    world.settle();
    world.prompt(SESSION, "turn");
    world.settle();
    let said = batches
        .iter()
        .map(|batch| world.agent_sends("first-1", batch))
        .sum();
    world.agent_ends_all();
    let bytes = &disk.logs()[SESSION].bytes;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let chunks = lines.filter(|line| line.starts_with(br#"{"record":"chunk""#));
    (said, chunks.map(<[u8]>::len).sum())
}

#[track_caller]
fn in_proportion(name: &str, things: usize, batches: &[Vec<Value>]) {
    at_most(2, name, things, batches);
}

#[track_caller]
fn at_most(times: usize, name: &str, things: usize, batches: &[Vec<Value>]) {
    let (said, logged) = play(batches);
    let limit = times * said + things * FREE;
    assert!(
        logged <= limit,
        "{name}: {logged} bytes of chunks for {said}"
    );
}

/// One large update for each tool, then many small ones.
fn repeated(tools: usize, large: &Value, small: impl Fn(usize) -> Value) -> Vec<Vec<Value>> {
    let mut batches = Vec::new();
    for tool in 0..tools {
        batches.push(vec![update(&format!("t{tool}"), large)]);
    }
    for n in 0..TIMES {
        let said = (0..tools).map(|tool| update(&format!("t{tool}"), &small(n)));
        batches.push(said.collect());
    }
    batches
}

/// Small update of round `n`.
type Small = fn(usize) -> Value;

#[test]
fn small_updates_do_not_repeat_large_tool_content() {
    let text = "0123456789abcdef".repeat(16 * 1024);
    let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let output = json!({ "terminal_output": { "terminal_id": "T", "data": text } });
    let larges = [
        (
            "input",
            json!({ "rawInput": { "text": text }, "status": "in_progress" }),
        ),
        (
            "content",
            json!({ "content": content, "status": "in_progress" }),
        ),
        (
            "output",
            json!({ "rawOutput": text, "status": "in_progress" }),
        ),
        (
            "completed",
            json!({ "content": content, "status": "completed" }),
        ),
        ("failed", json!({ "content": content, "status": "failed" })),
        (
            "meta",
            json!({ "_meta": { "large": text }, "status": "in_progress" }),
        ),
        ("other", json!({ "large": text, "status": "in_progress" })),
        (
            "terminal",
            json!({ "_meta": output, "status": "in_progress" }),
        ),
    ];
    let smalls: [(&str, Small); 7] = [
        ("title", |n| json!({ "title": format!("title {n}") })),
        (
            "status",
            |n| json!({ "status": (["pending", "in_progress"][n % 2]) }),
        ),
        (
            "ends",
            |n| json!({ "status": (["completed", "failed"][n % 2]) }),
        ),
        ("meta", |n| json!({ "_meta": { "n": n } })),
        ("field", |n| json!({ "odd": n })),
        (
            "details",
            |n| json!({ "_meta": { "terminal_exit": { "terminal_id": "T", "exit_code": n } } }),
        ),
        ("piece", |n| {
            json!({ "_meta": { "terminal_output": { "terminal_id": "T", "data": format!("{n}\n") } },
            "status": (["pending", "in_progress", "completed"][n % 3]) })
        }),
    ];
    let mut tried = 0;
    for (large_name, large) in &larges {
        for (small_name, small) in &smalls {
            let name = format!("{large_name}, then {small_name}");
            // A failure shows the content a second time, as its error text; a failure after a result is shown
            // beside it.
            let fails = *large_name == "failed" || *small_name == "ends";
            // The end of a call shows its content once more.
            let ends = *small_name == "piece";
            let most = match (fails, ends) {
                (true, _) => 6,
                (false, true) => 3,
                (false, false) => 2,
            };
            at_most(most, &name, 2, &repeated(2, large, small));
            tried += 1;
        }
    }
    assert_eq!(tried, 56);
}

#[test]
fn terminals_of_many_tools_are_shown_in_proportion() {
    let text = "a line of output\n".repeat(20_000);
    let own = |n: usize| format!("T{n}");
    let mut batches = Vec::new();
    for tool in 0..32 {
        let meta = json!({ "terminal_output": { "terminal_id": own(tool), "data": text } });
        batches.push(vec![update(
            &format!("t{tool}"),
            &json!({ "_meta": meta, "status": "in_progress" }),
        )]);
    }
    for n in 0..100 {
        for tool in 0..32 {
            let details = json!({ "terminal_exit": { "terminal_id": own(tool), "exit_code": n } });
            let status = ["pending", "in_progress"][n % 2];
            let small = update(
                &format!("t{tool}"),
                &json!({ "_meta": details, "status": status }),
            );
            batches.push(vec![small]);
        }
    }
    in_proportion("32 tools", 32, &batches);
}

#[test]
fn states_summaries_and_subagents_are_shown_in_proportion() {
    let text = "0123456789abcdef".repeat(16 * 1024);
    let commands = json!([{ "name": "c", "description": text }]);
    let mut states = vec![vec![
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands }),
    ]];
    let mut summaries = vec![vec![
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "large": text }),
    ]];
    let mut subagents = vec![vec![
        json!({ "sessionUpdate": "subagent_update", "sessionId": "child", "large": text }),
    ]];
    for n in 0..TIMES {
        states.push(vec![
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": format!("m{n}") }),
        ]);
        summaries.push(vec![
            json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c",
            "content": { "type": "text", "text": format!("{n}") } }),
        ]);
        subagents.push(vec![json!({ "sessionUpdate": "subagent_update", "sessionId": "child", "title": format!("{n}") })]);
    }
    for (name, batches) in [
        ("states", states),
        ("summaries", summaries),
        ("subagents", subagents),
    ] {
        in_proportion(name, 1, &batches);
    }
}

#[test]
fn random_tool_updates_are_shown_in_proportion() {
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let mut batches = Vec::new();
        for _ in 0..300 {
            let tool = format!("t{}", dice.below(3));
            let size = [3, 30, 300, 3000, 30_000, 60_000][dice.below(6)];
            let text = "x".repeat(dice.below(size));
            let fields = match dice.below(7) {
                0 => json!({ "title": text }),
                1 => json!({ "rawInput": { "a": text } }),
                2 => json!({ "rawOutput": text }),
                3 => json!({ "_meta": { "b": text } }),
                4 => {
                    json!({ "status": (["pending", "in_progress", "completed", "failed"][dice.below(4)]) })
                }
                5 => {
                    json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] })
                }
                _ => {
                    json!({ "_meta": { "terminal_output": { "terminal_id": tool, "data": text } } })
                }
            };
            batches.push(vec![update(&tool, &fields)]);
        }
        in_proportion(&format!("seed {seed}"), 3, &batches);
    }
}
