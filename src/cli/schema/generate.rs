//! Generation of the files of `schemas/` from the types of `proto::wire` and of the configuration file.

use super::{DISCOVER, named};
use crate::cli::config;
use acpipe_core::client::Command;
use acpipe_core::methods::{Method, MethodVisitor, visit_methods};
use acpipe_model::error::ErrorKind as Kind;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::fields::generate::entry;
use acpipe_protocol::wire;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Generates the content of one of [`FILES`](super::FILES), or `None` for another name.
pub fn generate(file: &str) -> Option<String> {
    let document = match file {
        "openrpc.json" => openrpc(),
        "bundle.schema.json" => bundle(),
        "chunk.schema.json" => standalone::<Chunk<'static>>(),
        "config.schema.json" => config_file(),
        "turn-summary.schema.json" => standalone::<wire::TurnSummary>(),
        _ => return None,
    };
    Some(format!("{document:#}\n"))
}

fn standalone<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let name = T::schema_name().into_owned();
    let _ = generator.subschema_for::<T>();
    let mut definitions = generator.take_definitions(true);
    named::name_all(&mut definitions, DEFS);
    let root = definitions.remove(&name).unwrap_or_default();
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!(DRAFT));
    if let Value::Object(root) = root {
        document.extend(root);
    }
    document.insert("$defs".to_owned(), Value::Object(definitions));
    let mut document = Value::Object(document);
    named::wrap_references(&mut document);
    document
}

/// Returns the schema of the configuration file.
fn config_file() -> Value {
    let mut document = config::generate_schema().clone();
    if let Value::Object(definitions) = document["$defs"].take() {
        let mut definitions = definitions;
        named::name_all(&mut definitions, DEFS);
        document["$defs"] = Value::Object(definitions);
    }
    named::wrap_references(&mut document);
    document
}

/// JSON Schema dialect of all files.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Path of the definitions in a JSON Schema.
pub const DEFS: &str = "/$defs";

/// Path of the schemas in an `OpenRPC` document.
const COMPONENTS: &str = "/components/schemas";

/// Returns one JSON Schema with all types of the protocol, for code generators.
pub fn bundle() -> Value {
    let mut document = protocol(DEFS).bundle();
    named::wrap_references(&mut document);
    document
}

/// Returns the `OpenRPC` 1.3 document of the whole protocol.
pub fn openrpc() -> Value {
    let mut document = protocol(COMPONENTS).finish();
    named::wrap_references(&mut document);
    document
}

/// Collects all calls, notifications and requests; `references` is the path at which their schemas refer to
/// each other.
pub fn protocol(references: &'static str) -> Document {
    let mut doc = Document::new(references);
    visit_methods(&mut doc);
    doc.call::<wire::NoParams, OpenRpcDocument>(
        DISCOVER,
        "Returns the protocol as an OpenRPC document.",
    );
    doc.notification::<wire::ChunkParams<'static>>("session/chunk", "A chunk of a session.");
    doc.notification::<wire::EventsParams<'static>>(
        "session/events",
        "The AG-UI events of a chunk; sent in place of `session/chunk` if the client declared `agui`.",
    );
    doc.notification::<wire::ActivityParams>(
        "session/activity",
        "The tool that runs now; sent on every change.",
    );
    doc.notification::<wire::StateParams>(
        "session/state",
        "Modes, models, options, commands, title and queued prompts of a session; sent on every change.",
    );
    doc.notification::<wire::PresenceParams>(
        "session/presence",
        "The clients of a session; sent to the others when one comes, changes its role or goes.",
    );
    doc.notification::<wire::UserMessageParams>(
        "session/userMessage",
        "The message of a prompt of another client; sent before the chunks of its turn.",
    );
    doc.notification::<wire::AgentStateParams>(
        "agent/state",
        "The state of the agent; sent on every change.",
    );
    doc.notification::<wire::CancelRequestParams>(
        "$/cancelRequest",
        "A request of acpipe to the client was answered elsewhere or is obsolete; do not answer it.",
    );
    doc.request::<wire::PermissionParams, wire::PermissionAnswer>(
        "permission/request",
        "Asks whether the agent may run a tool; sent if the client declared `permissions`.",
    );
    doc.request::<wire::QuestionParams, wire::QuestionAnswer>(
        "question/ask",
        "Asks the user a question of the agent; sent if the client declared `questions`.",
    );
    host_requests(&mut doc);
    doc
}

/// Adds the requests to a client that serves files and terminals.
fn host_requests(doc: &mut Document) {
    doc.request::<wire::ReadTextFileParams, wire::TextFile>(
        "fs/readTextFile",
        "Reads a text file; sent if the client declared `fs.readTextFile`.",
    );
    doc.request::<wire::WriteTextFileParams, wire::DoneByClient>(
        "fs/writeTextFile",
        "Writes a text file; sent if the client declared `fs.writeTextFile`.",
    );
    doc.request::<wire::CreateTerminalParams, wire::CreatedTerminal>(
        "terminal/create",
        "Runs a command; this and the other `terminal/*` requests are sent if the client declared `terminal`.",
    );
    doc.request::<wire::TerminalParams, wire::TerminalSaid>(
        "terminal/output",
        "Returns the output of a terminal, and its exit status if the command has exited.",
    );
    doc.request::<wire::TerminalParams, wire::TerminalExited>(
        "terminal/waitForExit",
        "Waits for a terminal's command to exit and returns its exit status.",
    );
    doc.request::<wire::TerminalParams, wire::DoneByClient>(
        "terminal/kill",
        "Kills the command of a terminal; its output can still be read.",
    );
    doc.request::<wire::TerminalParams, wire::DoneByClient>(
        "terminal/release",
        "Releases a terminal: kills its command if it still runs.",
    );
}

/// Returns the table of the members that clients send, for `proto::fields`.
pub fn field_table() -> String {
    protocol(DEFS).fields.concat()
}

/// Returns the table of errors in Markdown for docs/reference/errors.md.
pub fn error_table() -> String {
    let rows = Kind::ALL.iter().map(|k| {
        let (name, rpc, exit) = (k.name(), k.rpc_code(), k.exit_code());
        format!("| `{name}` | {rpc} | {exit} | {} |\n", k.meaning())
    });
    let head = "| `data.kind` | JSON-RPC code | exit code of `run` | meaning |\n|-|-:|-:|-|\n";
    format!("{head}{}", rows.collect::<String>())
}

/// Type whose schema stands for an `OpenRPC` document.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "only its schema is used")]
struct OpenRpcDocument(Map<String, Value>);

pub struct Document {
    references: &'static str,
    pub inputs: SchemaGenerator,
    pub outputs: SchemaGenerator,
    methods: Vec<Value>,
    notifications: Vec<Value>,
    /// Requests that acpipe sends to its client.
    requests: Vec<Value>,
    /// Parameter and result types by method, per list (see `METHODS`).
    types: [Map<String, Value>; 3],
    /// Lines of the table of members.
    fields: Vec<String>,
}

/// Indices into `Document::types`.
const METHODS: usize = 0;
const NOTIFICATIONS: usize = 1;
const REQUESTS: usize = 2;

impl Document {
    fn new(references: &'static str) -> Self {
        let settings =
            SchemaSettings::draft2020_12().with(|s| s.definitions_path = references.into());
        Self {
            references,
            types: Default::default(),
            fields: Vec::new(),
            inputs: settings.clone().into_generator(),
            outputs: settings.for_serialize().into_generator(),
            methods: Vec::new(),
            notifications: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn call<P: JsonSchema, R: JsonSchema>(&mut self, name: &str, summary: &str) {
        let kinds = json!({
            "params": self.inputs.subschema_for::<P>(),
            "result": self.outputs.subschema_for::<R>(),
        });
        self.types[METHODS].insert(name.to_owned(), kinds);
        self.fields.push(format!("{name} {}\n", entry::<P>()));
        let params = params(&mut self.inputs, P::json_schema);
        let result = self.outputs.subschema_for::<R>();
        self.methods.push(json!({
            "name": name,
            "summary": summary,
            "paramStructure": "by-name",
            "params": params,
            "result": { "name": "result", "schema": result },
        }));
    }

    fn notification<P: JsonSchema>(&mut self, name: &str, summary: &str) {
        let kinds = json!({ "params": self.outputs.subschema_for::<P>() });
        self.types[NOTIFICATIONS].insert(name.to_owned(), kinds);
        let params = params(&mut self.outputs, P::json_schema);
        self.notifications.push(json!({
            "name": name,
            "summary": summary,
            "paramStructure": "by-name",
            "params": params,
        }));
    }

    fn request<P: JsonSchema, R: JsonSchema>(&mut self, name: &str, summary: &str) {
        let kinds = json!({
            "params": self.outputs.subschema_for::<P>(),
            "result": self.inputs.subschema_for::<R>(),
        });
        self.types[REQUESTS].insert(name.to_owned(), kinds);
        self.fields.push(format!("{name} {}\n", entry::<R>()));
        let params = params(&mut self.outputs, P::json_schema);
        let result = self.inputs.subschema_for::<R>();
        self.requests.push(json!({
            "name": name,
            "summary": summary,
            "paramStructure": "by-name",
            "params": params,
            "result": { "name": "result", "schema": result },
        }));
    }

    /// Returns the definitions of all types.
    fn definitions(&mut self) -> Map<String, Value> {
        let mut schemas: Map<String, Value> = self.inputs.take_definitions(true);
        schemas.append(&mut self.outputs.take_definitions(true));
        named::name_all(&mut schemas, self.references);
        schemas
    }

    fn bundle(mut self) -> Value {
        let definitions = self.definitions();
        let reference =
            |name: &String| (name.clone(), json!({ "$ref": format!("#{DEFS}/{name}") }));
        let all: Map<String, Value> = definitions.keys().map(reference).collect();
        let [methods, notifications, requests] = self.types;
        json!({
            "$schema": DRAFT,
            "title": "AcpipeProtocol",
            "description": "All types of acpipe's protocol, version 1. No message has this type: each property stands \
                                for a type, so that code generators reach all of them. `x-methods`, \
                                `x-notifications` and `x-requests` (acpipe to client) name the types of parameters \
                                and results.",
            "type": "object",
            "properties": all,
            "x-methods": methods,
            "x-notifications": notifications,
            "x-requests": requests,
            "$defs": definitions,
        })
    }

    fn finish(mut self) -> Value {
        let schemas = self.definitions();
        let errors = Kind::ALL.iter().map(|k| {
            let data = json!({ "kind": k.name() });
            json!({ "code": k.rpc_code(), "message": k.meaning(), "data": data })
        });
        json!({
            "openrpc": "1.3.2",
            "info": {
                "title": "acpipe",
                "version": wire::PROTOCOL_VERSION.to_string(),
                "description": "The agent-neutral protocol of acpipe: JSON-RPC 2.0 on stdin and stdout, one message \
                                    per line or with Content-Length headers.",
            },
            "methods": self.methods,
            "x-notifications": self.notifications,
            "x-requests": self.requests,
            "x-errors": errors.collect::<Vec<_>>(),
            "components": { "schemas": schemas },
        })
    }
}

impl MethodVisitor for Document {
    fn visit<P, R>(&mut self, method: &'static Method, _: fn(P) -> Command)
    where
        P: DeserializeOwned + JsonSchema + 'static,
        R: JsonSchema,
    {
        self.call::<P, R>(method.name, method.summary);
    }
}

/// Returns an object's properties as `OpenRPC` content descriptors, required ones first because generators
/// make positional parameters of them.
fn params(g: &mut SchemaGenerator, schema: fn(&mut SchemaGenerator) -> Schema) -> Vec<Value> {
    let schema: Value = schema(g).into();
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|n| n == name))
    };
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let (first, then): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| required(name));
    first
        .into_iter()
        .chain(then)
        .map(|(name, schema)| json!({ "name": name, "required": required(name), "schema": schema }))
        .collect()
}
