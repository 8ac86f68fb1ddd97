//! Profiles of agents: the faults that `acpipe doctor --probe` measured, stored in the state directory.
//!
//! ```text
//! <state directory>/profiles/<escaped name of the agent>.json
//! ```

use super::ownership::make_private;
use super::{regular, store};
use acpipe_core::quirks::Quirks;
use acpipe_json::read_bytes;
use acpipe_model::error::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tracing::warn;

/// Directory of the profiles within the state directory.
const DIRECTORY: &str = "profiles";

/// File extensions of a profile and of one that is being written.
const PROFILE: &str = "json";
const NEW: &str = "new";

/// Version of the format.
const FORMAT: u32 = 1;

/// Maximum number of profiles that are read.
const MAX_PROFILES: usize = 1024;

/// Maximum size of a profile in bytes.
const MAX_PROFILE_BYTES: u64 = 256 << 10;

/// Measured profile of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentProfile {
    /// Version of the format.
    format: u32,
    /// Name of the agent, or the key of its program if it has no name.
    pub agent: String,
    /// Command line of the agent that was measured.
    pub command: String,
    /// Version that the agent reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Date of the measurement, as RFC 3339.
    pub date: String,
    /// Faults of the agent.
    pub quirks: Quirks,
    /// Measured times and results, by the name of the check.
    #[serde(default)]
    pub measured: Map<String, Value>,
}

impl AgentProfile {
    /// Creates a profile without measured values.
    #[must_use]
    pub fn new(agent: String, command: String, date: String, quirks: Quirks) -> Self {
        Self {
            format: FORMAT,
            agent,
            command,
            version: None,
            date,
            quirks,
            measured: Map::new(),
        }
    }

    /// Writes the profile, which replaces an earlier one of the same agent. Returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, state: &Path) -> Result<PathBuf, Error> {
        let dir = state.join(DIRECTORY);
        let path = path_of(&dir, &self.agent);
        self.write_to(&dir, &path).map_err(|e| {
            let message = format!(
                "cannot write the profile {}: {e}; choose another directory with --state-dir",
                path.display()
            );
            Error::new(ErrorKind::Storage, message)
        })?;
        Ok(path)
    }

    fn write_to(&self, dir: &Path, path: &Path) -> io::Result<()> {
        make_private(dir)?;
        let new = path.with_extension(format!("{}.{NEW}", std::process::id()));
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        let mut file = regular::create(&new)?;
        let written = file.write_all(&json).and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

fn path_of(dir: &Path, agent: &str) -> PathBuf {
    dir.join(format!("{}.{PROFILE}", store::escaped(agent)))
}

/// Reads the faults of all agents that have a profile, by the name of the agent. A profile that cannot be
/// read is skipped with a warning.
#[must_use]
pub fn read_all(state: &Path) -> BTreeMap<String, Quirks> {
    let entries = fs::read_dir(state.join(DIRECTORY))
        .into_iter()
        .flatten()
        .flatten();
    let files = entries.map(|entry| entry.path()).take(MAX_PROFILES);
    let files = files.filter(|file| file.extension().is_some_and(|e| e == PROFILE));
    let profiles = files.filter_map(|file| match read(&file) {
        Ok(profile) => Some((profile.agent, profile.quirks)),
        Err(error) => {
            warn!(
                "cannot read the agent profile {}: {error}; measure the agent again with acpipe doctor --probe, or \
                 delete the file",
                file.display()
            );
            None
        }
    });
    profiles.collect()
}

fn read(file: &Path) -> io::Result<AgentProfile> {
    let json = regular::read(file, MAX_PROFILE_BYTES)?;
    let profile: AgentProfile = read_bytes(&json)?;
    if profile.format != FORMAT {
        let message = format!("its format {} is not supported", profile.format);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let dir = format!("acpipe-profiles-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(dir);
            let _ = fs::remove_dir_all(&dir);
            Self(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn profile(agent: &str, late: u32) -> AgentProfile {
        let quirks = Quirks {
            late_output_ms: Some(late),
            ..Quirks::default()
        };
        let (command, date) = ("agent --acp".to_owned(), "2026-01-02T03:04:05Z".to_owned());
        AgentProfile::new(agent.to_owned(), command, date, quirks)
    }

    #[test]
    fn profiles_are_read_by_agent_and_replace_earlier_ones() {
        let state = Scratch::new("replace");
        assert_eq!(read_all(&state.0), BTreeMap::new());
        for (agent, late) in [("codex", 1), ("node /a/../Agent.js", 2), ("codex", 3)] {
            let path = profile(agent, late).write(&state.0).unwrap();
            assert_eq!(path.parent(), Some(&*state.0.join("profiles")));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let late = |quirks: Quirks| quirks.late_output_ms.unwrap();
        let read = read_all(&state.0).into_iter();
        let read: Vec<_> = read.map(|(agent, quirks)| (agent, late(quirks))).collect();
        let want = [
            ("codex".to_owned(), 3),
            ("node /a/../Agent.js".to_owned(), 2),
        ];
        assert_eq!(read, want);
        assert_eq!(fs::read_dir(state.0.join("profiles")).unwrap().count(), 2);
    }

    #[test]
    fn unreadable_profiles_are_skipped() {
        let state = Scratch::new("skip");
        let good = profile("good", 1).write(&state.0).unwrap();
        let text = fs::read_to_string(&good).unwrap();
        let others = [
            ("torn.json", text[..text.len() / 2].to_owned()),
            (
                "future.json",
                text.replace("\"format\": 1", "\"format\": 2"),
            ),
            ("unknown.json", text.replace("lateOutputMs", "otherQuirk")),
            ("unfinished.1.new", text.replace("good", "bad")),
        ];
        for (name, text) in others {
            fs::write(state.0.join("profiles").join(name), text).unwrap();
        }
        let names: Vec<String> = read_all(&state.0).into_keys().collect();
        assert_eq!(names, ["good"]);
    }

    #[test]
    fn directory_that_cannot_be_created_is_an_error() {
        let error = profile("a", 1).write(Path::new("/dev/null")).unwrap_err();
        assert!(
            error.message.contains("cannot write the profile"),
            "{}",
            error.message
        );
    }
}
