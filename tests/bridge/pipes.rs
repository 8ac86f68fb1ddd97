//! Named pipes in place of files that options name: with a program at the other end they work, without one they are
//! refused.

use crate::harness::World;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn make_pipe(world: &World, name: &str) -> PathBuf {
    let path = world.dir.join(name);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}

fn start(world: &World, args: &[&str]) -> Child {
    let mut command = world.acpipe(args);
    command.current_dir(&world.dir).env("HOME", &world.dir);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// Stores a session, which `acpipe trace` can show.
fn store(world: &World) {
    let run = start(world, &["run", "--agent", "demo", "--session", "a", "hi"]);
    assert_eq!(finish(run).0, Some(0));
}

#[test]
fn pipe_without_a_program_at_its_other_end_is_refused() {
    let world = World::new();
    store(&world);
    let demo = ["run", "--ephemeral", "--agent", "demo", "hi"];
    let outputs: [(&[&str], i32); 2] = [
        (&[&demo[..], &["-v", "--log-file"]].concat(), 2),
        (&["trace", "a", "-o"], 74),
    ];
    let inputs: [(&[&str], i32); 8] = [
        (&[&demo[..], &["--config"]].concat(), 2),
        (&[&demo[..], &["--mcp-config"]].concat(), 2),
        (&[&demo[..], &["--output-schema"]].concat(), 2),
        (&["agents", "--config"], 2),
        (&["agents", "import"], 2),
        (&["doctor", "--config"], 1),
        (&["replay"], 2),
        (&["trace", "--text"], 74),
    ];
    let outputs = outputs.map(|use_| (use_, "no program reads"));
    let inputs = inputs.map(|use_| (use_, "no program opens for writing"));
    // All wait at once.
    let started: Vec<_> = outputs
        .into_iter()
        .chain(inputs)
        .enumerate()
        .map(|(at, ((args, code), why))| {
            let pipe = make_pipe(&world, &format!("pipe-{at}"));
            let args = [args, &[pipe.to_str().unwrap()]].concat();
            let said = format!("{args:?}");
            (start(&world, &args), said, code, why)
        })
        .collect();
    for (child, args, want, why) in started {
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        let said = [stdout, stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(status.code(), Some(want), "{args}: {said}");
        assert!(said.contains(why), "{args}: {said}");
    }
}

#[test]
fn tape_and_default_configuration_cannot_be_pipes() {
    let world = World::new();
    let pipe = make_pipe(&world, "pipe");
    let record = [
        "run",
        "--agent",
        "demo",
        "hi",
        "--record",
        pipe.to_str().unwrap(),
    ];
    let (code, said) = finish(start(&world, &record));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("not a regular file"), "{said}");
    for name in ["config/acpipe/config.toml", ".acpipe.toml"] {
        fs::create_dir_all(world.dir.join("config/acpipe")).unwrap();
        let pipe = make_pipe(&world, name);
        let (code, said) = finish(start(&world, &["run", "--agent", "demo", "hi"]));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("not a regular file"), "{said}");
        fs::remove_file(pipe).unwrap();
    }
}

/// Starts `cat` between two files.
fn cat(from: &Path, to: &Path) -> Child {
    let mut cat = Command::new("sh");
    let script = r#"cat < "$0" > "$1""#;
    cat.args(["-c", script]).arg(from).arg(to).spawn().unwrap()
}

#[test]
fn pipe_with_a_reader_takes_the_output() {
    let world = World::new();
    store(&world);
    let copy = world.dir.join("copy");
    let demo = ["run", "--agent", "demo", "hi"];
    let uses: [&[&str]; 2] = [
        &[&demo[..], &["-vvv", "--log-file"]].concat(),
        &["trace", "a", "-o"],
    ];
    for (at, args) in uses.into_iter().enumerate() {
        let pipe = make_pipe(&world, &format!("pipe-{at}"));
        // The command comes first: it waits for the reader.
        let child = start(&world, &[args, &[pipe.to_str().unwrap()]].concat());
        let mut reader = cat(&pipe, &copy);
        let (code, said) = finish(child);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(reader.wait().unwrap().success());
        assert!(fs::metadata(&copy).unwrap().len() > 100, "{args:?}");
    }
    // An inherited descriptor, as in the process substitution of a shell.
    let mut sh = world.command("sh");
    let script = r#""$0" run --agent demo hi -vvv --log-file /dev/fd/3 3>&1 >/dev/null | cat"#;
    let sh = sh.args(["-c", script, crate::harness::ACPIPE]).output();
    assert!(sh.unwrap().stdout.len() > 100);
}

#[test]
fn pipe_with_a_writer_is_read() {
    let world = World::new();
    let (config, mcp, schema) = (
        world.dir.join("config.toml"),
        world.dir.join("mcp.json"),
        world.dir.join("schema.json"),
    );
    fs::write(&config, "[agents.piped]\nuse = \"demo\"\n").unwrap();
    fs::write(&mcp, r#"{"mcpServers": {}}"#).unwrap();
    fs::write(&schema, "true").unwrap();
    let mut args = vec!["run".to_owned(), "hi".to_owned()];
    args.extend(["--agent", "piped"].map(str::to_owned));
    let mut writers = Vec::new();
    for (option, file) in [
        ("--config", config),
        ("--mcp-config", mcp),
        ("--output-schema", schema),
    ] {
        let pipe = make_pipe(&world, option);
        args.extend([option.to_owned(), pipe.to_str().unwrap().to_owned()]);
        writers.push(cat(&file, &pipe));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (code, said) = finish(start(&world, &args));
    // The demo agent does not answer in JSON.
    assert!(matches!(code, Some(0 | 65)), "{said}");
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let mut sh = world.command("sh");
    let script =
        r#"printf '[agents.piped]\nuse = "demo"\n' | "$0" agents show piped --config /dev/stdin"#;
    let sh = sh.args(["-c", script, crate::harness::ACPIPE]).output();
    assert!(sh.unwrap().status.success());
}
