//! The version that `acpipe --version` prints.

use std::sync::LazyLock;

/// Version of this program. The scripts that build packages name the commit, for example `1a2b3c4d5 2026-11-27`;
/// a build without them has no commit.
pub static VERSION: LazyLock<String> = LazyLock::new(|| with_commit(option_env!("ACPIPE_COMMIT")));

fn with_commit(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_follows_the_version_if_the_build_names_it() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(with_commit(None), version);
        assert_eq!(
            with_commit(Some("1a2b3c4d5 2026-11-27")),
            format!("{version} (1a2b3c4d5 2026-11-27)")
        );
    }
}
