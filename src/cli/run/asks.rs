//! What a person at the terminal is asked: one question after the other, each answered once.

mod diff;
mod form;
mod keys;
mod link;
mod tool;
pub mod words;

#[cfg(test)]
mod tests;

use crate::core::ask::{AskId, ClientRequest, Refusal};
use crate::core::permit::By;
use crate::core::silence::in_words;
use crate::proto::json::to_raw;
use crate::proto::rpc::code;
use crate::proto::wire::QuestionKind;
use crate::shell::{ClientAction, Terminal};
use form::Form;
use link::{Link, Plan};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tool::Permission;
use words::Sheet;

/// Questions, and the terminal at which they are asked.
#[derive(Debug)]
pub struct Asks {
    terminal: Option<Terminal>,
    open: VecDeque<(AskId, Dialog)>,
    /// Whether the first of them is on the terminal.
    shown: bool,
    /// The number of what was asked of the terminal last.
    number: u64,
}

impl Asks {
    pub fn new(terminal: Option<Terminal>) -> Self {
        Self {
            terminal,
            open: VecDeque::new(),
            shown: false,
            number: 0,
        }
    }

    /// Whether somebody is there to ask.
    pub fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Asks once those before it are answered. A run declares no more than what a person answers: all else is
    /// refused.
    pub fn ask(&mut self, id: AskId, request: &ClientRequest) -> Option<ClientAction> {
        let Some(dialog) = Dialog::new(request) else {
            let message = format!("nobody answers {}", request.method());
            let refusal = Refusal {
                code: code::METHOD_NOT_FOUND.into(),
                message,
            };
            return Some(ClientAction::Answer(id, Err(refusal)));
        };
        self.open.push_back((id, dialog));
        None
    }

    /// Whether a question is open.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the next question is to be shown.
    pub fn is_due(&self) -> bool {
        self.is_open() && !self.shown
    }

    /// Shows the next question; `begun` where something stands in its line.
    pub fn show(&mut self, begun: bool) {
        let (Some(terminal), Some((_, dialog))) = (&mut self.terminal, self.open.front()) else {
            return;
        };
        let mut sheet = Sheet::new(terminal.width());
        dialog.show(&mut sheet);
        let text = if begun { "\n" } else { "" }.to_owned() + &sheet.text();
        self.shown = true;
        self.number += 1;
        terminal.ask(self.number, text, dialog.prompt(), dialog.is_secret());
    }

    /// What was typed: an answer, or what leads to one. A line for what is not asked any more is none.
    pub fn typed(&mut self, number: u64, line: Option<&[u8]>) -> Option<ClientAction> {
        let (Some(terminal), Some((id, dialog))) = (&mut self.terminal, self.open.front_mut())
        else {
            return None;
        };
        if !self.shown || number != self.number {
            return None;
        }
        let next = match line.map(str::from_utf8) {
            Some(Err(_)) => Next::Again("that is no UTF-8".to_owned()),
            Some(Ok(line)) => dialog.read(Some(line)),
            None => {
                // Nobody pressed Enter: what follows gets a line of its own.
                terminal.say("\n".to_owned());
                dialog.read(None)
            }
        };
        let text = match next {
            Next::Answer(answer) => {
                let action = ClientAction::Answer(*id, Ok(to_raw(&answer)));
                self.open.pop_front();
                self.shown = false;
                return Some(action);
            }
            Next::Again(why) => format!("acpipe: {why}\n"),
            Next::More => {
                let mut sheet = Sheet::new(terminal.width());
                dialog.show_more(&mut sheet);
                sheet.text()
            }
        };
        self.number += 1;
        terminal.ask(self.number, text, dialog.prompt(), dialog.is_secret());
        None
    }

    /// A question needs no answer any more; where it was shown that is said.
    pub fn withdraw(&mut self, id: AskId, by: &By) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else {
            return;
        };
        self.open.remove(at);
        if at > 0 || !self.shown {
            return;
        }
        self.shown = false;
        if let Some(terminal) = &mut self.terminal {
            terminal.say(format!(
                "\nacpipe: no answer is needed any more: {}\n",
                why(by)
            ));
        }
    }
}

/// Why a question is asked no more.
fn why(by: &By) -> &'static str {
    match by {
        By::Policy(_) | By::Client | By::OtherClient => "it is decided",
        By::Timeout(_) => "its time is up",
        By::Agent => "the agent withdrew the question",
        By::Cancel => "the turn was cancelled",
        By::End => "what asked has ended",
    }
}

/// When a question is answered by itself, as a part of a sentence.
fn until(deadline_ms: Option<u64>, then: &str) -> String {
    let words = |ms| format!("; in {} {then}", in_words(Duration::from_millis(ms)));
    deadline_ms.map_or_else(String::new, words)
}

/// What follows a line that was typed.
#[derive(Debug, PartialEq)]
enum Next {
    /// The answer, as the client's result.
    Answer(Value),
    /// The same is asked again, for this reason.
    Again(String),
    /// The next part is asked.
    More,
}

/// A question in the course of being answered.
#[derive(Debug)]
enum Dialog {
    Permission(Permission),
    Form(Form),
    Link(Link),
    Plan(Plan),
}

impl Dialog {
    fn new(request: &ClientRequest) -> Option<Self> {
        Some(match request {
            ClientRequest::Permission(params) => Self::Permission(Permission::new(params)),
            ClientRequest::Question(params) => match params.kind {
                QuestionKind::Form => Self::Form(Form::new(params)),
                QuestionKind::Url => Self::Link(Link((**params).clone())),
                QuestionKind::Plan => Self::Plan(Plan::new((**params).clone())),
            },
            ClientRequest::Host(_) => return None,
        })
    }

    /// Shows what is asked.
    fn show(&self, sheet: &mut Sheet) {
        match self {
            Self::Permission(permission) => permission.show(sheet),
            Self::Form(form) => form.show(sheet),
            Self::Link(link) => link.show(sheet),
            Self::Plan(plan) => plan.show(sheet),
        }
    }

    /// Shows the next part of what is asked.
    fn show_more(&self, sheet: &mut Sheet) {
        if let Self::Form(form) = self {
            form.show_field(sheet);
        }
    }

    /// What stands before the answer in its line.
    fn prompt(&self) -> String {
        match self {
            Self::Permission(permission) => permission.prompt(),
            Self::Form(form) => form.prompt(),
            Self::Link(_) => "opened it? y/n (Enter declines): ".to_owned(),
            Self::Plan(plan) => plan.prompt(),
        }
    }

    /// Whether the answer is not to be seen.
    fn is_secret(&self) -> bool {
        matches!(self, Self::Form(form) if form.is_secret())
    }

    /// Takes a line that was typed, or the end of the input.
    fn read(&mut self, line: Option<&str>) -> Next {
        match self {
            Self::Permission(permission) => permission.read(line),
            Self::Form(form) => form.read(line),
            Self::Link(_) => Link::read(line),
            Self::Plan(plan) => plan.read(line),
        }
    }
}
