//! `acpipe daemon restart`: the next daemon is chosen and checked while the earlier one still runs.

use super::connect::connect_control;
use super::control::Control;
use super::dropped_options::dropped_options;
use super::hello::DaemonInfo;
use super::lasting_files::check_files;
use super::serve::checked;
use super::start::begin_start;
use super::start_options::StartVariables;
use super::{check_resident, current_directory, given_options, note_start, start, state_of};
use crate::cli::args::daemon::{DaemonVerb, ResidentArgs, StartArgs};
use crate::cli::args::hints::try_parse;
use crate::cli::args::{DaemonArgs, Verb};
use crate::cli::config::UserFile;
#[cfg(feature = "listen")]
use crate::cli::http::check_free;
use crate::cli::{UsageError, persists_with, print_note};
use acpipe_model::secret::Secrets;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// Start of the next daemon.
struct NextDaemon {
    options: Vec<String>,
    directory: PathBuf,
    variables: StartVariables,
}

/// Stops the daemon and starts the next one. One that cannot start leaves the earlier one running.
pub async fn restart(args: &StartArgs, secrets: &Secrets) -> anyhow::Result<()> {
    check_resident(&args.resident)?;
    check_files(&args.resident, &StartVariables::own())?;
    let state = state_of(&args.resident)?;
    let mut next = NextDaemon {
        options: given_options("restart"),
        directory: current_directory()?,
        variables: StartVariables::own(),
    };
    let mut dropped = Vec::new();
    let begun = begin_start(&state).await?;
    if let Some(connection) = connect_control(&state).await? {
        next = next.after(&connection.info)?;
        let result = next.check(&state, secrets, &connection.info);
        result.context(
            "the daemon was not restarted, and the earlier one still runs; correct this, or restart it with another --config",
        )?;
        dropped = dropped_options(&connection.info.args, &next.options);
        Control::begin(connection).await?.stop().await?;
    }
    start::start(
        &begun,
        &state,
        &next.directory,
        &next.options,
        &next.variables,
    )?;
    if !dropped.is_empty() {
        let names = dropped.join(", ");
        print_note(&format!(
            "options of the earlier daemon that no longer hold: {names}; give all options to keep them"
        ));
    }
    note_start(&state).await
}

impl NextDaemon {
    /// Keeps what the caller does not replace: without options all options and the directory, else the configuration; and
    /// each variable.
    fn after(mut self, earlier: &DaemonInfo) -> anyhow::Result<Self> {
        let names_file = self.variables.config.is_some();
        self.variables = self.variables.or(earlier.variables.clone());
        if self.options.is_empty() {
            self.options.clone_from(&earlier.args);
            self.directory = PathBuf::from(&earlier.cwd);
        } else if !names_file && let Some(file) = parsed(&earlier.args)?.agent.permissions.config {
            let file = Path::new(&earlier.cwd).join(file);
            self.variables.config = Some(file.to_string_lossy().into_owned());
        }
        // The environment of this process may lead to another file in the usual place.
        let is_named = self.variables.config.is_some()
            || parsed(&self.options)?.agent.permissions.config.is_some();
        if let Some(file) = &earlier.user_file
            && !is_named
            && Some(Path::new(file)) != UserFile::usual().as_deref()
            && Path::new(file).exists()
        {
            self.variables.config = Some(file.clone());
        }
        Ok(self)
    }

    /// Checks that the daemon can start with these options and this configuration once the earlier one has ended.
    #[cfg_attr(
        not(feature = "listen"),
        expect(unused_variables, reason = "this build has no HTTP server")
    )]
    fn check(&self, state: &Path, secrets: &Secrets, earlier: &DaemonInfo) -> anyhow::Result<()> {
        let directory = self.directory.display();
        std::env::set_current_dir(&self.directory).with_context(|| {
            format!("cannot use the directory of its start, {directory}; restart it with options from another one")
        })?;
        let mut resident = parsed(&self.options)?;
        check_files(&resident, &self.variables)?;
        let agent = &mut resident.agent;
        persists_with(agent.store.persist, self.variables.persist.as_deref())?;
        agent.store.place.state_dir = Some(state.to_owned());
        let variable = self.variables.config.as_ref().map(PathBuf::from);
        let option = agent.permissions.config.take();
        agent.permissions.config = option.or(variable);
        // The variables of this process are not those of the daemon.
        agent.is_of_client = true;
        checked(&resident, secrets)?;
        #[cfg(feature = "listen")]
        check_free(&resident.listen, &earlier.listening)?;
        Ok(())
    }
}

/// Returns the arguments of a daemon with these options.
fn parsed(options: &[String]) -> anyhow::Result<ResidentArgs> {
    let words = ["acpipe", "daemon", "run"].into_iter();
    let words = words.chain(options.iter().map(String::as_str));
    let cli = try_parse(words).map_err(|error| {
        UsageError(format!(
            "the daemon was started with options that this acpipe does not accept; stop it, and start it with others: \
             {error}"
        ))
    })?;
    match cli.verb {
        Verb::Daemon(DaemonArgs {
            verb: DaemonVerb::Run(run),
        }) => Ok(run.resident),
        _ => Err(UsageError("the options of the daemon cannot be read".to_owned()).into()),
    }
}
