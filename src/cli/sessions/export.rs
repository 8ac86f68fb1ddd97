//! Export of a session: its messages, its chunks or its log.

use super::args::Content;
use crate::core::error::{Error, ErrorKind};
use crate::core::log::Log;
use crate::core::profile::Profile;
use crate::core::store::LogFile;
use crate::proto::json::value;
use crate::proto::wire::ReplayEntry;
use crate::shell::ReadOnly;
use std::io::Write;

/// Size in bytes of the blocks in which a log is copied.
const BLOCK: u64 = 256 << 10;

/// Number of chunks read at a time.
const PAGE: usize = 1000;

/// Writes a session in the chosen form.
pub fn export(
    file: ReadOnly,
    what: Content,
    profile: Profile,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    match what {
        Content::Log => copy(&file, out),
        Content::Messages => messages(&super::read(file)?, profile, out),
        Content::Chunks => chunks(&super::read(file)?, profile, out),
    }
}

fn messages(log: &Log, profile: Profile, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut before = "[\n";
    for place in 0..usize::try_from(log.count())? {
        if let Some(message) = log.message(place, profile)? {
            write!(out, "{before}{message}")?;
            before = ",\n";
        }
    }
    let end = if before == "[\n" { "[]\n" } else { "\n]\n" };
    Ok(out.write_all(end.as_bytes())?)
}

fn chunks(log: &Log, profile: Profile, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let page = log.page(after, PAGE)?;
        for stored in page.chunks {
            after = stored.seq;
            let mut entries = Vec::new();
            profile.adapt_stored(value(&stored.chunk), |chunk| {
                entries.push(ReplayEntry {
                    seq: stored.seq,
                    turn_id: stored.turn_id.clone(),
                    chunk,
                });
            });
            for entry in entries {
                serde_json::to_writer(&mut *out, &entry).map_err(std::io::Error::from)?;
                out.write_all(b"\n")?;
            }
        }
        if !page.more {
            return Ok(());
        }
    }
}

/// Copies all complete lines; a line that is still being written is left out.
fn copy(file: &ReadOnly, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut begun = Vec::new();
    let mut at = 0;
    while at < file.end() {
        let block = file.read(at..file.end().min(at + BLOCK)).map_err(|e| {
            let message = format!("cannot read the session's log: {e}");
            Error::new(ErrorKind::Storage, message)
        })?;
        if block.is_empty() {
            break;
        }
        at += block.len() as u64;
        let whole = memchr::memrchr(b'\n', &block).map_or(0, |end| end + 1);
        if whole > 0 {
            out.write_all(&begun)?;
            out.write_all(&block[..whole])?;
            begun.clear();
        }
        begun.extend_from_slice(&block[whole..]);
    }
    Ok(())
}
