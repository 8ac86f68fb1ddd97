//! Plants sentinels: converts a tree to JSON, and lists the planted values with their paths.

use crate::schema::{Holds, Leaf, Tree};
use serde_json::{Map, Value, json};
use std::cell::Cell;

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// Variation in which a tree is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variation {
    /// A value that the schema allows.
    Plain,
    /// Every object gets an additional field.
    UnknownFields,
    /// The field with this number gets a value of another type.
    OtherType(usize),
}

#[derive(Debug, Clone)]
pub struct Planted {
    pub path: String,
    pub what: PlantedValue,
    pub foreign: bool,
}

/// End of the path of a value of another type.
pub const OTHER_TYPE: &str = " (of another type)";
/// End of the path of a word outside of its closed list.
pub const OTHER_WORD: &str = " (unknown word)";
/// Last part of the path of a field that the schema does not have.
pub const OTHER_FIELD: &str = "(unknown field)";

/// Key of a sentinel that replaces free JSON.
pub const ANYTHING: &str = "sentinel";
/// Key of a field that the schema does not have.
pub const UNKNOWN: &str = "sentinelUnknown";

/// How a planted value is found again.
#[derive(Debug, Clone, PartialEq)]
pub enum PlantedValue {
    /// Anywhere in a string.
    Text(String),
    Number(f64),
    /// At places where every value of its closed list is found.
    Choice(Value),
}

/// JSON with sentinels.
#[derive(Debug, Clone)]
pub struct Instance {
    pub json: Value,
    pub planted: Vec<Planted>,
}

pub fn number() -> u32 {
    LAST.set(LAST.get() + 1);
    LAST.get()
}

/// Returns sixteen letters and digits, which are valid base64 too.
pub fn sentinel() -> String {
    format!("sentinel{:08}", number())
}

/// Plants sentinels in a tree; `None` if the tree has no field with the number of [`Variation::OtherType`].
pub fn plant(tree: &Tree, way: Variation) -> Option<Instance> {
    let mut planter = Planter {
        way,
        seen: 0,
        hit: false,
        planted: Vec::new(),
    };
    let json = planter.value(tree);
    let missed = matches!(way, Variation::OtherType(_)) && !planter.hit;
    (!missed).then_some(Instance {
        json,
        planted: planter.planted,
    })
}

struct Planter {
    way: Variation,
    seen: usize,
    hit: bool,
    planted: Vec<Planted>,
}

impl Planter {
    fn text(&mut self, path: String, foreign: bool) -> String {
        let text = sentinel();
        let what = PlantedValue::Text(text.clone());
        self.planted.push(Planted {
            path,
            what,
            foreign,
        });
        text
    }

    fn field(&mut self, tree: &Tree) -> Value {
        let path = match tree {
            Tree::Leaf(leaf) => &leaf.path,
            Tree::Object { path, .. } | Tree::Array { path, .. } => path,
            Tree::Kind(_) => return self.value(tree),
        };
        self.seen += 1;
        if self.way != Variation::OtherType(self.seen - 1) {
            return self.value(tree);
        }
        self.hit = true;
        // The kind of the replaced variant does not matter.
        let whole = path.strip_suffix(']').and_then(|p| p.rsplit_once('['));
        let path = whole.map_or(path.as_str(), |(whole, _)| whole);
        let text = self.text(format!("{path}{OTHER_TYPE}"), true);
        match tree {
            Tree::Object { .. } => json!([text]),
            Tree::Leaf(leaf) if matches!(leaf.holds, Holds::Anything) => json!(text),
            _ => json!({ ANYTHING: text }),
        }
    }

    fn value(&mut self, tree: &Tree) -> Value {
        match tree {
            Tree::Kind(word) => word.as_str().into(),
            Tree::Leaf(leaf) => self.leaf(leaf),
            Tree::Array { items, .. } => items.iter().map(|i| self.value(i)).collect(),
            Tree::Object { path, fields } => {
                let mut object: Map<String, Value> = fields
                    .iter()
                    .map(|(name, tree)| (name.clone(), self.field(tree)))
                    .collect();
                if self.way == Variation::UnknownFields {
                    let foreign = path.ends_with("[unknown kind]");
                    let text = self.text(format!("{path}.{OTHER_FIELD}"), foreign);
                    object.insert(UNKNOWN.to_owned(), text.into());
                }
                Value::Object(object)
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf) -> Value {
        let Leaf {
            path,
            holds,
            foreign,
        } = leaf;
        let (json, what) = match holds {
            Holds::Text(before) => {
                let text = self.text(path.clone(), *foreign);
                return format!("{before}{text}").into();
            }
            Holds::OtherWord => return self.text(format!("{path}{OTHER_WORD}"), false).into(),
            Holds::Anything => return json!({ ANYTHING: self.text(path.clone(), *foreign) }),
            Holds::Integer => {
                let n = 1_000_000_000 + number();
                (json!(n), PlantedValue::Number(f64::from(n)))
            }
            Holds::Float => {
                let n = f64::from(number()) + 1_000_000.25;
                (json!(n), PlantedValue::Number(n))
            }
            Holds::Choice(word) => (word.clone(), PlantedValue::Choice(word.clone())),
        };
        let (path, foreign) = (path.clone(), *foreign);
        self.planted.push(Planted {
            path,
            what,
            foreign,
        });
        json
    }
}
