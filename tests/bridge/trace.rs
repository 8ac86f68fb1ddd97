//! `acpipe trace`: timelines of tapes and stored sessions.

use crate::harness::World;
use crate::harness::terminal::Screen;
use crate::sessions::Home;
use std::fs;
use std::path::{Path, PathBuf};

/// A recording of an agent whose process was killed during a prompt.
fn recording() -> PathBuf {
    let name = "tests/transcripts/recordings/claude-agent-acp-cli-killed.ndjson";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn tape_becomes_a_page_on_stdout_or_in_a_file() {
    let home = Home::answering();
    let tape = recording();
    let piped = home.acpipe(&["trace", text(&tape)]).go().expect(0);
    assert!(piped.text().starts_with("<!doctype html>"));
    assert!(piped.text().contains("Please start a new session"));
    assert_eq!(piped.stderr, "");
    let file = home.world.dir.join("page.html");
    let args = ["trace", text(&tape), "-o", text(&file)];
    let saved = home.acpipe(&args).go().expect(0);
    assert_eq!(saved.text(), "");
    assert!(saved.stderr.contains("wrote"), "{}", saved.stderr);
    assert!(fs::read_to_string(file).unwrap().ends_with("</html>\n"));
}

#[test]
fn stored_session_is_found_by_its_name_and_shown_as_text() {
    let home = Home::answering();
    home.run(&["--session", "mine", "hello there"])
        .go()
        .expect(0);
    let shown = home.acpipe(&["trace", "--text", "mine"]).go().expect(0);
    let shown = shown.text();
    for part in [
        "client →       prompt  hello there",
        "answer",
        "prompt ok after",
        "end_turn",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let log = home.log("mine");
    let exported = home.acpipe(&["trace", "--text", text(&log)]).go().expect(0);
    let rows = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&exported.text()), rows(&shown));
}

#[test]
fn source_that_is_no_tape_and_no_session_is_an_error_with_advice() {
    let home = Home::answering();
    let page = home.world.dir.join("notes.txt");
    fs::write(&page, "not a tape\n").unwrap();
    let wrong = home.acpipe(&["trace", text(&page)]).go().expect(2);
    assert!(wrong.stderr.contains("as a tape"), "{}", wrong.stderr);
    let missing = home.acpipe(&["trace", "no-such-name"]).go().expect(1);
    let advice = "it is neither a file nor a session";
    assert!(missing.stderr.contains(advice), "{}", missing.stderr);
    assert_eq!(missing.text(), "");
}

#[test]
fn page_goes_beside_the_tape_at_a_terminal_and_replaces_only_a_page() {
    let world = World::new();
    fs::copy(recording(), world.dir.join("a.tape")).unwrap();
    let mut screen = Screen::new(world);
    screen.start(&["trace", "a.tape"], "");
    let (code, shown, world) = screen.next();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("wrote a.tape.html"), "{shown}");
    assert!(!shown.contains("<html"), "{shown}");
    let page = world.dir.join("a.tape.html");
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"));

    let mut screen = Screen::new(world);
    screen.start(&["trace", "a.tape"], "");
    let (code, shown, world) = screen.next();
    assert_eq!(code, 0, "a page is written again: {shown}");

    fs::write(&page, "my notes\n").unwrap();
    let mut screen = Screen::new(world);
    screen.start(&["trace", "a.tape"], "");
    let (code, shown, _world) = screen.next();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("choose a file with -o"), "{shown}");
    assert_eq!(fs::read_to_string(&page).unwrap(), "my notes\n");
}
