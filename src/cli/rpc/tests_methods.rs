//! Tests that each method matches its row in the table of methods.

use super::*;
use crate::cli::schema::DISCOVER;
use crate::cli::schema::generate::openrpc;
use acpipe_core::methods::{Method, MethodVisitor, visit_methods};
use acpipe_json::MOST_PARTS;
use acpipe_model::secret::HIDDEN;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::{Map, json};

/// Value of the secret parameters of [`secret_value`].
const SECRET: &str = "hunter-of-secrets";

/// Schemas of types that hold secrets.
const SECRET_TYPES: [&str; 2] = ["Variables", "McpServer"];

/// Row of the table of methods, with the schema of its parameters.
struct Row {
    method: &'static Method,
    params: Value,
}

struct Rows {
    generator: SchemaGenerator,
    all: Vec<Row>,
}

impl MethodVisitor for Rows {
    fn visit<P, R>(&mut self, method: &'static Method, _: fn(P) -> Command)
    where
        P: DeserializeOwned + JsonSchema + 'static,
        R: JsonSchema,
    {
        let params = self.generator.root_schema_for::<P>().to_value();
        self.all.push(Row { method, params });
    }
}

fn rows() -> Vec<Row> {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let all = Vec::new();
    let mut rows = Rows { generator, all };
    visit_methods(&mut rows);
    assert!(rows.all.len() > 20, "{} methods", rows.all.len());
    rows.all
}

impl Row {
    /// Returns values for the required parameters.
    fn required(&self) -> Map<String, Value> {
        let names = self.params["required"].as_array().into_iter().flatten();
        let value = |name: &str| match name {
            "protocolVersion" | "afterSeq" => json!(1),
            "chunks" => json!(true),
            "message" => json!({"id": "m", "role": "user", "parts": []}),
            "agent" | "sessionId" | "messageId" | "methodId" | "mode" | "model" | "option"
            | "value" => {
                json!("x")
            }
            _ => panic!("{}: add a value of {name} to this test", self.method.name),
        };
        names
            .map(|name| name.as_str().unwrap())
            .map(|name| (name.to_owned(), value(name)))
            .collect()
    }

    /// Returns the parameters whose schema includes a type of [`SECRET_TYPES`], each with that type.
    fn secret_params(&self) -> Vec<(&str, &'static str)> {
        let properties = self.params["properties"].as_object().into_iter().flatten();
        properties
            .filter_map(|(name, schema)| Some((name.as_str(), self.secret_type(schema, 16)?)))
            .collect()
    }

    fn secret_type(&self, schema: &Value, depth: u32) -> Option<&'static str> {
        let depth = depth.checked_sub(1)?;
        match schema {
            Value::Object(members) => members.iter().find_map(|(name, inner)| {
                let reference = inner.as_str().filter(|_| name == "$ref");
                let Some(reference) = reference else {
                    return self.secret_type(inner, depth);
                };
                let target = reference.rsplit('/').next().unwrap();
                let secret = SECRET_TYPES.into_iter().find(|name| *name == target);
                secret.or_else(|| self.secret_type(&self.params["$defs"][target], depth))
            }),
            Value::Array(all) => all.iter().find_map(|one| self.secret_type(one, depth)),
            _ => None,
        }
    }
}

/// Returns a value of a type of [`SECRET_TYPES`] that holds [`SECRET`].
fn secret_value(kind: &str) -> Value {
    match kind {
        "Variables" => json!({"NAME": SECRET}),
        _ => json!([{"name": "server", "command": "program", "env": {"NAME": SECRET}}]),
    }
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let (initial, rest) = part.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}

/// Sends a call to the client connection.
fn call(client: &mut RpcClient, method: &str, params: &Map<String, Value>) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    client.message(call.to_string().as_bytes());
}

#[test]
fn table_dispatch_and_openrpc_document_have_the_same_methods() {
    let mut table: Vec<String> = rows().iter().map(|row| row.method.name.into()).collect();
    let document = openrpc();
    let described = document["methods"].as_array().unwrap().iter();
    let mut described: Vec<String> = described
        .map(|method| method["name"].as_str().unwrap().to_owned())
        .collect();
    table.push(DISCOVER.to_owned());
    assert_eq!(described, table, "in the order of the table");
    table.sort_unstable();
    assert_eq!(table, Methods::new().names());
    described.sort_unstable();
    described.dedup();
    assert_eq!(described, table, "a name is there twice");
}

#[test]
fn each_call_makes_the_command_of_its_method() {
    for row in rows() {
        let name = row.method.name;
        let mut client = RpcClient::new(&Secrets::default());
        call(&mut client, name, &row.required());
        let Some(ClientAction::Command(_, command)) = client.next_action() else {
            panic!("{name}: {}", String::from_utf8_lossy(&client.out));
        };
        assert_eq!(command.method().name, name);
    }
}

#[test]
fn only_reading_calls_wait_while_the_client_does_not_read() {
    for row in rows() {
        let name = row.method.name;
        let mut client = RpcClient::new(&Secrets::default());
        client.set_backpressure(Pressure::Full);
        call(&mut client, name, &row.required());
        let done = client.next_action().is_some();
        assert_eq!(done, !row.method.only_reads, "{name}");
        client.set_backpressure(Pressure::None);
        assert_eq!(
            client.next_action().is_some(),
            row.method.only_reads,
            "{name}"
        );
    }
}

#[test]
fn every_parameter_that_can_hold_a_secret_is_in_the_table() {
    for row in rows() {
        let found: Vec<String> = row
            .secret_params()
            .iter()
            .map(|(name, _)| (*name).into())
            .collect();
        let named: Vec<String> = row
            .method
            .secrets
            .iter()
            .map(|name| camel_case(name))
            .collect();
        assert_eq!(found, named, "{}", row.method.name);
    }
}

#[test]
fn logs_hide_every_secret_parameter() {
    let mut checked = 0;
    for row in rows() {
        for (name, kind) in row.secret_params() {
            let secrets = Secrets::default();
            let mut client = RpcClient::new(&secrets);
            let mut params = row.required();
            params.insert(name.to_owned(), secret_value(kind));
            assert_eq!(secrets.hide(SECRET), SECRET);
            call(&mut client, row.method.name, &params);
            assert_eq!(secrets.hide(SECRET), HIDDEN, "{}: {name}", row.method.name);
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked} parameters");
}

#[test]
fn only_content_may_be_large() {
    for row in rows() {
        let name = row.method.name;
        let mut client = RpcClient::new(&Secrets::default());
        let mut params = row.required();
        // Always rejected, either for its size or as an unknown field.
        params.insert("unknown".to_owned(), "x".repeat(2 << 20).into());
        call(&mut client, name, &params);
        let answer = String::from_utf8_lossy(&client.out);
        assert_eq!(
            answer.contains("larger than 1 MiB"),
            !row.method.content,
            "{name}: {answer}"
        );
    }
}

#[test]
fn parts_are_counted_before_any_parameter_is_parsed() {
    let part = r#"{"type":"text","text":"x"}"#;
    let parts = vec![part; MOST_PARTS + 1].join(",");
    for row in rows().into_iter().filter(|row| row.method.content) {
        let name = row.method.name;
        let mut client = RpcClient::new(&Secrets::default());
        // The other parameters are not valid, and a parser would reject the first one.
        let params = format!(r#"{{"sessionId":7,"unknown":8,"message":{{"parts":[{parts}]}}}}"#);
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}","params":{params}}}"#);
        client.message(call.as_bytes());
        let answer: Value = serde_json::from_slice(&client.out).unwrap();
        assert_eq!(
            answer["error"]["data"]["limit"], "parts",
            "{name}: {answer}"
        );
    }
}
