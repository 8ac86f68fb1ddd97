//! The page with the results.

use super::subjects::{SUBJECTS, TO_COME};
use super::{Requirement, Verdict};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "docs/internals/conformance.md";

const HEAD: &str = "# ACP conformance

The requirements of ACP v1 on agents, checked against the agents that acpipe has. This page is generated
(`UPDATE_CONFORMANCE=1 cargo test --test bridge acp::conformance`). Do not edit it.

A requirement with a number below 100 is one of [acp-tck](https://github.com/agentclientprotocol/acp-tck), the compatibility
kit of ACP, under the same number. The others are acpipe's own. `mandatory` requirements bind every agent, `capability`
requirements an agent that offers the capability, `optional` requirements are recommended. A dash means that the agent does
not offer the capability. Requirements on signing in are left out, because none of these agents signs in.
";

/// Optional requirements that an agent does not meet: id, agent, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Returns the reason why an agent does not meet an optional requirement.
pub fn reason(id: &str, subject: &str) -> Option<&'static str> {
    let exception = EXCEPTIONS
        .iter()
        .find(|(i, s, _)| *i == id && *s == subject);
    exception.map(|(.., reason)| *reason)
}

/// Compares the page with the results, or writes it.
pub fn compare(requirements: &[&Requirement], results: &[Vec<Verdict>]) {
    let text = page(requirements, results);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_CONFORMANCE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "{PAGE} differs from the results: run `UPDATE_CONFORMANCE=1 cargo test --test bridge acp::conformance`"
    );
}

fn page(requirements: &[&Requirement], results: &[Vec<Verdict>]) -> String {
    let mut page = format!("{HEAD}\n| column | agent |\n|-|-|\n");
    for subject in SUBJECTS {
        let _ = writeln!(page, "| {} | {} |", subject.name, subject.shown);
    }
    if !TO_COME.is_empty() {
        let _ = writeln!(page, "\nTo come: `{}`.", TO_COME.join("`, `"));
    }
    page.push_str("\n| id | level | requirement |");
    for subject in SUBJECTS {
        let _ = write!(page, " {} |", subject.name);
    }
    page.push_str("\n|-|-|-|");
    page.push_str(&"-|".repeat(SUBJECTS.len()));
    page.push('\n');
    let mut notes = String::new();
    for (requirement, verdicts) in requirements.iter().zip(results) {
        let (id, level, text) = (requirement.id, requirement.level.name(), requirement.text);
        let _ = write!(page, "| {id} | {level} | {text} |");
        for (verdict, subject) in verdicts.iter().zip(SUBJECTS) {
            let cell = match verdict {
                Verdict::Met => "yes",
                Verdict::NotOffered => "–",
                Verdict::Failed(_) => "no",
            };
            let _ = write!(page, " {cell} |");
            if let (Verdict::Failed(_), Some(why)) = (verdict, reason(id, subject.name)) {
                let _ = writeln!(notes, "| {id} | {} | {why} |", subject.name);
            }
        }
        page.push('\n');
    }
    if !notes.is_empty() {
        let _ = write!(
            page,
            "\n## Exceptions\n\n| id | agent | reason |\n|-|-|-|\n{notes}"
        );
    }
    page
}
