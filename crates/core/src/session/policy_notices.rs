//! Notices about the policy: shown in a turn, and as a text to clients that speak ACP, which have no notices.

use super::output::SessionOutput;
use crate::client::Notice;
use crate::client_sink::ClientSinks;
use crate::view::chunks::ChunkSink as _;
use acpipe_json::{Raw, to_raw};
use acpipe_model::error::one_sentence;
use acpipe_protocol::chunk::Chunk;
use serde_json::{Value, json};

pub(super) struct PolicyNotice<'a> {
    pub severity: &'static str,
    pub title: &'a str,
    pub description: &'a str,
    /// Id of the tool call that it is about, and the rule of the policy.
    pub call: Option<(&'a str, &'a str)>,
}

impl PolicyNotice<'_> {
    /// Sends the notice to the clients of a session; without an open turn, only to those that speak ACP.
    pub fn show(
        &self,
        turn: Option<&str>,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        // It may quote the agent, which must not begin a line of acpipe.
        let description = one_sentence(self.description);
        let mut notice = json!({
            "severity": self.severity,
            "title": self.title,
            "description": description,
        });
        if let Some((call, rule)) = self.call {
            notice["toolCallId"] = Value::from(call);
            notice["rule"] = Value::from(rule);
        }
        if turn.is_some() {
            let data = &to_raw(&notice);
            output.sink(turn, clients).chunk(&Chunk::DataNotice {
                data: Raw(data),
                transient: true,
            });
        }
        let text = format!("{}: {description}", self.title);
        let notice = Notice::PolicyWarning(output.session().to_owned(), text);
        output.notify_acp_clients(&notice, clients);
    }
}
