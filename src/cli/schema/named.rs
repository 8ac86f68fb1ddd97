//! Transformation of schemas for code generators: every type has a name, every variant of a union is its own
//! type, and a discriminator property identifies the variants.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

type Definitions = Map<String, Value>;

/// Names all types; `references` is the path at which they refer to each other.
pub fn name_all(definitions: &mut Definitions, references: &str) {
    let names: Vec<String> = definitions.keys().cloned().collect();
    let mut merged = BTreeSet::new();
    for name in &names {
        let Some(mut schema) = definitions.remove(name) else {
            continue;
        };
        words(&mut schema);
        if let Some(variants) = variants(&schema, definitions) {
            merged.extend(parts(&schema));
            split(name, &mut schema, variants, references, definitions);
        } else {
            describe_alternatives(&mut schema);
        }
        definitions.insert(name.clone(), schema);
    }
    // A type that is only part of variants is no type of its own.
    for name in merged {
        let reference = format!("#{references}/{name}");
        if !definitions
            .values()
            .any(|schema| refers(schema, &reference))
        {
            definitions.remove(&name);
        }
    }
    for (name, schema) in definitions.iter_mut() {
        if let Value::Object(schema) = schema {
            schema.insert("title".to_owned(), json!(name));
        }
    }
}

/// Wraps references that have siblings, such as a description, in `allOf`; generators would otherwise create
/// a new type of the two. An empty default beside a reference is removed: generators write it as a value of another
/// type than that of the reference.
pub fn wrap_references(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
            if object.contains_key("$ref") && object.get("default").is_some_and(is_empty) {
                object.remove("default");
            }
            if object.len() > 1
                && let Some(reference) = object.remove("$ref")
            {
                object.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
            object.values_mut().for_each(wrap_references);
        }
        Value::Array(all) => all.iter_mut().for_each(wrap_references),
        _ => {}
    }
}

/// Converts a union of string constants to an enumeration; generators would otherwise create a type for each
/// `const`.
fn words(schema: &mut Value) {
    let Some(all) = schema["oneOf"].as_array() else {
        return;
    };
    let word = |one: &Value| Some((one["const"].as_str()?.to_owned(), text(one)));
    let Some(words) = all.iter().map(word).collect::<Option<Vec<_>>>() else {
        return;
    };
    let lines = words
        .iter()
        .map(|(word, meaning)| format!("\n- `{word}`: {meaning}"));
    let description = text(schema) + &lines.collect::<String>();
    let words: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
    *schema = json!({ "description": description, "type": "string", "enum": words });
}

/// Moves the descriptions of a union's alternatives to that of the union: alternatives without a name have no place
/// for them in generated code.
fn describe_alternatives(schema: &mut Value) {
    let all = schema.get_mut("anyOf").and_then(Value::as_array_mut);
    let Some(all) = all else {
        return;
    };
    let mut lines = String::new();
    for one in all {
        let label = named(one).or(one["type"].as_str()).unwrap_or_default();
        let label = label.to_owned();
        let Some(Value::String(text)) = one
            .as_object_mut()
            .and_then(|one| one.remove("description"))
        else {
            continue;
        };
        let _ = write!(lines, "\n- `{label}`: {text}");
    }
    if !lines.is_empty() {
        schema["description"] = json!((text(schema) + &lines).trim_start());
    }
}

/// Returns the name of the type that a schema refers to.
fn named(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Returns the names of the types that are part of variants of a union.
fn parts(schema: &Value) -> Vec<String> {
    let all = [&schema["oneOf"], &schema["anyOf"]];
    let all = all.into_iter().filter_map(Value::as_array).flatten();
    all.filter_map(named).map(str::to_owned).collect()
}

/// Returns `true` if a schema contains a reference.
fn refers(schema: &Value, reference: &str) -> bool {
    match schema {
        Value::String(text) => text == reference,
        Value::Array(all) => all.iter().any(|one| refers(one, reference)),
        Value::Object(all) => all.values().any(|one| refers(one, reference)),
        _ => false,
    }
}

/// Object of a union, with the name and value of its discriminator.
struct Variant {
    tag: String,
    word: String,
    schema: Map<String, Value>,
}

/// Returns the variants of a union of objects, each with all its properties; `None` if the schema is not such
/// a union.
fn variants(schema: &Value, definitions: &Definitions) -> Option<Vec<Variant>> {
    let all = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))?
        .as_array()?;
    let mut found = Vec::new();
    for one in all {
        one.get("properties")?;
        let mut whole = Map::new();
        merge(&mut whole, schema);
        if let Some(name) = named(one) {
            merge(&mut whole, definitions.get(name)?);
        }
        merge(&mut whole, one);
        whole.insert("type".to_owned(), json!("object"));
        whole.insert("description".to_owned(), json!(text(one)));
        let properties = one["properties"].as_object()?.iter();
        let mut tags = properties.filter_map(|(name, property)| Some((name, kinds(property)?)));
        let (tag, kinds) = tags.next()?;
        for word in kinds {
            let mut schema = whole.clone();
            let description = schema["properties"][tag]["description"].take();
            let property = &mut schema["properties"][tag];
            *property = json!({ "type": "string", "const": word });
            if !description.is_null() {
                property["description"] = description;
            }
            let tag = tag.clone();
            found.push(Variant { tag, word, schema });
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

/// Returns the constants that a variant's property allows.
fn kinds(property: &Value) -> Option<Vec<String>> {
    if let Some(word) = property["const"].as_str() {
        return Some(vec![word.to_owned()]);
    }
    let words = property["enum"].as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Merges the properties and required names of one object schema into another.
fn merge(into: &mut Map<String, Value>, from: &Value) {
    if let Some(properties) = from["properties"].as_object() {
        let known = into.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(known) = known {
            known.extend(properties.clone());
        }
    }
    if let Some(required) = from["required"].as_array() {
        let known = into.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(known) = known {
            for name in required {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
        }
    }
}

/// Replaces a union with a type per variant and a union with a discriminator.
fn split(
    name: &str,
    schema: &mut Value,
    variants: Vec<Variant>,
    references: &str,
    definitions: &mut Definitions,
) {
    let Some(tag) = variants.first().map(|first| first.tag.clone()) else {
        return;
    };
    let mut mapping = BTreeMap::new();
    let mut one_of = Vec::new();
    for variant in variants {
        let own = format!("{}{name}", pascal(&variant.word));
        let reference = format!("#{references}/{own}");
        one_of.push(json!({ "$ref": reference }));
        mapping.insert(variant.word, reference);
        definitions.insert(own, Value::Object(variant.schema));
    }
    *schema = json!({
        "description": text(schema),
        "oneOf": one_of,
        "discriminator": { "propertyName": tag, "mapping": mapping },
    });
}

fn text(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Converts `text-delta`, `envVar` or `RUN_STARTED` to a part of a type name.
fn pascal(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let is_upper = !word.chars().any(|c| c.is_ascii_lowercase());
    let word = if is_upper { &lower } else { word };
    let parts = word.split(['-', '_', ' ']);
    let part = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    parts.map(part).collect()
}
