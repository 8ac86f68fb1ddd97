//! Rules of a chunk stream that every turn must keep.

use serde_json::Value;
use std::collections::HashMap;

/// Returns the first rule that a turn's chunks break.
pub fn check(chunks: &[Value]) -> Result<(), String> {
    let mut open: HashMap<String, &str> = HashMap::new();
    let mut tools: HashMap<&str, Tool> = HashMap::new();
    let mut step = false;
    let mut ended = false;
    for (n, chunk) in chunks.iter().enumerate() {
        let kind = chunk["type"].as_str().unwrap_or_default();
        let fault = |why: &str| Err(format!("chunk {n} ({kind}): {why}"));
        if (n == 0) != (kind == "start") {
            return fault("start is the first chunk and no other");
        }
        if ended {
            return fault("nothing follows the end");
        }
        match kind {
            "start-step" => step = true,
            "finish-step" if !open.is_empty() => return fault("a block is open"),
            "finish-step" => step = false,
            "text-start" | "reasoning-start" => {
                let id = chunk["id"].as_str().unwrap_or_default();
                if open.insert(id.to_owned(), kind).is_some() {
                    return fault("the block is open already");
                }
            }
            "text-delta" | "reasoning-delta" | "text-end" | "reasoning-end" => {
                let id = chunk["id"].as_str().unwrap_or_default();
                let role = kind.split('-').next();
                if open.get(id).and_then(|k| k.split('-').next()) != role {
                    return fault("no such block is open");
                }
                if kind.ends_with("-end") {
                    open.remove(id);
                }
            }
            "finish" | "abort" | "error" => {
                ended = true;
                if step || !open.is_empty() {
                    return fault("a step or block is open");
                }
                if let Some((id, _)) = tools.iter().find(|(_, t)| !t.settled) {
                    return fault(&format!("tool {id} is not settled"));
                }
            }
            _ if kind.starts_with("tool-") => {
                tool(chunk, kind, &mut tools)
                    .map_err(|why| format!("chunk {n} ({kind}): {why}"))?;
            }
            _ => {}
        }
    }
    if ended {
        Ok(())
    } else {
        Err("the turn has no end".to_owned())
    }
}

#[derive(Default)]
struct Tool {
    input: bool,
    output: bool,
    approved: Option<bool>,
    settled: bool,
}

fn tool<'a>(
    chunk: &'a Value,
    kind: &str,
    tools: &mut HashMap<&'a str, Tool>,
) -> Result<(), &'static str> {
    if kind == "tool-approval-response" {
        let approved = chunk["approved"].as_bool();
        // Requests are answered at once, so the response belongs to the last tool that needed approval.
        for tool in tools
            .values_mut()
            .filter(|t| t.approved == Some(false) && !t.settled)
        {
            tool.approved = approved;
        }
        return Ok(());
    }
    let id = chunk["toolCallId"].as_str().unwrap_or_default();
    let opens = kind == "tool-input-start" || kind == "tool-input-available";
    if opens && (chunk["dynamic"] != true || chunk["providerExecuted"] != true) {
        return Err("dynamic and providerExecuted are missing");
    }
    if !opens && !tools.contains_key(id) {
        return Err("the tool was never shown");
    }
    let tool = tools.entry(id).or_default();
    match kind {
        "tool-input-delta" | "tool-input-error" => {
            if tool.input || tool.settled {
                return Err("no input is written");
            }
            tool.settled = kind == "tool-input-error";
        }
        "tool-input-start" | "tool-input-available" => {
            if tool.output || tool.settled || tool.approved.is_some() {
                return Err("the input comes after an output or approval");
            }
            tool.input |= kind == "tool-input-available";
        }
        "tool-approval-request" => {
            if !tool.input || tool.output || tool.settled {
                return Err("an approval needs an input and no output");
            }
            tool.approved = Some(false);
        }
        "tool-output-denied" => {
            if tool.approved != Some(false) {
                return Err("denied without a refused approval");
            }
            tool.settled = true;
        }
        _ => {
            if !tool.input {
                return Err("an output without input");
            }
            if tool.approved == Some(false) {
                return Err("an output although the approval was refused");
            }
            tool.output = true;
            tool.settled = chunk["preliminary"] != true;
        }
    }
    Ok(())
}
