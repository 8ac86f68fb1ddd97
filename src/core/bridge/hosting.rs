//! What acpipe does for agents itself: files and terminals.

use super::{Bridge, Effect};
use crate::core::client::Outlet;
use crate::core::host::HostEvent;
use std::time::Instant;

impl Bridge {
    /// Takes what came of something that was done for an agent.
    pub fn hosted(&mut self, event: HostEvent, now: Instant, outlet: &mut impl Outlet) {
        self.mending(now, outlet, |bridge, _| {
            bridge.host.heard(event, now);
            bridge.settle_host();
        });
    }

    fn settle_host(&mut self) {
        let effects = self.host.take_effects().into_iter().map(Effect::Host);
        self.effects.extend(effects);
        self.host.take_answers();
    }
}
