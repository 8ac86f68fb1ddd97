//! Keys of agents that are not processes with a conversation.

use super::super::fault::{Fault, KeyPath};
use super::super::file::AgentTable;
use crate::core::backend_options::{BackendOptions, HistoryLimit};
use crate::proto::wire::Protocol;

/// Returns the options of an agent: those that it extends, changed by its own keys.
///
/// # Errors
/// A key that agents of this protocol do not have.
pub fn backend(
    table: &AgentTable,
    protocol: Option<Protocol>,
    inherited: BackendOptions,
) -> Result<BackendOptions, Fault> {
    let of_command = [
        ("input", table.input.is_some()),
        ("output", table.output.is_some()),
        ("answer", table.answer.is_some()),
        ("history", table.history.is_some()),
    ];
    let foreign = of_command.into_iter().find(|(_, is_set)| *is_set);
    if let Some((key, _)) = foreign.filter(|_| protocol != Some(Protocol::Command)) {
        let why = "applies only to agents with protocol = \"command\"";
        return Err(Fault::new(KeyPath::of(&[key]), why.to_owned()));
    }
    let history = table.history.as_ref().map(|own| HistoryLimit {
        messages: own.messages.unwrap_or(inherited.history.messages),
        tokens: own.tokens.unwrap_or(inherited.history.tokens),
    });
    Ok(BackendOptions {
        history: history.unwrap_or(inherited.history),
        input: table.input.unwrap_or(inherited.input),
        output: table.output.unwrap_or(inherited.output),
        answer: table.answer.clone().or(inherited.answer),
    })
}
