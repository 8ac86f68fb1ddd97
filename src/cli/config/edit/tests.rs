//! Tests of changes of the configuration file.

use super::*;
use crate::cli::config::test_dir::TestDir;
use serde_json::json;
use std::fs;

fn is_builtin(name: &str) -> bool {
    name == "claude"
}

fn keys(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(keys) => keys,
        other => panic!("{other} is not an object"),
    }
}

const FILE: &str = "\
#:schema config.schema.json
# My configuration

# Permissions of all agents
[permissions]
default = \"ask\"   # careful

[agents.a] # first
use = \"claude\"
";

#[test]
fn changes_keep_comments_and_format() {
    let dir = TestDir::new("edit");
    let file = dir.path().join("config.toml");
    fs::write(&file, FILE).unwrap();
    let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
    let agent = json!({
        "command": "kimi",
        "args": ["acp"],
        "model": null,
        "env": { "A": "b", "C": false },
        "permissions": { "rules": [{ "effect": "deny", "kind": "delete" }] },
    });
    edit.add_agent("b.c", &keys(agent)).unwrap();
    edit.set_default(Some("a"));
    edit.write().unwrap();
    let want = FILE.replace(
        "# My configuration\n\n",
        "# My configuration\n\nagent = \"a\"\n\n",
    ) + "
[agents.\"b.c\"]
command = \"kimi\"
args = [\"acp\"]

[agents.\"b.c\".env]
A = \"b\"
C = false

[agents.\"b.c\".permissions]
rules = [{ effect = \"deny\", kind = \"delete\" }]
";
    assert_eq!(fs::read_to_string(&file).unwrap(), want);

    let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
    edit.set_default(Some("b.c"));
    edit.write().unwrap();
    let changed = want.replace("agent = \"a\"", "agent = \"b.c\"");
    assert_eq!(fs::read_to_string(&file).unwrap(), changed);

    let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
    assert!(edit.remove_agent("b.c") && !edit.remove_agent("b.c"));
    assert_eq!(edit.default_agent(), None);
    edit.write().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("[agents.a] # first") && !text.contains("kimi"),
        "{text}"
    );
}

#[test]
fn missing_file_is_created_for_the_user_alone() {
    let dir = TestDir::new("edit-new");
    let file = dir.path().join("a/b/config.toml");
    let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
    edit.add_agent("x", &keys(json!({ "use": "claude" })))
        .unwrap();
    edit.set_default(Some("x"));
    edit.write().unwrap();
    let want = "agent = \"x\"\n\n[agents.x]\nuse = \"claude\"\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), want);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        // An existing file keeps its mode, and a link stays a link.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut edit = Edit::open(&UserFile::named(link.clone()), &is_builtin).unwrap();
        edit.set_default(Some("claude"));
        edit.write().unwrap();
        assert_eq!(mode(&file), 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(
            fs::read_to_string(&file)
                .unwrap()
                .contains("agent = \"claude\"")
        );
    }
}

#[test]
fn comments_of_a_file_without_keys_stay_at_its_head() {
    let dir = TestDir::new("edit-comments");
    let file = dir.path().join("config.toml");
    let head = "#:schema config.schema.json\n# Nothing yet\n";
    let agent = "[agents.x]\nuse = \"claude\"\n";
    let add = |edit: &mut Edit<'_>| {
        let keys = keys(json!({ "use": "claude" }));
        edit.add_agent("x", &keys).unwrap();
    };
    let set = |edit: &mut Edit<'_>| edit.set_default(Some("claude"));
    let changed = |change: &dyn Fn(&mut Edit<'_>), want: &str| {
        fs::write(&file, head).unwrap();
        let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
        change(&mut edit);
        edit.write().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), want);
    };
    changed(&add, &format!("{head}\n{agent}"));
    changed(&set, &format!("{head}\nagent = \"claude\"\n"));
    // A default that is set later stays below the head, too.
    fs::write(&file, format!("{head}\n{agent}")).unwrap();
    let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
    set(&mut edit);
    edit.write().unwrap();
    let want = format!("{head}\nagent = \"claude\"\n\n{agent}");
    assert_eq!(fs::read_to_string(&file).unwrap(), want);
}

#[test]
fn invalid_change_is_refused_and_leaves_the_file() {
    let dir = TestDir::new("edit-wrong");
    let file = dir.path().join("config.toml");
    let text = format!("{FILE}[agents.b]\nextends = \"a\"\n");
    fs::write(&file, &text).unwrap();
    let claude = || keys(json!({ "use": "claude" }));
    let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
    let error = edit.add_agent("a", &claude()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateAgent);
    let error = edit.add_agent("default", &claude()).unwrap_err();
    assert!(error.message.contains("reserved"), "{error}");
    let refused = |want: &str, change: &dyn Fn(&mut Edit<'_>)| {
        let mut edit = Edit::open(&UserFile::named(file.clone()), &is_builtin).unwrap();
        change(&mut edit);
        let error = edit.write().unwrap_err();
        assert!(error.message.contains(want), "{error}");
    };
    refused("agent: \"x\" is not a known agent", &|edit| {
        edit.set_default(Some("x"));
    });
    refused("agents.b.extends: \"a\" is not a known agent", &|edit| {
        assert!(edit.remove_agent("a"));
    });
    for (agent, want) in [
        (
            json!({ "comand": "x" }),
            "agents.c.comand: \"comand\" is not a known key",
        ),
        (
            json!({ "command": [{}] }),
            "agents.c.command: must be a string",
        ),
    ] {
        let agent = keys(agent);
        refused(want, &|edit| edit.add_agent("c", &agent).unwrap());
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}
