//! JSON schema of the configuration file, from which the reader takes keys and types.

use serde_json::Value;
use std::sync::OnceLock;

/// Schema of the configuration file without its texts, which a test generates from the types.
const KEYS: &str = include_str!("keys.json");

/// Returns the schema of the configuration file, without `null`, which TOML does not have, and without descriptions.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| serde_json::from_str(KEYS).unwrap_or_default())
}

/// Generates the schema of the configuration file from its types.
#[cfg(test)]
pub fn generate() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let settings = schemars::generate::SchemaSettings::draft2020_12();
        let generator = settings.into_generator();
        let root = generator.into_root_schema_for::<super::file::ConfigFile>();
        let mut schema = Value::from(root);
        without_null(&mut schema);
        schema["$id"] = "urn:acpipe:schema:config".into();
        schema
    })
}

/// Removes the alternative `null` everywhere in a schema.
#[cfg(test)]
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_mut_slice() {
                    let only = only.take();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(all)) = object.get_mut("anyOf") {
                all.retain(|one| one["type"] != "null");
                if let [Value::Object(only)] = all.as_mut_slice() {
                    let only = std::mem::take(only);
                    object.remove("anyOf");
                    for (key, value) in only {
                        // The description of the field has precedence over that of its type.
                        object.entry(key).or_insert(value);
                    }
                }
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(all) => all.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Part of the schema that a value may match, behind its references.
#[derive(Clone, Copy)]
pub struct Alternative {
    /// Name of the type, if it has one.
    pub name: Option<&'static str>,
    /// Schema without a reference.
    pub schema: &'static Value,
}

/// Returns the alternatives of a part of the schema.
#[must_use]
pub fn alternatives(part: &'static Value) -> Vec<Alternative> {
    let mut found = Vec::new();
    collect(None, part, &mut found);
    found
}

fn collect(name: Option<&'static str>, part: &'static Value, found: &mut Vec<Alternative>) {
    if let Some(reference) = part["$ref"].as_str() {
        let target = schema().pointer(reference.trim_start_matches('#'));
        let name = reference.rsplit('/').next();
        return collect(name, target.unwrap_or(&Value::Null), found);
    }
    let several = part["anyOf"].as_array().or(part["oneOf"].as_array());
    match several {
        Some(all) => all.iter().for_each(|one| collect(name, one, found)),
        None => found.push(Alternative { name, schema: part }),
    }
}

/// Returns the strings to which an alternative is restricted; empty if it is not restricted.
#[must_use]
pub fn words(schema: &'static Value) -> Vec<&'static str> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    listed
        .chain(schema.get("const"))
        .filter_map(Value::as_str)
        .collect()
}
