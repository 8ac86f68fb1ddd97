//! What a client receives of a session.

use super::profile::Profile;

/// What a client receives of a session.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    /// Whether the client receives chunks at all.
    pub chunks: bool,
    /// The chunk profile.
    pub profile: Profile,
}
