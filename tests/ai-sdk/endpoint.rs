//! Real AI SDK endpoints as agents: `endpoint.mjs` serves them and compares the messages.

use crate::judge;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;

#[test]
fn message_of_an_endpoint_is_the_same_through_acpipe() {
    if !judge::is_sdk_available(|| 3) {
        return;
    }
    let state =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("endpoint-{}", std::process::id()));
    let asked = json!({ "acpipe": env!("CARGO_BIN_EXE_acpipe"), "state": state }).to_string();
    let (written, seen, status) = judge::ask("endpoint.mjs", move |mut stdin| {
        stdin.write_all(asked.as_bytes())
    });
    let _ = std::fs::remove_dir_all(&state);
    written.unwrap();
    assert!(status.success(), "{seen:?}");
    assert_eq!(seen.len(), 3);
    for major in seen {
        assert_eq!(major["problems"], json!([]), "{major:#}");
        let history = json!([["user"], ["user", "assistant", "user"]]);
        assert_eq!(major["prompts"], history, "{major:#}");
    }
}
