//! A test that hangs is named and fails the run, instead of keeping the run until somebody kills it.

use std::io::Write as _;
use std::sync::{Arc, Mutex, Once, Weak};
use std::time::{Duration, Instant};

/// No test takes this long, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(600);

/// The tests that run, and some that have ended.
static RUNNING: Mutex<Vec<Weak<Start>>> = Mutex::new(Vec::new());

struct Start {
    test: String,
    at: Instant,
}

/// The test of this thread is watched until this is dropped.
pub struct Watched {
    _start: Arc<Start>,
}

impl Watched {
    pub fn new() -> Self {
        static THREAD: Once = Once::new();
        THREAD.call_once(|| {
            std::thread::spawn(watch);
        });
        let start = Arc::new(Start {
            test: std::thread::current().name().unwrap_or("?").to_owned(),
            at: Instant::now(),
        });
        RUNNING.lock().unwrap().push(Arc::downgrade(&start));
        Self { _start: start }
    }
}

#[expect(
    clippy::exit,
    reason = "a test that hangs can be ended in no other way"
)]
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let mut running = RUNNING.lock().unwrap();
        running.retain(|start| start.strong_count() > 0);
        let mut starts = running.iter().filter_map(Weak::upgrade);
        if let Some(hung) = starts.find(|start| start.at.elapsed() > LIMIT) {
            // Directly, past the capture of the test runner.
            let _ = writeln!(
                std::io::stderr(),
                "{} has hung: no end after {} s; its processes and those of other tests: {:#?}",
                hung.test,
                LIMIT.as_secs(),
                super::kill_all_marked()
            );
            std::process::exit(101);
        }
    }
}
