//! Tests of members that are not understood, and of keys that are paths.

use super::*;

#[test]
fn below_an_unknown_member_every_name_is_unknown() {
    for (group, json, text) in [
        (Group::Execute, r#"{"hook":{"description":"rm x"}}"#, "rm x"),
        (Group::Execute, r#"{"then":{"title":"rm x"}}"#, "rm x"),
        (Group::Execute, r#"{"x":{"timeout":"rm x"}}"#, "rm x"),
        (Group::Execute, r#"{"x":[{"description":"rm x"}]}"#, "rm x"),
        (Group::Execute, r#"{"x":{"newString":"rm x"}}"#, "rm x"),
        (Group::Execute, r#"{"x":{"shell":"sh"}}"#, "sh"),
        (
            Group::Execute,
            r#"{"description":{"description":"rm x"}}"#,
            "rm x",
        ),
        (
            Group::Execute,
            r#"{"x":{"arguments":"{\"title\":\"rm x\"}"}}"#,
            "rm x",
        ),
        (Group::Edit, r#"{"x":{"search":"/etc/x"}}"#, "/etc/x"),
        (Group::Edit, r#"{"new_string":{"text":"/etc/x"}}"#, "/etc/x"),
        (Group::Read, r#"{"x":{"pattern":"a"}}"#, "a"),
        (Group::Read, r#"{"x":{"todos":[{"content":"a"}]}}"#, "a"),
    ] {
        let found = found_in(group, json);
        assert!(!found.whole, "{json}");
        let is_kept = found.strings.iter().any(|kept| kept == text);
        assert!(is_kept, "{json}: {:?}", found.strings);
    }
    assert!(!found(r#"{"x":{"path":"a"}}"#).whole);
}

#[test]
fn keys_of_changes_by_file_are_paths() {
    for (json, key) in [
        (
            r#"{"file_path":"a","files":{"Makefile":{"new_string":"x"}}}"#,
            "Makefile",
        ),
        (r#"{"files":{"Makefile":null}}"#, "Makefile"),
        (r#"{"files":{".env":"x"}}"#, ".env"),
        (r#"{"edits":{"Makefile":{"content":"x"}}}"#, "Makefile"),
        (r#"{"Makefile":{"new_string":"x"}}"#, "Makefile"),
        (r#"{"x":{".env":{"content":"x"}}}"#, ".env"),
        (r#"{"x":[{".env":"x"}]}"#, ".env"),
    ] {
        for group in [Group::Edit, Group::Other] {
            let found = found_in(group, json);
            assert!(!found.whole, "{json}");
            let is_kept = found.strings.iter().any(|kept| kept == key);
            assert!(is_kept, "{json}: {:?}", found.strings);
        }
    }
    let known = found(r#"{"path":"a","edits":{"old_string":"a","new_string":"b"}}"#);
    assert!(known.whole && known.strings.is_empty());
}
