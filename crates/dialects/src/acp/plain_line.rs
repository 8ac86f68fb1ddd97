//! Updates of tool calls and plans in the form that most agents write: without white space, with the members of the
//! message in their usual order, and only with fields of the protocol. Other lines are left to the full parser.

use acpipe_json::{Members, Scanner, is_dense, non_null};
use acpipe_model::event::{AgentEvent, ToolUpdate, Update};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Reads an update of a tool call or a plan; `None` for any other line.
pub fn read(line: &str) -> Option<AgentEvent<'_>> {
    let mut scanner = Scanner::new(line);
    scanner.skip(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#)?;
    let session = Cow::Borrowed(scanner.string()?);
    scanner.skip(r#","update":{"sessionUpdate":"#)?;
    let update = match scanner.string()? {
        "tool_call" => tool(&mut scanner, true)?,
        "tool_call_update" => tool(&mut scanner, false)?,
        "plan" => plan(&mut scanner)?,
        _ => return None,
    };
    scanner.skip("}}}")?;
    scanner.is_at_end().then(|| AgentEvent::Update {
        session,
        update,
        original: super::updates::original(line),
    })
}

fn plan<'a>(scanner: &mut Scanner<'a>) -> Option<Update<'a>> {
    scanner.skip(r#","entries":"#)?;
    let mut data = Members::default();
    data.set("entries", scanner.value()?);
    let id = Cow::Borrowed("plan");
    Some(Update::Plan { id, data })
}

fn tool<'a>(scanner: &mut Scanner<'a>, begins: bool) -> Option<Update<'a>> {
    let mut tool = Box::new(ToolUpdate {
        begins,
        ..ToolUpdate::default()
    });
    let mut id = None;
    // A repeated member replaces the earlier one, which the full parser does.
    while scanner.skip(",").is_some() {
        let name = scanner.string()?;
        scanner.skip(":")?;
        let is_first = match name {
            "toolCallId" => id.replace(scanner.string()?).is_none(),
            "title" => tool.title.replace(scanner.string()?.into()).is_none(),
            "name" => tool.name.replace(scanner.string()?.into()).is_none(),
            "kind" => tool.kind.replace(scanner.string()?.into()).is_none(),
            "status" => tool.status.replace(scanner.string()?.into()).is_none(),
            "rawInput" => tool.input.replace(Cow::Borrowed(value(scanner)?)).is_none(),
            "rawOutput" => tool.output.replace(value(scanner)?).is_none(),
            "content" => tool.content.replace(list(scanner)?).is_none(),
            "locations" => tool.locations.replace(list(scanner)?).is_none(),
            _ => false,
        };
        if !is_first {
            return None;
        }
    }
    tool.id = Cow::Borrowed(id?);
    Some(Update::Tool(tool))
}

/// Reads a value other than `null`.
fn value<'a>(scanner: &mut Scanner<'a>) -> Option<&'a RawValue> {
    non_null(Some(scanner.value()?))
}

/// Reads an array, unless it would take many times its size when parsed.
fn list<'a>(scanner: &mut Scanner<'a>) -> Option<Cow<'a, RawValue>> {
    let list = scanner.value()?;
    let is_usual = list.get().starts_with('[') && !is_dense(list.get());
    is_usual.then_some(Cow::Borrowed(list))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::acp::updates::read_line;

    fn line(update: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        )
    }

    #[test]
    fn plain_updates_are_read_as_by_the_full_parser() {
        for update in [
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","title":"é","name":"n","kind":"k","status":"s","rawInput":{"a":[1]},"rawOutput":"\n","content":[],"locations":[{}]}"#,
            r#"{"sessionUpdate":"tool_call_update","status":"completed","toolCallId":""}"#,
            r#"{"sessionUpdate":"plan","entries":[{"content":"\u00e9"}]}"#,
            r#"{"sessionUpdate":"plan","entries":null}"#,
        ] {
            let line = line(update);
            let mut parsed = Vec::new();
            read_line(&line, &mut parsed).unwrap();
            let read = read(&line).unwrap();
            assert_eq!(format!("{:?}", [read]), format!("{parsed:?}"), "{update}");
        }
    }

    #[test]
    fn other_lines_are_left_to_the_full_parser() {
        for update in [
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","title":"\n"}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","title":null}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","_meta":{}}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","toolCallId":"b"}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":null}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","content":{}}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a","rawOutput":[1,]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"a",}"#,
            r#"{"sessionUpdate":"tool_call", "toolCallId":"a"}"#,
            r#"{"sessionUpdate":"tool_call","title":"a"}"#,
            r#"{"toolCallId":"a","sessionUpdate":"tool_call"}"#,
            r#"{"sessionUpdate":"plan","entries":[],"a":1}"#,
            r#"{"sessionUpdate":"plan"}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}"#,
        ] {
            assert!(read(&line(update)).is_none(), "{update}");
        }
        let plain = line(r#"{"sessionUpdate":"plan","entries":[]}"#);
        assert!(read(&plain).is_some());
        assert!(read(&format!("{plain} ")).is_none());
        assert!(read(&plain.replace("}}}", r#"},"_meta":{}}}"#)).is_none());
    }
}
