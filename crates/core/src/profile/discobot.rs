//! Chunks in the form of discobot's ACP generation, for a user interface that was built on it: names of tools,
//! ids of blocks, outputs, and plans as a tool. Everything else is as in profile 6.
//!
//! Each chunk is converted by itself, so that live chunks, replays and stored messages agree.

use serde_json::{Map, Value, json};

const PLAN_TOOL: &str = "TodoWrite";

/// Name of a tool without a name and a title.
const UNNAMED: &str = "unknown";

/// Passes the chunks that stand for a chunk of profile 6 to `emit`, in order.
pub fn adapt(mut chunk: Value, emit: &mut dyn FnMut(Value)) {
    let Some(fields) = chunk.as_object_mut() else {
        emit(chunk);
        return;
    };
    let kind = fields.get("type").and_then(Value::as_str);
    match kind.unwrap_or_default() {
        "data-plan" => return plan(fields, emit),
        "text-start" | "text-delta" | "text-end" => rename_block("text", fields),
        "reasoning-start" | "reasoning-delta" | "reasoning-end" => {
            rename_block("reasoning", fields);
        }
        "tool-input-start" | "tool-input-available" | "tool-input-error" => name_tool(fields),
        "tool-output-available" => set_output(fields),
        _ => {}
    }
    emit(chunk);
}

/// Shows a plan as a call of a tool that ends at once.
fn plan(fields: &mut Map<String, Value>, emit: &mut dyn FnMut(Value)) {
    let id = fields.remove("id").unwrap_or_default();
    let data = fields.remove("data").unwrap_or_default();
    let output = data.get("entries").cloned().unwrap_or(data);
    let call = |kind: &str| {
        json!({
            "type": kind, "toolCallId": id, "toolName": PLAN_TOOL, "title": "Plan",
            "dynamic": true, "providerExecuted": true,
        })
    };
    emit(call("tool-input-start"));
    let mut available = call("tool-input-available");
    available["input"] = json!({});
    emit(available);
    emit(json!({
        "type": "tool-output-available", "toolCallId": id, "output": output,
        "dynamic": true, "providerExecuted": true,
    }));
}

/// Converts the id of a block: `<message>.<n>` becomes `<kind>-<message>-<n>`.
fn rename_block(kind: &str, fields: &mut Map<String, Value>) {
    let id = fields.get("id").and_then(Value::as_str);
    if let Some((message, number)) = id.and_then(|id| id.rsplit_once('.')) {
        let id = format!("{kind}-{message}-{number}");
        fields.insert("id".to_owned(), id.into());
    }
}

/// Returns the name of the dialect and the state of the tool call.
fn state(fields: &Map<String, Value>) -> Option<(&String, &Value)> {
    fields.get("toolMetadata")?.as_object()?.iter().next()
}

/// Returns a member of `_meta.claudeCode`, which the ACP adapter of Claude Code adds to tool calls.
fn of_claude_code<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let (_, state) = state(fields)?;
    state.get("_meta")?.get("claudeCode")?.get(name)
}

/// Names a tool as in `_meta`, else by its title. The Claude Code CLI itself names its tools.
fn name_tool(fields: &mut Map<String, Value>) {
    if state(fields).is_some_and(|(dialect, _)| dialect == "claude") {
        return;
    }
    let named = of_claude_code(fields, "toolName").filter(|name| name.is_string());
    let name = named.or(fields.get("title")).cloned();
    fields.insert(
        "toolName".to_owned(),
        name.unwrap_or_else(|| UNNAMED.into()),
    );
}

/// Replaces the output `{content, rawOutput, …}` with the raw output, else the response in `_meta`, else the
/// text of the content. Without any of them the output is `null`. Content that is more than this text stays
/// in the metadata.
fn set_output(fields: &mut Map<String, Value>) {
    let output = fields.remove("output").unwrap_or_default();
    let part = |name: &str| output.get(name).filter(|part| !part.is_null()).cloned();
    let content = part("content");
    let (text, is_text_only) = texts(content.as_ref());
    let response = || of_claude_code(fields, "toolResponse").cloned();
    let raw = part("rawOutput").or_else(response);
    let keeps_content = raw.is_some() || !is_text_only;
    let rest = || part("terminalOutput").or_else(|| part("note"));
    let output = raw.or_else(|| text.map(Value::from)).or_else(rest);
    // The AI SDK refuses a stream with a chunk that has no output.
    fields.insert("output".to_owned(), output.unwrap_or_default());
    let metadata = fields
        .get_mut("toolMetadata")
        .and_then(Value::as_object_mut);
    let state = metadata.and_then(|named| named.values_mut().next());
    if let (Some(Value::Object(state)), Some(content), true) = (state, content, keeps_content) {
        state.insert("content".to_owned(), content);
    }
}

/// Returns the joined texts of content blocks, and whether they are all of the content.
fn texts(content: Option<&Value>) -> (Option<String>, bool) {
    let blocks = content.and_then(Value::as_array);
    let all = blocks.map_or(0, Vec::len);
    let text = |block: &Value| Some(block.get("content")?.get("text")?.as_str()?.to_owned());
    let texts: Vec<String> = blocks.into_iter().flatten().filter_map(text).collect();
    let is_all = texts.len() == all;
    ((!texts.is_empty()).then(|| texts.join("\n")), is_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(chunk: Value) -> Vec<Value> {
        let mut chunks = Vec::new();
        adapt(chunk, &mut |chunk| chunks.push(chunk));
        chunks
    }

    #[test]
    fn diffs_stay_in_the_metadata() {
        let diff = json!([{"type": "diff", "path": "/a", "newText": "x"}]);
        let chunk = json!({"type": "tool-output-available", "output": {"content": diff},
            "toolMetadata": {"acp": {"status": "completed"}}});
        let want = json!({"type": "tool-output-available", "output": null,
            "toolMetadata": {"acp": {"status": "completed", "content": diff}}});
        assert_eq!(adapted(chunk), [want]);
    }

    #[test]
    fn tools_of_the_cli_keep_their_names() {
        let chunk = json!({"type": "tool-input-start", "toolName": "Bash", "title": "ls",
            "toolMetadata": {"claude": {}}});
        assert_eq!(adapted(chunk.clone()), [chunk]);
    }

    #[test]
    fn plan_of_another_form_is_the_output() {
        let chunk = json!({"type": "data-plan", "id": "p", "data": {"removed": true}});
        let chunks = adapted(chunk);
        assert_eq!(chunks[2]["output"], json!({"removed": true}));
        assert!(chunks.iter().all(|chunk| chunk["toolCallId"] == "p"));
    }

    #[test]
    fn other_chunks_are_unchanged() {
        for chunk in [
            json!({"type": "finish"}),
            json!({"type": "data-x", "id": "m.1"}),
            json!(7),
        ] {
            assert_eq!(adapted(chunk.clone()), [chunk]);
        }
    }
}
