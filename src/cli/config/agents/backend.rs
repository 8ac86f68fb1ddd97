//! Keys of agents that are not processes with a conversation.

use super::super::fault::{ConfigFault, KeyPath};
use super::super::file::AgentTable;
use acpipe_model::backend_options::{BackendOptions, HistoryLimit};
use acpipe_protocol::wire::Protocol;

/// Returns the options of an agent: those that it extends, changed by its own keys.
///
/// # Errors
/// A key that agents of this protocol do not have.
pub fn backend(
    table: &AgentTable,
    protocol: Option<Protocol>,
    inherited: BackendOptions,
) -> Result<BackendOptions, ConfigFault> {
    use Protocol::{Command, OpenAi, UiStream};
    let keys: [(&str, bool, &[Protocol]); 7] = [
        ("input", table.input.is_some(), &[Command]),
        ("output", table.output.is_some(), &[Command]),
        ("answer", table.answer.is_some(), &[Command]),
        (
            "history",
            table.history.is_some(),
            &[Command, OpenAi, UiStream],
        ),
        (
            "api_key_env",
            table.api_key_env.is_some(),
            &[OpenAi, UiStream],
        ),
        ("headers", table.headers.is_some(), &[OpenAi, UiStream]),
        ("stream", table.stream.is_some(), &[OpenAi]),
    ];
    for (key, is_set, protocols) in keys {
        if is_set && !protocol.is_some_and(|own| protocols.contains(&own)) {
            let names = protocols
                .iter()
                .map(|protocol| format!("{:?}", protocol.name()));
            let names = names.collect::<Vec<_>>().join(" or ");
            let why = format!("applies only to agents with protocol = {names}");
            return Err(ConfigFault::new(KeyPath::of(&[key]), why));
        }
    }
    let mut headers = inherited.headers;
    headers.0.extend(table.headers.clone().unwrap_or_default());
    let history = table.history.as_ref().map(|own| HistoryLimit {
        messages: own.messages.unwrap_or(inherited.history.messages),
        tokens: own.tokens.unwrap_or(inherited.history.tokens),
    });
    Ok(BackendOptions {
        history: history.unwrap_or(inherited.history),
        input: table.input.unwrap_or(inherited.input),
        output: table.output.unwrap_or(inherited.output),
        answer: table.answer.clone().or(inherited.answer),
        api_key_env: table.api_key_env.clone().or(inherited.api_key_env),
        headers,
        stream: table.stream.unwrap_or(inherited.stream),
    })
}
