//! Arguments of `acpipe acp`.

use super::limits::LimitArgs;
use super::{AgentArgs, AttachArgs};
use acpipe_protocol::wire::PromptWhenBusy;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(
    after_help = "An editor starts this command as its agent. It keeps sessions: the editor can load them again, also if \
        the agent cannot. Settings of editors are in docs/editors.md.\n\n\
        Examples:\n  \
        acpipe acp --agent claude                       Claude Code, without its ACP adapter\n  \
        acpipe acp -- gemini --acp                      any ACP agent\n  \
        acpipe acp --agent claude --agent codex         two agents; the editor chooses one for each session"
)]
pub struct AcpArgs {
    /// Handling of a prompt that arrives while a turn runs in its session
    #[arg(long, value_enum, default_value_t = WhenBusyArg::Queue, value_name = "WHAT")]
    pub when_busy: WhenBusyArg,
    #[command(flatten)]
    pub attach: AttachArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenBusyArg {
    /// It waits until the turn ends
    Queue,
    /// It gets an error
    Reject,
}

impl From<WhenBusyArg> for PromptWhenBusy {
    fn from(when: WhenBusyArg) -> Self {
        match when {
            WhenBusyArg::Queue => Self::Queue,
            WhenBusyArg::Reject => Self::Reject,
        }
    }
}
