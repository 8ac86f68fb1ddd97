//! Rule for names of types: one name, one type.
//!
//! Names that several types still have are listed with their numbers of types, which only fall. Counted are structs, enums,
//! traits and type aliases, but not associated types and types of tests.

use super::{production, program};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names of several types, with the number of types.
const REPEATED: &[(&str, usize)] = &[
    ("Activity", 2),
    ("Answer", 3),
    ("Block", 3),
    ("Call", 3),
    ("CallState", 2),
    ("Calls", 2),
    ("Chunk", 2),
    ("Content", 2),
    ("Data", 2),
    ("Effect", 2),
    ("EndedCall", 2),
    ("Error", 2),
    ("Fault", 2),
    ("Form", 3),
    ("History", 2),
    ("Item", 2),
    ("Listed", 2),
    ("McpServer", 2),
    ("McpTransport", 2),
    ("Message", 6),
    ("Messages", 2),
    ("Meta", 2),
    ("Noted", 2),
    ("Omitted", 2),
    ("OpenAs", 2),
    ("Outcome", 2),
    ("Page", 2),
    ("Params", 2),
    ("Permission", 2),
    ("Phase", 2),
    ("Policy", 2),
    ("Process", 2),
    ("Prompt", 3),
    ("PromptPart", 2),
    ("Question", 2),
    ("QuestionRequest", 2),
    ("Reader", 2),
    ("Record", 2),
    ("Replay", 2),
    ("Reply", 2),
    ("Role", 2),
    ("Rule", 2),
    ("RunOutcome", 2),
    ("Session", 3),
    ("Sessions", 2),
    ("Stage", 3),
    ("StopReason", 2),
    ("Subject", 2),
    ("ToolCall", 2),
    ("Turn", 3),
    ("UnusableLine", 2),
    ("Update", 2),
];

/// Returns the names of the types that a file defines, with their lines.
fn definitions(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let definition = line.trim_start();
        let is_free = definition.len() == line.len();
        let definition = match definition.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ").map_or("", |(_, rest)| rest),
            None => definition.strip_prefix("pub ").unwrap_or(definition),
        };
        let Some((keyword, rest)) = definition.split_once(' ') else {
            continue;
        };
        let is_type = match keyword {
            "struct" | "enum" | "trait" | "union" => true,
            // Indented ones are associated types.
            "type" => is_free,
            _ => false,
        };
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        if is_type && name.starts_with(char::is_uppercase) {
            found.push((name, number));
        }
    }
    found
}

/// Returns the places of the definitions by name.
fn types(checkout: &Path) -> BTreeMap<String, Vec<String>> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut files = program(checkout);
    files.sort();
    for path in files {
        let file = path.strip_prefix(checkout).unwrap().to_str().unwrap();
        if !file.contains("/tests") {
            let text = fs::read_to_string(&path).unwrap();
            for (name, line) in definitions(production(&text)) {
                let places = types.entry(name.to_owned()).or_default();
                places.push(format!("{file}:{line}"));
            }
        }
    }
    types
}

/// Returns the faults of the names: those of more types than listed, and those of the list itself.
fn faults(types: &BTreeMap<String, Vec<String>>, repeated: &[(&str, usize)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, places) in types {
        let listed = repeated.iter().find(|(listed, _)| listed == name);
        let ceiling = listed.map_or(1, |(_, count)| *count);
        let count = places.len();
        if count > ceiling {
            let places = places.join(", ");
            faults.push(format!(
                "{name} names {count} types, more than {ceiling}: {places}"
            ));
        } else if count < ceiling {
            faults.push(format!("(\"{name}\", {count}), is its new ceiling"));
        }
    }
    let is_unknown = |(name, _): &&(&str, usize)| !types.contains_key(*name);
    let unknown = repeated.iter().filter(is_unknown);
    faults.extend(unknown.map(|(name, _)| format!("no type has the name {name}")));
    faults
}

#[test]
fn every_type_has_a_name_of_its_own() {
    let types = types(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(types.len() > 1000, "{}", types.len());
    let faults = faults(&types, REPEATED);
    assert!(
        faults.is_empty(),
        "give a type a name that says what it is in its own room; a name of one type is not listed:\n{}",
        faults.join("\n")
    );
}

#[test]
fn definitions_of_types_are_found() {
    let text = "pub struct A;\npub(super) enum B<T> {\n    C,\n}\npub(in crate::hub) trait D: E {\n    type F;\n}\n\
                raw_object! {\n    struct G { g = \"g\" }\n}\ntype H = u8;\n// struct I;\nlet structure = 1;\n";
    let names: Vec<(&str, usize)> = definitions(text);
    assert_eq!(names, [("A", 1), ("B", 2), ("D", 5), ("G", 9), ("H", 11)]);
}

#[test]
fn repeated_names_are_found() {
    let places = |count: usize| (0..count).map(|line| format!("src/a.rs:{line}")).collect();
    let types = [("One", 1), ("Two", 2), ("Three", 3)]
        .map(|(name, count)| (name.to_owned(), places(count)))
        .into();
    let of = |repeated: &[(&str, usize)]| faults(&types, repeated).join("\n");
    assert_eq!(of(&[("Two", 2), ("Three", 3)]), "");
    let wrong = of(&[("Three", 2)]);
    for part in [
        "Two names 2 types, more than 1: src/a.rs:0, src/a.rs:1",
        "Three names 3",
    ] {
        assert!(wrong.contains(part), "{wrong}");
    }
    let wrong = of(&[("One", 2), ("Two", 2), ("Three", 3), ("Four", 2)]);
    for part in [
        "(\"One\", 1), is its new ceiling",
        "no type has the name Four",
    ] {
        assert!(wrong.contains(part), "{wrong}");
    }
}
