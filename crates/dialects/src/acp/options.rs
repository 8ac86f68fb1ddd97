//! Session options that an ACP agent supports.

use acpipe_model::error::{Error, invalid};
use acpipe_protocol::wire::SessionOptions;

/// Checks the options of a session. ACP has modes and models; the policy enforces lists of tools, and acpipe
/// itself applies an output schema.
///
/// # Errors
/// `invalidParams` for any other option.
pub fn check(options: &SessionOptions) -> Result<(), Error> {
    let own = SessionOptions {
        model: None,
        mode: None,
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        output_schema: None,
        ..options.clone()
    };
    let given = serde_json::to_value(&own).ok();
    let first = given
        .as_ref()
        .and_then(|given| given.as_object()?.keys().next());
    if let Some(name) = first {
        let why = "ACP agents do not support this option; use only model, mode, allowedTools, disallowedTools and outputSchema";
        return Err(invalid(&format!("options.{name}"), why));
    }
    Ok(())
}
