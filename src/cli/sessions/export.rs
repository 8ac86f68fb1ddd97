//! Export of a session: its messages as JSON or as a document, its chunks or its log.

mod html;
mod markdown;

use super::age::short;
use super::args::{ExportContent, ExportFormat};
use super::conversation::{Author, ConversationEntry};
use acpipe_core::log::Log;
use acpipe_core::profile::Profile;
use acpipe_core::store::{Card, LogFile};
use acpipe_host::ReadOnly;
use acpipe_json::value;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::ReplayEntry;
use std::io::Write;

/// Size in bytes of the blocks in which a log is copied.
const BLOCK: u64 = 256 << 10;

/// Number of chunks read at a time.
const PAGE: usize = 1000;

/// Writes the messages of a session as a document.
pub fn export_document(
    file: ReadOnly,
    format: ExportFormat,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let log = super::read(file)?;
    let card = log.card();
    let is_html = format == ExportFormat::Html;
    if is_html {
        html::head(&card, out)?;
    } else {
        markdown::head(&card, out)?;
    }
    for place in 0..usize::try_from(log.count())? {
        let Some(message) = log.message(place, Profile::V7)? else {
            continue;
        };
        let entry = ConversationEntry::of(&message, log.message_facts(place)?);
        if is_html {
            html::entry(&entry, out)?;
        } else {
            markdown::entry(&entry, out)?;
        }
    }
    if is_html {
        html::end(out)?;
    }
    Ok(())
}

/// Returns the title of a document.
fn title(card: &Card) -> &str {
    card.title.as_deref().unwrap_or(&card.session_id)
}

/// Returns the facts at the beginning of a document.
fn facts(card: &Card) -> Vec<(&'static str, String)> {
    let agent = card.shown_agent();
    let agent = agent.unwrap_or_else(|| "none yet".to_owned());
    vec![
        ("Session", card.session_id.clone()),
        ("Agent", agent),
        ("Directory", card.cwd.clone()),
        ("Created", short(&card.created_at)),
        ("Changed", short(&card.updated_at)),
    ]
}

fn author(role: &Author) -> &str {
    match role {
        Author::User => "User",
        Author::Agent => "Agent",
        Author::Other(name) => name,
    }
}

/// Writes a session in the chosen form of JSON.
pub fn export(
    file: ReadOnly,
    what: ExportContent,
    profile: Profile,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    match what {
        ExportContent::Log => copy(&file, out),
        ExportContent::Messages => messages(&super::read(file)?, profile, out),
        ExportContent::Chunks => chunks(&super::read(file)?, profile, out),
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
