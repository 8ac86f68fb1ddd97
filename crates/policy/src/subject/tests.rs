//! Tests of subjects for calls as agents describe them.

use super::facts::BASES;
use super::*;

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

#[test]
fn command_inside_a_shell_call_is_extracted() {
    for (input, want) in [
        (r#"{"command":"ls"}"#, "ls"),
        (r#"{"command":["ls","-l","a b"]}"#, "ls -l 'a b'"),
        (
            r#"{"command":["/bin/bash","-lc","ls | rm x"]}"#,
            "ls | rm x",
        ),
        (r#"{"command":["sh","-e","-c","ls"]}"#, "ls"),
        (
            r#"{"command":["bash","x.sh","-c","ls"]}"#,
            "bash x.sh -c ls",
        ),
        (r#"{"command":["bash","--norc"]}"#, "bash --norc"),
        (r#"{"command":["./bash","-c","ls"]}"#, "./bash -c ls"),
        (r#"{"command":["bash","-c","--","ls"]}"#, "bash -c -- ls"),
        (
            r#"{"command":["bash","-c","$0 x","rm"]}"#,
            "bash -c '$0 x' rm",
        ),
        (
            r#"{"command":["fish","-c","ls","-c","rm x"]}"#,
            "fish -c ls -c 'rm x'",
        ),
        (r#"{"command":"ls","cmd":"rm x"}"#, "ls\nrm x"),
        (r#"{"command":"ls","cmd":"ls"}"#, "ls"),
    ] {
        let tool = ToolProperties {
            input: Some(raw(input)),
            ..ToolProperties::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.command.as_deref(), Some(want), "{input}");
        assert!(!subject.unclear, "{input}");
    }
}

#[test]
fn many_paths_are_bounded() {
    let paths = |n: usize| (0..n).map(|n| format!("p{n:06}")).collect::<Vec<_>>();
    for (count, is_unread) in [(100, false), (10_000, true), (200_000, true)] {
        let input = serde_json::json!({"command": "x", "cwd": ["a", "b"], "paths": paths(count)});
        let input = input.to_string();
        let tool = ToolProperties {
            input: Some(raw(&input)),
            ..ToolProperties::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.unread, is_unread, "{count}");
        assert!(subject.paths.len() <= 4096 * (1 + BASES), "{count}");
    }
}

#[test]
fn contradictory_call_counts_as_every_claimed_kind() {
    let run = r#"{"command":"rm x"}"#;
    for (name, kind, input, others, is_clear) in [
        (None, "execute", run, &[][..], true),
        (None, "read", run, &["execute"], true),
        (None, "read", r#"{"command":"cat x"}"#, &[], true),
        (
            None,
            "read",
            r#"{"command":"cat x","script":"y"}"#,
            &["execute"],
            false,
        ),
        (None, "edit", run, &["execute"], true),
        (None, "other", run, &["execute"], true),
        (None, "edit", r#"{"command":"view","path":"a"}"#, &[], true),
        (Some("Read"), "execute", run, &[], false),
        (Some("Bash"), "read", run, &["execute"], false),
        (Some("Write"), "read", r#"{"path":"a"}"#, &["edit"], false),
        (Some("Grep"), "read", r#"{"path":"a"}"#, &[], true),
        (Some("TodoWrite"), "other", r#"{"todos":[]}"#, &[], true),
        (
            None,
            "read",
            r#"{"path":"a","new_string":"b"}"#,
            &["edit"],
            false,
        ),
        (
            None,
            "read",
            r#"{"path":"a","diff":"+b"}"#,
            &["edit"],
            false,
        ),
        (None, "search", r#"{"changes":{"a":{}}}"#, &["edit"], false),
        (
            None,
            "read",
            r#"{"file_path":"a","content":"x"}"#,
            &["edit"],
            false,
        ),
        (
            None,
            "think",
            r#"{"path":"a","edits":[{"old":"a","new":"b"}]}"#,
            &["edit"],
            false,
        ),
        (
            None,
            "search",
            r#"{"path":"a","insert_line":1,"insert_text":"x"}"#,
            &["edit"],
            false,
        ),
        (None, "read", r#"{"argv":["rm","x"]}"#, &["execute"], false),
        // Text without a file, and the text of a plan, change no file.
        (None, "think", r#"{"content":"x"}"#, &[], false),
        (
            None,
            "think",
            r#"{"todos":[{"content":"x","path":"a"}]}"#,
            &[],
            true,
        ),
    ] {
        let tool = ToolProperties {
            name,
            kind: Some(kind),
            input: Some(raw(input)),
            ..ToolProperties::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.other_kinds, others, "{name:?} {kind} {input}");
        assert_eq!(!subject.unclear, is_clear, "{name:?} {kind} {input}");
    }
    let diff = raw(r#"[{"type":"diff","path":"/w/a","newText":"b"}]"#);
    let tool = ToolProperties {
        kind: Some("read"),
        content: Some(diff),
        ..ToolProperties::default()
    };
    let subject = Subject::of_tool(&tool, "/w");
    assert_eq!(subject.other_kinds, ["edit"]);
    assert!(subject.unclear && !subject.only_reads());
}

#[test]
fn redirections_in_nested_shell_lines_name_files() {
    for line in [
        "bash -c 'echo x > .env'",
        "sudo bash -lc \"echo x >.env\"",
        "bash -c \"bash -c 'echo x > .env'\"",
        "eval 'cat < .env'",
    ] {
        let input = serde_json::json!({ "command": line }).to_string();
        let tool = ToolProperties {
            kind: Some("execute"),
            input: Some(raw(&input)),
            ..ToolProperties::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert!(subject.paths.contains(&"/w/.env".to_owned()), "{line}");
    }
}

#[test]
fn title_is_the_command_if_no_other_field_has_it() {
    for (title, kind, input, command, unclear) in [
        ("ls", "execute", None, Some("ls"), false),
        ("ls", "execute", Some("{}"), Some("ls"), false),
        (
            "ls",
            "execute",
            Some(r#"{"script":"rm x"}"#),
            Some("ls"),
            true,
        ),
        (
            "cat very-long…",
            "execute",
            None,
            Some("cat very-long…"),
            true,
        ),
        ("ls", "other", None, None, false),
    ] {
        let tool = ToolProperties {
            title: Some(title),
            kind: Some(kind),
            input: input.map(raw),
            ..ToolProperties::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.command.as_deref(), command);
        assert_eq!(subject.unclear, unclear);
    }
}

#[test]
fn paths_come_from_every_field() {
    let tool = ToolProperties {
        input: Some(raw(r#"{"filePath":"./src/a.rs"}"#)),
        locations: Some(raw(r#"[{"path":"/w/src/a.rs","line":3},{"path":"/x"}]"#)),
        content: Some(raw(r#"[{"type":"diff","path":"/y","newText":""}]"#)),
        ..ToolProperties::default()
    };
    let subject = Subject::of_tool(&tool, "/w");
    assert_eq!(subject.paths, ["/w/src/a.rs", "/x", "/y"]);
    let tool = ToolProperties {
        input: Some(raw(r#"{"command":"make > out 2>&1","cwd":"sub"}"#)),
        ..ToolProperties::default()
    };
    let subject = Subject::of_tool(&tool, "/w");
    assert_eq!(subject.paths, ["/w/sub", "/w/out", "/w/sub/out"]);
    let tool = ToolProperties {
        input: Some(raw(r#"{"file_path":"/w/.env\u0000.txt"}"#)),
        ..ToolProperties::default()
    };
    let subject = Subject::of_tool(&tool, "/w");
    assert_eq!(subject.paths, ["/w/.env", "/w/.env\0.txt"]);
    assert!(subject.unclear);
}

#[test]
fn missing_kind_is_derived_from_the_tool_name() {
    for (kind, name, want) in [
        (None, Some("Bash"), "execute"),
        (Some("other"), Some("run_shell_command"), "execute"),
        (Some("read"), Some("Bash"), "read"),
        (None, Some("novel"), "other"),
        (None, None, "other"),
        (Some("novel"), None, "novel"),
    ] {
        let tool = ToolProperties {
            name,
            kind,
            ..ToolProperties::default()
        };
        assert_eq!(
            Subject::of_tool(&tool, "/w").kind,
            want,
            "{kind:?} {name:?}"
        );
    }
}

#[test]
fn shown_uris_name_files() {
    let tool = ToolProperties {
        kind: Some("edit"),
        locations: Some(raw(r#"{"uri":"file:///a"}"#)),
        content: Some(raw(
            r#"[{"type":"diff","uri":"file:///b","newText":"x"},{"type":"content","content":{"uri":"https://c/d"}}]"#,
        )),
        ..ToolProperties::default()
    };
    let subject = Subject::of_tool(&tool, "/w");
    assert_eq!(subject.paths, ["/a", "/b"]);
}
