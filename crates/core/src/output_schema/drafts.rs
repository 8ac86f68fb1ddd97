//! Drafts of JSON Schema, and the keywords that each has.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

const DRAFTS: [(&str, Draft); 5] = [
    ("json-schema.org/draft-04/schema", Draft::D4),
    ("json-schema.org/draft-06/schema", Draft::D6),
    ("json-schema.org/draft-07/schema", Draft::D7),
    ("json-schema.org/draft/2019-09/schema", Draft::D2019),
    ("json-schema.org/draft/2020-12/schema", Draft::D2020),
];

impl Draft {
    /// Returns the draft that a schema names; without a name the latest one.
    ///
    /// # Errors
    /// The name is not one of the drafts.
    pub fn of(schema: &Value) -> Result<Self, String> {
        let Some(name) = schema.get("$schema") else {
            return Ok(Self::D2020);
        };
        let uri = name.as_str().unwrap_or_default();
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let path = uri.strip_prefix("https://").or(uri.strip_prefix("http://"));
        let found = DRAFTS.iter().find(|(draft, _)| path == Some(*draft));
        found.map(|(_, draft)| *draft).ok_or_else(|| {
            format!("$schema: {name} is not a supported meta-schema; use draft 4, 6, 7, 2019-09 or 2020-12")
        })
    }

    /// Returns `true` if a keyword has a meaning in this draft. The drafts agree in those that are not listed.
    pub fn has(self, keyword: &str) -> bool {
        match keyword {
            "const" | "contains" | "propertyNames" => self >= Self::D6,
            "if" | "then" | "else" => self >= Self::D7,
            "dependentRequired"
            | "dependentSchemas"
            | "minContains"
            | "maxContains"
            | "unevaluatedItems"
            | "unevaluatedProperties" => self >= Self::D2019,
            "prefixItems" => self >= Self::D2020,
            "additionalItems" => self <= Self::D2019,
            _ => true,
        }
    }
}
