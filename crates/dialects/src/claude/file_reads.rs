//! Access to the CLI's own files: resolving their directory, and starting to read them.

use super::{ChildRole, Claude, projects};
use acpipe_model::dialect::{Child, Outgoing};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId};
use acpipe_model::transport::Transport;

/// Directory as the client named it, and as the CLI names it.
#[derive(Debug, Default, Clone)]
pub struct Path {
    pub given: String,
    pub real: String,
}

/// Read operation that follows once the path is resolved.
#[derive(Debug, Clone, Copy)]
pub enum ReadTarget {
    /// Read the history of the session of this process.
    Load(Child),
    List(CallId),
}

impl Claude {
    /// Starts resolving the real path of a working directory.
    pub(super) fn find(&mut self, cwd: &str, then: ReadTarget, out: &mut Outgoing) {
        let path = Path {
            given: cwd.to_owned(),
            real: cwd.to_owned(),
        };
        let child = self.add(ChildRole::Path { path, then });
        out.open(child, Transport::RealPath(cwd.to_owned()));
    }

    /// Continues with the resolved path of a working directory.
    pub(super) fn found(
        &mut self,
        place: Path,
        then: ReadTarget,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) {
        let lookup = |name: &str| self.env.0.get(name)?.clone();
        let root = self.root.as_deref();
        let dir = root.map(|root| projects::dir(root, &place.real, lookup));
        match then {
            ReadTarget::List(call) => {
                let found = Vec::new();
                let child = self.add(ChildRole::List { call, place, found });
                out.open(child, Transport::Directory(dir.unwrap_or_default()));
            }
            ReadTarget::Load(of) => {
                let Some(ChildRole::Session(session)) = self.children.get(&of) else {
                    return;
                };
                let path = dir.and_then(|dir| projects::file(&dir, &session.source));
                let Some(path) = path else {
                    let message = "cannot find the directory of the CLI's history";
                    let error = Error::new(ErrorKind::Session, message);
                    self.history_read(of, Err(error), events, out);
                    return;
                };
                let child = self.add(ChildRole::Chain {
                    of,
                    path: path.clone(),
                    chain: Box::default(),
                });
                out.open(child, Transport::File(path));
            }
        }
    }

    pub(super) fn history_read(
        &mut self,
        of: Child,
        how: Result<(), Error>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) {
        let Some(ChildRole::Session(session)) = self.children.get_mut(&of) else {
            return;
        };
        let event = session.history_read(how);
        let failed = matches!(event, Some(AgentEvent::Failed { .. }));
        events.extend(event);
        if failed {
            self.stop(of, out);
        }
    }
}
