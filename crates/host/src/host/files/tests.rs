//! Tests of reading and writing within the roots.

use super::*;
use acpipe_model::host::{LineRange, MAX_TEXT};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// Opens directories as a session does.
pub fn roots(paths: &[String]) -> Arc<Roots> {
    Arc::new(Roots::open(paths.to_vec()))
}

pub fn read(path: &str, roots: &Roots) -> Result<String, Error> {
    read::read(path, roots, LineRange::default(), &AtomicBool::new(false))
}

/// Temporary directory with a root in it, removed on drop.
pub struct World(pub PathBuf);

impl World {
    pub fn new(name: &str) -> Self {
        let name = format!("acpipe-host-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().canonicalize().unwrap().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("root/sub/deep")).unwrap();
        Self(dir)
    }

    /// Expands `~` in a path to the directory of the test.
    pub fn path(&self, path: &str) -> String {
        path.replace('~', self.0.to_str().unwrap())
    }

    pub fn roots(&self) -> Arc<Roots> {
        roots(&[self.path("~/root")])
    }

    pub fn read(&self, path: &str) -> Result<String, Error> {
        read(&self.path(path), &self.roots())
    }

    pub fn write(&self, path: &str, content: &str) -> Result<(), Error> {
        write::write(&self.path(path), &self.roots(), content)
    }

    /// Returns all paths below the directory; links are not followed.
    pub fn tree(&self) -> Vec<(PathBuf, String)> {
        fn walk(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::symlink_metadata(&path).unwrap();
                let what = match about.file_type() {
                    kind if kind.is_dir() => "directory".to_owned(),
                    kind if kind.is_file() => fs::read_to_string(&path).unwrap(),
                    kind => format!("{kind:?}"),
                };
                if about.is_dir() {
                    walk(&path, found);
                }
                found.push((path, what));
            }
        }
        let mut found = Vec::new();
        walk(&self.0, &mut found);
        found.sort();
        found
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn written_file_reads_back() {
    let w = World::new("plain");
    for path in [
        "~/root/a.txt",
        "~/root/sub/a b ü.txt",
        "~/root/sub/deep/../a.txt",
        "~/root/./sub//x",
        "~/root/new/dirs/on/the/way.txt",
        "~/root/..hidden",
    ] {
        for content in ["one\r\ntwo\nlast", "", "\u{feff}bom\n"] {
            w.write(path, content).unwrap();
            assert_eq!(w.read(path).unwrap(), content, "{path}");
        }
    }
    let leftovers = w
        .tree()
        .into_iter()
        .filter(|(p, _)| p.to_string_lossy().contains(".tmp"));
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn links_that_stay_within_work() {
    let w = World::new("links");
    let root = w.0.join("root");
    fs::write(root.join("sub/target"), "old").unwrap();
    symlink("sub/target", root.join("file")).unwrap();
    symlink("../file", root.join("sub/chain")).unwrap();
    symlink("sub/deep", root.join("dir")).unwrap();
    symlink("sub/made", root.join("dangling")).unwrap();
    assert_eq!(w.read("~/root/sub/chain").unwrap(), "old");
    w.write("~/root/sub/chain", "new").unwrap();
    assert_eq!(fs::read_to_string(root.join("sub/target")).unwrap(), "new");
    // The system resolves `..`: here it is the parent of the link's target.
    w.write("~/root/dir/../beside", "b").unwrap();
    assert_eq!(fs::read_to_string(root.join("sub/beside")).unwrap(), "b");
    w.write("~/root/dangling", "m").unwrap();
    assert_eq!(fs::read_to_string(root.join("sub/made")).unwrap(), "m");
    for link in ["file", "sub/chain", "dir", "dangling"] {
        assert!(
            fs::symlink_metadata(root.join(link)).unwrap().is_symlink(),
            "{link}"
        );
    }
}

#[test]
fn linked_root_is_reachable_by_link_and_by_real_path() {
    let w = World::new("real");
    symlink(w.0.join("root"), w.0.join("alias")).unwrap();
    let roots = roots(&[w.path("~/alias")]);
    for path in ["~/alias/sub/x", "~/root/sub/x"] {
        write::write(&w.path(path), &roots, path).unwrap();
        let read = read(&w.path("~/alias/sub/x"), &roots);
        assert_eq!(read.unwrap(), path);
    }
}

#[test]
fn every_root_is_served() {
    let w = World::new("roots");
    fs::create_dir(w.0.join("more")).unwrap();
    let paths = [w.path("~/root"), w.path("~/more"), w.path("~/root/sub")];
    let roots = roots(&paths);
    for path in ["~/root/a", "~/more/a", "~/root/sub/a"] {
        write::write(&w.path(path), &roots, path).unwrap();
        assert_eq!(fs::read_to_string(w.path(path)).unwrap(), path);
    }
    let error = write::write(&w.path("~/none"), &roots, "").unwrap_err();
    assert!(
        paths[..2].iter().all(|root| error.message.contains(root)),
        "{error}"
    );
}

#[test]
fn rewritten_file_keeps_its_permissions_and_gets_a_new_inode() {
    let w = World::new("mode");
    let file = w.0.join("root/script.sh");
    fs::write(&file, "old").unwrap();
    fs::hard_link(&file, w.0.join("twin")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4751)).unwrap();
    let before = fs::metadata(&file).unwrap().ino();
    w.write("~/root/script.sh", "new").unwrap();
    let after = fs::metadata(&file).unwrap();
    assert_eq!(after.mode() & 0o7777, 0o751);
    // The file is replaced by renaming: readers see the old or the new content, and other hard links keep the
    // old.
    assert_ne!(after.ino(), before);
    assert_eq!(fs::read_to_string(w.0.join("twin")).unwrap(), "old");
}

#[test]
fn failed_write_leaves_no_file() {
    let w = World::new("failure");
    fs::create_dir(w.0.join("root/dir")).unwrap();
    fs::write(w.0.join("root/dir/x"), "x").unwrap();
    let before = w.tree();
    for path in ["~/root/dir", "~/root/dir/x/y", "~/root/dir/x/"] {
        w.write(path, "no").unwrap_err();
    }
    // A device without space, on systems that have it.
    write::write("/dev/full", &roots(&["/dev".to_owned()]), "no").unwrap_err();
    assert_eq!(w.tree(), before);
}

#[test]
fn errors_say_what_to_do() {
    let w = World::new("errors");
    let file = w.0.join("root/file");
    let message = |error: Error| (error.kind, error.message);
    let (kind, said) = message(w.read("~/root/none").unwrap_err());
    assert_eq!(kind, ErrorKind::ResourceNotFound);
    let missing = "/root/none: No such file or directory (ENOENT)";
    assert!(said.ends_with(missing), "{said}");
    let (kind, said) = message(w.read("~/root/none/deeper").unwrap_err());
    assert_eq!(kind, ErrorKind::ResourceNotFound);
    assert!(
        said.ends_with("No such file or directory (ENOENT)"),
        "{said}"
    );
    for said in [
        message(w.read("~/root").unwrap_err()),
        message(w.read("~/root/").unwrap_err()),
        message(w.write("~/root/", "x").unwrap_err()),
    ] {
        assert_eq!(said.0, ErrorKind::InvalidParams);
        assert!(said.1.ends_with("Is a directory (EISDIR)"), "{said:?}");
    }
    fs::write(&file, b"text\xff").unwrap();
    let (_, said) = message(w.read("~/root/file").unwrap_err());
    assert!(said.contains("byte 4") && said.contains("UTF-8"), "{said}");
    fs::write(&file, "x\n".repeat(MAX_TEXT / 2 + 1)).unwrap();
    let (_, said) = message(w.read("~/root/file").unwrap_err());
    assert!(said.contains("line and limit"), "{said}");
    let (kind, said) = message(w.read("~/other").unwrap_err());
    assert_eq!(kind, ErrorKind::InvalidParams);
    assert!(said.contains(&w.path("~/root")), "{said}");
}

fn path_of(event: &HostEvent) -> (u64, bool, bool) {
    let HostEvent::File(ticket, answer) = event else {
        panic!("{event:?}");
    };
    let overloaded = answer
        .as_ref()
        .is_err_and(|e| e.kind == ErrorKind::Overloaded);
    (ticket.0, answer.is_ok(), overloaded)
}

/// A pipe stands for a disk that does not answer. It is behind a link that the test follows and an agent
/// cannot.
#[test]
fn concurrent_file_requests_are_queued_up_to_a_limit() {
    let w = World::new("many");
    fs::write(w.0.join("root/x"), "x").unwrap();
    let (events, mut heard) = mpsc::channel(1);
    let mut files = FileAccesses::new(events);
    let all = (AT_ONCE + WAITING + 5) as u64;
    let mut refused = 0;
    for n in 0..all {
        let access = Access::Read {
            path: w.path("~/root/x"),
            window: LineRange::default(),
        };
        if let Some(event) = files.perform(Ticket(n), w.roots(), access) {
            assert_eq!(path_of(&event), (n, false, true));
            refused += 1;
        }
    }
    assert_eq!(refused, 5);
    let mut done: Vec<u64> = Vec::new();
    while files.running > 0 {
        let (n, ok, _) = path_of(&heard.blocking_recv().unwrap());
        assert!(ok);
        done.push(n);
        assert!(files.finished(Ticket(0)).is_none());
    }
    done.sort_unstable();
    assert_eq!(done, (0..all - 5).collect::<Vec<_>>());
}

#[test]
fn waiting_writes_are_bounded_by_their_size() {
    let w = World::new("heavy");
    let (events, mut heard) = mpsc::channel(1);
    let mut files = FileAccesses::new(events);
    let content = "x".repeat(MAX_TEXT);
    let mut refused = 0;
    for n in 0..20 {
        let access = Access::Write {
            path: w.path("~/root/x"),
            content: content.clone(),
        };
        refused += usize::from(files.perform(Ticket(n), w.roots(), access).is_some());
    }
    assert_eq!(refused, 20 - AT_ONCE - WAITING_BYTES / MAX_TEXT);
    while files.running > 0 {
        assert!(heard.blocking_recv().is_some());
        assert!(files.finished(Ticket(0)).is_none());
    }
    assert_eq!(files.waiting_bytes, 0);
}

/// Generous limit: the tests check that something ends, not how long it takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn directories_are_held_from_opening_to_closing() {
    let w = World::new("held");
    fs::write(w.0.join("root/x"), "old").unwrap();
    let (events, _heard) = mpsc::channel(1);
    let mut files = FileAccesses::new(events);
    let paths = vec![w.path("~/root")];
    files.hold("s".into(), paths.clone());
    fs::rename(w.0.join("root"), w.0.join("moved")).unwrap();
    fs::create_dir(w.0.join("root")).unwrap();
    fs::write(w.0.join("root/x"), "new").unwrap();
    // Opening again, for example after a restart of the agent, keeps the held directories.
    files.hold("s".into(), paths.clone());
    let x = w.path("~/root/x");
    assert_eq!(read(&x, &files.roots("s", paths.clone())).unwrap(), "old");
    files.release("s");
    assert_eq!(read(&x, &files.roots("s", paths)).unwrap(), "new");
}

/// Uses a sparse file without a line end: the search for its second line ends only when it is stopped.
#[test]
fn access_that_is_stopped_ends_and_makes_room_for_others() {
    let w = World::new("stopped");
    let file = fs::File::create(w.0.join("root/sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    fs::write(w.0.join("root/x"), "x").unwrap();
    let (events, mut heard) = mpsc::channel(1);
    let mut files = FileAccesses::new(events);
    let search = || Access::Read {
        path: w.path("~/root/sparse"),
        window: LineRange {
            line: Some(2),
            limit: Some(1),
        },
    };
    let all = AT_ONCE as u64 + 3;
    for n in 0..all {
        assert!(files.perform(Ticket(n), w.roots(), search()).is_none());
    }
    let plain = Access::Read {
        path: w.path("~/root/x"),
        window: LineRange::default(),
    };
    assert!(files.perform(Ticket(all), w.roots(), plain).is_none());
    for n in 0..all {
        files.stop(Ticket(n));
    }
    let mut done = Vec::new();
    while files.running > 0 {
        let event = heard.blocking_recv().unwrap();
        let HostEvent::File(ticket, answer) = &event else {
            panic!("{event:?}");
        };
        done.push((
            ticket.0,
            answer.as_ref().map_err(|error| error.kind).is_ok(),
        ));
        assert!(files.finished(*ticket).is_none());
    }
    // The queued accesses never started.
    done.sort_unstable();
    let searched = (0..AT_ONCE as u64).map(|n| (n, false));
    assert_eq!(done, searched.chain([(all, true)]).collect::<Vec<_>>());
    assert!(files.waiting.is_empty() && files.stops.is_empty());
}
