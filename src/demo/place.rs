//! Where the demo keeps its sessions, how it names them, and how it writes a time.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What every session id begins with.
const PREFIX: &str = "demo";

/// The directory of the session files: `$ACPIPE_DEMO_DIR`, else a place of its own below the platform's
/// directory for state. `None` where the environment names neither.
pub fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    // A relative path here would scatter sessions over whatever directories acpipe is started in.
    let absolute = |name| path(name).filter(|path| path.is_absolute());
    let state = || {
        if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            absolute("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            absolute("XDG_STATE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        }
    };
    path("ACPIPE_DEMO_DIR").or_else(|| state().map(|state| state.join("acpipe").join("demo-agent")))
}

/// A name nothing else has: the time in milliseconds, so that names sort by age, then 64 random bits.
pub fn fresh(prefix: &str) -> String {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    // The standard library seeds every RandomState differently: chance enough for a name.
    let random = RandomState::new().build_hasher().finish();
    format!("{prefix}-{millis:011x}-{random:016x}")
}

/// A new session's id.
pub fn fresh_session() -> String {
    fresh(PREFIX)
}

/// Whether `id` can be one of ours. An id becomes a file name and the client may send any string, so
/// nothing passes that could leave the directory or be a special name on some platform.
pub fn is_session(id: &str) -> bool {
    id.strip_prefix(PREFIX).is_some_and(|rest| {
        rest.starts_with('-')
            && rest.len() <= 60
            && rest
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_digit() || byte.is_ascii_lowercase())
    })
}

/// A time as ISO 8601 in UTC, such as `2026-11-21T21:58:03Z`.
pub fn iso8601(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, clock) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's `civil_from_days`: years begin in March, so that a leap day ends one.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn place(variables: &[(&str, &str)]) -> Option<PathBuf> {
        directory(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn its_own_variable_wins_and_an_empty_one_does_not_count() {
        let own = place(&[
            ("ACPIPE_DEMO_DIR", "/d"),
            ("HOME", "/h"),
            ("XDG_STATE_HOME", "/x"),
        ]);
        assert_eq!(own, Some(PathBuf::from("/d")));
        assert_eq!(place(&[("ACPIPE_DEMO_DIR", "")]), None);
        assert_eq!(place(&[]), None);
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_state_directory_is_xdg_then_home_and_never_relative() {
        let expect = |path: &str| Some(PathBuf::from(path));
        assert_eq!(
            place(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]),
            expect("/x/acpipe/demo-agent")
        );
        assert_eq!(
            place(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]),
            expect("/h/.local/state/acpipe/demo-agent")
        );
        assert_eq!(place(&[("HOME", "h")]), None);
    }

    #[test]
    fn ids_are_unique_and_cannot_leave_the_directory() {
        let (one, two) = (fresh_session(), fresh_session());
        assert_ne!(one, two);
        assert!(is_session(&one) && is_session(&two));
        for bad in [
            "",
            "demo",
            "con",
            "demo-../x",
            "demo-/x",
            "demo-\\x",
            "demo-a.b",
            "../demo-a",
            "demo-A",
            "demo-é",
            "demo-\0",
        ] {
            assert!(!is_session(bad), "{bad:?}");
        }
        assert!(!is_session(&format!("demo-{}", "a".repeat(100))));
    }

    #[test]
    fn times_are_written_as_iso_8601() {
        let at = |seconds| iso8601(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_298_283), "2026-11-21T21:58:03Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
