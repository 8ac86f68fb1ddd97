//! Table of the methods that a client can call: converts names and parameters to commands.
//!
//! The loop owns all state, and responds when the command is done.

use crate::cli::schema::{DISCOVER, openrpc};
use acpipe_core::client::Command;
use acpipe_core::methods::{Method, MethodVisitor, visit_methods};
use acpipe_json::{SMALL, TypeFault, check_input, read_typed, to_raw};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::prompt_parts::too_many;
use acpipe_model::unknown_fields;
use acpipe_protocol::fields::Fields;
use acpipe_protocol::has_schema::HasSchema;
use acpipe_protocol::wire::UnknownFields;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

/// Method that sets how unknown fields are handled, including those in its own parameters.
const INITIALIZE: &str = "initialize";

/// Parser of the parameters of a method.
type ReadParams = Box<dyn Fn(&str) -> Result<Command, Error> + Send>;

/// Method that leads to a command.
struct Row {
    method: &'static Method,
    fields: OnceCell<Fields>,
    read: ReadParams,
}

/// Method table.
pub struct Methods {
    rows: HashMap<&'static str, Row>,
    /// Handling of unknown fields that the client requested in `initialize`.
    unknown_fields: Cell<UnknownFields>,
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
        let mut methods = Self {
            rows: HashMap::new(),
            unknown_fields: Cell::default(),
        };
        visit_methods(&mut methods);
        methods
    }

    /// Calls a method by name.
    pub fn call(&self, name: &str, params: Option<&RawValue>) -> CallOutcome {
        let command = match self.rows.get(name) {
            Some(row) => object(params).and_then(|text| self.command(row, text)),
            None if name == DISCOVER => {
                let fields = Fields::of(DISCOVER);
                let nothing = object(params).and_then(|text| self.known(&fields, text));
                return CallOutcome::Answer(nothing.map(|()| to_raw(&openrpc())));
            }
            None => {
                let message = format!("method {name:?} not found; rpc.discover lists all methods");
                Err(Error::new(ErrorKind::MethodNotFound, message))
            }
        };
        match command {
            Ok(command) => CallOutcome::Command(command),
            Err(error) => CallOutcome::Answer(Err(error)),
        }
    }

    fn command(&self, row: &Row, params: &str) -> Result<Command, Error> {
        let method = row.method;
        if method.name == INITIALIZE {
            self.unknown_fields.set(requested_unknown_fields(params));
        }
        check_size(method, params)?;
        self.known(row.fields.get_or_init(|| Fields::of(method.name)), params)?;
        (row.read)(params)
    }

    /// Rejects unknown fields unless the client requested to ignore them.
    fn known(&self, fields: &Fields, params: &str) -> Result<(), Error> {
        match self.unknown_fields.get() {
            UnknownFields::Refuse => unknown_fields::check(fields, params),
            UnknownFields::Ignore => Ok(()),
        }
    }

    /// Returns the names of all methods, sorted.
    #[cfg(test)]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.rows.keys().copied().chain([DISCOVER]).collect();
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
        let row = Row {
            method,
            fields: OnceCell::new(),
            read: Box::new(move |params| read_params(params).map(command)),
        };
        self.rows.insert(method.name, row);
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
fn object(params: Option<&RawValue>) -> Result<&str, Error> {
    match params.map(|params| params.get().trim()) {
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

/// Parses the parameters of a method. Errors name the field.
fn read_params<P: DeserializeOwned>(text: &str) -> Result<P, Error> {
    read_typed(text).map_err(|fault| invalid_field(&fault))
}

fn invalid_field(fault: &TypeFault) -> Error {
    let (path, reason) = (fault.to_string(), &fault.reason);
    let missing = reason.strip_prefix("missing field `");
    if let Some(name) = missing.and_then(|rest| rest.strip_suffix('`')) {
        let field = match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let message = format!("missing field `{field}`");
        return Error::new(ErrorKind::InvalidParams, message).with("field", field);
    }
    if path.is_empty() {
        return Error::new(ErrorKind::InvalidParams, reason);
    }
    let message = format!("{path}: {reason}");
    Error::new(ErrorKind::InvalidParams, message).with("field", path)
}
