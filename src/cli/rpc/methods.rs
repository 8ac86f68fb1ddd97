//! The methods a client can call: jsonrpsee's table, from names and parameters to commands.
//!
//! A handler only reads its parameters. What it means to do goes through the slot to the loop, which
//! owns all state and answers when it is done.

use crate::core::client::{Command, History};
use crate::core::error::{Error, ErrorKind};
use crate::proto::rpc::{self, Message};
use jsonrpsee::core::server::MethodCallback;
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::{Mutex, PoisonError};

/// Where a handler leaves its command; the table demands that its context can be shared.
type Slot = Mutex<Option<Command>>;

/// The table.
pub struct Methods {
    module: RpcModule<Slot>,
    slot: std::sync::Arc<Slot>,
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
        let slot = std::sync::Arc::new(Slot::default());
        let mut methods = Self {
            module: RpcModule::from_arc(slot.clone()),
            slot,
        };
        methods.add("initialize", Command::Initialize);
        methods.add("agent/connect", Command::Connect);
        methods.add("agent/disconnect", |_: Nothing| Command::Disconnect);
        methods.add("agent/getEnvironment", |_: Nothing| Command::GetEnvironment);
        methods.add("agent/updateEnvironment", Command::UpdateEnvironment);
        methods.add("agent/authenticate", Command::Authenticate);
        methods.add("agent/logout", |_: Nothing| Command::Logout);
        methods.add("agent/status", |_: Nothing| Command::Status);
        methods.add("session/ensure", Command::Ensure);
        methods.add("session/create", Command::Create);
        methods.add("session/prompt", Command::Prompt);
        methods.add("session/cancel", Command::Cancel);
        methods.add("session/setMode", Command::SetMode);
        methods.add("session/setModel", Command::SetModel);
        methods.add("session/setOption", Command::SetOption);
        methods.add("session/subscribe", Command::Subscribe);
        methods.add("session/list", |p| {
            Command::History(History::ListSessions(p))
        });
        methods.add("session/get", |p| Command::History(History::GetSession(p)));
        methods.add("session/close", |p| {
            Command::History(History::CloseSession(p))
        });
        methods.add("session/clear", |p| {
            Command::History(History::ClearSession(p))
        });
        methods.add("session/replay", |p| Command::History(History::Replay(p)));
        methods.add("message/list", |p| {
            Command::History(History::ListMessages(p))
        });
        methods.add("message/last", |p| {
            Command::History(History::LastMessage(p))
        });
        methods.add("message/add", |p| Command::History(History::AddMessage(p)));
        methods.add("message/update", |p| {
            Command::History(History::UpdateMessage(p))
        });
        methods.add("message/clear", |p| {
            Command::History(History::ClearMessages(p))
        });
        methods.add("shutdown", |_: Nothing| Command::Shutdown);
        let discover = |_: Params<'_>, _: &Slot, _: &Extensions| {
            Ok::<_, ErrorObjectOwned>(crate::cli::schema::openrpc())
        };
        // A name that is taken is a mistake in this very list; the schema test sees it.
        let _ = methods.module.register_method("rpc.discover", discover);
        methods
    }

    fn add<P: DeserializeOwned + 'static>(
        &mut self,
        name: &'static str,
        command: impl Fn(P) -> Command + Send + Sync + 'static,
    ) {
        let handler = move |params: Params<'_>, slot: &Slot, _: &Extensions| {
            let params = read_params(&params)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(command(params));
            Ok::<(), ErrorObjectOwned>(())
        };
        let _ = self.module.register_method(name, handler);
    }

    /// Calls a method by name.
    pub fn call(&self, name: &str, params: Option<&RawValue>) -> Called {
        let Some(MethodCallback::Sync(handler)) = self.module.method(name) else {
            let message = format!("there is no method {name:?}: rpc.discover lists them");
            return Called::Answer(Err(Error::new(ErrorKind::MethodNotFound, message)));
        };
        let params = Params::new(params.map(RawValue::get));
        let response = handler(Id::Null, params, usize::MAX, Extensions::new());
        if let Some(command) = self
            .slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            return Called::Command(command);
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

/// The parameters of methods that have none.
#[derive(serde::Deserialize)]
struct Nothing {}

/// Reads parameters given by name; absent ones are an empty object. Errors name the field.
fn read_params<P: DeserializeOwned>(params: &Params<'_>) -> Result<P, ErrorObjectOwned> {
    let text = match params.as_str().map(str::trim) {
        None | Some("" | "null") => "{}",
        Some(text) => text,
    };
    let error = |message: String| {
        ErrorObjectOwned::owned(ErrorKind::InvalidParams.rpc_code(), message, None::<()>)
    };
    if !text.starts_with('{') {
        return Err(error("params: an object is needed".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let (path, inner) = (e.path().to_string(), e.into_inner().to_string());
        let reason = inner.split(" at line ").next().unwrap_or(&inner).to_owned();
        error(if path == "." {
            reason
        } else {
            format!("{path}: {reason}")
        })
    })
}
