//! Agents that decide for themselves: a policy that restricts needs an agent that asks before it runs tools. If the
//! agent is known to ask only in some of its modes, and no mode was requested, acpipe chooses one of them. If the agent
//! may run tools without asking even so, the clients are warned before its next prompt.

use super::super::policy_notices::PolicyNotice;
use super::super::settings::SessionSettings;
use super::{SessionOutput, SessionTerms, WatchedSession};
use crate::client::ClientId;
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::shared_value::SharedValue;
use crate::terms::{CallerTerms, Terms};
use acpipe_dialects::traits;
use acpipe_model::asking::{Asking, asking_fault};
use acpipe_model::setting;
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{NotRestored, Recovery, SessionOptions, SettingValue};
use std::sync::Arc;
use tracing::info;

/// Title of the notice that the policy may not hold.
pub const MAY_NOT_ASK: &str = "The agent may run tools without asking";

const ADVICE: &str =
    "set the mode in which it asks, restrict the agent by its own settings, or run it in a sandbox";

/// Watch over a session's agent: the mode chosen for it, and the warning that it may not ask.
#[derive(Debug, Default)]
pub struct AskingWatch {
    /// Mode that acpipe chose when the session was opened.
    chosen: Option<String>,
    /// Warning that holds now.
    warning: Option<String>,
    /// Last warning, also while no policy needs it.
    last: Option<String>,
    /// Clients that a turn has shown the last warning; `None` stands for those with the settings of the hub.
    informed: Vec<Option<ClientId>>,
}

impl SessionTerms {
    /// Adds to the receipt the mode that acpipe chose, and the warning if tools may run without asking. `chosen` is
    /// `None` if the session was live already.
    pub fn note_asking(
        &mut self,
        chosen: Option<String>,
        recovery: &mut Recovery,
        shown: WatchedSession<'_>,
        cx: &mut Cx<'_>,
    ) {
        let is_chosen = |lost: &mut NotRestored| {
            let mode = chosen.clone().map(SettingValue::Id);
            lost.setting == "mode" && Some(&lost.value) == mode.as_ref()
        };
        let failed = recovery.not_restored.extract_if(.., is_chosen).next();
        let failed = failed.map(|lost| format!("its mode cannot be set: {}", lost.message));
        let chosen = chosen.filter(|_| failed.is_none());
        if chosen.is_some() || self.asking.is_some() {
            self.asking.get_or_insert_default().chosen = chosen;
        }
        self.watch_asking(failed.as_deref(), shown, cx);
        self.fill_asking(recovery);
    }

    /// Adds to a receipt what holds for the live session.
    pub fn fill_asking(&self, recovery: &mut Recovery) {
        let watch = self.asking.as_deref();
        recovery.chosen_mode = watch.and_then(|watch| watch.chosen.clone());
        recovery.policy_warning = self.policy_warning().map(str::to_owned);
    }

    /// Adds to the receipt of a client the warning that holds for its prompts, unless there is one already.
    pub fn fill_asking_for(
        &self,
        caller: &CallerTerms,
        settings: &SessionSettings,
        recovery: &mut Recovery,
        cx: &mut Cx<'_>,
    ) {
        if recovery.policy_warning.is_some() {
            return;
        }
        let own = Terms::of(cx.agent.definition, &cx.shared.settings);
        let claims = self.listing_clients().contains(&caller.client);
        let lists = caller.lists(settings.options(), claims);
        let terms = own.with_caller(&caller.terms, lists.as_ref());
        let held = cx.terms.replace(Arc::new(terms));
        recovery.policy_warning = asking_warning(settings, None, caller.asking.as_slice(), cx);
        cx.terms = held;
    }

    #[must_use]
    pub fn policy_warning(&self) -> Option<&str> {
        self.asking.as_deref()?.warning.as_deref()
    }

    /// Updates the warning. A new one is shown in the running turn, else in the next one, and in the first turn of each
    /// further client.
    pub fn watch_asking(
        &mut self,
        failed: Option<&str>,
        shown: WatchedSession<'_>,
        cx: &mut Cx<'_>,
    ) {
        let WatchedSession {
            settings,
            output,
            turn,
        } = shown;
        let callers = self
            .prompt
            .as_deref()
            .map_or(&[][..], |prompt| &prompt.asking);
        let warning = asking_warning(settings, failed, callers, cx);
        if warning.as_deref() == self.policy_warning() {
            return;
        }
        if let Some(warning) = &warning {
            info!(session = output.session(), "{MAY_NOT_ASK}: {warning}");
        }
        let is_needed = needs_asking(settings, cx);
        let watch = self.asking.get_or_insert_default();
        if is_needed && watch.last != warning {
            watch.informed.clear();
            watch.last.clone_from(&warning);
        }
        watch.warning = warning;
        if let Some(turn) = turn {
            self.show_asking_warning(turn, output, cx.clients);
        }
    }

    /// Shows the warning in a turn, unless an earlier turn has shown it to the client of this one.
    pub fn show_asking_warning(
        &mut self,
        turn_id: &str,
        output: &mut SessionOutput,
        clients: &mut dyn ClientSinks,
    ) {
        let Some(watch) = self.asking.as_deref_mut() else {
            return;
        };
        let caller = self.prompt.as_ref().and_then(|terms| terms.caller);
        let Some(warning) = &watch.warning else {
            return;
        };
        if watch.informed.contains(&caller) {
            return;
        }
        let subscribers = output.subscribers();
        let is_there = |client: &Option<ClientId>| client.is_none_or(|id| subscribers.has(id));
        watch.informed.retain(is_there);
        let readers = subscribers.iter().filter(|other| other.subscription.chunks);
        watch
            .informed
            .extend(readers.map(|other| Some(other.client)));
        watch.informed.push(caller);
        let notice = PolicyNotice {
            severity: "warning",
            title: MAY_NOT_ASK,
            description: warning,
            call: None,
        };
        notice.show(Some(turn_id), output, clients);
    }
}

/// Returns the mode to choose for the session: the first one that its state offers. Before the agent has reported
/// any state, the first one.
fn mode_to_choose(settings: &SessionSettings, cx: &Cx<'_>) -> Option<String> {
    if !needs_asking(settings, cx) || settings.options().mode.is_some() {
        return None;
    }
    let asking = cx.agent.definition.asking(cx.agent.spec)?;
    let modes = asking.modes();
    let mode = if traits(cx.agent.spec.protocol).starts_in_mode {
        modes.first().filter(|_| !cx.agent.spec.names_mode())
    } else {
        let now = settings.mode();
        let is_now = |mode: &String| now.as_ref() == Some(mode);
        let mut offered = modes.iter();
        let offered = offered.find(|mode| setting::offers_mode(settings.state(), mode));
        offered.filter(|_| !modes.iter().any(is_now))
    };
    let mode = mode?.clone();
    let is_wanted = settings.is_wanted(&Setting::Mode(mode.clone()));
    (!is_wanted).then_some(mode)
}

/// Returns `true` if the policy can refuse a tool or ask about it, and needs an agent that asks for that.
fn needs_asking(settings: &SessionSettings, cx: &Cx<'_>) -> bool {
    if traits(cx.agent.spec.protocol).enforces_tool_lists {
        return cx.policy().may_restrict_more();
    }
    cx.policy().may_restrict(settings.options())
}

/// Returns the options with which the agent opens the session: those of the session, with the mode that acpipe
/// chooses if the agent starts in its mode, and all denied tools if the agent enforces that.
pub fn opening_options(
    settings: &SessionSettings,
    cx: &Cx<'_>,
) -> (SharedValue<SessionOptions>, Option<String>) {
    let starts_in_mode = traits(cx.agent.spec.protocol).starts_in_mode;
    let mode = mode_to_choose(settings, cx).filter(|_| starts_in_mode);
    let own = settings.options();
    let is_missing = |tool: &&String| !own.disallowed_tools.contains(tool);
    let denied = if traits(cx.agent.spec.protocol).enforces_tool_lists {
        cx.policy().disallowed()
    } else {
        &[]
    };
    let mut denied = denied.iter().filter(is_missing).cloned().peekable();
    if mode.is_none() && denied.peek().is_none() {
        return (own.clone(), mode);
    }
    let mut options = (**own).clone();
    options.mode = mode.clone().or(options.mode);
    options.disallowed_tools.extend(denied);
    (SharedValue::from(options), mode)
}

/// Returns the mode to set in a session that the agent has opened, unless the agent started in it.
pub fn mode_to_set(settings: &SessionSettings, cx: &Cx<'_>) -> Option<String> {
    if traits(cx.agent.spec.protocol).starts_in_mode {
        return None;
    }
    mode_to_choose(settings, cx)
}

/// `callers` is when the agent asks by the definitions of clients of the session: of several statements, the strictest
/// holds.
fn asking_warning(
    settings: &SessionSettings,
    failed: Option<&str>,
    callers: &[Asking],
    cx: &Cx<'_>,
) -> Option<String> {
    if !needs_asking(settings, cx) {
        return None;
    }
    // The agent reports every call before it runs, whatever its mode is, and the rules are applied to it.
    let connection = cx.agent.connection.as_ref();
    if judges_calls(settings, cx)
        && connection.is_some_and(|connection| connection.facts().reports_before_run)
    {
        return None;
    }
    let asking = cx.agent.definition.asking(cx.agent.spec);
    let mode = settings.mode();
    let name = mode
        .as_deref()
        .and_then(|mode| setting::mode_name(settings.state(), mode));
    let measured = cx.agent.definition.quirks.runs_unasked_in.as_deref();
    let fault = asking_fault(
        asking.as_deref(),
        mode.as_deref(),
        name.as_deref(),
        measured,
    );
    // The agent's own settings count if nothing else is known of it.
    let option = || {
        let option = setting::unasked_option(settings.state()).filter(|_| asking.is_none())?;
        Some(format!(
            "the agent has the setting {option:?}, with which agents run tools without asking"
        ))
    };
    let of_callers = || {
        let mut callers = callers.iter();
        callers.find_map(|own| asking_fault(Some(own), mode.as_deref(), name.as_deref(), None))
    };
    let fault = fault.or_else(of_callers).or_else(option)?;
    let failed = failed.map_or_else(String::new, |why| format!("; {why}"));
    Some(format!(
        "{fault}{failed}. The policy restricts and cannot refuse what it is not asked about; {ADVICE}"
    ))
}

/// Returns `true` if the policy judges the tools that the agent reports before it runs them.
pub fn judges_calls(settings: &SessionSettings, cx: &Cx<'_>) -> bool {
    let has_list = !settings.options().allowed_tools.is_empty();
    cx.policy().has_rules() || (has_list && cx.policy().ignores_lists())
}
