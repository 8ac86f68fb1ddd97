//! The methods a client can call: jsonrpsee's table, from names and parameters to commands.
//!
//! A handler only reads its parameters. What it means to do goes through the slot to the loop, which
//! owns all state and answers when it is done.

use crate::cli::schema::{DISCOVER, openrpc};
use crate::core::client::Command;
use crate::core::error::{Error, ErrorKind};
use crate::core::methods::{Method, MethodVisitor, visit_methods};
use crate::core::unknown_fields;
use crate::proto::fields::Fields;
use crate::proto::json::{SMALL, is_dense};
use crate::proto::rpc::{self, Message};
use crate::proto::wire::{NoParams, UnknownFields};
use jsonrpsee::core::server::MethodCallback;
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{Extensions, RpcModule};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The call that says how unknown fields are handled, its own too.
const INITIALIZE: &str = "initialize";

/// What handlers share with the table, which demands that its context can be shared.
#[derive(Default)]
struct Slot(Mutex<Handled>);

#[derive(Default)]
struct Handled {
    /// The command that a handler made of its parameters, or why it made none.
    outcome: Option<Result<Command, Error>>,
    /// As the client asked for in `initialize`.
    unknown_fields: UnknownFields,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Handled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table.
pub struct Methods {
    module: RpcModule<Slot>,
    slot: Arc<Slot>,
}

/// What came of a call.
pub enum Called {
    /// It is to be done by the loop.
    Command(Command),
    /// It is answered already.
    Answer(Result<Box<RawValue>, Error>),
}

impl Methods {
    /// The whole table.
    pub fn new() -> Self {
        let slot = Arc::new(Slot::default());
        let mut methods = Self {
            module: RpcModule::from_arc(slot.clone()),
            slot,
        };
        visit_methods(&mut methods);
        let fields = Fields::of::<NoParams>();
        let discover = move |params: Params<'_>, slot: &Slot, _: &Extensions| {
            let mut handled = slot.lock();
            let nothing = object(&params).and_then(|text| known(&fields, text, &handled));
            handled.outcome = nothing.err().map(Err);
            Ok::<_, ErrorObjectOwned>(openrpc())
        };
        // Registration fails if the name is taken; a test compares the names with the OpenRPC document.
        let _ = methods.module.register_method(DISCOVER, discover);
        methods
    }

    fn add<P: DeserializeOwned + JsonSchema + 'static>(
        &mut self,
        method: &'static Method,
        command: fn(P) -> Command,
    ) {
        let fields = OnceLock::new();
        let handler = move |params: Params<'_>, slot: &Slot, _: &Extensions| {
            let mut handled = slot.lock();
            let fields = fields.get_or_init(Fields::of::<P>);
            let read = object(&params).and_then(|text| {
                if method.name == INITIALIZE {
                    handled.unknown_fields = asked_for(text);
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
    pub fn call(&self, name: &str, params: Option<&RawValue>) -> Called {
        let Some(MethodCallback::Sync(handler)) = self.module.method(name) else {
            let message = format!("there is no method {name:?}: rpc.discover lists them");
            return Called::Answer(Err(Error::new(ErrorKind::MethodNotFound, message)));
        };
        let params = Params::new(params.map(RawValue::get));
        let response = handler(Id::Null, params, usize::MAX, Extensions::new());
        match self.slot.lock().outcome.take() {
            Some(Ok(command)) => return Called::Command(command),
            Some(Err(error)) => return Called::Answer(Err(error)),
            None => {}
        }
        Called::Answer(match rpc::parse(response.as_json().get()) {
            Ok(Message::Response { outcome, .. }) => match outcome {
                Ok(result) => Ok(result.to_owned()),
                Err(e) => Err(Error::new(ErrorKind::InvalidParams, e.message)),
            },
            _ => Err(Error::new(
                ErrorKind::Internal,
                "the method table gave no answer",
            )),
        })
    }

    /// The names of all methods, sorted.
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
        P: DeserializeOwned + JsonSchema + 'static,
        R: JsonSchema,
    {
        self.add(method, command);
    }
}

/// Refuses parameters that would take many times their size once they are parsed: content with very many small values,
/// and other parameters over 1 MiB.
fn check_size(method: &Method, params: &str) -> Result<(), Error> {
    let why = if method.content {
        if !is_dense(params) {
            return Ok(());
        }
        "have too many values for their size; send fewer parts, with longer texts"
    } else {
        if params.len() <= SMALL {
            return Ok(());
        }
        "are more than 1 MiB, the most that this method takes"
    };
    let message = format!("the parameters of {} {why}", method.name);
    Err(Error::new(ErrorKind::InvalidParams, message))
}

/// The object of parameters given by name; an empty one where there are none.
fn object<'a>(params: &'a Params<'_>) -> Result<&'a str, Error> {
    match params.as_str().map(str::trim) {
        None | Some("" | "null") => Ok("{}"),
        Some(text) if text.starts_with('{') => Ok(text),
        Some(_) => {
            let message = "params: an object is needed";
            Err(Error::new(ErrorKind::InvalidParams, message))
        }
    }
}

/// How unknown fields are to be handled, as the parameters of `initialize` say; where they cannot be read that fails.
fn asked_for(text: &str) -> UnknownFields {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        #[serde(default)]
        unknown_fields: UnknownFields,
    }
    let asked: Asked = serde_json::from_str(text).unwrap_or_default();
    asked.unknown_fields
}

/// Refuses unknown fields, unless the client asked for them to be ignored.
fn known(fields: &Fields, text: &str, handled: &Handled) -> Result<(), Error> {
    match handled.unknown_fields {
        UnknownFields::Refuse => unknown_fields::check(fields, text),
        UnknownFields::Ignore => Ok(()),
    }
}

/// Reads the parameters of a method. Errors name the field.
fn read_params<P: DeserializeOwned>(text: &str) -> Result<P, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let (path, inner) = (e.path().to_string(), e.into_inner().to_string());
        let reason = inner.split(" at line ").next().unwrap_or(&inner).to_owned();
        let missing = reason.strip_prefix("missing field `");
        if let Some(name) = missing.and_then(|rest| rest.strip_suffix('`')) {
            let field = match path.as_str() {
                "." => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            let message = format!("missing field `{field}`");
            return Error::new(ErrorKind::InvalidParams, message).with("field", field);
        }
        if path == "." {
            return Error::new(ErrorKind::InvalidParams, reason);
        }
        let message = format!("{path}: {reason}");
        Error::new(ErrorKind::InvalidParams, message).with("field", path)
    })
}
