//! Open questions of agents that name no session, judged again by the terms of a turn that may have caused them.

use super::Router;
use crate::hub::cx::HubCx;
use crate::ids::AgentRef;
use crate::session::denies_question;

/// Declines the open questions of the agent that the terms of the running turn of a session deny.
pub(super) fn judge_again(router: &mut Router, session: &str, agent: AgentRef, cx: &mut HubCx<'_>) {
    let machine = router.agents.get(agent);
    if !machine.questions().are_open() {
        return;
    }
    let Some(session) = router.sessions.get(session) else {
        return;
    };
    let policy = router.shared.settings.policy_of(machine.definition());
    let open = machine.questions().judged();
    let denied = open.filter_map(|(id, message)| {
        let rule = denies_question(message, policy, &session.talk)?;
        Some((id, rule))
    });
    let denied: Vec<_> = denied.collect();
    router.with_agent(agent, cx, |agent, cx| {
        agent.decide_questions(|questions| {
            let declined = denied.into_iter();
            let declined = declined.filter_map(|(id, rule)| questions.decline(id, rule, cx));
            declined.collect::<Vec<_>>()
        });
    });
}
