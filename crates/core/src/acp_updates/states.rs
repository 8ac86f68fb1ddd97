//! ACP updates that replace earlier ones, on their way to the log: the log has each state in proportion to what is new
//! in it, and the last one of each.

use crate::difference::added;
use crate::output_budget::{OutputBudget, SMALL};
use acpipe_json::text;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::event::{ToolUpdate, Update};
use acpipe_protocol::ui_chunk::UiChunk;

/// Maximum number of states that are followed. Further ones are recorded at every change.
const MOST: usize = 64;

/// Receiver of the updates to be recorded.
type Record<'r> = dyn FnMut(AcpNotification<'_>) + 'r;

#[derive(Debug, Default)]
pub struct RecordedStates(Vec<RecordedState>);

/// A state: the last update, and whether it is held back.
#[derive(Debug)]
struct RecordedState {
    key: String,
    members: CallMembers,
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
struct CallMembers {
    present: u16,
    /// Members that are merged, or whose meaning is not known.
    others: String,
}

/// An update as the state that it reports.
#[derive(Debug)]
pub struct ReportedState {
    key: String,
    members: CallMembers,
    /// `true` for the first update of the tool call, plan or other item that has the state.
    begins: bool,
    /// `true` for the last update of that item.
    ends: bool,
    /// Kind of the ACP update that has the state.
    kind: &'static str,
}

impl ReportedState {
    /// Returns the state that an update reports; `None` for an update that replaces no other. `session` is the agent's
    /// id of the session in the update, and `is_acp` whether the agent speaks ACP.
    #[must_use]
    pub fn of(update: &Update<'_>, session: &str, is_acp: bool) -> Option<Self> {
        match update {
            Update::Tool(tool) => Some(Self {
                members: CallMembers::of(tool),
                begins: tool.begins,
                ends: tool.ends(),
                ..Self::call(session, &tool.id)
            }),
            Update::Refused { tool, .. } => Some(Self {
                ends: true,
                ..Self::call(session, tool)
            }),
            Update::FromSubagent { update, .. } => Self::of(update, session, is_acp),
            // Plans of other agents have no ids in ACP: each replaces the last.
            Update::Plan { id, .. } => {
                let id = if is_acp { id } else { "" };
                Some(Self::new("plan", format!("plan {session} {id}")))
            }
            Update::Context { .. } => Some(Self::new("usage_update", format!("usage {session}"))),
            Update::Session(news) if news.get("availableCommands").is_some() => Some(Self::new(
                "available_commands_update",
                format!("commands {session}"),
            )),
            Update::Chunk { chunk, .. } => Self::of_chunk(chunk, session),
            _ => None,
        }
    }

    /// Returns the state that a chunk of an AI SDK endpoint reports.
    fn of_chunk(chunk: &UiChunk<'_>, session: &str) -> Option<Self> {
        let kind = chunk.type_name();
        let call = || Some(Self::call(session, &text(chunk.tool_call_id)?));
        let is_preliminary = || chunk.preliminary.is_some_and(|it| it.get() == "true");
        match kind.as_ref() {
            "tool-output-available" => Some(Self {
                members: CallMembers::OUTPUT,
                ends: !is_preliminary(),
                ..call()?
            }),
            // The output so far stays.
            "tool-output-error" | "tool-output-denied" => Some(Self {
                ends: true,
                ..call()?
            }),
            "data-plan" => Some(Self::new("plan", format!("plan {session} "))),
            kind if kind.starts_with("data-") => {
                let id = text(chunk.id)?;
                Some(Self::new(
                    "session_info_update",
                    format!("{kind} {session} {id}"),
                ))
            }
            _ => None,
        }
    }

    fn new(kind: &'static str, key: String) -> Self {
        Self {
            key,
            members: CallMembers::default(),
            begins: false,
            ends: false,
            kind,
        }
    }

    fn call(session: &str, id: &str) -> Self {
        Self::new("tool_call_update", format!("call {session} {id}"))
    }

    /// Returns `true` if an update object that acpipe made has the state.
    fn is_in(&self, json: &str) -> bool {
        let rest = json.strip_prefix(r#"{"sessionUpdate":""#);
        let rest = rest.and_then(|rest| rest.strip_prefix(self.kind));
        rest.is_some_and(|rest| rest.starts_with('"'))
    }
}

impl CallMembers {
    const OUTPUT: Self = Self {
        present: 1,
        others: String::new(),
    };

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
                    members: CallMembers::default(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp_updates::AcpUpdates;
    use acpipe_json as json;
    use acpipe_model::event::Original;
    use serde_json::json;
    use serde_json::value::RawValue;

    /// Sizes and the last of the updates that are recorded of an agent's reports, which have the texts of growing output.
    fn recorded(
        report: impl Fn(&str, &mut dyn FnMut(&Update<'_>)),
        most: usize,
    ) -> (usize, String) {
        let (mut updates, mut states) = (AcpUpdates::new("ui-stream"), RecordedStates::default());
        let (mut size, mut last) = (0, String::new());
        let mut record = |update: AcpNotification<'_>| {
            let AcpNotification::Update(json) = update else {
                panic!("{update:?}");
            };
            size += json.len();
            last = String::from_utf8(json.to_vec()).unwrap();
        };
        let original = Original {
            line: "{}",
            cut: |line| serde_json::from_str(line).ok(),
            fields: |line| serde_json::from_str(line).unwrap(),
        };
        let mut output = String::new();
        for n in 0..most {
            output.push_str("line ");
            output += &n.to_string();
            output.push_str(" of the output\n");
            report(&output, &mut |update| {
                let state = ReportedState::of(update, "s", false);
                updates.update(update, original, &mut |json| {
                    let json = AcpNotification::Update(json);
                    states.record(state.as_ref(), json, &mut record);
                });
            });
        }
        states.flush(&mut record);
        (size, last)
    }

    /// Reports a chunk of an endpoint.
    fn chunk(chunk: &serde_json::Value, put: &mut dyn FnMut(&Update<'_>)) {
        let text = chunk.to_string();
        let json: &RawValue = serde_json::from_str(&text).unwrap();
        let chunk = Box::new(serde_json::from_str(&text).unwrap());
        put(&Update::Chunk { json, chunk });
    }

    #[test]
    fn states_of_agents_that_do_not_speak_acp_are_recorded_in_proportion() {
        type Report = fn(&str, &mut dyn FnMut(&Update<'_>));
        let reports: [Report; 4] = [
            |output, put| {
                let output = json!({"type": "tool-output-available", "toolCallId": "t", "output": output, "preliminary": true});
                chunk(&output, put);
            },
            |output, put| {
                chunk(&json!({"type": "data-log", "id": "l", "data": output}), put);
            },
            |output, put| {
                let commands = json!([{"name": "a", "description": output}]).to_string();
                let mut news = json::Members::default();
                news.set(
                    "availableCommands",
                    serde_json::from_str(&commands).unwrap(),
                );
                put(&Update::Session(news));
            },
            |output, put| {
                let entries =
                    json!([{"content": output, "priority": "medium", "status": "pending"}])
                        .to_string();
                let mut data = json::Members::default();
                data.set("entries", serde_json::from_str(&entries).unwrap());
                put(&Update::Plan {
                    id: "plan".into(),
                    data,
                });
            },
        ];
        for (n, report) in reports.into_iter().enumerate() {
            let ((short, _), (long, last)) = (recorded(report, 200), recorded(report, 800));
            assert!(long < 6 * short, "{n}: {short}, {long}");
            assert!(last.contains("line 799 of"), "{n}: {last}");
        }
    }
}
