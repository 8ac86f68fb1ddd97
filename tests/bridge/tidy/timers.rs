//! Rule for the timers of the machines: each machine has one table of its timers, in its `timers.rs`, and no
//! second list.
//!
//! A list of timers is a function that returns the next deadline, postpones timers, or handles those that are
//! due. Types with a single deadline (`Silence`, `PendingSettings`, …) also have methods of these names;
//! machines have them only in their tables.

use super::{code, sources};
use std::fs;
use std::path::Path;

/// Machines with their folders.
const MACHINES: &[(&str, &str)] = &[
    ("SessionMachine", "crates/core/src/session"),
    ("AgentMachine", "crates/core/src/agent"),
    ("Hub", "crates/core/src/hub"),
];

/// Methods that iterate over the timers of a machine.
const OF_TABLES: &[&str] = &["deadline", "due", "expire", "postpone", "tick"];

/// Returns the violations in a file that is not a table.
fn violations(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut owner = String::new();
    for line in code(text).lines() {
        if let Some(header) = line.strip_prefix("impl") {
            header.clone_into(&mut owner);
        }
        let Some(name) = function(line) else { continue };
        let words: Vec<&str> = name.split('_').collect();
        let (first, last) = (words[0], words[words.len() - 1]);
        let of_machine = MACHINES.iter().any(|(machine, _)| owner.contains(machine));
        let is_list = OF_TABLES.contains(&name) || last == "deadline" || last == "deadlines";
        if (of_machine && is_list)
            || (words.len() > 1 && ["tick", "expire", "postpone"].contains(&first))
            || (words.len() > 1 && last == "due")
        {
            wrong.push(format!(
                "{path}: fn {name}: what is due stands in the table of timers.rs; what follows is named after what it does"
            ));
        }
    }
    wrong
}

/// Returns the faults of a table: a timer missing from a list, or a missing list.
fn faults(path: &str, text: &str) -> Vec<String> {
    let text = code(text);
    let mut wrong = Vec::new();
    for list in OF_TABLES {
        if !text.lines().any(|line| function(line) == Some(list)) {
            wrong.push(format!("{path}: it has no fn {list}"));
        }
    }
    if text
        .lines()
        .any(|line| line.trim_start().starts_with("_ =>"))
    {
        wrong.push(format!("{path}: a match has an arm for all other timers"));
    }
    let variants = between(&text, "enum ", "\n}\n");
    let all = between(&text, "const ALL", "];");
    let variants: Vec<&str> = variants
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .collect();
    if variants.is_empty() {
        wrong.push(format!("{path}: it has no timers"));
    }
    let listed: Vec<&str> = all.split(|c: char| !c.is_alphanumeric()).collect();
    for timer in variants.iter().filter(|timer| !listed.contains(timer)) {
        wrong.push(format!("{path}: ALL does not have {timer}"));
    }
    wrong
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let text = text.split_once(begin).map_or("", |(_, rest)| rest);
    text.split_once(end).map_or("", |(inside, _)| inside)
}

/// Returns the name of the function that begins at a line.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.trim_start().split_once("fn ")?;
    let is_header = before.split_whitespace().all(|word| {
        ["const", "async", "unsafe"].contains(&word)
            || word.starts_with("pub")
            || word.ends_with(')')
    });
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_header && end > 0).then_some(&rest[..end])
}

#[test]
fn each_machine_has_one_table_of_timers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for (machine, folder) in MACHINES {
        let mut files = vec![root.join(folder).with_extension("rs")];
        sources(&root.join(folder), &mut files);
        let table = root.join(folder).join("timers.rs");
        assert!(files.contains(&table), "{machine} has no {table:?}");
        for file in files {
            let path = file.strip_prefix(root).unwrap().to_str().unwrap();
            let text = fs::read_to_string(&file).unwrap();
            if file == table {
                wrong.extend(faults(path, &text));
            } else if !path.split('/').any(|part| part.starts_with("tests")) {
                wrong.extend(violations(path, &text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rule itself must be able to fail.
#[test]
fn second_lists_of_timers_are_found() {
    let allowed = "impl PendingSettings {\n    pub fn deadline(&self) {}\n    fn postpone(&mut self) {}\n}\n\
                   impl SessionMachine {\n    // fn tick() {}\n    pub(super) fn time_out_asks(&mut self) {}\n}\n";
    assert_eq!(violations("x.rs", allowed), Vec::<String>::new());
    for second in [
        "impl SessionMachine {\n    pub fn deadline(&self) {}\n}\n",
        "impl SessionMachine {\n    fn opening_deadline(&self) {}\n}\n",
        "impl Hub {\n    pub(super) fn tick(&mut self) {}\n}\n",
        "impl super::AgentMachine {\n    fn postpone(&mut self) {}\n}\n",
        "impl AgentMachine {\n    pub(super) fn tick_restart<C>(&mut self) {}\n}\n",
        "impl Connection {\n    pub fn process_due(&self) {}\n}\n",
        "fn postpone_questions() {}\n",
        "impl Hub {\n    fn expire_lists(&mut self) {}\n}\n",
    ] {
        assert_eq!(violations("x.rs", second).len(), 1, "{second}");
    }
}

#[test]
fn incomplete_timer_tables_are_found() {
    let table = "enum T {\n    A,\n    B,\n}\nimpl T {\n    const ALL: [Self; 2] = [Self::A, Self::B];\n}\n\
                 impl Hub {\n    fn deadline() {}\n    fn due() {}\n    fn tick() {}\n    fn postpone() {}\n    fn expire() {}\n}\n";
    assert_eq!(faults("x.rs", table), Vec::<String>::new());
    for (whole, broken) in [
        ("Self::A, ", ""),
        (", Self::B", ""),
        ("    A,\n    B,\n", ""),
        ("    fn postpone() {}\n", ""),
        (
            "    fn due() {}\n",
            "    fn due() {\n        _ => None,\n    }\n",
        ),
    ] {
        let text = table.replace(whole, broken);
        assert_ne!(text, table, "{whole}");
        assert!(!faults("x.rs", &text).is_empty(), "{text}");
    }
}
