//! Rules for the modules of `src/core`: no files that import each other in a circle, no `impl` block far from its type.
//!
//! A module is a file with the files below it (`turn.rs` and `turn/`). File A imports file B where A names an item that B
//! defines, by `use` or by a path in the code; an item that a file only re-exports counts for the file that defines it.
//! Within one module, the file at its head and the files below it may import each other.

use super::{code, sources};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

/// Circles that remain, each with its reason. Only remove from this list.
const CIRCLES: &[&[&str]] = &[];

/// Modules that may have inherent `impl` blocks for a type of another module. Only remove from this list.
const IMPLS: &[(&str, &str)] = &[];

/// Sets of files that import each other, and a shortest circle in each.
type Components<'a> = BTreeMap<Vec<&'a Name>, Vec<&'a Name>>;

/// The path of a module or an item, from the root of the crate.
type Name = Vec<String>;

/// A source file: what it imports, re-exports, defines and implements.
#[derive(Default)]
struct Source {
    /// Each name that it uses, absolute.
    used: Vec<Name>,
    /// Names under which it re-exports items, and the items.
    reexported: BTreeMap<String, Name>,
    /// Items that it imports, by the names that they have here.
    imported: BTreeMap<String, Name>,
    types: BTreeSet<String>,
    /// The types of its inherent `impl` blocks.
    implemented: Vec<String>,
}

struct Crate(BTreeMap<Name, Source>);

impl Crate {
    /// Reads sources, given as paths below `src` without `.rs` and texts.
    fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = files.into_iter();
        Self(
            files
                .map(|(path, text)| {
                    let name: Name = path.split('/').map(str::to_owned).collect();
                    let source = Source::parse(&name, text);
                    (name, source)
                })
                .collect(),
        )
    }

    /// The file that defines an item, and the names behind that file.
    fn definition(&self, item: &[String]) -> Option<(&Name, Name)> {
        let mut item = item.to_vec();
        // A chain of re-exports that is longer does not occur.
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

    fn imports(&self) -> BTreeMap<&Name, BTreeSet<&Name>> {
        let of = |(file, source): (&'_ Name, &Source)| {
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

    /// The sets of files that import each other in a circle.
    fn circles(&self) -> Components<'_> {
        let imports = self.imports();
        // Files of one module: the head of it may name those below without closing a circle.
        let mut apart = imports.clone();
        for (file, others) in &mut apart {
            others.retain(|other| !other.starts_with(file));
        }
        // Whole modules: the head of one depends on whatever is below it, and its own circles are none.
        let mut whole = imports;
        for file in self.0.keys() {
            if let Some(head) = file
                .split_last()
                .and_then(|(_, head)| whole.get_mut(&head.to_vec()))
            {
                head.insert(file);
            }
        }
        let mut found = components(&apart);
        for (circle, way) in components(&whole) {
            if !is_one_module(&circle) {
                found.entry(circle).or_insert(way);
            }
        }
        found
    }

    /// Files with `impl` blocks for a type of another module, and the type.
    fn far_impls(&self) -> Vec<(&Name, Name)> {
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
                let siblings = home[..home.len() - 1] == file[..file.len() - 1];
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

/// A line without its visibility, and whether that was wider than the file.
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

/// The type of an inherent `impl` block that begins at a line.
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

/// The paths of a `use` tree, each with the name that it gives its item.
fn leaves(tree: &str) -> Vec<(Name, String)> {
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
    let mut path: Name = path
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

/// The paths in code that begin at the crate or at a module above.
fn paths(code: &str) -> impl Iterator<Item = Name> {
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

/// The path from the root of the crate, of one that begins with `crate`, `super` or `self`.
fn absolute(file: &[String], path: &[String]) -> Option<Name> {
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

/// Whether all files of a circle are of the module that one of them heads.
fn is_one_module(circle: &[&Name]) -> bool {
    circle
        .iter()
        .any(|head| circle.iter().all(|file| file.starts_with(head)))
}

/// The strongly connected components of more than one file, each with a shortest way around it.
fn components<'a>(edges: &BTreeMap<&'a Name, BTreeSet<&'a Name>>) -> Components<'a> {
    // Each file that is reached from a file, and the one before it on a shortest way.
    let reached: BTreeMap<&Name, BTreeMap<&Name, &Name>> = edges
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
            // A way within one module would not show why the circle is one.
            let cost = |way: &[&Name]| (is_one_module(way), way.len());
            let shortest = found.entry(circle).or_insert_with(|| way.clone());
            if cost(&way) < cost(shortest) {
                *shortest = way;
            }
        }
    }
    found
}

fn core() -> Crate {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root.join("core"), &mut files);
    files.push(root.join("core.rs"));
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
    assert!(texts.len() > 100, "{}", texts.len());
    Crate::parse(
        texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str())),
    )
}

fn names(circle: &[&Name]) -> Vec<String> {
    circle.iter().map(|file| file.join("::")).collect()
}

#[test]
fn files_of_the_core_import_each_other_in_no_new_circle() {
    let core = core();
    let found = core.circles();
    let is_within = |circle: &[&Name], known: &[&str]| {
        circle
            .iter()
            .all(|file| known.contains(&file.join("::").as_str()))
    };
    for (circle, way) in &found {
        assert!(
            CIRCLES.iter().any(|known| is_within(circle, known)),
            "files import each other: {}; move what both need to a file of its own ({} files in all)",
            names(way).join(" → "),
            circle.len()
        );
    }
    for known in CIRCLES {
        assert!(
            found.keys().any(|circle| is_within(circle, known)),
            "{known:?} is no circle any more: remove it from the list"
        );
    }
}

#[test]
fn impl_blocks_of_the_core_stand_in_the_module_of_their_type() {
    let core = core();
    let far = core.far_impls();
    let is = |(file, item): &(&Name, Name), (module, of): (&str, &str)| {
        file.join("::").starts_with(&format!("{module}::")) && item.join("::") == of
    };
    for (file, item) in &far {
        let known = IMPLS.iter().any(|known| is(&(*file, item.clone()), *known));
        assert!(
            known,
            "{} implements {} of another module",
            file.join("::"),
            item.join("::")
        );
    }
    for known in IMPLS {
        assert!(
            far.iter().any(|far| is(far, *known)),
            "{known:?} is gone: remove it from the list"
        );
    }
}

/// The rules must be able to fail.
#[test]
fn circles_and_far_impls_are_found() {
    let circles = |files: &[(&str, &str)]| -> Vec<String> {
        let parsed = Crate::parse(files.iter().copied());
        parsed
            .circles()
            .keys()
            .map(|circle| names(circle).join(" "))
            .collect()
    };
    let siblings = [
        ("core/a", "use super::b::{c, X as Y};\n"),
        ("core/b", "fn f() -> crate::core::a::Z {}\n"),
    ];
    assert_eq!(circles(&siblings), ["core::a core::b"]);
    // Comments and tests do not count.
    let comment = [
        siblings[0],
        (
            "core/b",
            "// crate::core::a::Z\n#[cfg(test)]\nmod tests {\n use super::super::a;\n}\n",
        ),
    ];
    assert_eq!(circles(&comment), Vec::<String>::new());
    // Neither does a re-export, nor the head of a module.
    let module = [
        (
            "core/a",
            "mod c;\nuse c::C;\npub use super::b::B;\npub struct A;\n",
        ),
        ("core/a/c", "use super::{A, B};\n"),
        ("core/b", "mod d;\npub struct B;\n"),
    ];
    assert_eq!(circles(&module), Vec::<String>::new());
    // A file below the head counts for the whole module.
    let mut through = module.to_vec();
    through.extend([
        ("core/b/d", "use crate::core::a::\n{\n    A,\n};\n"),
        ("core/a/e", "use crate::core::b::d::X;\n"),
    ]);
    assert_eq!(
        circles(&through),
        ["core::a core::a::c core::a::e core::b core::b::d"]
    );

    let far = |files: &[(&str, &str)]| {
        let parsed = Crate::parse(files.iter().copied());
        parsed.far_impls().len()
    };
    let home = ("core/a", "pub struct A<T>(T);\nimpl<T> A<T> {}\n");
    assert_eq!(
        far(&[
            home,
            (
                "core/b/c",
                "use crate::core::a::A;\nimpl<T: Copy> A<T> {\n}\n"
            )
        ]),
        1
    );
    assert_eq!(
        far(&[
            home,
            (
                "core/b/c",
                "use crate::core::a::A;\nimpl<T> Clone for A<T> {\n}\n"
            )
        ]),
        0
    );
    assert_eq!(
        far(&[home, ("core/a/c", "use super::A;\nimpl A<u8> {\n}\n")]),
        0
    );
}
