//! Updates that only clients with a capability may get.

use acpipe_model::acp_notification::AcpNotification;
use serde_json::{Value, json};

/// Updates that the client declared to show.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    /// `notice`
    pub notices: bool,
    /// `compaction_update` and `compaction_summary_chunk`
    pub compactions: bool,
}

/// Form in which the client gets an update that acpipe made.
pub enum Form {
    AsIs,
    /// This update in its place.
    Other(Value),
    /// None: the update would change nothing that the client shows.
    Left,
}

impl Shown {
    /// Reads the capabilities of a client.
    pub fn of(capabilities: &Value) -> Self {
        let has = |at: &str| capabilities.pointer(at).is_some_and(|can| !can.is_null());
        Self {
            notices: has("/session/notices"),
            compactions: has("/session/compaction"),
        }
    }

    /// Returns the form of an update. Updates of ACP agents stay as they are: the agent knows the client.
    pub fn form(self, update: AcpNotification<'_>) -> Form {
        let AcpNotification::Update(json) = update else {
            return Form::AsIs;
        };
        let is = |kind: &str| {
            let rest = json.strip_prefix(br#"{"sessionUpdate":""#);
            rest.is_some_and(|rest| rest.starts_with(kind.as_bytes()))
        };
        if !self.compactions && is("compaction_") {
            return Form::Left;
        }
        if self.notices || !is("notice\"") {
            return Form::AsIs;
        }
        let notice: Value = serde_json::from_slice(json).unwrap_or_default();
        let text = |name: &str| notice[name].as_str().unwrap_or_default().to_owned();
        let lines = [text("title"), text("description")];
        let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        Form::Other(thought(&lines.join("\n"), &notice["_meta"]))
    }

    /// Returns the update that shows a sentence of acpipe.
    pub fn sentence(self, text: &str, about: &Value) -> Value {
        let meta = json!({ "acpipe": about });
        if self.notices {
            let title = format!("acpipe: {text}");
            return json!({ "sessionUpdate": "notice", "severity": "info", "title": title, "_meta": meta });
        }
        thought(&format!("acpipe: {text}"), &meta)
    }
}

fn thought(text: &str, meta: &Value) -> Value {
    let mut update = json!({
        "sessionUpdate": "agent_thought_chunk",
        "content": { "type": "text", "text": format!("{text}\n") },
    });
    if !meta.is_null() {
        update["_meta"] = meta.clone();
    }
    update
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(can: &Value, update: &Value) -> Option<Value> {
        let json = update.to_string();
        // The name of the kind comes first, as in the updates that acpipe makes.
        let kind = update["sessionUpdate"].as_str().unwrap();
        let rest = json.replace(&format!("\"sessionUpdate\":\"{kind}\""), "\"x\":1");
        let json = rest.replacen('{', &format!("{{\"sessionUpdate\":\"{kind}\","), 1);
        match Shown::of(can).form(AcpNotification::Update(json.as_bytes())) {
            Form::AsIs => Some(update.clone()),
            Form::Other(other) => Some(other),
            Form::Left => None,
        }
    }

    #[test]
    fn updates_without_the_capability_of_the_client_are_not_sent() {
        let notice = json!({ "sessionUpdate": "notice", "severity": "info", "title": "a", "description": "b" });
        let compaction = json!({ "sessionUpdate": "compaction_update", "compactionId": "c" });
        let can = json!({ "session": { "notices": {}, "compaction": {} } });
        assert_eq!(shown(&can, &notice), Some(notice.clone()));
        assert_eq!(shown(&can, &compaction), Some(compaction.clone()));
        assert_eq!(shown(&json!({}), &compaction), None);
        let thought = shown(&json!({}), &notice).unwrap();
        assert_eq!(thought["sessionUpdate"], "agent_thought_chunk");
        assert_eq!(thought["content"]["text"], "a\nb\n");
    }
}
