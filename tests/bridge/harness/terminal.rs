//! acpipe at a pseudo-terminal, with the user's view and keyboard.

use super::{LIMIT, World};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

/// Pseudo-terminal, and acpipe running on it.
pub struct Screen {
    pub world: World,
    /// Variables of acpipe besides those of the world.
    pub env: Vec<(&'static str, String)>,
    /// The variable `TERM`. By default no cursor is moved, so that tests see lines.
    pub term: &'static str,
    keyboard: File,
    shown: Receiver<Vec<u8>>,
    child: Option<Child>,
    seen: Vec<u8>,
    /// Bytes of `seen` before this position have been matched by a wait.
    at: usize,
}

impl Screen {
    /// Opens a terminal without a process.
    pub fn new(world: World) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let keyboard = File::from(main);
        let (sender, shown) = channel();
        let mut screen = keyboard.try_clone().unwrap();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // Reading fails, instead of reporting an end, after the last process has closed the terminal.
            while let Ok(n @ 1..) = screen.read(&mut piece) {
                if sender.send(piece[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            world,
            env: Vec::new(),
            term: "dumb",
            keyboard,
            shown,
            child: None,
            seen: Vec::new(),
            at: 0,
        }
    }

    /// Starts acpipe on the terminal. `redirect` is shell syntax, such as `< prompt`.
    pub fn start(&mut self, args: &[&str], redirect: &str) {
        let name = ptsname(&self.keyboard, Vec::new()).unwrap();
        let own = || {
            let mut options = File::options();
            options.read(true).write(true);
            options.open(name.to_str().unwrap()).unwrap()
        };
        let acpipe = self.world.acpipe(args);
        let mut command = Command::new("setsid");
        let line = format!(r#"exec "$0" "$@" {redirect}"#);
        command.args(["--ctty", "sh", "-c", &line]);
        command.arg(acpipe.get_program()).args(acpipe.get_args());
        for (name, value) in acpipe.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", self.term);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.world.dir);
        command.stdin(own()).stdout(own()).stderr(own());
        self.child = Some(command.spawn().expect("setsid of util-linux is needed"));
    }

    /// Types keys. Enter is `\n`, Ctrl-C `\x03`, Ctrl-D `\x04`.
    pub fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `text` appears after the last match, and returns the text before it.
    #[track_caller]
    pub fn await_text(&mut self, text: &str) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            let new = self.text(self.at);
            if let Some(found) = new.find(text) {
                let before = new[..found].to_owned();
                // `text` has no `\r`, while each line on the screen ends in one.
                self.at = self.end_of(found + text.len());
                return before;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(piece) = self.shown.recv_timeout(left) else {
                panic!("{text:?} was never seen, but {new:?}");
            };
            self.seen.extend_from_slice(&piece);
        }
    }

    /// Returns the position in the raw text after this many bytes from the last match, `\r` not counted.
    fn end_of(&self, bytes: usize) -> usize {
        let mut left = bytes;
        for (n, byte) in self.seen[self.at..].iter().enumerate() {
            if left == 0 {
                return self.at + n;
            }
            left -= usize::from(*byte != b'\r');
        }
        self.seen.len()
    }

    fn text(&self, from: usize) -> String {
        let text = String::from_utf8_lossy(&self.seen[from..]);
        text.replace('\r', "")
    }

    /// Returns `true` if the terminal edits and echoes lines, as it does for a shell's commands.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Sends a signal to acpipe.
    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Waits for the exit. Returns the exit code, and whether the terminal is as before.
    pub fn end_cooked(mut self) -> (i32, bool) {
        let name = ptsname(&self.keyboard, Vec::new()).unwrap();
        // The terminal keeps its settings while it is open.
        let _open = File::open(name.to_str().unwrap()).unwrap();
        let (code, is_cooked) = (
            self.child.as_mut().unwrap().wait().unwrap(),
            self.is_cooked(),
        );
        (code.code().unwrap_or(-1), is_cooked)
    }

    /// Waits for the exit. Returns the exit code, all output, and the lines that the agents received.
    pub fn end(mut self) -> (i32, String, Vec<Value>) {
        let (code, text) = self.ended();
        (code, text, self.world.log())
    }

    /// Waits for the exit. Returns the exit code, all output, and the world for another run.
    pub fn next(mut self) -> (i32, String, World) {
        let (code, text) = self.ended();
        (code, text, std::mem::replace(&mut self.world, World::new()))
    }

    fn ended(&mut self) -> (i32, String) {
        let status = self.child.take().unwrap().wait().unwrap();
        while let Ok(piece) = self.shown.recv_timeout(LIMIT) {
            self.seen.extend_from_slice(&piece);
        }
        let text = self.text(0);
        assert!(!text.contains("panicked"), "{text}");
        if let Some(leak) = self.world.leak() {
            panic!("{leak}\n{text}");
        }
        (status.code().unwrap_or(-1), text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if thread::panicking() {
            self.world.kill_all();
        }
    }
}
