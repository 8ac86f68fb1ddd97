//! Validation of structured answers against the JSON Schema of the client.
//!
//! acpipe has its own validator so that it never rejects an answer that a full validator would accept:
//! keywords that are not implemented (`pattern`, `format`, `patternProperties`, `unevaluated…`, references to
//! other documents) leave the result open.

use serde_json::{Map, Value};

/// Maximum depth of nested schemas and references.
const DEPTH: u32 = 64;

/// Maximum number of schema evaluations for one answer.
const STEPS: u32 = 100_000;

/// Maximum length of a list whose items are compared for `uniqueItems`.
const UNIQUE: usize = 1000;

/// Result of the validation of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fit {
    Yes,
    /// The value does not fit; the text has the path and what is expected there.
    No(String),
    /// The result depends on a keyword that is not implemented.
    Unknown,
}

impl Fit {
    fn new(fits: bool, path: &str, expected: impl FnOnce() -> String) -> Self {
        if fits {
            return Self::Yes;
        }
        let path = if path.is_empty() { "the answer" } else { path };
        Self::No(format!("{path}: {}", expected()))
    }

    fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Yes => other(),
            Self::No(_) => self,
            Self::Unknown => match other() {
                Self::Yes | Self::Unknown => Self::Unknown,
                no @ Self::No(_) => no,
            },
        }
    }
}

/// Returns the first fault of an answer with its path; `None` if the answer fits or if that cannot be
/// decided.
#[must_use]
pub fn fault(schema: &Value, answer: &Value) -> Option<String> {
    let mut check = Check {
        root: schema,
        steps: 0,
    };
    match check.value(schema, answer, "", 0) {
        Fit::No(fault) => Some(fault),
        Fit::Yes | Fit::Unknown => None,
    }
}

struct Check<'a> {
    root: &'a Value,
    steps: u32,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, path: &str, depth: u32) -> Fit {
        self.steps += 1;
        if self.steps > STEPS || depth > DEPTH {
            return Fit::Unknown;
        }
        let keywords = match schema {
            Value::Bool(allowed) => {
                return Fit::new(*allowed, path, || "no value is allowed".to_owned());
            }
            Value::Object(keywords) => keywords,
            _ => return Fit::Unknown,
        };
        // An inner `$id` changes the base of references.
        if depth > 0 && keywords.contains_key("$id") {
            return Fit::Unknown;
        }
        let mut fit = Fit::Yes;
        for (keyword, wanted) in keywords {
            fit = fit.and(|| self.keyword(keywords, (keyword, wanted), value, path, depth + 1));
            if matches!(fit, Fit::No(_)) {
                break;
            }
        }
        fit
    }

    fn keyword(
        &mut self,
        all: &'a Map<String, Value>,
        (keyword, wanted): (&str, &'a Value),
        value: &Value,
        path: &str,
        depth: u32,
    ) -> Fit {
        match keyword {
            "$schema" | "$id" | "$defs" | "definitions" | "$comment" | "$anchor" | "title"
            | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
            | "then" | "else" => Fit::Yes,
            "$ref" => match self.definition(wanted) {
                Some(schema) => self.value(schema, value, path, depth),
                None => Fit::Unknown,
            },
            "allOf" => self.each(wanted, |check, schema| {
                check.value(schema, value, path, depth)
            }),
            "anyOf" | "oneOf" => self.choice(keyword == "oneOf", wanted, value, path, depth),
            "not" => match self.value(wanted, value, path, depth) {
                Fit::Yes => Fit::new(false, path, || "a value that `not` excludes".to_owned()),
                Fit::No(_) => Fit::Yes,
                Fit::Unknown => Fit::Unknown,
            },
            "if" => {
                let then = match self.value(wanted, value, path, depth) {
                    Fit::Yes => all.get("then"),
                    Fit::No(_) => all.get("else"),
                    Fit::Unknown => return Fit::Unknown,
                };
                then.map_or(Fit::Yes, |schema| self.value(schema, value, path, depth))
            }
            "properties" | "additionalProperties" | "propertyNames" | "dependentSchemas" => {
                match value {
                    Value::Object(fields) => {
                        self.fields(all, (keyword, wanted), fields, path, depth)
                    }
                    _ => Fit::Yes,
                }
            }
            "items" | "prefixItems" | "additionalItems" | "contains" => match value {
                Value::Array(items) => self.items(all, (keyword, wanted), items, path, depth),
                _ => Fit::Yes,
            },
            _ => simple_keyword(keyword, wanted, value, path),
        }
    }

    /// Returns the schema that a reference within this document points to.
    fn definition(&self, reference: &Value) -> Option<&'a Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }

    fn each(&mut self, list: &'a Value, mut fit: impl FnMut(&mut Self, &'a Value) -> Fit) -> Fit {
        let Some(list) = list.as_array() else {
            return Fit::Unknown;
        };
        let mut all = Fit::Yes;
        for schema in list {
            all = all.and(|| fit(self, schema));
        }
        all
    }

    fn choice(
        &mut self,
        exactly_one: bool,
        list: &'a Value,
        value: &Value,
        path: &str,
        depth: u32,
    ) -> Fit {
        let Some(list) = list.as_array() else {
            return Fit::Unknown;
        };
        let (mut fits, mut unknown, mut faults) = (0_u32, false, Vec::new());
        for schema in list {
            match self.value(schema, value, path, depth) {
                Fit::Yes => fits += 1,
                Fit::No(fault) => faults.push(fault),
                Fit::Unknown => unknown = true,
            }
        }
        match (fits, unknown) {
            (2.., _) if exactly_one => Fit::new(false, path, || {
                format!("a value that matches one schema of oneOf, not {fits}")
            }),
            (1, true) if exactly_one => Fit::Unknown,
            (1.., _) => Fit::Yes,
            (0, true) => Fit::Unknown,
            // With a single choice its own fault is more precise than "none of the choices".
            (0, false) if faults.len() == 1 => Fit::No(faults.remove(0)),
            (0, false) => Fit::new(false, path, || {
                "a value that matches one of its schemas".to_owned()
            }),
        }
    }

    fn fields(
        &mut self,
        all: &'a Map<String, Value>,
        (keyword, wanted): (&str, &'a Value),
        fields: &Map<String, Value>,
        path: &str,
        depth: u32,
    ) -> Fit {
        let known = all.get("properties").and_then(Value::as_object);
        let mut fit = Fit::Yes;
        for (name, value) in fields {
            let at = format!("{path}/{name}");
            fit = fit.and(|| match keyword {
                "properties" => match wanted.get(name) {
                    Some(schema) => self.value(schema, value, &at, depth),
                    None => Fit::Yes,
                },
                "additionalProperties" if known.is_some_and(|known| known.contains_key(name)) => {
                    Fit::Yes
                }
                "additionalProperties" if all.contains_key("patternProperties") => Fit::Unknown,
                "additionalProperties" if *wanted == Value::Bool(false) => {
                    Fit::new(false, &at, || "no such field is allowed".to_owned())
                }
                "additionalProperties" => self.value(wanted, value, &at, depth),
                "propertyNames" => self.value(wanted, &Value::from(name.as_str()), &at, depth),
                _ => match wanted.get(name) {
                    Some(schema) => self.value(schema, &Value::Object(fields.clone()), path, depth),
                    None => Fit::Yes,
                },
            });
        }
        fit
    }

    fn items(
        &mut self,
        all: &'a Map<String, Value>,
        (keyword, wanted): (&str, &'a Value),
        items: &[Value],
        path: &str,
        depth: u32,
    ) -> Fit {
        if keyword == "contains" {
            if all.contains_key("minContains") || all.contains_key("maxContains") {
                return Fit::Unknown;
            }
            let fits = items
                .iter()
                .map(|item| self.value(wanted, item, path, depth));
            let fits: Vec<Fit> = fits.collect();
            if !fits.contains(&Fit::Yes) && fits.contains(&Fit::Unknown) {
                return Fit::Unknown;
            }
            return Fit::new(fits.contains(&Fit::Yes), path, || {
                "an item that matches `contains`".to_owned()
            });
        }
        // Schemas by position: `prefixItems`, or `items` in older drafts.
        let listed = |name: &str| all.get(name).and_then(Value::as_array);
        let places = listed("prefixItems").or(listed("items"));
        let places = places.map_or(&[][..], Vec::as_slice);
        let by_place = wanted.is_array();
        let mut fit = Fit::Yes;
        for (n, item) in items.iter().enumerate() {
            let schema = match (by_place, places.get(n)) {
                (true, schema) => schema,
                (false, Some(_)) => None,
                (false, None) => Some(wanted),
            };
            // `additionalItems` has an effect only if `items` goes by position.
            let idle = keyword == "additionalItems" && listed("items").is_none();
            if let Some(schema) = schema.filter(|_| !idle) {
                fit = fit.and(|| self.value(schema, item, &format!("{path}/{n}"), depth));
            }
        }
        fit
    }
}

/// Evaluates a keyword that contains no schemas.
fn simple_keyword(keyword: &str, wanted: &Value, value: &Value, path: &str) -> Fit {
    let number = |wanted: &Value, name: &str, fits: fn(f64, f64) -> bool| {
        let (Some(bound), Some(n)) = (wanted.as_f64(), value.as_f64()) else {
            return if value.is_number() {
                Fit::Unknown
            } else {
                Fit::Yes
            };
        };
        Fit::new(fits(n, bound), path, || format!("a number {name} {wanted}"))
    };
    let size = |size: Option<usize>, least: bool, of: &str| match (size, wanted.as_u64()) {
        (None, _) => Fit::Yes,
        (Some(_), None) => Fit::Unknown,
        (Some(size), Some(bound)) => {
            let size = size as u64;
            let fits = if least { size >= bound } else { size <= bound };
            let than = if least { "at least" } else { "at most" };
            Fit::new(fits, path, || format!("{than} {bound} {of}"))
        }
    };
    let characters = || value.as_str().map(|text| text.chars().count());
    let items = || value.as_array().map(Vec::len);
    let fields = || value.as_object().map(Map::len);
    match keyword {
        "type" => kind(wanted, value, path),
        "enum" => match wanted.as_array() {
            Some(choices) => Fit::new(choices.iter().any(|c| equal(c, value)), path, || {
                format!("one of {wanted}")
            }),
            None => Fit::Unknown,
        },
        "const" => Fit::new(equal(wanted, value), path, || format!("the value {wanted}")),
        "required" => match (wanted.as_array(), value.as_object()) {
            (Some(names), Some(fields)) => {
                let mut names = names.iter().filter_map(Value::as_str);
                match names.find(|name| !fields.contains_key(*name)) {
                    Some(name) => Fit::new(false, path, || format!("a field {name:?}")),
                    None => Fit::Yes,
                }
            }
            (Some(_), None) => Fit::Yes,
            (None, _) => Fit::Unknown,
        },
        "minimum" => number(wanted, "of at least", |n, bound| n >= bound),
        "maximum" => number(wanted, "of at most", |n, bound| n <= bound),
        "exclusiveMinimum" => number(wanted, "above", |n, bound| n > bound),
        "exclusiveMaximum" => number(wanted, "below", |n, bound| n < bound),
        "multipleOf" => number(wanted, "that is a multiple of", |n, of| {
            let times = n / of;
            (times - times.round()).abs() < 1e-9
        }),
        "minLength" => size(characters(), true, "characters"),
        "maxLength" => size(characters(), false, "characters"),
        "minItems" => size(items(), true, "items"),
        "maxItems" => size(items(), false, "items"),
        "minProperties" => size(fields(), true, "fields"),
        "maxProperties" => size(fields(), false, "fields"),
        "uniqueItems" => match (wanted, value.as_array()) {
            (Value::Bool(true), Some(items)) if items.len() <= UNIQUE => {
                let twice = |(n, item): (usize, &Value)| items[..n].iter().any(|o| equal(o, item));
                let unique = !items.iter().enumerate().any(twice);
                Fit::new(unique, path, || "items that differ".to_owned())
            }
            (Value::Bool(true), Some(_)) => Fit::Unknown,
            _ => Fit::Yes,
        },
        _ => Fit::Unknown,
    }
}

fn kind(wanted: &Value, value: &Value, path: &str) -> Fit {
    let is = |kind: &str| {
        Some(match kind {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => return None,
        })
    };
    let kinds = match wanted {
        Value::Array(kinds) => kinds.as_slice(),
        one => std::slice::from_ref(one),
    };
    let fits: Option<Vec<bool>> = kinds.iter().map(|kind| is(kind.as_str()?)).collect();
    fits.map_or(Fit::Unknown, |fits| {
        Fit::new(fits.contains(&true), path, || format!("type {wanted}"))
    })
}

/// Returns `true` if two values are equal. Numbers are compared by value: 1 equals 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let in_b = |(name, value)| b.get(name).is_some_and(|other| equal(value, other));
            a.len() == b.len() && a.iter().all(in_b)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;
