//! Conversion of `session/update` notifications to neutral updates.

use acpipe_json::{JsonStr, Members, is_dense, non_null, text, to_raw};
use acpipe_model::event::{
    AgentEvent, Content, MessagePiece, MessageRole, NO_CALL_ID, Original, TerminalUpdate,
    ToolUpdate, Update, call_id, is_text,
};
use acpipe_model::line_shape::place;
use acpipe_protocol::acp::{
    AnyContentBlock, Cost, Resource, SessionUpdateLine, TerminalMeta, TerminalPart, UpdateFields,
    WholeLine, WholeParams,
};
use memchr::memmem;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Parses a `session/update` line in one pass; `None` if it is another line or has an unexpected form.
pub fn read_line<'a>(line: &'a str, events: &mut Vec<AgentEvent<'a>>) -> Option<()> {
    let l: SessionUpdateLine<'a> = serde_json::from_str(line).ok()?;
    if l.id.is_some() || l.method != "session/update" {
        return None;
    }
    read_update(line, l, events)
}

pub fn read_request<'a>(line: &'a str, events: &mut Vec<AgentEvent<'a>>) -> Option<()> {
    let l: Option<SessionUpdateLine<'a>> = serde_json::from_str(line).ok();
    match l {
        Some(l) => read_update(line, l, events),
        None => read_unexpected(line, events),
    }
}

fn read_update<'a>(
    line: &'a str,
    l: SessionUpdateLine<'a>,
    events: &mut Vec<AgentEvent<'a>>,
) -> Option<()> {
    let session = text(l.params.session_id)?;
    let mut fields = l.params.update?;
    if let Some(terminal) = terminal(&fields) {
        let session = session.clone();
        push(session, Update::Terminal(terminal), line, events);
    }
    add_notification(&l.params.rest, &mut fields.rest);
    push(session, of_kind(&fields), line, events);
    Some(())
}

/// Parses a `session/update` of an unexpected form, which is passed on unchanged.
pub fn read_unexpected<'a>(line: &'a str, events: &mut Vec<AgentEvent<'a>>) -> Option<()> {
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

/// Adds the members next to the update in its notification to the update, as its `notification`.
fn add_notification(notification: &Members<'_>, update: &mut Members<'_>) {
    if !notification.is_empty() {
        update.set_owned("notification", notification);
    }
}

pub fn original(line: &str) -> Original<'_> {
    Original {
        line,
        cut: |line| whole(line)?.update,
        fields: |line| {
            let Some(params) = whole(line) else {
                return Members::default();
            };
            let notice = params.update.and_then(notice_fields);
            let members = || params.update.map(Members::of).unwrap_or_default();
            let mut fields = notice.unwrap_or_else(|| members().without(&["sessionUpdate"]));
            add_notification(&params.rest, &mut fields);
            fields
        },
    }
}

/// Returns a `session/update` line with other ids of tool calls: `rename` returns the id that replaces one. `None`
/// if nothing changes.
pub fn with_call_ids(line: &str, rename: impl Fn(&str) -> Option<String>) -> Option<String> {
    let l: SessionUpdateLine<'_> = serde_json::from_str(line).ok()?;
    let fields = l.params.update?;
    let parent = claude(fields.meta).and_then(|claude| claude.parent);
    let own_parent = || {
        let own = rename(&text(parent)?)?;
        Some((place(line, parent?.get())?, to_raw(&own).get().to_owned()))
    };
    let own_call = || {
        let own = to_raw(&rename(&call_id(fields.tool_call_id))?);
        if let Some(raw) = fields.tool_call_id {
            return Some((place(line, raw.get())?, own.get().to_owned()));
        }
        let end = place(line, fields.session_update?.get())?.end;
        Some((end..end, format!(",\"toolCallId\":{own}")))
    };
    let is_of_call = fields.tool_call_id.is_some() || is_of_tool(&fields);
    let own_call = is_of_call.then(own_call).flatten();
    let mut parts: Vec<_> = own_parent().into_iter().chain(own_call).collect();
    parts.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
    let mut renamed = (!parts.is_empty()).then(|| line.to_owned())?;
    for (at, own) in parts {
        renamed.replace_range(at, &own);
    }
    Some(renamed)
}

/// Parses the parameters of a `session/update` line and keeps the update as raw JSON.
fn whole(line: &str) -> Option<WholeParams<'_>> {
    let l: WholeLine<'_> = serde_json::from_str(line).ok()?;
    serde_json::from_str(l.params?.get()).ok()
}

fn of_kind<'a>(f: &UpdateFields<'a>) -> Update<'a> {
    let kind = text(f.session_update);
    let kind = kind.as_deref().unwrap_or("");
    // Members that do not belong to this kind of update are kept in `other`.
    let state = |own: &[(&'static str, Option<&'a RawValue>)]| {
        let mut news = Members::default();
        for (name, said) in own {
            news.set_some(name, *said);
        }
        if news.is_empty() && f.meta.is_none() {
            return None;
        }
        news.set_some("_meta", f.meta);
        let all = [
            own,
            &[("sessionUpdate", f.session_update), ("_meta", f.meta)],
        ]
        .concat();
        let other = f.others(&all);
        if !other.is_empty() {
            news.set_owned("other", &other);
        }
        Some(Update::Session(news))
    };
    let known = match kind {
        "agent_message_chunk" if marked_notice(f).is_some() => Some(Update::Notice),
        "agent_message_chunk" => message(MessageRole::Answer, f),
        "agent_thought_chunk" => message(MessageRole::Thought, f),
        "user_message_chunk" => message(MessageRole::User, f),
        "tool_call" | "tool_call_update" => Some(Update::Tool(Box::new(tool(f)))),
        "plan" => f.entries.map(|entries| {
            let mut data = f.others(&[("sessionUpdate", f.session_update), ("entries", f.entries)]);
            data.set("entries", entries);
            let id = Cow::Borrowed("plan");
            Update::Plan { id, data }
        }),
        "plan_update" => plan_update(f),
        "plan_removed" => text(f.plan_id).map(|id| {
            let mut data = f.without(&["sessionUpdate"]);
            data.set_owned("removed", &true);
            Update::Plan { id, data }
        }),
        "usage_update" => Some(Update::Context {
            cost: cost(f.cost),
            figures: None,
        }),
        "available_commands_update" => state(&[("availableCommands", f.available_commands)]),
        "current_mode_update" => state(&[("currentModeId", f.current_mode_id)]),
        "config_option_update" => state(&[("configOptions", f.config_options)]),
        "session_info_update" => state(&[("title", f.title), ("updatedAt", f.updated_at)]),
        "notice" => Some(Update::Notice),
        "compaction_update" | "compaction_summary_chunk" => {
            text(f.compaction_id).map(|id| Update::Compaction { id })
        }
        "subagent_update" => text(f.subagent).map(|id| Update::Subagent { id }),
        "session_message" | "session_message_chunk" => {
            text(f.message_id).map(|id| Update::SubagentMessage { id })
        }
        _ => None,
    };
    known.unwrap_or(Update::Other)
}

/// Converts an update of one of several plans: the plan's own fields, and the members next to it.
fn plan_update<'a>(f: &UpdateFields<'a>) -> Option<Update<'a>> {
    acpipe_json::raw_object! {
        struct Plan { id = "planId" }
    }
    let plan: Plan<'a> = serde_json::from_str(f.plan?.get()).ok()?;
    let mut data = Members::of(f.plan?);
    let other = f.without(&["sessionUpdate", "plan"]);
    if !other.is_empty() {
        data.set_owned("other", &other);
    }
    Some(Update::Plan {
        id: text(plan.id)?,
        data,
    })
}

/// Returns text that the agent marks as a notice for the user, which is not part of its answer, and the notice's level.
/// claude-agent-acp sends the notices of Claude Code as text of the answer.
fn marked_notice<'a>(f: &UpdateFields<'a>) -> Option<(JsonStr<'a>, Option<&'a RawValue>)> {
    let mark = claude(f.meta)?;
    if text(mark.kind)? != "informational" {
        return None;
    }
    let block: AnyContentBlock<'a> = serde_json::from_str(f.content?.get()).ok()?;
    let text = block.text.and_then(JsonStr::new)?;
    Some((text, mark.level))
}

/// Returns the fields of a message that is marked as a notice: its text without Markdown is the title.
fn notice_fields(update: &RawValue) -> Option<Members<'_>> {
    // The fields of most updates are read once.
    memmem::find(update.get().as_bytes(), br#""informational""#)?;
    let f: UpdateFields<'_> = serde_json::from_str(update.get()).ok()?;
    if text(f.session_update)? != "agent_message_chunk" {
        return None;
    }
    let (title, level) = marked_notice(&f)?;
    let title = title.decode();
    let plain = title
        .strip_prefix("**")
        .and_then(|rest| rest.split_once(":** "));
    let plain = plain.map(|(level, words)| format!("{level}: {words}"));
    let mut fields = Members::default();
    fields.set_some("level", non_null(level));
    fields.set_owned("title", &plain.as_deref().unwrap_or(&title));
    let block: Members<'_> = Members::of(f.content?).without(&["type", "text"]);
    if !block.is_empty() {
        fields.set_owned("contentOther", &block);
    }
    fields.extend(f.without(&["sessionUpdate", "content"]));
    Some(fields)
}

fn message<'a>(role: MessageRole, f: &UpdateFields<'a>) -> Option<Update<'a>> {
    let block = f.content?;
    let b: AnyContentBlock<'a> = serde_json::from_str(block.get()).ok()?;
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
    let content = content.unwrap_or(Content::Other);
    let mut about = Members::default();
    about.set_some("_meta", non_null(f.meta));
    about.set_some("annotations", non_null(b.annotations));
    about.set_some("contentMeta", non_null(b.meta));
    let message_id = text(f.message_id);
    let mut other = f.others(&[
        ("sessionUpdate", f.session_update),
        ("content", f.content),
        ("messageId", f.message_id),
        ("_meta", f.meta),
    ]);
    if message_id.is_none() {
        other.set_some("messageId", non_null(f.message_id));
    }
    if !other.is_empty() {
        about.set_owned("other", &other);
    }
    if let Content::Text(_) = content {
        // For all other content the whole block is kept.
        let other = b.others(&[
            ("type", b.kind),
            ("text", b.text),
            ("annotations", b.annotations),
            ("_meta", b.meta),
        ]);
        if !other.is_empty() {
            about.set_owned("contentOther", &other);
        }
    }
    Some(Update::Message(MessagePiece {
        role,
        message_id,
        content,
        subagent: claude(f.meta).and_then(|claude| text(claude.parent)),
        about,
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

/// Replacement for a member that would take many times its size when parsed.
#[derive(serde::Serialize)]
struct Omitted {
    /// Size of the member in bytes.
    omitted: usize,
}

impl Omitted {
    fn of(raw: &RawValue) -> Self {
        Self {
            omitted: raw.get().len(),
        }
    }
}

pub fn tool<'a>(f: &UpdateFields<'a>) -> ToolUpdate<'a> {
    let mut other = f.others(&[
        ("sessionUpdate", f.session_update),
        ("toolCallId", f.tool_call_id),
        ("name", f.name),
        ("title", f.title),
        ("kind", f.kind),
        ("status", f.status),
        ("rawInput", f.raw_input),
        ("rawOutput", f.raw_output),
        ("content", f.content),
        ("locations", f.locations),
        ("_meta", f.meta),
    ]);
    // A value of a type that the protocol does not define for its field is kept in `other`.
    let mut take = |name, raw: Option<&'a RawValue>, opening: char| {
        let raw = non_null(raw)?;
        if !raw.get().starts_with(opening) {
            other.set(name, raw);
            return None;
        }
        if opening == '[' && is_dense(raw.get()) {
            other.set_owned(name, &Omitted::of(raw));
            return None;
        }
        Some(raw)
    };
    let mut word = |name, raw| text(take(name, raw, '"'));
    let (name, title) = (word("name", f.name), word("title", f.title));
    let (kind, status) = (word("kind", f.kind), word("status", f.status));
    let content = take("content", f.content, '[').map(Cow::Borrowed);
    let locations = take("locations", f.locations, '[').map(Cow::Borrowed);
    let is_unnamed = !is_text(f.tool_call_id) && call_id(f.tool_call_id) == NO_CALL_ID;
    if let Some(id) = non_null(f.tool_call_id).filter(|_| is_unnamed) {
        other.set("toolCallId", id);
    }
    let mut meta = non_null(f.meta);
    if let Some(dense) = meta.take_if(|meta| is_dense(meta.get())) {
        other.set_owned("_meta", &Omitted::of(dense));
    }
    ToolUpdate {
        id: call_id(f.tool_call_id),
        is_id_made: !is_text(f.tool_call_id),
        begins: is_tool_call(f),
        name: name.or_else(|| claude(f.meta).and_then(|claude| text(claude.tool_name))),
        title,
        kind,
        status,
        input: non_null(f.raw_input).map(Cow::Borrowed),
        input_delta: None,
        output: non_null(f.raw_output),
        content,
        locations,
        meta,
        other,
    }
}

fn is_of_tool(f: &UpdateFields<'_>) -> bool {
    let kind = f.session_update.map(RawValue::get);
    kind == Some("\"tool_call_update\"") || is_tool_call(f)
}

fn is_tool_call(f: &UpdateFields<'_>) -> bool {
    let kind = f.session_update;
    kind.is_some_and(|kind| kind.get() == "\"tool_call\"")
}

acpipe_json::raw_object! {
    /// `_meta.claudeCode`: the name of the tool, from claude-agent-acp before ACP had `name`, and the tool
    /// call whose subagent sent the update. `kind` and `level` mark text that is a notice of Claude Code.
    struct ClaudeCode { tool_name = "toolName", parent = "parentToolUseId", kind = "kind", level = "level" }
}

fn claude(meta: Option<&RawValue>) -> Option<ClaudeCode<'_>> {
    acpipe_json::raw_object! {
        struct Meta { claude_code = "claudeCode" }
    }
    let meta: Meta<'_> = serde_json::from_str(meta?.get()).ok()?;
    serde_json::from_str(meta.claude_code?.get()).ok()
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
    // codex-acp uses the second name for clients that declare neither of the two.
    let output = part(m.output.or(m.delta));
    let id = output.id.or(part(m.info).id).or(part(m.exit).id);
    Some(TerminalUpdate {
        id: text(id)?,
        tool: call_id(f.tool_call_id),
        begins: is_tool_call(f),
        output: output.data.and_then(JsonStr::new),
        details: m.exit.or(m.info),
    })
}

fn cost(raw: Option<&RawValue>) -> Option<f64> {
    let cost: Cost<'_> = serde_json::from_str(non_null(raw)?.get()).ok()?;
    serde_json::from_str(cost.amount?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::{original, with_call_ids};
    use acpipe_json::to_raw;

    #[test]
    fn marked_notice_has_its_text_as_title() {
        for (update, want) in [
            (
                r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"**Warning:** a **b**","x":1},"_meta":{"claudeCode":{"kind":"informational","level":"warning"}}}"#,
                r#"{"level":"warning","title":"Warning: a **b**","contentOther":{"x":1},"_meta":{"claudeCode":{"kind":"informational","level":"warning"}}}"#,
            ),
            (
                r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"_meta":{"claudeCode":{"kind":"x"}}}"#,
                r#"{"content":{"type":"text","text":"a"},"_meta":{"claudeCode":{"kind":"x"}}}"#,
            ),
        ] {
            let line = format!(r#"{{"params":{{"sessionId":"a","update":{update}}}}}"#);
            assert_eq!(to_raw(&original(&line).fields()).get(), want);
        }
    }

    #[test]
    fn only_the_ids_of_calls_change_in_a_line() {
        let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"_meta":{"claudeCode":{"parentToolUseId":"a","x":1.50}},"sessionUpdate":"tool_call","toolCallId" : "a","title":"a"}}}"#;
        let renamed = with_call_ids(line, |id| (id == "a").then(|| "a\"#2".to_owned())).unwrap();
        let want = line.replace(r#"Id":"a","x"#, r##"Id":"a\"#2","x"##);
        let want = want.replace(r#"Id" : "a""#, r##"Id" : "a\"#2""##);
        assert_eq!(renamed, want);
        assert_eq!(with_call_ids(line, |_| None), None);
        for (id, want) in [("7", "7"), ("null", "no-id")] {
            let line = line.replace(r#"Id" : "a""#, &format!(r#"Id" : {id}"#));
            let renamed = with_call_ids(&line, |id| (id == want).then(|| id.to_owned()));
            assert!(renamed.unwrap().contains(&format!(r#"Id" : "{want}""#)));
        }
        let unnamed = line.replace(r#","toolCallId" : "a""#, "");
        let renamed = with_call_ids(&unnamed, |id| (id == "no-id").then(|| id.to_owned()));
        let want = unnamed.replace(r#""tool_call""#, r#""tool_call","toolCallId":"no-id""#);
        assert_eq!(renamed.as_deref(), Some(&*want));
        assert_eq!(with_call_ids("{}", |_| Some(String::new())), None);
    }
}
