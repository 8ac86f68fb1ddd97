//! Known secrets of this process.

use acpipe_model::secret::Secrets;
use std::ffi::OsString;

/// Creates a list of known secrets with those of the environment of this process.
#[must_use]
pub fn own_secrets() -> Secrets {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, Some(value.into_string().ok()?)))
    };
    Secrets::of_environment(std::env::vars_os().filter_map(text).collect())
}
