//! Validation of a form's answer against its schema: a flat object of strings, numbers, booleans and choices,
//! as in ACP and MCP. The agent checks everything else in a schema (`pattern`, `format`).

use crate::error::clip;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;

/// Checks the answer to a form; returns the first fault.
pub(super) fn check(schema: &Value, content: &Map<String, Value>) -> Result<(), String> {
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !content.contains_key(name) {
            return Err(format!("{name:?} is missing"));
        }
    }
    for (name, value) in content {
        let Some(property) = schema["properties"].get(name) else {
            // Not the name: a user may have typed a secret where the client expected a name.
            return Err(no_field(schema));
        };
        if let Some(want) = fault(property, value) {
            return Err(format!("{name:?} must be {want}"));
        }
    }
    Ok(())
}

fn no_field(schema: &Value) -> String {
    let names = schema["properties"].as_object();
    let names: Vec<_> = names.into_iter().flat_map(Map::keys).collect();
    clip(&format!(
        "the form has no field of that name; its fields are {names:?}"
    ))
}

/// Keywords with schemas for the same value: one, a list, or an object of them.
const SAME: [&str; 9] = [
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "then",
];

/// Keywords with values instead of schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

const REFERENCES: [&str; 3] = ["$dynamicRef", "$recursiveRef", "$ref"];

/// Returns `true` if a schema marks the value of this field of a form as secret: one that applies to the form, to the
/// field, or to a value inside the field. A reference that leads to no known place marks it, too.
pub fn is_secret(form: &Value, name: &str) -> bool {
    let Some(whole) = all_schemas(form, vec![form], add_same) else {
        return true;
    };
    if whole.iter().any(|schema| is_marked(schema)) {
        return true;
    }
    let of_field = whole.iter().flat_map(|schema| {
        let patterns = schema["patternProperties"].as_object();
        let named = schema["properties"].get(name);
        let others = ["additionalProperties", "unevaluatedProperties"];
        let others = others.into_iter().filter_map(|others| schema.get(others));
        let patterns = patterns.into_iter().flat_map(Map::values);
        let others = others.filter(move |_| named.is_none());
        patterns.chain(named).chain(others)
    });
    match all_schemas(form, of_field.collect(), add_inner) {
        Some(all) => all.iter().any(|schema| is_marked(schema)),
        None => true,
    }
}

fn is_marked(schema: &Value) -> bool {
    let format = schema["format"].as_str();
    format.is_some_and(|format| format.trim().eq_ignore_ascii_case("password"))
        || schema["writeOnly"] == true
}

/// Adds the schemas under the keywords for the same value.
fn add_same<'a>(schema: &'a Value, open: &mut Vec<&'a Value>) {
    for schemas in SAME.iter().filter_map(|keyword| schema.get(keyword)) {
        open.push(schemas);
        add_inner(schemas, open);
    }
}

/// Adds all values inside a value, whatever their keywords are. A member with a type of its own is a field that only has the
/// name of a keyword with values.
fn add_inner<'a>(value: &'a Value, open: &mut Vec<&'a Value>) {
    let is_schema = |(name, value): &(&String, &Value)| {
        !VALUES.contains(&name.as_str()) || value.get("type").is_some()
    };
    match value {
        Value::Array(values) => open.extend(values),
        Value::Object(members) => {
            let members = members.iter().filter(is_schema);
            open.extend(members.map(|(_, value)| value));
        }
        _ => {}
    }
}

/// Returns the schemas, those that they refer to, and those that `add` finds in them, each once. `None` if the place of a
/// reference is not known.
fn all_schemas<'a>(
    form: &'a Value,
    from: Vec<&'a Value>,
    add: impl Fn(&'a Value, &mut Vec<&'a Value>),
) -> Option<Vec<&'a Value>> {
    let (mut open, mut all, mut seen) = (from, Vec::new(), HashSet::new());
    while let Some(schema) = open.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        all.push(schema);
        for keyword in REFERENCES {
            if let Some(reference) = schema.get(keyword).and_then(Value::as_str) {
                open.extend(places(form, reference)?);
            }
        }
        add(schema, &mut open);
    }
    Some(all)
}

/// Returns the places of the form to which a reference may lead. `None` if the form has no such place.
fn places<'a>(form: &'a Value, reference: &str) -> Option<Vec<&'a Value>> {
    let fragment = percent_decode_str(reference.strip_prefix('#')?);
    let fragment = fragment.decode_utf8().ok()?;
    let (mut open, mut places) = (vec![form], Vec::new());
    while let Some(value) = open.pop() {
        let has = |keyword: &str| value.get(keyword).is_some_and(Value::is_string);
        if has("$id") && !std::ptr::eq(value, form) {
            // It is a document of its own, in which the same reference leads elsewhere.
            return None;
        }
        let anchors = ["$anchor", "$dynamicAnchor"];
        if anchors.iter().any(|anchor| value[anchor] == *fragment) {
            places.push(value);
        }
        add_inner(value, &mut open);
    }
    if fragment.is_empty() || fragment.starts_with('/') {
        return Some(vec![form.pointer(&fragment)?]);
    }
    (!places.is_empty()).then_some(places)
}

/// Returns the texts and numbers of an answer that are none of the form's choices.
pub(super) fn typed<'a>(
    schema: Option<&'a Value>,
    content: &'a Map<String, Value>,
) -> impl Iterator<Item = Cow<'a, str>> {
    content.iter().flat_map(move |(name, value)| {
        let property = schema.map(|schema| &schema["properties"][name]);
        let offered =
            property.and_then(|property| choices(property).or(choices(&property["items"])));
        let mut texts = Vec::new();
        add_texts(value, &mut texts);
        texts.into_iter().filter(move |text| {
            !offered
                .as_ref()
                .is_some_and(|offered| offered.contains(&text.as_ref()))
        })
    })
}

/// Adds the texts and numbers in a value.
fn add_texts<'a>(value: &'a Value, texts: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::String(text) => texts.push(Cow::Borrowed(text.as_str())),
        Value::Number(number) => texts.push(Cow::Owned(number.to_string())),
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, texts)),
        Value::Object(members) => members.values().for_each(|value| add_texts(value, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns what the value must be, if it is not valid.
fn fault(property: &Value, value: &Value) -> Option<String> {
    match property["type"].as_str() {
        Some("string") => text(property, value),
        Some(kind @ ("number" | "integer")) => number(property, kind == "integer", value),
        Some("boolean") => (!value.is_boolean()).then(|| "true or false".to_owned()),
        Some("array") => list(property, value),
        // Only the agent knows this type.
        _ => None,
    }
}

fn text(property: &Value, value: &Value) -> Option<String> {
    let Some(text) = value.as_str() else {
        return Some("a string".to_owned());
    };
    if let Some(choices) = choices(property)
        && !choices.contains(&text)
    {
        return Some(format!("one of {choices:?}"));
    }
    within(property, "Length", text.chars().count()).map(|bound| format!("{bound} characters"))
}

fn number(property: &Value, whole: bool, value: &Value) -> Option<String> {
    let is_whole = |value: &Value| value.as_f64().is_some_and(|n| n.fract() == 0.0);
    let Some(n) = value.as_f64().filter(|_| !whole || is_whole(value)) else {
        let want = if whole { "a whole number" } else { "a number" };
        return Some(want.to_owned());
    };
    let low = property["minimum"].as_f64().filter(|low| n < *low);
    let high = property["maximum"].as_f64().filter(|high| n > *high);
    let low = low.map(|low| format!("at least {low}"));
    low.or_else(|| high.map(|high| format!("at most {high}")))
}

fn list(property: &Value, value: &Value) -> Option<String> {
    let Some(items) = value.as_array() else {
        return Some("a list".to_owned());
    };
    if let Some(choices) = choices(&property["items"]) {
        let offered = |item: &Value| item.as_str().is_some_and(|item| choices.contains(&item));
        if !items.iter().all(offered) {
            return Some(format!("a list of {choices:?}"));
        }
    }
    within(property, "Items", items.len()).map(|bound| format!("a list of {bound}"))
}

/// Returns the allowed values, from `enum` or from titled choices; `None` if any value is allowed.
fn choices(property: &Value) -> Option<Vec<&str>> {
    let plain = property["enum"].as_array();
    let titled = || {
        property["oneOf"]
            .as_array()
            .or(property["anyOf"].as_array())
    };
    let choices = plain.or_else(titled)?;
    let choice = |choice| Value::as_str(choice).or_else(|| choice["const"].as_str());
    Some(choices.iter().filter_map(choice).collect())
}

/// Returns the bound that the size violates, if any.
fn within(property: &Value, of: &str, size: usize) -> Option<String> {
    let bound = |which: &str| {
        let bound = property[format!("{which}{of}")].as_u64()?;
        usize::try_from(bound).ok()
    };
    let low = bound("min").filter(|low| size < *low);
    let high = bound("max").filter(|high| size > *high);
    let low = low.map(|low| format!("at least {low}"));
    low.or_else(|| high.map(|high| format!("at most {high}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn field_is_secret_wherever_its_schema_says_so() {
        let password = json!({"type": "string", "format": "password"});
        let secret = [
            json!({"$defs": {"p q": password}, "properties": {"a": {"$ref": "#/$defs/p%20q"}}}),
            json!({"$defs": {"p": password}, "properties": {"a": {"$ref": "#/$defs/%70"}}}),
            json!({"$defs": {"p": {"$anchor": "pp", "writeOnly": true}}, "properties": {"a": {"$ref": "#pp"}}}),
            json!({"$defs": {"p": {"$dynamicAnchor": "pp", "writeOnly": true}}, "properties": {"a": {"$dynamicRef": "#pp"}}}),
            json!({"$defs": {"p": {"$id": "p.json", "format": "password"}}, "properties": {"a": {"$ref": "p.json"}}}),
            json!({"$defs": {"p": {"$id": "p.json"}, "q": {}}, "properties": {"a": {"$ref": "#/$defs/q"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/missing"}}}),
            json!({"properties": {"a": {"$ref": "https://example.com/schema"}}}),
            json!({"properties": {"a": {"type": "array", "unevaluatedItems": password}}}),
            json!({"properties": {"a": {"not": {"not": password}}}}),
            json!({"properties": {"a": {"format": "Password"}}}),
            json!({"not": {"not": {"properties": {"a": password}}}, "properties": {"a": {}}}),
            json!({"dependentSchemas": {"b": {"properties": {"a": password}}}, "properties": {"a": {}}}),
            json!({"unevaluatedProperties": password}),
        ];
        for form in secret {
            assert!(is_secret(&form, "a"), "{form}");
        }
        let shown = [
            json!({"$id": "https://example.com/form", "$defs": {"p": {"type": "string"}},
                "properties": {"a": {"$ref": "#/$defs/p"}, "b": password}}),
            json!({"$defs": {"p": {"$anchor": "pp"}, "q": password}, "properties": {"a": {"$ref": "#pp"}}}),
            json!({"properties": {"a": {"format": "email"}}, "additionalProperties": password}),
            json!({"anyOf": [{"properties": {"b": password}}], "properties": {"a": {}}}),
        ];
        for form in shown {
            assert!(!is_secret(&form, "a"), "{form}");
        }
    }

    #[test]
    fn answers_are_checked_against_their_form() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 3},
            "colour": {"type": "string", "oneOf": [{"const": "red", "title": "Red"}, {"const": "blue", "title": "Blue"}]},
            "size": {"type": "string", "enum": ["s", "m"]},
            "age": {"type": "integer", "minimum": 1, "maximum": 9},
            "weight": {"type": "number"},
            "sure": {"type": "boolean"},
            "tags": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}},
            "novel": {"type": "novel"},
        }});
        let cases = [
            (json!({"name": "x"}), ""),
            (
                json!({"name": "äöü", "colour": "red", "size": "m", "age": 9, "weight": 1.5, "sure": false,
                    "tags": ["b", "a"], "novel": {"any": 1}}),
                "",
            ),
            (json!({"name": "x", "age": 2.0}), ""),
            (json!({}), r#""name" is missing"#),
            (
                json!({"name": "x", "Name": "y"}),
                r#"the form has no field of that name; its fields are ["name", "colour", "size", "age", "weight", "sure", "tags", "novel"]"#,
            ),
            (json!({"name": 1}), r#""name" must be a string"#),
            (
                json!({"name": ""}),
                r#""name" must be at least 1 characters"#,
            ),
            (
                json!({"name": "wxyz"}),
                r#""name" must be at most 3 characters"#,
            ),
            (
                json!({"name": "x", "colour": "Red"}),
                r#""colour" must be one of ["red", "blue"]"#,
            ),
            (
                json!({"name": "x", "size": null}),
                r#""size" must be a string"#,
            ),
            (
                json!({"name": "x", "age": 1.5}),
                r#""age" must be a whole number"#,
            ),
            (
                json!({"name": "x", "age": 0}),
                r#""age" must be at least 1"#,
            ),
            (
                json!({"name": "x", "age": 10}),
                r#""age" must be at most 9"#,
            ),
            (
                json!({"name": "x", "weight": "1"}),
                r#""weight" must be a number"#,
            ),
            (
                json!({"name": "x", "sure": "yes"}),
                r#""sure" must be true or false"#,
            ),
            (
                json!({"name": "x", "tags": "a"}),
                r#""tags" must be a list"#,
            ),
            (
                json!({"name": "x", "tags": ["c"]}),
                r#""tags" must be a list of ["a", "b"]"#,
            ),
            (
                json!({"name": "x", "tags": ["a", "b", "a"]}),
                r#""tags" must be a list of at most 2"#,
            ),
        ];
        for (answer, fault) in cases {
            let checked = check(&schema, answer.as_object().unwrap());
            assert_eq!(checked.err().unwrap_or_default(), fault, "{answer}");
        }
        // A form without fields accepts an empty answer.
        assert_eq!(check(&Value::Null, &Map::new()), Ok(()));
    }
}
