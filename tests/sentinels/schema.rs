//! Walks a JSON Schema and returns every shape that its objects can have, as trees without values.

use serde_json::{Map, Value, json};

/// A value without sentinels.
#[derive(Debug, Clone)]
pub enum Tree {
    Leaf(Leaf),
    /// A constant that distinguishes the variants of a union.
    Kind(String),
    Object {
        path: String,
        fields: Vec<(String, Tree)>,
    },
    Array {
        path: String,
        items: Vec<Tree>,
    },
}

/// A field of the schema with a scalar or free value.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub path: String,
    pub holds: Holds,
    /// Whether it belongs to a variant that the schema does not have.
    pub foreign: bool,
}

/// Kind of a leaf's value.
#[derive(Debug, Clone)]
pub enum Holds {
    /// Any string; the text stands in front of the sentinel.
    Text(&'static str),
    Integer,
    Float,
    /// Any JSON.
    Anything,
    /// A word of a closed list, or a boolean.
    Choice(Value),
    /// A word outside of the closed list.
    OtherWord,
}

/// A schema with its definitions.
pub struct Schema(pub Value);

impl Schema {
    /// Returns trees that contain every variant of every union at least once, with all other fields filled.
    pub fn trees(&self, path: &str) -> Vec<Tree> {
        self.walk(&self.0, path)
    }

    /// Returns the variants of the union in a field of the root, by kind.
    pub fn kinds(&self, field: &str) -> Vec<(String, Value)> {
        let union = self.resolve(&self.0["properties"][field]);
        let variants = union["oneOf"].as_array().expect("a union").iter();
        variants
            .map(|v| (kind(v).expect("a kind").1.to_owned(), v.clone()))
            .collect()
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) if schema.get("properties").is_none() => {
                let name = name.trim_start_matches("#/$defs/");
                self.resolve(&self.0["$defs"][name])
            }
            _ => schema,
        }
    }

    pub fn walk(&self, schema: &Value, path: &str) -> Vec<Tree> {
        let schema = self.resolve(schema);
        let leaf = |holds| vec![leaf(path, holds)];
        if let Some(word) = schema.get("const") {
            return leaf(Holds::Choice(word.clone()));
        }
        if schema.get("properties").is_some() {
            let shapes = self.shapes(schema);
            let many = shapes.len() > 1;
            return shapes
                .into_iter()
                .flat_map(|s| self.objects(&s, many, path))
                .collect();
        }
        if let Some(variants) = schema.get("oneOf").or_else(|| schema.get("anyOf")) {
            return self.union(variants.as_array().expect("variants"), path);
        }
        let is = |name: &str| match &schema["type"] {
            Value::String(one) => one == name,
            Value::Array(many) => many.iter().any(|t| t == name),
            _ => false,
        };
        if is("array") {
            let path = format!("{path}[]");
            let trees = self.walk(&schema["items"], &path);
            return arrays(&path, &trees);
        }
        if is("string") {
            // Clients show links by their scheme.
            return match path.rsplit('.').next() {
                Some("uri") => ["file:///", "https://"].map(|s| text(path, s)).to_vec(),
                _ => vec![text(path, "")],
            };
        }
        if is("boolean") {
            return [true, false]
                .map(|b| self::leaf(path, Holds::Choice(b.into())))
                .to_vec();
        }
        match (is("integer"), is("number")) {
            (true, _) => leaf(Holds::Integer),
            (_, true) => leaf(Holds::Float),
            _ => leaf(Holds::Anything),
        }
    }

    fn union(&self, variants: &[Value], path: &str) -> Vec<Tree> {
        let variants: Vec<&Value> = variants.iter().filter(|v| v["type"] != "null").collect();
        let many = variants.len() > 1;
        let mut trees = Vec::new();
        for variant in &variants {
            let inner = self.resolve(variant);
            if inner.get("properties").is_some() {
                for shape in self.shapes(inner) {
                    trees.extend(self.objects(&shape, many, path));
                }
            } else if many && inner["type"] == "array" {
                let item = self.resolve(&inner["items"]);
                let path = format!("{path}[{}]", item["required"][0].as_str().unwrap_or("list"));
                trees.extend(arrays(&path, &self.walk(item, &path)));
            } else {
                trees.extend(self.walk(inner, path));
            }
        }
        if variants.iter().all(|v| v.get("const").is_some()) {
            trees.push(leaf(path, Holds::OtherWord));
        }
        if let Some((name, _)) = variants.iter().find_map(|v| kind(v)) {
            trees.push(foreign(name, path));
        }
        trees
    }

    /// Returns the shapes of an object: its fields with those of its reference, one shape for each variant.
    fn shapes(&self, schema: &Value) -> Vec<Value> {
        let mut base = json!({ "properties": {}, "required": schema["required"] });
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            let inner = self.shapes(&self.0["$defs"][name]);
            if inner.len() > 1 {
                return inner.iter().map(|i| joined(schema, i)).collect();
            }
            base = inner[0].clone();
        }
        let base = joined(schema, &base);
        match schema.get("oneOf").and_then(Value::as_array) {
            None => vec![base],
            Some(variants) => variants
                .iter()
                .flat_map(|v| self.shapes(v))
                .map(|v| joined(&v, &base))
                .collect(),
        }
    }

    fn objects(&self, shape: &Value, many: bool, path: &str) -> Vec<Tree> {
        let path = match kind(shape) {
            _ if !many => path.to_owned(),
            Some((_, word)) => labelled(path, word),
            None => labelled(path, shape["required"][0].as_str().unwrap_or("?")),
        };
        let empty = Map::new();
        let properties = shape["properties"].as_object().unwrap_or(&empty);
        let fields: Vec<(&String, Vec<Tree>)> = properties
            .iter()
            .map(|(name, schema)| match kind(shape) {
                Some((disc, word)) if disc == name => (name, vec![Tree::Kind(word.to_owned())]),
                _ => (name, self.walk(schema, &format!("{path}.{name}"))),
            })
            .collect();
        let most = fields
            .iter()
            .map(|(_, trees)| trees.len())
            .max()
            .unwrap_or(1);
        (0..most)
            .map(|n| Tree::Object {
                path: path.clone(),
                fields: fields
                    .iter()
                    .map(|(name, trees)| ((*name).clone(), trees[n % trees.len()].clone()))
                    .collect(),
            })
            .collect()
    }
}

/// Appends a word to a path: `a[]` and `a` become `a[b]`.
fn labelled(path: &str, word: &str) -> String {
    format!("{}[{word}]", path.trim_end_matches("[]"))
}

/// Returns arrays that hold all items: the first array has two items, the others one each.
fn arrays(path: &str, items: &[Tree]) -> Vec<Tree> {
    let two = [0, 1].map(|n| items[n % items.len()].clone()).to_vec();
    let rest = items.iter().skip(1).map(|i| vec![i.clone()]);
    std::iter::once(two)
        .chain(rest)
        .map(|items| Tree::Array {
            path: path.trim_end_matches("[]").to_owned(),
            items,
        })
        .collect()
}

/// Returns the field that distinguishes a variant, and its constant.
fn kind(variant: &Value) -> Option<(&str, &str)> {
    let mut properties = variant["properties"].as_object()?.iter();
    properties.find_map(|(name, s)| Some((name.as_str(), s["const"].as_str()?)))
}

/// Returns a variant that the schema does not have.
pub fn foreign(kind: &str, path: &str) -> Tree {
    let path = labelled(path, "unknown kind");
    let leaf = |name: &str| {
        let path = format!("{path}.{name}");
        let holds = Holds::Text("");
        let leaf = Tree::Leaf(Leaf {
            path,
            holds,
            foreign: true,
        });
        (name.to_owned(), leaf)
    };
    let fields = vec![leaf(kind), leaf("anything")];
    Tree::Object {
        path: path.clone(),
        fields,
    }
}

fn joined(over: &Value, base: &Value) -> Value {
    let mut all = base.clone();
    for (name, schema) in over["properties"].as_object().into_iter().flatten() {
        all["properties"][name] = schema.clone();
    }
    all
}

fn text(path: &str, before: &'static str) -> Tree {
    leaf(path, Holds::Text(before))
}

fn leaf(path: &str, holds: Holds) -> Tree {
    Tree::Leaf(Leaf {
        path: path.to_owned(),
        holds,
        foreign: false,
    })
}
