//! Comparison of a value with a schema. It is interpreted, not compiled: a schema is used for few values.
//!
//! The work is bounded: steps and depth are counted, and the comparison stops when it has enough violations.

use super::drafts::Draft;
use super::equality::same;
use super::evaluated::Evaluated;
use super::numbers::{compare, is_multiple, whole};
use super::pattern::Patterns;
use super::{MAX_VIOLATIONS, Violation, messages, resolve, short};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Maximum number of steps of one comparison: that of an answer of 4 MiB with an ordinary schema, and less than
/// a second.
pub const MAX_STEPS: usize = 3_000_000;

/// Maximum depth of schemas that are applied within each other.
pub const DEPTH: u32 = 512;

/// Number of characters that a pattern reads in one step.
const STEP_LENGTH: usize = 256;

/// Schema that is ready for comparisons.
#[derive(Debug)]
pub struct Validator<'s> {
    pub root: &'s Value,
    pub draft: Draft,
    pub patterns: Patterns<'s>,
    /// `true` if a schema in it has `unevaluatedProperties` or `unevaluatedItems`.
    pub tracks_evaluated: bool,
}

/// Place of a value in the answer.
pub(super) struct AnswerPlace<'p> {
    parent: Option<&'p AnswerPlace<'p>>,
    step: AnswerStep<'p>,
}

#[derive(Clone, Copy)]
pub(super) enum AnswerStep<'p> {
    Root,
    Field(&'p str),
    Item(usize),
}

/// One comparison.
pub(super) struct Comparison<'c, 's> {
    pub(super) validator: &'c Validator<'s>,
    steps_left: usize,
    depth: u32,
    /// Number of schemas around whose violations are not reported, such as those of `not`.
    silent: u32,
    violations: Vec<Violation>,
}

/// A keyword and what it is applied to.
pub(super) struct KeywordCheck<'c, 's, 'v> {
    pub(super) keywords: &'s Map<String, Value>,
    pub(super) wanted: &'s Value,
    pub(super) value: &'v Value,
    pub(super) place: &'c AnswerPlace<'c>,
}

impl Validator<'_> {
    /// Compares a value with the schema. Returns the first violations.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut comparison = Comparison {
            validator: self,
            steps_left: MAX_STEPS,
            depth: 0,
            silent: 0,
            violations: Vec::new(),
        };
        let root = AnswerPlace {
            parent: None,
            step: AnswerStep::Root,
        };
        let valid = comparison.apply(self.root, value, &root, &mut Evaluated::default());
        if comparison.steps_left == 0 {
            return vec![Violation {
                path: String::new(),
                message:
                    "cannot be checked: the schema takes too many steps for an answer of this size"
                        .to_owned(),
            }];
        }
        debug_assert_eq!(valid, comparison.violations.is_empty());
        comparison.violations
    }
}

impl<'s> Comparison<'_, 's> {
    /// Applies a schema to a value. Adds the parts of the value that the schema evaluates, if it is valid.
    pub(super) fn apply<'v>(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
        place: &AnswerPlace<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> bool {
        if self.depth == DEPTH {
            self.steps_left = 0;
        }
        if !self.spend(1) {
            return false;
        }
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return self.fail(place, "no value is allowed here"),
            _ => return true,
        };
        self.depth += 1;
        let valid = self.apply_keywords(keywords, value, place, evaluated);
        self.depth -= 1;
        valid
    }

    fn apply_keywords<'v>(
        &mut self,
        keywords: &'s Map<String, Value>,
        value: &'v Value,
        place: &AnswerPlace<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> bool {
        let draft = self.validator.draft;
        let mut own = Evaluated::default();
        let mut valid = true;
        // In old drafts, other keywords beside a reference are ignored.
        let only_reference = draft <= Draft::D7 && keywords.contains_key("$ref");
        for (keyword, wanted) in keywords {
            if keyword.starts_with("unevaluated")
                || (only_reference && keyword != "$ref")
                || !draft.has(keyword)
            {
                continue;
            }
            let check = KeywordCheck {
                keywords,
                wanted,
                value,
                place,
            };
            valid &= self.keyword(keyword, &check, &mut own);
            if !valid && self.is_enough() {
                return false;
            }
        }
        // After a violation it is not known what the other keywords evaluate.
        if valid && self.validator.tracks_evaluated {
            valid = self.unevaluated(keywords, value, place, &mut own)
                && self.spend(own.len())
                && evaluated.add(own);
        }
        valid
    }

    /// Returns `true` if further violations are of no use.
    pub(super) fn is_enough(&self) -> bool {
        self.silent > 0 || self.steps_left == 0 || self.violations.len() >= MAX_VIOLATIONS
    }

    /// Counts steps. Returns `false` if there were too many.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        self.steps_left = self.steps_left.saturating_sub(steps);
        self.steps_left > 0
    }

    pub(super) fn fail(&mut self, place: &AnswerPlace<'_>, message: impl AsRef<str>) -> bool {
        if !self.is_enough() {
            self.violations.push(Violation {
                path: place.pointer(),
                message: short(message.as_ref()),
            });
        }
        false
    }

    /// Fails if a condition is not met. The message is formatted only if it is used.
    pub(super) fn ensure(
        &mut self,
        valid: bool,
        place: &AnswerPlace<'_>,
        message: impl FnOnce() -> String,
    ) -> bool {
        if valid {
            return true;
        }
        if !self.is_enough() {
            self.fail(place, message());
        }
        false
    }

    /// Applies a schema whose violations are not reported.
    pub(super) fn matches<'v>(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
        place: &AnswerPlace<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> bool {
        self.silent += 1;
        let valid = self.apply(schema, value, place, evaluated);
        self.silent -= 1;
        valid
    }

    fn keyword<'v>(
        &mut self,
        keyword: &str,
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        match keyword {
            "$ref" => match resolve(self.validator.root, check.wanted) {
                Some(schema) => self.apply(schema, check.value, check.place, own),
                None => true,
            },
            "allOf" | "anyOf" | "oneOf" | "not" | "if" => self.in_place(keyword, check, own),
            "type" | "enum" | "const" => self.any_value(keyword, check),
            _ => match check.value {
                Value::Number(_) => self.number(keyword, check),
                Value::String(text) => self.string(keyword, text, check),
                Value::Array(items) => self.array(keyword, items, check, own),
                Value::Object(fields) => self.object(keyword, fields, check, own),
                Value::Null | Value::Bool(_) => true,
            },
        }
    }

    fn in_place<'v>(
        &mut self,
        keyword: &str,
        check: &KeywordCheck<'_, 's, 'v>,
        own: &mut Evaluated<'v>,
    ) -> bool {
        let KeywordCheck { value, place, .. } = *check;
        let schemas = check.wanted.as_array().map_or(&[][..], Vec::as_slice);
        match keyword {
            "allOf" => {
                let mut valid = true;
                for schema in schemas {
                    valid &= self.apply(schema, value, place, own);
                    if !valid && self.is_enough() {
                        break;
                    }
                }
                valid
            }
            "anyOf" => {
                let mut valid = false;
                for schema in schemas {
                    valid |= self.matches(schema, value, place, own);
                    if valid && !self.validator.tracks_evaluated {
                        break;
                    }
                }
                self.ensure(valid, place, || messages::NONE_OF_ANY.to_owned())
            }
            "oneOf" => {
                let mut matching = 0;
                for schema in schemas {
                    matching += u32::from(self.matches(schema, value, place, own));
                    if matching > 1 {
                        break;
                    }
                }
                self.ensure(matching > 0, place, || messages::NONE_OF_ONE.to_owned())
                    && self.ensure(matching < 2, place, || messages::MORE_THAN_ONE.to_owned())
            }
            "not" => {
                let matches = self.matches(check.wanted, value, place, &mut Evaluated::default());
                self.ensure(!matches, place, || {
                    format!("{} is not allowed for value", check.wanted)
                })
            }
            _ => {
                let branch = if self.matches(check.wanted, value, place, own) {
                    "then"
                } else {
                    "else"
                };
                match check.keywords.get(branch) {
                    Some(schema) => self.apply(schema, value, place, own),
                    None => true,
                }
            }
        }
    }

    fn any_value(&mut self, keyword: &str, check: &KeywordCheck<'_, 's, '_>) -> bool {
        let KeywordCheck { wanted, value, .. } = *check;
        match (keyword, wanted) {
            ("type", Value::Array(types)) => {
                let valid = types.iter().any(|wanted| is_of_type(value, wanted));
                self.ensure(valid, check.place, || messages::types(types))
            }
            ("type", _) => self.ensure(is_of_type(value, wanted), check.place, || {
                format!("value is not of type {wanted}")
            }),
            ("enum", Value::Array(values)) => {
                let valid = values
                    .iter()
                    .any(|wanted| self.spend(1) && same(wanted, value));
                self.ensure(valid, check.place, || messages::not_in(values))
            }
            ("const", _) => self.ensure(same(wanted, value), check.place, || {
                format!("{wanted} was expected")
            }),
            _ => true,
        }
    }

    fn number(&mut self, keyword: &str, check: &KeywordCheck<'_, 's, '_>) -> bool {
        let KeywordCheck { wanted, place, .. } = *check;
        let order = compare(check.value, wanted);
        let is_exclusive =
            |keyword: &str| check.keywords.get(keyword).and_then(Value::as_bool) == Some(true);
        let (valid, text) = match keyword {
            "minimum" if is_exclusive("exclusiveMinimum") => (
                order != Some(Ordering::Less) && order != Some(Ordering::Equal),
                "less than or equal to the minimum of",
            ),
            "minimum" => (order != Some(Ordering::Less), "less than the minimum of"),
            "maximum" if is_exclusive("exclusiveMaximum") => (
                order != Some(Ordering::Greater) && order != Some(Ordering::Equal),
                "greater than or equal to the maximum of",
            ),
            "maximum" => (
                order != Some(Ordering::Greater),
                "greater than the maximum of",
            ),
            "exclusiveMinimum" => (
                order.is_none_or(Ordering::is_gt),
                "less than or equal to the minimum of",
            ),
            "exclusiveMaximum" => (
                order.is_none_or(Ordering::is_lt),
                "greater than or equal to the maximum of",
            ),
            "multipleOf" => (is_multiple(check.value, wanted), "not a multiple of"),
            _ => return true,
        };
        self.ensure(valid, place, || format!("value is {text} {wanted}"))
    }

    fn string(&mut self, keyword: &str, text: &str, check: &KeywordCheck<'_, 's, '_>) -> bool {
        match keyword {
            "minLength" | "maxLength" => {
                let length = text.chars().count();
                self.size(keyword, "Length", length, "character", check)
            }
            "pattern" => {
                let pattern = check.wanted.as_str().unwrap_or_default();
                match self.find(pattern, text) {
                    Ok(valid) => self.ensure(valid, check.place, || {
                        format!("value does not match \"{pattern}\"")
                    }),
                    Err(why) => self.fail(check.place, why),
                }
            }
            _ => true,
        }
    }

    pub(super) fn find(&mut self, pattern: &str, text: &str) -> Result<bool, String> {
        self.spend(1 + text.len() / STEP_LENGTH);
        self.validator.patterns.find(pattern, text)
    }

    pub(super) fn size(
        &mut self,
        keyword: &str,
        suffix: &str,
        size: usize,
        unit: &str,
        check: &KeywordCheck<'_, 's, '_>,
    ) -> bool {
        let Some(limit) = whole(check.wanted) else {
            return true;
        };
        let size = size as u64;
        let valid = match keyword.strip_suffix(suffix) {
            Some("min") => size >= limit,
            _ => size <= limit,
        };
        self.ensure(valid, check.place, || messages::size(keyword, limit, unit))
    }

    /// Applies a schema to a part of a value.
    pub(super) fn part(
        &mut self,
        schema: &'s Value,
        part: &Value,
        place: &AnswerPlace<'_>,
        step: AnswerStep<'_>,
    ) -> bool {
        let place = AnswerPlace {
            parent: Some(place),
            step,
        };
        self.apply(schema, part, &place, &mut Evaluated::default())
    }
}

impl AnswerPlace<'_> {
    /// Returns the JSON pointer to the value.
    fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut place = Some(self);
        while let Some(at) = place {
            steps.push(at.step);
            place = at.parent;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            let _ = match step {
                AnswerStep::Root => Ok(()),
                AnswerStep::Field(name) => {
                    write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1"))
                }
                AnswerStep::Item(index) => write!(pointer, "/{index}"),
            };
        }
        pointer
    }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match (wanted.as_str().unwrap_or_default(), value) {
        ("integer", Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    }
}
