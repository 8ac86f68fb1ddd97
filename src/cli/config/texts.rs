//! Texts of the configuration files that count for a command.
//!
//! The process of the command reads them, with its own environment, user and descriptors. A client of the daemon sends
//! them to it, because the daemon has others.

use super::read::{self, UserFile};
use super::{LoadArgs, home, project, trust};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Configuration files of a command, as its process reads them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigTexts {
    /// The user's file, which may not exist; `None` if the platform has no configuration directory.
    pub(super) user_file: Option<UserFile>,
    /// Text of the user's file, if it exists.
    pub(super) user_text: Option<String>,
    /// The project's file, if there is one.
    pub(super) project: Option<ProjectText>,
    /// Notes about projects' files that have no effect because they belong to another user.
    pub(super) foreign: Vec<String>,
    /// Home directory of the user, for `~` in paths.
    pub(super) home: Option<String>,
}

/// Configuration file of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProjectText {
    pub file: PathBuf,
    pub text: String,
    /// `true` if the user trusts the file with this text.
    pub is_trusted: bool,
}

impl ConfigTexts {
    /// Reads the files that the arguments and the environment of this process name.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(args: &LoadArgs<'_>) -> anyhow::Result<Self> {
        let user_file = UserFile::of(args.config, args.ignores_variable);
        let user_text = match &user_file {
            Some(file) => file.text()?,
            None => None,
        };
        let home = home();
        let search = args
            .cwd
            .map(|cwd| project::find(cwd, home.as_deref().map(Path::new)));
        let search = search.unwrap_or_default();
        let project = match search.found {
            // A file that the user named as their own is not a project's.
            Some((file, _)) if user_file.as_ref().is_some_and(|own| own.is(&file)) => None,
            Some((file, opened)) => {
                let text = read::project_text(&file, opened)?;
                let is_trusted = args
                    .state_dir
                    .is_some_and(|state| trust::is_trusted(state, &file, &text));
                Some(ProjectText {
                    file,
                    text,
                    is_trusted,
                })
            }
            None => None,
        };
        let foreign = search.foreign.into_iter().map(|(file, error)| {
            let file = file.display();
            format!("{file} has no effect: it {error}; change its owner to use it")
        });
        Ok(Self {
            user_file,
            user_text,
            project,
            foreign: foreign.collect(),
            home,
        })
    }
}
