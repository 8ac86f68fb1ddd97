//! Rule for types with state: each has few methods in few files, which do not call each other in a cycle.
//!
//! A type beyond these limits holds the state of several owners. Types that are still beyond them have ceilings, which only
//! fall. Counted are inherent methods, files with inherent `impl` blocks, and the largest set of these files that
//! call each other in a cycle through `self`.

use super::{code, program, room};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Counts of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    fields: usize,
    methods: usize,
    files: usize,
    cycle: usize,
}

/// Limits of every type without a ceiling of its own. The number of fields has none.
const LIMIT: Counts = counts([usize::MAX, 60, 5, 3]);

/// Types beyond the limits: room, type and ceilings.
const CEILINGS: &[(&str, &str, Counts)] = &[
    ("core", "Conversation", counts([15, 68, 5, 2])),
    ("core", "SessionMachine", counts([6, 60, 6, 2])),
    ("core", "SessionOutput", counts([10, 64, 5, 1])),
];

const fn counts([fields, methods, files, cycle]: [usize; 4]) -> Counts {
    Counts {
        fields,
        methods,
        files,
        cycle,
    }
}

impl Counts {
    /// Returns these ceilings, with the limits of all types where they allow more.
    fn or_limit(self) -> Self {
        Self {
            fields: self.fields,
            methods: self.methods.max(LIMIT.methods),
            files: self.files.max(LIMIT.files),
            cycle: self.cycle.max(LIMIT.cycle),
        }
    }

    fn is_within(self, limit: Self) -> bool {
        self.fields <= limit.fields
            && self.methods <= limit.methods
            && self.files <= limit.files
            && self.cycle <= limit.cycle
    }
}

/// Type in a room: number of fields, and its `impl` blocks by file.
#[derive(Default)]
struct Type {
    fields: usize,
    impls: BTreeMap<String, Impl>,
}

/// Inherent methods of a type in one file, and the methods of `self` that they call.
#[derive(Default)]
struct Impl {
    methods: BTreeSet<String>,
    calls: BTreeSet<String>,
}

impl Type {
    fn counts(&self) -> Counts {
        let files: Vec<&Impl> = self.impls.values().collect();
        let calls = |from: usize, to: usize| !files[from].calls.is_disjoint(&files[to].methods);
        let edges = |from| (0..files.len()).filter(move |to| *to != from && calls(from, *to));
        let reached: Vec<BTreeSet<usize>> = (0..files.len())
            .map(|start| {
                let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
                while let Some(file) = next.pop() {
                    next.extend(edges(file).filter(|to| reached.insert(*to)));
                }
                reached
            })
            .collect();
        let in_cycle = |a: usize| {
            let mutual = reached[a].iter().filter(|b| reached[**b].contains(&a));
            mutual.count().max(1)
        };
        Counts {
            fields: self.fields,
            methods: files.iter().map(|file| file.methods.len()).sum(),
            files: files.len(),
            cycle: (0..files.len()).map(in_cycle).max().unwrap_or_default(),
        }
    }
}

/// Returns the types of the production code by room and name.
fn types(checkout: &Path) -> BTreeMap<(String, String), Type> {
    let mut types: BTreeMap<(String, String), Type> = BTreeMap::new();
    for path in program(checkout) {
        let file = path.strip_prefix(checkout).unwrap().to_str().unwrap();
        let room = room(file);
        if !file.contains("/tests") {
            let text = code(&fs::read_to_string(&path).unwrap());
            for (name, block) in blocks(&text) {
                let found = types.entry((room.to_owned(), name.to_owned())).or_default();
                match block {
                    Block::Struct(fields) => found.fields = fields,
                    Block::Impl(read) => {
                        let held = found.impls.entry(file.to_owned()).or_default();
                        held.methods.extend(read.methods);
                        held.calls.extend(read.calls);
                    }
                }
            }
        }
    }
    types
}

/// Returns the files that have all methods of a type, which is their type with the most methods.
pub fn whole(checkout: &Path) -> BTreeSet<String> {
    let mut largest: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    for found in types(checkout).values() {
        let is_whole = found.impls.len() == 1;
        for (file, held) in &found.impls {
            let most = largest.entry(file.clone()).or_default();
            *most = (*most).max((held.methods.len(), is_whole));
        }
    }
    let whole = largest.into_iter().filter(|(_, (_, whole))| *whole);
    whole.map(|(file, _)| file).collect()
}

enum Block {
    /// Number of fields.
    Struct(usize),
    Impl(Impl),
}

/// Returns the structs and the inherent `impl` blocks of a file in the form of rustfmt.
fn blocks(text: &str) -> Vec<(&str, Block)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let head = line.strip_prefix("pub ").unwrap_or(line);
        let head = head.strip_prefix("pub(super) ").unwrap_or(head);
        let head = head.strip_prefix("pub(crate) ").unwrap_or(head);
        let is_impl = head.starts_with("impl");
        let Some(rest) = head.strip_prefix("struct ").or(head.strip_prefix("impl")) else {
            continue;
        };
        // A block of a trait names the type behind `for`, possibly in the next line.
        let rest = if is_impl { behind_generics(rest) } else { rest };
        let name = rest
            .trim_start()
            .split(|c: char| !c.is_alphanumeric() && c != '_');
        let name = name.into_iter().next().unwrap_or_default();
        if name.is_empty() || line.ends_with(';') || line.ends_with('}') {
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
        let is_trait =
            rest.contains(" for ") || body.iter().take(3).any(|line| line.starts_with("for "));
        if !is_trait {
            found.push((
                name,
                if is_impl {
                    Block::Impl(read(&body))
                } else {
                    Block::Struct(fields(&body))
                },
            ));
        }
    }
    found
}

/// Returns the part of an `impl` line behind the generic parameters of the block.
fn behind_generics(rest: &str) -> &str {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        match c {
            '<' => depth += 1,
            // Not the end of an arrow.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if c == '>' { &rest[at + 1..] } else { rest };
        }
        before = c;
    }
    rest
}

fn fields(body: &[&str]) -> usize {
    let is_field = |line: &&&str| {
        let line = line.strip_prefix("    ").unwrap_or_default();
        line.starts_with(|c: char| c.is_lowercase()) && line.contains(':')
    };
    body.iter().filter(is_field).count()
}

fn read(body: &[&str]) -> Impl {
    let mut block = Impl::default();
    for line in body {
        let signature = line.strip_prefix("    ").unwrap_or_default();
        let words: Vec<&str> = signature.split([' ', '(', '<']).collect();
        if !signature.starts_with([' ', '/', '#'])
            && let Some(at) = words.iter().position(|word| *word == "fn")
        {
            block.methods.insert(words[at + 1].to_owned());
        }
    }
    // A call may stand in the line behind `self`.
    let text: String = body
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ");
    for (at, _) in text.match_indices("self") {
        let rest = text[at + 4..].trim_start();
        let before = text[..at].chars().next_back().unwrap_or(' ');
        if let Some(rest) = rest
            .strip_prefix('.')
            .filter(|_| !before.is_alphanumeric() && before != '_')
        {
            let name: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if rest[name.len()..].starts_with('(') {
                block.calls.insert(name);
            }
        }
    }
    block
}

#[test]
fn every_state_has_an_owner() {
    let types = types(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(types.len() > 1000, "{}", types.len());
    let mut faults = Vec::new();
    for ((room, name), found) in &types {
        let found = found.counts();
        let own = CEILINGS.iter().find(|(r, n, _)| r == room && n == name);
        let line = format!(
            "(\"{room}\", \"{name}\", counts([{}, {}, {}, {}])),",
            found.fields, found.methods, found.files, found.cycle
        );
        match own {
            Some((.., ceiling)) if !found.is_within(ceiling.or_limit()) => {
                faults.push(format!("{line} is above its ceiling {ceiling:?}"));
            }
            Some(_) if found.is_within(LIMIT) => faults.push(format!("{line} needs no ceiling")),
            Some((.., ceiling)) if found != *ceiling => {
                faults.push(format!("{line} is its new ceiling"));
            }
            None if !found.is_within(LIMIT) => {
                faults.push(format!("{line} is above the limits {LIMIT:?}"));
            }
            _ => {}
        }
    }
    let is_missing = |(room, name, _): &&(&str, &str, Counts)| {
        !types.contains_key(&((*room).to_owned(), (*name).to_owned()))
    };
    faults.extend(
        CEILINGS
            .iter()
            .filter(is_missing)
            .map(|(room, name, _)| format!("{room} has no type {name}")),
    );
    assert!(
        faults.is_empty(),
        "find the part that has an own state, and give it to an own type:\n{}",
        faults.join("\n")
    );
}

#[test]
fn methods_files_and_cycles_of_a_type_are_counted() {
    let mut found = Type::default();
    for (file, text) in [
        (
            "a",
            "pub struct A<T> {\n    x: T,\n    pub y: u8,\n}\n\nimpl<T: Fn(u8) -> u8> A<T> {\n    pub fn f(&self) {\n        self\n            .g();\n    }\n}\n",
        ),
        (
            "b",
            "impl A<u8> {\n    async fn g(&self) {\n        self.f();\n        self.h();\n    }\n}\n",
        ),
        (
            "c",
            "impl A<u8> {\n    fn h(&self) {\n        let itself = 1;\n        itself.f();\n    }\n}\n\nimpl Drop for A<u8> {\n    fn drop(&mut self) {}\n}\n",
        ),
    ] {
        for (name, block) in blocks(text) {
            assert_eq!(name, "A");
            match block {
                Block::Struct(fields) => found.fields = fields,
                Block::Impl(read) => drop(found.impls.insert(file.to_owned(), read)),
            }
        }
    }
    assert_eq!(found.counts(), counts([2, 3, 3, 2]));
}
