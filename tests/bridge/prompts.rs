//! Prompts of a run: from arguments, files and stdin, in any encoding, and with attached files.

use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{end, say};
use crate::harness::{World, calls};
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0";

/// Script of an agent with these prompt capabilities.
fn agent(takes: &Value) -> Value {
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"promptCapabilities": takes}}}]],
        "session/prompt": [[say("seen"), end("end_turn")]],
    })
}

/// Returns the prompt that the agent received.
fn prompt(outcome: &Outcome) -> Value {
    calls(&outcome.log, "session/prompt")[0]["params"]["prompt"].clone()
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn prompts_come_from_options_files_and_stdin_in_order() {
    let world = World::new();
    let one = world.file("one.md", "# one\n");
    let two = world.file("two.md", "two\n");
    let cases: [(&[&str], &str, &str); 8] = [
        (&["--prompt=-x is odd"], "", "-x is odd"),
        (&["--prompt", "--all", "words"], "", "--all\n\nwords"),
        (&["-f", &one], "", "# one"),
        (
            &["words", "-f", &one, "--file", &two],
            "",
            "words\n\n# one\n\ntwo",
        ),
        (&["-f", &one], "piped", "# one\n\npiped"),
        (&["-f", "-", "-f", &two], "piped", "piped\n\ntwo"),
        (&["-"], "piped", "piped"),
        (&["a", "-"], "", "a -"),
    ];
    for (args, stdin, want) in cases {
        let args = [&["run"], args].concat();
        let outcome = Run::new(&args)
            .script(&json!({}))
            .stdin(stdin)
            .go()
            .expect(0);
        assert_eq!(prompt(&outcome), text(want), "{args:?}");
    }
}

#[test]
fn unreadable_prompt_error_suggests_a_fix() {
    let cases: [(&[&str], &str); 4] = [
        (
            &["-f", "/no/such/file"],
            "--file: cannot read /no/such/file",
        ),
        (&["-fix the tests"], "--prompt='-…'"),
        (
            &["--attach", "/no/such/file", "x"],
            "--attach: cannot read /no/such/file",
        ),
        (&["--", "fix"], "--prompt='-…'"),
    ];
    for (args, says) in cases {
        let args = [&["run"], args].concat();
        let outcome = Run::new(&args).go().expect(2);
        assert!(
            outcome.stderr.contains(says),
            "{args:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn text_that_is_not_utf8_is_taken_with_a_note() {
    let outcome = Run::new(&["run", "read:"])
        .script(&json!({}))
        .stdin(b"caf\xe9 na\xefve")
        .go()
        .expect(0);
    assert_eq!(prompt(&outcome), text("read:\n\ncaf\u{fffd} na\u{fffd}ve"));
    assert!(
        outcome
            .stderr
            .contains("stdin is not UTF-8 text: 2 of 10 bytes were replaced"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn files_are_attached_in_the_form_that_the_agent_takes() {
    let world = World::new();
    let image = world.dir.join("shot.png");
    std::fs::write(&image, PNG).unwrap();
    let image = image.to_str().unwrap();
    let notes = world.file("my notes.md", "# notes");
    let all = agent(&json!({"image": true, "embeddedContext": true}));
    let args = ["run", "look", "--attach", image, "--attach", &notes];
    let outcome = Run::new(&args).script(&all).go().expect(0);
    let blocks = prompt(&outcome);
    assert_eq!(blocks[0]["text"], "look");
    assert_eq!(
        blocks[1],
        json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAA=="})
    );
    assert_eq!(blocks[2]["type"], "resource");
    assert_eq!(blocks[2]["resource"]["text"], "# notes");
    assert_eq!(blocks[2]["resource"]["mimeType"], "text/markdown");
    // Without text the file is the whole prompt.
    let alone = Run::new(&["run", "--attach", image])
        .script(&all)
        .go()
        .expect(0);
    assert_eq!(prompt(&alone).as_array().unwrap().len(), 1);
    // An agent without embedded context receives a link to the file.
    let none = agent(&json!({}));
    let linked = Run::new(&["run", "look", "--attach", &notes])
        .script(&none)
        .go()
        .expect(0);
    let link = &prompt(&linked)[1];
    assert_eq!(link["type"], "resource_link");
    assert!(
        link["uri"].as_str().unwrap().ends_with("/my%20notes.md"),
        "{link}"
    );
    assert!(
        link["uri"].as_str().unwrap().starts_with("file:///"),
        "{link}"
    );
    // Likewise for an image, with a note.
    let linked = Run::new(&["run", "look", "--attach", image])
        .script(&none)
        .go()
        .expect(0);
    let link = &prompt(&linked)[1];
    assert_eq!(link["type"], "resource_link");
    assert!(
        link["uri"].as_str().unwrap().ends_with("/shot.png"),
        "{link}"
    );
    assert!(
        linked.stderr.contains(
            "the agent does not accept the content of shot.png; it receives a link to the file"
        ),
        "{}",
        linked.stderr
    );
}
