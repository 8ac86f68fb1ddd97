//! Spans of reports, with the attributes of the semantic conventions for generative AI.

use super::json::{number, text, texts};
use acpipe_core::report::{
    OpeningReport, Period, Subject, ToolOutcome, ToolReport, TraceParent, TurnReport,
};
use acpipe_protocol::wire::{Memory, Rung};
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, RandomState};

/// Kinds of spans in OTLP.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// Status of a failed span in OTLP.
const ERROR: u8 = 2;

/// Source of ids. They are unpredictable enough to be unique; they are no secrets.
#[derive(Debug, Default)]
pub struct SpanIds {
    random: RandomState,
    count: u64,
}

impl SpanIds {
    fn next(&mut self) -> u64 {
        self.count += 1;
        // 0 is not a valid id.
        self.random.hash_one(self.count).max(1)
    }

    fn root(&mut self) -> TraceParent {
        TraceParent {
            trace: u128::from(self.next()) << 64 | u128::from(self.next()),
            span: 0,
            is_sampled: true,
        }
    }
}

/// Returns the provider of the models of well-known agents; of other agents, their own name.
pub fn provider(subject: &Subject) -> &str {
    let agent = subject.agent.as_str();
    match agent {
        _ if agent.starts_with("claude") => "anthropic",
        _ if agent.starts_with("codex") => "openai",
        _ if agent.starts_with("gemini") => "gcp.gemini",
        _ => agent,
    }
}

/// Returns the error type of a tool call that did not succeed.
pub fn tool_error(tool: &ToolReport) -> Option<&'static str> {
    match tool.outcome {
        ToolOutcome::Completed => None,
        ToolOutcome::Failed => Some("failed"),
        ToolOutcome::Denied => Some("denied"),
        ToolOutcome::Unfinished => Some("unfinished"),
    }
}

/// Returns the name of a step of a restore.
pub fn step(rung: Rung) -> &'static str {
    match rung {
        Rung::Live => "live",
        Rung::Resume => "resume",
        Rung::Load => "load",
        Rung::New => "new",
    }
}

fn memory(memory: Memory) -> &'static str {
    match memory {
        Memory::Kept => "kept",
        Memory::Replayed => "replayed",
        Memory::Lost => "lost",
        Memory::None => "none",
    }
}

/// Appends the spans of a turn and its tools, unless the client does not record the trace that the turn belongs to.
pub fn add_turn(turn: &TurnReport, ids: &mut SpanIds, spans: &mut Vec<Value>) {
    let parent = turn.parent.unwrap_or_else(|| ids.root());
    if !parent.is_sampled {
        return;
    }
    let own = TraceParent {
        span: ids.next(),
        ..parent
    };
    let mut attributes = vec![text("gen_ai.operation.name", "invoke_agent")];
    add_subject(&turn.subject, &mut attributes);
    attributes.extend([
        texts(
            "gen_ai.response.finish_reasons",
            [turn.finish_reason.as_str()],
        ),
        text("acpipe.turn.id", &turn.turn),
        text("acpipe.turn.stop_reason", &turn.stop_reason),
        number("acpipe.turn.attempts", turn.attempts.into()),
    ]);
    if let Some(usage) = &turn.usage {
        let counts = [
            ("gen_ai.usage.input_tokens", usage.input_tokens),
            ("gen_ai.usage.output_tokens", usage.output_tokens),
            (
                "gen_ai.usage.cache_read.input_tokens",
                usage.cached_read_tokens,
            ),
            (
                "gen_ai.usage.cache_creation.input_tokens",
                usage.cached_write_tokens,
            ),
        ];
        attributes.extend(
            counts
                .into_iter()
                .filter_map(|(key, count)| Some(number(key, count?))),
        );
    }
    let name = format!("invoke_agent {}", turn.subject.agent);
    let error = turn.error.as_deref();
    let mut span = span(
        (own, parent.span),
        (&name, CLIENT),
        turn.period,
        attributes,
        error,
    );
    if let Some(at) = turn.first_output {
        span["events"] = json!([{ "timeUnixNano": at.to_string(), "name": "acpipe.first_output" }]);
    }
    spans.push(span);
    for tool in &turn.tools {
        let ids = TraceParent {
            span: ids.next(),
            ..own
        };
        spans.push(tool_span(tool, &turn.subject, (ids, own.span)));
    }
}

fn tool_span(tool: &ToolReport, subject: &Subject, ids: (TraceParent, u64)) -> Value {
    let mut attributes = vec![
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", &tool.name),
        text("gen_ai.tool.call.id", &tool.id),
        text("gen_ai.agent.name", &subject.agent),
        text("gen_ai.conversation.id", &subject.session),
    ];
    attributes.extend(
        tool.kind
            .as_deref()
            .map(|kind| text("acpipe.tool.kind", kind)),
    );
    let name = format!("execute_tool {}", tool.name);
    span(
        ids,
        (&name, INTERNAL),
        tool.period,
        attributes,
        tool_error(tool),
    )
}

/// Appends the span of an opening.
pub fn add_opening(opening: &OpeningReport, ids: &mut SpanIds, spans: &mut Vec<Value>) {
    let own = TraceParent {
        span: ids.next(),
        ..ids.root()
    };
    let mut attributes = Vec::new();
    add_subject(&opening.subject, &mut attributes);
    if let Ok(opened) = &opening.outcome {
        let failed = opened.failed.iter().map(|rung| step(*rung));
        attributes.extend([
            text("acpipe.opening.step", step(opened.rung)),
            text("acpipe.opening.memory", memory(opened.memory)),
            texts("acpipe.opening.failed_steps", failed),
        ]);
    }
    let name = format!("open_session {}", opening.subject.agent);
    let error = opening.outcome.as_ref().err().copied();
    spans.push(span(
        (own, 0),
        (&name, INTERNAL),
        opening.period,
        attributes,
        error,
    ));
}

fn add_subject(subject: &Subject, attributes: &mut Vec<Value>) {
    attributes.extend([
        text("gen_ai.provider.name", provider(subject)),
        text("gen_ai.agent.name", &subject.agent),
        text("gen_ai.conversation.id", &subject.session),
        text("acpipe.agent.protocol", subject.protocol),
    ]);
    let version = subject.agent_version.as_deref();
    attributes.extend(version.map(|version| text("gen_ai.agent.version", version)));
    let model = subject.model.as_deref();
    attributes.extend(model.map(|model| text("gen_ai.request.model", model)));
}

/// Returns a span. `parent` is the id of its parent, or 0.
fn span(
    (own, parent): (TraceParent, u64),
    (name, kind): (&str, u8),
    period: Period,
    mut attributes: Vec<Value>,
    error: Option<&str>,
) -> Value {
    attributes.extend(error.map(|error| text("error.type", error)));
    let mut span = json!({
        "traceId": format!("{:032x}", own.trace),
        "spanId": format!("{:016x}", own.span),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": period.began.to_string(),
        "endTimeUnixNano": period.ended.to_string(),
        "attributes": attributes,
    });
    if parent != 0 {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if error.is_some() {
        span["status"] = json!({ "code": ERROR });
    }
    span
}
