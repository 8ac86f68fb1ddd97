//! Choice of the program to start, and the login shell's part in it.

use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, LIMIT, World, claude as cli};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

/// `PATH` of programs that a desktop starts.
const BARE: &str = "/usr/bin:/bin";

/// Creates a login shell that runs `does` first, and appends a line to a file at each start.
fn shell(world: &World, does: &str) -> String {
    let dir = world.dir.display();
    let script = format!("#!/bin/sh\necho once >> '{dir}/asked'\n{does}\neval \"$4\"\n");
    world.executable("login-shell", &script)
}

/// Returns the number of starts of the shell.
fn asked(world: &World) -> usize {
    let asked = fs::read_to_string(world.dir.join("asked"));
    asked.unwrap_or_default().lines().count()
}

/// Creates a directory of programs that contains `my-agent`.
fn bin(world: &World) -> String {
    let bin = world.dir.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(FAKE_AGENT, bin.join("my-agent")).unwrap();
    bin.to_str().unwrap().to_owned()
}

fn serve(world: World, args: &[&str], shell: &str) -> Server {
    let env = [("PATH", BARE), ("SHELL", shell)];
    let mut server = Server::launch(world, args, Framing::Lines, &env);
    server.initialize();
    server
}

fn await_file(file: &Path) {
    let since = Instant::now();
    while !file.exists() {
        assert!(since.elapsed() < LIMIT, "never there: {}", file.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_login_shell_knows_programs_that_a_desktop_does_not() {
    let world = World::new();
    let bin = bin(&world);
    let does = format!("echo Welcome; echo noise >&2; export PATH=\"{bin}:$PATH:not/absolute\"");
    let shell = shell(&world, &does);
    let mut s = serve(world, &[], &shell);
    for _ in 0..2 {
        let status = s.call("agent/connect", &json!({"command": "my-agent"}));
        let program = json!({
            "file": format!("{bin}/my-agent"),
            "realFile": Path::new(FAKE_AGENT).canonicalize().unwrap(),
            "foundBy": "loginShell",
            "passedOver": [],
            "addedPath": [bin],
        });
        assert_eq!(status["program"], program);
        s.agent_states(&["starting", "ready"]);
        s.call("agent/disconnect", &json!({}));
        s.agent_states(&["stopping", "disconnected"]);
    }
    assert_eq!(asked(&s.world), 1, "it is asked once");
}

#[test]
fn a_script_gets_the_interpreter_that_the_login_shell_knows() {
    let world = World::new();
    let bin = bin(&world);
    let seen = world.dir.join("seen");
    let interpreter = format!(
        "#!/bin/sh\necho \"$PATH\" > '{}'\nexec '{FAKE_AGENT}'\n",
        seen.display()
    );
    world.executable("bin/my-node", &interpreter);
    let agent = world.executable("script", "#!/usr/bin/env my-node\n");
    let shell = shell(&world, &format!("export PATH='{bin}'"));
    let mut s = serve(world, &[], &shell);
    let status = s.call("agent/connect", &json!({"command": agent}));
    assert_eq!(status["program"]["foundBy"], "givenPath");
    assert_eq!(status["program"]["addedPath"], json!([bin]));
    s.agent_states(&["starting", "ready"]);
    // The given PATH comes first.
    let path = fs::read_to_string(&seen).unwrap();
    assert_eq!(path.trim(), format!("{BARE}:{bin}"));
}

#[test]
fn login_shell_is_not_started_for_found_programs_or_explicit_paths() {
    let world = World::new();
    let bin = bin(&world);
    let shell = shell(&world, "");
    let mut s = serve(world, &[], &shell);
    s.connect(&json!({}));
    s.waive("agent/state");
    s.call("agent/disconnect", &json!({}));
    // A PATH from the client is used as it is, and so is a path as the command.
    let cases = [
        json!({"command": "my-agent", "env": {"PATH": "/nowhere"}}),
        json!({"command": "my-agent", "env": {"PATH": null}}),
        json!({"command": format!("{bin}/other")}),
    ];
    for params in cases {
        let error = s.call_error("agent/connect", &params);
        assert_eq!(error["data"]["kind"], "agentNotFound", "{params}: {error}");
    }
    assert_eq!(asked(&s.world), 0);
}

#[test]
fn login_shell_is_not_started_when_disabled() {
    for by_env in [false, true] {
        let world = World::new();
        bin(&world);
        let shell = shell(&world, "");
        let asked_at = world.dir.join("asked");
        let mut run = Run::new(&["run", "go"]);
        run = if by_env {
            run.env("ACPIPE_NO_PATH_PROBE", "1")
        } else {
            run.arg("--no-path-probe")
        };
        let run = run.env("PATH", BARE).env("SHELL", &shell);
        let outcome = run.agent(&["my-agent"]).go().expect(127);
        assert!(
            outcome.stderr.contains("probe is disabled"),
            "{}",
            outcome.stderr
        );
        assert!(!asked_at.exists());
    }
}

#[test]
fn start_error_explains_why_the_login_shell_did_not_help() {
    let cases = [
        ("exit 3", "printed no PATH"),
        ("exec cat /dev/zero", "printed no PATH"),
        ("trap '' TERM HUP; sleep 1000 & sleep 1000", "within 5 s"),
        ("PATH=/x", "nor in the PATH of the login shell"),
    ];
    for (does, why) in cases {
        let world = World::new();
        let shell = shell(&world, does);
        let run = Run::new(&["run", "go"]);
        let run = run.env("PATH", BARE).env("SHELL", &shell);
        let outcome = run.agent(&["my-agent"]).go().expect(127);
        assert!(outcome.stderr.contains(why), "{does}: {}", outcome.stderr);
        // Wait notices do not count.
        let lines = outcome.stderr.lines();
        let errors = lines.filter(|line| !line.contains("waiting for"));
        assert_eq!(errors.count(), 1, "{}", outcome.stderr);
    }
    for (shell, why) in [
        ("", "SHELL is not set"),
        ("/no/shell", "cannot start /no/shell"),
    ] {
        let run = Run::new(&["run", "go"]);
        let run = run.env("PATH", BARE).env("SHELL", shell);
        let outcome = run.agent(&["my-agent"]).go().expect(127);
        assert!(outcome.stderr.contains(why), "{shell}: {}", outcome.stderr);
    }
}

#[test]
fn start_can_be_cancelled_during_the_login_shell() {
    for by in ["disconnect", "end of stdin", "SIGKILL"] {
        let world = World::new();
        let shell = shell(&world, "sleep 1000");
        let mut s = serve(world, &[], &shell);
        let connect = s.send("agent/connect", &json!({"command": "my-agent"}));
        await_file(&s.world.dir.join("asked"));
        if by == "SIGKILL" {
            s.kill();
            assert_eq!(s.world.leak(), None);
            continue;
        }
        // Other calls work meanwhile.
        assert_eq!(s.call("agent/status", &json!({}))["state"], "starting");
        if by == "disconnect" {
            s.call("agent/disconnect", &json!({}));
            s.agent_states(&["starting", "stopping", "disconnected"]);
        } else {
            s.waive("agent/state");
            s.close_stdin();
        }
        let error = s.error(&connect);
        assert_eq!(error["data"]["kind"], "cancelled", "{by}: {error}");
    }
}

#[test]
fn real_login_shell_reports_its_path() {
    let world = World::new();
    let bin = bin(&world);
    let profile = format!("echo Welcome\nexport PATH=\"$PATH:{bin}\"\n");
    world.file(".bash_profile", &profile);
    let home = world.dir.to_str().unwrap().to_owned();
    if !Path::new("/bin/bash").exists() {
        eprintln!("not tested: there is no /bin/bash");
        return;
    }
    let env = [("PATH", BARE), ("SHELL", "/bin/bash"), ("HOME", &home)];
    let mut s = Server::launch(world, &[], Framing::Lines, &env);
    s.initialize();
    let status = s.call("agent/connect", &json!({"command": "my-agent"}));
    assert_eq!(status["program"]["foundBy"], "loginShell");
    s.agent_states(&["starting", "ready"]);
}

#[test]
fn status_lists_rejected_program_files() {
    let world = World::new();
    let bin = bin(&world);
    for dir in ["a", "b", "c"] {
        fs::create_dir(world.dir.join(dir)).unwrap();
    }
    let plain = world.file("a/my-agent", "");
    let orphan = world.executable("b/my-agent", "#!/no/such/interpreter\n");
    fs::create_dir(world.dir.join("c/my-agent")).unwrap();
    let dir = world.dir.display();
    let path = format!("{dir}/a:{dir}/b:{dir}/c:{dir}/d:{bin}");
    let mut s = Server::launch(world, &[], Framing::Lines, &[("PATH", &path)]);
    s.initialize();
    let status = s.call("agent/connect", &json!({"command": "my-agent"}));
    let program = &status["program"];
    assert_eq!(program["file"], format!("{bin}/my-agent"));
    assert_eq!(program["foundBy"], "path");
    let passed: Vec<&Value> = program["passedOver"].as_array().unwrap().iter().collect();
    let files: Vec<&Value> = passed.iter().map(|p| &p["file"]).collect();
    assert_eq!(files, [&json!(plain), &json!(orphan)]);
    for (passed, why) in passed
        .iter()
        .zip(["not executable", "/no/such/interpreter"])
    {
        let reason = passed["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    }
    s.agent_states(&["starting", "ready"]);
}

#[test]
fn faults_of_scripts_are_explained() {
    let world = World::new();
    let cases = [
        (
            world.executable("no-node", "#!/usr/bin/env no-such-node\n"),
            "its interpreter \"no-such-node\"",
        ),
        (
            world.executable("windows", "#!/bin/sh\r\nexit\r\n"),
            r#""/bin/sh\r""#,
        ),
        (
            world.executable("no-line", "echo hello\n"),
            "begin with a line like #!/bin/sh",
        ),
    ];
    let mut s = Server::in_world(world, &[]);
    for (command, why) in cases {
        let error = s.call_error("agent/connect", &json!({"command": command}));
        assert_eq!(error["data"]["kind"], "agentStart", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn claude_cli_is_found_by_the_login_shell() {
    let world = World::new();
    let bin = bin(&world);
    symlink(FAKE_CLAUDE, format!("{bin}/claude")).unwrap();
    let shell = shell(&world, &format!("export PATH='{bin}'"));
    let home = world.dir.to_str().unwrap().to_owned();
    let env = [
        ("PATH", "/nowhere"),
        ("HOME", &home),
        ("SHELL", &shell),
        ("CLAUDE_CLI_PATH", ""),
    ];
    let mut s = cli::launch(world, &[], &json!({}), &env);
    s.waive("session/state");
    let status = s.call("agent/connect", &json!({"protocol": "claude"}));
    s.agent_states(&["starting", "ready"]);
    assert_eq!(status["program"]["foundBy"], "loginShell");
    s.ensure("default");
    assert_eq!(s.prompt("hi").summary["text"], "hi");
}
