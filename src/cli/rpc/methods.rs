//! jsonrpsee's table of the methods that a client can call: converts names and parameters to commands.
//!
//! A handler only reads its parameters. The resulting command goes through the [`HandlerSlot`] to the loop, which
//! owns all state and responds when the command is done.

use super::faults::invalid_field;
use crate::cli::schema::{DISCOVER, openrpc};
use acpipe_core::client::Command;
use acpipe_core::methods::{Method, MethodVisitor, visit_methods};
use acpipe_json::rpc::Message;
use acpipe_json::{SMALL, check_input, read_typed, rpc};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::prompt_parts::too_many;
use acpipe_model::unknown_fields;
use acpipe_protocol::fields::Fields;
use acpipe_protocol::has_schema::HasSchema;
use acpipe_protocol::wire::UnknownFields;
use jsonrpsee::core::server::MethodCallback;
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Method that sets how unknown fields are handled, including those in its own parameters.
const INITIALIZE: &str = "initialize";

/// State shared by the handlers and the table. The mutex is there because jsonrpsee requires a `Sync`
/// context.
#[derive(Default)]
struct HandlerSlot(Mutex<HandlerState>);

#[derive(Default)]
struct HandlerState {
    /// Command that the handler made of the parameters, or an error.
    outcome: Option<Result<Command, Error>>,
    /// Handling of unknown fields that the client requested in `initialize`.
    unknown_fields: UnknownFields,
}

impl HandlerSlot {
    fn lock(&self) -> MutexGuard<'_, HandlerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Method table.
pub struct Methods {
    module: RpcModule<HandlerSlot>,
    slot: Arc<HandlerSlot>,
}

/// Result of a call.
pub enum CallOutcome {
    /// Command for the loop.
    Command(Command),
    /// Immediate response.
    Answer(Result<Box<RawValue>, Error>),
}

impl Methods {
    /// Creates the table with all methods.
    pub fn new() -> Self {
        let slot = Arc::new(HandlerSlot::default());
        let mut methods = Self {
            module: RpcModule::from_arc(slot.clone()),
            slot,
        };
        visit_methods(&mut methods);
        let fields = Fields::of(DISCOVER);
        let discover = move |params: Params<'_>, slot: &HandlerSlot, _: &Extensions| {
            let mut handled = slot.lock();
            let nothing = object(&params).and_then(|text| known(&fields, text, &handled));
            handled.outcome = nothing.err().map(Err);
            Ok::<_, ErrorObjectOwned>(openrpc())
        };
        // Registration fails only for a name that is taken; a test compares the names with the OpenRPC
        // document.
        let _ = methods.module.register_method(DISCOVER, discover);
        methods
    }

    fn add<P: DeserializeOwned + 'static>(
        &mut self,
        method: &'static Method,
        command: fn(P) -> Command,
    ) {
        let fields = OnceLock::new();
        let handler = move |params: Params<'_>, slot: &HandlerSlot, _: &Extensions| {
            let mut handled = slot.lock();
            let fields = fields.get_or_init(|| Fields::of(method.name));
            let read = object(&params).and_then(|text| {
                if method.name == INITIALIZE {
                    handled.unknown_fields = requested_unknown_fields(text);
                }
                check_size(method, text)?;
                known(fields, text, &handled)?;
                read_params(text).map(command)
            });
            handled.outcome = Some(read);
            Ok::<(), ErrorObjectOwned>(())
        };
        let _ = self.module.register_method(method.name, handler);
    }

    /// Calls a method by name.
    pub fn call(&self, name: &str, params: Option<&RawValue>) -> CallOutcome {
        let Some(MethodCallback::Sync(handler)) = self.module.method(name) else {
            let message = format!("method {name:?} not found; rpc.discover lists all methods");
            return CallOutcome::Answer(Err(Error::new(ErrorKind::MethodNotFound, message)));
        };
        let params = Params::new(params.map(RawValue::get));
        let response = handler(Id::Null, params, usize::MAX, Extensions::new());
        match self.slot.lock().outcome.take() {
            Some(Ok(command)) => return CallOutcome::Command(command),
            Some(Err(error)) => return CallOutcome::Answer(Err(error)),
            None => {}
        }
        CallOutcome::Answer(match rpc::parse(response.as_json().get()) {
            Ok(Message::Response { outcome, .. }) => match outcome {
                Ok(result) => Ok(result.to_owned()),
                Err(e) => Err(Error::new(ErrorKind::InvalidParams, e.message)),
            },
            _ => Err(Error::new(
                ErrorKind::Internal,
                "the method table returned no response",
            )),
        })
    }

    /// Returns the names of all methods, sorted.
    #[cfg(test)]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.module.method_names().collect();
        names.sort_unstable();
        names
    }
}

impl MethodVisitor for Methods {
    fn visit<P, R>(&mut self, method: &'static Method, command: fn(P) -> Command)
    where
        P: DeserializeOwned + HasSchema + 'static,
        R: HasSchema,
    {
        self.add(method, command);
    }
}

/// Rejects parameters whose parsed form would take many times their size in memory: content with very many
/// small values or parts, and other parameters over 1 MiB.
fn check_size(method: &Method, params: &str) -> Result<(), Error> {
    if method.content {
        return check_input(params).map_err(|fault| too_many(method.name, fault));
    }
    if params.len() <= SMALL {
        return Ok(());
    }
    let message = format!(
        "the parameters of {} are larger than 1 MiB, the limit of this method",
        method.name
    );
    Err(Error::new(ErrorKind::InvalidParams, message))
}

/// Returns the parameters as a JSON object; an empty object if there are none. Positional parameters are an
/// error.
fn object<'a>(params: &'a Params<'_>) -> Result<&'a str, Error> {
    match params.as_str().map(str::trim) {
        None | Some("" | "null") => Ok("{}"),
        Some(text) if text.starts_with('{') => Ok(text),
        Some(_) => {
            let message = "params must be an object";
            Err(Error::new(ErrorKind::InvalidParams, message))
        }
    }
}

/// Reads from the parameters of `initialize` how unknown fields are handled; the default if the parameters
/// are not valid.
fn requested_unknown_fields(text: &str) -> UnknownFields {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct UnknownFieldsParam {
        #[serde(default)]
        unknown_fields: UnknownFields,
    }
    let asked: UnknownFieldsParam = serde_json::from_str(text).unwrap_or_default();
    asked.unknown_fields
}

/// Rejects unknown fields unless the client requested to ignore them.
fn known(fields: &Fields, text: &str, handled: &HandlerState) -> Result<(), Error> {
    match handled.unknown_fields {
        UnknownFields::Refuse => unknown_fields::check(fields, text),
        UnknownFields::Ignore => Ok(()),
    }
}

/// Parses the parameters of a method. Errors name the field.
fn read_params<P: DeserializeOwned>(text: &str) -> Result<P, Error> {
    read_typed(text).map_err(|fault| invalid_field("", &fault))
}
