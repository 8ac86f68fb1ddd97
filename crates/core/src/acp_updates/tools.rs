//! Tool calls: the first update of a call becomes a `tool_call`, each later one a `tool_call_update`.

use super::writer::Put;
use super::{AcpUpdates, content};
use acpipe_json::{JsonStr, Members, to_raw};
use acpipe_model::event::{TerminalUpdate, ToolStatus, ToolUpdate};
use acpipe_policy::KINDS;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Title of a call without title and name.
const UNTITLED: &str = "Tool call";

impl AcpUpdates {
    pub(super) fn tool(&mut self, tool: &ToolUpdate<'_>, parent: Option<&str>, put: &mut Put<'_>) {
        let (call, is_new) = self.calls.follow(tool, parent);
        if !is_new && is_input_delta(tool) {
            return;
        }
        let status = tool.status.as_deref().and_then(ToolStatus::of);
        let presented = tool.content.as_deref().and_then(|content| {
            let failed = status == Some(ToolStatus::Failed);
            let ends = tool.ends() && self.writer.is_claude();
            ends.then(|| content::presented(call.name.as_deref(), failed, content))?
        });
        let mut about = self.writer.about_call(call);
        let mut members = Members::default();
        members.set_owned("toolCallId", &tool.id);
        match tool.title.as_deref().filter(|title| !title.is_empty()) {
            Some(title) => members.set_owned("title", &title),
            None if is_new => {
                let name = call.name.as_deref().or(tool.kind.as_deref());
                members.set_owned("title", &name.unwrap_or(UNTITLED));
            }
            None => {}
        }
        if let Some(name) = tool.name.as_deref().filter(|name| !name.is_empty()) {
            members.set_owned("name", &name);
        }
        let kind = tool.kind.as_deref();
        if let Some(kind) = kind.filter(|kind| KINDS.contains(kind)) {
            members.set_owned("kind", &kind);
        } else {
            if let Some(kind) = kind {
                about.set_owned("kind", &kind);
            }
            if is_new {
                members.set_owned("kind", &"other");
            }
        }
        if let Some(status) = status {
            members.set_owned("status", &status.as_str());
        } else {
            if let Some(status) = &tool.status {
                about.set_owned("status", status);
            }
            if is_new {
                members.set_owned("status", &ToolStatus::Pending.as_str());
            }
        }
        members.set_some("rawInput", tool.input.as_deref());
        members.set_some("rawOutput", tool.output);
        let content = presented.as_deref().or(tool.content.as_deref());
        members.set_some("content", content);
        members.set_some("locations", tool.locations.as_deref());
        about.extend(tool.other.clone());
        if let Some(meta) = tool.meta {
            about.set("_meta", meta);
        }
        let kind = if is_new {
            "tool_call"
        } else {
            "tool_call_update"
        };
        self.writer.update(kind, &members, &about, put);
    }

    pub(super) fn refused(
        &mut self,
        id: &str,
        reason: &str,
        parent: Option<&str>,
        put: &mut Put<'_>,
    ) {
        let content = content::text_output(reason);
        let tool = ToolUpdate {
            id: Cow::Borrowed(id),
            status: Some(ToolStatus::Failed.as_str().into()),
            content: (!reason.is_empty()).then(|| Cow::Owned(to_raw(&json!([content])))),
            ..ToolUpdate::default()
        };
        self.tool(&tool, parent, put);
    }

    /// Sends output of a terminal that the agent runs, in the form of agents that run terminals themselves.
    pub(super) fn terminal(&mut self, terminal: &TerminalUpdate<'_>, put: &mut Put<'_>) {
        let mut about = Members::default();
        about.set_owned("terminalId", &terminal.id);
        about.set_some("terminalOutput", terminal.output.map(JsonStr::raw));
        about.set_some("terminalDetails", terminal.details);
        let mut members = Members::default();
        members.set_owned("toolCallId", &terminal.tool);
        self.writer
            .update("tool_call_update", &members, &about, put);
    }
}

/// Returns `true` for an update that only has a piece of the input. The complete input follows.
fn is_input_delta(tool: &ToolUpdate<'_>) -> bool {
    let raw = |field: &Option<Cow<'_, RawValue>>| field.is_some();
    let text = |field: &Option<Cow<'_, str>>| field.is_some();
    tool.input_delta.is_some()
        && !(text(&tool.title) || text(&tool.name) || text(&tool.kind) || text(&tool.status))
        && !(raw(&tool.input) || raw(&tool.content) || raw(&tool.locations))
        && tool.output.is_none()
        && tool.meta.is_none()
        && tool.other.is_empty()
}
