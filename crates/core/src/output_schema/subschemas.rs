//! Check of all schemas within a schema: values of keywords, references, patterns, and work without end.

use super::drafts::Draft;
use super::keywords::within;
use super::numbers::whole;
use super::pattern::Patterns;
use super::resolve;
use super::validator::Validator;
use super::work::Work;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::ptr;

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Checks a schema: that its keywords are valid, that references stay within it, and that no value of an answer
/// takes too many steps.
///
/// # Errors
/// The reason why the schema is not valid, or not supported.
pub fn check(root: &Value) -> Result<Validator<'_>, String> {
    let draft = Draft::of(root)?;
    let mut validator = Validator {
        root,
        draft,
        patterns: Patterns::default(),
        tracks_evaluated: false,
    };
    let mut work = Work::new(root);
    let mut seen = HashSet::new();
    let mut left = vec![(root, String::new())];
    while let Some((schema, path)) = left.pop() {
        // A reference may also lead to a place that no keyword has.
        if !seen.insert(ptr::from_ref(schema)) {
            continue;
        }
        let at = |keyword: &str, why: String| match (path.as_str(), keyword) {
            ("", "") => why,
            (path, "") => format!("{path}: {why}"),
            (path, keyword) => format!("{path}/{keyword}: {why}"),
        };
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(_) => continue,
            other => {
                let why = format!("{other} is not a schema; it must be an object or a boolean");
                return Err(at("", why));
            }
        };
        if !work.fits_alone(schema) {
            return Err(
                "is too complex, or a schema in it refers to itself for the same value".to_owned(),
            );
        }
        for (keyword, value) in keywords {
            match keyword.as_str() {
                "$ref" => left.push((reference(root, value)?, pointer(value))),
                "$dynamicRef" | "$recursiveRef" => {
                    return Err(format!("{keyword} is not supported; use $ref"));
                }
                "$id" | "id" if !path.is_empty() && value.is_string() => {
                    return Err(format!("{keyword} is supported at the top only"));
                }
                _ => {}
            }
            if let Some(wanted) = wrong(keyword, value, draft) {
                return Err(at(
                    keyword,
                    format!("{value} is not valid; it must be {wanted}"),
                ));
            }
            validator.tracks_evaluated |= keyword.starts_with("unevaluated");
            patterns(keyword, value, &mut validator.patterns).map_err(|why| at(keyword, why))?;
            for schema in within(keyword, value) {
                left.push((schema, format!("{path}/{keyword}")));
            }
        }
    }
    Ok(validator)
}

/// Returns the schema that `$ref` names.
fn reference<'s>(root: &'s Value, value: &'s Value) -> Result<&'s Value, String> {
    let local = value
        .as_str()
        .filter(|to| *to == "#" || to.starts_with("#/"));
    if local.is_none() {
        return Err(format!(
            "$ref: {value} is not a reference within the schema; use #/$defs/…"
        ));
    }
    resolve(root, value).ok_or_else(|| format!("$ref: {value} does not exist in the schema"))
}

fn pointer(reference: &Value) -> String {
    reference.as_str().unwrap_or_default()[1..].to_owned()
}

fn patterns<'s>(
    keyword: &str,
    value: &'s Value,
    patterns: &mut Patterns<'s>,
) -> Result<(), String> {
    match (keyword, value) {
        ("pattern", Value::String(pattern)) => patterns.add(pattern),
        ("patternProperties", Value::Object(properties)) => {
            properties.keys().try_for_each(|key| patterns.add(key))
        }
        _ => Ok(()),
    }
}

/// Returns the description of valid values, if the value of a keyword is not one.
fn wrong(keyword: &str, value: &Value, draft: Draft) -> Option<&'static str> {
    let (valid, wanted) = match keyword {
        "type" => (
            is_type(value) || is_list_of(value, is_type) && !is_empty(value),
            "a type (array, boolean, integer, null, number, object, string) or a list of types",
        ),
        "enum" => (value.is_array(), "a list of values"),
        "multipleOf" => (
            value.as_f64().is_some_and(|number| number > 0.0),
            "a number above 0",
        ),
        "exclusiveMinimum" | "exclusiveMaximum" if draft == Draft::D4 => {
            (value.is_boolean(), "a boolean, in draft 4")
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            (value.is_number(), "a number")
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => (whole(value).is_some(), "an integer of 0 or more"),
        "uniqueItems" => (value.is_boolean(), "a boolean"),
        "pattern" | "$schema" | "$id" | "$comment" | "title" | "description" | "format" => {
            (value.is_string(), "a string")
        }
        "required" => (is_list_of(value, Value::is_string), "a list of strings"),
        "dependentRequired" => (
            is_map_of(value, |names| is_list_of(names, Value::is_string)),
            "an object of lists of strings",
        ),
        "dependencies" => (
            is_map_of(value, |of| {
                !of.is_array() || is_list_of(of, Value::is_string)
            }),
            "an object of schemas and lists of strings",
        ),
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => (
            is_map_of(value, |schema| !schema.is_array()),
            "an object of schemas",
        ),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => (
            value.is_array() && !is_empty(value),
            "a list of one or more schemas",
        ),
        "items" if draft == Draft::D2020 => (
            !value.is_array(),
            "a schema; a list of schemas is prefixItems in draft 2020-12",
        ),
        _ => return None,
    };
    (!valid).then_some(wanted)
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_list_of(value: &Value, is_valid: impl Fn(&Value) -> bool) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().all(is_valid))
}

fn is_map_of(value: &Value, is_valid: impl Fn(&Value) -> bool) -> bool {
    let values = value.as_object().map(Map::values);
    values.is_some_and(|mut values| values.all(is_valid))
}
