//! Tests of answers that fit their schema and of answers that do not.

use super::*;
use serde_json::json;

/// A schema, an answer, and a part of the expected fault; `None` if the answer is accepted.
type Case = (Value, Value, Option<&'static str>);

fn check(cases: Vec<Case>) {
    for (schema, answer, want) in cases {
        let found = fault(&schema, &answer);
        match want {
            None => assert_eq!(found, None, "{schema} {answer}"),
            Some(part) => {
                let found = found.unwrap_or_else(|| panic!("{schema} takes {answer}"));
                assert!(found.contains(part), "{schema} {answer}: {found}");
            }
        }
    }
}

#[test]
fn object_schemas_are_checked() {
    let required =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
    let typed = json!({"additionalProperties": {"type": "integer"}, "minProperties": 1});
    check(vec![
        (required.clone(), json!({"a": "x", "b": 1}), None),
        (
            required.clone(),
            json!({"b": "wrong"}),
            Some(r#"the answer: a field "a""#),
        ),
        (
            required.clone(),
            json!({"a": 1}),
            Some(r#"/a: type "string""#),
        ),
        (required, json!([]), Some("type \"object\"")),
        (closed.clone(), json!({"a": 1}), None),
        (closed, json!({"b": 1}), Some("/b: no such field")),
        (typed.clone(), json!({"x": 1.0}), None),
        (
            typed.clone(),
            json!({"x": 1.5}),
            Some("/x: type \"integer\""),
        ),
        (typed, json!({}), Some("at least 1 fields")),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            Some("at most 1 characters"),
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
            json!({"a": 1}),
            Some("\"b\""),
        ),
    ]);
}

#[test]
fn array_schemas_are_checked() {
    let pair = json!({"prefixItems": [{"type": "string"}], "items": {"type": "number"}});
    let old = json!({"items": [{"type": "string"}], "additionalItems": false});
    check(vec![
        (
            json!({"items": {"type": "string"}}),
            json!(["a", 2]),
            Some("/1: type"),
        ),
        (pair.clone(), json!(["a", 1, 2]), None),
        (pair.clone(), json!([1]), Some("/0: type")),
        (pair, json!(["a", "b"]), Some("/1: type")),
        (old.clone(), json!(["a"]), None),
        (old, json!(["a", 1]), Some("/1: no value")),
        (json!({"contains": {"const": 1}}), json!([2, 1.0]), None),
        (
            json!({"contains": {"const": 1}}),
            json!([2]),
            Some("contains"),
        ),
        (
            json!({"minItems": 2, "uniqueItems": true}),
            json!([1, 1.0]),
            Some("differ"),
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            Some("at most 1 items"),
        ),
    ]);
}

#[test]
fn value_bounds_are_checked() {
    check(vec![
        (json!({"enum": ["a", 1]}), json!(1.0), None),
        (json!({"enum": ["a", 1]}), json!("b"), Some("one of")),
        (
            json!({"minimum": 1, "exclusiveMaximum": 2}),
            json!(2),
            Some("below 2"),
        ),
        (json!({"multipleOf": 0.1}), json!(0.3), None),
        (json!({"multipleOf": 2}), json!(3), Some("multiple of 2")),
        (
            json!({"minLength": 2}),
            json!("é"),
            Some("at least 2 characters"),
        ),
        (json!({"type": ["string", "null"]}), Value::Null, None),
        (json!(false), json!(1), Some("no value")),
        (json!(true), json!(1), None),
    ]);
}

#[test]
fn schemas_are_combined() {
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {
        "type": "object", "required": ["v"], "properties": {"next": {"$ref": "#/$defs/node"}}}}});
    let one = json!({"oneOf": [{"minimum": 0}, {"maximum": 10}]});
    let branch = json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}});
    check(vec![
        (tree.clone(), json!({"v": 1, "next": {"v": 2}}), None),
        (
            tree,
            json!({"v": 1, "next": {}}),
            Some("/next: a field \"v\""),
        ),
        (one.clone(), json!(20), None),
        (one, json!(5), Some("not 2")),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(1),
            Some("one of its schemas"),
        ),
        (
            json!({"allOf": [{"type": "string"}, {"maxLength": 1}]}),
            json!("ab"),
            Some("at most 1"),
        ),
        (
            json!({"not": {"type": "string"}}),
            json!("a"),
            Some("excludes"),
        ),
        (branch.clone(), json!({"a": 1}), Some("\"b\"")),
        (branch, json!({"c": 1}), None),
    ]);
}

#[test]
fn unsupported_keywords_reject_nothing() {
    check(vec![
        (json!({"pattern": "^a"}), json!("b"), None),
        (json!({"not": {"pattern": "^a"}}), json!("b"), None),
        (
            json!({"oneOf": [{"pattern": "^a"}, {"type": "string"}]}),
            json!("b"),
            None,
        ),
        (
            json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
            json!({"xa": 1}),
            None,
        ),
        (json!({"$ref": "https://example.com/s"}), json!(1), None),
        (json!({"type": "novel"}), json!(1), None),
        (json!({"minimum": "1"}), json!(0), None),
        // The other keyword still decides.
        (
            json!({"pattern": "^a", "type": "number"}),
            json!("b"),
            Some("type"),
        ),
        // Schemas that refer to themselves without end.
        (json!({"$ref": "#"}), json!(1), None),
        (
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!(1),
            None,
        ),
    ]);
}
