//! `acpipe sessions search`, and exports for people.

use crate::harness::steps::{end, say, tool, tool_change};
use crate::sessions::Home;
use serde_json::{Value, json};
use std::fs;

/// Returns sessions in which some text can be found: a newer one, and an older one with a title.
fn home() -> Home {
    let home = Home::new(&json!([[
        say("The Fox jumps.\nAnd the fox "),
        say("sleeps."),
        end("end_turn"),
    ]]));
    home.store("old", "2020-01-01T10:00:00.000Z");
    home.run(&["--session", "mine", "what does the fox do?"])
        .go()
        .expect(0);
    home
}

#[test]
fn text_is_found_in_messages_and_titles_newest_first() {
    let home = home();
    let found = home.sessions(&["search", "fox"]).expect(0);
    assert_eq!(found.stderr, "");
    let text = found.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("mine  ") && lines[0].ends_with("  agent  The Fox jumps.  +1"),
        "{text}"
    );
    assert!(lines[1].ends_with("  you  what does the fox do?"), "{text}");
    let title = home.sessions(&["search", "a title"]).expect(0).text();
    assert_eq!(title, "old  2020-01-01 19:00  title  A title\n");
    // Text that the agent sent in two pieces.
    home.sessions(&["search", "fox sleeps"]).expect(0);
}

#[test]
fn search_is_limited_by_case_directory_number_and_expression() {
    let home = home();
    let count = |args: &[&str]| {
        let args = [&["search"], args].concat();
        home.sessions(&args).expect(0).text().lines().count()
    };
    assert_eq!(count(&["Fox"]), 1);
    assert_eq!(count(&["fox", "--limit", "1"]), 1);
    assert_eq!(count(&["fox", "--cwd", "."]), 2);
    assert_eq!(count(&["-E", "fox (do|sleeps)"]), 2);
    assert_eq!(count(&["-E", "^and"]), 1);
    let none = home.sessions(&["search", "fox", "--cwd", "/p"]).expect(1);
    assert_eq!(none.text(), "");
    assert!(none.stderr.contains("no session"), "{}", none.stderr);
    let nothing = home.sessions(&["search", "wolf", "--json"]).expect(1);
    assert_eq!(nothing.text(), "");
    let invalid = home.sessions(&["search", "-E", "("]).expect(2);
    assert!(
        invalid.stderr.contains("cannot search"),
        "{}",
        invalid.stderr
    );
    // An expression of ordinary text is not one.
    home.sessions(&["search", "do?"]).expect(0);
    home.sessions(&["search", "f.x"]).expect(1);
}

#[test]
fn results_are_available_as_json() {
    let found = home().sessions(&["search", "fox", "--json"]).expect(0);
    let found: Vec<Value> = found
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found[0]["sessionId"], "mine");
    assert_eq!(found[0]["role"], "assistant");
    assert_eq!(found[0]["excerpt"], "The Fox jumps.");
    assert_eq!(found[0]["match"], "Fox");
    assert_eq!(found[0]["matches"], 2);
    assert!(found[0]["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(found[1]["role"], "user");
}

#[test]
fn damaged_log_is_searched_as_far_as_possible() {
    let home = home();
    let log = fs::read_to_string(home.log("mine")).unwrap();
    fs::write(home.log("mine"), log + "{\"record\":\"chu\n").unwrap();
    fs::write(home.log("broken"), "no log\n").unwrap();
    let found = home.sessions(&["search", "fox"]).expect(0);
    assert_eq!(found.text().lines().count(), 2);
    assert!(found.stderr.contains("\"mine\""), "{}", found.stderr);
}

#[test]
fn session_is_exported_as_documents() {
    let home = Home::new(&json!([[
        say("I **look**. <script>alert(1)</script>\n\n```sh\nls"),
        tool(
            "t",
            &json!({"name": "bash", "title": "List </details> files", "rawInput": {"command": "ls"},
                "locations": [{"path": "/p/a.rs", "line": 3}]})
        ),
        tool_change(
            "t",
            &json!({"status": "completed", "rawOutput": "a\n```\n<b>"})
        ),
        end("end_turn"),
    ]]));
    home.run(&["--session", "mine", "# not a *title*"])
        .go()
        .expect(0);
    let md = home.sessions(&["export", "mine", "-f", "md"]).expect(0);
    let md = md.text();
    for part in [
        "# mine\n",
        "\n## User, 20",
        "\n> \\# not a \\*title\\*",
        "\n## Agent, 20",
        "\nI **look**. <script>",
        "\n```sh\nls\n```\n",
        "<details><summary><code>bash</code> List &lt;/details&gt; files: done</summary>",
        "- `/p/a.rs:3`",
        "````\na\n```\n<b>\n````",
    ] {
        assert!(md.contains(part), "{part:?}: {md}");
    }
    let html = home.sessions(&["export", "mine", "--format", "html"]);
    let html = html.expect(0).text();
    for part in [
        "<!doctype html>",
        "default-src 'none'",
        "<strong>look</strong>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<p># not a *title*</p>",
        "List &lt;/details&gt; files",
        "&lt;b&gt;",
        "light-dark(",
    ] {
        assert!(html.contains(part), "{part:?}: {html}");
    }
    assert!(
        !html.contains("<script") && !html.contains("src="),
        "{html}"
    );
    let json = home.sessions(&["export", "mine", "-f", "json"]).expect(0);
    assert_eq!(json.text(), home.sessions(&["export", "mine"]).text());
    home.sessions(&["export", "mine", "-f", "md", "-o", "log"])
        .expect(2);
}
