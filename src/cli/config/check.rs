//! Check of a document against the schema of the configuration: keys and types.

use super::document::Located;
use super::fault::{ConfigFault, KeyPath, PathStep};
use super::schema::{Alternative, alternatives, words};
use acpipe_policy::unknown;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// Checks a value against a part of the schema.
///
/// # Errors
/// A key is unknown, or a value has another type than the schema allows.
pub fn check(value: &Located<'_>, part: &'static Value, path: &KeyPath) -> Result<(), ConfigFault> {
    let allowed = alternatives(part);
    let wrong = || ConfigFault::new(path.clone(), expected(&allowed, path));
    let of_type = |name: &str| {
        let mut all = allowed.iter();
        all.find(|one| is_any(one.schema) || one.schema["type"] == name)
    };
    let found = of_type(type_name(value.get_ref())).ok_or_else(wrong)?;
    if is_any(found.schema) {
        return Ok(());
    }
    match value.get_ref() {
        DeValue::String(text) => check_word(text, &allowed, path),
        DeValue::Boolean(set) => match found.schema.get("const") {
            Some(only) if only != *set => Err(wrong()),
            _ => Ok(()),
        },
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
            let least = found.schema["minimum"].as_i64().unwrap_or(i64::MIN);
            let most = found.schema["maximum"].as_i64().unwrap_or(i64::MAX);
            match parsed.filter(|parsed| (least..=most).contains(parsed)) {
                Some(_) => Ok(()),
                None => Err(ConfigFault::new(
                    path.clone(),
                    format!("must be a whole number from {least} to {most}"),
                )),
            }
        }
        DeValue::Array(list) => {
            let items = &found.schema["items"];
            for (n, item) in list.iter().enumerate() {
                let kinds = alternatives(items);
                let name = type_name(item.get_ref());
                let mut kinds = kinds.iter();
                if !kinds.any(|one| is_any(one.schema) || one.schema["type"] == name) {
                    let why = expected(&allowed, path);
                    return Err(ConfigFault::new(path.then(PathStep::Item(n)), why));
                }
                check(item, items, &path.then(PathStep::Index(n)))?;
            }
            Ok(())
        }
        DeValue::Table(table) => check_table(table, found.schema, path),
        DeValue::Float(_) | DeValue::Datetime(_) => Ok(()),
    }
}

fn check_table(
    table: &DeTable<'_>,
    schema: &'static Value,
    path: &KeyPath,
) -> Result<(), ConfigFault> {
    // The table is sorted by name; the entry that comes first in the file is reported.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let known = schema["properties"].as_object();
    let others = &schema["additionalProperties"];
    for (key, _) in &entries {
        let key: &str = key.get_ref().as_ref();
        if *others == Value::Bool(false) && !known.is_some_and(|known| known.contains_key(key)) {
            let keys: Vec<&str> = known
                .into_iter()
                .flatten()
                .map(|(key, _)| key.as_str())
                .collect();
            return Err(ConfigFault::of_key(
                path.key(key),
                unknown("key", key, &keys),
            ));
        }
    }
    for (key, value) in entries {
        let key: &str = key.get_ref().as_ref();
        match known.and_then(|known| known.get(key)) {
            Some(part) => check(value, part, &path.key(key))?,
            None if others.is_object() => check(value, others, &path.key(key))?,
            None => {}
        }
    }
    Ok(())
}

/// Checks a string that may be restricted to words.
fn check_word(text: &str, allowed: &[Alternative], path: &KeyPath) -> Result<(), ConfigFault> {
    let strings = || allowed.iter().filter(|one| one.schema["type"] == "string");
    let known: Vec<&str> = strings().flat_map(|one| words(one.schema)).collect();
    let is_free = strings().any(|one| words(one.schema).is_empty());
    if is_free || known.contains(&text) {
        return Ok(());
    }
    let name = strings().find_map(|one| one.name).unwrap_or("value");
    let why = unknown(&name.to_lowercase(), text, &known);
    Err(ConfigFault::new(path.clone(), why))
}

/// Returns `true` if a part of the schema allows all values.
fn is_any(schema: &Value) -> bool {
    schema.get("type").is_none() && schema.get("enum").is_none() && schema.get("const").is_none()
}

/// Returns the name that JSON Schema has for the type of a value.
fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "integer",
        DeValue::Float(_) => "number",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "object",
    }
}

/// Describes the types that a value may have.
fn expected(allowed: &[Alternative], path: &KeyPath) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for Alternative { schema, .. } in allowed {
        let kind = match schema["type"].as_str() {
            Some("string") => "a string".to_owned(),
            Some("integer") => "a whole number".to_owned(),
            Some("number") => "a number".to_owned(),
            Some("boolean") => schema
                .get("const")
                .map_or_else(|| "true or false".to_owned(), Value::to_string),
            Some("object") => format!("a table: [{path}]"),
            Some("array") => {
                let items = alternatives(&schema["items"]);
                let is_table = items.iter().any(|item| item.schema["type"] == "object");
                if is_table {
                    format!("a list of tables: [[{path}]]")
                } else {
                    "a list of strings".to_owned()
                }
            }
            _ => continue,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    format!("must be {}", kinds.join(" or "))
}
