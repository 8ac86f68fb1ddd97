//! Situations in which an agent can send a message.

use crate::feed::{SESSION, Scene};
use crate::plant::{Instance, OTHER_WORD, Planted, PlantedValue, sentinel};
use crate::survey::BETWEEN_TURNS;
use serde_json::{Value, json};

/// Statuses of a tool; `None` is one that the schema does not have.
const STATUSES: [Option<&str>; 5] = [
    Some("completed"),
    Some("failed"),
    Some("in_progress"),
    Some("pending"),
    None,
];

/// A situation: the scene to play, and the values to look for.
#[derive(Debug, Clone)]
pub struct Situation {
    /// When the message comes; the first situation of a kind is the usual one.
    pub when: &'static str,
    /// The status of the tool, if there is one.
    pub status: &'static str,
    pub scene: Scene,
    pub instance: Instance,
}

fn scene(lines: Vec<Value>) -> Scene {
    Scene {
        approve: true,
        lines,
        answer: json!({ "stopReason": "end_turn" }),
        late: false,
    }
}

fn notification(params: &Value) -> Value {
    json!({ "method": "session/update", "params": params })
}

fn update(update: &Value) -> Value {
    notification(&json!({ "sessionId": SESSION, "update": update }))
}

fn question(params: &Value) -> Value {
    json!({ "id": 77, "method": "session/request_permission", "params": params })
}

/// A call that is reported in full.
fn call(id: &Value, status: &str) -> Value {
    update(&json!({
        "sessionUpdate": "tool_call", "toolCallId": id, "title": "first", "name": "tool",
        "kind": "other", "status": status, "rawInput": { "first": 1 },
    }))
}

/// Returns the situations of an update, which is `params` of a `session/update`.
pub fn of_update(mut instance: Instance, all: bool) -> Vec<Situation> {
    instance.json["sessionId"] = SESSION.into();
    let params = instance.json.clone();
    let own = &params["update"];
    let kind = own["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    if kind.starts_with("tool_call") {
        return of_tool(&instance, &kind, all);
    }
    let line = notification(&params);
    let situation = |when, lines: Vec<Value>| Situation {
        when,
        status: "",
        scene: scene(lines),
        instance: instance.clone(),
    };
    let mut situations = vec![situation("alone", vec![line.clone()])];
    if !all {
        return situations;
    }
    if let Some(other) = another(own) {
        let other = update(&other);
        let mut before = situation("before another", vec![line.clone(), other.clone()]);
        let planted = &mut before.instance.planted;
        // The other update replaces this status.
        planted.retain(|p| p.path != "compaction_update.status");
        situations.push(before);
        situations.push(situation("after another", vec![other, line.clone()]));
    }
    let mut between = situation(BETWEEN_TURNS, vec![line]);
    between.scene.late = true;
    situations.push(between);
    situations
}

/// Returns a minimal second update of the same item, which must not remove anything.
fn another(own: &Value) -> Option<Value> {
    let kind = own["sessionUpdate"].as_str()?;
    let text = json!({ "type": "text", "text": "more" });
    let mut fields = match kind {
        "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
            json!({ "messageId": own["messageId"], "content": text, "_meta": { "other": 1 } })
        }
        "compaction_summary_chunk" => {
            json!({ "compactionId": own["compactionId"], "content": text })
        }
        "compaction_update" => {
            json!({ "compactionId": own["compactionId"], "status": "completed" })
        }
        "session_message" => json!({ "messageId": own["messageId"] }),
        "session_message_chunk" => json!({ "messageId": own["messageId"], "content": text }),
        "subagent_update" => json!({ "sessionId": own["sessionId"] }),
        "session_info_update" => json!({ "_meta": { "other": 1 } }),
        "usage_update" => {
            json!({ "used": own["used"], "size": own["size"], "_meta": { "other": 1 } })
        }
        _ => return None,
    };
    fields["sessionUpdate"] = kind.into();
    Some(fields)
}

fn of_tool(instance: &Instance, kind: &str, all: bool) -> Vec<Situation> {
    let id = instance.json["update"]["toolCallId"].clone();
    let announced =
        update(&json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "first" }));
    let minimal = update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": id }));
    let ask = question(&json!({
        "sessionId": SESSION, "toolCall": { "toolCallId": id },
        "options": [{ "optionId": "y", "name": "yes", "kind": "allow_once" },
            { "optionId": "n", "name": "no", "kind": "reject_once" }],
    }));
    let story = |when, approve, before: &[&Value], after: &[&Value]| {
        let owned = |lines: &[&Value]| lines.iter().map(|&line| line.clone()).collect();
        (when, approve, owned(before), owned(after))
    };
    let mut stories: Vec<(&str, bool, Vec<Value>, Vec<Value>)> =
        vec![story("at first sight", true, &[], &[])];
    if all {
        stories.push(story("before another", true, &[], &[&minimal]));
        stories.push(story(BETWEEN_TURNS, true, &[], &[]));
    }
    if all && kind == "tool_call_update" {
        let [pending, running, completed, failed] =
            ["pending", "in_progress", "completed", "failed"].map(|status| call(&id, status));
        stories.extend([
            story("after an announcement", true, &[&announced], &[]),
            story("after the input", true, &[&running], &[]),
            story("after a permission", true, &[&pending, &ask], &[]),
            story("after a refusal", false, &[&pending, &ask], &[]),
            story("after the output", true, &[&completed], &[]),
            story("after a failure", true, &[&failed], &[]),
        ]);
    }
    let has_status = with_status(instance, kind, None).is_some();
    let statuses = if all && has_status { STATUSES.len() } else { 1 };
    let mut situations = Vec::new();
    for (when, approve, before, after) in stories {
        for status in &STATUSES[..statuses] {
            let changed = with_status(instance, kind, *status);
            let instance = changed.unwrap_or_else(|| instance.clone());
            let line = notification(&instance.json);
            let lines = [before.clone(), vec![line], after.clone()].concat();
            let late = when == BETWEEN_TURNS;
            situations.push(Situation {
                when,
                status: if has_status {
                    status.unwrap_or("of unknown status")
                } else {
                    ""
                },
                scene: Scene {
                    approve,
                    late,
                    ..scene(lines)
                },
                instance,
            });
        }
    }
    situations
}

/// Returns the instance with another status, if it has one that may change.
fn with_status(instance: &Instance, kind: &str, status: Option<&str>) -> Option<Instance> {
    let mut instance = instance.clone();
    let path = format!("{kind}.status");
    let is_status = |p: &&mut Planted| [&path, &format!("{path}{OTHER_WORD}")].contains(&&p.path);
    let planted = instance.planted.iter_mut().find(is_status)?;
    let word = status.map_or_else(sentinel, str::to_owned);
    instance.json["update"]["status"] = word.as_str().into();
    (planted.path, planted.what) = match status {
        Some(_) => (path, PlantedValue::Choice(word.into())),
        None => (format!("{path}{OTHER_WORD}"), PlantedValue::Text(word)),
    };
    Some(instance)
}

/// Returns the situations of a permission request.
pub fn of_question(mut instance: Instance, all: bool) -> Vec<Situation> {
    instance.json["sessionId"] = SESSION.into();
    if !all {
        return question_stories(&instance, false);
    }
    // The status and the options decide how a call ends: their values are looked for separately, all others
    // with the same status and options in all instances.
    let ends =
        |p: &Planted| p.path.contains("toolCall.status") || p.path.contains("options[].kind");
    let mut rest = instance.clone();
    rest.planted.retain(|p| !ends(p));
    if rest.json["toolCall"]["status"].is_string() {
        rest.json["toolCall"]["status"] = "pending".into();
    }
    for option in rest.json["options"].as_array_mut().into_iter().flatten() {
        option["kind"] = "allow_once".into();
    }
    instance.planted.retain(ends);
    let mut situations = question_stories(&rest, true);
    situations.extend(question_stories(&instance, true));
    situations
}

fn question_stories(instance: &Instance, all: bool) -> Vec<Situation> {
    let line = question(&instance.json);
    let id = instance.json["toolCall"]["toolCallId"].clone();
    let call = |status| call(&id, status);
    let stories = [
        ("at first sight, approved", true, vec![]),
        ("at first sight, refused", false, vec![]),
        ("after a call, approved", true, vec![call("in_progress")]),
        ("after a call, refused", false, vec![call("in_progress")]),
        ("after the output", true, vec![call("completed")]),
        ("after a failure", true, vec![call("failed")]),
        (BETWEEN_TURNS, true, vec![]),
    ];
    let mut situations = Vec::new();
    for (when, approve, mut lines) in stories {
        lines.push(line.clone());
        let late = when == BETWEEN_TURNS;
        situations.push(Situation {
            when,
            status: "",
            scene: Scene {
                approve,
                late,
                ..scene(lines)
            },
            instance: instance.clone(),
        });
        if !all {
            break;
        }
    }
    situations
}

/// Returns the situations of a response to a prompt.
pub fn of_answer(instance: Instance, _all: bool) -> Vec<Situation> {
    let scene = Scene {
        answer: instance.json.clone(),
        ..scene(vec![])
    };
    vec![Situation {
        when: "at the end",
        status: "",
        scene,
        instance,
    }]
}
