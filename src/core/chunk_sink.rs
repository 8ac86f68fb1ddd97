//! Interface between the view, which produces chunks, and their consumers.

use crate::proto::chunk::Chunk;

/// Consumer of chunks, in order.
pub trait ChunkSink {
    /// Consumes the next chunk.
    fn chunk(&mut self, chunk: &Chunk<'_>);
}
