//! A simulated world around the core: random clients, agents of both dialects, a disk and a clock, with
//! invariants that hold whatever they do. The fuzz targets use it too.

pub mod acp;
pub mod agent;
pub mod claude;
pub mod client;
pub mod client_calls;
pub mod clients;
pub mod dice;
#[path = "../../store/disk.rs"]
#[allow(dead_code, reason = "the tests of the store use more of it")]
pub mod disk;
pub mod files;
pub mod host;
mod hostile;
pub mod logs;
#[path = "../../bridge/harness/stream.rs"]
pub mod stream;
pub mod targets;
pub mod world;
