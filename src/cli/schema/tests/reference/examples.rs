//! The examples of `protocol.md`: each message is one that acpipe takes or sends.
//!
//! `→` stands before a message of the client, `←` before one of acpipe, and further lines of a message are indented.
//! `"jsonrpc": "2.0"` is left out.

use super::markdown::Types;
use super::pages::{page, sections, type_of};
use crate::cli::schema::generate::bundle;
use acpipe_core::client::Command;
use acpipe_core::methods::{Method, MethodVisitor, visit_methods};
use acpipe_json::to_raw;
use acpipe_model::error::ErrorKind;
use acpipe_model::unknown_fields;
use acpipe_protocol::wire::UnknownFields;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A message of an example.
struct Message {
    from_client: bool,
    frame: Value,
}

/// The messages in the code of a section.
fn messages(section: &str) -> Vec<Message> {
    let code = section.split("```").skip(1).step_by(2);
    let mut texts: Vec<(bool, String)> = Vec::new();
    for line in code.flat_map(str::lines) {
        match (line.strip_prefix('→'), line.strip_prefix('←')) {
            (Some(text), _) => texts.push((true, text.to_owned())),
            (_, Some(text)) => texts.push((false, text.to_owned())),
            _ if line.starts_with(' ') && !texts.is_empty() => {
                texts.last_mut().unwrap().1.push_str(line);
            }
            _ => {}
        }
    }
    let message = |(from_client, text): (bool, String)| Message {
        from_client,
        frame: serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")),
    };
    texts.into_iter().map(message).collect()
}

/// The first fault of a value by its schema; an object must not have other fields than the schema.
fn fault(types: &Types<'_>, schema: &Value, value: &Value, path: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return fault(types, types.get(name), value, path);
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().find_map(|one| fault(types, one, value, path));
    }
    if let Some(all) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let mut faults = all.iter().map(|one| fault(types, one, value, path));
        let fits = faults.any(|fault| fault.is_none());
        return (!fits).then(|| format!("{path}: {value} is not one of the variants"));
    }
    let is = |kind: &Value| match kind.as_str() {
        Some("null") => value.is_null(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    let fits = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    };
    let words = schema["enum"].as_array();
    let listed = words.is_none_or(|words| words.contains(value));
    let only = schema.get("const").is_none_or(|only| only == value);
    if !(fits && listed && only) {
        return Some(format!("{path}: {value} does not fit {schema}"));
    }
    let items = value.as_array().into_iter().flatten().enumerate();
    let item = |(n, item)| fault(types, &schema["items"], item, &format!("{path}[{n}]"));
    items
        .map(item)
        .find_map(|fault| fault)
        .or_else(|| object_fault(types, schema, value, path))
}

fn object_fault(types: &Types<'_>, schema: &Value, value: &Value, path: &str) -> Option<String> {
    let object = value.as_object().filter(|_| schema.is_object())?;
    let required = schema["required"].as_array().into_iter().flatten();
    let mut names = required.filter_map(Value::as_str);
    if let Some(name) = names.find(|name| !object.contains_key(*name)) {
        return Some(format!("{path}.{name} is missing"));
    }
    object.iter().find_map(|(name, inner)| {
        let path = format!("{path}.{name}");
        let known = schema["properties"].get(name);
        match known.or(schema.get("additionalProperties")) {
            Some(schema) => fault(types, schema, inner, &path),
            // A schema that says nothing allows any value.
            None if schema.get("type").is_none() => None,
            None => Some(format!("{path}: unknown field")),
        }
    })
}

/// The messages of a section, of which requests wait for their responses.
struct Exchange<'a> {
    bundle: &'a Value,
    /// The methods of open requests, by id.
    open: BTreeMap<String, String>,
}

impl Exchange<'_> {
    /// Checks a message; returns its method.
    fn check(&mut self, message: &Message) -> String {
        let frame = &message.frame;
        let id = frame["id"].to_string();
        let (method, part) = if let Some(method) = frame["method"].as_str() {
            if frame.get("id").is_some() {
                self.open.insert(id, method.to_owned());
            }
            let of_client = self.bundle["x-methods"].get(method).is_some();
            assert_eq!(of_client, message.from_client, "{frame} goes the other way");
            (method.to_owned(), "params")
        } else {
            let method = self.open.remove(&id);
            let method = method.unwrap_or_else(|| panic!("{frame} answers nothing"));
            if frame.get("error").is_some() {
                check_error(frame);
                return method;
            }
            (method, "result")
        };
        let kind = type_of(self.bundle, &method, part);
        let kind = kind.unwrap_or_else(|| panic!("{frame} has no type"));
        let types = Types::new(self.bundle);
        let empty = json!({});
        let body = frame.get(part).unwrap_or(&empty);
        if let Some(fault) = fault(&types, types.get(kind), body, part) {
            panic!("{fault}: {frame}");
        }
        method
    }
}

fn check_error(frame: &Value) {
    let error = &frame["error"];
    let mut kinds = ErrorKind::ALL.iter();
    let kind = kinds.find(|kind| error["data"]["kind"] == kind.name());
    let kind = kind.unwrap_or_else(|| panic!("{frame} has no kind of error"));
    assert_eq!(error["code"], kind.rpc_code(), "{frame}");
    assert!(error["message"].is_string(), "{frame}");
}

/// Reads the parameters of examples as the dispatch of requests does.
struct Reader(BTreeMap<String, Vec<Value>>);

impl MethodVisitor for Reader {
    fn visit<P, R>(&mut self, method: &'static Method, _: fn(P) -> Command)
    where
        P: DeserializeOwned + JsonSchema + 'static,
        R: JsonSchema,
    {
        for params in self.0.remove(method.name).into_iter().flatten() {
            let read =
                unknown_fields::read::<P>(method.name, &to_raw(&params), UnknownFields::Refuse);
            assert!(read.is_ok(), "{}: {params}: {:?}", method.name, read.err());
        }
    }
}

#[test]
fn examples_are_valid() {
    let (bundle, page) = (bundle(), page("protocol.md"));
    let mut requests: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, section) in sections(&page) {
        let mut exchange = Exchange {
            bundle: &bundle,
            open: BTreeMap::new(),
        };
        let mut shown = false;
        for message in messages(section) {
            let method = exchange.check(&message);
            shown |= method == name;
            let params = message.frame.get("params").filter(|_| message.from_client);
            if let Some(params) = params {
                requests.entry(method).or_default().push(params.clone());
            }
        }
        assert!(shown, "{name} has no example");
        let open = exchange.open;
        assert!(open.is_empty(), "{name}: {open:?} is not answered");
    }
    visit_methods(&mut Reader(requests));
}

#[test]
fn listed_errors_are_kinds() {
    let page = page("protocol.md");
    let mut kinds = 0;
    for (name, section) in sections(&page) {
        let Some((_, list)) = section.split_once("\n**Errors**") else {
            continue;
        };
        for row in list.lines().filter_map(|line| line.strip_prefix("- [`")) {
            let kind = row.split('`').next().unwrap();
            let known = ErrorKind::ALL.iter().any(|known| known.name() == kind);
            assert!(known, "{name}: {kind} is not a kind of error");
            kinds += 1;
        }
    }
    assert!(kinds > 50, "{kinds}");
}

#[test]
fn faults_of_examples_are_found() {
    let bundle = bundle();
    let types = Types::new(&bundle);
    for (params, want) in [
        (json!({"message": "a"}), ""),
        (json!({}), "x.message is missing"),
        (
            json!({"message": 1}),
            "x.message: 1 is not one of the variants",
        ),
        (
            json!({"message": "a", "turnid": "t"}),
            "x.turnid: unknown field",
        ),
        (
            json!({"message": "a", "retry": 1}),
            "x.retry: 1 does not fit",
        ),
        (
            json!({"message": "a", "whenBusy": "now"}),
            "x.whenBusy: \"now\" does not fit",
        ),
    ] {
        let have = fault(&types, types.get("PromptParams"), &params, "x").unwrap_or_default();
        assert!(have.starts_with(want), "{params}: {have}");
        assert_eq!(have.is_empty(), want.is_empty(), "{params}: {have}");
    }
}
