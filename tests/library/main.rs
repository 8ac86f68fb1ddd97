//! The library's public interface, against the scriptable fake agent.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes of their own"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod examples;
mod harness;
mod own_agents;
mod permissions;
mod pressure;
mod sessions;
mod shutdown;
mod supervision;
mod turns;
