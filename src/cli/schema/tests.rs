//! Tests that the committed schemas match the types and suit code generators.

mod reference;

use super::generate::{DEFS, bundle, error_table, field_table, generate, openrpc, protocol};
use super::{FILES, render};
use crate::cli::config::generate_schema;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const REWRITE: &str = "UPDATE_SCHEMAS=1 cargo test --lib schema";

/// Compares a committed file with the generated text; with `UPDATE_SCHEMAS`, writes it first.
fn check(path: &Path, want: &str) {
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, want).unwrap();
    }
    let have = std::fs::read_to_string(path).unwrap_or_default();
    assert!(have == want, "{} is stale: {REWRITE}", path.display());
}

#[test]
fn committed_schemas_match_the_types() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for name in FILES {
        check(&dir.join(name), &generate(name).unwrap());
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
fn the_program_contains_the_committed_schemas() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/schema/packed");
    for name in FILES {
        let (path, text) = (
            root.join(format!("{name}.deflate")),
            generate(name).unwrap(),
        );
        let packed = || std::fs::read(&path).unwrap_or_default();
        let unpacked = |packed: Vec<u8>| miniz_oxide::inflate::decompress_to_vec(&packed).ok();
        // Another version of the compressor may make other bytes of the same text.
        let is_stale = || unpacked(packed()).as_deref() != Some(text.as_bytes());
        if is_stale() && std::env::var_os("UPDATE_SCHEMAS").is_some() {
            let level = 10;
            let bytes = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), level);
            std::fs::write(&path, bytes).unwrap();
            continue;
        }
        assert!(!is_stale(), "{} is stale: {REWRITE}", path.display());
        assert_eq!(render(name).as_deref(), Some(&*text), "{name}");
    }
}

#[test]
fn the_table_of_members_matches_the_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = field_table();
    check(&root.join("crates/protocol/src/fields/methods.txt"), &table);
    let methods: BTreeSet<_> = table.lines().map(|line| line.split(' ').next()).collect();
    assert_eq!(
        methods.len(),
        table.lines().count(),
        "a method is there twice"
    );
}

#[test]
fn the_keys_of_the_configuration_match_the_types() {
    let mut keys = generate_schema().clone();
    without_texts(&mut keys);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/config/keys.json");
    check(&path, &format!("{keys}\n"));
}

/// Removes the descriptions of a schema, but not properties of this name.
fn without_texts(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|name, value| name != "description" || !value.is_string());
            object.values_mut().for_each(without_texts);
        }
        Value::Array(all) => all.iter_mut().for_each(without_texts),
        _ => {}
    }
}

#[test]
fn error_table_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/errors.md");
    let have = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = have.split_once("<!-- table -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end of table -->").unwrap();
    let table = error_table();
    check(
        &path,
        &format!("{head}<!-- table -->\n{table}<!-- end of table -->{tail}"),
    );
}

/// Visits all objects of a document with their paths.
fn walk<'a>(value: &'a Value, path: &str, see: &mut dyn FnMut(&str, &'a Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            see(path, object);
            for (name, inner) in object {
                walk(inner, &format!("{path}/{name}"), see);
            }
        }
        Value::Array(all) => {
            for (n, inner) in all.iter().enumerate() {
                walk(inner, &format!("{path}/{n}"), see);
            }
        }
        _ => {}
    }
}

#[test]
fn every_reference_resolves() {
    for name in FILES {
        let mut references = 0;
        let document: Value = serde_json::from_str(&generate(name).unwrap()).unwrap();
        walk(&document, "", &mut |path, object| {
            let mapping = object.get("mapping").and_then(Value::as_object);
            let mapped = mapping.into_iter().flat_map(Map::values);
            assert!(
                object.len() == 1 || !object.contains_key("$ref"),
                "{name}{path}"
            );
            for reference in object.get("$ref").into_iter().chain(mapped) {
                let target = reference.as_str().unwrap().strip_prefix('#').unwrap();
                assert!(document.pointer(target).is_some(), "{name}{path}: {target}");
                references += 1;
            }
        });
        assert!(references > 0, "{name}");
    }
}

#[test]
fn every_schema_type_has_a_unique_name() {
    let bundle = bundle();
    let definitions = bundle["$defs"].as_object().unwrap();
    let mut titles = BTreeSet::new();
    walk(&bundle, "", &mut |path, object| {
        if let Some(Value::String(title)) = object.get("title") {
            assert!(titles.insert(title), "{path}: two types are called {title}");
            let pascal = title.starts_with(|c: char| c.is_ascii_uppercase())
                && title.chars().all(|c| c.is_ascii_alphanumeric());
            assert!(pascal, "{path}: {title}");
        }
    });
    assert!(definitions.len() > 100, "{}", definitions.len());
    for (name, schema) in definitions {
        assert_eq!(schema["title"], **name);
    }
}

#[test]
fn variants_are_types_with_a_distinguishing_property() {
    let bundle = bundle();
    walk(&bundle["$defs"], "", &mut |path, object| {
        if let Some(variants) = object.get("oneOf") {
            let tag = object["discriminator"]["propertyName"].as_str().unwrap();
            for variant in variants.as_array().unwrap() {
                let target = variant["$ref"].as_str().unwrap().trim_start_matches('#');
                let word = &bundle.pointer(target).unwrap()["properties"][tag]["const"];
                assert!(word.is_string(), "{path}: {target}");
            }
        }
        // Any other `anyOf` is a value or null, or its variants differ in their JSON type.
        for variant in object
            .get("anyOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let anonymous = variant.get("properties").is_some() || variant.get("enum").is_some();
            assert!(!anonymous, "{path}");
        }
        let nested = object.get("properties").is_some() && path.matches('/').count() > 1;
        assert!(
            !nested || path.ends_with("/properties"),
            "{path} is an object without a name"
        );
    });
    assert_eq!(
        bundle["$defs"]["TextDeltaChunk"]["properties"]["type"]["const"],
        "text-delta"
    );
    assert_eq!(
        bundle["$defs"]["Chunk"]["discriminator"]["propertyName"],
        "type"
    );
}

/// Generators cannot carry over the text of a type without a name, an empty object or list as the default of
/// another type, and a type that nothing refers to.
#[test]
fn schemas_have_nothing_that_generators_lose() {
    for name in FILES {
        let document: Value = serde_json::from_str(&generate(name).unwrap()).unwrap();
        let mut targets = BTreeSet::new();
        walk(&document, "", &mut |path, object| {
            if let Some(all) = object.get("anyOf").and_then(Value::as_array) {
                let described = all.iter().any(|one| one.get("description").is_some());
                assert!(!described, "{name}{path}");
            }
            let default = object
                .get("default")
                .filter(|_| object.contains_key("allOf"));
            let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
            assert!(!default.is_some_and(is_empty), "{name}{path}");
            targets.extend(object.get("$ref").and_then(Value::as_str));
        });
        if *name == "chunk.schema.json" {
            for definition in document["$defs"].as_object().unwrap().keys() {
                let target = format!("#{DEFS}/{definition}");
                assert!(targets.contains(&*target), "{name}: {definition} is unused");
            }
        }
    }
}

#[test]
fn required_parameters_are_before_optional_ones() {
    // Number of methods with required and optional parameters, in which the order is visible.
    let mut with_both = 0;
    for method in openrpc()["methods"].as_array().unwrap() {
        let params = method["params"].as_array().unwrap();
        let required: Vec<bool> = params
            .iter()
            .map(|param| param["required"].as_bool().unwrap())
            .collect();
        assert!(required.is_sorted_by_key(|required| !required), "{method}");
        with_both += usize::from(required.contains(&true) && required.contains(&false));
    }
    assert!(with_both > 5, "{with_both}");
}

#[test]
fn the_bundle_has_the_types_of_every_method() {
    let (bundle, document) = (bundle(), openrpc());
    for (list, types, has_result) in [
        ("methods", "x-methods", true),
        ("x-notifications", "x-notifications", false),
        ("x-requests", "x-requests", true),
    ] {
        let methods = document[list].as_array().unwrap();
        assert!(!methods.is_empty(), "{list}");
        for method in methods {
            let name = method["name"].as_str().unwrap();
            let types = &bundle[types][name];
            assert!(types["params"]["$ref"].is_string(), "{name}: {types}");
            assert_eq!(
                types["result"]["$ref"].is_string(),
                has_result,
                "{name}: {types}"
            );
        }
    }
}

#[test]
fn a_type_that_is_sent_and_received_has_one_schema() {
    let mut doc = protocol(DEFS);
    let inputs = doc.inputs.take_definitions(true);
    let outputs = doc.outputs.take_definitions(true);
    let mut both = 0;
    for (name, schema) in &inputs {
        if let Some(other) = outputs.get(name) {
            assert_eq!(schema, other, "{name}");
            both += 1;
        }
    }
    assert!(both > 2, "{both}");
}
