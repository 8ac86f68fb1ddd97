//! Chunks of the AI SDK that are passed on unchanged: the blocks and tool calls that they leave open.
//!
//! Readers reject a stream in which a chunk belongs to no part, and parts that a broken stream left open would
//! stay open. A turn therefore follows the chunks, rejects those that belong to nothing, and ends what is open.

use super::call_ids::CallState as CallStage;
use super::tools::{RunKind, SettleReason, UnapprovedRun};
use super::{SUMMARY_LIMIT, TurnEvent, TurnView};
use acpipe_json::{JsonStr, text, to_raw, value};
use acpipe_model::event::call_id;
use acpipe_policy::{Subject, ToolProperties};
use acpipe_protocol::ui_chunk::UiChunk;
use acpipe_protocol::wire::{AskedTool, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Maximum number of open blocks. More are not passed on.
const MAX_OPEN: usize = 1000;

/// Maximum number of tool calls in a turn. More are not passed on.
const MAX_CALLS: usize = 1000;

#[derive(Debug, Default)]
pub struct PassedChunks {
    /// Open blocks in their order: `text` or `reasoning`, and the id.
    blocks: Vec<(&'static str, String)>,
    calls: Vec<PassedCall>,
    calls_before_step: usize,
    /// Size of the inputs and results that are kept for the summary, in bytes.
    kept: usize,
    /// Numbers of the calls that ran, or may have run, until they are judged.
    unapproved_runs: Vec<usize>,
    /// Ids of calls of which only the output was reported, until they are judged.
    unknown_runs: Vec<String>,
}

#[derive(Debug)]
struct PassedCall {
    id: String,
    name: String,
    is_dynamic: bool,
    state: CallState,
    /// Whether the endpoint says that it runs the tool itself.
    is_executed: bool,
    /// Reports of a run, which are judged: clients and policies do not answer the approval requests of endpoints.
    run: RunReport,
    input: Value,
    /// Inputs that later ones replaced.
    earlier: Vec<Value>,
    /// Input while it is generated.
    raw_input: String,
    /// Result as text, and whether it is an error.
    result: Option<(String, bool)>,
    /// Size of the result that is kept for the summary, in bytes.
    kept_result: usize,
    /// Size of the input and of the result that were not kept.
    omitted: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RunReport {
    None,
    MayHaveRun,
    Ran,
}

#[derive(Debug, PartialEq, Eq)]
enum CallState {
    Input,
    Available,
    /// Permission was requested under this id.
    Asked(String),
    Refused,
    Settled,
}

/// Maximum size of the input of a call that is kept while it is generated, in bytes.
const MAX_RAW_INPUT: usize = 1 << 20;

impl PassedChunks {
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Follows a chunk. Returns `false` if readers would reject it, since it belongs to nothing.
    pub fn follow(&mut self, chunk: &UiChunk<'_>) -> bool {
        let kind = chunk.type_name();
        let id = text(chunk.id).unwrap_or_default();
        match kind.as_ref() {
            "text-start" => self.begin("text", &id),
            "reasoning-start" => self.begin("reasoning", &id),
            "text-delta" => self.is_open("text", &id),
            "reasoning-delta" => self.is_open("reasoning", &id),
            "text-end" => self.end("text", &id),
            "reasoning-end" => self.end("reasoning", &id),
            "start-step" => {
                self.calls_before_step = self.calls.len();
                true
            }
            "reset-step" => {
                self.blocks.clear();
                self.calls.truncate(self.calls_before_step);
                true
            }
            "tool-approval-response" => self.respond(chunk),
            kind if kind.starts_with("tool-") => self.call(kind, chunk),
            _ => true,
        }
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|call| call.id.as_str())
    }

    pub fn state(&self, id: &str) -> Option<CallStage> {
        let at = self.calls.iter().rposition(|call| call.id == id)?;
        Some(match self.calls[at].state {
            // Readers take the input of a later step for that of another call.
            _ if at < self.calls_before_step => CallStage::Ended,
            CallState::Settled => CallStage::Ended,
            CallState::Refused => CallStage::Denied,
            CallState::Input | CallState::Available | CallState::Asked(_) => CallStage::Open,
        })
    }

    fn begin(&mut self, part: &'static str, id: &str) -> bool {
        // A second block of this id would leave the first one open for ever.
        let is_new = self.blocks.len() < MAX_OPEN && !self.is_open(part, id);
        if is_new {
            self.blocks.push((part, id.to_owned()));
        }
        is_new
    }

    fn is_open(&self, part: &'static str, id: &str) -> bool {
        self.blocks
            .iter()
            .any(|(known, own)| *known == part && own == id)
    }

    fn end(&mut self, part: &'static str, id: &str) -> bool {
        let was_open = self.is_open(part, id);
        self.blocks
            .retain(|(known, own)| *known != part || own != id);
        was_open
    }

    fn respond(&mut self, chunk: &UiChunk<'_>) -> bool {
        let id = text(chunk.approval_id).unwrap_or_default();
        let asked =
            |call: &&mut PassedCall| call.state == CallState::Asked(id.clone().into_owned());
        let Some(call) = self.calls.iter_mut().find(asked) else {
            return false;
        };
        let is_approved = chunk
            .approved
            .is_some_and(|approved| approved.get() == "true");
        call.state = if is_approved {
            CallState::Available
        } else {
            CallState::Refused
        };
        true
    }

    fn call(&mut self, kind: &str, chunk: &UiChunk<'_>) -> bool {
        let id = call_id(chunk.tool_call_id);
        let begins = chunk.begins_call();
        let known = self.calls.iter().rposition(|call| call.id == id);
        let known = known.filter(|at| !begins || *at >= self.calls_before_step);
        let at = match known {
            Some(at) => at,
            None if begins && self.calls.len() < MAX_CALLS => {
                self.calls.push(PassedCall {
                    id: id.into_owned(),
                    name: text(chunk.tool_name).unwrap_or_default().into_owned(),
                    is_dynamic: chunk.dynamic.is_some_and(|dynamic| dynamic.get() == "true"),
                    state: CallState::Input,
                    is_executed: false,
                    run: RunReport::None,
                    input: Value::Null,
                    earlier: Vec::new(),
                    raw_input: String::new(),
                    result: None,
                    kept_result: 0,
                    omitted: (0, 0),
                });
                self.calls.len() - 1
            }
            None => {
                if is_output(kind) && self.unknown_runs.len() < MAX_CALLS {
                    self.unknown_runs.push(id.into_owned());
                }
                return false;
            }
        };
        let call = &mut self.calls[at];
        call.update(kind, chunk, &mut self.kept);
        let executed = chunk.rest.get("providerExecuted");
        call.is_executed |= executed.is_some_and(|executed| executed.get() == "true");
        match kind {
            "tool-output-available" => self.note_run(at, RunReport::Ran),
            "tool-output-error" => self.note_run(at, RunReport::MayHaveRun),
            _ => {}
        }
        true
    }

    fn note_run(&mut self, at: usize, report: RunReport) {
        let known = &mut self.calls[at].run;
        if *known == RunReport::None {
            self.unapproved_runs.push(at);
        }
        *known = report.max(*known);
    }

    /// Notes the open calls that the endpoint runs. All other open calls are for
    /// the client to run, which acpipe does not.
    pub fn note_open_calls(&mut self) {
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            if call.is_executed && call.state == CallState::Available {
                self.note_run(at, RunReport::MayHaveRun);
            }
        }
    }

    /// Returns `true` if calls ran and have not been taken yet.
    pub fn has_unapproved_runs(&self) -> bool {
        !(self.unapproved_runs.is_empty() && self.unknown_runs.is_empty())
    }

    /// Takes the calls that ran, or may have run, each once.
    pub fn take_unapproved_runs(&mut self, cwd: &str) -> Vec<UnapprovedRun> {
        let ran = std::mem::take(&mut self.unapproved_runs).into_iter();
        let calls = ran.filter_map(|at| self.calls.get(at));
        let unknown = std::mem::take(&mut self.unknown_runs).into_iter();
        let unknown = unknown.map(|id| {
            run(
                id,
                "tool".to_owned(),
                true,
                Subject::of_tool(&ToolProperties::default(), cwd),
            )
        });
        let known = calls.map(|call| call.unapproved_run(cwd));
        known.chain(unknown).collect()
    }

    /// Returns the chunks that end everything that is open, in order.
    pub fn close(&mut self, why: SettleReason, view: &mut impl TurnView) {
        let mut chunks = Vec::new();
        for (part, id) in std::mem::take(&mut self.blocks) {
            chunks.push(json!({ "type": format!("{part}-end"), "id": id }));
        }
        for call in &mut self.calls {
            call.close(why.text(), &mut chunks);
        }
        for json in chunks.iter().map(to_raw) {
            if let Ok(chunk) = serde_json::from_str(json.get()) {
                let (json, chunk) = (&json, &chunk);
                view.event(&TurnEvent::Chunk { json, chunk });
            }
        }
    }

    /// Adds the calls to those of a summary, and the size of the inputs that were not kept.
    pub fn add_calls(&self, (calls, omitted): &mut (Vec<ToolCall>, u64)) {
        for call in &self.calls {
            *omitted += call.omitted.0;
            calls.push(ToolCall {
                name: call.name.clone(),
                arguments: call.input.clone(),
                call_id: call.id.clone(),
            });
        }
    }

    /// Adds the results to those of a summary, and the size of the results that were not kept.
    pub fn add_results(&self, (results, omitted): &mut (Vec<ToolResult>, u64)) {
        for call in &self.calls {
            *omitted += call.omitted.1;
            if let Some((result, is_error)) = &call.result {
                results.push(ToolResult {
                    name: call.name.clone(),
                    call_id: call.id.clone(),
                    result: result.clone(),
                    is_error: *is_error,
                });
            }
        }
    }
}

/// Returns `true` for the types of chunks that report how a tool ended that ran, or may have run.
fn is_output(kind: &str) -> bool {
    matches!(kind, "tool-output-available" | "tool-output-error")
}

/// Describes the run of a call: acpipe answers no approval requests of endpoints.
fn run(id: String, name: String, is_certain: bool, subject: Subject) -> UnapprovedRun {
    UnapprovedRun {
        tool: AskedTool {
            tool_call_id: id,
            tool_name: name,
            ..AskedTool::default()
        },
        kind: RunKind::Unapproved {
            has_asked_user: false,
        },
        before: None,
        is_certain,
        has_started: is_certain,
        terminals: Vec::new(),
        subject,
    }
}

/// Returns `true` if so many bytes may be kept for the summary.
fn keep(kept: &mut usize, size: usize) -> bool {
    let fits = *kept + size <= SUMMARY_LIMIT;
    if fits {
        *kept += size;
    }
    fits
}

impl PassedCall {
    fn unapproved_run(&self, cwd: &str) -> UnapprovedRun {
        let subject = self.subject(&self.input, cwd);
        let earlier = self.earlier.iter().map(|input| self.subject(input, cwd));
        let earlier: Vec<_> = earlier
            .filter(|earlier| !subject.completes(earlier))
            .collect();
        let subject = if earlier.is_empty() {
            subject
        } else {
            subject.with_earlier(earlier)
        };
        run(
            self.id.clone(),
            self.name.clone(),
            self.run == RunReport::Ran,
            subject,
        )
    }

    fn subject(&self, input: &Value, cwd: &str) -> Subject {
        let raw = to_raw(input);
        let tool = ToolProperties {
            name: Some(&self.name),
            input: (!input.is_null()).then_some(&raw),
            ..ToolProperties::default()
        };
        Subject::of_tool(&tool, cwd)
    }

    fn update(&mut self, kind: &str, chunk: &UiChunk<'_>, kept: &mut usize) {
        match kind {
            "tool-input-delta" => {
                if let Some(delta) = chunk.input_text_delta.and_then(JsonStr::new)
                    && self.raw_input.len() < MAX_RAW_INPUT
                {
                    delta.decode_into(&mut self.raw_input);
                }
            }
            "tool-input-available" => {
                if let Some(input) = chunk.input {
                    if keep(kept, input.get().len()) {
                        let earlier = std::mem::replace(&mut self.input, value(input));
                        if !earlier.is_null() && earlier != self.input {
                            self.earlier.push(earlier);
                        }
                    } else {
                        self.omitted.0 += input.get().len() as u64;
                    }
                }
                self.state = CallState::Available;
            }
            "tool-approval-request" => {
                let id = text(chunk.approval_id).unwrap_or_default();
                self.state = CallState::Asked(id.into_owned());
            }
            "tool-output-available" => {
                self.set_result(chunk.output, false, kept);
                let is_preliminary = chunk.preliminary.is_some_and(|it| it.get() == "true");
                if !is_preliminary {
                    self.state = CallState::Settled;
                }
            }
            "tool-input-error" | "tool-output-error" => {
                self.set_result(chunk.error_text, true, kept);
                self.state = CallState::Settled;
            }
            "tool-output-denied" => self.state = CallState::Settled,
            _ => {}
        }
    }

    fn close(&mut self, why: &str, chunks: &mut Vec<Value>) {
        let mut push = |mut chunk: Value| {
            chunk["toolCallId"] = json!(self.id);
            if self.is_dynamic {
                chunk["dynamic"] = json!(true);
            }
            chunks.push(chunk);
        };
        match std::mem::replace(&mut self.state, CallState::Settled) {
            CallState::Settled => return,
            CallState::Input => push(json!({
                "type": "tool-input-error",
                "toolName": self.name,
                "input": self.raw_input,
                "errorText": why,
            })),
            CallState::Available => push(json!({ "type": "tool-output-error", "errorText": why })),
            CallState::Asked(approval) => {
                chunks.push(json!({
                    "type": "tool-approval-response",
                    "approvalId": approval,
                    "approved": false,
                    "reason": why,
                }));
                chunks.push(json!({ "type": "tool-output-denied", "toolCallId": self.id }));
            }
            CallState::Refused => {
                chunks.push(json!({ "type": "tool-output-denied", "toolCallId": self.id }));
            }
        }
        self.result = Some((why.to_owned(), true));
    }

    fn set_result(&mut self, result: Option<&RawValue>, is_error: bool, kept: &mut usize) {
        let Some(raw) = result else { return };
        // The result replaces a preliminary one.
        *kept -= std::mem::take(&mut self.kept_result);
        self.omitted.1 = 0;
        let size = raw.get().len();
        if !keep(kept, size) {
            self.omitted.1 = size as u64;
            self.result = None;
            return;
        }
        self.kept_result = size;
        let result = text(Some(raw)).map_or_else(|| raw.get().to_owned(), Cow::into_owned);
        self.result = Some((result, is_error));
    }
}
