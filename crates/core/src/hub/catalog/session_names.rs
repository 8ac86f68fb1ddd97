//! Resolution of session names: the session that a call refers to, and its directory.

use super::Catalog;
use crate::client::ClientId;
use crate::clients::{Clients, DefaultSession};
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session_id::{IdHolder, resolve};
use crate::store::is_same_directory;
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_protocol::wire::DEFAULT_SESSION;
use std::path::Path;

impl Catalog {
    /// Returns the id of the session that a call refers to. Without an id, or with `default`, this is the
    /// default session that the client ensured last, or else the default session of the default agent's
    /// directory.
    pub(in crate::hub) fn session_id(
        &self,
        router: &Router,
        client: ClientId,
        given: Option<&str>,
    ) -> Result<String, Error> {
        match (given, default_session(&router.shared().clients, client)) {
            (Some(id), _) if id != DEFAULT_SESSION => Ok(id.to_owned()),
            (_, Some(session)) => Ok(session.id.clone()),
            (_, None) => default_in(
                router,
                &router.agents().get(self.scopes.default_agent()).spec().cwd,
            ),
        }
    }

    /// Like [`Catalog::session_id`], for a call that creates the session if it does not exist. Also returns the
    /// directory, if the call or the default session gives one.
    pub(in crate::hub) fn ensured_id(
        &self,
        router: &Router,
        client: ClientId,
        given: Option<&str>,
        cwd: Option<&str>,
    ) -> Result<(String, Option<String>), Error> {
        if given.is_some_and(str::is_empty) {
            return Err(invalid("sessionId", "must not be empty"));
        }
        if cwd.is_some_and(|cwd| !Path::new(cwd).is_absolute()) {
            return Err(invalid("cwd", "must be an absolute path"));
        }
        let is_default = given.is_none_or(|id| id == DEFAULT_SESSION);
        match (cwd, default_session(&router.shared().clients, client)) {
            (Some(cwd), _) if is_default => Ok((default_in(router, cwd)?, Some(cwd.to_owned()))),
            (None, Some(session)) if is_default => {
                Ok((session.id.clone(), Some(session.cwd.clone())))
            }
            _ => Ok((
                self.session_id(router, client, given)?,
                cwd.map(str::to_owned),
            )),
        }
    }
}

/// Records the client's default session if the call ensures it. Later calls without an id refer to it.
pub(in crate::hub) fn note_default(
    router: &mut Router,
    client: ClientId,
    given: Option<&str>,
    id: &str,
    cwd: Option<&str>,
    agent: AgentRef,
) {
    if given.is_none_or(|given| given == DEFAULT_SESSION) {
        let cwd = match router.sessions().get(id) {
            Some(session) => session.cwd.clone(),
            None => cwd
                .unwrap_or(&router.agents().get(agent).spec().cwd)
                .to_owned(),
        };
        let id = id.to_owned();
        if let Some(declaration) = router.shared_mut().clients.get_mut(client) {
            declaration.default_session = Some(DefaultSession { id, cwd });
        }
    }
}

/// Checks that an open session has the directory that the call gives.
pub(in crate::hub) fn check_directory(
    router: &Router,
    id: &str,
    cwd: Option<&str>,
) -> Result<(), Error> {
    let (Some(session), Some(cwd)) = (router.sessions().get(id), cwd) else {
        return Ok(());
    };
    if is_same_directory(router.store(), &session.cwd, cwd) {
        return Ok(());
    }
    let own = &session.cwd;
    let message = format!(
        "session {id:?} belongs to the directory {own}, not {cwd}; omit cwd to continue it there, or use another \
             sessionId"
    );
    Err(Error::new(ErrorKind::InvalidParams, message).with("field", "cwd"))
}

fn default_session(known: &Clients, client: ClientId) -> Option<&DefaultSession> {
    known.get(client)?.default_session.as_ref()
}

/// Returns the id of the default session of a directory.
fn default_in(router: &Router, cwd: &str) -> Result<String, Error> {
    let real = |path: &str| router.store().real_path(path);
    let holder = |id: &str| {
        let stored = match router.sessions().get(id) {
            Some(session) => IdHolder::Directory(session.cwd.clone()),
            None => router.store().holder(id)?,
        };
        Ok(match stored {
            IdHolder::Directory(cwd) => IdHolder::Directory(real(&cwd)),
            other => other,
        })
    };
    Ok(resolve(DEFAULT_SESSION, &real(cwd), holder)?.id)
}
