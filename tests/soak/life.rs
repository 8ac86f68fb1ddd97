//! A long run: turns in many sessions at once, some cancelled, some ended by a crash.

use crate::Dice;
use crate::client::{Client, Message};
use crate::sample::{Sample, assert_flat};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Number of turns that run at the same time.
const AT_ONCE: usize = 50;

/// Number of prompts that an agent takes before it crashes.
const LIFE_OF_AN_AGENT: usize = 400;

/// Number of turns after which a session's messages are cleared: the memory of a history grows with its
/// length.
const HISTORY: u32 = 10;

/// Text with which the agent asks to be cancelled.
const ENOUGH: &str = "enough! ";

fn say(text: &str) -> Value {
    json!({"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
}

/// Script of an agent that sends much text, uses a tool, sometimes asks to be cancelled, and finally crashes.
fn script() -> Value {
    let mut dice = Dice(1);
    let tool = json!({"update": {"sessionUpdate": "tool_call", "toolCallId": "{id}", "title": "Look",
        "kind": "read", "status": "in_progress", "rawInput": {"at": 1}}});
    let done = json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "{id}",
        "status": "completed", "rawOutput": "there"}});
    let mut run = || {
        let words = 10 + dice.below(50);
        let mut steps = vec![
            json!({"repeat": {"times": words, "steps": [say("word{i} ")]}}),
            tool.clone(),
            json!({"sleep": dice.below(5)}),
            done.clone(),
            json!({"repeat": {"times": 10, "steps": [say("end{i} "), {"sleep": 1}]}}),
        ];
        let stop = if dice.one_in(10) {
            steps.extend([say(ENOUGH), json!({"wait": "session/cancel"})]);
            "cancelled"
        } else {
            "end_turn"
        };
        steps.push(json!({"reply": {"stopReason": stop}}));
        json!(steps)
    };
    let mut runs: Vec<Value> = (0..LIFE_OF_AN_AGENT).map(|_| run()).collect();
    runs.push(json!([say("oh"), {"exit": 3}]));
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": runs,
    })
}

struct Turn {
    session: String,
    text: String,
}

pub fn live(updates: usize, sessions: usize) {
    let mut dice = Dice(7);
    let mut client = Client::start("life", &script());
    let mut idle: Vec<String> = (0..sessions).map(|n| format!("s{n}")).collect();
    for session in &idle {
        let answer = client.call("session/ensure", &json!({"sessionId": session}));
        assert!(answer["result"].is_object(), "{answer}");
    }
    let mut turns: HashMap<u64, Turn> = HashMap::new();
    let mut of_session: HashMap<String, u64> = HashMap::new();
    let mut histories: HashMap<String, u32> = HashMap::new();
    let mut others: u64 = 0;
    let mut done = 0;
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    let mut samples = Vec::new();
    let since = Instant::now();
    while done < updates || !turns.is_empty() || others > 0 {
        while done < updates && turns.len() < AT_ONCE && !idle.is_empty() {
            let at = usize::try_from(dice.below(idle.len() as u64)).unwrap();
            let session = idle.swap_remove(at);
            let prompt = json!({"sessionId": session, "message": "go on"});
            let id = client.send("session/prompt", &prompt);
            of_session.insert(session.clone(), id);
            let text = String::new();
            turns.insert(id, Turn { session, text });
            if dice.one_in(20) {
                let session = &turns[&id].session;
                client.send("session/cancel", &json!({"sessionId": session}));
                others += 1;
            }
            if dice.one_in(1000) {
                let set = json!({"set": {"ROUND": done.to_string()}});
                client.send("agent/updateEnvironment", &set);
                others += 1;
            }
        }
        if dice.one_in(20_000) {
            // The client pauses for a moment.
            std::thread::sleep(Duration::from_millis(300));
        }
        match client.next() {
            Message::Chunk { session, chunk } => {
                let Some(id) = of_session.get(&session) else {
                    continue;
                };
                done += usize::from(chunk["type"] == "tool-output-available");
                let Some(delta) = chunk["delta"].as_str() else {
                    continue;
                };
                done += delta.matches(' ').count();
                turns.get_mut(id).unwrap().text += delta;
                if delta.ends_with(ENOUGH) {
                    client.send("session/cancel", &json!({"sessionId": session}));
                    others += 1;
                }
            }
            Message::Answer { id, answer } => {
                let Some(turn) = turns.remove(&id) else {
                    assert!(answer["result"].is_object(), "{answer}");
                    others -= 1;
                    continue;
                };
                let ending = match answer.get("result") {
                    Some(summary) => {
                        assert_eq!(summary["text"], turn.text, "{summary}");
                        let failed = summary["errors"][0]["kind"].as_str();
                        failed.unwrap_or_else(|| summary["stopReason"].as_str().unwrap())
                    }
                    None => answer["error"]["data"]["kind"].as_str().unwrap(),
                };
                *endings.entry(ending.to_owned()).or_default() += 1;
                of_session.remove(&turn.session);
                let history = histories.entry(turn.session.clone()).or_default();
                *history += 1;
                if history.is_multiple_of(HISTORY) {
                    let session = json!({"sessionId": turn.session});
                    client.send("message/clear", &session);
                    others += 1;
                }
                idle.push(turn.session);
            }
            Message::Other => {}
        }
        if done >= (samples.len() + 1) * updates / 20 {
            let sample = Sample::take(client.pid(), client.alive());
            println!("{:>9.1?} {done:>9} {sample:?}", since.elapsed());
            samples.push(sample);
        }
    }
    println!(
        "{:.1?}: {done} updates, endings {endings:?}",
        since.elapsed()
    );
    assert!(
        endings["end_turn"] > 0 && endings["cancelled"] > 0,
        "{endings:?}"
    );
    assert_flat(&samples);
    client.finish();
}
