//! The fault matrix: what peers do wrong, and what becomes of it. After each the next prompt works, acpipe wrote
//! nothing but messages, and no process is left: the harness sees to the last two.
//!
//! | fault | agents (ACP) | Claude | clients |
//! |-|-|-|-|
//! | lines that are no messages, bytes that are no UTF-8 | `garbage.rs` | `claude_faults.rs` | `rpc.rs`, `framing.rs` |
//! | lines over the cap | `garbage.rs` | `claude_faults.rs` | `framing.rs` |
//! | half lines at the end | `garbage.rs` | `processes` | `framing.rs` |
//! | half lines that never end | `processes` | | |
//! | nesting without bottom, keys twice, keys of prototypes, NUL, half surrogates | `words`, `cli.rs`, `content.rs` | `claude` | `clients` |
//! | ids reused, odd, of our own | `words`, `permission.rs` | `claude` | `clients`, `rpc.rs` |
//! | answers twice, unasked, with both or neither | `words`, `turn.rs` | `claude` | `rpc.rs` |
//! | hundreds of thousands of tiny lines | `words` | `claude` | `clients` |
//! | stdout closed | `exit.rs` | `claude_faults.rs` | `signals.rs` |
//! | stdin closed, or not read | `processes`, `flood.rs` | | `framing.rs`, `flood.rs` |
//! | floods on stderr | `processes`, `exit.rs` | | |
//! | ends at every stage | `processes`, `exit.rs` | `claude`, `claude_processes.rs` | `kills.rs`, `keeper.rs`, `exit.rs` |
//! | leaves others behind that hold the pipes and talk | `processes`, `exit.rs`, `keeper.rs` | | |
//! | deaf to SIGTERM | `exit.rs`, `keeper.rs` | `claude_processes.rs` | |
//! | missing, not executable, no `#!` line, a directory, no interpreter | `handshake.rs`, `launch.rs`, `processes` | `claude.rs` | |
//! | a full disk | `faults.rs` | | |

mod claude;
mod clients;
mod processes;
mod words;

use crate::harness::server::Server;

/// So many brackets that whoever reads them by recursion is out of stack.
fn deep() -> String {
    let depth = 100_000;
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// The most memory that acpipe had so far, in MiB.
fn peak(s: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", s.pid())).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .and_then(|l| l.split_whitespace().next()?.parse().ok())
        .unwrap();
    kib / 1024
}
