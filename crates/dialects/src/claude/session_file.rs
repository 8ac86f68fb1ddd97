//! File of a session, read or deleted without the CLI.

use super::history::{Chain, History};
use super::projects;
use acpipe_json::repair::Faults;
use acpipe_model::agent_file::{AgentFile, FileAccess};
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_model::event::AgentEvent;
use acpipe_model::line_repair::{LostLine, UnusableLine};
use acpipe_model::transport::Transport;
use acpipe_protocol::wire::Variables;

/// File of a session of the CLI.
#[derive(Debug)]
pub struct SessionFile {
    env: Variables,
    /// Working directory of the session; with links resolved after the first transport.
    cwd: String,
    id: String,
    access: FileAccess,
    stage: Stage,
}

/// Purpose of the open transport.
#[derive(Debug)]
enum Stage {
    /// Resolves the working directory.
    Path,
    /// Reads which records of this file are the history.
    Chain {
        path: String,
        chain: Box<Chain>,
    },
    History(Box<History>),
    Removal,
}

impl SessionFile {
    /// Creates the access to the file of the session `id` of the directory `cwd`, for a CLI with this
    /// environment.
    ///
    /// # Errors
    /// `invalidParams` if the id cannot be the name of a file.
    pub fn new(env: Variables, cwd: &str, id: &str, access: FileAccess) -> Result<Self, Error> {
        if projects::file("", id).is_none() {
            let why = "is not an id of a session of Claude Code; use one of session/list";
            return Err(invalid("agentSessionId", why));
        }
        Ok(Self {
            env,
            cwd: cwd.to_owned(),
            id: id.to_owned(),
            access,
            stage: Stage::Path,
        })
    }

    /// Returns the CLI's root directory and the path of the file below it.
    fn path(&self) -> Result<(String, String), Error> {
        let lookup = |name: &str| self.env.0.get(name)?.clone();
        let path = |root: &str| {
            projects::file(&projects::dir("", &self.cwd, lookup), &self.id)
                .map(|path| (root.to_owned(), path.trim_start_matches('/').to_owned()))
        };
        let root = projects::root(lookup);
        root.as_deref().and_then(path).ok_or_else(|| {
            let message = "cannot find the files of Claude Code: neither CLAUDE_CONFIG_DIR nor HOME is set; set one";
            Error::new(ErrorKind::Session, message)
        })
    }
}

impl AgentFile for SessionFile {
    fn dialect(&self) -> &'static str {
        "claude"
    }

    fn start(&mut self) -> Transport {
        Transport::RealPath(self.cwd.clone())
    }

    fn line<'a>(
        &mut self,
        line: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
    ) -> Result<(), UnusableLine> {
        let text = std::str::from_utf8(line).map_err(|_| UnusableLine)?;
        match &mut self.stage {
            Stage::Path => self.cwd = serde_json::from_str(text).map_err(|_| UnusableLine)?,
            Stage::Chain { chain, .. } => chain.line(text)?,
            Stage::History(history) => history.line(text, &self.id, events)?,
            Stage::Removal => {}
        }
        Ok(())
    }

    fn count_repaired(&mut self, faults: Faults) {
        if let Stage::Chain { chain, .. } = &mut self.stage {
            chain.count_repaired(faults);
        }
    }

    fn count_lost(&mut self, line: &LostLine<'_>) {
        if let Stage::Chain { chain, .. } = &mut self.stage {
            chain.count_lost(line);
        }
    }

    fn ended(&mut self) -> Result<Option<Transport>, Error> {
        let (stage, next) = match (std::mem::replace(&mut self.stage, Stage::Path), self.access) {
            (Stage::Path, FileAccess::Read) => {
                let (root, path) = self.path()?;
                let path = format!("{}/{path}", root.trim_end_matches('/'));
                let next = Transport::File(path.clone());
                let chain = Box::default();
                (Stage::Chain { path, chain }, next)
            }
            (Stage::Path, FileAccess::Delete) => {
                let (root, path) = self.path()?;
                (Stage::Removal, Transport::Removal { root, path })
            }
            (Stage::Chain { path, chain }, _) => {
                let history = Box::new(chain.finish());
                (Stage::History(history), Transport::File(path))
            }
            (Stage::History(_) | Stage::Removal, _) => return Ok(None),
        };
        self.stage = stage;
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: &str, access: FileAccess) -> Result<SessionFile, Error> {
        let env = [("CLAUDE_CONFIG_DIR".to_owned(), Some("/c".to_owned()))];
        SessionFile::new(Variables(env.into()), "/link", id, access)
    }

    #[test]
    fn deletion_names_the_file_below_the_root() {
        let mut file = file("a-1", FileAccess::Delete).unwrap();
        assert_eq!(file.start(), Transport::RealPath("/link".into()));
        file.line(b"\"/work/x\"", &mut Vec::new()).unwrap();
        let next = file.ended().unwrap();
        let removal = Transport::Removal {
            root: "/c".into(),
            path: "projects/-work-x/a-1.jsonl".into(),
        };
        assert_eq!(next, Some(removal));
        assert_eq!(file.ended().unwrap(), None);
    }

    #[test]
    fn ids_that_are_paths_are_refused() {
        for id in ["../a", "a/b", "", "a.b"] {
            let error = file(id, FileAccess::Read).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams, "{id}");
        }
    }

    #[test]
    fn history_is_read_in_two_passes() {
        let mut file = file("a-1", FileAccess::Read).unwrap();
        file.start();
        let records = [
            r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hello"}}"#,
            r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hi"}]}}"#,
        ];
        let path = Transport::File("/c/projects/-link/a-1.jsonl".into());
        let mut events = Vec::new();
        for _ in 0..2 {
            assert!(events.is_empty());
            assert_eq!(file.ended().unwrap().as_ref(), Some(&path));
            for record in records {
                file.line(record.as_bytes(), &mut events).unwrap();
            }
        }
        assert_eq!(file.ended().unwrap(), None);
        let updates = events
            .iter()
            .filter(|event| matches!(event, AgentEvent::Update { .. }));
        assert!(updates.count() >= 2, "{events:?}");
    }
}
