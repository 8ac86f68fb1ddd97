//! Questions of a turn: whether a tool may run, and what the user is asked beside that.

use super::Tools;
use super::call::Call;
use crate::core::event::{Permission, ToolUpdate};
use crate::core::inquiry::Inquiry;
use crate::core::permit::Decision;
use crate::core::policy::{Subject, Tool};
use crate::core::turn::{TurnEvent, TurnView};
use crate::proto::json::{shortened, shortened_raw};
use crate::proto::wire::{AskedTool, OfferedOption};
use serde_json::{Map, Value};

/// How much of each field of a question's call is kept with the question, in bytes.
const WRITTEN: usize = 4 << 10;

/// So many addresses are remembered in a turn: agents send their user to one, seldom to two.
const MOST_VISITS: usize = 16;

/// An address to which the user was sent.
#[derive(Debug)]
pub(super) struct Visit {
    /// The agent's id of it.
    id: String,
    /// Id of the question.
    question: String,
}

/// A question that was asked.
#[derive(Debug)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// Id of the tool call, where one asks.
    pub tool: Option<String>,
    /// The subagent that asks.
    pub subagent: Option<String>,
    is_permission: bool,
    /// What the user is asked, where it is more than a permission.
    pub inquiry: Option<Inquiry>,
    options: Vec<OfferedOption>,
}

impl Question {
    /// A question to the user that is asked outside of any turn, and shown nowhere.
    #[must_use]
    pub fn outside(id: String, inquiry: Inquiry) -> Self {
        Self {
            id,
            tool: None,
            subagent: None,
            is_permission: false,
            inquiry: Some(inquiry),
            options: Vec::new(),
        }
    }

    /// Whether it is about a permission, whatever else it asks.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.is_permission
    }

    /// What the user can choose, where they are asked to choose.
    #[must_use]
    pub fn options(&self) -> &[OfferedOption] {
        &self.options
    }

    /// What a person answered, without secrets.
    #[must_use]
    pub fn content(&self, decision: &Decision) -> Option<Map<String, Value>> {
        let inquiry = self.inquiry.as_ref()?;
        let content = decision.content.as_deref()?;
        let content = serde_json::from_str(content.get()).ok()?;
        Some(inquiry.shown(&content))
    }
}

impl Tools {
    /// What a question is about, with all that is known of its call.
    pub fn subject(&self, asked: &ToolUpdate<'_>, cwd: &str) -> Subject {
        let asking = Tool {
            name: asked.name.as_deref(),
            title: asked.title.as_deref(),
            kind: asked.kind.as_deref(),
            input: asked.input.as_deref(),
            locations: asked.locations.as_deref(),
            content: asked.content.as_deref(),
        };
        match self.by_id.get(asked.id.as_ref()) {
            Some(&at) => Subject::of_tools(&[&asking, &self.calls[at].facts()], cwd),
            None => Subject::of_tool(&asking, cwd),
        }
    }

    /// Takes a permission question; `automatic` where the policy answers it, `calls` are those that it stands for.
    pub fn ask(
        &mut self,
        permission: &Permission<'_>,
        calls: &[String],
        automatic: bool,
        view: &mut impl TurnView,
    ) -> Question {
        let at = self.call(&permission.tool);
        let id = self.next_question();
        let call = &mut self.calls[at];
        let change = call.merge_question(&permission.tool);
        call.consent.asked = true;
        call.ask(&id);
        let question = Question {
            id,
            tool: Some(call.id().to_owned()),
            subagent: None,
            is_permission: true,
            inquiry: None,
            options: Vec::new(),
        };
        view.event(&TurnEvent::PermissionAsked {
            at,
            call,
            change,
            question: &question,
            permission,
            calls,
            automatic,
        });
        question
    }

    /// Takes a question to the user that asks for no permission.
    pub fn pose(
        &mut self,
        tool: Option<&str>,
        inquiry: Inquiry,
        view: &mut impl TurnView,
    ) -> Question {
        let question = Question {
            tool: tool.map(str::to_owned),
            ..Question::outside(self.next_question(), inquiry)
        };
        self.ask_user(&question, view);
        question
    }

    /// Takes what the user is asked along with a permission question.
    pub fn inquire(
        &mut self,
        question: &mut Question,
        inquiry: Inquiry,
        options: Vec<OfferedOption>,
        view: &mut impl TurnView,
    ) {
        question.inquiry = Some(inquiry);
        question.options = options;
        self.ask_user(question, view);
    }

    fn ask_user(&mut self, question: &Question, view: &mut impl TurnView) {
        view.event(&TurnEvent::UserAsked { question });
        self.note_visit(question);
    }

    /// Remembers the address that a question sends the user to.
    fn note_visit(&mut self, question: &Question) {
        let Some(id) = question.inquiry.as_ref().and_then(|i| i.id.as_ref()) else {
            return;
        };
        self.visits.retain(|visit| visit.question != question.id);
        if self.visits.len() == MOST_VISITS {
            self.visits.remove(0);
        }
        self.visits.push(Visit {
            id: id.clone(),
            question: question.id.clone(),
        });
    }

    /// The user has been at an address; false where nobody was sent there.
    pub fn visited(&mut self, id: &str, view: &mut impl TurnView) -> bool {
        let Some(visit) = self.visits.iter().find(|visit| visit.id == id) else {
            return false;
        };
        let question = &visit.question;
        view.event(&TurnEvent::Visited { question });
        true
    }

    /// Takes the answer to a question.
    pub fn decide(&mut self, question: &Question, decision: &Decision, view: &mut impl TurnView) {
        let tool = question.tool.as_deref().filter(|_| question.is_permission);
        let at = tool.and_then(|tool| self.by_id.get(tool).copied());
        if let Some(at) = at {
            self.calls[at].decide(&question.id, decision.approved());
            self.note_settled(at);
        }
        view.event(&TurnEvent::Decided {
            call: at.map(|at| (at, &self.calls[at])),
            question,
            decision,
        });
        self.note_visit(question);
    }

    /// The agent refused to run a tool, without a question.
    pub fn refused(&mut self, tool: &str, reason: &str, view: &mut impl TurnView) {
        let at = self.call(&ToolUpdate {
            id: tool.into(),
            ..ToolUpdate::default()
        });
        let id = self.next_question();
        let call = &mut self.calls[at];
        call.consent.asked = true;
        call.ask(&id);
        call.decide(&id, false);
        view.event(&TurnEvent::Refused {
            at,
            call,
            question: &id,
            reason,
        });
        self.note_settled(at);
    }

    /// The call as a client is asked about it.
    pub fn asked(&self, id: &str) -> Option<AskedTool> {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        call.map(Call::asked)
    }

    fn next_question(&mut self) -> String {
        self.asked += 1;
        format!("{}.ask{}", self.message_id, self.asked)
    }
}

/// What the agent wrote in the call of its question, cut where it is long. What the policy answers at once is
/// replaced before anything else could show it.
#[must_use]
pub fn written(tool: &ToolUpdate<'_>) -> Map<String, Value> {
    let mut written = Map::new();
    let words = [("title", &tool.title), ("kind", &tool.kind)];
    for (name, word) in words {
        if let Some(word) = word {
            written.insert(
                name.to_owned(),
                shortened(&Value::from(word.as_ref()), WRITTEN),
            );
        }
    }
    let raws = [("rawInput", &tool.input), ("content", &tool.content)];
    for (name, raw) in raws {
        if let Some(raw) = raw
            .as_deref()
            .filter(|raw| !matches!(raw.get(), "{}" | "[]"))
        {
            written.insert(name.to_owned(), shortened_raw(raw, WRITTEN));
        }
    }
    written
}
