//! Questions to the user at the terminal, shown one at a time.

mod diff;
mod form;
mod keys;
mod link;
pub mod prompt_view;
mod tool;

#[cfg(test)]
mod tests;

use crate::cli::styles::for_terminal;
use acpipe_core::client::ClientId;
use acpipe_core::client_request::{ClientRequest, ClientRequestId, ErrorResponse};
use acpipe_host::{ClientAction, TerminalThread};
use acpipe_json::rpc::code;
use acpipe_json::to_raw;
use acpipe_model::decision::DecisionSource;
use acpipe_model::idle_timer::format_duration;
use acpipe_model::printable::printable;
use acpipe_protocol::wire::QuestionKind;
use form::FormQuestion;
use link::{LinkQuestion, PlanQuestion};
use prompt_view::PromptView;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tool::PermissionQuestion;

/// Queue of open questions and the terminal that shows them.
#[derive(Debug)]
pub struct TerminalQuestions {
    terminal: Option<TerminalThread>,
    open: VecDeque<(ClientRequestId, Dialog)>,
    /// Whether the first question is on the terminal.
    shown: bool,
    /// Number of the last input requested from the terminal; typed lines carry it.
    number: u64,
    /// `true` if the requested input is a prompt, which answers no question.
    is_reading_line: bool,
}

impl TerminalQuestions {
    pub fn new(terminal: Option<TerminalThread>) -> Self {
        Self {
            terminal,
            open: VecDeque::new(),
            shown: false,
            number: 0,
            is_reading_line: false,
        }
    }

    /// Returns `true` if there is a terminal to ask the user at.
    pub fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Queues a question. A request that the user cannot answer is refused; the run declares no capability
    /// for these.
    pub fn ask(&mut self, id: ClientRequestId, request: &ClientRequest) -> Option<ClientAction> {
        let Some(dialog) = Dialog::new(request) else {
            let message = format!("acpipe run does not support {}", request.method());
            let refusal = ErrorResponse {
                code: code::METHOD_NOT_FOUND.into(),
                message,
                data: None,
            };
            return Some(ClientAction::Answer(ClientId::FIRST, id, Err(refusal)));
        };
        self.open.push_back((id, dialog));
        None
    }

    /// Returns `true` if a question is open.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns `true` if the next question can be shown.
    pub fn is_due(&self) -> bool {
        self.is_open() && !self.shown
    }

    /// Shows the next question; `begun` if the cursor is not at the start of a line.
    pub fn show(&mut self, begun: bool) {
        let (Some(terminal), Some((_, dialog))) = (&mut self.terminal, self.open.front()) else {
            return;
        };
        let mut view = PromptView::new(terminal.width());
        dialog.show(&mut view);
        let text = if begun { "\n" } else { "" }.to_owned() + &for_terminal(view.text());
        self.shown = true;
        self.is_reading_line = false;
        self.number += 1;
        terminal.ask(self.number, text, dialog.prompt(), dialog.is_secret());
    }

    /// Reads a line that answers no question. A question that is shown meanwhile replaces it.
    pub fn read_line(&mut self) {
        let Some(terminal) = &mut self.terminal else {
            return;
        };
        if self.open.is_empty() && !self.is_reading_line {
            self.is_reading_line = true;
            self.number += 1;
            terminal.read_line(self.number);
        }
    }

    /// Returns `true` if a typed line is the one of [`read_line`](Self::read_line).
    pub fn take_line(&mut self, number: u64) -> bool {
        let is_line = self.is_reading_line && number == self.number;
        self.is_reading_line &= !is_line;
        is_line
    }

    /// Handles a typed line: answers the question, or asks again or for the next part. A line for an earlier
    /// question is ignored.
    pub fn typed(&mut self, number: u64, line: Option<&[u8]>) -> Option<ClientAction> {
        let (Some(terminal), Some((id, dialog))) = (&mut self.terminal, self.open.front_mut())
        else {
            return None;
        };
        if !self.shown || number != self.number {
            return None;
        }
        let next = match line.map(str::from_utf8) {
            Some(Err(_)) => NextStep::Again("the answer is not UTF-8 text".to_owned()),
            Some(Ok(line)) => dialog.read(Some(line)),
            None => {
                // End of input without Enter: the cursor is still in the prompt's line.
                terminal.say("\n".to_owned());
                dialog.read(None)
            }
        };
        let text = match next {
            NextStep::Answer(answer) => {
                let action = ClientAction::Answer(ClientId::FIRST, *id, Ok(to_raw(&answer)));
                self.open.pop_front();
                self.shown = false;
                return Some(action);
            }
            NextStep::Again(why) => format!("acpipe: {why}\n"),
            NextStep::More => {
                let mut view = PromptView::new(terminal.width());
                dialog.show_more(&mut view);
                view.text()
            }
        };
        self.number += 1;
        terminal.ask(self.number, text, dialog.prompt(), dialog.is_secret());
        None
    }

    /// Removes a question that needs no answer any more, with a message if it is on screen.
    pub fn withdraw(&mut self, id: ClientRequestId, by: &DecisionSource) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else {
            return;
        };
        self.open.remove(at);
        if at > 0 || !self.shown {
            return;
        }
        self.shown = false;
        if let Some(terminal) = &mut self.terminal {
            terminal.say(format!("\nacpipe: the question is closed: {}\n", why(by)));
        }
    }
}

/// Returns the reason for which a question was withdrawn.
fn why(by: &DecisionSource) -> String {
    let why = match by {
        DecisionSource::OtherClient(client) => {
            let name = client.name.as_deref().unwrap_or("another client");
            return format!("{} answered it", printable(name));
        }
        DecisionSource::Policy(_) | DecisionSource::Client => "it was answered",
        DecisionSource::Message => "a new message took the place of the answer",
        DecisionSource::Timeout(_) => "it timed out",
        DecisionSource::Agent => "the agent withdrew it",
        DecisionSource::Cancel => "the turn was cancelled",
        DecisionSource::End => "the agent process or session ended",
    };
    why.to_owned()
}

/// Formats the time until a question is resolved without the user, as part of a sentence; empty without a
/// deadline.
fn until(deadline_ms: Option<u64>, then: &str) -> String {
    let words = |ms| format!("; in {} {then}", format_duration(Duration::from_millis(ms)));
    deadline_ms.map_or_else(String::new, words)
}

/// Step after a typed line.
#[derive(Debug, PartialEq)]
enum NextStep {
    /// The answer, as result of the client request.
    Answer(Value),
    /// Asks again, for this reason.
    Again(String),
    /// Asks the next part.
    More,
}

/// Question with the state of its input.
#[derive(Debug)]
enum Dialog {
    Permission(PermissionQuestion),
    Form(FormQuestion),
    Link(LinkQuestion),
    Plan(PlanQuestion),
}

impl Dialog {
    fn new(request: &ClientRequest) -> Option<Self> {
        Some(match request.neutral()? {
            ClientRequest::Permission(params) => Self::Permission(PermissionQuestion::new(params)),
            ClientRequest::Question(params) => match params.kind {
                QuestionKind::Form => Self::Form(FormQuestion::new(params)),
                QuestionKind::Url => Self::Link(LinkQuestion((**params).clone())),
                QuestionKind::Plan => Self::Plan(PlanQuestion::new((**params).clone())),
            },
            ClientRequest::Host(_) | ClientRequest::Acp(..) => return None,
        })
    }

    /// Shows the question.
    fn show(&self, view: &mut PromptView) {
        match self {
            Self::Permission(permission) => permission.show(view),
            Self::Form(form) => form.show(view),
            Self::Link(link) => link.show(view),
            Self::Plan(plan) => plan.show(view),
        }
    }

    /// Shows the next field of a form.
    fn show_more(&self, view: &mut PromptView) {
        if let Self::Form(form) = self {
            form.show_field(view);
        }
    }

    /// Returns the prompt in front of the user's input.
    fn prompt(&self) -> String {
        match self {
            Self::Permission(permission) => permission.prompt(),
            Self::Form(form) => form.prompt(),
            Self::Link(_) => "Opened it? y/n (Enter declines): ".to_owned(),
            Self::Plan(plan) => plan.prompt(),
        }
    }

    /// Returns `true` if the input must not be echoed.
    fn is_secret(&self) -> bool {
        matches!(self, Self::Form(form) if form.is_secret())
    }

    /// Handles a typed line, or the end of input (`None`).
    fn read(&mut self, line: Option<&str>) -> NextStep {
        match self {
            Self::Permission(permission) => permission.read(line),
            Self::Form(form) => form.read(line),
            Self::Link(_) => LinkQuestion::read(line),
            Self::Plan(plan) => plan.read(line),
        }
    }
}
