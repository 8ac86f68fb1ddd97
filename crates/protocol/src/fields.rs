//! Unknown members of JSON objects, found with a table of the members that each message of a client can have.
//!
//! serde skips unknown members silently, including those in enums and behind `flatten`, where a deserializer
//! cannot see them. The table is generated from the schemas of the types by a test of `cli::schema`.

#[cfg(feature = "schema")]
pub mod generate;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of unknown members reported for one text.
const MAX_UNKNOWN: usize = 8;

/// A line per method, with the members of the parameters of a call, or of the result that a client returns to a request.
const METHODS: &str = include_str!("fields/methods.txt");

/// Member that every object may have: ACP reserves it for extensions.
const META: &str = "_meta";

/// Members that the objects of a type can have, at any depth.
#[derive(Debug, Default)]
pub struct Fields {
    /// Whether any JSON is allowed here.
    any: bool,
    /// Whether an object is allowed here.
    object: bool,
    members: BTreeMap<String, Fields>,
    /// Schema of other members, if other members are allowed.
    others: Option<Box<Fields>>,
    /// Schema of the elements of an array.
    items: Option<Box<Fields>>,
}

/// A member that its object cannot have.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Path of the object, such as `mcpServers[0]`; empty for the outermost object.
    pub object: String,
    /// Name of the member.
    pub name: String,
    /// Names of the members that the object can have.
    pub known: Vec<String>,
}

impl Fields {
    /// Returns the members of the object that a client sends for a method.
    #[must_use]
    pub fn of(method: &str) -> Self {
        let mut lines = METHODS.lines();
        let members = lines.find_map(|line| line.strip_prefix(method)?.strip_prefix(' '));
        let members = members.and_then(|members| serde_json::from_str(members).ok());
        Self::read(&members.unwrap_or(Value::Bool(true)))
    }

    /// Reads an entry of the table: `true` if any JSON is allowed, else an object.
    fn read(entry: &Value) -> Self {
        let inner = |name| entry.get(name).map(|inner| Box::new(Self::read(inner)));
        let members = entry["members"].as_object();
        let member = |(name, entry): (&String, _)| (name.clone(), Self::read(entry));
        Self {
            any: *entry == Value::Bool(true),
            object: members.is_some(),
            members: members.into_iter().flatten().map(member).collect(),
            others: inner("others"),
            items: inner("items"),
        }
    }

    /// Returns the unknown members of a text in their order, up to a syntax error.
    #[must_use]
    pub fn unknown_in(&self, json: &str) -> Vec<Unknown> {
        let mut found = Vec::new();
        let mut reader = serde_json::Deserializer::from_str(json);
        let walk = FieldsWalk {
            fields: self,
            path: String::new(),
            found: &mut found,
        };
        // A syntax error is reported when the type itself is parsed.
        let _ = walk.deserialize(&mut reader);
        found
    }
}

struct FieldsWalk<'a> {
    fields: &'a Fields,
    path: String,
    found: &'a mut Vec<Unknown>,
}

impl<'de> DeserializeSeed<'de> for FieldsWalk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.fields.any || self.found.len() >= MAX_UNKNOWN {
            return from.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldsWalk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let member = self.fields.members.get(&name);
            let known = member.or(self.fields.others.as_deref());
            if let Some(fields) = known.filter(|_| name != META) {
                let dot = if self.path.is_empty() { "" } else { "." };
                map.next_value_seed(FieldsWalk {
                    fields,
                    path: format!("{}{dot}{name}", self.path),
                    found: &mut *self.found,
                })?;
                continue;
            }
            if self.fields.object && name != META && self.found.len() < MAX_UNKNOWN {
                self.found.push(Unknown {
                    object: self.path.clone(),
                    name,
                    known: self.fields.members.keys().cloned().collect(),
                });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some(fields) = &self.fields.items else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut n = 0;
        while seq
            .next_element_seed(FieldsWalk {
                fields,
                path: format!("{}[{n}]", self.path),
                found: &mut *self.found,
            })?
            .is_some()
        {
            n += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::generate::entry;
    use super::*;
    use crate::wire;
    use schemars::JsonSchema;
    use serde_json::json;

    fn fields<T: JsonSchema>() -> Fields {
        Fields::read(&entry::<T>())
    }

    fn unknown<T: JsonSchema>(given: &Value) -> Vec<String> {
        let found = fields::<T>().unknown_in(&given.to_string());
        let path = |u: Unknown| format!("{}/{}", u.object, u.name);
        found.into_iter().map(path).collect()
    }

    #[test]
    fn unknown_members_are_found_at_every_depth() {
        let ensure = unknown::<wire::EnsureParams>;
        let given = json!({
            "sessionid": "s",
            "options": {"maxTurn": 1, "outputSchema": {"anything": {"goes": 1}}, "_meta": {"x": 1}},
            "mcpServers": [
                {"name": "a", "command": "c", "env": {"ANY": "v"}},
                {"name": "a", "command": "c", "enviroment": {}, "env": [{"name": "A", "value": "v", "valu": ""}]},
            ],
        });
        let want = [
            "/sessionid",
            "options/maxTurn",
            "mcpServers[1]/enviroment",
            "mcpServers[1].env[0]/valu",
        ];
        assert_eq!(ensure(&given), want);
        let initialize = unknown::<wire::InitializeParams>;
        let given =
            json!({"capabilities": {"fs": {"readTextfile": true}}, "clientInfo": {"nam": "x"}});
        assert_eq!(
            initialize(&given),
            ["capabilities.fs/readTextfile", "clientInfo/nam"]
        );
        let answer = unknown::<wire::PermissionAnswer>;
        let given = json!({"outcome": {"outcome": "selected", "optionId": "a", "mesage": "x"}});
        assert_eq!(answer(&given), ["outcome/mesage"]);
        assert_eq!(unknown::<wire::Done>(&json!({"x": 1})), ["/x"]);
    }

    #[test]
    fn foreign_content_is_not_looked_into() {
        let message =
            json!({"id": "m", "parts": [{"type": "text", "text": "t", "x": {"y": 1}}], "z": 1});
        assert!(unknown::<wire::PromptParams>(&json!({"message": message})).is_empty());
        assert!(unknown::<wire::AddMessageParams>(&json!({"message": message})).is_empty());
        assert!(
            fields::<wire::UserMessage>().any,
            "the largest text is skipped whole"
        );
        let answer = json!({"action": "accept", "content": {"any": {"field": 1}}});
        assert!(unknown::<wire::QuestionAnswer>(&answer).is_empty());
        let env = json!({"env": {"ANY": "x"}, "args": ["x"]});
        assert!(unknown::<wire::ConnectParams>(&env).is_empty());
    }

    #[test]
    fn unreadable_values_are_skipped_and_findings_are_bounded() {
        assert!(fields::<wire::Done>().unknown_in("[1, {").is_empty());
        assert!(unknown::<wire::CancelParams>(&json!({"sessionId": {"a": 1}})).is_empty());
        let many: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("x{n}"), json!(n))).collect();
        assert_eq!(unknown::<wire::Done>(&json!(many)).len(), MAX_UNKNOWN);
    }
}
