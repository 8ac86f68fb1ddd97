//! The session files, and the list of them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::harness::{Client, Scratch, turn};
use super::store::{Header, Log, Store};

fn header(id: &str) -> Header {
    Header {
        session_id: id.to_owned(),
        cwd: "/work".into(),
        title: "Title".to_owned(),
    }
}

fn append_to(dir: &Path, id: &str) -> fs::File {
    let path = dir.join(format!("{id}.ndjson"));
    fs::File::options().append(true).open(path).unwrap()
}

#[test]
fn what_is_appended_is_read_back_by_another_process() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("made/when/needed");
    let mut store = Store::new(Some(dir.clone()), |_| {});
    let mut log = store.create(&header("demo-1"));
    let updates: Vec<Value> = (0..3).map(|n| json!({ "n": n, "text": "a\nb" })).collect();
    for update in &updates {
        store.append("demo-1", &mut log, update);
    }
    assert!(matches!(log, Log::Disk));
    let other = Store::new(Some(dir), |_| {});
    assert_eq!(other.read("demo-1").unwrap(), Some(updates));
    assert_eq!(other.read("demo-2").unwrap(), None);
    assert_eq!(other.read("../demo-1").unwrap(), None);
    assert_eq!(other.list()[0].header, header("demo-1"));
}

#[test]
fn a_torn_line_costs_that_line_only() {
    let scratch = Scratch::new();
    let mut store = Store::new(Some(scratch.path().to_owned()), |_| {});
    let mut log = store.create(&header("demo-1"));
    store.append("demo-1", &mut log, &json!(1));
    append_to(scratch.path(), "demo-1")
        .write_all(b"{\"torn\": \xc3")
        .unwrap();
    assert_eq!(store.read("demo-1").unwrap(), Some(vec![json!(1)]));
    store.append("demo-1", &mut log, &json!(2));
    assert_eq!(
        store.read("demo-1").unwrap(),
        Some(vec![json!(1), json!(2)])
    );
}

#[test]
fn a_file_that_is_not_its_names_is_no_session() {
    let scratch = Scratch::new();
    let mut store = Store::new(Some(scratch.path().to_owned()), |_| {});
    store.create(&header("demo-1"));
    fs::copy(
        scratch.path().join("demo-1.ndjson"),
        scratch.path().join("demo-2.ndjson"),
    )
    .unwrap();
    fs::write(scratch.path().join("demo-3.ndjson"), "no header").unwrap();
    fs::write(scratch.path().join("demo-4.ndjson"), "").unwrap();
    fs::write(scratch.path().join("notes.txt"), "").unwrap();
    assert_eq!(store.read("demo-2").unwrap(), None);
    assert_eq!(store.read("demo-3").unwrap(), None);
    assert_eq!(store.list().len(), 1);
}

#[test]
fn without_a_place_to_write_a_session_lives_in_memory() {
    let scratch = Scratch::new();
    let blocked = scratch.path().join("a-file");
    fs::write(&blocked, "").unwrap();
    for dir in [None, Some(blocked)] {
        let (notes, said) = mpsc::sync_channel(8);
        let mut store = Store::new(dir, move |note| notes.send(note.to_owned()).unwrap());
        for id in ["demo-1", "demo-2"] {
            let log = store.create(&header(id));
            assert!(matches!(log, Log::Memory(_)) && store.list().is_empty());
        }
        let said: Vec<String> = said.try_iter().collect();
        assert!(
            said.len() == 1 && said[0].contains("end with this process"),
            "{said:?}"
        );
    }
}

#[test]
fn a_disk_that_fails_later_takes_nothing_with_it() {
    let scratch = Scratch::new();
    let mut store = Store::new(Some(scratch.path().to_owned()), |_| {});
    let mut log = store.create(&header("demo-1"));
    fs::remove_file(scratch.path().join("demo-1.ndjson")).unwrap();
    store.append("demo-1", &mut log, &json!(1));
    store.append("demo-1", &mut log, &json!(2));
    assert!(matches!(log, Log::Memory(updates) if updates == [json!(1), json!(2)]));
}

#[tokio::test(start_paused = true)]
async fn the_list_is_newest_first_by_directory_and_paged() {
    let scratch = Scratch::new();
    let (state, one, two) = (
        scratch.path().join("state"),
        scratch.path().join("one"),
        scratch.path().join("two"),
    );
    let mut client = Client::start(Some(&state));
    let first = client.session(&one).await;
    let second = client.session(&two).await;
    client.session(&one).await;
    turn(&mut client, &first, "first\tprompt", None).await;
    turn(&mut client, &second, "second", None).await;
    // The files' times are set, since the clock may be too coarse to tell the two turns apart.
    for (id, age) in [(&first, 2000), (&second, 1000)] {
        let file = append_to(&state, id);
        file.set_modified(SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }
    let ids = |answer: &Value| -> Vec<Value> {
        let sessions = answer["result"]["sessions"].as_array().unwrap();
        sessions
            .iter()
            .map(|session| session["sessionId"].clone())
            .collect()
    };
    let all = client.call("session/list", json!({})).await;
    assert_eq!(ids(&all), [json!(second), json!(first)]);
    let listed = &all["result"]["sessions"][1];
    assert_eq!(
        (&listed["title"], &listed["cwd"]),
        (&json!("first prompt"), &json!(one))
    );
    assert!(listed["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert!(all["result"].get("nextCursor").is_none());
    let of_one = client
        .call("session/list", json!({ "cwd": one, "cursor": null }))
        .await;
    assert_eq!(ids(&of_one), [json!(first)]);

    for number in 0..150 {
        let id = format!("demo-9{number:03}");
        let header = json!({ "sessionId": id, "cwd": one, "title": "" });
        std::fs::write(state.join(format!("{id}.ndjson")), format!("{header}\n")).unwrap();
    }
    let page = client.call("session/list", json!({})).await;
    let rest = client
        .call(
            "session/list",
            json!({ "cursor": page["result"]["nextCursor"] }),
        )
        .await;
    assert_eq!((ids(&page).len(), ids(&rest).len()), (100, 52));
    assert!(ids(&rest).ends_with(&[json!(second), json!(first)]));
    assert!(client.close().await.is_empty());
}
