//! Questions with an address for the user to open, and with a plan for the user to approve.

use super::keys::Keys;
use super::prompt_view::{PromptView, short};
use super::tool::show_tool;
use super::{NextStep, until};
use acpipe_protocol::wire::QuestionParams;
use serde_json::json;

/// Maximum length of a shown host name in characters; no valid one is longer.
const HOST: usize = 255;

/// Address to open. acpipe shows it but never opens it.
#[derive(Debug)]
pub struct LinkQuestion(pub QuestionParams);

impl LinkQuestion {
    pub fn show(&self, view: &mut PromptView) {
        let url = self.0.url.as_deref().unwrap_or_default();
        view.line("\x1b[1macpipe: the agent asks you to open a URL\x1b[0m");
        view.words(&self.0.message);
        view.words(url);
        match host(url) {
            Some(host) => view.line(&format!("  Host: {}", short(host, HOST))),
            None => view.line("  The URL has no host"),
        }
        if url.contains('@') {
            view.line("  The part before @ is not the host");
        }
        view.line(&format!(
            "  acpipe does not open it for you{}",
            until(self.0.deadline_ms, "it is declined automatically")
        ));
    }

    pub fn read(line: Option<&str>) -> NextStep {
        let action = match line.map(|line| line.trim().to_lowercase()).as_deref() {
            Some("y" | "yes") => "accept",
            Some("" | "n" | "no") => "decline",
            None => "cancel",
            Some(other) => return NextStep::Again(format!("{:?} is not y or n", short(other, 20))),
        };
        NextStep::Answer(json!({ "action": action }))
    }
}

/// Returns the host and port of a URL, without user information.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

/// Plan to approve, shown in full.
#[derive(Debug)]
pub struct PlanQuestion {
    params: QuestionParams,
    keys: Keys,
}

impl PlanQuestion {
    pub fn new(params: QuestionParams) -> Self {
        Self {
            keys: Keys::new(&params.options),
            params,
        }
    }

    pub fn show(&self, view: &mut PromptView) {
        view.line("\x1b[1macpipe: approve the agent's plan?\x1b[0m");
        match (&self.params.message, &self.params.tool_call) {
            (plan, Some(tool)) if plan.trim().is_empty() => show_tool(tool, view),
            (plan, _) => view.words(plan),
        }
        let until = until(self.params.deadline_ms, "it is declined automatically");
        view.line(&format!(
            "  n TEXT refuses and tells the agent what to do instead{until}"
        ));
        self.keys.show(view);
    }

    pub fn prompt(&self) -> String {
        format!("{} (Enter refuses): ", self.keys.list())
    }

    pub fn read(&self, line: Option<&str>) -> NextStep {
        let Some(line) = line else {
            return NextStep::Answer(json!({"action": "cancel"}));
        };
        let chosen = match self.keys.read(line) {
            Ok(chosen) => chosen,
            Err(why) => return NextStep::Again(why),
        };
        let action = if chosen.refuses { "decline" } else { "accept" };
        let mut content = json!({});
        if let Some(option) = chosen.option {
            content["optionId"] = option.option_id.as_str().into();
        }
        if let Some(words) = chosen.words {
            content["feedback"] = words.into();
        }
        NextStep::Answer(json!({"action": action, "content": content}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_host_is_the_real_destination() {
        let cases = [
            ("https://example.com/a?b", Some("example.com")),
            ("https://good.com@evil.com:8080/x", Some("evil.com:8080")),
            ("https://evil.com?@good.com", Some("evil.com")),
            ("https://evil.com\\@good.com/", Some("evil.com")),
            ("https:///x", None),
            ("mailto:a@b", None),
            ("", None),
        ];
        for (url, want) in cases {
            assert_eq!(host(url), want, "{url}");
        }
    }
}
