//! One session of the CLI and its process: the order in which its parts see a line.
//!
//! Owns the prompt in progress and what the process was started with. What is missing until it is open (`SessionOpening`), control
//! requests (`SentControls`), messages into a turn (`Steering`), frames (`Frames`) and requests of the CLI (`CliRequests`) are parts.
//! It may not start or stop the process.

mod controls;
mod opening;
mod process_end;
mod requests;
mod steering;
#[cfg(test)]
mod tests;
mod turn;

use self::controls::{PendingControl, SentControls};
use self::opening::SessionOpening;
pub use self::requests::CliRequests;
use self::steering::Steering;
use super::context::ContextUsage;
use super::frames::Frames;
use super::plan::PlanInstruction;
use super::{launch, mcp_servers, pre_tool_hook};
use acpipe_json::{Members, raw_object, text, to_raw};
use acpipe_model::dialect::{Child, Opening, Outgoing, SessionSetup};
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::event::{AgentEvent, CallId};
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::setting::Setting;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::claude::{Frame, word};
use acpipe_protocol::wire::LineFaults;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tracing::debug;

/// A session and its process.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub struct CliSession {
    pub id: String,
    /// Id of the session that this one continues.
    pub source: String,
    pub opened_by: CallId,
    frames: Frames,
    context: ContextUsage,
    launched: Launched,
    plan: PlanInstruction,
    opening: Option<SessionOpening>,
    /// `true` if the session continues one of another process and no turn has run since.
    resumed: bool,
    /// `true` if the model, or the CLI in its place, sent output in this turn.
    had_output: bool,
    controls: SentControls,
    prompt: Option<Prompt>,
    steering: Steering,
    /// `true` while a background turn runs, which no prompt started.
    background_turn: bool,
    /// `true` if the CLI reports which prompt it starts with; older versions do not.
    reports_prompt_starts: bool,
    /// Requests of the CLI without a response.
    pub requests: CliRequests,
    /// Error that the CLI reported before it ends.
    exit_error: Option<Error>,
    /// `true` if opening was refused: the process is of no use.
    pub refused: bool,
}

/// Options with which the process was started and that are needed later.
#[derive(Debug)]
struct Launched {
    model: Option<String>,
    mode: Option<String>,
    may_bypass: bool,
}

/// Prompt in progress. There is one at a time, because the CLI merges queued prompts.
#[derive(Debug)]
struct Prompt {
    call: CallId,
    uuid: String,
    /// `true` if a background turn has to end first.
    waits: bool,
    /// `true` once the CLI has reported that it started with this prompt.
    begun: bool,
    cancelled: bool,
}

impl CliSession {
    /// Creates a session whose process is about to be started.
    #[must_use]
    pub fn opening(id: String, call: CallId, way: Opening<'_>, place: &SessionSetup<'_>) -> Self {
        let options = place.options;
        let servers = mcp_servers::by_name(place.mcp_servers);
        let source = match way {
            Opening::Resume(source) | Opening::Load(source) => source.to_owned(),
            Opening::New => id.clone(),
        };
        Self {
            id,
            source,
            opened_by: call,
            frames: Frames::default(),
            context: ContextUsage::default(),
            launched: Launched {
                model: options.model.clone(),
                mode: options.mode.clone(),
                may_bypass: launch::may_bypass(options),
            },
            plan: PlanInstruction::started_in(options.mode.as_deref()),
            opening: Some(SessionOpening::new(
                call,
                (way != Opening::New, matches!(way, Opening::Load(_))),
                Some(servers).filter(|_| !place.mcp_servers.is_empty()),
            )),
            resumed: way != Opening::New,
            had_output: false,
            controls: SentControls::default(),
            prompt: None,
            steering: Steering::default(),
            background_turn: false,
            reports_prompt_starts: false,
            requests: CliRequests::default(),
            exit_error: None,
            refused: false,
        }
    }

    /// Sends the handshake, followed by the MCP servers; the request ids follow this number. Text of subagents is only
    /// reported on request.
    pub fn initialize(&mut self, watch: bool, before_first: u64, out: &mut Vec<u8>) {
        self.controls.number_from(before_first);
        let hooks = pre_tool_hook::hooks(watch);
        let request =
            json!({ "subtype": "initialize", "hooks": hooks, "forwardSubagentText": true });
        self.controls
            .send(PendingControl::Initialize, &request, out);
        let opening = self.opening.as_ref();
        let servers = opening.and_then(SessionOpening::servers);
        if let Some(servers) = servers {
            let request = json!({ "subtype": "mcp_set_servers", "servers": servers });
            self.controls.send(PendingControl::Servers, &request, out);
        }
    }

    /// Returns `true` while a background turn runs, or is about to begin with a message that the last turn did
    /// not take.
    pub fn is_busy(&self) -> bool {
        self.background_turn || (self.prompt.is_none() && !self.steering.is_empty())
    }

    pub fn prompt(
        &mut self,
        call: CallId,
        uuid: String,
        mut content: Vec<Value>,
        out: &mut Vec<u8>,
    ) {
        self.plan.add_to(&mut content);
        let waits = self.is_busy();
        self.send_user(&uuid, content, out);
        self.prompt = Some(Prompt {
            call,
            uuid,
            waits,
            begun: false,
            cancelled: false,
        });
    }

    /// Forgets the prompt of this call, which was not sent after all.
    pub fn withdraw_prompt(&mut self, call: CallId) {
        if self.prompt.take_if(|prompt| prompt.call == call).is_some() {
            self.plan.withdraw();
        }
    }

    pub fn set(&mut self, call: CallId, setting: &Setting, out: &mut Vec<u8>) {
        let request = match setting {
            Setting::Mode(mode) => json!({ "subtype": "set_permission_mode", "mode": mode }),
            Setting::Model(model) => json!({ "subtype": "set_model", "model": model }),
            // The CLI reports no options; a request for one is rejected by the CLI itself.
            Setting::Option { id, .. } => json!({ "subtype": format!("set_{id}") }),
        };
        let mode = match setting {
            Setting::Mode(mode) => Some(mode.clone()),
            Setting::Model(_) | Setting::Option { .. } => None,
        };
        let pending = PendingControl::Set { call, mode };
        self.controls.send(pending, &request, out);
    }

    pub fn read<'a>(
        &mut self,
        child: Child,
        line: &'a str,
        faults: &mut LineFaults,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let Some(frame) = Frame::read(line) else {
            if line.trim().is_empty() {
                faults.blank += 1;
                return Ok(());
            }
            return Err(UnusableLine);
        };
        match frame.kind() {
            "result" => self.handle_result(&frame, line, events),
            "control_request" => {
                let lines = out.lines(child);
                self.requests.read(&self.id, child, &frame, events, lines)?;
            }
            "control_response" => self.handle_response(&frame, events, out.lines(child)),
            "control_cancel_request" => self.requests.withdraw(child, &frame, events),
            "command_lifecycle" => self.lifecycle(&frame, events, out.lines(child)),
            "keep_alive" => {}
            kind => {
                if kind == "system"
                    && let Some(mode) = text(frame.rest.get("permissionMode"))
                {
                    self.plan.mode(&mode);
                }
                if kind == "system" && frame.subtype() == "init" {
                    self.turn_begins(events, out.lines(child));
                    // If it was resumed by title, forked or cleared, the CLI reports the id only here.
                    if let Some(id) = text(frame.session_id) {
                        self.rename(&id, events);
                    }
                }
                let says = matches!(kind, "assistant" | "stream_event");
                if says {
                    self.context.read(&frame);
                }
                // This frame has the reason, too, if the CLI does not call the model, such as a hook that
                // blocked the prompt.
                self.had_output |= says || frame.subtype() == "informational";
                self.frames.read(&frame, line, &self.id, events);
            }
        }
        Ok(())
    }

    /// Reads the run of deltas with which the lines of the process begin.
    pub fn read_run<'a>(&self, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        self.frames.read_run(&self.id, lines)
    }

    pub fn note_run(&mut self, run: &UpdateRun<'_>) {
        self.had_output = true;
        self.frames.note_run(run);
    }

    fn rename(&mut self, to: &str, events: &mut Vec<AgentEvent<'_>>) {
        if to != self.id {
            let session = std::mem::replace(&mut self.id, to.to_owned());
            let to = to.to_owned();
            events.push(AgentEvent::SessionRenamed { session, to });
        }
    }

    pub fn history_read(&mut self, how: Result<(), Error>) -> Option<AgentEvent<'static>> {
        match self.opening.as_mut()?.history_read(how) {
            Ok(()) => self.opened(),
            Err(error) => {
                let call = self.opening.take()?.call();
                Some(AgentEvent::Failed { call, error })
            }
        }
    }

    fn opened(&mut self) -> Option<AgentEvent<'static>> {
        let opening = self.opening.take_if(|opening| opening.is_complete())?;
        Some(AgentEvent::SessionOpened {
            call: opening.call(),
            agent_session: self.id.clone(),
            state: opening.into_state(),
        })
    }

    fn handle_response<'a>(
        &mut self,
        frame: &Frame<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Vec<u8>,
    ) {
        let Some(answer) = frame.response.and_then(Answer::read) else {
            return;
        };
        let id = text(answer.request_id).and_then(|id| id.parse().ok());
        let Some(pending) = id.and_then(|id: u64| self.controls.take(id)) else {
            debug!("response without a matching request");
            return;
        };
        let failed = word(answer.subtype) == "error";
        let said = text(answer.error).unwrap_or_default();
        if failed {
            events.extend(self.handle_error(&pending, &clip(&said)));
            return;
        }
        match pending {
            PendingControl::Initialize => {
                if let Some(opening) = &mut self.opening {
                    let said = answer.response.unwrap_or(RawValue::NULL);
                    let Launched {
                        model,
                        mode,
                        may_bypass,
                    } = &self.launched;
                    let (model, mode) = (model.as_deref(), mode.as_deref());
                    let facts = self.frames.facts_mut();
                    opening.initialized(facts.initialized(said, model, mode, *may_bypass));
                    events.extend(self.opened());
                }
            }
            PendingControl::Servers => {
                if let Some(opening) = &mut self.opening {
                    opening.has_servers(answer.response.and_then(mcp_servers::failures));
                    events.extend(self.opened());
                }
            }
            PendingControl::Set { call, mode } => {
                if let Some(mode) = mode {
                    self.plan.mode(&mode);
                }
                let state = Members::default();
                events.push(AgentEvent::Set { call, state });
            }
            PendingControl::Interrupt => self.interrupted(answer.response, out),
            PendingControl::Withdraw => {}
        }
    }

    fn handle_error(&mut self, pending: &PendingControl, why: &str) -> Option<AgentEvent<'static>> {
        let (call, what) = match pending {
            PendingControl::Initialize => {
                self.refused = true;
                (
                    self.opening.take()?.call(),
                    "the agent refused the handshake",
                )
            }
            PendingControl::Servers => {
                self.refused = true;
                let what = "the agent refused the MCP servers";
                (self.opening.take()?.call(), what)
            }
            PendingControl::Set { call, .. } => (*call, "the agent refused the setting"),
            PendingControl::Interrupt | PendingControl::Withdraw => return None,
        };
        let error = Error::new(ErrorKind::Session, format!("{what}: {why}"));
        Some(AgentEvent::Failed { call, error })
    }
}

raw_object! {
    /// Content of a `control_response`.
    struct Answer {
        subtype = "subtype",
        request_id = "request_id",
        response = "response",
        error = "error",
    }
}

impl<'a> Answer<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// Writes a line; it must be JSON, because the CLI exits on anything else.
fn write(frame: &impl serde::Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(to_raw(frame).get().as_bytes());
    out.push(b'\n');
}
