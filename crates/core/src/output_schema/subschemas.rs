//! Check of all schemas within a schema: references, and work without end.

use super::keywords::within;
use super::work::Work;
use serde_json::Value;

/// Maximum number of patterns: each is compiled whenever the schema is used.
const MAX_PATTERNS: usize = 64;

/// Checks that references stay within the schema, and that no value of an answer takes too many steps.
///
/// # Errors
/// The reason why the schema is not supported.
pub fn check(root: &Value) -> Result<(), String> {
    let mut work = Work::new(root);
    let mut patterns = 0;
    let mut left = vec![(root, true)];
    while let Some((schema, is_root)) = left.pop() {
        if !work.fits_alone(schema) {
            return Err(
                "is too complex, or a schema in it refers to itself for the same value".to_owned(),
            );
        }
        let Value::Object(keywords) = schema else {
            continue;
        };
        for (keyword, value) in keywords {
            patterns += match (keyword.as_str(), value) {
                ("pattern", _) => 1,
                ("patternProperties", Value::Object(properties)) => properties.len(),
                _ => 0,
            };
            if patterns > MAX_PATTERNS {
                return Err(format!("has more than {MAX_PATTERNS} patterns"));
            }
            let is_local = || {
                value
                    .as_str()
                    .is_some_and(|to| matches!(to, "#") || to.starts_with("#/"))
            };
            match keyword.as_str() {
                "$ref" if !is_local() => {
                    return Err(format!(
                        "$ref: {value} is not a reference within the schema; use #/$defs/…"
                    ));
                }
                "$dynamicRef" | "$recursiveRef" => {
                    return Err(format!("{keyword} is not supported; use $ref"));
                }
                "$id" | "id" if !is_root && value.is_string() => {
                    return Err(format!("{keyword} is supported at the top only"));
                }
                _ => left.extend(within(keyword, value).into_iter().map(|s| (s, false))),
            }
        }
    }
    Ok(())
}
