//! ACP updates that replace earlier ones, on their way to the log: the log has each state in proportion to what is new
//! in it, and the last one of each.

use crate::core::acp_notification::AcpNotification;
use crate::core::difference::added;
use crate::core::event::{ToolUpdate, Update};
use crate::core::output_budget::{OutputBudget, SMALL};

/// Maximum number of states that are followed. Further ones are recorded at every change.
const MOST: usize = 64;

/// Receiver of the updates to be recorded.
type Record<'r> = dyn FnMut(AcpNotification<'_>) + 'r;

/// States of a turn.
#[derive(Debug, Default)]
pub struct RecordedStates(Vec<RecordedState>);

/// A state: the last update, and whether it is held back.
#[derive(Debug)]
struct RecordedState {
    key: String,
    members: Members,
    last: Box<str>,
    /// Form of the last update: a line with the session's or a subagent's id, or an update object.
    form: Form,
    proportion: OutputBudget,
    is_held: bool,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Line,
    LineOfSubagent,
    Update,
}

/// Members of a tool call's update, by which it replaces an earlier one.
#[derive(Debug, Default, Clone)]
struct Members {
    present: u16,
    /// Members that are merged, or whose meaning is not known.
    others: String,
}

/// An update as the state that it reports.
#[derive(Debug)]
pub struct ReportedState {
    key: String,
    members: Members,
    /// Whether the update begins the thing that has the state.
    begins: bool,
    /// Whether the update ends it.
    ends: bool,
    /// Kind of the ACP update that has the state.
    kind: &'static str,
}

impl ReportedState {
    /// Returns the state that an update reports; `None` for an update that replaces no other. `session` is the agent's
    /// id of the session in the update, and `is_acp` whether the agent speaks ACP.
    #[must_use]
    pub fn of(update: &Update<'_>, session: &str, is_acp: bool) -> Option<Self> {
        let call = |id: &str| Self {
            key: format!("call {session} {id}"),
            members: Members::default(),
            begins: false,
            ends: false,
            kind: "tool_call_update",
        };
        match update {
            Update::Tool(tool) => Some(Self {
                members: Members::of(tool),
                begins: tool.begins,
                ends: tool.ends(),
                ..call(&tool.id)
            }),
            Update::Refused { tool, .. } => Some(Self {
                ends: true,
                ..call(tool)
            }),
            Update::FromSubagent { update, .. } => Self::of(update, session, is_acp),
            // Plans of other agents have no ids in ACP: each replaces the last.
            Update::Plan { id, .. } => Some(Self {
                key: format!("plan {session} {}", if is_acp { id } else { "" }),
                kind: "plan",
                ..call("")
            }),
            Update::Context { .. } => Some(Self {
                key: format!("usage {session}"),
                kind: "usage_update",
                ..call("")
            }),
            _ => None,
        }
    }

    /// Returns `true` if an update object that acpipe made has the state.
    fn is_in(&self, json: &str) -> bool {
        let rest = json.strip_prefix(r#"{"sessionUpdate":""#);
        let rest = rest.and_then(|rest| rest.strip_prefix(self.kind));
        rest.is_some_and(|rest| rest.starts_with('"'))
    }
}

impl Members {
    fn of(tool: &ToolUpdate<'_>) -> Self {
        let present = [
            tool.name.is_some(),
            tool.title.is_some(),
            tool.kind.is_some(),
            tool.status.is_some(),
            tool.input.is_some(),
            tool.output.is_some(),
            tool.content.is_some(),
            tool.locations.is_some(),
        ];
        let present = present
            .iter()
            .fold(0, |bits, is| bits << 1 | u16::from(*is));
        let mut others = String::new();
        if let Some(meta) = tool.meta {
            others.push_str(meta.get());
        }
        for (name, said) in tool.other.iter() {
            others.push_str(name);
            others.push_str(said.get());
        }
        Self { present, others }
    }

    /// Returns `true` if nothing of an earlier update remains after one with these members.
    fn replace(&self, earlier: &Self) -> bool {
        self.present & earlier.present == earlier.present
            && (earlier.others.is_empty() || earlier.others == self.others)
    }
}

impl RecordedStates {
    /// Records an update, unless it is held back until a later one replaces it, or until the end.
    pub fn record(
        &mut self,
        state: Option<&ReportedState>,
        update: AcpNotification<'_>,
        record: &mut Record<'_>,
    ) {
        let Some(state) = state else {
            return record(update);
        };
        let known = self.0.iter().position(|known| known.key == state.key);
        if let Some(at) = known {
            let known = &mut self.0[at];
            if known.is_held && (state.begins || !state.members.replace(&known.members)) {
                known.put(record);
            }
            if state.begins || state.ends {
                self.0.remove(at);
            }
        }
        let (json, form) = match update {
            AcpNotification::Line { line, session } if session.is_some() => (line, Form::Line),
            AcpNotification::Line { line, .. } => (line, Form::LineOfSubagent),
            AcpNotification::Update(json) => match std::str::from_utf8(json) {
                Ok(json) if state.is_in(json) => (json, Form::Update),
                _ => return record(update),
            },
        };
        let at = match known {
            _ if state.begins || state.ends => return record(update),
            Some(at) => at,
            None if json.len() <= SMALL || self.0.len() >= MOST => return record(update),
            None => {
                self.0.push(RecordedState {
                    key: state.key.clone(),
                    members: Members::default(),
                    last: Box::default(),
                    form,
                    proportion: OutputBudget::default(),
                    is_held: false,
                });
                self.0.len() - 1
            }
        };
        let known = &mut self.0[at];
        known.proportion.grow(json.len(), added(&known.last, json));
        known.members.clone_from(&state.members);
        known.last = json.into();
        known.form = form;
        known.is_held = true;
        if known.proportion.allows(json.len()) {
            known.put(record);
        }
    }

    /// Records the updates that were held back.
    pub fn flush(&mut self, record: &mut Record<'_>) {
        for mut state in std::mem::take(&mut self.0) {
            if state.is_held {
                state.put(record);
            }
        }
    }
}

impl RecordedState {
    fn put(&mut self, record: &mut Record<'_>) {
        self.is_held = false;
        self.proportion.show(self.last.len());
        let line = &self.last;
        record(match self.form {
            Form::Update => AcpNotification::Update(line.as_bytes()),
            // The log only distinguishes the session's own id.
            Form::Line => AcpNotification::Line {
                line,
                session: Some(""),
            },
            Form::LineOfSubagent => AcpNotification::Line {
                line,
                session: None,
            },
        });
    }
}
