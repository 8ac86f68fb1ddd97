//! Watchdog that names a hung test and fails the run, so that the run does not wait until it is killed.

use std::io::Write as _;
use std::sync::{Arc, Mutex, Once, Weak};
use std::time::{Duration, Instant};

/// Upper limit for one test; no test takes this long, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(600);

/// Running tests, and some that have ended.
static RUNNING: Mutex<Vec<Weak<Start>>> = Mutex::new(Vec::new());

struct Start {
    test: String,
    at: Instant,
}

/// Guard that watches the current thread's test until it is dropped.
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
            // Written directly, since the test runner captures output of its macros.
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
