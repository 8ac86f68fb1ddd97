//! Input of a command: the prompt as text or JSON.

use crate::backend::BackendPrompt;
use acpipe_model::backend_options::CommandInput;
use acpipe_model::data_url::DataUrl;
use acpipe_model::dialect::{PromptPart, UNNAMED};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::prompt_parts::only_acp;
use serde_json::{Value, json};

/// Text in an argument that is replaced by the prompt.
const PLACEHOLDER: &str = "{prompt}";

/// Maximum length of an argument, in bytes (Linux: `MAX_ARG_STRLEN`, with the byte that ends it).
const MAX_ARGUMENT: usize = (128 << 10) - 1;

/// Returns the data for stdin, and fills the prompt into the arguments.
///
/// # Errors
/// The prompt has a file, which text cannot contain.
pub fn input(
    prompt: &BackendPrompt<'_>,
    form: CommandInput,
    args: &mut [String],
) -> Result<Vec<u8>, Error> {
    match form {
        CommandInput::Json => {
            let mut line = json(prompt).to_string().into_bytes();
            line.push(b'\n');
            Ok(line)
        }
        CommandInput::Text => {
            let text = text(prompt)?;
            let mut is_argument = false;
            for arg in args.iter_mut().filter(|arg| arg.contains(PLACEHOLDER)) {
                *arg = arg.replace(PLACEHOLDER, &text);
                is_argument = true;
                if arg.len() > MAX_ARGUMENT || arg.contains('\0') {
                    let message = "message.parts: the prompt is too long for an argument, or contains NUL; remove {prompt} from \
                                   the arguments, so that the command reads it on stdin";
                    let error = Error::new(ErrorKind::InvalidParams, message);
                    return Err(error.with("field", "message.parts"));
                }
            }
            Ok(if is_argument {
                Vec::new()
            } else {
                (text + "\n").into_bytes()
            })
        }
    }
}

fn json(prompt: &BackendPrompt<'_>) -> Value {
    let (session, transcript) = (prompt.session, prompt.transcript);
    let texts = prompt.parts.iter().filter_map(|part| match part {
        PromptPart::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    json!({
        "prompt": texts.join("\n\n"),
        "message": transcript.message,
        "history": transcript.earlier,
        "omitted": transcript.omitted,
        "instructions": session.options.append_system_prompt,
        "sessionId": session.id,
        "cwd": session.cwd,
    })
}

/// Returns the instructions and the texts of the prompt.
fn text(prompt: &BackendPrompt<'_>) -> Result<String, Error> {
    let mut texts: Vec<String> = Vec::new();
    texts.extend(prompt.session.options.append_system_prompt.clone());
    for part in prompt.parts {
        texts.push(match part {
            PromptPart::Text(text) => text.clone().into_owned(),
            PromptPart::File { url, name, .. } => file(url, name.as_deref(), prompt.degrade)?,
            PromptPart::Block(_) | PromptPart::Params(_) => return Err(only_acp()),
        });
    }
    Ok(texts.join("\n\n"))
}

/// Returns the text for a file: its address, or its name if the client allows to leave out the data.
fn file(url: &str, name: Option<&str>, degrade: bool) -> Result<String, Error> {
    if DataUrl::read(url).is_none() {
        return Ok(url.to_owned());
    }
    let name = name.unwrap_or(UNNAMED);
    if degrade {
        return Ok(format!("(file {name}, not sent)"));
    }
    let message = format!(
        "message.parts: the agent takes text only, not the file {name:?}; remove the part, set `input = \"json\"` for the \
         agent, or set degrade to send only its name"
    );
    Err(Error::new(ErrorKind::InvalidParams, message).with("field", "message.parts"))
}
