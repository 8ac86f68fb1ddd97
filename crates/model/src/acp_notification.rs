//! ACP updates of a session on their way to clients that speak ACP.

use acpipe_json::{Members, rpc, to_raw};
use serde_json::value::RawValue;

/// Update of a session in ACP (the notification `session/update`).
#[derive(Debug, Clone, Copy)]
pub enum AcpNotification<'a> {
    /// Notification as an ACP agent sent it.
    Line {
        line: &'a str,
        /// The agent's id of the session, if possible as a part of `line`. `None` if the id stays as it is, since it
        /// is that of a subagent.
        session: Option<&'a str>,
    },
    /// Update object that acpipe made, as JSON.
    Update(&'a [u8]),
}

impl AcpNotification<'_> {
    /// Appends the notification without a newline. `session` is the client's id of the session as a JSON string.
    pub fn write(&self, session: &str, out: &mut Vec<u8>) {
        match *self {
            Self::Update(update) => {
                out.extend_from_slice(
                    br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#,
                );
                out.extend_from_slice(session.as_bytes());
                out.extend_from_slice(br#","update":"#);
                out.extend_from_slice(update);
                out.extend_from_slice(b"}}");
            }
            Self::Line {
                line,
                session: None,
            } => out.extend_from_slice(line.trim_ascii_end().as_bytes()),
            Self::Line {
                line,
                session: Some(own),
            } => match place(line, own) {
                Some((before, after)) => {
                    out.extend_from_slice(before.as_bytes());
                    out.extend_from_slice(session.as_bytes());
                    out.extend_from_slice(after.trim_ascii_end().as_bytes());
                }
                None => write_parsed(line, session, out),
            },
        }
    }
}

/// Returns the texts before and after the string of the session id, if the id is a part of the line.
fn place<'a>(line: &'a str, session: &str) -> Option<(&'a str, &'a str)> {
    let start = (session.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let end = start.checked_add(session.len())?;
    let before = line.get(..start)?.strip_suffix('"')?;
    let after = line.get(end..)?.strip_prefix('"')?;
    Some((before, after))
}

/// Replaces the session id of a notification whose position in the line is not known.
#[cold]
fn write_parsed(line: &str, session: &str, out: &mut Vec<u8>) {
    let params = rpc::parse(line).ok().and_then(|message| match message {
        // Some agents send `"id": null` with their updates.
        rpc::Message::Notification { params, .. } | rpc::Message::Request { params, .. } => params,
        rpc::Message::Response { .. } => None,
    });
    let mut members = params.map(Members::of).unwrap_or_default();
    let Ok(session) = serde_json::from_str::<&RawValue>(session) else {
        return;
    };
    members.set("sessionId", session);
    rpc::write_notification(out, "session/update", &to_raw(&members));
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"agent-1","update":{"sessionUpdate":"x","y":1.50},"_meta":{"z":2}}}"#;

    fn written(notification: AcpNotification<'_>) -> String {
        let mut out = Vec::new();
        notification.write("\"own\"", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_session_id_of_a_line_changes() {
        let at = LINE.find("agent-1").unwrap();
        let within = &LINE[at..at + "agent-1".len()];
        let want = LINE.replace("agent-1", "own");
        let line = AcpNotification::Line {
            line: LINE,
            session: Some(within),
        };
        assert_eq!(written(line), want);
        // The id was decoded, so it is not a part of the line.
        let line = AcpNotification::Line {
            line: LINE,
            session: Some("agent-1"),
        };
        let got: serde_json::Value = serde_json::from_str(&written(line)).unwrap();
        assert_eq!(
            got,
            serde_json::from_str::<serde_json::Value>(&want).unwrap()
        );
        let line = AcpNotification::Line {
            line: LINE,
            session: None,
        };
        assert_eq!(written(line), LINE);
    }

    #[test]
    fn update_of_acpipe_becomes_a_notification() {
        let text = written(AcpNotification::Update(br#"{"sessionUpdate":"x"}"#));
        let got: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(got["method"], "session/update");
        assert_eq!(got["params"]["sessionId"], "own");
        assert_eq!(got["params"]["update"]["sessionUpdate"], "x");
    }
}
