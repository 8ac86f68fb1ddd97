//! Views of a turn: what clients receive of it. A view reads the events of a turn, and never changes it.

pub mod chunks;
pub mod raw;
