//! Permission question for a tool call.

use super::diff::{DiffLine, diff};
use super::keys::Keys;
use super::prompt_view::{PromptView, short};
use super::{NextStep, until};
use acpipe_protocol::wire::{AskedTool, PermissionParams};
use serde_json::{Value, json};

/// Maximum number of lines of a diff or of another part of a call.
const MOST: usize = 40;

/// Maximum length of a tool's name in characters.
const NAME: usize = 60;

/// Permission request with its keys.
#[derive(Debug)]
pub struct PermissionQuestion {
    params: PermissionParams,
    keys: Keys,
}

impl PermissionQuestion {
    pub fn new(params: &PermissionParams) -> Self {
        Self {
            keys: Keys::new(&params.options),
            params: params.clone(),
        }
    }

    pub fn show(&self, view: &mut PromptView) {
        let tool = &self.params.tool_call;
        let name = short(&tool.tool_name, NAME);
        view.line(&format!("\x1b[1macpipe: may the agent use {name}?\x1b[0m"));
        show_tool(tool, view);
        self.show_parsed_subject(view);
        let rule = short(&self.params.rule, MOST * 2);
        let until = until(self.params.deadline_ms, "the policy decides");
        view.line(&format!("  Asked because of {rule}{until}"));
        self.keys.show(view);
    }

    /// Shows the command and the paths that acpipe parsed from the call, or from the calls it stands for,
    /// unless the agent's own description already shows them.
    fn show_parsed_subject(&self, view: &mut PromptView) {
        let tool = &self.params.tool_call;
        let texts = [&tool.input, &tool.content, &tool.locations].map(|part| {
            let part = part.as_ref().map(Value::to_string);
            part.unwrap_or_default()
        });
        let title = tool.title.as_deref().unwrap_or_default();
        let is_seen = |text: &str| {
            let quoted = Value::from(text).to_string();
            let inner = quoted.trim_matches('"');
            title.contains(text) || texts.iter().any(|shown| shown.contains(inner))
        };
        if !self.params.stands_for.is_empty() {
            view.line("  It includes:");
        }
        let command = self.params.command.as_deref().unwrap_or_default();
        let commands = command.lines().filter(|line| !is_seen(line));
        view.block(commands.map(|line| ("\x1b[1m", line)), MOST);
        let is_new = |path: &&String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            !is_seen(name)
        };
        let paths = self.params.paths.iter().filter(is_new);
        view.block(paths.map(|path| ("", path.as_str())), MOST);
    }

    pub fn prompt(&self) -> String {
        format!("{} (Enter refuses): ", self.keys.list())
    }

    pub fn read(&self, line: Option<&str>) -> NextStep {
        let Some(line) = line else {
            return NextStep::Answer(json!({"outcome": {"outcome": "cancelled"}}));
        };
        let chosen = match self.keys.read(line) {
            Ok(chosen) => chosen,
            Err(why) => return NextStep::Again(why),
        };
        let outcome = match chosen.option {
            Some(option) => json!({
                "outcome": "selected", "optionId": option.option_id, "message": chosen.words,
            }),
            None => json!({"outcome": "cancelled", "message": chosen.words}),
        };
        NextStep::Answer(json!({ "outcome": outcome }))
    }
}

/// Shows a tool call: title, file changes, input, content and locations.
pub fn show_tool(tool: &AskedTool, view: &mut PromptView) {
    let content = tool.content.as_ref().and_then(Value::as_array);
    let content: Vec<&Value> = content.into_iter().flatten().collect();
    let mut shown: Vec<&str> = Vec::new();
    if let Some(title) = tool.title.as_deref().filter(|t| *t != tool.tool_name) {
        view.block(title.lines().map(|line| ("\x1b[1m", line)), MOST);
        shown.push(title);
    }
    for change in content.iter().filter(|part| part["type"] == "diff") {
        let text = |field: &str| change[field].as_str().unwrap_or_default();
        let (path, old, new) = (text("path"), text("oldText"), text("newText"));
        let lines = diff(old, new).into_iter().map(styled);
        let lines: Vec<(&str, String)> = lines.collect();
        view.words(path);
        let lines = lines.iter().map(|(style, line)| (*style, line.as_str()));
        view.block(lines, MOST);
        shown.extend([path, old, new]);
    }
    let input: Vec<String> = match &tool.input {
        Some(Value::Object(fields)) => {
            let new = fields.iter().filter(|(_, value)| !is_shown(value, &shown));
            new.map(|(name, value)| format!("{name}: {}", plain(value)))
                .collect()
        }
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![plain(other)],
    };
    let lines = input.iter().flat_map(|field| field.lines());
    view.block(lines.map(|line| ("", line)), MOST);
    let said = |field: &str| {
        tool.input
            .as_ref()
            .map_or("", |i| i[field].as_str().unwrap_or_default())
    };
    shown.push(said("description"));
    let texts = content
        .iter()
        .filter_map(|part| part["content"]["text"].as_str());
    let texts = texts.filter(|text| !is_repeated(text, &shown));
    view.block(texts.flat_map(str::lines).map(|line| ("", line)), MOST);
    let places = tool.locations.as_ref().and_then(Value::as_array);
    let paths = places
        .into_iter()
        .flatten()
        .filter_map(|place| place["path"].as_str());
    let paths: Vec<&str> = paths
        .filter(|path| !mentions(path, &shown, &input))
        .collect();
    view.block(paths.into_iter().map(|path| ("", path)), MOST);
}

fn styled(line: DiffLine<'_>) -> (&'static str, String) {
    match line {
        DiffLine::Same(text) => ("", format!("  {text}")),
        DiffLine::Out(text) => ("\x1b[31m", format!("- {text}")),
        DiffLine::In(text) => ("\x1b[32m", format!("+ {text}")),
        DiffLine::Gap(n) => ("\x1b[2m", format!("  … {n} unchanged lines")),
    }
}

/// Returns `true` if the value adds nothing to the text already shown.
fn is_shown(value: &Value, shown: &[&str]) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => is_repeated(text, shown),
        _ => false,
    }
}

/// Returns `true` if the text is blank or already shown. Backticks are ignored because some agents put them
/// around a command in the title.
fn is_repeated(text: &str, shown: &[&str]) -> bool {
    let bare = |text: &str| text.trim().trim_matches('`').to_owned();
    text.trim().is_empty() || shown.iter().any(|known| bare(known) == bare(text))
}

fn mentions(path: &str, shown: &[&str], input: &[String]) -> bool {
    let mut said = shown
        .iter()
        .copied()
        .chain(input.iter().map(String::as_str));
    said.any(|text| text.contains(path))
}

/// Returns a string as it is, any other value as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
