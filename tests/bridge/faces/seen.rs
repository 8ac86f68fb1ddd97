//! Short descriptions of what a face shows.

use serde_json::Value;

/// Describes chunks: a word for each, with texts of the same kind joined.
pub fn chunks(chunks: &[Value]) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut delta = String::new();
    for chunk in chunks {
        let kind = chunk["type"].as_str().unwrap_or("?");
        if let Some(more) = chunk["delta"].as_str() {
            delta += more;
            continue;
        }
        match kind {
            "start" | "start-step" | "finish-step" | "text-start" | "reasoning-start"
            | "data-session" | "message-metadata" => {}
            "text-end" => seen.push(format!("text {:?}", std::mem::take(&mut delta))),
            "reasoning-end" => seen.push(format!("reasoning {:?}", std::mem::take(&mut delta))),
            _ => {
                seen.extend(open_block(&mut delta));
                seen.push(one(kind, chunk));
            }
        }
    }
    seen.extend(open_block(&mut delta));
    joined(seen)
}

/// Describes the text of a block that has not ended.
fn open_block(delta: &mut String) -> Option<String> {
    let text = std::mem::take(delta);
    (!text.is_empty()).then(|| format!("open block {text:?}"))
}

fn one(kind: &str, chunk: &Value) -> String {
    let words = [
        "toolName",
        "errorText",
        "finishReason",
        "mediaType",
        "approved",
        "isAutomatic",
    ];
    let mut seen = kind.to_owned();
    for word in words {
        if let Some(text) = scalar(&chunk[word]) {
            seen.extend([" ", &text]);
        }
    }
    for word in ["memory", "title", "action", "rule", "stopReason"] {
        if let Some(text) = scalar(&chunk["data"][word]) {
            seen.extend([" ", &text]);
        }
    }
    seen
}

/// Describes AG-UI events, with the pieces of a text joined.
pub fn events(events: &[Value]) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut last = "";
    for event in events {
        let kind = event["type"].as_str().unwrap_or("?");
        let text = ["delta", "toolCallName", "message", "content", "name"]
            .iter()
            .find_map(|member| scalar(&event[*member]));
        match (kind, text) {
            ("STEP_STARTED" | "STEP_FINISHED" | "STATE_SNAPSHOT" | "RUN_STARTED", _) => {}
            (kind, Some(more)) if kind == last && kind.ends_with("_CONTENT") => {
                seen.last_mut().unwrap().push_str(&more);
            }
            (kind, text) => {
                seen.push(text.map_or(kind.to_owned(), |text| format!("{kind} {text}")));
            }
        }
        last = kind;
    }
    joined(seen)
}

/// Describes updates of ACP, with the pieces of a text joined.
pub fn updates(updates: &[Value]) -> String {
    let mut seen: Vec<(&str, String)> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().unwrap_or("?");
        if let Some(more) = update["content"]["text"].as_str() {
            match seen.last_mut() {
                Some((last, text)) if *last == kind => text.push_str(more),
                _ => seen.push((kind, more.to_owned())),
            }
            continue;
        }
        let words = ["title", "status", "currentModeId"];
        let words = words.iter().filter_map(|member| scalar(&update[*member]));
        let words: Vec<String> = words.chain(scalar(&update["content"]["type"])).collect();
        seen.push((kind, words.join(" ")));
    }
    let seen = seen
        .into_iter()
        .map(|(kind, text)| format!("{kind} {text}"));
    joined(seen.map(|text| text.trim_end().to_owned()).collect())
}

/// Describes the result of a prompt, or its error.
pub fn summary(summary: &Value) -> String {
    let mut seen = Vec::new();
    for member in ["stopReason", "text", "isError"] {
        if let Some(text) = scalar(&summary[member]) {
            seen.push(format!("{member} {text}"));
        }
    }
    for error in summary["errors"].as_array().into_iter().flatten() {
        let kind = scalar(&error["kind"]).unwrap_or_default();
        let message = scalar(&error["message"]).unwrap_or_default();
        seen.push(format!("error {kind}: {message}"));
    }
    for file in summary["files"].as_array().into_iter().flatten() {
        seen.push(format!(
            "file {}",
            scalar(&file["mediaType"]).unwrap_or_default()
        ));
    }
    joined(seen)
}

/// Describes how a session was restored.
pub fn receipt(receipt: &Value) -> String {
    let [rung, memory] = ["rung", "memory"].map(|member| scalar(&receipt[member]));
    let [rung, memory] = [rung, memory].map(Option::unwrap_or_default);
    format!("receipt: {rung}, memory {memory}")
}

/// Describes a request or notification about other clients, or about the request of a permission.
pub fn notification(message: &Value) -> Option<String> {
    let params = &message["params"];
    match message["method"].as_str()? {
        "session/presence" => {
            let clients = params["clients"].as_array()?.len();
            Some(format!("`session/presence` {clients}"))
        }
        "session/userMessage" => Some("`session/userMessage`".to_owned()),
        "$/cancelRequest" => {
            let by = scalar(&params["by"]).unwrap_or_default();
            Some(format!("`$/cancelRequest` {by}"))
        }
        method => message.get("id").map(|_| format!("asks `{method}`")),
    }
}

/// Describes a JSON-RPC error.
pub fn error(error: &Value) -> String {
    let kind = scalar(&error["data"]["kind"]).unwrap_or_default();
    let message = scalar(&error["message"]).unwrap_or_default();
    format!("error {kind} {}: {message}", error["code"])
}

/// Describes output of a program: its lines, and the exit code.
pub fn output(stdout: &str, stderr: &str, code: Option<i32>) -> String {
    let mut seen = Vec::new();
    for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<String> = lines.map(|line| format!("`{}`", line.trim())).collect();
        if !lines.is_empty() {
            seen.push(format!("{name} {}", lines.join(" ")));
        }
    }
    let code = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    seen.push(format!("exit {code}"));
    joined(seen)
}

/// Describes what a terminal shows.
pub fn screen(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            plain.push(c);
            continue;
        }
        // A control sequence ends with a letter, and a title with a bell.
        let ends = |c: &char| c.is_ascii_alphabetic() || *c == '\x07';
        while rest.next_if(|c| !ends(c)).is_some() {}
        rest.next();
    }
    let is_usual = |line: &str| {
        let usual = ["> go", "acpipe: /help lists", "acpipe: continue with"];
        matches!(line, "" | ">" | "go") || usual.iter().any(|text| line.starts_with(text))
    };
    // Log lines come at any time, also behind text whose line has not ended.
    let plain = plain.replace("WARN ", "\nWARN ");
    let lines = plain.lines().map(str::trim).filter(|line| !is_usual(line));
    let (logged, shown): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("WARN "));
    let lines = shown.into_iter().chain(logged);
    lines
        .map(|line| format!("`{line}`"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Joins descriptions; equal ones in a row count once.
pub fn joined(mut seen: Vec<String>) -> String {
    seen.retain(|text| !text.is_empty());
    seen.dedup();
    seen.join(" · ")
}
