//! The only layer that does I/O: processes, standard streams, files, signals and the clock.
//!
//! Every task and thread owns one handle and communicates with the single loop ([`drive()`]) through bounded
//! channels.

mod agent;
mod client;
mod client_process;
mod clock;
mod connections;
mod daemon;
mod descriptors;
mod direct_client;
mod direct_process;
mod discover;
mod drive;
mod files;
mod frames;
mod health;
mod host;
mod http;
mod in_process;
mod inbox;
mod input;
mod launches;
mod loopback;
mod named_file;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod ownership;
mod pager;
mod path;
mod process_settings;
mod profiles;
mod program_search;
mod recorder;
mod regular;
mod remote;
mod secrets;
mod signals;
mod starter;
mod stderr;
mod stdin_queue;
mod store;
mod supervised;
mod supervisor;
mod terminal;

pub use client::{ClientAction, ClientConnection};
pub use clock::running_now;
pub use connections::{
    ClientChannel, ConnectionError, ConnectionEvent, ConnectionInput, ConnectionNews,
    ConnectionOutput, Connector, OutputQueue, QueuedOutput, connections,
};
pub use daemon::{DaemonListener, DaemonPlace, StartedDaemon, detach};
pub use descriptors::check as check_descriptors;
pub use direct_client::{BEHIND, DirectOutput, DirectSink, HubOutput, SentChunk};
pub use direct_process::{
    AgentStarter, DirectProcess, DirectProcessEnd, NextLine, StopStep, Stopped,
};
pub use discover::{LoginShell, find_on_path};
pub use drive::{LoopOwner, LoopSetup, ReportSink, drive};
pub use frames::{log_frames, logs_frames};
pub use in_process::{InProcessAgent, InProcessAgents};
pub use input::{ClientInput, ReservedBytes, read_stdin};
pub use launches::{EndedLaunch, Launch, LaunchedProcess, end_left, launched, random_number};
pub use named_file::{open_input, open_output, read_input};
#[cfg(feature = "otlp")]
pub use otlp::{OtlpExporter, OtlpSettings};
pub use output::{
    FULL, OutputWait, Pressure, StdoutError, StdoutWriter, hand_over, stderr_has_room,
};
pub use ownership::{
    check as check_owner, check_link as check_link_owner, check_mode, check_state, is_foreign,
    make_private, open_to_others,
};
pub use pager::Pager;
pub use process_settings::Supervision;
pub use profiles::{AgentProfile, read_all as read_profiles};
pub use recorder::{Recorder, RecorderThread, RedactLine, open_tape};
pub use regular::{
    create as create_file, open as open_state_file, open_foreign, open_own,
    open_to_read as open_state_file_to_read, read as read_state_file,
};
pub use remote::{Reconnection, RemoteHub, drive_remote};
pub use secrets::own_secrets;
pub use signals::{Interrupt, survive_file_limit};
pub use store::{
    DiskSessions, Durability, MemorySessions, ReadOnly, StoreEvents, Swept, archived, cards,
    check_writable, is_refused, read_only, real_path, state_dir, stored, sweep,
};
pub use supervised::own_program;
pub use supervisor::{SUPERVISOR, VERSION, is_supervisor, keep, name_supervisor};
pub use terminal::{TerminalThread, terminal_size};
