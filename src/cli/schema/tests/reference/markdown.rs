//! Markdown of types: tables of parameters, results and fields, made of the bundle of schemas.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The type whose variants are described on another page, and where.
const CHUNK: (&str, &str) = ("Chunk", "chunks.md#chunk-types");

/// The types of a bundle of schemas.
pub struct Types<'a> {
    definitions: &'a Map<String, Value>,
}

impl<'a> Types<'a> {
    pub fn new(bundle: &'a Value) -> Self {
        Self {
            definitions: bundle["$defs"].as_object().unwrap(),
        }
    }

    pub fn get(&self, name: &str) -> &'a Value {
        &self.definitions[name]
    }

    /// The table of parameters of a method: required ones first.
    pub fn parameters(&self, name: &str) -> String {
        self.table(name, ["parameter", "default"], |field| {
            match (field.required, field.schema.get("default")) {
                (true, _) => "required".to_owned(),
                (_, None | Some(Value::Null)) => split_default(&field.meaning()).1,
                (_, Some(default)) => format!("`{default}`"),
            }
        })
    }

    /// The table of fields of a result, a notification or another type.
    pub fn fields(&self, name: &str) -> String {
        self.table(name, ["field", "present"], |field| {
            match (field.required, field.schema.get("default")) {
                (true, _) => "always".to_owned(),
                (_, None | Some(Value::Null)) => "optional".to_owned(),
                (_, Some(default)) => format!("optional, default `{default}`"),
            }
        })
    }

    /// The types that these refer to, directly or through others, in alphabetical order.
    pub fn reachable<'n>(&self, from: impl IntoIterator<Item = &'n str>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for name in from {
            self.follow(self.get(name), &mut found);
        }
        found
    }

    /// The sections of types, with headings of this level.
    pub fn sections(&self, names: &BTreeSet<String>, heading: &str) -> String {
        let mut text = String::new();
        for name in names {
            let schema = self.get(name);
            let about = paragraphs(schema);
            let _ = writeln!(text, "\n{heading} {name}\n\n{about}");
            if let Some(variants) = schema["oneOf"].as_array() {
                let tag = schema["discriminator"]["propertyName"].as_str().unwrap();
                let _ = writeln!(text, "\nOne of these, by `{tag}`:\n");
                for variant in variants {
                    let about = line(self.get(reference(variant).unwrap()));
                    let _ = writeln!(text, "- {}: {about}", kind(variant));
                }
            } else if schema.get("properties").is_some() {
                let _ = write!(text, "\n{}", self.fields(name));
            } else if schema.get("enum").is_none() {
                let _ = writeln!(text, "\nType: {}.", kind(schema));
            }
        }
        text
    }

    fn follow(&self, schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(object) => {
                let name = reference(schema).filter(|name| *name != CHUNK.0);
                if let Some(name) = name
                    && found.insert(name.to_owned())
                {
                    self.follow(self.get(name), found);
                }
                object.values().for_each(|inner| self.follow(inner, found));
            }
            Value::Array(all) => all.iter().for_each(|inner| self.follow(inner, found)),
            _ => {}
        }
    }

    fn table(&self, name: &str, heads: [&str; 2], third: fn(&Field<'_>) -> String) -> String {
        let fields = Field::all(self.get(name));
        if name == "OpenRpcDocument" {
            return "An object: the OpenRPC document.\n".to_owned();
        }
        if fields.is_empty() {
            return "An empty object.\n".to_owned();
        }
        let mut rows: Vec<(Vec<&str>, [String; 3])> = Vec::new();
        for field in &fields {
            let mut meaning = field.meaning();
            if heads[1] == "default" {
                meaning = split_default(&meaning).0;
            }
            let cells = [kind(field.schema), third(field), meaning];
            match rows.last_mut() {
                // Fields that differ in their names alone share a row.
                Some((names, last)) if *last == cells => names.push(field.name),
                _ => rows.push((vec![field.name], cells)),
            }
        }
        let [first, presence] = heads;
        let mut text = format!("| {first} | type | {presence} | meaning |\n|-|-|-|-|\n");
        for (names, [kind, third, meaning]) in rows {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            let _ = writeln!(text, "| {names} | {kind} | {third} | {meaning} |");
        }
        text
    }
}

/// A field of an object.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

impl<'a> Field<'a> {
    /// The description, as a cell of a table.
    fn meaning(&self) -> String {
        line(self.schema).replace('|', "\\|")
    }

    /// The fields of a type, required ones first.
    fn all(schema: &'a Value) -> Vec<Self> {
        let required = |name: &str| {
            let all = schema["required"].as_array();
            all.is_some_and(|all| all.iter().any(|one| one == name))
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        let field = |(name, schema): (&'a String, &'a Value)| Self {
            name,
            schema,
            required: required(name),
        };
        let mut fields: Vec<Self> = properties.map(field).collect();
        fields.sort_by_key(|field| !field.required);
        fields
    }
}

/// Splits a description into the text for the table and a short default, which has a column of its own.
fn split_default(meaning: &str) -> (String, String) {
    const MARK: &str = "Default: ";
    let whole = || (meaning.to_owned(), String::new());
    let Some((before, rest)) = meaning.split_once(MARK) else {
        return whole();
    };
    let (default, after) = rest.split_once(". ").unwrap_or((rest, ""));
    let default = default.trim_end_matches('.');
    if before.is_empty() || default.len() > 40 {
        return whole();
    }
    (
        format!("{before}{after}").trim_end().to_owned(),
        default.to_owned(),
    )
}

/// The name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    let schema = schema.get("allOf").map_or(schema, |all| &all[0]);
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// A type as a cell of a table; other types are links.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        let page = match name {
            name if name == CHUNK.0 => CHUNK.1.to_owned(),
            name if name.ends_with(CHUNK.0) => format!("#{}", name.to_lowercase()),
            name => format!("types.md#{}", name.to_lowercase()),
        };
        return format!("[{name}]({page})");
    }
    if let Some(only) = schema["const"].as_str() {
        return format!("`\"{only}\"`");
    }
    if let Some(all) = schema["anyOf"].as_array() {
        return all.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("array of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        name => name.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(one).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn text(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// The description of a schema in one line.
fn line(schema: &Value) -> String {
    text(schema)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The description of a schema: a line for each paragraph and each entry of a list.
fn paragraphs(schema: &Value) -> String {
    let mut out = String::new();
    for line in text(schema).lines().map(str::trim) {
        let in_list = out
            .lines()
            .last()
            .is_some_and(|last| last.starts_with("- "));
        out += match line {
            _ if out.is_empty() => "",
            line if line.starts_with("- ") && in_list => "\n",
            line if line.starts_with("- ") => "\n\n",
            "" => "\n\n",
            _ if out.ends_with('\n') => "",
            _ => " ",
        };
        out += line;
    }
    out
}
