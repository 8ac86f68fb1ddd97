//! Prompt of a run: arguments, files, stdin and attachments.

use crate::cli::UsageError;
use crate::cli::args::RunArgs;
use crate::cli::terminal::run_limit::RunLimit;
use acpipe_protocol::wire::{AgentCapabilities, UserMessage};
use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// Argument that stands for stdin.
const STDIN: &str = "-";

/// Maximum size of an attached file in bytes.
const MAX_ATTACHMENT_BYTES: u64 = 32 << 20;

/// Text and attachments to send.
#[derive(Debug)]
pub struct RunPrompt {
    text: String,
    attached: Vec<AttachedFile>,
    /// Notes to show to the user.
    pub notes: Vec<String>,
}

/// File attached to the prompt.
#[derive(Debug)]
struct AttachedFile {
    path: PathBuf,
    name: String,
    media_type: &'static str,
    content: Vec<u8>,
}

impl RunPrompt {
    /// Creates a prompt without attachments.
    pub fn of_text(text: String) -> Self {
        Self {
            text,
            attached: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads the prompt: the arguments, then `--file`s, then piped stdin, separated by empty lines.
    ///
    /// # Errors
    /// A file cannot be read, the prompt is empty, or the limit passes first, for example because the writer of a
    /// pipe keeps it open.
    pub fn read(args: &RunArgs, limit: RunLimit) -> anyhow::Result<Self> {
        let sources = PromptSources::of(args);
        let prompt = match limit.left() {
            None => sources.read(&|_| ()),
            Some(_) => sources.read_within(limit),
        }?;
        if prompt.text.is_empty() && prompt.attached.is_empty() {
            return Err(UsageError(no_prompt(args)).into());
        }
        Ok(prompt)
    }

    /// Attaches a file. Returns its name.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn attach(&mut self, file: &Path) -> anyhow::Result<String> {
        let attachment = attachment("/attach", file)?;
        let name = attachment.name.clone();
        self.attached.push(attachment);
        Ok(name)
    }

    /// Sets the text.
    pub fn with_text(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// Returns `true` if files are attached.
    pub fn has_attachments(&self) -> bool {
        !self.attached.is_empty()
    }

    /// Returns the names of images and sounds that are sent as links because the agent does not accept their
    /// content.
    pub fn sent_as_links(&self, can: AgentCapabilities) -> impl Iterator<Item = &str> {
        let is_media = move |file: &&AttachedFile| {
            let kind = file.media_type.split('/').next();
            matches!(kind, Some("image" | "audio")) && !file.is_taken(can)
        };
        self.attached
            .iter()
            .filter(is_media)
            .map(|file| file.name.as_str())
    }

    /// Builds the message for an agent with these capabilities.
    pub fn message(&self, can: Option<AgentCapabilities>) -> UserMessage {
        let text = Some(&self.text).filter(|text| !text.is_empty());
        let text = text.map(|text| json!({ "type": "text", "text": text }));
        let files = self
            .attached
            .iter()
            .map(|file| file.part(can.unwrap_or_default()));
        UserMessage {
            parts: text.into_iter().chain(files).collect(),
            other: serde_json::Map::new(),
        }
    }
}

impl AttachedFile {
    /// Returns `true` if the agent accepts the content of the file.
    fn is_taken(&self, can: AgentCapabilities) -> bool {
        match self.media_type.split('/').next() {
            Some("image") => can.image,
            Some("audio") => can.audio,
            _ => can.embedded_context,
        }
    }

    /// Builds a message part: the file's content, or a link if the agent does not accept its type.
    fn part(&self, can: AgentCapabilities) -> Value {
        let url = if self.is_taken(can) {
            format!(
                "data:{};base64,{}",
                self.media_type,
                STANDARD.encode(&self.content)
            )
        } else {
            file_url(&self.path)
        };
        json!({ "type": "file", "mediaType": self.media_type, "filename": self.name, "url": url })
    }
}

/// Arguments and files of which the prompt consists.
struct PromptSources {
    /// Text of `--prompt`, then the arguments.
    texts: Vec<String>,
    stdin_is_argument: bool,
    files: Vec<PathBuf>,
    attached: Vec<PathBuf>,
}

/// Progress of the thread that reads the prompt.
enum ReadProgress {
    /// The thread waits for this source.
    Reads(String),
    Done(anyhow::Result<RunPrompt>),
}

impl PromptSources {
    fn of(args: &RunArgs) -> Self {
        let stdin_is_argument = args.prompt == [STDIN];
        let arguments = (!stdin_is_argument).then(|| args.prompt.join(" "));
        Self {
            texts: args
                .prompt_text
                .clone()
                .into_iter()
                .chain(arguments)
                .collect(),
            stdin_is_argument,
            files: args.file.clone(),
            attached: args.attach.clone(),
        }
    }

    /// Reads the sources; `reads` is called with each before acpipe waits for it.
    fn read(self, reads: &dyn Fn(String)) -> anyhow::Result<RunPrompt> {
        let mut notes = Vec::new();
        let mut parts = self.texts;
        let mut is_read = false;
        let mut read_stdin = |notes: &mut Vec<String>| {
            let mut bytes = Vec::new();
            if !is_read {
                reads("stdin".to_owned());
                let mut stdin = std::io::stdin();
                stdin.read_to_end(&mut bytes).context("cannot read stdin")?;
            }
            is_read = true;
            anyhow::Ok(lossy(bytes, "stdin", notes))
        };
        if self.stdin_is_argument {
            parts.push(read_stdin(&mut notes)?);
        }
        for file in &self.files {
            parts.push(if file.as_os_str() == STDIN {
                read_stdin(&mut notes)?
            } else {
                reads(file.display().to_string());
                let content =
                    std::fs::read(file).map_err(|error| unreadable("--file", file, &error))?;
                lossy(content, &file.display().to_string(), &mut notes)
            });
        }
        if !std::io::stdin().is_terminal() {
            parts.push(read_stdin(&mut notes)?);
        }
        let given = parts.iter().map(|part| part.trim_end());
        let given: Vec<&str> = given.filter(|part| !part.is_empty()).collect();
        let attached = self.attached.iter().map(|file| {
            reads(file.display().to_string());
            attachment("--attach", file)
        });
        Ok(RunPrompt {
            attached: attached.collect::<anyhow::Result<_>>()?,
            text: given.join("\n\n"),
            notes,
        })
    }

    /// Reads the sources in a thread, which is left behind if the limit passes first: no source need ever end.
    fn read_within(self, limit: RunLimit) -> anyhow::Result<RunPrompt> {
        let (progress, steps) = mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("prompt".into())
            .spawn(move || {
                // Fails only if the limit has passed.
                let reads = |what| drop(progress.send(ReadProgress::Reads(what)));
                let prompt = self.read(&reads);
                drop(progress.send(ReadProgress::Done(prompt)));
            })?;
        let mut source = "its arguments".to_owned();
        loop {
            match steps.recv_timeout(limit.left().unwrap_or_default()) {
                Ok(ReadProgress::Reads(what)) => source = what,
                Ok(ReadProgress::Done(prompt)) => return prompt,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let what = format!(
                        "reading the prompt from {source}, which did not end; close it (`< /dev/null` for stdin)"
                    );
                    return Err(limit.error("readPrompt", &what).into());
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    anyhow::bail!("the thread that reads the prompt ended");
                }
            }
        }
    }
}

/// Returns the message for an empty prompt, with a hint at the likely mistake.
fn no_prompt(args: &RunArgs) -> String {
    let usage =
        "no prompt given; pass it as an argument, pipe it in, or use --file; see acpipe run --help";
    match args.agent.command.first() {
        Some(command) => format!(
            "{usage}. The text after -- is the agent's command line (`{command}`); for a prompt that begins with -, \
                 use --prompt='-…'"
        ),
        None => usage.to_owned(),
    }
}

fn unreadable(option: &str, file: &Path, error: &std::io::Error) -> UsageError {
    let text = file.display().to_string();
    // `-fix it` is parsed as `-f` with the file `ix it`.
    let hint = if text.contains(' ') {
        "; for a prompt that begins with -, use --prompt='-…'"
    } else {
        ""
    };
    UsageError(format!("{option}: cannot read {text}: {error}{hint}"))
}

/// Converts bytes to text. Invalid UTF-8 is replaced, and a note gives the number of replaced bytes.
fn lossy(bytes: Vec<u8>, what: &str, notes: &mut Vec<String>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let invalid: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    notes.push(format!(
        "{what} is not UTF-8 text: {invalid} of {} bytes were replaced; convert it first (`iconv -f latin1`), or pass \
             binary data with --attach FILE",
        bytes.len()
    ));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn attachment(option: &str, file: &Path) -> anyhow::Result<AttachedFile> {
    let failed = |error: &std::io::Error| unreadable(option, file, error);
    let about = std::fs::metadata(file).map_err(|error| failed(&error))?;
    if about.is_file() && about.len() > MAX_ATTACHMENT_BYTES {
        let message = format!(
            "{option}: {} has {} bytes, more than the limit of {MAX_ATTACHMENT_BYTES}; name its path in the prompt instead",
            file.display(),
            about.len()
        );
        return Err(UsageError(message).into());
    }
    let path = std::path::absolute(file).map_err(|error| failed(&error))?;
    let content = std::fs::read(file).map_err(|error| failed(&error))?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    Ok(AttachedFile {
        name: name.unwrap_or_else(|| "file".to_owned()),
        media_type: media_type(&path, &content),
        path,
        content,
    })
}

/// Returns the media type of a file: by its first bytes, or for text by its extension.
fn media_type(path: &Path, content: &[u8]) -> &'static str {
    const BEGINNINGS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"BM", "image/bmp"),
        (b"%PDF-", "application/pdf"),
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfb", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
    ];
    const ENDINGS: &[(&str, &str)] = &[
        ("md", "text/markdown"),
        ("html", "text/html"),
        ("htm", "text/html"),
        ("css", "text/css"),
        ("csv", "text/csv"),
        ("xml", "text/xml"),
        ("svg", "text/xml"),
        ("json", "application/json"),
    ];
    match (content.get(..4), content.get(8..12)) {
        (Some(b"RIFF"), Some(b"WEBP")) => return "image/webp",
        (Some(b"RIFF"), Some(b"WAVE")) => return "audio/wav",
        _ => {}
    }
    // Text is checked first because it may begin with the same bytes as a binary format.
    if std::str::from_utf8(content).is_ok()
        && !content.contains(&0)
        && !content.starts_with(b"%PDF-")
    {
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        let known = ENDINGS
            .iter()
            .find(|(known, _)| ending.as_deref() == Some(known));
        return known.map_or("text/plain", |(_, media_type)| media_type);
    }
    let known = BEGINNINGS
        .iter()
        .find(|(begins, _)| content.starts_with(begins));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

/// Converts a path to a `file:` URL.
fn file_url(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let mut url = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            url.push(byte.into());
        } else {
            // Writing to memory cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_detected_from_content() {
        let cases: [(&str, &[u8], &str); 10] = [
            ("a.txt", b"\x89PNG\r\n\x1a\n\0", "image/png"),
            ("a", b"\xff\xd8\xff\xe0", "image/jpeg"),
            ("a.png", b"RIFF\xff\0\0\0WEBPVP8", "image/webp"),
            ("a", b"RIFF\xff\0\0\0WAVEfmt", "audio/wav"),
            ("a.md", b"# title", "text/markdown"),
            ("a.JSON", b"{}", "application/json"),
            ("a.rs", b"BMW is a word", "text/plain"),
            ("a", b"%PDF-1.7", "application/pdf"),
            ("a.md", b"text\0", "application/octet-stream"),
            ("a", b"\xfe\xfe", "application/octet-stream"),
        ];
        for (name, content, want) in cases {
            assert_eq!(
                media_type(Path::new(name), content),
                want,
                "{name} {content:?}"
            );
        }
    }

    #[test]
    fn invalid_utf8_is_counted() {
        let mut notes = Vec::new();
        assert_eq!(lossy(b"plain".to_vec(), "stdin", &mut notes), "plain");
        assert!(notes.is_empty());
        // Latin-1.
        assert_eq!(
            lossy(b"na\xefve caf\xe9".to_vec(), "stdin", &mut notes),
            "na\u{fffd}ve caf\u{fffd}"
        );
        assert!(
            notes[0].starts_with("stdin is not UTF-8 text: 2 of 10 bytes"),
            "{notes:?}"
        );
    }

    #[test]
    fn agents_without_embedded_content_get_a_file_link() {
        let file = AttachedFile {
            path: "/a b/ü.md".into(),
            name: "ü.md".to_owned(),
            media_type: "text/markdown",
            content: b"x".to_vec(),
        };
        let all = AgentCapabilities {
            embedded_context: true,
            ..AgentCapabilities::default()
        };
        assert_eq!(file.part(all)["url"], "data:text/markdown;base64,eA==");
        let none = AgentCapabilities::default();
        assert_eq!(file.part(none)["url"], "file:///a%20b/%C3%BC.md");
    }
}
