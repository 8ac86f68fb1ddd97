//! `acpipe schema`, `rpc.discover` and the files of `schemas/`: all from the types of `proto::wire`.

use super::args::SchemaArgs;
use crate::core::error::ErrorKind as Kind;
use crate::proto::{chunk::Chunk, wire};
use anyhow::Context as _;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::io::{ErrorKind, Write as _};

/// Prints the `OpenRPC` document, or writes all files into a directory.
pub fn print(args: &SchemaArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        let mut stdout = std::io::stdout().lock();
        return match writeln!(stdout, "{:#}", openrpc()) {
            // As with any filter: the reader has what it wanted.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.context("stdout cannot be written"),
        };
    };
    std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    for name in FILES {
        let path = dir.join(name);
        let text = render(name).unwrap_or_default();
        std::fs::write(&path, text)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// The files of `schemas/`.
pub const FILES: &[&str] = &[
    "openrpc.json",
    "chunk.schema.json",
    "turn-summary.schema.json",
];

/// The text of one of [`FILES`].
#[must_use]
pub fn render(file: &str) -> Option<String> {
    let document = match file {
        "openrpc.json" => openrpc(),
        "chunk.schema.json" => standalone::<Chunk<'static>>(),
        "turn-summary.schema.json" => standalone::<wire::TurnSummary>(),
        _ => return None,
    };
    Some(format!("{document:#}\n"))
}

fn standalone<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().into()
}

/// The calls about what is stored.
fn stored(doc: &mut Document) {
    doc.call::<wire::ListSessionsParams, wire::ListSessionsResult>(
        "session/list",
        "Lists sessions, stored and open ones.",
    );
    doc.call::<wire::SessionParams, wire::SessionInfo>("session/get", "Tells of one session.");
    doc.call::<wire::SessionParams, wire::Done>(
        "session/close",
        "Lets go of a session: the agent may forget it, another acpipe may have it. What is stored stays.",
    );
    doc.call::<wire::ClearParams, wire::Done>(
        "session/clear",
        "Removes a session: its messages, and what is known of it.",
    );
    doc.call::<wire::ReplayParams, wire::ReplayResult>(
        "session/replay",
        "Gives the chunks of a session after a number, a page at a time.",
    );
    doc.call::<wire::ListMessagesParams, wire::ListMessagesResult>(
        "message/list",
        "Gives the messages of a session, a page at a time.",
    );
    doc.call::<wire::SessionParams, wire::MessageResult>(
        "message/last",
        "Gives the last message of the assistant, as far as it is made.",
    );
    doc.call::<wire::AddMessageParams, wire::MessageResult>(
        "message/add",
        "Adds a message to the store; the agent is not told of it.",
    );
    doc.call::<wire::UpdateMessageParams, wire::MessageResult>(
        "message/update",
        "Changes a stored message.",
    );
    doc.call::<wire::ClearParams, wire::Done>(
        "message/clear",
        "Removes all messages of a session, which stays what it is.",
    );
}

/// The whole protocol as an `OpenRPC` 1.3 document.
#[must_use]
pub fn openrpc() -> Value {
    let mut doc = Document::new();
    doc.call::<wire::InitializeParams, wire::InitializeResult>(
        "initialize",
        "The first call: who speaks, and what the client wants to get.",
    );
    doc.call::<wire::ConnectParams, wire::AgentStatus>(
        "agent/connect",
        "Starts an agent, the default one where no command is given; answers when it is ready.",
    );
    doc.call::<Empty, wire::Done>(
        "agent/disconnect",
        "Ends the agent in order; answers when it has ended.",
    );
    doc.call::<Empty, wire::AgentStatus>("agent/status", "What the agent is, can, and how it is.");
    doc.call::<Empty, wire::EnvironmentResult>(
        "agent/getEnvironment",
        "The variables that the agent gets on top of acpipe's own environment.",
    );
    doc.call::<wire::UpdateEnvironmentParams, wire::UpdateEnvironmentResult>(
        "agent/updateEnvironment",
        "Changes the agent's environment; a running one is started again and gets its sessions back.",
    );
    doc.call::<wire::AuthenticateParams, wire::AuthenticateResult>(
        "agent/authenticate",
        "Signs in to the agent; answers when it has done that, or with what to run in a terminal.",
    );
    doc.call::<Empty, wire::Done>(
        "agent/logout",
        "Signs out, where the agent can do that (`capabilities.logout`).",
    );
    doc.call::<wire::EnsureParams, wire::SessionResult>(
        "session/ensure",
        "Gives a live session, new where there is none.",
    );
    doc.call::<wire::CreateParams, wire::SessionResult>(
        "session/create",
        "As session/ensure, but the id must be new.",
    );
    doc.call::<wire::PromptParams, wire::TurnSummary>(
        "session/prompt",
        "One turn: chunks stream meanwhile, the answer is its summary.",
    );
    doc.call::<wire::CancelParams, wire::CancelResult>(
        "session/cancel",
        "Ends one turn of the session, or takes out one that waits; answered once the cancel is on its way.",
    );
    doc.call::<wire::SetModeParams, wire::SettingResult>(
        "session/setMode",
        "Sets the session's mode; answered when the agent has taken it.",
    );
    doc.call::<wire::SetModelParams, wire::SettingResult>(
        "session/setModel",
        "Sets the session's model; answered when the agent has taken it.",
    );
    doc.call::<wire::SetOptionParams, wire::SettingResult>(
        "session/setOption",
        "Sets one of the agent's options; answered when the agent has taken it.",
    );
    doc.call::<wire::SubscribeParams, wire::Done>(
        "session/subscribe",
        "Switches session/chunk notifications on or off.",
    );
    stored(&mut doc);
    doc.call::<Empty, wire::Done>(
        "shutdown",
        "Ends everything in order; answers when the agent has ended.",
    );
    doc.call::<Empty, Anything>("rpc.discover", "This document.");
    doc.notification::<wire::ChunkParams<'static>>("session/chunk", "The next chunk of a session.");
    doc.notification::<wire::ActivityParams>(
        "session/activity",
        "Which tool runs now, whenever that changes.",
    );
    doc.notification::<wire::StateParams>(
        "session/state",
        "Modes, models, options, commands and title, and the prompts that wait, whenever they change.",
    );
    doc.notification::<wire::AgentStateParams>(
        "agent/state",
        "How far the agent is, whenever that changes.",
    );
    doc.notification::<wire::CancelRequestParams>(
        "$/cancelRequest",
        "A request of acpipe to the client needs no answer any more.",
    );
    doc.request::<wire::PermissionParams, wire::PermissionAnswer>(
        "permission/request",
        "Whether the agent may do something; sent where the client declared `permissions`.",
    );
    doc.request::<wire::QuestionParams, wire::QuestionAnswer>(
        "question/ask",
        "What the user answers to a question of the agent; sent where the client declared `questions`.",
    );
    host_requests(&mut doc);
    doc.finish()
}

/// What a client is asked that serves files and terminals.
fn host_requests(doc: &mut Document) {
    doc.request::<wire::ReadTextFileParams, wire::TextFile>(
        "fs/readTextFile",
        "The text of a file; sent where the client declared `fs.readTextFile`.",
    );
    doc.request::<wire::WriteTextFileParams, wire::DoneByClient>(
        "fs/writeTextFile",
        "A file is to be written; sent where the client declared `fs.writeTextFile`.",
    );
    doc.request::<wire::CreateTerminalParams, wire::CreatedTerminal>(
        "terminal/create",
        "A command is to be run; this and the other `terminal/*` are sent where the client declared `terminal`.",
    );
    doc.request::<wire::TerminalParams, wire::TerminalSaid>(
        "terminal/output",
        "What a terminal said, and how it ended if it has.",
    );
    doc.request::<wire::TerminalParams, wire::TerminalExited>(
        "terminal/waitForExit",
        "How a terminal's command ended, once it has.",
    );
    doc.request::<wire::TerminalParams, wire::DoneByClient>(
        "terminal/kill",
        "A terminal's command is to end; it can still be read.",
    );
    doc.request::<wire::TerminalParams, wire::DoneByClient>(
        "terminal/release",
        "A terminal is not needed any more: its command is to end.",
    );
}

/// The table of errors as Markdown, for docs/errors.md.
#[cfg(test)]
fn error_table() -> String {
    let rows = Kind::ALL.iter().map(|k| {
        let (name, rpc, exit) = (k.name(), k.rpc_code(), k.exit_code());
        format!("| `{name}` | {rpc} | {exit} | {} |\n", k.meaning())
    });
    let head =
        "| `data.kind` | JSON-RPC code | exit code of `run` | what it means |\n|-|-:|-:|-|\n";
    format!("{head}{}", rows.collect::<String>())
}

/// Parameters of methods that have none.
#[derive(JsonSchema)]
#[schemars(inline)]
struct Empty {}

/// Any JSON value.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct Anything(Value);

struct Document {
    inputs: SchemaGenerator,
    outputs: SchemaGenerator,
    methods: Vec<Value>,
    notifications: Vec<Value>,
    /// What acpipe asks its client.
    requests: Vec<Value>,
}

impl Document {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12()
            .with(|s| s.definitions_path = "/components/schemas".into());
        Self {
            inputs: settings.clone().into_generator(),
            outputs: settings.for_serialize().into_generator(),
            methods: Vec::new(),
            notifications: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn call<P: JsonSchema, R: JsonSchema>(&mut self, name: &str, summary: &str) {
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
        let params = params(&mut self.outputs, P::json_schema);
        self.notifications.push(json!({
            "name": name,
            "summary": summary,
            "paramStructure": "by-name",
            "params": params,
        }));
    }

    fn request<P: JsonSchema, R: JsonSchema>(&mut self, name: &str, summary: &str) {
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

    fn finish(mut self) -> Value {
        let mut schemas: Map<String, Value> = self.inputs.take_definitions(true);
        schemas.append(&mut self.outputs.take_definitions(true));
        let errors = Kind::ALL.iter().map(|k| {
            let data = json!({ "kind": k.name() });
            json!({ "code": k.rpc_code(), "message": k.meaning(), "data": data })
        });
        json!({
            "openrpc": "1.3.2",
            "info": {
                "title": "acpipe",
                "version": wire::PROTOCOL_VERSION.to_string(),
                "description": "The neutral protocol of acpipe: JSON-RPC 2.0 on stdin and stdout, one message a line or with Content-Length headers.",
            },
            "methods": self.methods,
            "x-notifications": self.notifications,
            "x-requests": self.requests,
            "x-errors": errors.collect::<Vec<_>>(),
            "components": { "schemas": schemas },
        })
    }
}

/// An object's properties as `OpenRPC` content descriptors.
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
    properties
        .iter()
        .map(|(name, schema)| json!({ "name": name, "required": required(name), "schema": schema }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::rpc::method_names;
    use std::path::Path;

    const REWRITE: &str = "UPDATE_SCHEMAS=1 cargo test --lib schema";

    /// The committed file holds what the types say; with `UPDATE_SCHEMAS` it is made to.
    fn check(path: &Path, want: &str) {
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(path, want).unwrap();
        }
        let have = std::fs::read_to_string(path).unwrap_or_default();
        assert!(have == want, "{} is stale: {REWRITE}", path.display());
    }

    #[test]
    fn the_schemas_are_those_of_the_types() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for name in FILES {
            check(&dir.join(name), &render(name).unwrap());
        }
        let mut there: Vec<String> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        let mut files = FILES.to_vec();
        files.sort_unstable();
        assert_eq!(there, files, "schemas/ holds something else");
    }

    #[test]
    fn the_table_of_errors_is_that_of_the_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md");
        let have = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = have.split_once("<!-- table -->\n").unwrap();
        let (_, tail) = rest.split_once("<!-- end of table -->").unwrap();
        let table = error_table();
        check(
            &path,
            &format!("{head}<!-- table -->\n{table}<!-- end of table -->{tail}"),
        );
    }

    #[test]
    fn every_method_is_described_and_every_description_is_a_method() {
        let document = openrpc();
        let mut described: Vec<&str> = document["methods"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["name"].as_str().unwrap())
            .collect();
        described.sort_unstable();
        assert_eq!(described, method_names());
    }
}
