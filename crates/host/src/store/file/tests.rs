//! Tests of logs on disk: too many open files, removed logs, and a disk that does not answer.

use super::*;
use crate::store::StoreEvents;
use acpipe_core::store::StoreEvent;
use std::os::fd::{AsRawFd as _, OwnedFd};

fn means(dir: &Path, worker: Worker, pool: Pool) -> LogResources {
    LogResources {
        archive: dir.to_owned(),
        durability: Durability::Turn,
        worker,
        pool,
        speed: Speed::new(),
    }
}

#[test]
fn logs_beyond_the_limit_are_closed_and_opened_again() {
    let dir = std::env::temp_dir().join(format!("acpipe-pool-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (worker, _events) = Worker::start().unwrap();
    let means = means(&dir, worker, Pool::with_limit(4));
    let path = |n: usize| dir.join(format!("{n}.jsonl"));
    let mut logs: Vec<LockedLog> = (0..20)
        .map(|n| LockedLog::open(path(n), means.clone()).unwrap())
        .collect();
    let open = |logs: &[LockedLog]| {
        logs.iter()
            .filter(|log| log.pool.get(&log.slot).is_some())
            .count()
    };
    for round in 0..3 {
        for log in &mut logs {
            log.append(b"line\n").unwrap();
        }
        assert_eq!(open(&logs), 4);
        for log in &logs {
            assert_eq!(log.read(0..100).unwrap(), b"line\n".repeat(round + 1));
        }
    }
    // A log that another process changed meanwhile fails; the others do not.
    let mut other = LockedLog::open(path(0), means.clone()).unwrap();
    other.append(b"another\n").unwrap();
    drop(other);
    let error = logs[0].append(b"line\n").unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    logs[1].append(b"line\n").unwrap();
    // An open log is locked.
    assert!(LockedLog::open(path(1), means.clone()).is_err());
    drop(logs);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn log_that_was_removed_from_the_disk_is_an_error_with_the_next_turn() {
    let dir = std::env::temp_dir().join(format!("acpipe-unlinked-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (worker, _events) = Worker::start().unwrap();
    let mut log = LockedLog::open(dir.join("a.jsonl"), means(&dir, worker, Pool::new())).unwrap();
    log.append(b"line\n").unwrap();
    fs::remove_dir_all(&dir).unwrap();
    log.sync(1);
    assert_eq!(
        log.append(b"line\n").unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    assert_eq!(log.read(0..100).unwrap(), b"line\n");
}

#[test]
fn log_released_during_a_sync_can_be_reopened() {
    let dir = std::env::temp_dir().join(format!("acpipe-let-go-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (worker, _events) = Worker::start().unwrap();
    let path = dir.join("a.jsonl");
    let means = means(&dir, worker, Pool::new());
    let open = || LockedLog::open(path.clone(), means.clone());
    let first = open().unwrap();
    let synced = first.handle().unwrap();
    assert!(open().is_err());
    drop(first);
    assert!(open().is_ok());
    drop(synced);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_log_that_was_removed_has_no_card_any_more() {
    let dir = std::env::temp_dir().join(format!("acpipe-removed-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (worker, events) = Worker::start().unwrap();
    let path = dir.join("a.jsonl");
    let mut log = LockedLog::open(path, means(&dir, worker, Pool::new())).unwrap();
    log.describe(&Card::default());
    log.remove(false).unwrap();
    log.describe(&Card::default());
    // Dropping waits until the thread has finished all jobs.
    drop((log, events));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn index_of_a_log_is_removed_with_its_content() {
    let dir = std::env::temp_dir().join(format!("acpipe-index-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    for ending in ["remove", "archive", "replace"] {
        let (worker, events) = Worker::start().unwrap();
        let path = dir.join("a.jsonl");
        let archive = dir.join("archive");
        fs::create_dir_all(&archive).unwrap();
        let mut log = LockedLog::open(path.clone(), means(&archive, worker, Pool::new())).unwrap();
        log.append(b"line\n").unwrap();
        log.store_index(b"index".to_vec());
        // Dropping waits until the thread has finished all jobs.
        drop((log, events));
        let index = dir.join("a.index");
        assert_eq!(ReadOnly::open(&path).unwrap().index().unwrap(), b"index");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&index).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let (worker, events) = Worker::start().unwrap();
        let mut log = LockedLog::open(path, means(&archive, worker, Pool::new())).unwrap();
        assert_eq!(log.index().unwrap(), b"index");
        match ending {
            "replace" => log.replace(b"other\n", false).unwrap(),
            _ => log.remove(ending == "archive").unwrap(),
        }
        assert_eq!(log.index_interval().is_some(), ending == "replace");
        drop((log, events));
        assert!(!index.exists(), "{ending}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

/// Creates a log on a disk that does not answer: a pipe, which blocks until the test reads. A line of 100 KiB
/// does not fit into it.
fn log_that_hangs(dir: &Path) -> (LockedLog, io::PipeReader, StoreEvents) {
    fs::create_dir_all(dir).unwrap();
    let (worker, events) = Worker::start().unwrap();
    let mut log = LockedLog::open(dir.join("a.jsonl"), means(dir, worker, Pool::new())).unwrap();
    log.speed = Speed::slow();
    let (reader, writer) = io::pipe().unwrap();
    log.pool
        .put(&log.slot, fs::File::from(OwnedFd::from(writer)));
    (log, reader, events)
}

#[tokio::test]
async fn loop_does_not_wait_for_an_unresponsive_disk() {
    let dir = std::env::temp_dir().join(format!("acpipe-hangs-{}", std::process::id()));
    let (mut log, mut reader, mut events) = log_that_hangs(&dir);
    let line = [vec![b'x'; 100 << 10], vec![b'\n']].concat();
    let patience = Duration::from_millis(1);
    let appended = log.append_within(&line, patience).unwrap();
    assert_eq!(appended, AppendProgress::Waiting);
    // Until the disk answers, nothing else is written, and no ticket is lost.
    assert_eq!(
        log.appended(Duration::ZERO).unwrap(),
        AppendProgress::Waiting
    );
    assert_eq!(
        log.append(b"next\n").unwrap_err().kind(),
        io::ErrorKind::TimedOut
    );
    assert_eq!(
        log.remove(false).unwrap_err().kind(),
        io::ErrorKind::TimedOut
    );
    assert!(log.sync(7));
    assert_eq!(log.end(), 0);
    let mut read = vec![0; line.len()];
    io::Read::read_exact(&mut reader, &mut read).unwrap();
    assert_eq!(read, line);
    assert!(matches!(events.next().await, StoreEvent::Appended));
    assert_eq!(
        log.appended(Duration::ZERO).unwrap(),
        AppendProgress::Written
    );
    assert_eq!(log.end(), line.len() as u64);
    let StoreEvent::Synced { ticket: 7, .. } = events.next().await else {
        panic!("the sync is answered");
    };
    // A short line fits and is written at once.
    let appended = log
        .append_within(b"next\n", Duration::from_secs(60))
        .unwrap();
    assert_eq!(appended, AppendProgress::Written);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn log_released_during_a_write_stays_locked_until_written() {
    let dir = std::env::temp_dir().join(format!("acpipe-hangs-locked-{}", std::process::id()));
    let (mut log, mut reader, _events) = log_that_hangs(&dir);
    let writer = log.pool.get(&log.slot).unwrap();
    writer.try_lock().unwrap();
    let line = vec![b'x'; 100 << 10];
    let appended = log.append_within(&line, Duration::ZERO).unwrap();
    assert_eq!(appended, AppendProgress::Waiting);
    let other = fs::File::open(format!("/proc/self/fd/{}", writer.as_raw_fd())).unwrap();
    drop((log, writer));
    assert!(other.try_lock().is_err());
    // The pipe ends when the thread has written the line and closed the file, which also releases the lock.
    drop(other);
    let mut read = Vec::new();
    io::Read::read_to_end(&mut reader, &mut read).unwrap();
    assert_eq!(read, line);
    fs::remove_dir_all(&dir).unwrap();
}
