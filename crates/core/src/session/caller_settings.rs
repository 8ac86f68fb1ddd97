//! Settings of a client that opens or joins a session, and the comparison with those of the session for its receipt.

use crate::cx::Cx;
use crate::session::output::SessionOutput;
use crate::session::session_agents::SessionAgents;
use crate::session::settings::SessionSettings;
use crate::session::terms::SessionTerms;
use crate::shared_value::SharedValue;
use crate::terms::{CallerTerms, TextReader, text_of_differing};
use acpipe_protocol::wire::{Recovery, SessionOptions};

/// Names of the settings that a receipt compares, in its order.
const NAMES: [&str; 13] = [
    "agent",
    "permissions",
    "limits",
    "mode",
    "model",
    "options",
    "instructions",
    "environment",
    "cwd",
    "childPerSession",
    "files",
    "terminals",
    "mcpServers",
];

/// Settings of a client that opens or joins a session.
#[derive(Debug, Default)]
pub struct CallerSettings {
    /// Options that the client asks for: those of its call, then those of its own definition of the agent.
    pub options: SessionOptions,
    /// Options that the session had when the client opened or joined it, if it prompts in it now.
    pub got: Option<SharedValue<SessionOptions>>,
    /// Options of the definition by which the session was opened.
    pub held: SessionOptions,
    /// Hash of the instructions that its own definition of the agent has for the first prompt of a session.
    pub instructions: Option<u64>,
    /// Names of the other settings in which the definitions differ.
    pub differing: Vec<&'static str>,
    /// Command line of the session's agent, as it is shown, if the client has another agent of this name.
    pub agent_command: Option<String>,
    /// Terms of its prompts; `None` if all clients have the settings of the hub.
    pub terms: Option<Box<CallerTerms>>,
}

impl CallerSettings {
    /// Adds to a receipt the settings in which the live session differs from those of the client, and the warning that
    /// holds for its prompts. `known` is what the agents of the session got.
    pub fn fill(
        self,
        (settings, known): (&SessionSettings, &SessionAgents),
        (held, output): (&mut SessionTerms, &SessionOutput),
        recovery: &mut Recovery,
        cx: &mut Cx<'_>,
    ) {
        if let Some(terms) = &self.terms {
            held.fill_asking_for(terms, settings, recovery, cx);
            held.note_opener(terms.client, output);
        }
        // A setting that could not be made is in the receipt already.
        let is_known = |name: &str| {
            recovery
                .not_restored
                .iter()
                .any(|lost| lost.setting == name)
        };
        let differing = self.differing_names((settings, known), is_known, cx);
        recovery.differing_settings = differing;
        recovery.agent_command = self.agent_command;
    }

    /// Describes the settings in which the live session differs from those of the client that prompts; `None` if there are
    /// none. Other permissions have a notice of their own.
    pub fn differing_text(
        &self,
        session: &str,
        held: (&SessionSettings, &SessionAgents),
        cx: &Cx<'_>,
    ) -> Option<String> {
        let differing = self.differing_names(held, |name| name == "permissions", cx);
        text_of_differing(
            session,
            &differing,
            self.agent_command.as_deref(),
            TextReader::All,
        )
    }

    fn differing_names(
        &self,
        (settings, known): (&SessionSettings, &SessionAgents),
        is_left_out: impl Fn(&str) -> bool,
        cx: &Cx<'_>,
    ) -> Vec<String> {
        let mut differing = settings.differing(&self.options, &self.held);
        if let Some(got) = &self.got {
            differing.extend(settings.changed_from(got));
        }
        differing.extend(&self.differing);
        // An agent gets them in the first prompt of its session alone.
        let received = known.find(&cx.agent.identity());
        if self.instructions != received.and_then(|own| own.instructions) {
            differing.push("instructions");
        }
        let names = NAMES.into_iter();
        let names = names.filter(|name| differing.contains(name) && !is_left_out(name));
        names.map(str::to_owned).collect()
    }
}
