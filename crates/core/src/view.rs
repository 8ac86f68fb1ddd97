//! Views of a turn: the output that clients receive. A view reads the events of a turn and never changes it.

pub mod chunks;
