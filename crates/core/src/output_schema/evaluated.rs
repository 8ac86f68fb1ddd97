//! Parts of a value to which a schema was applied, for `unevaluatedProperties` and `unevaluatedItems`.

use std::collections::BTreeSet;

/// Fields of an object, or items of an array.
#[derive(Debug, Default)]
pub struct Evaluated<'v> {
    fields: BTreeSet<&'v str>,
    /// Number of first items that are evaluated.
    first: usize,
    items: BTreeSet<usize>,
}

impl<'v> Evaluated<'v> {
    pub fn field(&mut self, name: &'v str) {
        self.fields.insert(name);
    }

    pub fn first_items(&mut self, count: usize) {
        self.first = self.first.max(count);
    }

    pub fn item(&mut self, index: usize) {
        self.items.insert(index);
    }

    pub fn has_field(&self, name: &str) -> bool {
        self.fields.contains(name)
    }

    pub fn has_item(&self, index: usize) -> bool {
        index < self.first || self.items.contains(&index)
    }

    /// Adds those of another schema. Returns `true`.
    pub fn add(&mut self, other: Self) -> bool {
        self.fields.extend(other.fields);
        self.first_items(other.first);
        self.items.extend(other.items);
        true
    }

    pub fn len(&self) -> usize {
        self.fields.len() + self.items.len()
    }
}
