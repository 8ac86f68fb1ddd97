//! Canaries: a secret comes in by every way that acpipe has, the agent repeats all of them in every form, and none
//! may stand in anything that acpipe writes for people to read or pass on. The agent's answers are not among that: a
//! client gets and a session stores what the agent says.

mod answers;
mod clients;
mod command_lines;
mod keys;
mod replay;
mod sign_in;
mod ways;

use crate::endpoints::server::{Endpoint, json as response};
use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say, tool};
use crate::harness::{FAKE_AGENT, World, claude};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::fs;

/// Variables of acpipe's own environment.
const INHERITED: [&str; 11] = [
    "OPENAI_KEY",
    "GITHUB_PAT",
    "DB_PASS",
    "SSHPASS",
    "MYSQL_PWD",
    "GPG_PASSPHRASE",
    "SENTRY_DSN",
    "AZURE_KEYS",
    "SERVICE_TOKEN",
    "NPM_AUTH",
    "SESSION_COOKIE",
];

/// Variables of acpipe's own environment with a secret inside of the value: name, text before, way, text behind.
const PARTS: [(&str, &str, &str, &str); 7] = [
    ("TEAM_HEADERS", "x-team=1,x-key=", "listed", ""),
    ("OTHER_HEADERS", "authorization=Token%20", "scheme", ""),
    ("SOME_HEADERS", "X-A: b\nCookie: a=1; b=", "cookie", "; c=2"),
    ("PROXY_AUTH", "user:", "login", ""),
    ("MY_DSN", "https://", "address", "@host/1"),
    ("DATABASE", "postgres://user:", "database", "@host"),
    ("HTTPS_PROXY", "user:", "proxy", "@host:1"),
];

/// Returns a secret that no pattern recognises. It has characters that some writers escape.
pub fn canary(way: &str) -> String {
    format!("can\u{e4}ry/{way}")
}

/// Returns the text with each character above ASCII and each slash escaped, as the JSON libraries of Python and PHP
/// write it.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '/' => "\\/".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\u{:04x}", u32::from(c)),
    };
    text.chars().map(escape).collect()
}

fn percent_encoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| format!("%{byte:02X}"));
    bytes.collect::<Vec<_>>().concat()
}

/// Returns a text in all forms: plain, escaped for JSON, Python and in octal, escaped twice, percent-encoded once and
/// twice, and in base64 alone and after a user.
pub fn forms(text: &str) -> Vec<String> {
    let once = escaped(text);
    let octal = text.bytes().map(|byte| format!("\\{byte:03o}"));
    vec![
        text.to_owned(),
        once.replace('\\', "\\\\"),
        once,
        text.replace('\u{e4}', "\\xe4"),
        octal.collect::<Vec<_>>().concat(),
        percent_encoded(text),
        percent_encoded(&percent_encoded(text)),
        BASE64_STANDARD.encode(text),
        BASE64_STANDARD.encode(format!("user:{text}")),
        BASE64_URL_SAFE_NO_PAD.encode(format!("u:{text}")),
    ]
}

/// Parts of the forms of a canary that nothing else has. The ends of base64 depend on the text around it.
fn traces(text: &str) -> Vec<String> {
    let inner = |form: String| form[4..form.len() - 4].to_owned();
    let mut all = forms(text);
    let coded = all.split_off(7);
    all.extend(coded.into_iter().map(inner));
    all.push(broken_base64(text)[LINE - 8..LINE].to_owned());
    all
}

/// Returns a text in base64 with a line break inside of it.
fn broken_base64(text: &str) -> String {
    let code = BASE64_STANDARD.encode(format!("{}{text}", "x".repeat(LINE / 4 * 3 - 7)));
    format!("{}\r\n{}", &code[..LINE], &code[LINE..])
}

/// Length of a line of base64.
const LINE: usize = 76;

#[track_caller]
pub fn assert_silent(place: &str, written: &str, canaries: &[String]) {
    for canary in canaries {
        for trace in traces(canary) {
            assert!(
                !written.contains(&trace),
                "{place}: {canary} as {trace} in {written}"
            );
        }
    }
}

/// Returns the paths of a log and a tape, with the options that write them. They are in a world of their own, which
/// outlives that of the server.
fn records() -> (World, [String; 2], Vec<String>) {
    let world = World::new();
    let paths = ["acpipe.log", "acpipe.tape"].map(|name| world.dir.join(name));
    let paths = paths.map(|path| path.to_str().unwrap().to_owned());
    let [log, tape] = paths.clone();
    let args = [
        "--log-level",
        "trace",
        "--log-file",
        &log,
        "--record",
        &tape,
    ];
    let args = args.map(str::to_owned).to_vec();
    (world, paths, args)
}

/// Reads the log and the tape, and what `acpipe trace` shows of the tape.
#[track_caller]
fn assert_records_silent(paths: &[String; 2], canaries: &[String], marker: &str) {
    for path in paths {
        let text = fs::read_to_string(path).unwrap();
        assert_silent(path, &text, canaries);
    }
    let tape = fs::read_to_string(&paths[1]).unwrap();
    assert!(tape.contains(marker) && tape.contains("[hidden]"), "{tape}");
    for shown in [&["trace"][..], &["trace", "--text"]] {
        let args = [shown, &[&paths[1]]].concat();
        let shown = Run::new(&args).go().expect(0);
        assert_silent("trace", &shown.show(), canaries);
    }
}

#[test]
fn secrets_of_calls_and_environments_stand_nowhere() {
    let ways = [
        "flag", "connect", "register", "update", "stdio", "header", "bearer", "basic", "query",
        "user", "file", "typed",
    ];
    let inherited = INHERITED.map(canary);
    let parts = PARTS.map(|(name, before, way, behind)| {
        let secret = canary(way).replace('/', "-");
        (name, format!("{before}{secret}{behind}"), secret)
    });
    let mut canaries: Vec<String> = ways.iter().map(|way| canary(way)).collect();
    canaries.extend(inherited.iter().cloned());
    canaries.extend(parts.iter().map(|(_, _, secret)| secret.clone()));
    let said: Vec<String> = canaries.iter().flat_map(|canary| forms(canary)).collect();

    let world = World::new();
    let (_records, paths, mut args) = records();
    let mcp = json!({"mcpServers": {"file": {"command": "m", "env": {"A": canary("file")}}}});
    let mcp = world.file("mcp.json", &mcp.to_string());
    let collector = Endpoint::new(vec![response("200 OK", "", &json!({})); 16]);
    args.extend(
        [
            "--mcp-config",
            &mcp,
            "-e",
            &format!("FLAG={}", canary("flag")),
        ]
        .map(str::to_owned),
    );
    args.push(format!("--otlp={}", collector.url()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let env: Vec<(&str, &str)> = INHERITED
        .iter()
        .zip(&inherited)
        .map(|(name, value)| (*name, value.as_str()))
        .chain(parts.iter().map(|(name, value, _)| (*name, value.as_str())))
        .collect();
    let mut s = Server::launch(world, &args, Framing::Lines, &env);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"questions": true}}),
    );

    let form = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object",
        "properties": {"pin": {"type": "string"}}}, "sessionId": "{session}"});
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{{\"code\":1,\"message\":\"{}\"}}}}",
        escaped(&said.join(" "))
    );
    let mut steps = vec![json!({"ask": {"method": "elicitation/create", "params": form}})];
    steps.extend(
        said.iter()
            .map(|form| json!({"stderr": format!("the-marker {form}")})),
    );
    steps.extend(said.iter().map(|form| {
        let fields = json!({"title": form, "kind": "other", "status": "completed",
            "_meta": {"claudeCode": {"toolName": form}}});
        tool(&format!("call {form}"), &fields)
    }));
    steps.extend([
        json!({"line": line}),
        say(&said.join(" ")),
        say(&canaries
            .iter()
            .map(|canary| broken_base64(canary))
            .collect::<Vec<_>>()
            .join(" ")),
        end(&canary("typed")),
    ]);
    let hello =
        json!({"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": true}}});
    let script = s.world.script(&json!({
        "initialize": [[{"reply": hello}]],
        "session/prompt": [steps],
    }));
    let own = json!({"A": canary("register")});
    s.call(
        "agent/register",
        &json!({"agent": "own", "command": FAKE_AGENT, "env": own}),
    );
    let set = json!({"MY_PASS": canary("update")});
    s.call(
        "agent/updateEnvironment",
        &json!({"agent": "own", "set": set}),
    );
    let shown = s.call("agent/getEnvironment", &json!({"agent": "own"}));
    assert_silent("getEnvironment", &shown.to_string(), &[canary("update")]);
    let own = json!({"MY_KEYS": canary("connect")});
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script], "env": own}),
    );
    s.agent_states(&["starting", "ready"]);
    let shown = s.call("agent/getEnvironment", &json!({}));
    assert_silent("getEnvironment", &shown.to_string(), &[canary("connect")]);
    let basic = BASE64_STANDARD.encode(format!("user:{}", canary("basic")));
    let (user, query) = (
        percent_encoded(&canary("user")),
        percent_encoded(&canary("query")),
    );
    let servers = json!([
        {"type": "http", "name": "h", "url": format!("http://u:{user}@h/?q={query}"), "headers": [
            {"name": "X", "value": canary("header")},
            {"name": "Y", "value": format!("Bearer {}", canary("bearer"))},
            {"name": "Authorization", "value": format!("Basic {basic}")}]},
        {"name": "s", "command": "s", "args": [], "env": [{"name": "S", "value": canary("stdio")}]},
    ]);
    s.call(
        "session/ensure",
        &json!({"sessionId": "default", "mcpServers": servers}),
    );
    let prompt = s.send_prompt("default", "go");
    let (id, _) = s.asked("question/ask");
    s.reply(
        &id,
        &json!({"action": "accept", "content": {"pin": canary("typed")}}),
    );
    s.turn(&prompt);
    let stderr = s.finish().stderr;
    assert_silent("stderr", &stderr, &canaries);
    assert_records_silent(&paths, &canaries, "the-marker");
    let (mut requests, mut reported) = (0, false);
    for request in collector.requests.try_iter() {
        requests += 1;
        let body = request.body.to_string();
        assert_silent("OTLP", &body, &canaries);
        reported |= body.contains("call [hidden]");
    }
    assert!(reported, "no tool call was reported");
    assert!(requests > 0);
}

#[test]
fn answer_typed_for_claude_stands_nowhere() {
    let world = World::new();
    let (_records, paths, args) = records();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = claude::uninitialized(world, &args, &json!({}), &[]);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"questions": true}}),
    );
    s.connect_claude(&json!({}));
    s.ensure("default");
    let questions = json!([{"question": "Which key?", "header": "Key", "multiSelect": false,
        "options": [{"label": "the-choice", "description": "warm"}, {"label": "none", "description": "cold"}]}]);
    // The fake repeats the answer as a text.
    let asks = json!([{"ask": {"tool_name": "AskUserQuestion", "tool_use_id": "t1", "input": {"questions": questions},
        "requires_user_interaction": true}}]);
    let prompt = s.send_steps("default", &asks);
    let (id, _) = s.asked("question/ask");
    let content = json!({"question_0": "the-choice", "question_0_custom": canary("typed")});
    s.reply(&id, &json!({"action": "accept", "content": content}));
    s.turn(&prompt);
    let stderr = s.finish().stderr;
    assert_silent("stderr", &stderr, &[canary("typed")]);
    assert_records_silent(&paths, &[canary("typed")], "the-choice");
}

#[test]
fn key_and_headers_that_an_endpoint_repeats_stand_nowhere() {
    let ways = ["key", "team", "literal", "other"];
    let canaries = ways.map(|way| format!("c4n4ry-{way}-of-endpoint"));
    let [key, team, literal, other] = &canaries;
    let body = json!({"error": {"message": format!("the-marker {}", canaries.join(" "))}});
    let endpoint = Endpoint::new(vec![response("400 Bad Request", "", &body)]);
    let world = World::new();
    let (_records, paths, args) = records();
    let config = format!(
        "[agents.mine]\nprotocol = \"openai\"\nurl = \"{}\"\nmodel = \"m\"\napi_key_env = \"MINE\"\n\
         env = {{ OTHER = \"{other}\" }}\nheaders = {{ \"x-team\" = \"${{TEAM}}\", \"x-own\" = \"{literal}\", \
         \"x-other\" = \"${{OTHER}}\" }}\n",
        endpoint.url()
    );
    let config = world.file("config.toml", &config);
    let state = world.dir.join("own-state");
    let mut run = Run::new(&[
        "run",
        "--agent",
        "mine",
        "-o",
        "chunks",
        "--persist",
        "always",
    ]);
    for arg in &args {
        run = run.arg(arg);
    }
    let run = run
        .arg("--state-dir")
        .arg(state.to_str().unwrap())
        .arg("go");
    let run = run
        .env("ACPIPE_CONFIG", &config)
        .env("MINE", key)
        .env("TEAM", team);
    let outcome = run.go();
    assert!(!outcome.status.success(), "{}", outcome.show());
    assert_silent("output", &outcome.show(), &canaries);
    assert_records_silent(&paths, &canaries, "the-marker");
    let mut stored = 0;
    for file in fs::read_dir(state.join("sessions")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        stored += usize::from(text.contains("the-marker"));
        assert_silent("session file", &text, &canaries);
    }
    assert!(stored > 0);
}

#[test]
fn last_words_of_an_agent_are_shown_without_secrets() {
    let canaries = [canary("flag"), canary("own")];
    let said: Vec<String> = canaries.iter().flat_map(|canary| forms(canary)).collect();
    let script = json!({"session/prompt": [[
        {"stderr": format!("the-marker: error: {}", said.join(" "))},
        {"exit": 3},
    ]]});
    let flag = format!("FLAG={}", canaries[0]);
    let run = Run::new(&["run", "--no-retry", "-o", "chunks", "-e", &flag, "go"]);
    let outcome = run.env("MY_PASS", &canaries[1]).script(&script).go();
    assert!(!outcome.status.success(), "{}", outcome.show());
    assert!(outcome.show().contains("the-marker"), "{}", outcome.show());
    assert_silent("output", &outcome.show(), &canaries);
}

#[test]
fn report_of_doctor_shows_no_secret() {
    let canaries = [canary("own"), canary("password")];
    let said: Vec<String> = canaries.iter().flat_map(|canary| forms(canary)).collect();
    let said = format!("error: the-marker {}", said.join(" "));
    let error = json!({"error": {"code": -32603, "message": said, "data": {"d": said}}});
    for script in [
        json!({"start": [{"stderr": said}, {"exit": 3}]}),
        json!({"initialize": [[error]]}),
        json!({"session/new": [[error]]}),
    ] {
        for json in [&[][..], &["--json"]] {
            let run = Run::new(&[&["doctor"], json].concat()).script(&script);
            let run = run
                .env("MY_PASS", &canaries[0])
                .env("MY_PASSWORD", &canaries[1]);
            let outcome = run.go();
            assert!(outcome.show().contains("[hidden]"), "{}", outcome.show());
            assert_silent("report", &outcome.show(), &canaries);
        }
    }
}

#[test]
fn a_client_cannot_make_acpipe_forget_the_secrets_of_another() {
    let secret = canary("first");
    let world = World::new();
    let (_records, paths, args) = records();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = Server::launch(world, &args, Framing::Lines, &[("MY_PASS", &secret)]);
    s.initialize();
    let script = s.world.script(&json!({"session/prompt": [[
        {"stderr": format!("the-marker {secret}")}, end("end_turn"),
    ]]}));
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    s.agent_states(&["starting", "ready"]);
    for n in 0..4 {
        let lines = (0..20_000).map(|line| format!("{n}-{line:017}\n"));
        let value: Value = lines.collect::<String>().into();
        let server = json!({"name": "m", "command": "m", "args": [], "env": [{"name": "A", "value": value}]});
        let session = if n == 0 {
            "default".to_owned()
        } else {
            format!("s{n}")
        };
        s.call(
            "session/ensure",
            &json!({"sessionId": session, "mcpServers": [server]}),
        );
    }
    s.prompt("go");
    s.finish();
    assert_records_silent(&paths, &[secret], "the-marker");
}
