//! The configuration that `acpipe doctor` checks, and whose agents it knows.

use super::args::DoctorArgs;
use crate::cli::config::{self, Config, LoadArgs};
use crate::cli::state_dir;
use acpipe_model::builtin_agents;

/// Reads the configuration of the user and of the project.
pub fn configuration_of(args: &DoctorArgs) -> anyhow::Result<Config> {
    let cwd = crate::cli::working_directory()?;
    let state = state_dir(&args.place)?;
    config::load(&LoadArgs {
        texts: None,
        config: args.config.as_deref(),
        ignores_variable: false,
        mode: None,
        default_mode: None,
        cwd: Some(args.cwd.as_deref().map_or(&*cwd, |dir| dir)),
        state_dir: Some(&state),
        is_builtin: &|name| builtin_agents::find(name).is_some(),
    })
}
