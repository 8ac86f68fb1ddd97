//! Tests that no path leads out of the roots.

use super::tests::{PATIENCE, World, read, roots};
use super::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

const SECRET: &str = "secret\n";

/// Creates a root, and files around it that must not be read or changed.
fn world(name: &str) -> World {
    let w = World::new(name);
    for dir in ["root2", "outside"] {
        fs::create_dir(w.0.join(dir)).unwrap();
        fs::write(w.0.join(dir).join("secret"), SECRET).unwrap();
    }
    fs::write(w.0.join("root/file"), "inside\n").unwrap();
    w
}

/// Name of the attempt, the links that it needs (path and target), and the path that an agent sends. `~` is
/// the directory that contains the root.
type Escape = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const ESCAPES: &[Escape] = &[
    ("a sibling", &[], "~/outside/secret"),
    ("a twin by prefix", &[], "~/root2/secret"),
    ("..", &[], "~/root/../outside/secret"),
    (".. to the twin", &[], "~/root/../root2/secret"),
    (
        ".. from below",
        &[],
        "~/root/sub/deep/../../../outside/secret",
    ),
    (
        ".. and back and out",
        &[],
        "~/root/../root/../outside/secret",
    ),
    (
        "with dots and slashes",
        &[],
        "~/root/.//./../outside/secret",
    ),
    ("through a file", &[], "~/root/file/../../outside/secret"),
    (
        "through what is not there",
        &[],
        "~/root/none/../../outside/secret",
    ),
    ("relative", &[], "../outside/secret"),
    (
        "relative, hidden by a root of the same name",
        &[],
        "root/file",
    ),
    ("empty", &[], ""),
    ("an address", &[], "file://~/outside/secret"),
    ("a NUL", &[], "~/root/file\0/../../outside/secret"),
    (
        "the link has an absolute target",
        &[("out", "~/outside/secret")],
        "~/root/out",
    ),
    (
        "a relative link",
        &[("out", "../outside/secret")],
        "~/root/out",
    ),
    (
        "a chain of links",
        &[
            ("a", "sub/b"),
            ("sub/b", "deep/c"),
            ("sub/deep/c", "../../../outside/secret"),
        ],
        "~/root/a",
    ),
    (
        "a linked directory",
        &[("dir", "~/outside")],
        "~/root/dir/secret",
    ),
    (
        "a relatively linked directory",
        &[("sub/dir", "../../outside")],
        "~/root/sub/dir/secret",
    ),
    (
        "a linked directory twice",
        &[("a", "b"), ("b", "../outside")],
        "~/root/a/secret",
    ),
    (
        "the root's parent by a link",
        &[("up", "..")],
        "~/root/up/outside/secret",
    ),
    (
        ".. behind a link",
        &[("d", "sub/deep")],
        "~/root/d/../../../outside/secret",
    ),
    (
        "a file to be made by a link",
        &[("new", "../outside/new")],
        "~/root/new",
    ),
    (
        "a file to be made by an absolute link",
        &[("new", "~/outside/new")],
        "~/root/new",
    ),
    (
        "a file in a directory to be made",
        &[("new", "../outside/new")],
        "~/root/new/dir/file",
    ),
    (
        "a directory to be made outside",
        &[],
        "~/root/../outside/new/file",
    ),
    ("a link to itself", &[("loop", "loop")], "~/root/loop"),
    ("links in a circle", &[("a", "b"), ("b", "a")], "~/root/a/x"),
    (
        "the process's own root",
        &[],
        "/proc/self/root~/outside/secret",
    ),
    (
        "the process's root by a link",
        &[("p", "/proc/self/root")],
        "~/root/p~/outside/secret",
    ),
    (
        "the process's directory by a link",
        &[("p", "/proc/self/cwd")],
        "~/root/p/Cargo.toml",
    ),
    ("the root itself", &[], "~/root"),
    ("the root with a slash", &[], "~/root/"),
    ("a directory", &[], "~/root/sub"),
    ("a directory's dot", &[], "~/root/sub/."),
    ("a directory's dots", &[], "~/root/sub/.."),
    ("a file as a directory", &[], "~/root/file/"),
    ("below a file", &[], "~/root/file/x"),
    ("a pipe", &[], "~/root/pipe"),
    ("a linked pipe", &[("to-pipe", "pipe")], "~/root/to-pipe"),
    ("a socket", &[], "~/root/socket"),
    (
        "a device by a link",
        &[("zero", "/dev/zero")],
        "~/root/zero",
    ),
    ("a name that is too long", &[], "~/root/LONG"),
    ("a path that is too long", &[], "~/root/DEEP"),
];

#[test]
fn path_escapes_are_refused() {
    assert!(ESCAPES.len() >= 25);
    for (what, links, path) in ESCAPES {
        let w = world("escapes");
        let root = w.0.join("root");
        mknodat(
            CWD,
            root.join("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(root.join("socket")).unwrap();
        for (link, to) in *links {
            symlink(w.path(to), root.join(link)).unwrap();
        }
        let path = path.replace("LONG", &"x".repeat(300));
        let path = path.replace("DEEP", &"x/".repeat(3000).replace("x/x/x", "x/y/x"));
        let before = w.tree();
        for (how, answer) in [
            ("read", w.read(&path).map(|text| format!("{text:?}"))),
            ("write", w.write(&path, "changed").map(|()| String::new())),
        ] {
            assert!(answer.is_err(), "{what}: {how} {path}: {answer:?}");
        }
        assert_eq!(w.tree(), before, "{what}");
    }
}

#[test]
fn a_root_of_devices_or_processes_serves_none_of_them() {
    let of = |root: &str, path: &str| {
        let roots = roots(&[root.to_owned()]);
        let read = read(path, &roots);
        assert!(read.is_err(), "{path}");
        assert!(write::write(path, &roots, "x").is_err(), "{path}");
    };
    for device in [
        "/dev/null",
        "/dev/zero",
        "/dev/tty",
        "/dev/full",
        "/dev/stdin",
    ] {
        of("/dev", device);
        of("/", device);
    }
    // Links in `/proc` can lead anywhere.
    for magic in ["root/etc/passwd", "cwd/Cargo.toml", "exe", "fd/0"] {
        of("/proc", &format!("/proc/self/{magic}"));
        of("/", &format!("/proc/self/{magic}"));
    }
}

#[test]
fn nested_root_is_part_of_the_outer_root() {
    let w = world("nested");
    symlink(w.0.join("outside"), w.0.join("root/nested")).unwrap();
    let roots = roots(&[w.path("~/root/nested"), w.path("~/root")]);
    let path = w.path("~/root/nested/secret");
    let before = w.tree();
    assert!(read(&path, &roots).is_err());
    assert!(write::write(&path, &roots, "changed").is_err());
    assert_eq!(w.tree(), before);
}

/// Guard that ends the swapping, also if a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Reads repeatedly while a path is swapped and checks that only inside content is returned. Returns `true`
/// if the last read succeeded.
fn read_often(w: &World, path: &str) -> bool {
    let mut read = false;
    for _ in 0..100 {
        let text = w.read(path);
        read = text.is_ok();
        assert!(text.is_err() || text.is_ok_and(|text| text.starts_with("inside")));
    }
    read
}

/// Runs `act` repeatedly while `swap` runs in a loop.
fn while_swapping(mut swap: impl FnMut() + Send, mut act: impl FnMut(usize) -> bool) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                swap();
            }
        });
        let over = Over(&over);
        let end = Instant::now() + PATIENCE;
        let mut outcomes = [0, 0];
        let mut n = 0;
        // Until both outcomes occurred often enough, or the time is up.
        while outcomes.iter().any(|n| *n < 40) && Instant::now() < end {
            outcomes[usize::from(act(n))] += 1;
            n += 1;
        }
        drop(over);
        assert!(outcomes[1] > 0, "{outcomes:?}");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn directory_swapped_with_a_link_does_not_escape() {
    let w = world("race-directory");
    let root = w.0.join("root");
    fs::write(root.join("sub/secret"), "inside\n").unwrap();
    symlink("../outside", root.join("link")).unwrap();
    let outside = w.0.join("outside");
    let (one, other) = (root.join("sub"), root.join("link"));
    let swap = || renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    while_swapping(swap, |n| {
        let written = w.write("~/root/sub/secret", &format!("inside {n}\n"));
        let new = w.write(&format!("~/root/sub/new/{n}"), "new");
        let read = read_often(&w, "~/root/sub/secret");
        let entries = fs::read_dir(&outside).unwrap().count();
        assert_eq!(entries, 1, "{n}");
        written.is_ok() && new.is_ok() && read
    });
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), SECRET);
}

#[test]
fn file_swapped_with_a_link_does_not_escape() {
    let w = world("race-file");
    let root = w.0.join("root");
    let (file, spare) = (root.join("file"), root.join("spare"));
    let swap = || {
        symlink("../outside/secret", &spare).unwrap();
        fs::rename(&spare, &file).unwrap();
        fs::write(&spare, "inside\n").unwrap();
        fs::rename(&spare, &file).unwrap();
    };
    while_swapping(swap, |n| {
        let written = w.write("~/root/file", &format!("inside {n}\n"));
        written.is_ok() && read_often(&w, "~/root/file")
    });
    assert_eq!(
        fs::read_to_string(w.0.join("outside/secret")).unwrap(),
        SECRET
    );
}

/// Checks that a file which replaces a root after the session was opened is neither read nor written.
#[test]
fn root_that_becomes_a_link_after_opening_is_not_followed() {
    let w = world("replaced-root");
    let roots = w.roots();
    fs::rename(w.0.join("root"), w.0.join("moved")).unwrap();
    symlink(w.0.join("outside"), w.0.join("root")).unwrap();
    for path in ["~/root/secret", "~/root/new", "~/root/sub/new"] {
        let path = w.path(path);
        assert!(read(&path, &roots).is_err(), "{path}");
        write::write(&path, &roots, "written").unwrap();
        assert_eq!(read(&path, &roots).unwrap(), "written", "{path}");
    }
    let outside: Vec<_> = fs::read_dir(w.0.join("outside")).unwrap().collect();
    assert_eq!(outside.len(), 1);
    assert_eq!(
        fs::read_to_string(w.0.join("outside/secret")).unwrap(),
        SECRET
    );
    assert_eq!(
        fs::read_to_string(w.0.join("moved/new")).unwrap(),
        "written"
    );
}

/// Replaces the root repeatedly while files in it are read and written.
#[test]
#[cfg(target_os = "linux")]
fn root_swapped_with_a_link_does_not_escape() {
    let w = world("race-root");
    let roots = w.roots();
    symlink(w.0.join("outside"), w.0.join("link")).unwrap();
    let (one, other) = (w.0.join("root"), w.0.join("link"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let over = Over(&over);
        for n in 0..2_000 {
            // Every access reaches the directory that was opened, wherever its path leads now.
            let path = w.path(&format!("~/root/{}", n % 7));
            write::write(&path, &roots, "inside").unwrap();
            assert_eq!(read(&path, &roots).unwrap(), "inside");
            assert!(read(&w.path("~/root/secret"), &roots).is_err());
        }
        drop(over);
    });
    assert_eq!(fs::read_dir(w.0.join("outside")).unwrap().count(), 1);
}

#[test]
fn root_that_was_missing_when_the_session_was_opened_is_not_served_later() {
    let w = world("missing-root");
    let late = w.path("~/late");
    let roots = roots(std::slice::from_ref(&late));
    symlink(w.0.join("outside"), w.0.join("late")).unwrap();
    let error = read(&format!("{late}/secret"), &roots).unwrap_err();
    assert!(
        error
            .message
            .contains("it could not be opened with the session"),
        "{error}"
    );
}
