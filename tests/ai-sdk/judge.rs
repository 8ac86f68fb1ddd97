//! Runs the judge, a Node process: sets it up, sends it streams and reads its verdicts. Runs other scripts
//! that use the SDK as well.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::LazyLock;

/// Chunks of one message, for clients of one major of the AI SDK.
#[derive(Debug, Clone)]
pub struct Stream {
    pub name: String,
    pub profile: u32,
    pub chunks: Vec<Value>,
    /// Whether the turn failed; `None` if that is not known.
    pub failed: Option<bool>,
}

/// The SDK's verdict on a stream.
#[derive(Debug)]
pub struct Verdict {
    pub stream: Stream,
    pub problems: Vec<String>,
    /// `UIMessage` that the SDK's reader built.
    pub message: Value,
}

/// Result of the set-up, which runs once; the error is the reason why nothing can be judged here.
static SET_UP: LazyLock<Result<(), String>> = LazyLock::new(set_up);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ai-sdk")
}

fn set_up() -> Result<(), String> {
    let node = Command::new("node").arg("--version").output();
    let version = node.map_err(|e| format!("node cannot be started: {e}"))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next();
    let major: u32 = major.and_then(|m| m.parse().ok()).unwrap_or_default();
    if major < 20 {
        return Err(format!("node 20 or newer is needed, not {version:?}"));
    }
    let lock = std::fs::read(folder().join("package-lock.json")).unwrap();
    let installed = folder().join("node_modules/.installed-by-tests");
    if std::fs::read(&installed).is_ok_and(|done| done == lock) {
        return Ok(());
    }
    let npm = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .current_dir(folder())
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("npm cannot be started: {e}"))?;
    if !npm.status.success() {
        let said = String::from_utf8_lossy(&npm.stderr).into_owned();
        return Err(format!("npm ci failed: {said}"));
    }
    std::fs::write(installed, lock).unwrap();
    Ok(())
}

/// Returns `true` if the SDK is available. Otherwise prints a warning, and panics in CI; `count` is only used
/// in that warning.
pub fn is_sdk_available(count: impl FnOnce() -> usize) -> bool {
    let Err(why) = &*SET_UP else {
        return true;
    };
    let count = count();
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
        "{count} streams were not judged by the AI SDK: {why}"
    );
    // Written to stderr directly: the test harness hides the output of a test that passes.
    let _ = writeln!(
        std::io::stderr(),
        "\n!!! NOT RUN: {count} checks by the AI SDK: {why}\n"
    );
    false
}

/// Runs a script of this folder. Returns the result of `write`, which writes the script's stdin, the JSON
/// lines of its stdout, and its exit status.
pub fn ask<T: Send>(
    script: &str,
    write: impl FnOnce(ChildStdin) -> T + Send,
) -> (T, Vec<Value>, ExitStatus) {
    let mut process = Command::new("node")
        .arg(folder().join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = process.stdin.take().unwrap();
    let (written, output) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || write(input));
        let output = process.wait_with_output().unwrap();
        (writer.join().unwrap(), output)
    });
    let lines = String::from_utf8(output.stdout).unwrap();
    let said = lines.lines().map(|l| serde_json::from_str(l).unwrap());
    (written, said.collect(), output.status)
}

/// Returns the verdicts in the order of the streams; `None` without Node.
pub fn judge(streams: impl Iterator<Item = Stream> + Send) -> Option<Vec<Verdict>> {
    let mut streams = streams;
    if !is_sdk_available(|| streams.by_ref().count()) {
        return None;
    }
    let (streams, mut said, status) = ask("judge.mjs", |input| feed(streams, input));
    let summary = said.pop().unwrap_or_default();
    // The judge prints the reason on stderr.
    assert_eq!(
        summary["summary"]["streams"].as_u64(),
        u64::try_from(streams.len()).ok(),
        "the judge fell over"
    );
    let verdicts = streams.into_iter().zip(said);
    let verdicts: Vec<Verdict> = verdicts
        .map(|(stream, mut said)| {
            assert_eq!(said["name"], stream.name.as_str());
            Verdict {
                stream,
                problems: serde_json::from_value(said["problems"].take()).unwrap(),
                message: said["message"].take(),
            }
        })
        .collect();
    let wrong = verdicts.iter().any(|v| !v.problems.is_empty());
    assert_eq!(status.code(), Some(i32::from(wrong)));
    Some(verdicts)
}

/// Writes the streams to the judge and returns them.
fn feed(streams: impl Iterator<Item = Stream>, judge: ChildStdin) -> Vec<Stream> {
    let mut judge = BufWriter::new(judge);
    let mut fed = Vec::new();
    for stream in streams {
        let written = writeln!(judge, "{}", line(&stream));
        fed.push(stream);
        if written.is_err() {
            break;
        }
    }
    fed
}

/// Returns a line of the judge's input. The chunks are most of it: they are written, not copied into a value.
fn line(stream: &Stream) -> String {
    let chunks: Vec<String> = stream.chunks.iter().map(Value::to_string).collect();
    let (name, profile, chunks) = (json!(stream.name), stream.profile, chunks.join(","));
    let failed = stream
        .failed
        .map(|failed| format!(r#","expectError":{failed}"#));
    let failed = failed.unwrap_or_default();
    format!(r#"{{"name":{name},"profile":{profile},"chunks":[{chunks}]{failed}}}"#)
}

/// Describes the refused streams: a few as text, all of them in a file that `judge.mjs` reads.
pub fn report(verdicts: &[Verdict]) -> String {
    let refused = || verdicts.iter().filter(|v| !v.problems.is_empty());
    let mut text = String::new();
    for verdict in refused().take(10) {
        let Stream { name, profile, .. } = &verdict.stream;
        let _ = writeln!(text, "{name} for ai {profile}:");
        for problem in verdict.problems.iter().take(5) {
            let _ = writeln!(text, "  {problem}");
        }
    }
    if text.is_empty() {
        return text;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused-streams.ndjson");
    let lines = refused().flat_map(|v| [line(&v.stream), "\n".to_owned()]);
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let (count, all, file) = (refused().count(), verdicts.len(), file.display());
    let _ = writeln!(
        text,
        "{count} of {all} streams are refused: node tests/ai-sdk/judge.mjs < {file}"
    );
    text
}
