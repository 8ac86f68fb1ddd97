//! The list of all error messages, generated from the sources into `docs/reference/error-messages.md`.
//!
//! The scan reads the message argument of each error constructor. Where that is a variable, it reads the `let` that binds
//! it; where it is a parameter, the calls of the function or closure. A constructor without a text fails the test, unless
//! it is listed in [`FORWARDED`].

mod page;
mod source;
mod table;
mod text;

use super::{code, program};
use page::page;
use source::{Source, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use table::{AREAS, CONSTRUCTORS, FORWARDED, LOGS, NOT_FOLLOWED, REASONS, REFUSED};
use text::{call, camel, is_followed, is_prose, placeholders};

const PAGE: &str = "docs/reference/error-messages.md";

/// Constructor of an error, a warning or a reason inside one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Constructor {
    name: String,
    /// Places of the texts among the arguments, without `self`.
    texts: Vec<usize>,
    kind: Kind,
    /// Files in which the name means this constructor begin so.
    within: String,
    /// Whether each call has to have a text that can be read.
    strict: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The place of the kind among the arguments.
    Argument(usize),
    Named(String),
    /// None: texts are grouped by the area of their source.
    Area,
}

/// The heading of errors whose kind is not in the call.
const SEVERAL: &str = "errors of several kinds";

/// Each text with its headings, and the files that have it.
type Texts = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

struct Scan {
    files: Vec<Source>,
    texts: Texts,
    /// Calls without a text: the file, and the argument.
    unread: BTreeSet<(String, String)>,
}

/// Content of an expression: texts, and parameters of the callables around it.
#[derive(Default)]
struct Found {
    texts: BTreeSet<String>,
    is_read: bool,
    /// Indices of the file, of the callable and of its parameter.
    params: BTreeSet<(usize, usize, usize)>,
    visited: BTreeSet<(usize, usize)>,
}

impl Scan {
    fn from(files: Vec<Source>) -> Self {
        let mut scan = Self {
            files,
            texts: BTreeMap::new(),
            unread: BTreeSet::new(),
        };
        let constructor =
            |(name, texts, kind, within, strict): &(&str, &[usize], Option<&str>, &str, bool)| {
                Constructor {
                    name: (*name).to_owned(),
                    texts: texts.to_vec(),
                    kind: match kind {
                        Some(kind) => Kind::Named((*kind).to_owned()),
                        None if *name == "Error::new" => Kind::Argument(0),
                        None => Kind::Area,
                    },
                    within: (*within).to_owned(),
                    strict: *strict,
                }
            };
        let mut open: Vec<_> = CONSTRUCTORS.iter().map(constructor).collect();
        let mut done = BTreeSet::new();
        while let Some(next) = open.pop() {
            if done.insert(next.clone()) {
                open.extend(scan.read_calls(&next));
            }
        }
        scan.read_timeouts();
        scan
    }

    /// Reads all calls of a constructor; returns the callables that pass a parameter on to it.
    fn read_calls(&mut self, constructor: &Constructor) -> Vec<Constructor> {
        let mut derived = Vec::new();
        for file in 0..self.files.len() {
            let source = &self.files[file];
            if !source.path.starts_with(&constructor.within) {
                continue;
            }
            // A file that defines the name has another one, whose body is read.
            let is_own = |c: &source::Callable| c.name == constructor.name;
            if constructor.strict && source.callables.iter().any(is_own) {
                continue;
            }
            let last = constructor.name.rsplit("::").next().unwrap_or_default();
            let places = source.places.get(last).into_iter().flatten();
            let calls: Vec<usize> = places
                .filter_map(|at| call(source, *at, &constructor.name))
                .collect();
            for open in calls {
                derived.extend(self.read_call(file, open, constructor));
            }
        }
        derived
    }

    fn read_call(
        &mut self,
        file: usize,
        open: usize,
        constructor: &Constructor,
    ) -> Vec<Constructor> {
        let arguments = self.files[file].arguments(open);
        let before = open.wrapping_sub(2);
        if self.files[file].word(before) == Some("struct") {
            return Vec::new();
        }
        let mut found = Found::default();
        for place in &constructor.texts {
            if let Some(argument) = arguments.get(*place) {
                self.resolve(file, argument.clone(), &mut found, 0);
            }
        }
        let kind = match &constructor.kind {
            Kind::Argument(place) => arguments
                .get(*place)
                .map_or(Kind::Area, |a| self.kind(file, a.clone())),
            kind => kind.clone(),
        };
        let source = &self.files[file];
        if constructor.strict && found.texts.is_empty() && found.params.is_empty() && !found.is_read
        {
            let texts = constructor
                .texts
                .iter()
                .filter_map(|place| arguments.get(*place));
            let words = texts
                .flat_map(Clone::clone)
                .filter_map(|at| source.word(at));
            let words: Vec<&str> = words.collect();
            self.unread.insert((source.path.clone(), words.join(" ")));
        }
        let several = matches!(constructor.kind, Kind::Argument(_));
        let heading = match &kind {
            Kind::Named(name) => name.clone(),
            _ if several => SEVERAL.to_owned(),
            _ => area(&source.path).to_owned(),
        };
        let path = shown(&source.path);
        for text in &found.texts {
            let headings = self.texts.entry(text.clone()).or_default();
            headings
                .entry(heading.clone())
                .or_default()
                .insert(path.clone());
        }
        let derived = found.params.iter().map(|(file, callable, param)| {
            let source = &self.files[*file];
            let callable = &source.callables[*callable];
            Constructor {
                name: callable.name.clone(),
                texts: vec![*param],
                kind: kind.clone(),
                within: source.path.clone(),
                strict: false,
            }
        });
        derived.collect()
    }

    /// The kind in an argument, or in the variable that it is.
    fn kind(&self, file: usize, argument: Range<usize>) -> Kind {
        let source = &self.files[file];
        let kinds = |range: Range<usize>| -> BTreeSet<String> {
            let of = range.filter(|at| source.word(*at) == Some("ErrorKind"));
            of.filter_map(|at| source.word(at + 3)).map(camel).collect()
        };
        let mut named = kinds(argument.clone());
        if named.is_empty()
            && let Some(name) = source.word(argument.start)
        {
            let around = source.around(argument.start);
            let place = around
                .first()
                .and_then(|c| c.params.iter().position(|param| param == name));
            if let Some(place) = place {
                return Kind::Argument(place);
            }
            named = source
                .binding(name, argument.start)
                .map(kinds)
                .unwrap_or_default();
        }
        match named.len() {
            1 => Kind::Named(named.into_iter().next().unwrap()),
            _ => Kind::Area,
        }
    }

    /// Collects the texts of an expression, of the variables in it and of the functions that it calls.
    fn resolve(&self, file: usize, range: Range<usize>, found: &mut Found, depth: usize) {
        if depth > 3 || !found.visited.insert((file, range.start)) {
            return;
        }
        let source = &self.files[file];
        let mut next = range.start;
        while next < range.end {
            let at = next;
            next += 1;
            if let Token::Text(_) = &source.tokens[at] {
                let text = source.shown(at).unwrap_or_default();
                found.is_read = true;
                for name in placeholders(&text) {
                    self.resolve_name(file, at, name, found, depth);
                }
                if is_prose(&text) {
                    found.texts.insert(text.trim().to_owned());
                }
                continue;
            }
            let Some(word) = source.word(at) else {
                continue;
            };
            if source.is(at + 1, '!') && LOGS.contains(&word) && source.is(at + 2, '(') {
                next = source.behind(at + 2);
                continue;
            }
            let is_member = source.is(at.wrapping_sub(1), '.');
            let is_own = is_member && source.word(at.wrapping_sub(2)) == Some("self");
            if source.is(at + 1, '(') {
                if !is_member || is_own {
                    self.resolve_call(file, at, word, found, depth);
                }
            } else if !is_member && !is_followed(source, at) {
                self.resolve_name(file, at, word, found, depth);
            }
        }
    }

    fn resolve_name(&self, file: usize, at: usize, name: &str, found: &mut Found, depth: usize) {
        let source = &self.files[file];
        if name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
            self.resolve_constant(file, name, found);
            return;
        }
        let binding = source.binding(name, at);
        for callable in source.around(at) {
            if let Some(binding) = binding.clone().filter(|b| callable.body.contains(&b.start)) {
                self.resolve(file, binding, found, depth + 1);
                return;
            }
            if let Some(param) = callable.params.iter().position(|param| param == name) {
                let index = source
                    .callables
                    .iter()
                    .position(|c| std::ptr::eq(c, callable));
                found.params.insert((file, index.unwrap(), param));
                return;
            }
        }
        // A function that is passed on.
        self.resolve_call(file, at, name, found, depth);
    }

    /// Collects the texts of a function; its parameters are in the call.
    fn resolve_call(&self, file: usize, at: usize, name: &str, found: &mut Found, depth: usize) {
        if depth > 1 || NOT_FOLLOWED.contains(&name) {
            return;
        }
        let source = &self.files[file];
        let module = at.checked_sub(3).and_then(|at| source.word(at));
        let module = module.filter(|module| source.is(at - 1, ':') && *module != "Self");
        let is_module = |path: &str| match module {
            Some(module) => path.ends_with(&format!("/{module}.rs")),
            None => path == source.path,
        };
        let files = self.files.iter().enumerate();
        for (other, source) in files.filter(|(_, source)| is_module(&source.path)) {
            let callable = source.callables.iter().find(|c| c.name == name);
            if let Some(callable) = callable.filter(|c| other != file || !c.body.contains(&at)) {
                let params = found.params.clone();
                self.resolve(other, callable.body.clone(), found, depth + 1);
                found.params = params;
            }
        }
    }

    fn resolve_constant(&self, file: usize, name: &str, found: &mut Found) {
        let others = self
            .files
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != file);
        let files = std::iter::once((file, &self.files[file])).chain(others);
        for (_, source) in files {
            let is_constant = |at: &usize| {
                matches!(source.word(*at), Some("const" | "static"))
                    && source.word(at + 1) == Some(name)
            };
            let places = source.places.get(name).into_iter().flatten();
            let mut before = places.filter_map(|at| at.checked_sub(1));
            let Some(at) = before.find(is_constant) else {
                continue;
            };
            let end = (at..source.tokens.len()).find(|at| source.is(*at, ';'));
            for at in at..end.unwrap_or(at) {
                let text = source.shown(at).filter(|text| is_prose(text));
                found.is_read |= text.is_some();
                found.texts.extend(text.map(|text| text.trim().to_owned()));
            }
            return;
        }
    }

    /// Reads the fields of each `TimedOut`, whose error is made of them.
    fn read_timeouts(&mut self) {
        for file in 0..self.files.len() {
            let source = &self.files[file];
            let mut found = Found::default();
            for at in (0..source.tokens.len()).filter(|at| source.word(*at) == Some("TimedOut")) {
                if !source.is(at + 1, '{') {
                    continue;
                }
                for field in source.arguments(at + 1) {
                    if matches!(source.word(field.start), Some("what" | "advice")) {
                        self.resolve(file, field.start + 2..field.end, &mut found, 0);
                    }
                }
            }
            let path = shown(&source.path);
            for text in found.texts {
                let headings = self.texts.entry(text).or_default();
                headings
                    .entry("timeout".to_owned())
                    .or_default()
                    .insert(path.clone());
            }
        }
    }

    /// Reads the functions of [`REASONS`].
    fn read_reasons(&mut self) {
        for (path, name) in REASONS {
            let file = self.files.iter().position(|file| file.path == *path);
            let file = file.unwrap_or_else(|| panic!("REASONS: {path} not found"));
            let source = &self.files[file];
            let mut found = Found::default();
            for callable in source.callables.iter().filter(|c| c.name == *name) {
                self.resolve(file, callable.body.clone(), &mut found, 2);
            }
            assert!(
                !found.texts.is_empty(),
                "REASONS: {name} in {path} has no text"
            );
            let heading = area(path).to_owned();
            for text in found.texts {
                let headings = self.texts.entry(text).or_default();
                let files = headings.entry(heading.clone()).or_default();
                files.insert(shown(path));
            }
        }
    }
}

/// Returns a path as the page has it: the room, and the file in it.
fn shown(path: &str) -> String {
    let path = path.trim_start_matches("src/");
    path.trim_start_matches("crates/").replacen("/src/", "/", 1)
}

fn area(path: &str) -> &'static str {
    let area = AREAS.iter().find(|(prefix, _)| path.starts_with(prefix));
    area.unwrap().1
}

/// The scan of all sources, which takes seconds.
static SCAN: LazyLock<Scan> = LazyLock::new(scan);

fn scan() -> Scan {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = program(root);
    files.sort();
    let path = |file: &Path| {
        file.strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let files = files.iter().map(|file| (path(file), file));
    let files = files.filter(|(path, _)| {
        !path.split('/').any(|part| part.starts_with("tests"))
            && path != "crates/core/src/testing.rs"
    });
    let files =
        files.map(|(path, file)| Source::new(&path, &code(&fs::read_to_string(file).unwrap())));
    let mut scan = Scan::from(files.collect());
    scan.read_reasons();
    scan
}

#[test]
fn error_messages_are_listed_in_the_docs() {
    let page = page(&SCAN.texts);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored == page,
        "{PAGE} differs from the sources: run `UPDATE_MESSAGES=1 cargo test --test bridge tidy`"
    );
}

#[test]
fn each_error_constructor_has_a_text() {
    let unread = &SCAN.unread;
    let listed = FORWARDED
        .iter()
        .map(|(file, argument)| ((*file).to_owned(), (*argument).to_owned()));
    let listed: BTreeSet<_> = listed.collect();
    let missing: Vec<_> = unread.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "no text found; use a literal, or add to FORWARDED: {missing:#?}"
    );
    let stale: Vec<_> = listed.difference(unread).collect();
    assert!(stale.is_empty(), "remove from FORWARDED: {stale:#?}");
}

/// Texts with words of [`REFUSED`].
fn refused(texts: &Texts) -> Vec<String> {
    let bad = texts.iter().filter_map(|(text, headings)| {
        let words = format!(
            " {} ",
            text.to_lowercase()
                .replace(|c: char| !c.is_alphanumeric(), " ")
        );
        let word = REFUSED
            .iter()
            .find(|word| words.contains(&format!(" {word} ")))?;
        Some(format!("{text:?} has {word:?} ({headings:?})"))
    });
    bad.collect()
}

#[test]
fn error_messages_use_plain_words() {
    let texts = &SCAN.texts;
    assert!(texts.len() > 300, "{}", texts.len());
    let bad = refused(texts);
    assert!(
        bad.is_empty(),
        "say what failed, why and what to do: {}",
        bad.join("\n")
    );
}

/// The rules must be able to fail.
#[test]
fn texts_and_constructors_without_one_are_found() {
    let sample = r#"
        fn f(id: &str, why: &str) -> Error {
            let message = format!("session {id:?} not found: {}", x.y());
            Error::new(ErrorKind::SessionNotFound, message)
        }
        fn g(said: Said) -> Error {
            let wrong = |why: &str| Error::new(ErrorKind::Resource, format!("cannot read it: {why}"));
            if a { return wrong("nobody is there"); }
            Error::new(ErrorKind::Session, said.text)
        }
    "#;
    let scan = Scan::from(vec![Source::new("crates/core/src/sample.rs", sample)]);
    let texts: Vec<_> = scan
        .texts
        .iter()
        .map(|(text, headings)| (text.as_str(), headings.keys().next().unwrap().as_str()))
        .collect();
    let want = [
        ("cannot read it: {why}", "resource"),
        ("nobody is there", "resource"),
        ("session {id} not found: {x}", "sessionNotFound"),
    ];
    assert_eq!(texts, want);
    assert_eq!(refused(&scan.texts).len(), 1);
    let unread = scan.unread.iter().map(|(_, argument)| argument.as_str());
    assert_eq!(unread.collect::<Vec<_>>(), ["said text"]);
}
