//! What the client wants to see of a session.

use super::profile::Profile;

/// What the client wants to see of a session.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Whether the client receives chunks at all.
    pub chunks: bool,
    /// The chunk profile.
    pub profile: Profile,
}
