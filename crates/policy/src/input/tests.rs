//! Tests of paths and commands in tool inputs, by the roles of their members.

mod unknown;

use super::*;

fn found_in(group: Group, json: &str) -> ParsedInput {
    let raw = serde_json::from_str::<&RawValue>(json).unwrap();
    ParsedInput::of(group, [(Part::Input, raw)])
}

fn found(json: &str) -> ParsedInput {
    found_in(Group::Edit, json)
}

#[test]
fn paths_are_found_by_their_usual_names() {
    for (json, paths) in [
        ("null", vec![]),
        ("7", vec![]),
        (r#"{"file_path":"a","content":"b"}"#, vec!["a"]),
        (r#"{"filePath":"a","oldString":"b"}"#, vec!["a"]),
        (
            r#"{"filepath":"a","diff":"Index: a\n--- b\n+++ c\n"}"#,
            vec!["a", "a", "b", "c"],
        ),
        (r#"{"abs_path":"a","notebook_path":"b"}"#, vec!["a", "b"]),
        (r#"{"paths":["a","b"],"path":""}"#, vec!["a", "b"]),
        (r#"{"source":"a","destination":"b"}"#, vec!["a", "b"]),
        (
            r#"{"files":[{"path":"a","line":1},{"path":"b"}]}"#,
            vec!["a", "b"],
        ),
        (
            r#"{"changes":{"a":{"type":"update","move_path":"b"},"c":{}}}"#,
            vec!["a", "b", "c"],
        ),
        (r#"{"file_path":"a","file_path":"b"}"#, vec!["a", "b"]),
        (
            r#"{"patchText":"*** Begin Patch\n*** Update File: a b\n*** Move to: c\n+x\n*** End Patch"}"#,
            vec!["a b", "c"],
        ),
    ] {
        let found = found(json);
        assert_eq!(found.paths, paths, "{json}");
        assert!(found.whole && found.commands.is_empty(), "{json}");
    }
    assert_eq!(found(r#"{"cwd":"a","path":"b"}"#).directories, ["a"]);
}

#[test]
fn commands_are_lines_or_lists() {
    let line = |text: &str| CommandText::Line(text.into());
    let list = |words: &[&str]| CommandText::Arguments(words.iter().map(|w| (*w).into()).collect());
    for (json, commands) in [
        (r#"{"command":"ls -l"}"#, vec![line("ls -l")]),
        (r#"{"cmd":"ls"}"#, vec![line("ls")]),
        (
            r#"{"command":["bash","-lc","ls"]}"#,
            vec![list(&["bash", "-lc", "ls"])],
        ),
        (
            r#"{"command":"ls","cmd":["rm","x"]}"#,
            vec![line("ls"), list(&["rm", "x"])],
        ),
        (r#"{"parsed":[{"cmd":"ls"}]}"#, vec![]),
    ] {
        assert_eq!(found(json).commands, commands, "{json}");
    }
}

#[test]
fn too_deep_or_large_input_is_unread() {
    assert!(!found(r#"{"command":["kill",9]}"#).whole);
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let strings = |n: usize| format!("[{}1]", "\"a\",".repeat(n));
    let numbers = |n: usize| format!("[{}1]", "1,".repeat(n));
    let text = |n: usize| format!("{{\"content\":\"{}\"}}", "a".repeat(n));
    let members = |n: usize| format!("{{{}\"b\":1}}", "\"a\":1,".repeat(n));
    let words = |n: usize| format!("{{\"command\":[{}\"a\"]}}", "\"a\",".repeat(n));
    let commands = |n: usize| format!("{{{}\"b\":1}}", "\"cmd\":\"a\",".repeat(n));
    let joins = |n: usize| {
        let commands = "\"cmd\":\"a\",\"program\":\"b\",".repeat(n);
        format!("{{{commands}\"args\":[{}\"c\"]}}", "\"c\",".repeat(n))
    };
    let diff = |key: &str, n: usize| {
        let halves = " b/".repeat(n);
        format!("{{\"{key}\":\"diff --git a{halves}\"}}")
    };
    let lists = |n: usize| format!("{}\"c\"{}", "[\"a\",\"b\",".repeat(n), "]".repeat(n));
    for (json, is_unread) in [
        (lists(DEEPEST), false),
        (diff("patch", 30_000), false),
        (diff("x", 30_000), false),
        (diff("command", 30_000), false),
        (nested(DEEPEST), false),
        (nested(DEEPEST + 1), true),
        (nested(100_000), true),
        (numbers(LARGEST / 4), false),
        (numbers(LARGEST), true),
        (strings(100), false),
        (strings(MOST + 1), true),
        (text(LARGEST / 2), false),
        (text(LARGEST), true),
        (members(LARGEST / 10), false),
        (members(LARGEST), true),
        (words(100), false),
        (words(MOST), true),
        (commands(10), false),
        (joins(10), false),
        (joins(1_000), true),
        (commands(MOST + 1), true),
    ] {
        let found = found_in(Group::Execute, &json);
        assert_eq!(found.unread, is_unread, "{}…", &json[..30]);
        assert!(!found.unread || !found.whole);
        // Numbers and members take no memory, and strings a limited amount.
        let strings = found.paths.len() + found.strings.len() + found.commands.len();
        assert!(strings <= MOST + 1, "{strings}");
        let kept = found.strings.iter().chain(&found.paths);
        let bytes = kept.map(String::len).sum::<usize>();
        assert!(bytes <= 64 * 1024 + 8 * json.len(), "{bytes}");
    }
    let half = found(r#"{"path":"\ud800","x":"\ud800","command":"rm x"}"#);
    assert!(!half.whole && !half.unread && half.commands.len() == 1);
}

/// Inputs that agents send, by the kind of the tool.
const REAL: &[(&str, &str)] = &[
    // Claude Code.
    (
        "execute",
        r#"{"command":"ls","description":"list","timeout":1000,"run_in_background":true}"#,
    ),
    ("execute", r#"{"bash_id":"b1","filter":"x"}"#),
    ("read", r#"{"file_path":"/w/a","offset":1,"limit":2}"#),
    ("read", r#"{"file_path":"/w/a.pdf","pages":"1-3"}"#),
    (
        "search",
        r#"{"pattern":"fn .*","path":"/w","glob":"*.rs","output_mode":"content","-n":true,"-A":3,"head_limit":5,"type":"rust","multiline":true}"#,
    ),
    ("search", r#"{"pattern":"src/**/*.rs"}"#),
    (
        "edit",
        r#"{"file_path":"/w/a","old_string":"a","new_string":"b","replace_all":false}"#,
    ),
    (
        "edit",
        r#"{"file_path":"/w/a","content":"/etc/passwd\nrm x"}"#,
    ),
    (
        "edit",
        r#"{"file_path":"/w/a","edits":[{"old_string":"a","new_string":"b"}]}"#,
    ),
    (
        "edit",
        r#"{"notebook_path":"/w/a","cell_id":"1","new_source":"x","cell_type":"code","edit_mode":"insert"}"#,
    ),
    (
        "think",
        r#"{"description":"d","prompt":"run rm","subagent_type":"general-purpose","run_in_background":false}"#,
    ),
    (
        "think",
        r#"{"todos":[{"content":"a","status":"pending","activeForm":"b"}]}"#,
    ),
    ("switch_mode", r##"{"plan":"# Plan\n\n1. rm"}"##),
    (
        "other",
        r#"{"questions":[{"question":"?","header":"h","multiSelect":false,"options":[{"label":"a","description":"b"}]}]}"#,
    ),
    ("fetch", r#"{"url":"https://x.org/a","prompt":"p"}"#),
    // Codex.
    (
        "execute",
        r#"{"call_id":"c","process_id":"1","turn_id":"t","started_at_ms":1,"command":["/bin/bash","-lc","ls"],"cwd":"/w","parsed_cmd":[{"type":"unknown","cmd":"ls"}],"source":"unified_exec_startup","proposed_execpolicy_amendment":["ls"],"available_decisions":["approved",{"approved_execpolicy_amendment":{"proposed_execpolicy_amendment":["ls"]}},"abort"]}"#,
    ),
    (
        "execute",
        r#"{"cmd":"ls","workdir":"/w","yield_time_ms":1000,"max_output_tokens":5,"justification":"j","sandbox_permissions":"require_escalated","shell":"bash","login":true,"tty":false}"#,
    ),
    (
        "edit",
        r#"{"call_id":"c","turn_id":"t","started_at_ms":1,"auto_approved":false,"changes":{"/w/a":{"type":"add","content":"x"},"/w/b":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\n","move_path":null}}}"#,
    ),
    (
        "edit",
        r#"{"input":"*** Begin Patch\n*** Update File: a\n+x\n*** End Patch"}"#,
    ),
    // Gemini, Qwen.
    (
        "execute",
        r#"{"command":"ls","description":"d","dir_path":"sub","is_background":false}"#,
    ),
    ("execute", r#"{"command":"ls","directory":"sub"}"#),
    (
        "edit",
        r#"{"file_path":"/w/a","instruction":"i","old_string":"a","new_string":"b","expected_replacements":1}"#,
    ),
    (
        "edit",
        r#"{"file_path":"/w/a","content":"x","ai_proposed_content":"x","modified_by_user":false}"#,
    ),
    ("read", r#"{"absolute_path":"/w/a","offset":0,"limit":10}"#),
    (
        "read",
        r#"{"paths":["a","b"],"include":["*.rs"],"exclude":[],"recursive":true}"#,
    ),
    (
        "search",
        r#"{"pattern":"x","dir_path":"src","include":"*.ts","case_sensitive":true}"#,
    ),
    // opencode.
    ("execute", r#"{"command":"ls","cwd":"/w"}"#),
    (
        "edit",
        r#"{"filepath":"/w/a","diff":"Index: /w/a\n===\n--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-a\n+b\n"}"#,
    ),
    (
        "edit",
        r#"{"filePath":"/w/a","oldString":"a","newString":"b"}"#,
    ),
    (
        "other",
        r#"{"todos":[{"content":"first","status":"pending","priority":"high"}]}"#,
    ),
    // Kimi, Mistral Vibe.
    ("execute", r#"{"command":"ls","timeout":60}"#),
    ("read", r#"{"path":"a","line_offset":1,"n_lines":100}"#),
    ("edit", r#"{"path":"a","content":"x","mode":"overwrite"}"#),
    (
        "edit",
        r#"{"path":"a","edit":{"old":1},"old_text":"a","new_text":"b"}"#,
    ),
    (
        "edit",
        r#"{"file_path":"a","content":"<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE"}"#,
    ),
    // Cline, Copilot, OpenHands.
    (
        "execute",
        r#"{"command":"ls","requires_approval":true,"timeout":"30"}"#,
    ),
    (
        "edit",
        r#"{"path":"a","diff":"------- SEARCH\na\n=======\nb\n+++++++ REPLACE","task_progress":"- [x] a"}"#,
    ),
    (
        "search",
        r#"{"path":"src","regex":"x.*","file_pattern":null}"#,
    ),
    (
        "read",
        r#"{"path":"a","view_range":[1,20],"description":"d"}"#,
    ),
    (
        "execute",
        r#"{"command":"ls","description":"d","mode":"sync","sessionId":"1","initial_wait":30}"#,
    ),
    (
        "edit",
        r#"{"command":"str_replace","path":"a","old_str":"a","new_str":"b","security_risk":"LOW","summary":"s"}"#,
    ),
    ("read", r#"{"command":"view","path":"a"}"#),
];

#[test]
fn inputs_of_real_agents_are_understood() {
    for (kind, json) in REAL {
        let found = found_in(Group::of(kind), json);
        assert!(found.whole && !found.unread, "{kind} {json}: {found:?}");
        let is_edit = matches!(*kind, "edit");
        assert!(is_edit || !found.edits, "{kind} {json}");
        assert!(!found.runs, "{kind} {json}");
    }
}

/// Members that no agent has, and values that may name a command or a path.
#[test]
fn ambiguous_unknown_member_is_kept_as_not_understood() {
    let values = |text: &str| {
        let words = text.split(' ').collect::<Vec<_>>();
        [
            serde_json::json!(text),
            serde_json::json!([text]),
            serde_json::json!(words),
            serde_json::json!({"a": text}),
            serde_json::json!({"a": {"b": [{"c": text}]}}),
            serde_json::json!(serde_json::json!({"x": {"y": text}}).to_string()),
            serde_json::json!({"command": text}),
            serde_json::json!({"args": words}),
            serde_json::json!({"program": words[0], "arguments": words[1..]}),
        ]
    };
    let keys = [
        "zz",
        "hook",
        "preCommand",
        "then",
        "extra_body",
        "on-exit",
        "interpreter",
        "stdin",
    ];
    let mut tried = 0;
    for (kind, json) in REAL {
        for key in keys {
            for text in ["rm -rf x", "/etc/passwd"] {
                for value in values(text) {
                    let mut input: serde_json::Value = serde_json::from_str(json).unwrap();
                    input[key] = value.clone();
                    let found = found_in(Group::of(kind), &input.to_string());
                    assert!(!found.whole, "{kind} {input}");
                    let is_kept = |kept: &String| kept.contains(text);
                    let is_kept = found.strings.iter().any(is_kept);
                    assert!(is_kept, "{kind} {input}: {:?}", found.strings);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 5_000, "{tried}");
    // A value without text names nothing.
    for value in [
        "1",
        "true",
        "null",
        "\"\"",
        "[]",
        "{}",
        "[1,2]",
        "{\"a\":false}",
    ] {
        let found = found_in(
            Group::Execute,
            &format!("{{\"command\":\"ls\",\"zz\":{value}}}"),
        );
        assert!(found.whole, "{value}");
    }
}

#[test]
fn argument_lists_belong_to_their_command() {
    let list = |words: &[&str]| CommandText::Arguments(words.iter().map(|w| (*w).into()).collect());
    for (json, commands, whole) in [
        (
            r#"{"command":"git","args":["push"]}"#,
            list(&["git", "push"]),
            true,
        ),
        (
            r#"{"args":["-c","rm x"],"command":"bash"}"#,
            list(&["bash", "-c", "rm x"]),
            true,
        ),
        (
            r#"{"command":"git","arguments":"push"}"#,
            list(&["git", "push"]),
            true,
        ),
        (
            r#"{"command":"git","args":"push -f"}"#,
            list(&["git", "push -f"]),
            false,
        ),
        (
            r#"{"command":"git","args":"[\"push\"]"}"#,
            list(&["git", "push"]),
            true,
        ),
        (
            r#"{"command":"git","args":["push",1]}"#,
            list(&["git", "push"]),
            false,
        ),
        (
            r#"{"arguments":{"command":"git","args":["push"]}}"#,
            list(&["git", "push"]),
            true,
        ),
        (
            r#"{"arguments":"{\"command\":\"ls\"}"}"#,
            CommandText::Line("ls".into()),
            true,
        ),
        (
            r#"{"tool":"terminal","arguments":{"command":"ls"}}"#,
            CommandText::Line("ls".into()),
            false,
        ),
        (
            r#"{"command":"git log","args":["x"]}"#,
            CommandText::Line("git log".into()),
            false,
        ),
        (
            r#"{"command":"ls","env":{"A":"b"}}"#,
            CommandText::Line("ls".into()),
            false,
        ),
        (
            r#"{"command":"ls","shell":"/tmp/sh"}"#,
            CommandText::Line("ls".into()),
            false,
        ),
        (
            r#"{"command":"ls","shell":"fish"}"#,
            CommandText::Line("ls".into()),
            false,
        ),
        (
            r#"{"command":"ls","shell":"/bin/bash"}"#,
            CommandText::Line("ls".into()),
            true,
        ),
    ] {
        let found = found_in(Group::Execute, json);
        assert_eq!(found.commands, [commands], "{json}");
        assert_eq!(found.whole, whole, "{json}");
    }
    let alone = found_in(Group::Execute, r#"{"args":["rm","x y"]}"#);
    assert!(alone.commands.is_empty() && !alone.whole);
    assert!(alone.strings.contains(&"rm 'x y'".to_owned()), "{alone:?}");
    let more = found_in(Group::Execute, r#"{"command":"sudo x","args":["rm"]}"#);
    assert!(more.strings.contains(&"sudo x rm".to_owned()), "{more:?}");
}

#[test]
fn paths_are_found_under_every_name_that_tools_use() {
    for key in [
        "destination_path",
        "target",
        "to",
        "output",
        "uri",
        "base_path",
        "targetFile",
        "file-path",
        "url",
        "from",
        "new_path",
        "dst",
        "outputPath",
    ] {
        for group in [Group::Read, Group::Edit, Group::Execute, Group::Other] {
            let found = found_in(group, &format!("{{\"{key}\":\"file:///etc/passwd\"}}"));
            assert_eq!(found.paths, ["file:///etc/passwd"], "{key}");
            // The effect of a command on a path beside it is unknown.
            assert_eq!(found.whole, group != Group::Execute, "{key}");
        }
    }
    for key in ["cwd", "workdir", "working_directory"] {
        assert_eq!(
            found(&format!("{{\"{key}\":\"/x\"}}")).directories,
            ["/x"],
            "{key}"
        );
    }
    let keys = found(r#"{"changed":{"/etc/passwd":[]},"file_path":"a"}"#);
    assert!(!keys.whole && keys.strings == ["/etc/passwd", "changed"]);
    let pattern = |pattern: &str| found_in(Group::Read, &format!("{{\"pattern\":\"{pattern}\"}}"));
    assert!(pattern("src/**").whole);
    for outside in ["/etc/*", "~/*", "../*", "a/../../b"] {
        let found = pattern(outside);
        assert!(!found.whole && found.strings == [outside], "{outside}");
    }
}
