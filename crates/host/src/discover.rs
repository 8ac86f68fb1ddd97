//! Search for the file of an agent's command and the `PATH` that the agent needs.
//!
//! Programs that are started by a desktop have a minimal `PATH`. A program, or the interpreter of a script,
//! that is not found there is searched in the `PATH` of the user's login shell.

mod claude;
mod login;
mod script;
mod windows;

use super::process_settings::ProcessSettings;
use acpipe_dialects::claude::CLAUDE;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::shown_words;
use acpipe_model::transport::{Fallback, ProcessSpec};
use acpipe_protocol::wire::{FoundBy, PassedOver, Program, Protocol};
pub use login::LoginShell;
use std::env::{join_paths, split_paths};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Maximum number of places that an error or a status names.
const MAX_LISTED_PLACES: usize = 40;

/// Variable with the search path, and its default if it is not set.
const PATH: &str = "PATH";
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Program that was found.
#[derive(Debug)]
pub struct FoundProgram {
    /// Absolute path of its file.
    pub file: PathBuf,
    /// `PATH` for the agent, if it needs more directories than it has.
    pub path: Option<String>,
    /// Description for the status: file, and how it was found.
    pub program: Program,
    /// Command line in place of the agent's own, if the program is that of the fallback.
    pub fallback: Option<Fallback>,
}

/// Finds the program of an agent, or the package runner that can run it. May take as long as a login shell
/// takes to start.
///
/// # Errors
/// The program is not found, or cannot be run.
pub async fn program(
    spec: &ProcessSpec,
    login: &LoginShell,
    terms: ProcessSettings,
) -> Result<FoundProgram, Error> {
    let error = match installed(spec, login, terms.clone()).await {
        Err(error) if error.kind == ErrorKind::AgentNotFound => error,
        found => return found,
    };
    let Some(fallback) = &spec.fallback else {
        return Err(error);
    };
    let runner = ProcessSpec {
        command: fallback.command.clone(),
        cwd: fallback.cwd.clone(),
        fallback: None,
        ..spec.clone()
    };
    match installed(&runner, login, terms).await {
        Ok(mut found) => {
            found.program.found_by = FoundBy::PackageRunner;
            found.fallback = Some(fallback.clone());
            Ok(found)
        }
        Err(_) => Err(error),
    }
}

/// Finds the program of an agent in `PATH` and the places where installers put it, without its fallback and
/// without asking the login shell.
#[must_use]
pub fn find_on_path(spec: &ProcessSpec) -> Option<Program> {
    let search = CommandSearch::new(spec, &|name| variable(spec, name), &[]);
    Some(search.first_runnable().ok()?.program)
}

/// Finds the program of an agent, without its fallback.
async fn installed(
    spec: &ProcessSpec,
    login: &LoginShell,
    terms: ProcessSettings,
) -> Result<FoundProgram, Error> {
    if !Path::new(&spec.cwd).is_dir() {
        let message = format!("cwd: {} is not a directory", spec.cwd);
        return Err(Error::new(ErrorKind::InvalidParams, message).with("field", "cwd"));
    }
    let search = |more: &[PathBuf]| CommandSearch::new(spec, &|name| variable(spec, name), more);
    let first = search(&[]);
    let missing = match first.first_runnable() {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    // A `PATH` set by the client is used unchanged.
    if spec.env.0.contains_key(PATH) || !missing.may_be_elsewhere(first.given.is_some()) {
        return Err(first.explain(&missing, ""));
    }
    match login.dirs(terms).await {
        Ok(more) => {
            let second = search(more);
            let found = second.first_runnable();
            found
                .map_err(|missing| second.explain(&missing, ", nor in the PATH of the login shell"))
        }
        Err(why) => {
            let why = format!(", and the PATH of the login shell is unknown ({why})");
            Err(first.explain(&missing, &why))
        }
    }
}

/// Search for a command.
struct CommandSearch<'a> {
    spec: &'a ProcessSpec,
    is_claude: bool,
    windows: bool,
    /// The agent's `PATH`, and its directories.
    path: Option<OsString>,
    own: Vec<PathBuf>,
    /// Directories that only the login shell has.
    more: Vec<PathBuf>,
    /// Candidate files, best first.
    files: Vec<(PathBuf, FoundBy)>,
    /// The only candidate, if the command is a path or a variable names the file.
    given: Option<PathBuf>,
}

/// Candidates that exist but cannot be run, best first.
struct Missing(Vec<(PathBuf, RunFault)>);

/// Reason why a file cannot be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum RunFault {
    #[error("it is not a file")]
    NoFile,
    #[error("it is not executable; try chmod +x")]
    NotExecutable,
    #[error("the interpreter in its first line was not found: {0:?}")]
    NoInterpreter(String),
    #[error("its interpreter {0:?} is not in PATH")]
    NotInPath(String),
}

impl<'a> CommandSearch<'a> {
    /// Collects the candidate files; `login` are the directories of the login shell.
    fn new(
        spec: &'a ProcessSpec,
        lookup: &dyn Fn(&str) -> Option<OsString>,
        login: &[PathBuf],
    ) -> Self {
        Self::on(cfg!(windows), spec, lookup, login)
    }

    fn on(
        windows: bool,
        spec: &'a ProcessSpec,
        lookup: &dyn Fn(&str) -> Option<OsString>,
        login: &[PathBuf],
    ) -> Self {
        let is_claude = spec.protocol == Protocol::Claude && spec.command == CLAUDE;
        let path = lookup(PATH).or_else(|| (!is_claude && !windows).then(|| DEFAULT_PATH.into()));
        let own: Vec<PathBuf> = path.iter().flat_map(split_paths).collect();
        let new = |dir: &&PathBuf| !own.contains(dir);
        let mut search = Self {
            more: login.iter().filter(new).cloned().collect(),
            spec,
            is_claude,
            windows,
            path,
            own,
            files: Vec::new(),
            given: None,
        };
        search.collect_candidates(lookup);
        search
    }

    fn collect_candidates(&mut self, lookup: &dyn Fn(&str) -> Option<OsString>) {
        let cwd = Path::new(&self.spec.cwd);
        let command = &self.spec.command;
        let alone = if self.is_claude {
            claude::named(lookup).map(|file| (cwd.join(file), FoundBy::Variable))
        } else {
            let is_path = command.contains(std::path::is_separator);
            is_path.then(|| (cwd.join(command), FoundBy::GivenPath))
        };
        if let Some((file, by)) = alone {
            self.given = Some(file.clone());
            self.files = vec![(file, by)];
            return;
        }
        let names = match (self.is_claude, self.windows) {
            (true, windows) => claude::names(windows),
            (false, true) => windows::names(command, lookup("PATHEXT").as_deref()),
            (false, false) => vec![command.clone()],
        };
        let within = |dirs: &[PathBuf], by: FoundBy| -> Vec<(PathBuf, FoundBy)> {
            let files = dirs
                .iter()
                .flat_map(|dir| names.iter().map(move |name| cwd.join(dir).join(name)));
            files.map(|file| (file, by)).collect()
        };
        let mut files = within(&self.own, FoundBy::Path);
        files.extend(within(&self.more, FoundBy::LoginShell));
        if self.is_claude {
            let known = claude::known_places(lookup, self.windows);
            files.extend(known.into_iter().map(|file| (file, FoundBy::KnownPlace)));
        }
        self.files = files;
    }

    /// Returns the first candidate that can be run.
    fn first_runnable(&self) -> Result<FoundProgram, Missing> {
        let mut unfit = Vec::new();
        for (file, found_by) in &self.files {
            match self.check(file) {
                None => {}
                Some(Ok(())) => return Ok(self.found(file, *found_by, &unfit)),
                Some(Err(fault)) => unfit.push((file.clone(), fault)),
            }
        }
        Err(Missing(unfit))
    }

    /// Checks that a file can be run; `None` if it does not exist.
    fn check(&self, file: &Path) -> Option<Result<(), RunFault>> {
        // In a search by name, a directory of that name is not a candidate.
        if !file.exists() || (file.is_dir() && self.given.is_none()) {
            return None;
        }
        if !file.is_file() {
            return Some(Err(RunFault::NoFile));
        }
        if !may_run(file) {
            return Some(Err(RunFault::NotExecutable));
        }
        let Some(interpreter) = script::interpreter(file) else {
            return Some(Ok(()));
        };
        let cwd = Path::new(&self.spec.cwd);
        if !cwd.join(&interpreter.file).exists() {
            return Some(Err(RunFault::NoInterpreter(interpreter.file)));
        }
        let Some(name) = interpreter.by_name else {
            return Some(Ok(()));
        };
        let mut dirs = self.own.iter().chain(&self.more);
        let there = dirs.any(|dir| is_program(&cwd.join(dir).join(&name)));
        Some(if there {
            Ok(())
        } else {
            Err(RunFault::NotInPath(name))
        })
    }

    fn found(&self, file: &Path, found_by: FoundBy, unfit: &[(PathBuf, RunFault)]) -> FoundProgram {
        let passed_over = unfit
            .iter()
            .take(MAX_LISTED_PLACES)
            .map(|(file, fault)| PassedOver {
                file: shown(file),
                reason: fault.to_string(),
            });
        let real = std::fs::canonicalize(file);
        FoundProgram {
            program: Program {
                file: shown(file),
                real_file: shown(real.as_deref().unwrap_or(file)),
                found_by,
                passed_over: passed_over.collect(),
                added_path: self.more.iter().map(|dir| shown(dir)).collect(),
            },
            file: file.to_owned(),
            path: self.widened(),
            fallback: None,
        }
    }

    /// Returns the agent's `PATH` with the additional directories of the login shell at its end; `None` if
    /// there are none.
    fn widened(&self) -> Option<String> {
        if self.more.is_empty() {
            return None;
        }
        let mut path = self.path.clone().unwrap_or_default();
        if !path.is_empty() {
            path.push(if self.windows { ";" } else { ":" });
        }
        path.push(join_paths(&self.more).ok()?);
        path.into_string().ok()
    }

    /// Builds the error with its remedy; `login` is the result of asking the login shell, if it was asked.
    fn explain(&self, missing: &Missing, login: &str) -> Error {
        let command = &self.spec.command;
        // A whole line in place of the program may have a secret option.
        let is_line = command.trim().contains(char::is_whitespace);
        let shown_command = if is_line {
            shown_words(command)
        } else {
            command.clone()
        };
        // For Claude, `given` is set only by the variable.
        let by_variable = if self.is_claude && self.given.is_some() {
            claude::ADVICE
        } else {
            ""
        };
        let (kind, message) = match (missing.0.first(), &self.given) {
            (Some((file, fault)), _) => {
                let for_want_of_path = matches!(fault, RunFault::NotInPath(_));
                let login = if for_want_of_path { login } else { "" };
                let file = file.display();
                let message = format!("cannot start agent {file}: {fault}{login}{by_variable}");
                (ErrorKind::AgentStart, message)
            }
            (None, Some(file)) => {
                let advice = if by_variable.is_empty() {
                    "; check the path"
                } else {
                    by_variable
                };
                let file = file.display();
                let message = format!("cannot start agent: file {file} not found{advice}");
                (ErrorKind::AgentNotFound, message)
            }
            (None, None) => {
                let message = if self.is_claude {
                    let known = |(_, by): &&(_, FoundBy)| *by == FoundBy::KnownPlace;
                    let known = self.files.iter().filter(known).count();
                    claude::missing(self.own.len() + self.more.len(), login, known)
                } else {
                    let advice = if is_line {
                        format!("it is read as one word; remove the quotes (-- {shown_command})")
                    } else {
                        "install it, or pass its path".to_owned()
                    };
                    format!(
                        "cannot start agent `{shown_command}`: not found in PATH{login}; {advice}"
                    )
                };
                (ErrorKind::AgentNotFound, message)
            }
        };
        let error = Error::new(kind, message).with("command", shown_command.as_str());
        if self.given.is_some() {
            return error;
        }
        let tried = self
            .files
            .iter()
            .take(MAX_LISTED_PLACES)
            .map(|(file, _)| shown(file));
        error.with("tried", tried.collect::<Vec<_>>())
    }
}

impl Missing {
    /// Returns `true` if a longer `PATH` might help; `given` if the search had a single candidate.
    fn may_be_elsewhere(&self, given: bool) -> bool {
        let for_want_of_path = |(_, fault): &(_, RunFault)| matches!(fault, RunFault::NotInPath(_));
        !given || self.0.iter().any(for_want_of_path)
    }
}

/// Returns a variable of the agent's environment; an empty one counts as unset.
fn variable(spec: &ProcessSpec, name: &str) -> Option<OsString> {
    let set = match spec.env.0.get(name) {
        Some(set) => set.as_ref().map(OsString::from),
        None => std::env::var_os(name),
    };
    set.filter(|value| !value.is_empty())
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns `true` for an executable file.
fn is_program(file: &Path) -> bool {
    file.is_file() && may_run(file)
}

#[cfg(unix)]
fn may_run(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn may_run(_: &Path) -> bool {
    true
}
