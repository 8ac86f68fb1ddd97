//! Report of `acpipe doctor`: its checks, as lines of text or one JSON object.

use crate::cli::columns::one_line;
use crate::cli::screen::{ScreenContent, to_stdout};
use crate::cli::styles::{BAD, GOOD, Styles, WARNING};
use acpipe_model::printable::printable;
use acpipe_model::secret::{Secrets, hide_in_value};
use anstyle::Style;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io;
use std::time::Duration;

/// Width of the columns with the status and the name of the check.
const STATUS: usize = 8;
const NAME: usize = 18;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// Everything is as it should be.
    Ok,
    /// acpipe works, with a restriction or a workaround.
    Warning,
    /// Something does not work.
    Problem,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => GOOD,
            Self::Warning => WARNING,
            Self::Problem => BAD,
        }
    }
}

/// Check with its result.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Name of the check.
    #[serde(rename = "check")]
    name: String,
    status: Status,
    /// Result in words.
    found: String,
    /// Advice in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// Raw facts.
    #[serde(flatten)]
    facts: Map<String, Value>,
}

impl Check {
    pub fn new(name: &str, status: Status, found: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            status,
            found: found.into(),
            advice: None,
            facts: Map::new(),
        }
    }

    pub fn ok(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, found)
    }

    pub fn warning(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(name, Status::Warning, found).advice(advice)
    }

    pub fn problem(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(name, Status::Problem, found).advice(advice)
    }

    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a time in milliseconds.
    pub fn time(self, name: &str, time: Duration) -> Self {
        self.fact(name, milliseconds(time))
    }
}

/// Returns a time in milliseconds, rounded up.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Formats a time for people.
pub fn shown(time: Duration) -> String {
    match milliseconds(time) {
        ms @ 0..1000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// Maximum length of a text of an agent that is stored, in characters.
const LONGEST_STORED: usize = 100;

/// Checks so far, without secrets: they have texts of agents. As text, each is printed at once.
#[derive(Debug)]
pub struct DoctorReport {
    json: bool,
    secrets: Secrets,
    checks: Vec<Check>,
    /// Other members of the JSON object.
    members: Map<String, Value>,
}

impl DoctorReport {
    pub fn new(json: bool, secrets: Secrets) -> Self {
        let mut members = Map::new();
        members.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        Self {
            json,
            secrets,
            checks: Vec::new(),
            members,
        }
    }

    /// Returns a text of an agent as it may be stored: without secrets and control characters, and not long.
    pub fn storable(&self, text: &str) -> String {
        let shown = self.secrets.hide(text);
        let shown = shown.chars().filter(|c| !c.is_control());
        shown.take(LONGEST_STORED).collect()
    }

    /// Adds a check and prints it.
    pub fn add(&mut self, mut check: Check) -> anyhow::Result<()> {
        for text in std::iter::once(&mut check.found).chain(&mut check.advice) {
            // An agent's text begins no line of the report.
            *text = one_line(&printable(&self.secrets.hide(text)));
        }
        for value in check.facts.values_mut() {
            hide_in_value(&self.secrets, value);
        }
        if !self.json {
            let Check {
                name,
                status,
                found,
                advice,
                ..
            } = &check;
            let styles = Styles::stdout();
            let (style, status) = (status.style(), format!("{:STATUS$}", status.word()));
            let status = styles.paint(style, &status);
            to_stdout(ScreenContent::Styled, |out| {
                let text = styles.shown(found);
                writeln!(out, "{status} {name:NAME$} {text}")?;
                if let Some(advice) = advice {
                    let advice = styles.shown(advice);
                    writeln!(out, "{:STATUS$} {:NAME$} {advice}", "", "")?;
                }
                Ok(())
            })?;
        }
        self.checks.push(check);
        Ok(())
    }

    /// Sets a member of the JSON object.
    pub fn set(&mut self, name: &str, mut value: Value) {
        hide_in_value(&self.secrets, &mut value);
        self.members.insert(name.to_owned(), value);
    }

    /// Returns the numbers that all checks measured, by the name of the check.
    pub fn measured(&self) -> Map<String, Value> {
        let measured = self.checks.iter().map(|check| {
            let facts = check.facts.iter().filter(|(_, fact)| fact.is_number());
            let facts: Map<String, Value> = facts.map(|(k, v)| (k.clone(), v.clone())).collect();
            (check.name.clone(), facts)
        });
        let measured = measured.filter(|(_, facts)| !facts.is_empty());
        measured
            .map(|(name, facts)| (name, Value::Object(facts)))
            .collect()
    }

    /// Prints the summary, or the JSON object. Returns the exit code.
    pub fn end(mut self) -> anyhow::Result<u8> {
        let count = |status| self.checks.iter().filter(|c| c.status == status).count();
        let (problems, warnings) = (count(Status::Problem), count(Status::Warning));
        if self.json {
            self.set("problems", json!(problems));
            self.set("warnings", json!(warnings));
            self.set("checks", serde_json::to_value(&self.checks)?);
            to_stdout(ScreenContent::Json, |out| {
                serde_json::to_writer(&mut *out, &self.members).map_err(io::Error::from)?;
                Ok(out.write_all(b"\n")?)
            })?;
        } else {
            let counted = |n: usize, word: &str| match n {
                0 => format!("no {word}s"),
                1 => format!("1 {word}"),
                n => format!("{n} {word}s"),
            };
            let (problems, warnings) = (counted(problems, "problem"), counted(warnings, "warning"));
            let text = format!("\n{problems}, {warnings}\n");
            to_stdout(ScreenContent::Text, |out| {
                Ok(out.write_all(text.as_bytes())?)
            })?;
        }
        Ok(u8::from(problems > 0))
    }
}
