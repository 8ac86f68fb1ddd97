//! Generated blocks of the pages, between `<!-- KIND NAME -->` and `<!-- end -->`.

use super::super::check;
use super::markdown::Types;
use crate::cli::args::Cli;
use crate::cli::schema::generate::{bundle, openrpc};
use clap::CommandFactory as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The lists of methods of a bundle.
const LISTS: [&str; 3] = ["x-methods", "x-notifications", "x-requests"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference")
}

pub fn page(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// The name of the type of a method's parameters or result.
pub fn type_of<'a>(bundle: &'a Value, method: &str, part: &str) -> Option<&'a str> {
    let entry = LISTS.iter().find_map(|list| bundle[list].get(method))?;
    entry[part]["$ref"].as_str()?.rsplit('/').next()
}

/// The names of all methods, notifications and requests.
fn methods(bundle: &Value) -> BTreeSet<&str> {
    let names = LISTS
        .iter()
        .flat_map(|list| bundle[list].as_object().unwrap().keys());
    names.map(String::as_str).collect()
}

/// The text of a generated block.
fn block(kind: &str, name: &str, bundle: &Value) -> String {
    let types = Types::new(bundle);
    let top = |part| type_of(bundle, name, part).unwrap();
    match kind {
        "params" if bundle["x-methods"].get(name).is_some() => types.parameters(top("params")),
        "params" => types.fields(top("params")),
        "result" if bundle["x-requests"].get(name).is_some() => types.parameters(top("result")),
        "result" => types.fields(top("result")),
        "methods" => summaries(name),
        "index" => {
            let types = message_types(bundle);
            let links = types
                .iter()
                .map(|name| format!("[{name}](types.md#{})", anchor(name)));
            links.collect::<Vec<_>>().join(" ·\n") + "\n"
        }
        "types" => types.sections(&message_types(bundle), "##"),
        "chunks" => {
            let mut chunks = types.reachable(["Chunk"]);
            chunks.retain(|name| name.ends_with("Chunk"));
            types.sections(&chunks, "###")
        }
        "help" => help(name),
        _ => panic!("<!-- {kind} {name} --> is not a known block"),
    }
}

/// The types that messages refer to, but for chunks.
fn message_types(bundle: &Value) -> BTreeSet<String> {
    let parts = |method| ["params", "result"].map(|part| type_of(bundle, method, part));
    let tops = methods(bundle).into_iter().flat_map(parts).flatten();
    let mut found = Types::new(bundle).reachable(tops.chain(["Chunk"]));
    found.retain(|name| !name.ends_with("Chunk"));
    found
}

/// A table of methods with one sentence each.
fn summaries(list: &str) -> String {
    let document = openrpc();
    let rows = document[list].as_array().unwrap().iter().map(|method| {
        let (name, summary) = (method["name"].as_str(), method["summary"].as_str());
        let (name, summary) = (name.unwrap(), summary.unwrap());
        format!("| [`{name}`](#{}) | {summary} |\n", anchor(name))
    });
    let rows: String = rows.collect();
    format!("| name | purpose |\n|-|-|\n{rows}")
}

/// The help of a command, as `--help` prints it.
fn help(name: &str) -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut command = &mut command;
    for word in name.split(' ').skip(1) {
        command = command.find_subcommand_mut(word).unwrap();
    }
    // The value of a variable depends on where the test runs.
    let mut command = command.clone().mut_args(|arg| arg.hide_env_values(true));
    let text = command.render_long_help().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n").trim_end())
}

/// All commands of acpipe, by their names.
fn commands() -> Vec<String> {
    fn collect(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        for inner in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            collect(inner, &format!("{path} {}", inner.get_name()), found);
        }
    }
    let mut found = Vec::new();
    collect(&Cli::command(), "acpipe", &mut found);
    found
}

/// The anchor of a heading, as GitHub makes it.
pub fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let kept: String = heading.to_lowercase().chars().filter(kept).collect();
    kept.replace(' ', "-")
}

/// A page with its blocks written anew.
fn expand(text: &str, bundle: &Value) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let mark = line.strip_prefix("<!-- ");
        let mark = mark.and_then(|line| line.strip_suffix(" -->"));
        // The table of errors has marks of its own.
        if let Some(mark) = mark.filter(|mark| !mark.ends_with("table")) {
            let (kind, name) = mark.split_once(' ').unwrap_or((mark, ""));
            out += &block(kind, name, bundle);
            assert!(lines.any(|l| l == "<!-- end -->"), "{line} has no end");
            out += "<!-- end -->\n";
        }
    }
    out
}

#[test]
fn generated_blocks_are_up_to_date() {
    let bundle = bundle();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        // The test of the table of errors writes its page itself.
        if path.file_name().is_some_and(|name| name != "errors.md") {
            let text = std::fs::read_to_string(&path).unwrap();
            check(&path, &expand(&text, &bundle));
        }
    }
}

/// The sections of methods: name and text.
pub fn sections(text: &str) -> Vec<(&str, &str)> {
    let section = |part| {
        let (heading, body): (&str, &str) = str::split_once(part, '\n')?;
        let name = heading.strip_prefix('`')?.strip_suffix('`')?;
        Some((name, body))
    };
    text.split("\n## ").skip(1).filter_map(section).collect()
}

#[test]
fn every_method_has_a_section_and_every_section_a_method() {
    let (bundle, page) = (bundle(), page("protocol.md"));
    let sections = sections(&page);
    let names: BTreeSet<&str> = sections.iter().map(|(name, _)| *name).collect();
    assert_eq!(sections.len(), names.len(), "a method has two sections");
    assert_eq!(names, methods(&bundle));
    for (name, body) in sections {
        let has = |kind: &str| body.contains(&format!("<!-- {kind} {name} -->"));
        assert!(has("params"), "{name} has no table of parameters");
        let result = type_of(&bundle, name, "result").is_some();
        assert_eq!(has("result"), result, "{name}: the table of the result");
    }
}

#[test]
fn every_command_is_on_the_page_of_the_command_line() {
    let page = page("command-line.md");
    for command in commands() {
        let mark = format!("<!-- help {command} -->");
        assert!(page.contains(&mark), "command-line.md lacks {mark}");
    }
}
