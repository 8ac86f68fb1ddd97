//! `system` frames: reports of the CLI about itself.
//!
//! Owns what these reports said that later ones refer to: facts about the session, background tasks and the compaction in progress. It
//! may not touch messages and tool calls.

use super::LineSink;
use crate::claude::state::Facts;
use acpipe_json::{Members, non_null, text};
use acpipe_model::event::Update;
use acpipe_protocol::claude::Frame;
use std::borrow::Cow;
use std::collections::HashMap;

/// State across the reports of a process.
#[derive(Debug, Default)]
pub(super) struct SystemReports {
    facts: Facts,
    /// Tool calls of background tasks.
    tasks: HashMap<String, Task>,
    /// Id of the compaction in progress.
    compaction: Option<String>,
}

/// Background task that runs beside the turn.
#[derive(Debug)]
struct Task {
    call: String,
    is_subagent: bool,
}

impl SystemReports {
    pub(super) fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    pub(super) fn turn_over(&mut self) {
        self.compaction = None;
    }

    pub(super) fn read<'a>(&mut self, frame: &Frame<'a>, out: &mut LineSink<'a, '_>) {
        let said = |name: &str| text(frame.rest.get(name)).map(Cow::into_owned);
        match frame.subtype() {
            "init" => {
                let news = self.facts.init(&frame.rest);
                out.push(Update::Session(news));
            }
            "status" => self.status(frame, out),
            "compact_boundary" => {
                let id = self.compaction(frame, false);
                out.push(Update::Compaction { id: id.into() });
            }
            "informational" | "notification" => out.push(Update::Notice),
            "permission_denied" => match said("tool_use_id") {
                Some(tool) => {
                    out.push(Update::Refused {
                        tool: tool.into(),
                        reason: text(frame.message).unwrap_or_default(),
                    });
                    // The reason in the CLI's own words.
                    out.push(Update::TransientUpdate);
                }
                None => out.push(Update::Other),
            },
            "task_started" | "task_progress" | "task_updated" | "task_notification" => {
                self.task(frame, out);
            }
            "api_retry"
            | "thinking_tokens"
            | "hook_started"
            | "hook_progress"
            | "session_state_changed"
            | "background_tasks_changed" => out.push(Update::TransientUpdate),
            _ => out.push(Update::Other),
        }
    }

    /// Handles a change of the CLI's status or permission mode.
    fn status<'a>(&mut self, frame: &Frame<'a>, out: &mut LineSink<'a, '_>) {
        let status = text(frame.rest.get("status"));
        let ends = non_null(frame.rest.get("compact_result")).is_some();
        if ends || status.as_deref() == Some("compacting") {
            let id = self.compaction(frame, !ends);
            out.push(Update::Compaction { id: id.into() });
            return;
        }
        if let Some(mode) = text(frame.rest.get("permissionMode")) {
            let mut news = Members::default();
            news.set_owned("currentModeId", &mode);
            out.push(Update::Session(news));
        }
        if status.is_some() {
            out.push(Update::TransientUpdate);
        }
    }

    /// Returns the id of the compaction to which a frame belongs: the id of the first frame about it.
    fn compaction(&mut self, frame: &Frame<'_>, begins: bool) -> String {
        let known = self.compaction.take().filter(|_| !begins);
        let own = || text(frame.uuid).unwrap_or_default().into_owned();
        self.compaction.insert(known.unwrap_or_else(own)).clone()
    }

    /// Handles a report about a background task: a subagent, or a background command.
    fn task<'a>(&mut self, frame: &Frame<'a>, out: &mut LineSink<'a, '_>) {
        let said = |name: &str| text(frame.rest.get(name)).map(Cow::into_owned);
        let id = said("task_id").unwrap_or_default();
        if let Some(call) = said("tool_use_id") {
            let task_type = said("task_type");
            let task = self.tasks.entry(id.clone()).or_insert_with(|| Task {
                call: call.clone(),
                is_subagent: task_type.as_deref() != Some("local_bash"),
            });
            task.call = call;
        }
        let update = match self.tasks.get(&id) {
            Some(task) if task.is_subagent => Update::Subagent {
                id: task.call.clone().into(),
            },
            _ if frame.subtype() == "task_progress" => Update::TransientUpdate,
            _ => Update::Other,
        };
        if frame.subtype() == "task_notification" {
            self.tasks.remove(&id);
        }
        out.push(update);
    }
}
