//! Tests of output schemas: what matches, what is refused, and the bounds of the work.

use super::*;
use std::fmt::Write as _;

fn messages(schema: &Value, answer: &Value) -> Vec<String> {
    let schema = OutputSchema::compile(schema).unwrap();
    let violations = schema.violations(answer);
    violations.iter().map(ToString::to_string).collect()
}

fn refusal(schema: &Value) -> String {
    OutputSchema::compile(schema).err().unwrap_or_default()
}

#[test]
fn violations_name_place_and_reason() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "list": {"items": {"$ref": "#/$defs/name"}}},
        "required": ["a"],
        "$defs": {"name": {"type": "string", "pattern": "^[a-z]+$"}}
    });
    assert_eq!(messages(&schema, &json!({"a": 1})), [""; 0]);
    assert_eq!(
        messages(&schema, &json!({"b": "wrong"})),
        ["the answer: \"a\" is a required property"]
    );
    assert_eq!(
        messages(&schema, &json!({"a": "x", "list": ["ok", "NO", 1]})),
        [
            "/a: value is not of type \"integer\"",
            "/list/1: value does not match \"^[a-z]+$\"",
            "/list/2: value is not of type \"string\"",
        ]
    );
}

#[test]
fn drafts_and_look_around_patterns_are_supported() {
    let draft = |name: &str| json!({"$schema": name, "type": "array", "items": [{"const": 1}]});
    for name in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
    ] {
        assert_eq!(messages(&draft(name), &json!([1])), [""; 0], "{name}");
    }
    // As written by a generator of schemas for e-mail addresses.
    let email = json!({"pattern": "^(?!\\.)(?!.*\\.\\.)([a-z.]+)@[a-z]+$"});
    assert_eq!(messages(&email, &json!("a.b@c")), [""; 0]);
    assert_eq!(messages(&email, &json!("a..b@c")).len(), 1);
}

#[test]
fn invalid_schemas_are_refused_with_their_reason() {
    let long = "x".repeat(MAX_BYTES);
    let cases = [
        (json!(3), "is not"),
        (json!({"type": "intger"}), "/type"),
        (json!({"pattern": "("}), "regex"),
        (json!({"pattern": "(a{1000}){1000}{1000}"}), "regex"),
        (json!({"$ref": "#/$defs/none"}), "/$defs/none"),
        (
            json!({"$ref": "http://127.0.0.1:9/x.json"}),
            "within the schema",
        ),
        (json!({"$ref": "file:///etc/passwd"}), "within the schema"),
        (json!({"$ref": "other.json#/a"}), "within the schema"),
        (
            json!({"properties": {"a": {"$ref": "http://a/b"}}}),
            "within the schema",
        ),
        (json!({"$dynamicRef": "#a"}), "not supported"),
        (json!({"$schema": "http://example.org/mine"}), "meta-schema"),
        (
            json!({"$defs": {"a": {"$id": "http://a/b"}}}),
            "at the top only",
        ),
        (json!({"description": long}), "more than 256 KiB"),
    ];
    for (schema, why) in cases {
        let said = refusal(&schema);
        assert!(said.contains(why), "{said}");
    }
    // Fields of an answer may have any name.
    let names = json!({"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}}});
    assert_eq!(messages(&names, &json!({"$id": "x", "$ref": "y"})), [""; 0]);
}

#[test]
fn schema_of_the_deepest_level_is_valid_and_one_level_more_is_refused() {
    let nested = |around: fn(Value) -> Value, times: usize, inner: Value| {
        (0..times).fold(inner, |inner, _| around(inner))
    };
    let items: fn(Value) -> Value = |inner| json!({"items": inner});
    let properties: fn(Value) -> Value = |inner| json!({"properties": {"a": inner}});
    let integer = json!({"type": "integer"});
    // Each `properties` is two levels.
    assert!(OutputSchema::compile(&nested(items, 99, integer.clone())).is_ok());
    assert!(OutputSchema::compile(&nested(properties, 50, json!(true))).is_ok());
    for deeper in [
        nested(items, 100, integer.clone()),
        nested(properties, 50, integer),
        nested(properties, 63, json!(true)),
    ] {
        let said = refusal(&deeper);
        assert_eq!(said, "is nested more than 100 levels deep");
    }
}

#[test]
fn schemas_of_unbounded_work_are_refused() {
    let itself = [
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
        json!({"properties": {"a": {"$ref": "#/$defs/b"}},
            "$defs": {"b": {"not": {"$ref": "#/$defs/c"}}, "c": {"$ref": "#/$defs/b"}}}),
        json!({"$ref": "#/$defs/a%25", "$defs": {"a%": {"$ref": "#/$defs/a%25"}}}),
    ];
    for schema in itself {
        assert!(refusal(&schema).contains("refers to itself"), "{schema}");
    }
    // Each definition applies the next one twice.
    let mut doubling = json!({"a0": {"type": "string"}});
    for n in 1..40 {
        let next = json!({"$ref": format!("#/$defs/a{}", n - 1)});
        doubling[format!("a{n}")] = json!({"anyOf": [next, next]});
    }
    let schema = json!({"$ref": "#/$defs/a39", "$defs": doubling});
    assert!(refusal(&schema).contains("too complex"));
}

#[test]
fn answers_that_take_too_many_steps_are_violations() {
    // A recursive list whose elements are applied twice: the work doubles with each level of the answer.
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"allOf": [
        {"properties": {"next": {"$ref": "#/$defs/node"}}},
        {"properties": {"next": {"$ref": "#/$defs/node"}}}
    ]}}});
    let nested = |depth: usize| {
        let mut text = String::new();
        for _ in 0..depth {
            write!(text, "{{\"next\":").unwrap();
        }
        let text = format!("{text}1{}", "}".repeat(depth));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(messages(&schema, &nested(8)), [""; 0]);
    assert!(messages(&schema, &nested(60))[0].contains("too many steps"));
}

#[test]
fn pathological_patterns_end_early() {
    let schema = json!({"items": {"pattern": "^(?=x?)(a+)+$(?<!b)"}});
    let text = format!("{}b", "a".repeat(60));
    let began = std::time::Instant::now();
    assert_eq!(messages(&schema, &json!([text])).len(), 1);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[test]
fn number_and_size_of_violations_are_bounded() {
    let schema = json!({"items": {"type": "integer"}});
    let wrong = json!(vec!["x".repeat(10_000); 100]);
    let few = messages(&schema, &wrong);
    assert_eq!(few.len(), MAX_VIOLATIONS);
    assert!(few.iter().all(|text| text.len() < 500));
    let many = json!(vec!["x"; 100_000]);
    assert_eq!(messages(&schema, &many).len(), MAX_VIOLATIONS);
    let error = mismatch(&[Violation::no_json()], "no idea");
    assert_eq!(
        error.message,
        "Structured output schema validation failed: the answer: contains no JSON value"
    );
    assert_eq!(error.data["raw"], "no idea");
}

#[test]
fn values_that_are_large_or_numerous_take_bounded_work() {
    let names: Vec<String> = (0..2_000).map(|n| format!("n{n}")).collect();
    let schemas = [
        json!({"uniqueItems": true}),
        json!({"items": {"required": names}}),
        json!({"items": {"unevaluatedProperties": false, "anyOf": vec![json!({"properties": {}}); 500]}}),
    ];
    let items: Vec<Value> = (0..20_000).map(|n| json!({"a": n})).collect();
    let items = Value::Array(items);
    for schema in schemas {
        assert!(messages(&schema, &items).len() <= MAX_VIOLATIONS);
    }
}

#[test]
fn patterns_have_the_syntax_of_ecma_262() {
    let cases = [
        (r"^\d$", "\u{661}", false),
        (r"^\cA\x41\u0042\u{43}$", "\u{1}ABC", true),
        (r"^\ud83d\ude00$", "\u{1f600}", true),
        ("^.$", "\u{2028}", false),
        ("^[[a]$", "[", true),
        ("^[a&&b~~-]+$", "&~-", true),
        (r"^[\w-.]+$", "a-.", true),
        (r"^[^\s\S]$", "a", false),
        ("^[^]$", "\n", true),
        ("[]", "a", false),
        ("^a{,2}{$", "a{,2}{", true),
        ("^(?:ab){1,2}$", "abab", true),
        (r"^[\b]$", "\u{8}", true),
        (r"^\p{Letter}+$", "\u{e4}b", true),
        (r"^(?<q>['\x22]).*\k<q>$", "'a'", true),
    ];
    for (pattern, text, valid) in cases {
        let found = messages(&json!({ "pattern": pattern }), &json!(text));
        assert_eq!(found.is_empty(), valid, "{pattern}: {found:?}");
    }
    for pattern in [
        r"\Z", r"\a", "[a", r"\", r"\ud800", r"\cé", r"\u{zz}", r"\p", "[b-a]",
    ] {
        assert!(
            refusal(&json!({ "pattern": pattern })).contains("regex"),
            "{pattern}"
        );
    }
    for deep in ["(", "[", "(?=", r"\"] {
        refusal(&json!({ "pattern": deep.repeat(50_000) }));
    }
}

#[test]
fn violations_of_each_keyword_are_explained() {
    let cases = [
        (
            json!({"minimum": 2}),
            json!(1),
            "value is less than the minimum of 2",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "value has more than 1 item",
        ),
        (
            json!({"minProperties": 2}),
            json!({}),
            "value has less than 2 properties",
        ),
        (
            json!({"minLength": 2}),
            json!("a"),
            "value is shorter than 2 characters",
        ),
        (
            json!({"multipleOf": 0.01}),
            json!(4.355),
            "value is not a multiple of 0.01",
        ),
        (
            json!({"enum": [1, 2, 3, 4]}),
            json!(5),
            "value is not one of 1, 2 or 2 other candidates",
        ),
        (
            json!({"enum": [1, "a", null]}),
            json!(5),
            "value is not one of 1, \"a\" or null",
        ),
        (
            json!({"type": ["null", "string"]}),
            json!(5),
            "value is not of types \"null\", \"string\"",
        ),
        (
            json!({"additionalProperties": false}),
            json!({"x": 1}),
            "Additional properties are not allowed ('x' was unexpected)",
        ),
        (
            json!({"prefixItems": [true], "items": false}),
            json!([1, 2, 3]),
            "Additional items are not allowed (2 items)",
        ),
        (
            json!({"contains": {"const": 1}}),
            json!([2]),
            "less than 1 items are valid under the schema of 'contains'",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "property name \"ab\" does not match {\"maxLength\":1}",
        ),
        (
            json!({"not": {"type": "null"}}),
            json!(null),
            "{\"type\":\"null\"} is not allowed for value",
        ),
        (json!(false), json!(1), "no value is allowed here"),
    ];
    for (schema, answer, message) in cases {
        assert_eq!(
            messages(&schema, &answer),
            [format!("the answer: {message}")]
        );
    }
    let schema = json!({"properties": {"a/b~": {"items": false}}});
    assert!(messages(&schema, &json!({"a/b~": [1]}))[0].starts_with("/a~1b~0: "));
}
