//! Facts about a tool call that are derived from prose: its title, and the text displayed with it.
//!
//! Some agents send neither a kind nor an input in a permission request. Their titles have known forms
//! (`Shell: echo hi`, `Bash(echo hi)`), and their texts quote the pending action (``Run command `echo hi` ``)
//! or are the tool's arguments as JSON. Prose may be truncated or written by a model, so it is only a reason
//! to deny or to ask. It is a reason to allow only if two sources agree, or if the arguments are available as
//! JSON.

use super::input::{LARGEST, ParsedInput, Part};
use super::members::Group;
use super::names;
use acpipe_json::{Members, prefix, raw_object, text};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Maximum bytes of a text that are searched for quotes.
const SEARCHED: usize = 16 << 10;

/// Maximum number of quotes that are read.
const QUOTES: usize = 64;

/// Words before a command in titles that are not names of tools.
const RUNS: &[&str] = &[
    "command",
    "execute",
    "run",
    "running",
    "run command",
    "terminal",
];

/// Verbs before a quote in a text, with the kind of tool that they indicate.
const VERBS: &[(&str, &str)] = &[
    ("command", "execute"),
    ("execute", "execute"),
    ("executing", "execute"),
    ("run", "execute"),
    ("running", "execute"),
    ("append", "edit"),
    ("create", "edit"),
    ("edit", "edit"),
    ("modify", "edit"),
    ("overwrite", "edit"),
    ("replace", "edit"),
    ("update", "edit"),
    ("write", "edit"),
    ("open", "read"),
    ("read", "read"),
    ("view", "read"),
    ("delete", "delete"),
    ("remove", "delete"),
    ("move", "move"),
    ("rename", "move"),
    ("fetch", "fetch"),
];

/// Facts derived from prose.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the prose"
)]
pub struct Derived {
    pub kind: Option<&'static str>,
    /// Name of the tool in the title.
    pub name: Option<String>,
    /// Facts from arguments that are displayed as JSON.
    pub arguments: Option<ParsedInput>,
    pub commands: Vec<String>,
    pub paths: Vec<String>,
    /// `true` if the title has a known form with an argument.
    pub is_titled: bool,
    pub edits: bool,
    /// `true` if anything describes the action: an argument in the title, a quote after a verb, or arguments
    /// as JSON.
    pub describes_action: bool,
    /// `true` if the facts are complete: the arguments could be read, or title and text agree.
    pub whole: bool,
    /// `true` if the text describes the action of the tool that the title names: the same kind, with the same argument.
    pub confirms_name: bool,
    /// `true` if a part was truncated, so that the call may contain anything.
    pub cut: bool,
}

/// Text in backticks, with the kind of tool that the words before it indicate.
#[derive(Debug)]
struct Quote {
    text: String,
    kind: Option<&'static str>,
}

impl Derived {
    /// Derives facts from the titles and texts of a call; `declared` is the kind that the agent declared, if
    /// any.
    #[must_use]
    pub fn of(
        titles: &[&str],
        content: &[&RawValue],
        declared: Option<&str>,
        has_input: bool,
    ) -> Self {
        let mut texts: Vec<String> = content.iter().flat_map(|raw| texts(raw)).collect();
        let count = texts.len();
        texts.retain(|text| text.len() <= LARGEST);
        let is_too_long = texts.len() < count;
        // A command may be the name of a tool: `ls`.
        let is_meant = |form: &ToolTitle<'_>| match (declared, form.kind) {
            (Some(declared), Some(kind)) => declared == kind,
            _ => true,
        };
        let form = titles.iter().find_map(|title| form(title)).filter(is_meant);
        let quotes = quotes(&texts, declared, has_input);
        let of_form = form.as_ref().and_then(|form| form.kind);
        let of_quotes = || quotes.iter().find_map(|quote| quote.kind);
        let mut derived = Self {
            kind: of_form.or_else(of_quotes),
            name: form.as_ref().and_then(|form| form.name.map(str::to_owned)),
            ..Self::default()
        };
        let kind = declared.or(derived.kind);
        derived.arguments = arguments(&texts, Group::of(kind.unwrap_or_default()));
        let argument = form.filter(|form| form.kind.is_some());
        let argument = argument.map_or("", |form| form.argument);
        derived.is_titled = !argument.is_empty();
        let is_cut = is_cut(argument);
        // If the title of a command has no other form, it is the command itself.
        let bare = declared == Some("execute") && argument.is_empty();
        let bare = titles.first().filter(|_| bare).map(|title| title.trim());
        let covers = |quote: &Quote| {
            if is_cut {
                is_cut_of(argument, &quote.text)
            } else {
                quote.text == bare.unwrap_or(argument)
            }
        };
        let is_contradicted = quotes
            .iter()
            .any(|quote| quote.kind.is_some() && !covers(quote));
        let is_repeated = !argument.is_empty() && quotes.iter().any(covers);
        let is_trusted = declared.is_some() && !is_cut && !is_contradicted;
        let arguments = derived.arguments.as_ref();
        let agrees = is_repeated && !is_contradicted || is_trusted;
        derived.whole = arguments.map_or(agrees, |found| found.whole);
        let is_of_form = |quote: &Quote| quote.kind.is_some() && quote.kind == of_form;
        let confirms = |quote: &Quote| is_of_form(quote) && covers(quote);
        derived.confirms_name = is_repeated && !is_contradicted && quotes.iter().any(confirms);
        derived.cut = is_cut && !derived.whole || is_too_long;
        derived.describes_action = !argument.is_empty()
            || quotes.iter().any(|quote| quote.kind.is_some())
            || texts.iter().any(|text| is_object(text));
        for Quote { text, kind: verb } in quotes {
            derived.edits |= verb.is_some_and(|verb| Group::of(verb) == Group::Edit);
            if verb.is_some() && verb != kind {
                derived.add(verb, text.clone());
            }
            derived.add(kind, text);
        }
        let is_whole_elsewhere = is_cut && derived.whole;
        if !argument.is_empty() && !is_whole_elsewhere {
            derived.add(kind, argument.to_owned());
        }
        derived
    }

    fn add(&mut self, kind: Option<&str>, text: String) {
        match kind {
            Some("execute") => self.commands.push(text),
            Some("read" | "edit" | "delete" | "move") => self.paths.push(text),
            // For other kinds, or none, the text is not used.
            _ => {}
        }
    }
}

struct ToolTitle<'a> {
    kind: Option<&'static str>,
    name: Option<&'a str>,
    argument: &'a str,
}

fn form(title: &str) -> Option<ToolTitle<'_>> {
    let title = title.trim();
    if let Some(command) = quoted_whole(title) {
        return Some(ToolTitle {
            kind: Some("execute"),
            name: None,
            argument: command,
        });
    }
    let called = || {
        let (name, rest) = title.split_once('(')?;
        Some((name, rest.strip_suffix(')')?))
    };
    let colon = || title.split_once(": ").or_else(|| title.split_once(":\n"));
    let split = [colon(), called()].into_iter().flatten();
    let (name, argument) = split
        .map(|(name, argument)| (name.trim(), argument.trim()))
        .find(|(name, _)| is_name(name))
        .or_else(|| known(title).map(|_| (title, "")))?;
    let kind = known(name);
    Some(ToolTitle {
        kind,
        name: Some(name),
        argument: quoted_whole(argument).unwrap_or(argument),
    })
}

fn quoted_whole(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.is_empty() && !inner.contains('`')).then_some(inner)
}

/// Returns the kind of the tool that a title names.
fn known(name: &str) -> Option<&'static str> {
    let runs = RUNS.iter().any(|word| word.eq_ignore_ascii_case(name));
    let kind = names::kind(name).or_else(|| names::stands_for(name));
    kind.filter(|kind| *kind != "other")
        .or_else(|| runs.then_some("execute"))
}

/// Returns `true` if a title is only the name of a tool that runs commands.
pub fn is_runner(title: &str) -> bool {
    known(title.trim()) == Some("execute")
}

fn is_name(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    !word.is_empty() && (word.chars().all(is_letter) || known(word).is_some())
}

pub fn is_cut(text: &str) -> bool {
    text.contains('…') || text.contains("...")
}

fn is_cut_of(short: &str, whole: &str) -> bool {
    let split = short.split_once("...").or_else(|| short.split_once('…'));
    split.is_some_and(|(head, tail)| {
        let plain = whole.replace(['\r', '\n'], " ");
        let matches = plain.len() >= head.len() + tail.len();
        matches && !is_cut(tail) && plain.starts_with(head) && plain.ends_with(tail)
    })
}

fn texts(content: &RawValue) -> Vec<String> {
    raw_object! {
        struct ContentItem { content = "content", text = "text" }
    }
    let items: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let read = |item: &&RawValue| {
        let item: ContentItem<'_> = serde_json::from_str(item.get()).ok()?;
        let inner: ContentItem<'_> = serde_json::from_str(item.content?.get()).ok()?;
        text(inner.text).map(Cow::into_owned)
    };
    items.iter().filter_map(read).collect()
}

/// Returns `true` if a text is a tool's arguments as JSON, and not empty.
fn is_object(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{')
        && serde_json::from_str(text).is_ok_and(|raw: &RawValue| Members::of(raw).count() > 0)
}

/// Returns the facts of texts that are a tool's arguments as JSON.
fn arguments(texts: &[String], group: Group) -> Option<ParsedInput> {
    let objects = texts.iter().map(|text| text.trim());
    let objects = objects.filter(|text| text.starts_with('{'));
    let raw: Vec<&RawValue> = objects
        .filter_map(|text| serde_json::from_str(text).ok())
        .collect();
    let found = ParsedInput::of(group, raw.into_iter().map(|raw| (Part::Input, raw)));
    let is_any = !found.commands.is_empty() || !found.paths.is_empty() || !found.strings.is_empty();
    is_any.then_some(found)
}

/// Returns the commands and paths that the texts of a named tool quote, for calls whose input has none.
pub fn quoted(content: &[&RawValue], declared: Option<&str>, has_input: bool) -> Vec<String> {
    let texts: Vec<String> = content.iter().flat_map(|raw| texts(raw)).collect();
    let quotes = quotes(&texts, declared.or(Some("other")), has_input);
    quotes.into_iter().map(|quote| quote.text).collect()
}

/// Returns the quotes in the texts of a call; for a declared kind only those after a verb.
fn quotes(texts: &[String], declared: Option<&str>, has_input: bool) -> Vec<Quote> {
    let quotes = texts.iter().flat_map(|text| quotes_in(text));
    match declared {
        None => quotes.collect(),
        // A plan names actions that it does not run, and the text beside an input only explains the input.
        Some("think" | "switch_mode") => Vec::new(),
        Some(_) if has_input => Vec::new(),
        Some(_) => quotes.filter(|quote| quote.kind.is_some()).collect(),
    }
}

/// Returns the texts in backticks.
fn quotes_in(text: &str) -> Vec<Quote> {
    let text = &text[..prefix(text, SEARCHED)];
    let fence = if text.contains("```") { "```" } else { "`" };
    let parts: Vec<&str> = text.split(fence).take(2 * QUOTES + 1).collect();
    let pairs = parts
        .chunks_exact(2)
        .take(parts.len().saturating_sub(1) / 2);
    let quote = |pair: &[&str]| {
        let (before, text) = (pair[0], pair[1]);
        // The fence may be followed by the name of a language.
        let text = match text.split_once('\n') {
            Some((_, lines)) if fence.len() > 1 => lines,
            _ => text,
        };
        let words = before.split_whitespace().rev().take(3);
        let kind = words.filter_map(verb).last();
        Quote {
            text: text.trim().to_owned(),
            kind,
        }
    };
    let quotes = pairs.map(quote);
    quotes.filter(|quote| !quote.text.is_empty()).collect()
}

fn verb(word: &str) -> Option<&'static str> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphabetic());
    let known = VERBS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(word));
    known.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    fn derived(title: &str, texts: &[&str]) -> Derived {
        let blocks = texts
            .iter()
            .map(|text| json!({"type": "content", "content": {"type": "text", "text": text}}));
        let content = to_raw_value(&blocks.collect::<Vec<_>>()).unwrap();
        Derived::of(&[title], &[&content], None, false)
    }

    #[test]
    fn titles_of_known_forms_name_kind_and_argument() {
        for (title, kind, commands, paths) in [
            ("Shell: echo hi", Some("execute"), &["echo hi"][..], &[][..]),
            ("Run: echo: hi", Some("execute"), &["echo: hi"], &[]),
            ("Bash(echo hi)", Some("execute"), &["echo hi"], &[]),
            ("`echo hi`", Some("execute"), &["echo hi"], &[]),
            ("bash: `ls`", Some("execute"), &["ls"], &[]),
            ("Shell", Some("execute"), &[], &[]),
            ("ReadFile: src/a", Some("read"), &[], &["src/a"]),
            ("WriteFile: src/a", Some("edit"), &[], &["src/a"]),
            ("Grep: rm", Some("search"), &[], &[]),
            ("deploy: now", None, &[], &[]),
            ("Confirm Agent Actions", None, &[], &[]),
            ("Please note: careful", None, &[], &[]),
            ("", None, &[], &[]),
        ] {
            let derived = derived(title, &[]);
            assert_eq!(derived.kind, kind, "{title}");
            assert_eq!(derived.commands, commands, "{title}");
            assert_eq!(derived.paths, paths, "{title}");
            assert!(!derived.whole, "{title}");
        }
    }

    #[test]
    fn title_is_complete_if_the_text_confirms_it() {
        let title = "Shell: echo hi";
        assert!(derived(title, &["Run command `echo hi`"]).whole);
        assert!(!derived(title, &["Run command `echo ho`"]).whole);
        let cut = derived("Shell: echo aaaa...bbbb", &["nothing"]);
        assert!(!cut.whole && cut.cut);
        let cut = derived(
            "Shell: echo aaaa...bbbb",
            &["Run command `echo aaaa; rm x; bbbb`"],
        );
        assert!(cut.whole && !cut.cut);
        assert_eq!(cut.commands, ["echo aaaa; rm x; bbbb"]);
    }

    #[test]
    fn arguments_that_are_shown_as_json_are_read() {
        let derived = derived("Shell: a...z", &[r#"{"command": "a\nrm x\nz"}"#]);
        let arguments = derived.arguments.unwrap();
        assert_eq!(arguments.commands.len(), 1);
        assert!(derived.whole && !derived.cut && derived.commands.is_empty());
    }

    #[test]
    fn quotes_in_a_text_have_the_kind_of_the_verb_before_them() {
        for (text, kind, commands, paths) in [
            (
                "Requesting approval to perform: Run command `echo hi`",
                Some("execute"),
                &["echo hi"][..],
                &[][..],
            ),
            ("Write file `a b`", Some("edit"), &[], &["a b"]),
            ("It wants `x` now", None, &[], &[]),
            ("Run:\n```sh\nrm x\n```", Some("execute"), &["rm x"], &[]),
            ("an open ` only", None, &[], &[]),
        ] {
            let derived = derived("?", &[text]);
            assert_eq!(derived.kind, kind, "{text}");
            assert_eq!(derived.commands, commands, "{text}");
            assert_eq!(derived.paths, paths, "{text}");
        }
    }

    #[test]
    fn long_texts_are_read_in_part() {
        let text = "run `a` ".repeat(LARGEST / 8);
        assert_eq!(derived("?", &[&text]).commands.len(), QUOTES);
    }
}
