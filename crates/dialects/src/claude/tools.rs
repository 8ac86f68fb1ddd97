//! Tools of the CLI: their names and kinds, and the titles and files of their calls.

use acpipe_json::{Members, non_null, raw_object, text, to_raw, value};
use acpipe_model::tool_names::{BUILTIN, mcp};
use acpipe_protocol::claude::{FileResult, Hunk};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Tools that the model's provider runs.
const SERVER: &[(&str, &str)] = &[
    ("bash_code_execution", "execute"),
    ("code_execution", "execute"),
    ("text_editor_code_execution", "edit"),
    ("tool_search_tool_bm25", "search"),
    ("tool_search_tool_regex", "search"),
    ("web_fetch", "fetch"),
    ("web_search", "fetch"),
];

/// Returns the kind of a tool in ACP's terms.
pub fn kind(name: &str) -> &'static str {
    let known = BUILTIN.iter().chain(SERVER).find(|(n, _)| *n == name);
    known.map_or("other", |(_, kind)| kind)
}

raw_object! {
    /// Input fields of the built-in tools that are used for titles and files.
    struct Input {
        file_path = "file_path",
        notebook_path = "notebook_path",
        path = "path",
        command = "command",
        pattern = "pattern",
        url = "url",
        query = "query",
        description = "description",
        skill = "skill",
        subject = "subject",
        offset = "offset",
        todos = "todos",
        questions = "questions",
        content = "content",
        old_string = "old_string",
        new_string = "new_string",
        edits = "edits",
    }
}

impl<'a> Input<'a> {
    fn of(input: &'a RawValue) -> Self {
        serde_json::from_str(input.get()).unwrap_or_default()
    }

    fn file(&self) -> Option<String> {
        let path = text(self.file_path.or(self.notebook_path));
        path.filter(|path| !path.is_empty()).map(Into::into)
    }
}

/// Returns the title of a call; the name alone if its input is unknown.
pub fn title(name: &str, input: Option<&RawValue>) -> String {
    let shown = match mcp(name) {
        Some((server, tool)) if !tool.is_empty() => format!("{server}: {tool}"),
        _ => name.to_owned(),
    };
    let Some(input) = input.map(Input::of) else {
        return shown;
    };
    let with = |said: Option<&RawValue>| {
        let said = text(said).filter(|said| !said.trim().is_empty());
        said.map(|said| format!("{name} {said}"))
    };
    let alone = |said: Option<&RawValue>| {
        let said = text(said).filter(|said| !said.trim().is_empty());
        said.map(std::borrow::Cow::into_owned)
    };
    let told = match name {
        "Bash" | "PowerShell" | "Monitor" => alone(input.command.or(input.description)),
        "Task" | "Agent" => alone(input.description),
        "TaskCreate" => alone(input.subject),
        "AskUserQuestion" => value(input.questions.unwrap_or(RawValue::NULL))[0]["question"]
            .as_str()
            .map(str::to_owned),
        "Grep" | "Glob" => with(input.pattern).map(|title| match text(input.path) {
            Some(path) => format!("{title} in {path}"),
            None => title,
        }),
        "LS" => with(input.path),
        "WebFetch" | "web_fetch" => with(input.url),
        "WebSearch" | "ToolSearch" | "web_search" => with(input.query),
        "Skill" => with(input.skill),
        _ if mcp(name).is_none() => input.file().map(|path| format!("{name} {path}")),
        _ => None,
    };
    told.unwrap_or(shown)
}

/// Returns the locations of a call in ACP's form.
pub fn locations(name: &str, input: &RawValue) -> Option<Box<RawValue>> {
    let input = Input::of(input);
    let path = match name {
        "Grep" | "Glob" | "LS" => text(input.path).map(Into::into),
        _ if mcp(name).is_some() => None,
        _ => input.file(),
    }?;
    let line: Option<u64> = input
        .offset
        .and_then(|o| serde_json::from_str(o.get()).ok());
    Some(to_raw(&match line {
        Some(line) => json!([{"path": path, "line": line}]),
        None => json!([{"path": path}]),
    }))
}

/// Returns the plan of a `TodoWrite` call in ACP's form.
pub fn plan(name: &str, input: &RawValue) -> Option<Members<'static>> {
    let Value::Array(todos) = value(Input::of(input).todos.filter(|_| name == "TodoWrite")?) else {
        return None;
    };
    let entry = |mut todo: Value| {
        if let Some(todo) = todo.as_object_mut() {
            todo.entry("priority").or_insert_with(|| "medium".into());
        }
        todo
    };
    let entries: Vec<Value> = todos.into_iter().map(entry).collect();
    let mut data = Members::default();
    data.set_owned("entries", &entries);
    Some(data)
}

fn file_result(result: Option<&RawValue>) -> Option<(FileResult<'_>, String)> {
    let result: FileResult<'_> = serde_json::from_str(result?.get()).ok()?;
    let path = text(result.path)?.into_owned();
    Some((result, path))
}

/// Returns the changes that a call is about to make in a file, in ACP's form.
pub fn planned_diffs(name: &str, input: &RawValue) -> Vec<Value> {
    let input = Input::of(input);
    let Some(path) = text(input.file_path) else {
        return Vec::new();
    };
    let diff = |old: Value, new: Value| {
        let diff = json!({"type": "diff", "path": path, "oldText": old, "newText": new});
        diff["newText"].is_string().then_some(diff)
    };
    let told = |raw: Option<&RawValue>| raw.map_or(Value::Null, value);
    let edits: Vec<Option<Value>> = match name {
        "Write" => vec![diff(Value::Null, told(input.content))],
        "Edit" => vec![diff(told(input.old_string), told(input.new_string))],
        "MultiEdit" => {
            let edits = told(input.edits);
            let edit = |edit: &Value| diff(edit["old_string"].clone(), edit["new_string"].clone());
            array(&edits).map(edit).collect()
        }
        _ => Vec::new(),
    };
    edits.into_iter().flatten().collect()
}

fn array(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the changes that a tool made in a file, in ACP's form: each hunk of the patch, or the whole file
/// if it is new.
pub fn diffs(result: Option<&RawValue>) -> Vec<Value> {
    let Some((result, path)) = file_result(result) else {
        return Vec::new();
    };
    let diff = |old: Value, new: Value| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    let hunks: Vec<Hunk<'_>> = non_null(result.patch)
        .and_then(|patch| serde_json::from_str(patch.get()).ok())
        .unwrap_or_default();
    if !hunks.is_empty() {
        let side = |hunk: &Hunk<'_>, other: char| {
            let lines: Vec<String> = hunk
                .lines
                .and_then(|lines| serde_json::from_str(lines.get()).ok())
                .unwrap_or_default();
            let lines = lines.iter().filter(|line| !line.starts_with([other, '\\']));
            let lines: Vec<&str> = lines
                .map(|line| line.get(1..).unwrap_or_default())
                .collect();
            Value::from(lines.join("\n"))
        };
        let both = |hunk: &Hunk<'_>| diff(side(hunk, '+'), side(hunk, '-'));
        return hunks.iter().map(both).collect();
    }
    let whole = |raw: Option<&RawValue>| non_null(raw).map_or(Value::Null, value);
    match (result.new, result.content) {
        (Some(new), _) => vec![diff(whole(result.old), value(new))],
        (None, Some(new)) if new.get().starts_with('"') => {
            vec![diff(whole(result.original), value(new))]
        }
        _ => Vec::new(),
    }
}

/// Returns the locations that a tool changed, in ACP's form; `None` if the result does not have them.
pub fn changed(result: Option<&RawValue>) -> Option<Box<RawValue>> {
    let (result, path) = file_result(result)?;
    let hunks: Vec<Hunk<'_>> = serde_json::from_str(non_null(result.patch)?.get()).ok()?;
    let place = |hunk: &Hunk<'_>| json!({"path": path, "line": hunk.new_start.map(value)});
    (!hunks.is_empty()).then(|| to_raw(&hunks.iter().map(place).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn calls_have_kinds_titles_and_places() {
        for (name, input, want_kind, want_title, places) in [
            (
                "Read",
                r#"{"file_path":"/a","offset":3}"#,
                "read",
                "Read /a",
                Some(r#"[{"path":"/a","line":3}]"#),
            ),
            (
                "Edit",
                r#"{"file_path":"/a"}"#,
                "edit",
                "Edit /a",
                Some(r#"[{"path":"/a"}]"#),
            ),
            (
                "Bash",
                r#"{"command":"ls","description":"list"}"#,
                "execute",
                "ls",
                None,
            ),
            ("Bash", "{}", "execute", "Bash", None),
            ("Bash", "null", "execute", "Bash", None),
            (
                "Grep",
                r#"{"pattern":"x","path":"/b"}"#,
                "search",
                "Grep x in /b",
                Some(r#"[{"path":"/b"}]"#),
            ),
            (
                "Agent",
                r#"{"description":"say hi"}"#,
                "think",
                "say hi",
                None,
            ),
            ("WebFetch", r#"{"url":"u"}"#, "fetch", "WebFetch u", None),
            ("ExitPlanMode", "{}", "switch_mode", "ExitPlanMode", None),
            (
                "mcp__files__move_it",
                r#"{"path":"/a","file_path":"/a"}"#,
                "other",
                "files: move_it",
                None,
            ),
            (
                "AskUserQuestion",
                r#"{"questions":[{"question":"Which?"}]}"#,
                "other",
                "Which?",
                None,
            ),
            ("AskUserQuestion", "{}", "other", "AskUserQuestion", None),
            ("Novel", r#"{"file_path":7}"#, "other", "Novel", None),
        ] {
            let input = raw(input);
            assert_eq!(kind(name), want_kind, "{name}");
            assert_eq!(title(name, Some(input)), want_title, "{name}");
            let at = locations(name, input);
            assert_eq!(at.as_deref().map(RawValue::get), places, "{name}");
        }
        assert_eq!(title("Read", None), "Read");
        let todos = raw(r#"{"todos":[{"content":"a","status":"pending","activeForm":"b"}]}"#);
        let entries = r#"{"entries":[{"content":"a","status":"pending","activeForm":"b","priority":"medium"}]}"#;
        let plan_of = |name| plan(name, todos).map(|plan| to_raw(&plan).get().to_owned());
        assert_eq!(plan_of("TodoWrite").as_deref(), Some(entries));
        assert_eq!(plan_of("Other"), None);
    }

    #[test]
    fn edits_are_shown_before_they_are_made() {
        for (name, input, want) in [
            (
                "Write",
                r#"{"file_path":"/a","content":"b"}"#,
                json!([[null, "b"]]),
            ),
            (
                "Edit",
                r#"{"file_path":"/a","old_string":"b","new_string":"c"}"#,
                json!([["b", "c"]]),
            ),
            (
                "MultiEdit",
                r#"{"file_path":"/a","edits":[{"old_string":"b","new_string":"c"},7]}"#,
                json!([["b", "c"]]),
            ),
            ("Write", r#"{"file_path":"/a"}"#, json!([])),
            ("Write", r#"{"content":"b"}"#, json!([])),
            ("Read", r#"{"file_path":"/a","content":"b"}"#, json!([])),
        ] {
            let diffs = planned_diffs(name, raw(input));
            let sides = diffs.iter().map(|diff| {
                assert_eq!(
                    (&diff["type"], &diff["path"]),
                    (&json!("diff"), &json!("/a"))
                );
                json!([diff["oldText"], diff["newText"]])
            });
            assert_eq!(sides.collect::<Value>(), want, "{name} {input}");
        }
    }
}
