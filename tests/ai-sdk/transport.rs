//! The AI SDK's HTTP transport reads the output of `acpipe run -o sse`, directly and through the example's
//! server.

use crate::judge;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Time after which a read counts as hung.
const LIMIT: Duration = Duration::from_secs(30);

pub const ACPIPE: &str = env!("CARGO_BIN_EXE_acpipe");

pub const MAJORS: [u32; 3] = [7, 6, 5];

/// A turn of `acpipe run` and its expected result.
pub struct Case {
    pub name: &'static str,
    /// The prompt, and the agent unless it is the demo.
    args: Vec<String>,
    exit_code: i32,
    /// Part of the error text that the reader receives.
    pub error: Option<&'static str>,
    tools: &'static [&'static str],
}

impl Case {
    fn demo(name: &'static str, prompt: &str, tools: &'static [&'static str]) -> Self {
        Self {
            name,
            args: ["--agent", "demo", prompt].map(str::to_owned).to_vec(),
            exit_code: 0,
            error: None,
            tools,
        }
    }

    /// One turn of the fake agent that takes these steps.
    fn scripted(name: &'static str, steps: &[Value]) -> Self {
        let script = json!({ "session/prompt": [steps] }).to_string();
        Self {
            args: to_agent(&[env!("CARGO_BIN_EXE_fake-agent"), &script]),
            ..Self::demo(name, "", &[])
        }
    }

    fn failing(self, exit_code: i32, error: &'static str) -> Self {
        Self {
            exit_code,
            error: Some(error),
            ..self
        }
    }

    pub fn run(&self, options: &[&str]) -> Output {
        let output = acpipe().args(options).args(&self.args).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(self.exit_code),
            "{}: {output:?}",
            self.name
        );
        output
    }
}

fn to_agent(command: &[&str]) -> Vec<String> {
    let all = ["go", "--"].iter().chain(command);
    all.map(|&word| word.to_owned()).collect()
}

pub fn say(text: &str) -> Value {
    let content = json!({ "type": "text", "text": text });
    json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": content } })
}

pub fn cases() -> Vec<Case> {
    let tool = json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "a\r\n\r\nb",
        "status": "in_progress", "rawInput": { "data: [DONE]\n\n": "\n" } } });
    // Text that a line-based framing could misread.
    let odd = [
        say("\u{feff}\r\n\r\ndata: [DONE]\n\n"),
        say(": \u{2028}\u{2029}\u{85}\u{0}\u{b}\u{1f}\u{7f}\\\"/ é\u{1f600}\n"),
        tool,
        json!({ "update": { "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" } }),
        say("event: x\rid: y"),
        json!({ "reply": { "stopReason": "end_turn" } }),
    ];
    let error = json!({ "error": { "code": 1, "message": "the model\nis away" } });
    let missing = Case {
        args: to_agent(&["/no/such/agent"]),
        ..Case::demo("no agent", "", &[])
    };
    let odd = Case {
        tools: &["output-available"],
        ..Case::scripted("odd text", &odd)
    };
    vec![
        Case::demo("plain", "hello", &[]),
        Case::demo("tools", "plan, then list the files", &["output-available"]),
        odd,
        Case::scripted("error", &[say("so far"), error]).failing(1, "is away"),
        Case::scripted("exit", &[say("so far\n"), json!({ "exit": 3 })]).failing(1, "exit code 3"),
        missing.failing(127, "/no/such/agent"),
    ]
}

/// Returns the working directory of the runs: always the same, because the demo agent lists it.
fn place() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transport");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("a file"), "").unwrap();
    place
}

fn acpipe() -> Command {
    let mut command = Command::new(ACPIPE);
    command.args(["run", "-q"]);
    surround(&mut command);
    command.stdin(Stdio::null());
    command
}

pub fn surround(command: &mut Command) {
    let dir = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    command
        .current_dir(place())
        .env("ACPIPE_STATE_DIR", dir("transport-state"))
        .env_remove("PERSIST_MESSAGES")
        .env_remove("ACPIPE_AGENT")
        .env_remove("ACPIPE_LOG");
}

/// Returns the transport's verdict on each case.
fn read(asked: &[Value]) -> Vec<Value> {
    let lines = asked.iter().flat_map(|a| [a.to_string(), "\n".to_owned()]);
    let lines: String = lines.collect();
    let (written, said, status) = judge::ask("transport.mjs", move |mut stdin| {
        stdin.write_all(lines.as_bytes())
    });
    written.unwrap();
    assert!(status.success() && said.len() == asked.len(), "{said:?}");
    said
}

fn problems(verdict: &Value) -> String {
    let problems = verdict["problems"].as_array().unwrap().iter();
    problems.flat_map(|p| [p.as_str().unwrap(), "\n"]).collect()
}

/// Returns the text parts of a message as `-o text` prints them.
fn printed(verdict: &Value) -> String {
    joined(verdict["text"].as_array().unwrap())
}

/// Joins texts as `-o text` prints them.
pub fn joined(texts: &[Value]) -> String {
    let mut all = String::new();
    for text in texts {
        match () {
            () if all.is_empty() => {}
            () if all.ends_with('\n') => all.push('\n'),
            () => all.push_str("\n\n"),
        }
        all.push_str(text.as_str().unwrap());
    }
    if !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    all
}

#[test]
fn the_transport_reads_every_run() {
    let cases = cases();
    if !judge::is_sdk_available(|| cases.len() * MAJORS.len()) {
        return;
    }
    let mut asked = Vec::new();
    for case in &cases {
        for major in MAJORS {
            let major_text = major.to_string();
            let output = case.run(&["-o", "sse", "--chunk-profile", &major_text]);
            let sse = String::from_utf8(output.stdout).unwrap();
            let name = format!("{} for ai {major}", case.name);
            asked.push(json!({ "name": name, "profile": major, "sse": sse }));
        }
    }
    let verdicts = read(&asked);
    for (case, verdicts) in cases.iter().zip(verdicts.chunks(MAJORS.len())) {
        let text = String::from_utf8(case.run(&["-o", "text"]).stdout).unwrap();
        for verdict in verdicts {
            assert_eq!(problems(verdict), "", "{verdict}");
            assert_eq!(printed(verdict), text, "{verdict}");
            assert_eq!(verdict["tools"], json!(case.tools), "{verdict}");
            let errors = verdict["errors"].as_array().unwrap();
            assert_eq!(errors.len(), usize::from(case.error.is_some()), "{verdict}");
            let told = errors
                .iter()
                .all(|e| e.as_str().unwrap().contains(case.error.unwrap()));
            assert!(told, "{verdict}");
        }
    }
}

/// Shows that the check can fail.
#[test]
fn transport_check_finds_each_violation() {
    let start = "data: {\"type\":\"start\",\"messageId\":\"m\"}\n\n";
    let finish = "data: {\"type\":\"finish\",\"finishReason\":\"stop\"}\n\n";
    let done = "data: [DONE]\n\n";
    let right = [start, finish, done].concat();
    let cases = [
        (right.clone(), ""),
        (done.to_owned(), ""),
        ([start, finish].concat(), "not [DONE]"),
        (right.trim_end().to_owned() + "\n", "not [DONE]"),
        ([start, done, finish, done].concat(), "framing"),
        (right.replace('\n', "\r\n"), "not [DONE]"),
        (right.replacen('\n', "\r\n", 1), "framing"),
        (right.replacen("data: ", "data:", 1), "framing"),
        (right.replacen("data: ", "data:  ", 1), "framing"),
        (format!(": comment\n\n{right}"), "framing"),
        (format!("\n{right}"), "framing"),
        (right.replacen("\n\n", "\n\n\n", 1), "framing"),
        (right.replacen("\n\n", "\n", 1), "transport"),
        (right.replacen("start", "nonsense", 1), "transport"),
        (right.replacen("\":\"", "\": \"", 1), "bytes"),
        (right.replacen('{', "[", 1), "transport"),
    ];
    if !judge::is_sdk_available(|| cases.len()) {
        return;
    }
    let ask = |(sse, _): &(String, &str)| json!({ "name": sse, "profile": 7, "sse": sse });
    let asked: Vec<Value> = cases.iter().map(ask).collect();
    for ((_, why), verdict) in cases.iter().zip(read(&asked)) {
        let problems = problems(&verdict);
        assert!(problems.contains(why), "{verdict}");
        assert_eq!(problems.is_empty(), why.is_empty(), "{verdict}");
    }
}

pub fn end(reason: &str) -> Value {
    json!({ "reply": { "stopReason": reason } })
}

/// Process of `examples/server.mjs` with these arguments of `acpipe serve`.
pub struct Server {
    process: Child,
    pub api: String,
}

impl Server {
    pub fn start(args: &[String], env: &[(&str, &str)]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut path = vec![Path::new(ACPIPE).parent().unwrap().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new("node");
        surround(&mut command);
        let mut process = command
            .arg(root.join("examples/server.mjs"))
            .args(args)
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("PORT", "0")
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = lines(process.stdout.take().unwrap());
        let api = stdout.recv_timeout(LIMIT).expect("it does not listen");
        Self { process, api }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads lines on a separate thread and passes them on as they arrive.
pub fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1000);
    thread::spawn(move || {
        let lines = BufReader::new(from).lines().map_while(Result::ok);
        lines.map(|line| sender.send(line)).find(Result::is_err)
    });
    receiver
}

#[test]
fn the_example_serves_the_transport() {
    let mut cases = cases();
    // The other cases make no difference in this test.
    cases.truncate(2);
    if !judge::is_sdk_available(|| MAJORS.len() * cases.len() + 1) {
        return;
    }
    let ask = |server: &Server, major: u32, prompt: &str| json!({ "name": prompt, "profile": major, "api": server.api, "prompt": prompt });
    let mut asked = Vec::new();
    let servers = MAJORS.map(|major| {
        let options = ["--agent", "demo", "--chunk-profile", &major.to_string()];
        let server = Server::start(&options.map(str::to_owned), &[]);
        let prompts = cases.iter().filter_map(|case| case.args.last());
        asked.extend(prompts.map(|prompt| ask(&server, major, prompt)));
        server
    });
    let agentless = Server::start(&["--".to_owned(), "/no/such/agent".to_owned()], &[]);
    asked.push(ask(&agentless, 7, "go"));
    let verdicts = read(&asked);
    drop((servers, agentless));
    let [runs @ .., missing] = &verdicts[..] else {
        panic!("{verdicts:?}");
    };
    for (nth, case) in cases.iter().enumerate() {
        let text = String::from_utf8(case.run(&["-o", "text"]).stdout).unwrap();
        for verdict in runs.iter().skip(nth).step_by(cases.len()) {
            assert_eq!(problems(verdict), "", "{verdict}");
            assert_eq!(printed(verdict), text, "{verdict}");
            assert_eq!(verdict["tools"], json!(case.tools), "{verdict}");
        }
    }
    assert!(problems(missing).contains("/no/such/agent"), "{missing}");
}
