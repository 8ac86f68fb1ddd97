//! `acpipe daemon logs`.

use super::connect::connect_control;
use crate::cli::args::daemon::LogsArgs;
use crate::cli::args::hints::try_parse;
use crate::cli::screen::{ScreenContent, to_stdout};
use crate::cli::{print_note, state_dir};
use acpipe_host::DaemonPlace;
use anyhow::Context as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval at which a followed log is read again.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// Prints the log. Returns the exit code.
pub async fn logs(args: &LogsArgs) -> anyhow::Result<u8> {
    let state = state_dir(&args.place)?;
    if let Some(file) = log_file_of(&state).await {
        print_note(&format!(
            "the daemon logs to {}, because it was started with --log-file",
            file.display()
        ));
    }
    let place = DaemonPlace::of(&state);
    let opened = place.read_log();
    let opened = opened.with_context(|| format!("cannot read {}", place.log().display()))?;
    let Some(mut file) = opened else {
        print_note("the daemon has no log; `acpipe daemon start` starts it");
        return Ok(0);
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    print(last_lines(&text, args.lines))?;
    if !args.follow {
        return Ok(0);
    }
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        text.clear();
        file.read_to_end(&mut text)?;
        print(&text)?;
    }
}

/// Returns the log file that the options of the running daemon name.
async fn log_file_of(state: &Path) -> Option<PathBuf> {
    // A daemon that cannot be asked has a log that can be read nevertheless.
    let info = connect_control(state).await.ok()??.info;
    let words = ["acpipe", "daemon", "run"].into_iter();
    let words = words.chain(info.args.iter().map(String::as_str));
    let file = try_parse(words).ok()?.logs.log_file?;
    Some(Path::new(&info.cwd).join(file))
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    to_stdout(ScreenContent::Text, |out| {
        out.write_all(text)?;
        Ok(out.flush()?)
    })
}

/// Returns the last lines of a text; all of them if `lines` is 0.
fn last_lines(text: &[u8], lines: usize) -> &[u8] {
    if lines == 0 {
        return text;
    }
    let ends = memchr::memrchr_iter(b'\n', text.strip_suffix(b"\n").unwrap_or(text));
    match ends.take(lines).nth(lines - 1) {
        Some(end) => &text[end + 1..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_counted_from_the_end() {
        let text = b"a\nb\nc\n";
        assert_eq!(last_lines(text, 2), b"b\nc\n");
        assert_eq!(last_lines(text, 3), text);
        assert_eq!(last_lines(text, 9), text);
        assert_eq!(last_lines(text, 0), text);
        assert_eq!(last_lines(b"a\nb", 1), b"b");
        assert_eq!(last_lines(b"", 1), b"");
    }
}
