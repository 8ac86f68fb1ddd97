//! `session/update` in neutral words.

use crate::core::event::{
    AgentEvent, Content, MessagePiece, Original, TerminalUpdate, ToolStatus, ToolUpdate, Update,
    Voice,
};
use crate::proto::acp::{
    Block, Cost, Resource, TerminalMeta, TerminalPart, UpdateFields, UpdateLine, WholeLine,
    WholeParams,
};
use crate::proto::json::{JsonStr, Raw, non_null, text, to_raw};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Reads a `session/update` line in one pass; `None` when it is none, or an odd one.
pub fn read_line<'a>(line: &'a str, events: &mut Vec<AgentEvent<'a>>) -> Option<()> {
    let l: UpdateLine<'a> = serde_json::from_str(line).ok()?;
    if l.id.is_some() || l.method != "session/update" {
        return None;
    }
    let session = text(l.params.session_id)?;
    let fields = l.params.update?;
    if let Some(terminal) = terminal(&fields) {
        let session = session.clone();
        push(session, Update::Terminal(terminal), line, events);
    }
    push(session, of_kind(&fields), line, events);
    Some(())
}

/// Reads an odd `session/update`: whatever it is, it goes on as it came.
pub fn read_odd<'a>(line: &'a str, events: &mut Vec<AgentEvent<'a>>) -> Option<()> {
    let p = whole(line)?;
    p.update?;
    push(text(p.session_id)?, Update::Other, line, events);
    Some(())
}

fn push<'a>(
    session: Cow<'a, str>,
    update: Update<'a>,
    line: &'a str,
    events: &mut Vec<AgentEvent<'a>>,
) {
    events.push(AgentEvent::Update {
        session,
        update,
        original: original(line),
    });
}

/// The update of a `session/update` line.
pub fn original(line: &str) -> Original<'_> {
    Original {
        line,
        cut: |line| whole(line)?.update,
    }
}

/// The parameters of a `session/update` line, in which the update stays whole.
fn whole(line: &str) -> Option<WholeParams<'_>> {
    let l: WholeLine<'_> = serde_json::from_str(line).ok()?;
    serde_json::from_str(l.params?.get()).ok()
}

fn of_kind<'a>(f: &UpdateFields<'a>) -> Update<'a> {
    let kind = text(f.session_update);
    let kind = kind.as_deref().unwrap_or("");
    let state = |pairs: &[(&'static str, Option<&'a RawValue>)]| {
        let mut news: Vec<_> = pairs.iter().filter_map(|&(n, v)| Some((n, v?))).collect();
        if news.is_empty() {
            return None;
        }
        news.extend(f.meta.map(|meta| ("_meta", meta)));
        Some(Update::Session(news))
    };
    let known = match kind {
        "agent_message_chunk" => message(Voice::Answer, f),
        "agent_thought_chunk" => message(Voice::Thought, f),
        "user_message_chunk" => message(Voice::User, f),
        "tool_call" | "tool_call_update" => tool(f).map(|t| Update::Tool(Box::new(t))),
        "plan" => plan(f),
        "usage_update" => Some(Update::Context { cost: cost(f.cost) }),
        "available_commands_update" => state(&[("availableCommands", f.available_commands)]),
        "current_mode_update" => state(&[("currentModeId", f.current_mode_id)]),
        "config_option_update" => state(&[("configOptions", f.config_options)]),
        "session_info_update" => match state(&[("title", f.title), ("updatedAt", f.updated_at)]) {
            None => f.meta.map(|meta| Update::Session(vec![("_meta", meta)])),
            news => news,
        },
        "notice" => Some(Update::Notice),
        "compaction_update" | "compaction_summary_chunk" => {
            text(f.compaction_id).map(|id| Update::Compaction { id })
        }
        _ => None,
    };
    known.unwrap_or(Update::Other)
}

fn message<'a>(voice: Voice, f: &UpdateFields<'a>) -> Option<Update<'a>> {
    let block = f.content?;
    let b: Block<'a> = serde_json::from_str(block.get()).ok()?;
    let content = match text(b.kind)?.as_ref() {
        "text" => b.text.and_then(JsonStr::new).map(Content::Text),
        "image" | "audio" => {
            text(b.mime_type)
                .zip(b.data.and_then(JsonStr::new))
                .map(|(media_type, base64)| Content::Data {
                    media_type,
                    base64,
                    details: block,
                })
        }
        "resource_link" => text(b.uri).map(|uri| Content::Link {
            uri,
            name: text(b.name),
            media_type: text(b.mime_type),
            details: block,
        }),
        "resource" => resource(b.resource?, block),
        _ => None,
    };
    Some(Update::Message(MessagePiece {
        voice,
        message_id: text(f.message_id),
        content: content.unwrap_or(Content::Other),
        about: [
            ("_meta", f.meta),
            ("annotations", b.annotations),
            ("contentMeta", b.meta),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, non_null(value)?)))
        .collect(),
    }))
}

fn resource<'a>(resource: &'a RawValue, block: &'a RawValue) -> Option<Content<'a>> {
    let r: Resource<'a> = serde_json::from_str(resource.get()).ok()?;
    let uri = text(r.uri)?;
    let media_type = text(r.mime_type);
    if let Some(base64) = r.blob.and_then(JsonStr::new) {
        return Some(Content::Data {
            media_type: media_type.unwrap_or(Cow::Borrowed("application/octet-stream")),
            base64,
            details: block,
        });
    }
    r.text?;
    Some(Content::Document {
        uri,
        media_type,
        details: block,
    })
}

/// A tool call, as an update or a permission request tells of it; `None` without an id.
pub fn tool<'a>(f: &UpdateFields<'a>) -> Option<ToolUpdate<'a>> {
    let array = |raw: Option<&'a RawValue>| raw.filter(|r| r.get().starts_with('['));
    Some(ToolUpdate {
        id: text(f.tool_call_id)?,
        name: text(f.name).or_else(|| claude_tool_name(f.meta)),
        title: text(f.title),
        kind: text(f.kind),
        status: match text(f.status).as_deref() {
            Some("pending") => Some(ToolStatus::Pending),
            Some("in_progress") => Some(ToolStatus::InProgress),
            Some("completed") => Some(ToolStatus::Completed),
            Some("failed") => Some(ToolStatus::Failed),
            _ => None,
        },
        input: non_null(f.raw_input),
        output: non_null(f.raw_output),
        content: array(f.content),
        locations: array(f.locations),
        meta: non_null(f.meta),
    })
}

/// `_meta.claudeCode.toolName`: where claude-agent-acp named its tools before ACP had `name`.
fn claude_tool_name(meta: Option<&RawValue>) -> Option<Cow<'_, str>> {
    crate::proto::json::raw_object! {
        struct Meta { claude_code = "claudeCode", tool_name = "toolName" }
    }
    let meta: Meta<'_> = serde_json::from_str(meta?.get()).ok()?;
    let claude: Meta<'_> = serde_json::from_str(meta.claude_code?.get()).ok()?;
    text(claude.tool_name)
}

fn terminal<'a>(f: &UpdateFields<'a>) -> Option<TerminalUpdate<'a>> {
    let meta = non_null(f.meta)?;
    if !meta.get().contains("\"terminal_") {
        return None;
    }
    let m: TerminalMeta<'a> = serde_json::from_str(meta.get()).ok()?;
    let part = |raw: Option<&'a RawValue>| -> TerminalPart<'a> {
        raw.and_then(|r| serde_json::from_str(r.get()).ok())
            .unwrap_or_default()
    };
    let output = part(m.output);
    let id = output.id.or(part(m.info).id).or(part(m.exit).id);
    Some(TerminalUpdate {
        id: text(id)?,
        tool: text(f.tool_call_id)?,
        output: output.data.and_then(JsonStr::new),
        details: m.exit.or(m.info),
    })
}

fn plan<'a>(f: &UpdateFields<'a>) -> Option<Update<'a>> {
    let data = to_raw(&Plan {
        entries: Raw(f.entries?),
        meta: f.meta.map(Raw),
    });
    Some(Update::Plan { data })
}

/// What a `data-plan` chunk holds.
#[derive(serde::Serialize)]
struct Plan<'a> {
    entries: Raw<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Raw<'a>>,
}

fn cost(raw: Option<&RawValue>) -> Option<f64> {
    let cost: Cost<'_> = serde_json::from_str(non_null(raw)?.get()).ok()?;
    serde_json::from_str(cost.amount?.get()).ok()
}
