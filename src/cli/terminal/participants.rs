//! The other clients of a session, as `acpipe attach` and a chat show them.

use crate::cli::run::view::RunView;
use crate::cli::sessions::message_text;
use acpipe_protocol::wire::{Role, SessionClient, UserMessageParams};

/// Note for the end of the session.
pub const SESSION_CLOSED: &str = "the session was closed by another client";

/// The other clients of the session.
#[derive(Debug, Default)]
pub struct Participants {
    all: Vec<SessionClient>,
}

impl Participants {
    /// Takes the first list, and shows the other clients.
    pub fn joined(&mut self, clients: Vec<SessionClient>, view: &mut RunView) {
        if let Some(note) = self.begin(clients) {
            view.note(&note);
        }
    }

    /// Takes a new list, and shows the changes.
    pub fn changed(&mut self, clients: Vec<SessionClient>, view: &mut RunView) {
        for note in self.change(clients) {
            view.note(&note);
        }
    }

    /// Shows a prompt of another client.
    pub fn show_prompt(&self, prompt: &UserMessageParams, view: &mut RunView) {
        self.show_author(&prompt.client_id, view);
        view.stored(&message_text(&prompt.message, view.stdout));
    }

    /// Shows the client whose prompt follows.
    pub fn show_author(&self, client_id: &str, view: &mut RunView) {
        let name = self.name(client_id);
        view.note(&format!("prompt of {name}:"));
    }

    /// Takes the first list. Returns a note of the others, if there are any.
    fn begin(&mut self, clients: Vec<SessionClient>) -> Option<String> {
        self.all = others(clients);
        let names: Vec<String> = self.all.iter().map(description).collect();
        (!names.is_empty()).then(|| format!("also attached: {}", names.join(", ")))
    }

    /// Takes a new list. Returns a note for each client that has come or left or has another role.
    fn change(&mut self, clients: Vec<SessionClient>) -> Vec<String> {
        let before = std::mem::replace(&mut self.all, others(clients));
        let mut notes = Vec::new();
        for gone in &before {
            if find(&self.all, &gone.client_id).is_none() {
                notes.push(format!("{} has left", name(gone)));
            }
        }
        for client in &self.all {
            match find(&before, &client.client_id) {
                None => notes.push(format!("{} has attached", description(client))),
                Some(earlier) if earlier.role != client.role => {
                    notes.push(format!("{} is now {}", name(client), role(client.role)));
                }
                Some(_) => {}
            }
        }
        notes
    }

    /// Returns the name of a client.
    fn name(&self, client_id: &str) -> &str {
        find(&self.all, client_id).map_or(UNNAMED, name)
    }
}

/// Name of a client that gave none.
const UNNAMED: &str = "another client";

fn others(clients: Vec<SessionClient>) -> Vec<SessionClient> {
    let is_other = |client: &SessionClient| !client.is_self;
    clients.into_iter().filter(is_other).collect()
}

fn find<'c>(clients: &'c [SessionClient], id: &str) -> Option<&'c SessionClient> {
    clients.iter().find(|client| client.client_id == id)
}

fn name(client: &SessionClient) -> &str {
    client.name.as_deref().unwrap_or(UNNAMED)
}

fn description(client: &SessionClient) -> String {
    match client.role {
        Role::Controller => name(client).to_owned(),
        Role::Observer => format!("{} (observer)", name(client)),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Controller => "a controller",
        Role::Observer => "an observer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_protocol::wire::OnDisconnect;

    fn client(id: &str, name: Option<&str>, role: Role) -> SessionClient {
        SessionClient {
            client_id: id.to_owned(),
            name: name.map(str::to_owned),
            version: None,
            role,
            on_disconnect: OnDisconnect::Continue,
            is_self: id == "c1",
        }
    }

    #[test]
    fn changes_of_the_other_clients_are_noted() {
        let own = client("c1", Some("acpipe attach"), Role::Controller);
        let editor = |role| client("c2", Some("editor"), role);
        let unnamed = client("c3", None, Role::Observer);
        let mut all = Participants::default();
        assert_eq!(all.begin(vec![own.clone()]), None);
        let both = vec![own.clone(), editor(Role::Controller), unnamed.clone()];
        assert_eq!(
            all.change(both.clone()),
            [
                "editor has attached",
                "another client (observer) has attached"
            ]
        );
        assert_eq!(
            Participants::default().begin(both).as_deref(),
            Some("also attached: editor, another client (observer)")
        );
        assert_eq!(
            all.change(vec![own, editor(Role::Observer)]),
            ["another client has left", "editor is now an observer"]
        );
        assert_eq!((all.name("c2"), all.name("c3")), ("editor", UNNAMED));
    }
}
