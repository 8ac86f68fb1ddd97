//! Location of the CLI's session files, and the listing of sessions from them.
//!
//! The layout was determined with version 2.1.330: `<root>/projects/<encoded directory>/<session>.jsonl`, for
//! the directory with links resolved.

use super::history::{UserText, user_text};
use acpipe_json::{non_null, raw_object, text};
use acpipe_model::event::ListedSession;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Maximum length of a project directory's name; a longer name is cut, and its hash appended.
const NAME_LIMIT: usize = 200;

/// Maximum length of a title that is made of a prompt, in characters.
const TITLE_LIMIT: usize = 120;

/// Returns the directory in which the CLI stores its files, given a lookup of environment variables; `None`
/// if none of the variables for it is set.
pub fn root(lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
    lookup("CLAUDE_CONFIG_DIR").or_else(|| {
        let home = lookup("HOME").or_else(|| lookup("USERPROFILE"))?;
        Some(join(&home, ".claude"))
    })
}

/// Returns the directory with the sessions of a working directory, whose links are already resolved.
pub fn dir(root: &str, cwd: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let name = lookup("CLAUDE_CODE_PROJECT_DIR_NAME").filter(|name| is_name(name));
    let name = name.unwrap_or_else(|| encode(cwd));
    join(&join(root, "projects"), &name)
}

/// Returns the file of a session in its project's directory; `None` for an id that would be a path outside of
/// it.
pub fn file(dir: &str, session: &str) -> Option<String> {
    is_name(session).then(|| join(dir, &format!("{session}.jsonl")))
}

/// Returns `true` for a valid file name that cannot be a path to another directory.
fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn join(dir: &str, name: &str) -> String {
    format!("{}/{name}", dir.trim_end_matches('/'))
}

/// Encodes a working directory as the CLI does: every UTF-16 unit except ASCII letters and digits becomes
/// `-`.
fn encode(cwd: &str) -> String {
    let units = || cwd.encode_utf16();
    let plain = |unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
    let name: String = units()
        .map(|unit| plain(unit).map_or('-', char::from))
        .collect();
    if name.len() <= NAME_LIMIT {
        return name;
    }
    // The usual string hash of JavaScript programs (multiplier 31).
    let hash = units().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    format!("{}-{}", &name[..NAME_LIMIT], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Excerpt of a session file for listing: a line of the shell's answer for a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionExcerpt {
    /// File name.
    pub file: String,
    /// Time of the last modification, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Length in bytes.
    pub size: u64,
    /// First complete lines.
    pub head: String,
    /// Last complete lines, without those in `head`.
    pub tail: String,
}

raw_object! {
    /// Fields of a record that describe its session.
    struct ExcerptRecord {
        kind = "type",
        cwd = "cwd",
        sidechain = "isSidechain",
        meta = "isMeta",
        compact_summary = "isCompactSummary",
        origin = "origin",
        message = "message",
        custom_title = "customTitle",
        ai_title = "aiTitle",
        summary = "summary",
        last_prompt = "lastPrompt",
        relocated_cwd = "relocatedCwd",
    }
}

raw_object! {
    struct ExcerptMessage { content = "content" }
}

raw_object! {
    struct ExcerptBlock { kind = "type", text = "text" }
}

impl SessionExcerpt {
    /// Returns the session; `None` if the file is not of a session, or of one without any user message.
    pub fn session(&self) -> Option<ListedSession> {
        let id = self.file.strip_suffix(".jsonl").filter(|id| is_name(id))?;
        let mut about = SessionFacts::default();
        for line in self.head.lines().chain(self.tail.lines()) {
            // A line that cannot be read is counted when the history is loaded.
            if let Ok(record) = serde_json::from_str(line) {
                about.add(&record);
            }
        }
        if about.is_subagent == Some(true) || about.is_empty() {
            return None;
        }
        let updated = jiff::Timestamp::from_millisecond(self.modified_ms);
        Some(ListedSession {
            id: id.to_owned(),
            title: about.title(),
            cwd: about.relocated.or(about.cwd).map(Cow::into_owned),
            updated_at: updated.ok().map(|at| format!("{at:.3}")),
        })
    }
}

/// Description of a session collected from the records of its file.
#[derive(Default)]
struct SessionFacts<'a> {
    /// `true` if the first record is of a subagent.
    is_subagent: Option<bool>,
    cwd: Option<Cow<'a, str>>,
    relocated: Option<Cow<'a, str>>,
    custom: Option<Cow<'a, str>>,
    by_model: Option<Cow<'a, str>>,
    summary: Option<Cow<'a, str>>,
    first_prompt: Option<String>,
    last_prompt: Option<Cow<'a, str>>,
}

impl<'a> SessionFacts<'a> {
    fn add(&mut self, record: &ExcerptRecord<'a>) {
        if let Some(sidechain) = record.sidechain {
            self.is_subagent.get_or_insert(sidechain.get() == "true");
        }
        if self.cwd.is_none() {
            self.cwd = said(record.cwd);
        }
        for (field, value) in [
            (&mut self.relocated, record.relocated_cwd),
            (&mut self.custom, record.custom_title),
            (&mut self.by_model, record.ai_title),
            (&mut self.summary, record.summary),
            (&mut self.last_prompt, record.last_prompt),
        ] {
            if let Some(news) = said(value) {
                *field = Some(news);
            }
        }
        if self.first_prompt.is_none() {
            self.first_prompt = prompt(record);
        }
    }

    /// Returns `true` if the file has neither a prompt nor a title.
    fn is_empty(&self) -> bool {
        let titles = [
            &self.custom,
            &self.by_model,
            &self.summary,
            &self.last_prompt,
        ];
        self.first_prompt.is_none() && titles.iter().all(|title| title.is_none())
    }

    /// Returns the title given by the user, else one generated by a model, else the first prompt.
    fn title(&self) -> Option<String> {
        let named = [&self.custom, &self.by_model, &self.summary];
        let named = named.into_iter().find_map(|title| title.as_deref());
        let title = named
            .or(self.first_prompt.as_deref())
            .or(self.last_prompt.as_deref())?;
        Some(clip(title))
    }
}

fn said(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(raw).filter(|said| !said.trim().is_empty())
}

fn prompt(record: &ExcerptRecord<'_>) -> Option<String> {
    let is = |flag: Option<&RawValue>| flag.is_some_and(|flag| flag.get() == "true");
    let by_user = text(record.kind)? == "user" && non_null(record.origin).is_none();
    if !by_user || is(record.meta) || is(record.compact_summary) || is(record.sidechain) {
        return None;
    }
    let message: ExcerptMessage<'_> = serde_json::from_str(record.message?.get()).ok()?;
    let content = message.content?;
    let users = |text: Cow<'_, str>| match user_text(&text) {
        UserText::Typed(said) => Some(said.into_owned()),
        UserText::Printed(_) | UserText::None => None,
    };
    if let Some(plain) = text(Some(content)) {
        return users(plain);
    }
    let blocks: Vec<ExcerptBlock<'_>> = serde_json::from_str(content.get()).ok()?;
    blocks
        .iter()
        .filter(|block| text(block.kind).as_deref() == Some("text"))
        .find_map(|block| users(text(block.text)?))
}

/// Converts a title to a single line of limited length.
fn clip(title: &str) -> String {
    let user_text: Vec<_> = title.split_whitespace().collect();
    let line = user_text.join(" ");
    match line.char_indices().nth(TITLE_LIMIT) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Names that the CLI (2.1.330) gave to these directories.
    #[test]
    fn directories_are_named_as_the_cli_names_them() {
        let a = "a".repeat(70);
        let x = "x".repeat(193);
        let long = format!("-tmp-w-{a}-{a}-{a}");
        let cases = [
            ("/tmp/w/with space", "-tmp-w-with-space"),
            ("/tmp/w/dots.and_under-score", "-tmp-w-dots-and-under-score"),
            ("/tmp/w/ünïcödé", "-tmp-w--n-c-d-"),
            ("/tmp/w/日本", "-tmp-w---"),
            ("/tmp/w/emoji😀x", "-tmp-w-emoji--x"),
            (&format!("/tmp/w/{x}"), &format!("-tmp-w-{x}")),
            (&format!("/tmp/w/{x}y"), &format!("-tmp-w-{x}-udyoqo")),
            (
                &format!("/tmp/w/{a}/{a}/{a}/deep"),
                &format!("{}-bqxwuc", &long[..NAME_LIMIT]),
            ),
            (
                &format!("/tmp/w/é{a}/{a}/{a}/日😀"),
                &format!("-tmp-w--{}-lfdqrh", &long[7..NAME_LIMIT - 1]),
            ),
            ("C:\\Users\\me", "C--Users-me"),
        ];
        for (cwd, name) in cases {
            assert_eq!(encode(cwd), name, "{cwd}");
        }
    }

    #[test]
    fn projects_directory_follows_the_environment() {
        let of = |set: &[(&str, &str)]| {
            root(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let all = [
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("HOME", "/h"),
            ("USERPROFILE", "/u"),
        ];
        assert_eq!(of(&all).as_deref(), Some("/c"));
        assert_eq!(of(&all[1..]).as_deref(), Some("/h/.claude"));
        assert_eq!(of(&all[2..]).as_deref(), Some("/u/.claude"));
        assert_eq!(of(&[("CLAUDE_CONFIG_DIR", ""), ("HOME", "")]), None);
    }

    #[test]
    fn ids_and_names_never_lead_out_of_their_directory() {
        let none = |_: &str| None;
        let here = dir("/c/", "/work/x", none);
        assert_eq!(here, "/c/projects/-work-x");
        assert_eq!(
            file(&here, "a-b_1").as_deref(),
            Some("/c/projects/-work-x/a-b_1.jsonl")
        );
        for id in ["", "..", "a/b", "../x", "a\0", "a.b"] {
            assert_eq!(file(&here, id), None, "{id}");
        }
        let named = |name: &'static str| dir("/c", "/x", move |_| Some(name.to_owned()));
        assert_eq!(named("mine"), "/c/projects/mine");
        assert_eq!(named("../mine"), "/c/projects/-x");
    }

    fn listed(head: &[serde_json::Value], tail: &[serde_json::Value]) -> Option<ListedSession> {
        let lines = |records: &[serde_json::Value]| {
            let lines = records.iter().map(|r| format!("{r}\n"));
            lines.collect::<String>()
        };
        let listed = SessionExcerpt {
            file: "5f0e.jsonl".to_owned(),
            modified_ms: 1_795_331_643_664,
            size: 1,
            head: format!("no json\n{}", lines(head)),
            tail: lines(tail),
        };
        let line = serde_json::to_string(&listed).unwrap();
        assert!(line.contains("modifiedMs"), "{line}");
        let back: SessionExcerpt = serde_json::from_str(&line).unwrap();
        assert_eq!(back, listed);
        back.session()
    }

    fn user(content: &serde_json::Value) -> serde_json::Value {
        json!({"type": "user", "isSidechain": false, "cwd": "/w", "message": {"role": "user", "content": content}})
    }

    #[test]
    fn session_is_listed_from_its_records() {
        let mut meta = user(&json!("not shown"));
        meta["isMeta"] = true.into();
        let asked = user(&json!([
            {"type": "text", "text": "<system-reminder>\nx\n</system-reminder>"},
            {"type": "text", "text": "make\n  it so"}
        ]));
        let head = [
            meta,
            user(&json!("<local-command-stdout>x</local-command-stdout>")),
            asked,
        ];
        let session = listed(&head, &[]).unwrap();
        assert_eq!(session.id, "5f0e");
        assert_eq!(session.cwd.as_deref(), Some("/w"));
        assert_eq!(session.title.as_deref(), Some("make it so"));
        assert_eq!(
            session.updated_at.as_deref(),
            Some("2026-11-22T07:14:03.664Z")
        );
        let titles = [
            json!({"type": "summary", "summary": "of old"}),
            json!({"type": "ai-title", "aiTitle": "by a model"}),
            json!({"type": "custom-title", "customTitle": "by hand"}),
            json!({"type": "custom-title", "customTitle": "newer"}),
        ];
        for (n, title) in ["of old", "by a model", "by hand", "newer"]
            .iter()
            .enumerate()
        {
            let session = listed(&head, &titles[..=n]).unwrap();
            assert_eq!(session.title.as_deref(), Some(*title));
        }
        let moved = json!({"type": "relocated", "relocatedCwd": "/there"});
        assert_eq!(
            listed(&head, &[moved]).unwrap().cwd.as_deref(),
            Some("/there")
        );
        let long = listed(&[user(&json!("é".repeat(500)))], &[]).unwrap();
        assert_eq!(long.title.unwrap().chars().count(), TITLE_LIMIT + 1);
    }

    #[test]
    fn files_without_a_conversation_are_not_listed() {
        assert_eq!(listed(&[], &[]), None);
        let mut subagent = user(&json!("go"));
        subagent["isSidechain"] = true.into();
        assert_eq!(listed(&[subagent], &[]), None);
        assert_eq!(listed(&[json!({"type": "cost-state"})], &[]), None);
        let late = json!({"type": "last-prompt", "lastPrompt": "as told at the end"});
        assert_eq!(
            listed(&[], &[late]).unwrap().title.as_deref(),
            Some("as told at the end")
        );
    }
}
