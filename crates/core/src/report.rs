//! Reports of finished operations, for telemetry: turns with their tool calls, and openings of sessions.
//!
//! A report is complete when it is made, so nothing has to be kept for telemetry between events. No report has text
//! of a prompt, an answer or a tool.

use acpipe_protocol::wire::{Memory, Rung, TokenUsage};

/// Finished operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Report {
    /// A prompted turn ended.
    Turn(Box<TurnReport>),
    Opening(Box<OpeningReport>),
}

/// Session and agent of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The client's id of the session.
    pub session: String,
    /// Name of the agent; of an agent without a name, the key of its program.
    pub agent: String,
    pub agent_version: Option<String>,
    /// Name of the agent's protocol; empty without a connection.
    pub protocol: &'static str,
    pub model: Option<String>,
}

/// Begin and end of an operation, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub began: u64,
    pub ended: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TurnReport {
    pub subject: Subject,
    pub turn: String,
    pub period: Period,
    /// When the first output of the agent arrived, in nanoseconds since 1970; `None` without output.
    pub first_output: Option<u64>,
    /// Span of the client that the turn belongs to.
    pub parent: Option<TraceParent>,
    /// AI SDK's name of the reason for which the turn ended.
    pub finish_reason: String,
    /// The agent's name of that reason.
    pub stop_reason: String,
    /// Kind of the error with which the turn ended.
    pub error: Option<String>,
    pub usage: Option<TokenUsage>,
    /// Number of times that the prompt was sent.
    pub attempts: u32,
    /// Tool calls, in the order of their first appearance.
    pub tools: Vec<ToolReport>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ToolReport {
    /// The agent's id of the call.
    pub id: String,
    pub name: String,
    /// Kind of the tool, in ACP's words.
    pub kind: Option<String>,
    /// First report of the call, and its end or that of the turn.
    pub period: Period,
    pub outcome: ToolOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// The tool has a result.
    Completed,
    Failed,
    Denied,
    /// The turn ended before the agent reported an end of the call.
    Unfinished,
}

/// Ended opening of a session: a restore, or the start of a new session.
#[derive(Debug, PartialEq, Eq)]
pub struct OpeningReport {
    pub subject: Subject,
    /// Begin, including the wait for the agent, and end.
    pub period: Period,
    /// How the session was opened, or the kind of the error.
    pub outcome: Result<Opened, &'static str>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Opened {
    /// Strategy that succeeded.
    pub rung: Rung,
    pub memory: Memory,
    /// Strategies that failed before, in order.
    pub failed: Vec<Rung>,
}

/// Position in a trace of the client, from the W3C header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// Id of the trace; not 0.
    pub trace: u128,
    /// Id of the client's span; not 0.
    pub span: u64,
    /// `true` if the client records its trace.
    pub is_sampled: bool,
}

impl TraceParent {
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version, trace, span, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
        let is_hex = |part: &str, length: usize| {
            let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            part.len() == length && part.bytes().all(is_lower_hex)
        };
        // Later versions may append parts.
        let ends = parts.next().is_none() || version != "00";
        if version == "ff" || !is_hex(version, 2) || !is_hex(flags, 2) || !ends {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16)
            .ok()
            .filter(|_| is_hex(trace, 32))?;
        let span = u64::from_str_radix(span, 16)
            .ok()
            .filter(|_| is_hex(span, 16))?;
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        (trace != 0 && span != 0).then_some(Self {
            trace,
            span,
            is_sampled,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_parent_is_parsed_strictly() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let span = "b7ad6b7169203331";
        let parsed = TraceParent::parse(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!(
            format!("{:032x}-{:016x}", parsed.trace, parsed.span),
            format!("{trace}-{span}")
        );
        assert!(parsed.is_sampled);
        let other = TraceParent::parse(&format!("00-{trace}-{span}-02"));
        assert!(!other.unwrap().is_sampled);
        assert!(TraceParent::parse(&format!("01-{trace}-{span}-01-more")).is_some());
        let zeros = "0".repeat(32);
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{zeros}-{span}-01"),
            format!("00-{trace}-{}-01", &zeros[..16]),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-+{}-{span}-01", &trace[1..]),
        ] {
            assert_eq!(TraceParent::parse(&wrong), None, "{wrong}");
        }
    }
}
