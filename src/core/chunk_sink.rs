//! The seam between the view that makes chunks and what takes them.

use crate::proto::chunk::Chunk;

/// Where chunks go, in order.
pub trait ChunkSink {
    /// Takes the next chunk.
    fn chunk(&mut self, chunk: &Chunk<'_>);
}
