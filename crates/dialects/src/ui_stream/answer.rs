//! Answer of an AI SDK endpoint: chunks, of which those of the message's frame are replaced.

use crate::backend::UnusableLine;
use crate::endpoint::{BodyReader, Caller};
use acpipe_json::{Members, non_null, text};
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::event::{Original, StopReason, TurnEnd, Update};
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::value::RawValue;

/// Last event of a stream.
const DONE: &str = "[DONE]";

#[derive(Debug, Default)]
pub struct UiStreamBody {
    caller: Caller,
    /// Whether the message has a part or a step.
    has_begun: bool,
    is_done: bool,
    end: Option<MessageEnd>,
}

#[derive(Debug)]
enum MessageEnd {
    Finish(Option<String>),
    Abort(Option<String>),
    Error(String),
}

impl UiStreamBody {
    #[must_use]
    pub fn new(caller: Caller) -> Self {
        Self {
            caller,
            ..Self::default()
        }
    }
}

impl BodyReader for UiStreamBody {
    fn read<'a>(
        &mut self,
        data: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine> {
        if data.trim() == DONE {
            self.is_done = true;
            return Ok(());
        }
        let json: &'a RawValue = serde_json::from_str(data).map_err(|_| UnusableLine)?;
        let chunk: UiChunk<'a> = serde_json::from_str(data).map_err(|_| UnusableLine)?;
        let original = original(data);
        let metadata = non_null(chunk.message_metadata);
        let cleaned = |raw| text(raw).map(|text| self.caller.clean(&text));
        match chunk.type_name().as_ref() {
            "" => return Err(UnusableLine),
            "start" | "finish" => {
                if chunk.type_name() == "finish" {
                    self.end = Some(MessageEnd::Finish(cleaned(chunk.finish_reason)));
                }
                updates.extend(metadata.map(|it| (Update::MessageMetadata(it), original)));
                return Ok(());
            }
            "abort" => self.end = Some(MessageEnd::Abort(cleaned(chunk.reason))),
            "error" => {
                self.end = Some(MessageEnd::Error(
                    cleaned(chunk.error_text).unwrap_or_default(),
                ));
            }
            // acpipe's own message begins with a step, and it ends the last one.
            "start-step" if !self.has_begun => self.has_begun = true,
            "finish-step" => {}
            _ if chunk.is_known() && !chunk.is_in_acpipes_name() => {
                self.has_begun |= chunk.type_name() != "message-metadata" && !chunk.is_transient();
                let chunk = Box::new(chunk);
                updates.push((Update::Chunk { json, chunk }, original));
            }
            _ => updates.push((Update::Other, original)),
        }
        Ok(())
    }

    fn read_whole(&mut self, body: &str, _: &mut Vec<Update<'static>>) -> Result<(), Error> {
        let what = "is not a stream of chunks (its type is not text/event-stream)";
        Err(self.caller.malformed(what, body))
    }

    fn is_over(&self) -> bool {
        // Data can follow the last chunk of the message.
        self.is_done
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.end.is_some()
    }

    fn end(&mut self, _: &mut Vec<Update<'static>>) -> Result<TurnEnd, Error> {
        let mut end = TurnEnd::default();
        match self.end.take() {
            Some(MessageEnd::Error(said)) => {
                let message = format!(
                    "the endpoint reported an error: {}; see its log",
                    clip(&said)
                );
                return Err(Error::new(ErrorKind::Session, message).with("raw", said));
            }
            Some(MessageEnd::Abort(reason)) => {
                end.stop_reason = StopReason::Cancelled;
                "cancelled".clone_into(&mut end.reported);
                if let Some(reason) = &reason {
                    end.other.set_owned("reason", reason);
                }
            }
            Some(MessageEnd::Finish(reason)) => {
                end.stop_reason = stop_reason(reason.as_deref());
                let name = end.stop_reason.acp_name();
                end.reported = name.map(str::to_owned).or(reason).unwrap_or_default();
            }
            None if self.is_done => "end_turn".clone_into(&mut end.reported),
            None => {
                let message = "the endpoint's answer ended early, without its last chunk; the part before it was kept, \
                               try again";
                return Err(Error::new(ErrorKind::Streaming, message));
            }
        }
        Ok(end)
    }
}

fn stop_reason(finish_reason: Option<&str>) -> StopReason {
    match finish_reason {
        None | Some("stop") => StopReason::EndTurn,
        Some("length") => StopReason::MaxTokens,
        Some("content-filter") => StopReason::Refusal,
        Some(_) => StopReason::Unknown,
    }
}

fn original(line: &str) -> Original<'_> {
    fn cut(line: &str) -> Option<&RawValue> {
        serde_json::from_str(line).ok()
    }
    fn fields(line: &str) -> Members<'_> {
        serde_json::from_str(line).unwrap_or_default()
    }
    Original { line, cut, fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_does_not_report_in_the_name_of_acpipe() {
        for (kind, is_passed) in [
            ("data-permission", false),
            ("data-question", false),
            ("data-notice", false),
            ("data-recovery", false),
            ("data-session", false),
            ("data-plan", true),
            ("data-weather", true),
        ] {
            let line = format!(r#"{{"type":"{kind}","id":"q","data":{{"approved":true}}}}"#);
            let mut updates = Vec::new();
            let mut body = UiStreamBody::default();
            assert!(body.read(&line, &mut updates).is_ok());
            let [(update, _)] = &updates[..] else {
                panic!("one update");
            };
            assert_eq!(matches!(update, Update::Chunk { .. }), is_passed, "{kind}");
            assert_eq!(matches!(update, Update::Other), !is_passed, "{kind}");
        }
    }

    #[test]
    fn end_of_a_message_does_not_repeat_the_key() {
        for chunk in [
            r#"{"type":"finish","finishReason":"topsecret"}"#,
            r#"{"type":"abort","reason":"t%6Fpsecret"}"#,
            r#"{"type":"error","errorText":"key \\u0074opsecret and dG9wc2VjcmV0"}"#,
        ] {
            let caller = Caller::default();
            caller.secrets.add_values(["topsecret"]);
            let mut body = UiStreamBody::new(caller);
            assert!(body.read(chunk, &mut Vec::new()).is_ok());
            let text = match body.end(&mut Vec::new()) {
                Ok(end) => {
                    let other = serde_json::to_string(&end.other).unwrap();
                    format!("{} {other}", end.reported)
                }
                Err(error) => format!("{} {}", error.message, error.data()),
            };
            assert!(text.contains("[hidden]"), "{text}");
            for part in ["psecret", "dG9wc2"] {
                assert!(!text.contains(part), "{text}");
            }
        }
    }
}
