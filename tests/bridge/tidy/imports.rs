//! Rules for the modules of each room: no import cycles between files, and no `impl` block outside the module
//! of its type.
//!
//! A module is a file with the files below it (`turn.rs` and `turn/`). File A imports file B if A names an
//! item that B defines, by `use` or by a path in the code. An item that a file only re-exports counts for the
//! file that defines it. Within one module, the head file and the files below it may import each other.

mod samples;

use super::{code, sources};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

/// Rooms below `src` with the least number of files in each, since a search without files would find no
/// cycles.
const ROOMS: &[(&str, usize)] = &[
    ("agent", 20),
    ("cli", 40),
    ("core", 200),
    ("demo", 4),
    ("library", 15),
    ("proto", 30),
    ("shell", 40),
    ("testing", 3),
];

/// Sets of files that import each other, with a shortest cycle of each set.
type Components<'a> = BTreeMap<Vec<&'a ItemPath>, Vec<&'a ItemPath>>;

/// Path of a module or an item, from the root of the crate.
type ItemPath = Vec<String>;

/// Source file: the names that it uses, re-exports, defines and implements.
#[derive(Default)]
struct Source {
    /// All names that the file uses, absolute.
    used: Vec<ItemPath>,
    /// Re-exported items by their names.
    reexported: BTreeMap<String, ItemPath>,
    /// Imported items by their names in this file.
    imported: BTreeMap<String, ItemPath>,
    types: BTreeSet<String>,
    /// Types of the file's inherent `impl` blocks.
    implemented: Vec<String>,
}

struct Crate(BTreeMap<ItemPath, Source>);

impl Crate {
    /// Parses sources, given as text by path below `src` without `.rs`.
    fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = files.into_iter();
        Self(
            files
                .map(|(path, text)| {
                    let name: ItemPath = path.split('/').map(str::to_owned).collect();
                    let source = Source::parse(&name, text);
                    (name, source)
                })
                .collect(),
        )
    }

    /// Returns the file that defines an item, and the rest of the path after that file.
    fn definition(&self, item: &[String]) -> Option<(&ItemPath, ItemPath)> {
        let mut item = item.to_vec();
        // Longer chains of re-exports do not occur.
        for _ in 0..10 {
            let len = (1..=item.len())
                .rev()
                .find(|len| self.0.contains_key(&item[..*len]))?;
            let (file, source) = self.0.get_key_value(&item[..len])?;
            let behind = &item[len..];
            match behind.first().and_then(|name| source.reexported.get(name)) {
                Some(original) => item = [original, &behind[1..]].concat(),
                None => return Some((file, behind.to_vec())),
            }
        }
        None
    }

    fn imports(&self) -> BTreeMap<&ItemPath, BTreeSet<&ItemPath>> {
        let of = |(file, source): (&'_ ItemPath, &Source)| {
            let used = source.used.iter();
            used.filter_map(|item| Some(self.definition(item)?.0))
                .filter(|other| *other != file)
                .collect()
        };
        self.0
            .iter()
            .map(|(file, source)| (file, of((file, source))))
            .collect()
    }

    /// Returns the sets of files that import each other in a cycle.
    fn cycles(&self) -> Components<'_> {
        let imports = self.imports();
        let mut found = Components::new();
        // The files below each module are checked by themselves, since their imports of the head above them
        // close no cycle.
        for above in self.0.keys().chain([&ItemPath::new()]) {
            let is_below = |file: &&ItemPath| file.len() > above.len() && file.starts_with(above);
            let mut below: BTreeMap<&ItemPath, BTreeSet<&ItemPath>> = imports
                .iter()
                .filter(|(file, _)| is_below(file))
                .map(|(file, others)| (*file, others.iter().copied().filter(is_below).collect()))
                .collect();
            // A module is a unit: its head depends on all files below it.
            for file in self.0.keys().filter(is_below) {
                if let Some((_, head)) = file.split_last()
                    && let Some(others) = below.get_mut(&head.to_vec())
                {
                    others.insert(file);
                }
            }
            for (circle, way) in components(&below) {
                if !is_one_module(&circle) {
                    found.entry(circle).or_insert(way);
                }
            }
        }
        found
    }

    /// Returns files with `impl` blocks for a type of another module, and the type.
    fn misplaced_impls(&self) -> Vec<(&ItemPath, ItemPath)> {
        let mut found = Vec::new();
        for (file, source) in &self.0 {
            for name in source
                .implemented
                .iter()
                .filter(|name| !source.types.contains(*name))
            {
                let definition = source
                    .imported
                    .get(name)
                    .and_then(|item| self.definition(item));
                let Some((home, behind)) = definition.filter(|(home, _)| *home != file) else {
                    continue;
                };
                // A room is not a module: files side by side in it are separate modules.
                let parent = &file[..file.len() - 1];
                let siblings = parent.len() > 1 && home[..home.len() - 1] == *parent;
                if !siblings && !home.starts_with(file) && !file.starts_with(home) {
                    found.push((file, [home.as_slice(), &behind].concat()));
                }
            }
        }
        found
    }
}

impl Source {
    fn parse(file: &[String], text: &str) -> Self {
        let mut source = Self::default();
        let (mut rest, text) = (String::new(), code(text));
        let mut lines = text.lines();
        let mut children = BTreeSet::new();
        let mut uses = Vec::new();
        while let Some(line) = lines.next() {
            let (public, item) = visibility(line.trim());
            if let Some(tree) = item.strip_prefix("use ") {
                let mut tree = tree.to_owned();
                while !tree.contains(';') {
                    tree.push_str(lines.next().unwrap_or(";"));
                }
                uses.push((public, tree.replace(';', "")));
                continue;
            }
            if let Some(child) = item.strip_prefix("mod ").and_then(|m| m.strip_suffix(';')) {
                children.insert(child.to_owned());
            }
            for kind in ["struct ", "enum ", "union "] {
                source.types.extend(item.strip_prefix(kind).map(word));
            }
            source.implemented.extend(implemented(line));
            rest.push_str(line);
            rest.push('\n');
        }
        for (public, tree) in uses {
            for (path, alias) in leaves(&tree) {
                let is_child = path.first().is_some_and(|first| children.contains(first));
                let relative = if is_child {
                    [file, &path].concat()
                } else {
                    Vec::new()
                };
                let Some(item) = absolute(file, &path).or((is_child).then_some(relative)) else {
                    continue;
                };
                if public {
                    source.reexported.insert(alias, item);
                } else {
                    source.imported.insert(alias, item.clone());
                    source.used.push(item);
                }
            }
        }
        source
            .used
            .extend(paths(&rest).filter_map(|path| absolute(file, &path)));
        source
    }
}

/// Splits the visibility off a line. `true` if the item is visible outside the file.
fn visibility(line: &str) -> (bool, &str) {
    match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with(' ') => (true, rest.trim_start()),
        Some(rest) if rest.starts_with('(') => (
            true,
            rest.split_once(')')
                .map_or(rest, |(_, item)| item.trim_start()),
        ),
        _ => (false, line),
    }
}

fn word(text: &str) -> String {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Returns the type of an inherent `impl` block that begins at a line.
fn implemented(line: &str) -> Option<String> {
    let header = line.strip_prefix("impl")?;
    let header = match header.strip_prefix('<') {
        Some(generics) => generics.split_once("> ")?.1,
        None => header.strip_prefix(' ')?,
    };
    let named: String = header
        .chars()
        .take_while(|c| c.is_alphanumeric() || "_:".contains(*c))
        .collect();
    let of_trait = header.split_whitespace().any(|word| word == "for");
    (!of_trait).then(|| named.rsplit("::").next().unwrap_or_default().to_owned())
}

/// Returns the paths of a `use` tree, each with the name that it gives its item.
fn leaves(tree: &str) -> Vec<(ItemPath, String)> {
    let tree = tree.trim();
    if let Some((prefix, group)) = tree.split_once('{') {
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        let (mut depth, mut parts) = (0, vec![String::new()]);
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(String::new());
                    continue;
                }
                _ => {}
            }
            parts.last_mut().unwrap().push(c);
        }
        let parts = parts.iter().filter(|part| !part.trim().is_empty());
        return parts
            .flat_map(|part| leaves(&format!("{prefix}{}", part.trim())))
            .collect();
    }
    let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path: ItemPath = path
        .split("::")
        .map(|segment| segment.trim().to_owned())
        .collect();
    if path
        .last()
        .is_some_and(|last| last == "self" || last == "*")
    {
        path.pop();
    }
    let alias = if alias.is_empty() {
        path.last().cloned().unwrap_or_default()
    } else {
        alias.trim().to_owned()
    };
    vec![(path, alias)]
}

/// Returns the paths in code that begin with `crate::` or `super::`.
fn paths(code: &str) -> impl Iterator<Item = ItemPath> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split(move |c| !is_path(c))
        .filter(|path| path.starts_with("crate::") || path.starts_with("super::"))
        .map(|path| {
            path.split("::")
                .filter(|s| !s.is_empty())
                .map(str::to_owned)
                .collect()
        })
}

/// Resolves a path that begins with `crate`, `super` or `self` from the root of the crate.
fn absolute(file: &[String], path: &[String]) -> Option<ItemPath> {
    let mut from = file.to_vec();
    let mut path = path;
    match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" | "super" => {}
        _ => return None,
    }
    while let Some((first, rest)) = path
        .split_first()
        .filter(|(first, _)| *first == "super" || *first == "self")
    {
        if first == "super" {
            from.pop();
        }
        path = rest;
    }
    Some([from, path.to_vec()].concat())
}

/// Returns `true` if all files of a cycle belong to the module that one of them heads.
fn is_one_module(circle: &[&ItemPath]) -> bool {
    circle
        .iter()
        .any(|head| circle.iter().all(|file| file.starts_with(head)))
}

/// Returns the strongly connected components of more than one file, each with a shortest cycle through it.
fn components<'a>(edges: &BTreeMap<&'a ItemPath, BTreeSet<&'a ItemPath>>) -> Components<'a> {
    // Files that are reachable from each file, each with its predecessor on a shortest path.
    let reached: BTreeMap<&ItemPath, BTreeMap<&ItemPath, &ItemPath>> = edges
        .keys()
        .map(|file| {
            let (mut before, mut next) = (BTreeMap::new(), VecDeque::from([*file]));
            while let Some(at) = next.pop_front() {
                for other in edges.get(at).into_iter().flatten() {
                    before.entry(*other).or_insert_with(|| {
                        next.push_back(*other);
                        at
                    });
                }
            }
            (*file, before)
        })
        .collect();
    let mut found = Components::new();
    for (file, before) in &reached {
        let back = before
            .keys()
            .filter(|other| reached[**other].contains_key(file));
        let circle: Vec<_> = back.copied().collect();
        if circle.len() > 1 {
            let mut way = vec![*file];
            while way.len() == 1 || way[0] != *file {
                way.insert(0, before[way[0]]);
            }
            // A path within one module would not show why the cycle is a violation.
            let cost = |way: &[&ItemPath]| (is_one_module(way), way.len());
            let shortest = found.entry(circle).or_insert_with(|| way.clone());
            if cost(&way) < cost(shortest) {
                *shortest = way;
            }
        }
    }
    found
}

fn room(name: &str, least: usize) -> Crate {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root.join(name), &mut files);
    files.push(root.join(name).with_extension("rs"));
    let texts: Vec<_> = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(&root).unwrap().with_extension("");
            (
                path.to_str().unwrap().to_owned(),
                fs::read_to_string(file).unwrap(),
            )
        })
        .filter(|(path, _)| !path.split('/').any(|part| part.starts_with("tests")))
        .collect();
    assert!(texts.len() >= least, "{name}: {}", texts.len());
    Crate::parse(
        texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str())),
    )
}

fn names(circle: &[&ItemPath]) -> Vec<String> {
    circle.iter().map(|file| file.join("::")).collect()
}

#[test]
fn files_of_a_room_have_no_import_cycle() {
    for (name, least) in ROOMS {
        let room = room(name, *least);
        if let Some((circle, way)) = room.cycles().into_iter().next() {
            panic!(
                "files import each other: {}; move what both need to a file of its own ({} files in all)",
                names(&way).join(" → "),
                circle.len()
            );
        }
    }
}

#[test]
fn impl_blocks_are_in_the_module_of_their_type() {
    for (name, least) in ROOMS {
        let room = room(name, *least);
        if let Some((file, item)) = room.misplaced_impls().into_iter().next() {
            let (file, item) = (file.join("::"), item.join("::"));
            panic!("{file} implements {item} of another module");
        }
    }
}

#[test]
fn imports_of_every_room_are_checked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    let mut rooms: Vec<_> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    rooms.sort();
    let checked: Vec<_> = ROOMS.iter().map(|(name, _)| *name).collect();
    assert_eq!(rooms, checked);
}
