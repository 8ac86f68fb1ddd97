//! Generation of the table of members from the schemas of types.

use super::Fields;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Maximum depth of nested schemas; objects below may have any member.
const DEPTH: u32 = 16;

/// Keywords that restrict a schema; one without any of these allows any JSON.
const LIMITS: [&str; 7] = ["$ref", "anyOf", "oneOf", "allOf", "type", "enum", "const"];

/// Returns the entry of a type in the table.
pub fn entry<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = Value::from(generator.into_root_schema_for::<T>());
    let mut fields = Fields::default();
    fields.add(&schema, &schema["$defs"], DEPTH);
    fields.prune();
    fields.written()
}

impl Fields {
    /// Adds the members that a schema allows.
    fn add(&mut self, schema: &Value, definitions: &Value, depth: u32) {
        let Some(next) = depth.checked_sub(1) else {
            self.any = true;
            return;
        };
        if !LIMITS.iter().any(|limit| schema.get(limit).is_some()) {
            self.any = true;
            return;
        }
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap_or_default();
            self.add(&definitions[name], definitions, next);
        }
        for list in ["anyOf", "oneOf", "allOf"] {
            for one in schema[list].as_array().into_iter().flatten() {
                self.add(one, definitions, next);
            }
        }
        let kind = &schema["type"];
        let is =
            |name: &str| kind == name || kind.as_array().is_some_and(|k| k.contains(&name.into()));
        if is("object") {
            self.object = true;
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let known = self.members.entry(name.clone()).or_default();
                known.add(member, definitions, next);
            }
            if let Some(others) = schema.get("additionalProperties")
                && *others != Value::Bool(false)
            {
                let known = self.others.get_or_insert_default();
                known.add(others, definitions, next);
            }
        }
        if is("array") {
            let items = self.items.get_or_insert_default();
            items.add(&schema["items"], definitions, next);
        }
    }

    /// Marks the schemas in which no member can be unknown, so that their values are skipped; returns whether
    /// this is one.
    fn prune(&mut self) -> bool {
        let mut open = !self.object || self.others.is_some();
        for inner in self.members.values_mut() {
            open &= inner.prune();
        }
        for inner in [&mut self.others, &mut self.items].into_iter().flatten() {
            open &= inner.prune();
        }
        self.any |= open;
        self.any
    }

    /// Returns what [`Fields::read`] reads.
    fn written(&self) -> Value {
        if self.any {
            return Value::Bool(true);
        }
        let mut entry = Map::new();
        if self.object {
            let members = self.members.iter();
            let member = |(name, inner): (&String, &Self)| (name.clone(), inner.written());
            entry.insert("members".to_owned(), members.map(member).collect());
        }
        for (name, inner) in [("others", &self.others), ("items", &self.items)] {
            if let Some(inner) = inner {
                entry.insert(name.to_owned(), inner.written());
            }
        }
        Value::Object(entry)
    }
}
