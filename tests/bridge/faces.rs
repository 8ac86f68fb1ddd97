//! Table of faces: situations, and what each face of acpipe shows of them.
//!
//! The page `docs/reference/faces.md` is generated; `UPDATE_FACES=1` writes it anew.

mod attached;
mod plain;
mod seen;
mod situations;

use crate::harness::FAKE_AGENT;
use serde_json::Value;
use situations::Situation;
use std::path::Path;

/// Description of a situation at one face.
#[derive(Default)]
struct Shown {
    /// Description of the chunks, if the face shows chunks.
    chunks: Option<String>,
    /// Everything else.
    other: Vec<String>,
}

impl Shown {
    fn of(chunks: &[Value], other: Vec<String>) -> Self {
        let chunks = Some(seen::chunks(chunks));
        Self { chunks, other }
    }

    fn without_chunks(other: Vec<String>) -> Self {
        Self {
            chunks: None,
            other,
        }
    }
}

type Shows = fn(&Situation) -> Shown;

/// Faces in the order of the table.
const FACES: [(&str, Shows); 10] = [
    ("`run`", plain::run),
    ("chat", plain::chat),
    ("`attach`", attached::attach),
    ("`run -o json`", plain::run_json),
    ("`run -o agui`", plain::run_agui),
    ("`run -o chunks`", plain::run_chunks),
    ("`serve`", plain::serve),
    ("HTTP", plain::http),
    ("library", plain::library),
    ("`acp`", plain::acp),
];

/// Situations in which the chunks of the faces differ, and why.
const DIFFERENT: [(&str, &str); 3] = [
    (
        "Rate limit",
        "`run` tries again by itself; other clients ask for that with `retry`",
    ),
    (
        "Permission, asked of the user",
        "a run without a terminal answers no requests; a stream of HTTP ends at the question, and the next request answers it",
    ),
    ("Question", "a run without a terminal answers no questions"),
];

/// Replaces what differs from run to run.
fn stable(text: &str) -> String {
    let agent = text.replace(FAKE_AGENT, "AGENT");
    let tmp = env!("CARGO_TARGET_TMPDIR");
    let words = agent.split(' ').map(|word| match word.split_once(tmp) {
        Some((before, after)) => {
            let end = after.trim_start_matches(|c: char| !matches!(c, '`' | ';' | ',' | '"' | ')'));
            format!("{before}PATH{end}")
        }
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Plays all situations at once, each with one face after the other.
fn play(situations: &[Situation]) -> Vec<Vec<Shown>> {
    std::thread::scope(|scope| {
        let each = |situation| {
            scope.spawn(move || {
                let shown = FACES.iter().map(|(_, shows)| shows(situation));
                shown.collect::<Vec<_>>()
            })
        };
        let rows: Vec<_> = situations.iter().map(each).collect();
        rows.into_iter().map(|row| row.join().unwrap()).collect()
    })
}

fn page(situations: &[Situation], rows: Vec<Vec<Shown>>) -> String {
    let mut page = String::from(HEAD);
    for (situation, row) in situations.iter().zip(rows) {
        page.extend(["\n## ", situation.name, "\n\n"]);
        if let Some((_, why)) = DIFFERENT.iter().find(|(name, _)| *name == situation.name) {
            page.extend(["The chunks differ: ", why, ".\n\n"]);
        }
        page += "| face | shows |\n|-|-|\n";
        for ((face, _), shown) in FACES.iter().zip(row) {
            let seen = seen::joined(shown.chunks.into_iter().chain(shown.other).collect());
            assert!(!seen.is_empty(), "{face} shows nothing: {}", situation.name);
            let seen = stable(&seen).replace('|', "\\|");
            page.extend(["| ", face, " | ", &seen, " |\n"]);
        }
    }
    page
}

/// Checks that all faces that show chunks show the same ones. A face whose call fails before the turn shows none.
fn check_chunks(situation: &Situation, row: &[Shown]) {
    let is_different = DIFFERENT.iter().any(|(name, _)| *name == situation.name);
    let shown = FACES.iter().zip(row);
    let shown = shown.filter_map(|((face, _), shown)| Some((face, shown.chunks.as_ref()?)));
    let mut chunks = shown.filter(|(_, chunks)| situation.starts && !chunks.is_empty());
    let Some((first, want)) = chunks.next() else {
        return;
    };
    let other = chunks.find(|(_, chunks)| *chunks != want);
    match other {
        Some((face, chunks)) if !is_different => panic!(
            "{}: {face} shows\n{chunks}\nand {first} shows\n{want}",
            situation.name
        ),
        None if is_different => panic!("{}: the faces do not differ", situation.name),
        _ => {}
    }
}

const HEAD: &str = "# What each face shows

acpipe has many faces: forms of the output of `run`, a chat, the neutral protocol, HTTP, the library, ACP. This page shows what each
of them shows of one prompt, in each situation. It is generated from runs with a scripted agent, and a test compares it
(`tests/bridge/faces.rs`); after a wanted change, write it anew with `UPDATE_FACES=1 cargo test --test bridge -- faces::`.

Chunks that say nothing about the situation (`start`, steps, `data-session`) are left out, and the pieces of a text are joined.
Each client chooses the first option that it is offered. The faces that show chunks show the same ones, unless a line says why not.
";

#[test]
fn page_of_faces_is_what_the_faces_show() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/faces.md");
    let situations = situations::all();
    let rows = play(&situations);
    for (situation, row) in situations.iter().zip(&rows) {
        check_chunks(situation, row);
    }
    let page = page(&situations, rows);
    if std::env::var_os("UPDATE_FACES").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (kept, now) in kept.lines().zip(page.lines()) {
        assert_eq!(kept, now, "write the page anew with UPDATE_FACES=1");
    }
    assert_eq!(kept.lines().count(), page.lines().count());
}
