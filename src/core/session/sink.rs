//! Where the chunks of a session go: into its log, then to the client.

use crate::core::client::{Outlet, Place};
use crate::core::log::Log;
use crate::core::profile::Profile;
use crate::core::turn::ChunkSink;
use crate::proto::chunk::Chunk;

/// What the client wants to see of a session.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Whether it wants the chunks at all.
    pub chunks: bool,
    /// In which profile.
    pub profile: Profile,
}

/// Takes the chunks of a session down, with a number each, and hands them on.
///
/// Profiles share the numbers: what stands for one chunk has one number, what stands for none leaves it out.
pub struct Numbered<'a, O> {
    pub(super) session: &'a str,
    pub(super) turn: Option<&'a str>,
    pub(super) log: &'a mut Log,
    pub(super) view: View,
    pub(super) outlet: &'a mut O,
}

impl<O: Outlet> ChunkSink for Numbered<'_, O> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        let (seq, json) = self.log.chunk(self.turn, chunk);
        if !self.view.chunks {
            return;
        }
        let place = Place {
            session: self.session,
            turn: self.turn,
            seq,
        };
        match self.view.profile {
            Profile::V7 => self.outlet.chunk(place, chunk, json),
            older => older.adapt(chunk, |chunk| {
                let mut json = Vec::new();
                chunk.write(&mut json);
                self.outlet.chunk(place, chunk, &json);
            }),
        }
    }
}
