//! Questions of a turn: permission requests for tools and elicitations.

use super::Tools;
use super::call::Call;
use crate::turn::{TurnEvent, TurnView};
use acpipe_json::{shortened, shortened_raw};
use acpipe_model::decision::Decision;
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::{Permission, ToolUpdate};
use acpipe_model::secret::Secrets;
use acpipe_policy::{Subject, ToolProperties};
use acpipe_protocol::wire::{AskedTool, OfferedOption};
use serde_json::{Map, Value};

/// Maximum size of each kept field of a question's call, in bytes.
const LEDGER_FIELD_LIMIT: usize = 4 << 10;

/// Maximum number of remembered URL elicitations per turn: agents send their user to one URL, seldom to two.
const MAX_URL_ELICITATIONS: usize = 16;

/// URL elicitation, which the agent may report as completed later.
#[derive(Debug)]
pub(super) struct UrlElicitation {
    /// The agent's id of the elicitation.
    id: String,
    question: String,
}

/// A question of the agent: a permission request, an elicitation, or both.
#[derive(Debug)]
pub struct Question {
    pub id: String,
    /// Id of the tool call that asks; `None` if no call does.
    pub tool: Option<String>,
    /// Id of the subagent that asks; `None` for the main turn.
    pub subagent: Option<String>,
    /// Ids of the calls that the question stands for.
    pub calls: Vec<String>,
    is_permission: bool,
    /// The elicitation, if the user is asked more than a permission.
    pub elicitation: Option<ElicitationDetails>,
    options: Vec<OfferedOption>,
}

impl Question {
    /// Creates an elicitation outside of any turn, which no view shows.
    #[must_use]
    pub fn outside(id: String, elicitation: ElicitationDetails) -> Self {
        Self {
            id,
            tool: None,
            subagent: None,
            calls: Vec::new(),
            is_permission: false,
            elicitation: Some(elicitation),
            options: Vec::new(),
        }
    }

    /// Returns `true` if the question is a permission request, regardless of what else it asks.
    pub fn is_permission(&self) -> bool {
        self.is_permission
    }

    /// Options that the user can choose from; empty if there is no choice.
    pub fn options(&self) -> &[OfferedOption] {
        &self.options
    }

    /// Adds what the user typed as an answer to the secrets that logs and tapes hide, since agents repeat it.
    pub fn learn_typed(&self, decision: &Decision, secrets: &Secrets) {
        let content = decision.content.as_deref();
        let content = content.and_then(|content| serde_json::from_str(content.get()).ok());
        if let (Some(elicitation), Some(content)) = (&self.elicitation, content) {
            let typed: Vec<_> = elicitation.typed(&content).collect();
            secrets.add_values(typed.iter().map(AsRef::as_ref));
        }
    }

    /// Returns the user's answer without secrets.
    pub fn content(&self, decision: &Decision) -> Option<Map<String, Value>> {
        let elicitation = self.elicitation.as_ref()?;
        let content = decision.content.as_deref()?;
        let content = serde_json::from_str(content.get()).ok()?;
        Some(elicitation.shown(&content))
    }
}

impl Tools {
    /// Returns the subject of a permission request, including everything known of its call.
    pub fn subject(&self, asked: &ToolUpdate<'_>, cwd: &str) -> Subject {
        let asking = ToolProperties {
            name: asked.name.as_deref(),
            title: asked.title.as_deref(),
            kind: asked.kind.as_deref(),
            input: asked.input.as_deref(),
            locations: asked.locations.as_deref(),
            content: asked.content.as_deref(),
        };
        match self.by_id.get(asked.id.as_ref()) {
            Some(&at) => {
                let call = &self.calls[at];
                call.subject(&[&asking, &call.facts()], cwd)
            }
            None => Subject::of_tool(&asking, cwd),
        }
    }

    /// Applies a permission request with the subject by which it is judged. `automatic` is `true` if the policy
    /// answers it.
    pub fn ask(
        &mut self,
        permission: &Permission<'_>,
        subject: &Subject,
        automatic: bool,
        view: &mut impl TurnView,
    ) -> Question {
        let at = self.call(&permission.tool);
        let id = self.next_question();
        let call = &mut self.calls[at];
        let change = call.merge_question(&permission.tool);
        call.ask(&id, subject);
        let question = Question {
            id,
            calls: subject.calls.clone(),
            tool: Some(call.id().to_owned()),
            subagent: None,
            is_permission: true,
            elicitation: None,
            options: Vec::new(),
        };
        view.event(&TurnEvent::PermissionAsked {
            at,
            call,
            change,
            question: &question,
            permission,
            calls: &subject.calls,
            automatic,
        });
        question
    }

    /// Replaces the input of the call of an open permission request.
    pub fn rewrite(
        &mut self,
        question: &Question,
        tool: &ToolUpdate<'_>,
        subject: &Subject,
        view: &mut impl TurnView,
    ) {
        self.update(tool, view);
        if let Some(&at) = self.by_id.get(tool.id.as_ref()) {
            self.calls[at].rewrite(&question.id, subject, tool.input.as_deref());
        }
    }

    /// Applies an elicitation without a permission request.
    pub fn elicit(
        &mut self,
        tool: Option<&str>,
        elicitation: ElicitationDetails,
        view: &mut impl TurnView,
    ) -> Question {
        let question = Question {
            tool: tool.map(str::to_owned),
            ..Question::outside(self.next_question(), elicitation)
        };
        self.ask_user(&question, view);
        question
    }

    pub fn attach_elicitation(
        &mut self,
        question: &mut Question,
        elicitation: ElicitationDetails,
        options: Vec<OfferedOption>,
        view: &mut impl TurnView,
    ) {
        question.elicitation = Some(elicitation);
        question.options = options;
        self.ask_user(question, view);
    }

    fn ask_user(&mut self, question: &Question, view: &mut impl TurnView) {
        view.event(&TurnEvent::UserAsked { question });
        self.note_url_elicitation(question);
    }

    fn note_url_elicitation(&mut self, question: &Question) {
        let Some(id) = question.elicitation.as_ref().and_then(|i| i.id.as_ref()) else {
            return;
        };
        self.url_elicitations
            .retain(|visit| visit.question != question.id);
        if self.url_elicitations.len() == MAX_URL_ELICITATIONS {
            self.url_elicitations.remove(0);
        }
        self.url_elicitations.push(UrlElicitation {
            id: id.clone(),
            question: question.id.clone(),
        });
    }

    /// Records that a URL elicitation was completed. Returns `false` if the id is unknown.
    pub fn url_completed(&mut self, id: &str, view: &mut impl TurnView) -> bool {
        let Some(visit) = self.url_elicitations.iter().find(|visit| visit.id == id) else {
            return false;
        };
        let question = &visit.question;
        view.event(&TurnEvent::UrlCompleted { question });
        true
    }

    pub fn decide(&mut self, question: &Question, decision: &Decision, view: &mut impl TurnView) {
        let tool = question.tool.as_deref().filter(|_| question.is_permission);
        let at = tool.and_then(|tool| self.by_id.get(tool).copied());
        if let Some(at) = at {
            self.calls[at].decide(&question.id, decision);
            self.note_settled(at);
        }
        view.event(&TurnEvent::Decided {
            call: at.map(|at| (at, &self.calls[at])),
            question,
            decision,
        });
        self.note_url_elicitation(question);
    }

    /// Records that the agent refused to run a tool, without a permission request.
    pub fn refused(&mut self, tool: &str, reason: &str, view: &mut impl TurnView) {
        let at = self.call(&ToolUpdate {
            id: tool.into(),
            ..ToolUpdate::default()
        });
        let id = self.next_question();
        let call = &mut self.calls[at];
        call.refuse(&id);
        view.event(&TurnEvent::Refused {
            at,
            call,
            question: &id,
            reason,
        });
        self.note_settled(at);
    }

    pub fn asked(&self, id: &str) -> Option<AskedTool> {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        call.map(Call::asked)
    }

    fn next_question(&mut self) -> String {
        self.asked += 1;
        format!("{}.ask{}", self.message_id, self.asked)
    }
}

/// Returns the call of a permission request as the agent wrote it, with long fields cut, for the ledger. When
/// the policy answers at once, a later update replaces these fields before anything else can show them.
pub fn written(tool: &ToolUpdate<'_>) -> Map<String, Value> {
    let mut written = Map::new();
    let words = [("title", &tool.title), ("kind", &tool.kind)];
    for (name, word) in words {
        if let Some(word) = word {
            written.insert(
                name.to_owned(),
                shortened(&Value::from(word.as_ref()), LEDGER_FIELD_LIMIT),
            );
        }
    }
    let raws = [("rawInput", &tool.input), ("content", &tool.content)];
    for (name, raw) in raws {
        if let Some(raw) = raw
            .as_deref()
            .filter(|raw| !matches!(raw.get(), "{}" | "[]"))
        {
            written.insert(name.to_owned(), shortened_raw(raw, LEDGER_FIELD_LIMIT));
        }
    }
    written
}
