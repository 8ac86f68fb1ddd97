//! Keywords for the items of arrays and the fields of objects.

use super::drafts::Draft;
use super::equality::canonical;
use super::evaluated::Evaluated;
use super::messages;
use super::numbers::whole;
use super::validator::{AnswerPlace, AnswerStep, Comparison, KeywordCheck};
use serde_json::{Map, Value};
use std::collections::HashSet;

impl<'s> Comparison<'_, 's> {
    pub(super) fn array<'v>(
        &mut self,
        keyword: &str,
        items: &'v [Value],
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        let KeywordCheck {
            keywords, wanted, ..
        } = *check;
        let list = |keyword: &str| keywords.get(keyword).and_then(Value::as_array);
        match keyword {
            "minItems" | "maxItems" => self.size(keyword, "Items", items.len(), "item", check),
            "uniqueItems" if wanted == &Value::Bool(true) => {
                let mut seen = HashSet::new();
                let valid = self.spend(items.len())
                    && items.iter().all(|item| seen.insert(canonical(item)));
                self.ensure(valid, check.place, || {
                    "value has non-unique elements".to_owned()
                })
            }
            "prefixItems" => {
                let schemas = wanted.as_array().map_or(&[][..], Vec::as_slice);
                self.first_items(schemas, items, check, own)
            }
            "items" => {
                if let Some(schemas) = wanted.as_array() {
                    return self.first_items(schemas, items, check, own);
                }
                let first = match self.validator.draft {
                    Draft::D2020 => list("prefixItems").map_or(0, Vec::len),
                    _ => 0,
                };
                self.items_from(first, wanted, items, check, own)
            }
            "additionalItems" => match list("items") {
                Some(first) => self.items_from(first.len(), wanted, items, check, own),
                None => true,
            },
            "contains" => self.contains(items, check, own),
            _ => true,
        }
    }

    fn first_items<'v>(
        &mut self,
        schemas: &'s [Value],
        items: &'v [Value],
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        own.first_items(schemas.len());
        let mut valid = true;
        for (index, (schema, item)) in schemas.iter().zip(items).enumerate() {
            valid &= self.part(schema, item, check.place, AnswerStep::Item(index));
            if !valid && self.is_enough() {
                break;
            }
        }
        valid
    }

    fn items_from<'v>(
        &mut self,
        first: usize,
        schema: &'s Value,
        items: &'v [Value],
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        own.first_items(usize::MAX);
        if schema == &Value::Bool(false) && items.len() > first {
            return self.fail(
                check.place,
                messages::items("Additional", items.len() - first),
            );
        }
        let mut valid = true;
        for (index, item) in items.iter().enumerate().skip(first) {
            valid &= self.part(schema, item, check.place, AnswerStep::Item(index));
            if !valid && self.is_enough() {
                break;
            }
        }
        valid
    }

    fn contains<'v>(
        &mut self,
        items: &'v [Value],
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        let bound = |keyword: &str| {
            let known = self.validator.draft.has(keyword);
            let value = check.keywords.get(keyword).filter(|_| known);
            value.and_then(whole)
        };
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            if self.matches(check.wanted, item, check.place, &mut Evaluated::default()) {
                count += 1;
                if self.validator.draft == Draft::D2020 {
                    own.item(index);
                }
            }
        }
        self.ensure(count >= least, check.place, || {
            messages::contains("less", least)
        }) && self.ensure(most.is_none_or(|most| count <= most), check.place, || {
            messages::contains("more", most.unwrap_or_default())
        })
    }

    pub(super) fn object<'v>(
        &mut self,
        keyword: &str,
        fields: &'v Map<String, Value>,
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        let KeywordCheck { wanted, place, .. } = *check;
        match (keyword, wanted) {
            ("minProperties" | "maxProperties", _) => {
                self.size(keyword, "Properties", fields.len(), "property", check)
            }
            ("required", Value::Array(names)) => self.required(names, fields, place),
            ("properties", Value::Object(schemas)) => {
                let mut valid = true;
                for (name, field) in fields {
                    if let Some(schema) = schemas.get(name) {
                        own.field(name);
                        valid &= self.part(schema, field, place, AnswerStep::Field(name));
                    }
                    if !valid && self.is_enough() {
                        break;
                    }
                }
                valid
            }
            ("patternProperties", Value::Object(schemas)) => {
                self.pattern_properties(schemas, fields, place, own)
            }
            ("additionalProperties", _) => {
                let others = match self.additional(check.keywords, fields) {
                    Ok(others) => others,
                    Err(why) => return self.fail(place, why),
                };
                for (name, _) in &others {
                    own.field(name);
                }
                self.others("Additional", wanted, &others, place)
            }
            ("propertyNames", _) => {
                let mut names = fields.keys().filter(|name| {
                    let name = Value::String((*name).clone());
                    !self.matches(wanted, &name, place, &mut Evaluated::default())
                });
                match names.next().cloned() {
                    Some(name) => self.fail(
                        place,
                        format!("property name {name:?} does not match {wanted}"),
                    ),
                    None => true,
                }
            }
            ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(all)) => {
                let mut valid = true;
                for (name, dependency) in all {
                    valid &= match dependency {
                        _ if !fields.contains_key(name) => true,
                        Value::Array(names) => self.required(names, fields, place),
                        schema => self.apply(schema, check.value, place, own),
                    };
                    if !valid && self.is_enough() {
                        break;
                    }
                }
                valid
            }
            _ => true,
        }
    }

    fn required(
        &mut self,
        names: &'s [Value],
        fields: &Map<String, Value>,
        place: &AnswerPlace<'_>,
    ) -> bool {
        let mut valid = self.spend(names.len());
        for name in names {
            let has = name.as_str().is_none_or(|name| fields.contains_key(name));
            valid &= self.ensure(has, place, || format!("{name} is a required property"));
        }
        valid
    }

    fn pattern_properties<'v>(
        &mut self,
        schemas: &'s Map<String, Value>,
        fields: &'v Map<String, Value>,
        place: &AnswerPlace<'_>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        let mut valid = true;
        for (pattern, schema) in schemas {
            for (name, field) in fields {
                valid &= match self.find(pattern, name) {
                    Ok(true) => {
                        own.field(name);
                        self.part(schema, field, place, AnswerStep::Field(name))
                    }
                    Ok(false) => true,
                    Err(why) => self.fail(place, why),
                };
                if !valid && self.is_enough() {
                    return false;
                }
            }
        }
        valid
    }

    /// Returns the fields that neither `properties` nor `patternProperties` have.
    fn additional<'v>(
        &mut self,
        keywords: &'s Map<String, Value>,
        fields: &'v Map<String, Value>,
    ) -> Result<Vec<(&'v String, &'v Value)>, String> {
        let object = |keyword: &str| keywords.get(keyword).and_then(Value::as_object);
        let (named, patterns) = (object("properties"), object("patternProperties"));
        let mut others = Vec::new();
        for (name, field) in fields {
            let mut is_other = named.is_none_or(|named| !named.contains_key(name));
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                is_other = is_other && !self.find(pattern, name)?;
            }
            if is_other {
                others.push((name, field));
            }
        }
        Ok(others)
    }

    /// Applies the schema for all fields that no other keyword names.
    fn others(
        &mut self,
        kind: &str,
        schema: &'s Value,
        others: &[(&String, &Value)],
        place: &AnswerPlace<'_>,
    ) -> bool {
        if schema == &Value::Bool(false) {
            return self.ensure(others.is_empty(), place, || {
                messages::fields(kind, others.iter().map(|(name, _)| name.as_str()))
            });
        }
        let mut valid = true;
        for (name, field) in others {
            valid &= self.part(schema, field, place, AnswerStep::Field(name));
            if !valid && self.is_enough() {
                break;
            }
        }
        valid
    }

    /// Applies `unevaluatedProperties` and `unevaluatedItems`.
    pub(super) fn unevaluated<'v>(
        &mut self,
        keywords: &'s Map<String, Value>,
        value: &'v Value,
        place: &AnswerPlace<'_>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        let draft = self.validator.draft;
        let schema = |keyword: &str| keywords.get(keyword).filter(|_| draft.has(keyword));
        match value {
            Value::Object(fields) => {
                let Some(schema) = schema("unevaluatedProperties") else {
                    return true;
                };
                let others = fields.iter().filter(|(name, _)| !own.has_field(name));
                let others: Vec<_> = others.collect();
                for (name, _) in &others {
                    own.field(name);
                }
                self.others("Unevaluated", schema, &others, place)
            }
            Value::Array(items) => {
                let Some(schema) = schema("unevaluatedItems") else {
                    return true;
                };
                let others = items.iter().enumerate();
                let others: Vec<_> = others.filter(|(index, _)| !own.has_item(*index)).collect();
                own.first_items(usize::MAX);
                if schema == &Value::Bool(false) && !others.is_empty() {
                    return self.fail(place, messages::items("Unevaluated", others.len()));
                }
                let mut valid = true;
                for (index, item) in others {
                    valid &= self.part(schema, item, place, AnswerStep::Item(index));
                    if !valid && self.is_enough() {
                        break;
                    }
                }
                valid
            }
            _ => true,
        }
    }
}
