//! Test cases of the JSON Schema Test Suite (`crates/core/tests/json-schema`).

use super::OutputSchema;
use serde_json::Value;

/// Drafts, their cases, and the number of those whose schema is supported.
const DRAFTS: [(&str, &[u8], usize); 5] = [
    (
        "http://json-schema.org/draft-04/schema#",
        include_bytes!("../../tests/json-schema/draft4.json.deflate"),
        542,
    ),
    (
        "http://json-schema.org/draft-06/schema#",
        include_bytes!("../../tests/json-schema/draft6.json.deflate"),
        707,
    ),
    (
        "http://json-schema.org/draft-07/schema#",
        include_bytes!("../../tests/json-schema/draft7.json.deflate"),
        739,
    ),
    (
        "https://json-schema.org/draft/2019-09/schema",
        include_bytes!("../../tests/json-schema/draft2019-09.json.deflate"),
        980,
    ),
    (
        "https://json-schema.org/draft/2020-12/schema",
        include_bytes!("../../tests/json-schema/draft2020-12.json.deflate"),
        1107,
    ),
];

/// Reasons to refuse a schema that is valid: it has what output schemas cannot have.
const NOT_SUPPORTED: [&str; 6] = [
    "is not a reference within the schema",
    "is not supported",
    "at the top only",
    "not a supported meta-schema",
    "does not exist in the schema",
    "refers to itself",
];

fn cases(compressed: &[u8]) -> Value {
    let text = miniz_oxide::inflate::decompress_to_vec(compressed).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn suite_of_each_draft_passes() {
    let mut wrong = Vec::new();
    for (draft, compressed, wanted) in DRAFTS {
        let mut passed = 0;
        let files = cases(compressed);
        for (file, groups) in files.as_object().unwrap() {
            for group in groups.as_array().unwrap() {
                let mut schema = group["schema"].clone();
                if let Value::Object(schema) = &mut schema {
                    schema.entry("$schema").or_insert_with(|| draft.into());
                } else if !draft.ends_with("2020-12/schema") {
                    continue;
                }
                let title = format!("{draft} {file}: {}", group["description"]);
                let compiled = match OutputSchema::compile(&schema) {
                    Ok(compiled) => compiled,
                    Err(why) if NOT_SUPPORTED.iter().any(|part| why.contains(part)) => continue,
                    Err(why) => {
                        wrong.push(format!("{title}: {why}"));
                        continue;
                    }
                };
                for test in group["tests"].as_array().unwrap() {
                    let found = compiled.violations(&test["data"]);
                    if found.is_empty() == test["valid"] {
                        passed += 1;
                        continue;
                    }
                    wrong.push(format!("{title}: {}: {found:?}", test["description"]));
                }
            }
        }
        if passed < wanted {
            wrong.push(format!("{draft}: only {passed} cases"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
