//! Backend of commands: a program that reads one prompt and prints one answer.
//!
//! Each prompt starts the program in the session's directory. Its exit ends the turn.

mod answer;
mod input;

use super::backend::{Backend, BackendPrompt, Exchange};
use acpipe_model::backend_options::{BackendOptions, CommandInput};
use acpipe_model::dialect::{DialectTraits, ProcessSpec, Transport};
use acpipe_model::error::{Error, invalid};
use acpipe_model::event::AgentInfo;
use acpipe_protocol::wire::{AgentCapabilities, SessionOptions};
use answer::answer;

pub const TRAITS: DialectTraits = DialectTraits {
    default_command: None,
    identity: None,
    process_per_session: false,
    starts_in_mode: true,
    enforces_tool_lists: false,
    completes_input: false,
    runs_tools: true,
    takes_system_prompt: true,
    takes_output_schema: false,
    remembers: false,
    forks: false,
    logout_hint: "sign out with the command's own means",
    may_lack_argument: false,
};

/// A program that answers one prompt.
#[derive(Debug)]
pub struct CommandAgent {
    launch: ProcessSpec,
    options: BackendOptions,
}

impl CommandAgent {
    #[must_use]
    pub fn new(launch: ProcessSpec, options: BackendOptions) -> Self {
        Self { launch, options }
    }
}

impl Backend for CommandAgent {
    fn name(&self) -> &'static str {
        "command"
    }

    fn about(&self) -> AgentInfo {
        AgentInfo {
            capabilities: AgentCapabilities {
                resume: self.takes_transcript(),
                close: true,
                image: self.takes_transcript(),
                audio: self.takes_transcript(),
                embedded_context: self.takes_transcript(),
                ..AgentCapabilities::default()
            },
            ..AgentInfo::default()
        }
    }

    fn takes_transcript(&self) -> bool {
        self.options.input == CommandInput::Json
    }

    fn takes_model(&self) -> bool {
        false
    }

    fn exchange(&self, prompt: &BackendPrompt<'_>) -> Result<Exchange, Error> {
        let mut launch = ProcessSpec {
            cwd: prompt.session.cwd.clone(),
            ..self.launch.clone()
        };
        let input = input::input(prompt, self.options.input, &mut launch.args)?;
        Ok(Exchange {
            transport: Transport::Process(launch),
            input,
            answer: answer(self.options.output, self.options.answer.as_deref()),
        })
    }
}

/// Checks the options of a session: a command has instructions alone, and acpipe itself applies an output schema.
///
/// # Errors
/// `invalidParams` for any other option.
pub fn check(options: &SessionOptions) -> Result<(), Error> {
    let own = SessionOptions {
        append_system_prompt: None,
        output_schema: None,
        ..options.clone()
    };
    let given = serde_json::to_value(&own).ok();
    let first = given
        .as_ref()
        .and_then(|given| given.as_object()?.keys().next());
    match first {
        Some(name) => Err(invalid(
            &format!("options.{name}"),
            "agents of the protocol `command` do not support this option; use only appendSystemPrompt and outputSchema",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
