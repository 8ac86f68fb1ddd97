//! Questions to the user: shown when they are asked, when they are decided, and when the agent says that the user has
//! been where he was sent.

use super::{ChunkSink, Question, Tools};
use crate::core::inquiry::Inquiry;
use crate::core::permit::Decision;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Members, Raw, to_raw};
use crate::proto::wire::{OfferedOption, QuestionAction};
use serde_json::{Map, Value, json};

/// So many addresses are remembered in a turn: agents send their user to one, seldom to two.
const MOST_VISITS: usize = 16;

/// An address to which the user was sent.
#[derive(Debug)]
pub(super) struct Visit {
    /// The agent's id of it.
    id: String,
    /// Id of the question.
    question: String,
    /// What was shown of it last.
    data: Members<'static>,
}

impl Question {
    /// A question to the user that is asked outside of any turn, and shown nowhere.
    #[must_use]
    pub fn outside(id: String, inquiry: Inquiry) -> Self {
        Self {
            id,
            tool: None,
            subagent: None,
            permission: None,
            inquiry: Some(inquiry),
            options: Vec::new(),
        }
    }

    /// What the user can choose, where he is asked to choose.
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
    /// Shows a question to the user that asks for no permission.
    pub fn pose(
        &mut self,
        tool: Option<&str>,
        inquiry: Inquiry,
        sink: &mut impl ChunkSink,
    ) -> Question {
        let question = Question {
            tool: tool.map(str::to_owned),
            ..Question::outside(self.next_question(), inquiry)
        };
        self.show_inquiry(&question, None, sink);
        question
    }

    /// Shows what the user is asked along with a permission question.
    pub fn inquire(
        &mut self,
        question: &mut Question,
        inquiry: Inquiry,
        options: Vec<OfferedOption>,
        sink: &mut impl ChunkSink,
    ) {
        question.inquiry = Some(inquiry);
        question.options = options;
        self.show_inquiry(question, None, sink);
    }

    /// Shows a question as it is now.
    pub(super) fn show_inquiry(
        &mut self,
        question: &Question,
        decision: Option<&Decision>,
        sink: &mut impl ChunkSink,
    ) {
        let Some(inquiry) = &question.inquiry else {
            return;
        };
        let mut data = asked(question, inquiry);
        if let Some(decision) = decision {
            decided(&mut data, question, decision);
        }
        show(&question.id, &data, sink);
        if let Some(id) = &inquiry.id {
            self.visits.retain(|visit| visit.question != question.id);
            if self.visits.len() == MOST_VISITS {
                self.visits.remove(0);
            }
            self.visits.push(Visit {
                id: id.clone(),
                question: question.id.clone(),
                data,
            });
        }
    }

    /// Shows that the user has been at an address; false where nobody was sent there.
    pub fn visited(&mut self, id: &str, sink: &mut impl ChunkSink) -> bool {
        let Some(visit) = self.visits.iter_mut().find(|visit| visit.id == id) else {
            return false;
        };
        visit.data.set_owned("completed", &true);
        show(&visit.question, &visit.data, sink);
        true
    }
}

fn asked(question: &Question, inquiry: &Inquiry) -> Members<'static> {
    // The agent's own fields may not take the place of ours.
    let mut data = Members::default();
    for (name, said) in &inquiry.other {
        data.set_owned(name.clone(), said);
    }
    data.set_owned("kind", &inquiry.kind);
    data.set_owned("message", &inquiry.message);
    if let Some(tool) = &question.tool {
        data.set_owned("toolCallId", tool);
    }
    if let Some(schema) = &inquiry.schema {
        data.set_owned("schema", schema);
    }
    if let Some(url) = &inquiry.url {
        data.set_owned("url", url);
    }
    if !question.options.is_empty() {
        data.set_owned("options", &question.options);
    }
    data
}

fn decided(data: &mut Members<'static>, question: &Question, decision: &Decision) {
    let action = match &decision.choice {
        None => QuestionAction::Cancel,
        Some(_) if decision.approved() => QuestionAction::Accept,
        Some(_) => QuestionAction::Decline,
    };
    data.set_owned("action", &action);
    if let Some(content) = question.content(decision) {
        data.set_owned("content", &content);
    } else if let Some(option) = decision
        .choice
        .as_ref()
        .filter(|_| !question.options.is_empty())
    {
        let mut content = json!({ "optionId": option.id });
        if let Some(feedback) = &decision.feedback {
            content["feedback"] = feedback.words.as_str().into();
            data.set_owned("feedbackDelivered", &feedback.delivered);
        }
        data.set_owned("content", &content);
    }
    data.set_owned("reason", &decision.reason);
    data.set_owned("by", &decision.by.word());
    if let Some(rule) = decision.by.rule() {
        data.set_owned("rule", &rule);
    }
}

fn show(id: &str, data: &Members<'static>, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataQuestion {
        id,
        data: Raw(&to_raw(data)),
    });
}
