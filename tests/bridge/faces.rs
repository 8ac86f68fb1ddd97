//! Table of faces: situations, and what each face of acpipe shows of them.
//!
//! The page `docs/reference/faces.md` is generated; `UPDATE_FACES=1` writes it anew.

mod actors;
mod attached;
mod plain;
mod scenes;
mod seen;
mod situations;
mod stage;

use crate::harness::FAKE_AGENT;
use scenes::Scene;
use serde_json::Value;
use situations::Situation;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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
            let end =
                after.trim_start_matches(|c: char| !matches!(c, '`' | ':' | ';' | ',' | '"' | ')'));
            format!("{before}PATH{end}")
        }
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A situation at a face: what it shows, or why it cannot exist there.
type Cell = Result<Shown, &'static str>;

/// Number of cells that are played at once: most of them wait for processes.
const AT_ONCE: usize = 12;

/// Plays the cells of a table, several at once, and returns its rows.
fn play(rows: usize, cell: impl Fn(usize, usize) -> Cell + Sync) -> Vec<Vec<Cell>> {
    let count = rows * FACES.len();
    let next = AtomicUsize::new(0);
    let cells: Vec<Mutex<Option<Cell>>> = (0..count).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    // Column by column, so that the cells of a slow row are not played one after the other.
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let (face, row) = (at / rows, at % rows);
                    let played = cell(row, face);
                    *cells[row * FACES.len() + face].lock().unwrap() = Some(played);
                }
            });
        }
    });
    let mut cells = cells
        .into_iter()
        .map(|cell| cell.into_inner().unwrap().unwrap());
    let row = |_| cells.by_ref().take(FACES.len()).collect();
    (0..rows).map(row).collect()
}

/// Plays a cell of the table: of the situations, then of the scenes.
fn play_cell(situations: &[Situation], scenes: &[Scene], row: usize, face: usize) -> Cell {
    if let Some(situation) = situations.get(row) {
        return Ok(FACES[face].1(situation));
    }
    let scene = &scenes[row - situations.len()];
    let actor = scenes::FACES[face].actor(scene.event)?;
    Ok(Shown::without_chunks(stage::play(scene, actor)))
}

fn page(names: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let mut page = String::from(HEAD);
    for (name, row) in names.iter().zip(rows) {
        page.extend(["\n## ", name, "\n\n"]);
        if let Some((_, why)) = DIFFERENT.iter().find(|(different, _)| different == name) {
            page.extend(["The chunks differ: ", why, ".\n\n"]);
        }
        page += "| face | shows |\n|-|-|\n";
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for ((face, _), cell) in FACES.iter().zip(row) {
            let seen = match cell {
                Ok(shown) => seen::joined(shown.chunks.into_iter().chain(shown.other).collect()),
                Err(why) => {
                    match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                        Some((_, faces)) => faces.push(face),
                        None => reasons.push((why, vec![face])),
                    }
                    "—".to_owned()
                }
            };
            assert!(!seen.is_empty(), "{face} shows nothing: {name}");
            let seen = stable(&seen).replace('|', "\\|").replace('\n', "\\n");
            page.extend(["| ", face, " | ", &seen, " |\n"]);
        }
        page.extend((!reasons.is_empty()).then_some('\n'));
        for (why, faces) in reasons {
            page.extend(["- ", &faces.join(", "), ": ", why, ".\n"]);
        }
    }
    page
}

/// Checks that all faces that show chunks show the same ones. A face whose call fails before the turn shows none.
fn check_chunks(situation: &Situation, row: &[Cell]) {
    let is_different = DIFFERENT.iter().any(|(name, _)| *name == situation.name);
    let shown = FACES.iter().zip(row);
    let shown =
        shown.filter_map(|((face, _), shown)| Some((face, shown.as_ref().ok()?.chunks.as_ref()?)));
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
`attach` follows the turn of another client, which sends the prompt and answers the requests. The last situations are those of faces
at a daemon, in a session that another client has opened; — is for a situation that a face cannot have, with the reason below.
";

#[test]
fn page_of_faces_is_what_the_faces_show() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/faces.md");
    let situations = situations::all();
    let scenes = scenes::all();
    let names = situations.iter().map(|situation| situation.name);
    let names: Vec<&str> = names.chain(scenes.iter().map(|scene| scene.name)).collect();
    let rows = play(names.len(), |row, face| {
        play_cell(&situations, &scenes, row, face)
    });
    for (situation, row) in situations.iter().zip(&rows) {
        check_chunks(situation, row);
    }
    let page = page(&names, rows);
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
