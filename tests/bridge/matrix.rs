//! Fault matrix: faults of peers and the files that test them. After each fault the next prompt works, acpipe
//! has written only messages, and no process is left; the harness checks the last two.
//!
//! | fault | agents (ACP) | Claude | clients |
//! |-|-|-|-|
//! | lines that are not messages, bytes that are not UTF-8 | `garbage.rs` | `claude_faults.rs` | `rpc.rs`, `framing.rs` |
//! | lines over the limit | `garbage.rs` | `claude_faults.rs` | `framing.rs` |
//! | incomplete lines at the end | `garbage.rs` | `processes` | `framing.rs` |
//! | incomplete lines that never end | `processes` | | |
//! | excessive nesting, duplicate keys, prototype keys, NUL, lone surrogates | `acp_messages`, `cli.rs`, `depth.rs` | `claude` | `clients` |
//! | ids reused, invalid, or chosen by acpipe | `acp_messages`, `permission.rs` | `claude` | `clients`, `rpc.rs` |
//! | answers twice, unrequested, with result and error or neither | `acp_messages` | `claude` | `rpc.rs` |
//! | hundreds of thousands of tiny lines | `acp_messages` | `claude` | `clients` |
//! | stdout closed | `exit.rs` | `claude_faults.rs` | `signals.rs` |
//! | stdin closed, or not read | `processes`, `flood.rs` | | `framing.rs`, `flood.rs` |
//! | floods on stderr | `processes`, `exit.rs` | | |
//! | exits at every stage | `processes`, `exit.rs` | `claude`, `claude_processes.rs` | `kills.rs`, `supervisor.rs`, `exit.rs` |
//! | leaves processes behind that hold the pipes and write | `processes`, `exit.rs`, `supervisor.rs` | | |
//! | ignores SIGTERM | `exit.rs`, `supervisor.rs` | `claude_processes.rs` | |
//! | missing, not executable, no `#!` line, a directory, no interpreter | `handshake.rs`, `launch.rs`, `processes` | `claude.rs` | |
//! | a full disk | `faults.rs` | | |

mod acp_messages;
mod claude;
mod clients;
mod processes;

use crate::harness::memory;
use crate::harness::server::Server;

/// Returns nested brackets that overflow the stack of a recursive reader.
fn deep() -> String {
    let depth = 100_000;
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Returns acpipe's peak memory so far, in MiB.
fn peak(s: &Server) -> usize {
    memory(s.pid(), "VmHWM") >> 20
}
