//! The seam between the translator and what takes its chunks.

use crate::proto::chunk::Chunk;

/// Where chunks go, in order.
pub trait ChunkSink {
    /// Takes the next chunk.
    fn chunk(&mut self, chunk: &Chunk<'_>);
}
