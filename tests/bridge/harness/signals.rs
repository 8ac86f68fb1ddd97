//! Default signal handling for what tests start, however the tests themselves were started.

use std::sync::Once;
use tokio::signal::unix::{SignalKind, signal};

/// Makes later processes start with the default actions of the signals that end acpipe.
///
/// A script that runs the tests in the background, or `nohup`, ignores some of them. A process inherits that, and acpipe
/// respects it. A signal with a handler, in contrast, has its default action again after `exec`.
pub fn restore_defaults() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
        let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        for kind in [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ] {
            if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                drop(signal(kind).unwrap());
            }
        }
    });
}
