//! Calls of the client other than prompts.

use crate::connection::AgentConnection;
use crate::erased::OpenMethod;
use crate::error::{AgentError, FailureKind};
use crate::facts::{AgentFacts, Capability};
use crate::option::SelectOption;
use crate::session::{Message, Role, Session};
use acpipe_protocol::acp::VERSION;
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

/// Method of the client other than `session/prompt`.
#[derive(Debug, Clone, Copy)]
pub enum ClientCall {
    Initialize,
    Open(OpenMethod),
    List,
    Close,
    SetOption,
}

impl ClientCall {
    /// Returns the call of a method; `None` if there is no such method.
    pub fn of(method: &str) -> Option<Self> {
        Some(match method {
            "initialize" => Self::Initialize,
            "session/new" => Self::Open(OpenMethod::New),
            "session/resume" => Self::Open(OpenMethod::Resume),
            "session/load" => Self::Open(OpenMethod::Load),
            "session/list" => Self::List,
            "session/close" => Self::Close,
            "session/set_config_option" => Self::SetOption,
            _ => return None,
        })
    }

    /// Runs the call and returns its result.
    pub async fn run(
        self,
        connection: Arc<AgentConnection>,
        params: Value,
    ) -> Result<Value, AgentError> {
        match self {
            Self::Initialize => Ok(initialize(&connection, &params)),
            Self::Open(opening) => open(&connection, opening, &params).await,
            Self::List => list(&connection, &params).await,
            Self::Close => close(&connection, &params).await,
            Self::SetOption => set_option(&connection, &params),
        }
    }
}

/// Returns the response to `initialize`. Its version is always that of acpipe: a client that does not support
/// it has to disconnect.
fn initialize(connection: &AgentConnection, params: &Value) -> Value {
    let form = &params["clientCapabilities"]["elicitation"]["form"];
    connection.client.set_shows_forms(form.is_object());
    let facts = &*connection.facts;
    let can = |capability| facts.capabilities.contains(&capability);
    let mut sessions = json!({ "close": {} });
    for (name, capability) in [("resume", Capability::Resume), ("list", Capability::List)] {
        if can(capability) {
            sessions[name] = json!({});
        }
    }
    json!({
        "protocolVersion": VERSION,
        "agentInfo": { "name": facts.name, "title": facts.title, "version": facts.version },
        "agentCapabilities": {
            "loadSession": can(Capability::Load),
            "promptCapabilities": {
                "image": can(Capability::Images),
                "audio": can(Capability::Audio),
                "embeddedContext": can(Capability::Files),
            },
            "mcpCapabilities": {
                "http": can(Capability::McpHttp),
                "sse": can(Capability::McpSse),
            },
            "sessionCapabilities": sessions,
        },
        "authMethods": [],
    })
}

/// Opens a new session, or continues one.
async fn open(
    connection: &AgentConnection,
    opening: OpenMethod,
    params: &Value,
) -> Result<Value, AgentError> {
    let facts = &*connection.facts;
    let id = match opening {
        OpenMethod::New => new_id(),
        OpenMethod::Resume => {
            require(facts, Capability::Resume, "session/resume")?;
            text(params, "sessionId")?.to_owned()
        }
        OpenMethod::Load => {
            require(facts, Capability::Load, "session/load")?;
            text(params, "sessionId")?.to_owned()
        }
    };
    let options = facts.options.iter();
    let options =
        options.map(|option| (option.id().to_owned(), option.default_choice().to_owned()));
    let session = Session::of_params(id.clone(), params, options.collect())?;
    let messages = connection.agent.begin(opening, &session).await?;
    if opening == OpenMethod::Load {
        for message in &messages {
            repeat(connection, &id, message).await;
        }
    }
    if facts.keeps_history {
        session.set_history(messages);
    }
    let session = connection.sessions.insert(session)?;
    let mut result = json!({});
    if opening == OpenMethod::New {
        result["sessionId"] = id.into();
    }
    if !facts.options.is_empty() {
        result["configOptions"] = config_options(facts, &session);
    }
    Ok(result)
}

/// Sends a message of a loaded session.
async fn repeat(connection: &AgentConnection, session: &str, message: &Message) {
    let kind = match message.role {
        Role::System => return,
        Role::User => "user_message_chunk",
        Role::Agent => "agent_message_chunk",
    };
    let content = json!({ "type": "text", "text": message.text });
    let params = json!({
        "sessionId": session,
        "update": { "sessionUpdate": kind, "content": content },
    });
    connection.client.notify("session/update", &params).await;
}

async fn list(connection: &AgentConnection, params: &Value) -> Result<Value, AgentError> {
    require(&connection.facts, Capability::List, "session/list")?;
    let cwd = params["cwd"].as_str().map(Path::new);
    let stored = connection.agent.stored(cwd).await?;
    let sessions = stored.iter().map(|stored| {
        let mut session = json!({ "sessionId": stored.id, "cwd": stored.cwd.to_string_lossy() });
        if let Some(title) = &stored.title {
            session["title"] = title.as_str().into();
        }
        session
    });
    let sessions: Vec<Value> = sessions.collect();
    Ok(json!({ "sessions": sessions }))
}

/// Closes a session after its turn has ended.
async fn close(connection: &AgentConnection, params: &Value) -> Result<Value, AgentError> {
    let (session, turn) = connection.sessions.remove(text(params, "sessionId")?)?;
    if let Some(turn) = turn {
        turn.ended.cancelled().await;
    }
    connection.agent.end(&session).await;
    Ok(json!({}))
}

fn set_option(connection: &AgentConnection, params: &Value) -> Result<Value, AgentError> {
    let session = connection.sessions.get(text(params, "sessionId")?)?;
    let (id, value) = (text(params, "configId")?, text(params, "value")?);
    let facts = &*connection.facts;
    let mut options = facts.options.iter();
    let option = options.find(|option| option.id() == id).ok_or_else(|| {
        let ids: Vec<&str> = facts.options.iter().map(SelectOption::id).collect();
        let why = format!("must be one of: {}", ids.join(", "));
        invalid("configId", &why)
    })?;
    if !option.has_choice(value) {
        let why = format!("must be one of: {}", option.choice_ids());
        return Err(invalid("value", &why));
    }
    session.set_option(id, value);
    Ok(json!({ "configOptions": config_options(facts, &session) }))
}

fn config_options(facts: &AgentFacts, session: &Session) -> Value {
    let chosen = session.options();
    let config = facts.options.iter().map(|option| {
        let current = chosen.get(option.id());
        option.config(current.map_or(option.default_choice(), String::as_str))
    });
    config.collect()
}

fn require(facts: &AgentFacts, capability: Capability, method: &str) -> Result<(), AgentError> {
    if facts.capabilities.contains(&capability) {
        return Ok(());
    }
    let message = format!("the agent does not support {method}; open a new session");
    Err(AgentError::new(FailureKind::Unsupported, message))
}

/// Returns a unique id; the standard library seeds every `RandomState` differently.
fn new_id() -> String {
    format!(
        "session-{:016x}",
        RandomState::new().build_hasher().finish()
    )
}

fn text<'a>(params: &'a Value, field: &str) -> Result<&'a str, AgentError> {
    let text = params[field].as_str();
    text.ok_or_else(|| invalid(field, "must be a string"))
}

fn invalid(field: &str, why: &str) -> AgentError {
    AgentError::new(FailureKind::InvalidParams, format!("`{field}` {why}")).with("field", field)
}
