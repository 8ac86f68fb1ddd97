//! Interface between the view, which produces chunks, and their consumers.

use super::deltas::Deltas;
use acpipe_protocol::chunk::Chunk;

/// Consumer of chunks, in order.
pub trait ChunkSink {
    fn chunk(&mut self, chunk: &Chunk<'_>);
    /// Consumes the next deltas, like [`ChunkSink::chunk`] for each of them.
    fn deltas(&mut self, deltas: Deltas<'_>) {
        for delta in deltas.iter() {
            delta.with_chunk(|chunk| self.chunk(chunk));
        }
    }
}
