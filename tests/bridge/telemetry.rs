//! Telemetry: what a collector receives, and a collector that does not receive.

use crate::acp::peer::Peer;
use crate::daemon::Daemon;
use crate::endpoints::server::{Endpoint, Step, json as response};
use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say, tool, tool_change};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::net::TcpListener;

/// Words of the prompt, the tool and the answer, which must not leave the machine.
const PRIVATE: &str = "private-words";

fn collector() -> Endpoint {
    Endpoint::new(vec![response("200 OK", "", &json!({})); 16])
}

fn option(collector: &Endpoint) -> String {
    format!("--otlp={}", collector.url())
}

/// Requests that a collector received.
struct Received {
    spans: Vec<Value>,
    /// Metrics of the last request.
    metrics: Vec<Value>,
    resource: Value,
}

/// Reads the requests that the collector received. acpipe has ended, so all requests have arrived.
fn received(collector: &Endpoint) -> Received {
    let mut all = Received {
        spans: Vec::new(),
        metrics: Vec::new(),
        resource: Value::Null,
    };
    for request in collector.requests.try_iter() {
        assert!(
            !request.body.to_string().contains(PRIVATE),
            "{}",
            request.body
        );
        assert!(
            request.head.contains("content-type: application/json"),
            "{}",
            request.head
        );
        let scoped = if request.head.starts_with("post /v1/v1/traces ") {
            let scoped = &request.body["resourceSpans"][0];
            let spans = scoped["scopeSpans"][0]["spans"].as_array().unwrap();
            all.spans.extend(spans.iter().cloned());
            scoped
        } else {
            assert!(
                request.head.starts_with("post /v1/v1/metrics "),
                "{}",
                request.head
            );
            let scoped = &request.body["resourceMetrics"][0];
            let metrics = &scoped["scopeMetrics"][0]["metrics"];
            all.metrics.clone_from(metrics.as_array().unwrap());
            scoped
        };
        all.resource = attributes(&scoped["resource"]);
    }
    all
}

impl Received {
    #[track_caller]
    fn span(&self, name: &str) -> &Value {
        let mut found = self.spans.iter().filter(|span| {
            let text = span["name"].as_str().unwrap();
            text.starts_with(name)
        });
        let span = found
            .next()
            .unwrap_or_else(|| panic!("no {name}: {:?}", self.spans));
        assert!(found.next().is_none(), "several {name}: {:?}", self.spans);
        span
    }

    /// Returns the attributes and counts of a metric's series.
    #[track_caller]
    fn series(&self, name: &str) -> Vec<(Value, u64)> {
        let mut metrics = self.metrics.iter();
        let metric = metrics.find(|metric| metric["name"] == name);
        let metric = metric.unwrap_or_else(|| panic!("no {name}: {:?}", self.metrics));
        let points = metric["histogram"]["dataPoints"].as_array().unwrap();
        let point = |point: &Value| {
            let count = point["count"].as_str().unwrap().parse().unwrap();
            (attributes(point), count)
        };
        points.iter().map(point).collect()
    }
}

/// Returns attributes as one object.
fn attributes(of: &Value) -> Value {
    let pair = |attribute: &Value| {
        let value = attribute["value"].as_object().unwrap();
        let value = match value.iter().next().unwrap() {
            (kind, value) if kind == "arrayValue" => {
                let values = value["values"].as_array().unwrap().iter();
                values.map(|value| value["stringValue"].clone()).collect()
            }
            (kind, value) if kind == "intValue" => {
                value.as_str().unwrap().parse::<u64>().unwrap().into()
            }
            (_, value) => value.clone(),
        };
        (attribute["key"].as_str().unwrap().to_owned(), value)
    };
    of["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(pair)
        .collect()
}

fn time(span: &Value, member: &str) -> u64 {
    span[member].as_str().unwrap().parse().unwrap()
}

#[track_caller]
fn assert_has(attributes: &Value, wanted: &Value) {
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(attributes[key], *value, "{key} of {attributes}");
    }
}

#[test]
fn turn_with_tools_is_a_trace_without_content() {
    let collector = collector();
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentInfo": {"name": "fake", "version": "7"}}}]],
        "session/prompt": [[
            tool("call-1", &json!({"title": PRIVATE, "kind": "execute", "rawInput": {"command": PRIVATE}})),
            say(PRIVATE),
            tool_change("call-1", &json!({"status": "completed", "rawOutput": PRIVATE})),
            tool("call-2", &json!({"title": PRIVATE, "kind": "read", "status": "failed"})),
            {"reply": {"stopReason": "end_turn", "usage":
                {"inputTokens": 30, "outputTokens": 4, "totalTokens": 34, "cachedReadTokens": 20}}},
        ]],
    });
    let run = Run::new(&["run", &option(&collector), "--session", "s", PRIVATE]);
    let run = run.env("OTEL_RESOURCE_ATTRIBUTES", "team=a%20b");
    run.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=1")
        .script(&script)
        .go()
        .expect(0);
    let received = received(&collector);
    assert_has(
        &received.resource,
        &json!({"service.name": "acpipe", "team": "a b"}),
    );
    let turn = received.span("invoke_agent ");
    assert_eq!(
        (&turn["kind"], &turn["parentSpanId"]),
        (&json!(3), &Value::Null)
    );
    assert_eq!(turn["status"], Value::Null);
    assert_eq!(turn["events"][0]["name"], "acpipe.first_output");
    assert_has(
        &attributes(turn),
        &json!({
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.version": "7",
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.input_tokens": 30,
            "gen_ai.usage.output_tokens": 4,
            "gen_ai.usage.cache_read.input_tokens": 20,
            "acpipe.turn.stop_reason": "end_turn",
            "acpipe.turn.attempts": 1,
            "acpipe.agent.protocol": "acp",
            "error.type": null,
        }),
    );
    let done = received.span("execute_tool execute");
    let failed = received.span("execute_tool read");
    for tool in [done, failed] {
        assert_eq!(tool["traceId"], turn["traceId"]);
        assert_eq!(tool["parentSpanId"], turn["spanId"]);
        assert!(time(turn, "startTimeUnixNano") <= time(tool, "startTimeUnixNano"));
        assert!(time(tool, "endTimeUnixNano") <= time(turn, "endTimeUnixNano"));
    }
    assert_has(
        &attributes(done),
        &json!({"gen_ai.tool.call.id": "call-1", "acpipe.tool.kind": "execute", "error.type": null}),
    );
    assert_eq!(attributes(failed)["error.type"], "failed");
    assert_eq!(failed["status"]["code"], 2);
    let opening = attributes(received.span("open_session "));
    assert_has(
        &opening,
        &json!({"acpipe.opening.step": "new", "acpipe.opening.memory": "none"}),
    );
    let conversation = &attributes(turn)["gen_ai.conversation.id"];
    assert_eq!(opening["gen_ai.conversation.id"], *conversation);
    assert_eq!(received.series("gen_ai.client.operation.duration").len(), 3);
    let usage = received.series("gen_ai.client.token.usage");
    let kinds: Vec<&Value> = usage
        .iter()
        .map(|(of, _)| &of["gen_ai.token.type"])
        .collect();
    assert_eq!(kinds, ["input", "output"]);
    let first = received.series("gen_ai.client.operation.time_to_first_chunk");
    assert_eq!(first.iter().map(|(_, count)| count).sum::<u64>(), 1);
}

#[test]
fn failed_turn_and_failed_opening_have_error_types() {
    let collector = collector();
    let script = json!({"session/prompt": [[{"error": {"code": -32603, "message": PRIVATE}}]]});
    let run = Run::new(&["run", "--no-retry", &option(&collector), "hello"]);
    run.script(&script).go().expect(1);
    let turn = received(&collector);
    let span = turn.span("invoke_agent ");
    assert_eq!(span["status"], json!({"code": 2}));
    assert_has(
        &attributes(span),
        &json!({"error.type": "session", "gen_ai.response.finish_reasons": ["error"]}),
    );
    let [(series, 1)] = &turn.series("gen_ai.client.operation.duration")[..] else {
        panic!("{:?}", turn.metrics);
    };
    assert_eq!(series["error.type"], "session");
    let script = json!({"session/new": [[{"error": {"code": -32603, "message": PRIVATE}}]]});
    let run = Run::new(&["run", &option(&collector), "hello"]);
    run.script(&script).go().expect(1);
    let opening = received(&collector);
    let span = opening.span("open_session ");
    assert_eq!(span["status"], json!({"code": 2}));
    assert_eq!(attributes(span)["error.type"], "session");
    assert_eq!(opening.spans.len(), 1);
}

#[test]
fn restore_has_the_step_that_succeeded_and_those_that_failed() {
    let collector = collector();
    let history = |kind: &str, text: &str| {
        json!({"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update":
            {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}}})
    };
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities":
            {"loadSession": true, "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"error": {"code": -32002, "message": "no such session"}}]],
        "session/load": [[
            history("user_message_chunk", "one"), history("agent_message_chunk", "answer"), {"reply": null},
        ]],
        "session/prompt": [[say("answer"), end("end_turn")]],
    });
    let mut server = Server::reconnected(&[&option(&collector)], &script, &script);
    server.ensure("default");
    server.finish();
    let received = received(&collector);
    let openings = received.spans.iter().map(attributes);
    let restored = openings.filter(|of| of["acpipe.opening.step"] == "load");
    let restored: Vec<Value> = restored.collect();
    let [restored] = &restored[..] else {
        panic!("{:?}", received.spans);
    };
    assert_has(
        restored,
        &json!({"acpipe.opening.memory": "replayed", "acpipe.opening.failed_steps": ["resume"]}),
    );
    assert_eq!(received.series("acpipe.opening.duration").len(), 2);
}

#[test]
fn turn_belongs_to_the_trace_of_its_client() {
    let collector = collector();
    let script =
        json!({"session/prompt": [[say("a"), end("end_turn")], [say("b"), end("end_turn")]]});
    let mut server = Server::ready_with(&[&option(&collector)], &script);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    for flags in ["01", "00"] {
        let parent = format!("00-{trace}-b7ad6b7169203331-{flags}");
        let message = json!({
            "parts": [{"type": "text", "text": "hello"}], "metadata": {"traceparent": parent},
        });
        let params = json!({"sessionId": "default", "message": message});
        let id = server.send("session/prompt", &params);
        server.turn(&id);
    }
    server.finish();
    let received = received(&collector);
    // The second turn belongs to a trace that is not recorded.
    let turn = received.span("invoke_agent ");
    assert_eq!(turn["traceId"], trace);
    assert_eq!(turn["parentSpanId"], "b7ad6b7169203331");
    let durations = received.series("gen_ai.client.operation.duration");
    assert_eq!(durations.iter().map(|(_, count)| count).sum::<u64>(), 2);
}

#[test]
fn turn_of_an_editor_belongs_to_the_trace_of_its_prompt() {
    let collector = collector();
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("a"), end("end_turn")]]}));
    let args = ["acp", &option(&collector), "--", FAKE_AGENT, &script];
    let mut editor = Peer::start(world.acpipe(&args));
    let mut call = |method: &str, params: &Value| editor.result(method, params).unwrap();
    call("initialize", &json!({"protocolVersion": 1}));
    let session = call("session/new", &json!({"cwd": world.dir, "mcpServers": []}));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let prompt = json!({
        "sessionId": session["sessionId"], "prompt": [{"type": "text", "text": "hello"}],
        "_meta": {"traceparent": parent},
    });
    call("session/prompt", &prompt);
    editor.close().unwrap();
    editor.wait().unwrap();
    let received = received(&collector);
    let turn = received.span("invoke_agent ");
    assert_eq!(turn["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(turn["parentSpanId"], "b7ad6b7169203331");
}

#[test]
fn daemon_sends_the_telemetry_of_its_clients_turns() {
    let collector = collector();
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("a"), end("end_turn")]]}));
    let daemon = Daemon::start_in(world, &[&option(&collector)]);
    daemon.run(&["run", "--daemon", "hello", "--", FAKE_AGENT, &script], 0);
    daemon.stop();
    let received = received(&collector);
    assert_eq!(
        attributes(received.span("invoke_agent "))["error.type"],
        Value::Null
    );
    received.span("open_session ");
}

#[test]
fn collector_that_never_answers_does_not_keep_acpipe() {
    let collector = Endpoint::new(vec![vec![Step::AwaitClose]; 16]);
    let script = json!({"session/prompt": [[say("answer"), end("end_turn")]]});
    let run = Run::new(&["run", &option(&collector), "hello"]);
    let outcome = run.script(&script).go().expect(0);
    assert_eq!(outcome.text(), "answer\n");
    assert_eq!(
        outcome.stderr.matches("cannot send traces").count(),
        1,
        "{}",
        outcome.show()
    );
    // acpipe gave up the request.
    collector
        .closed
        .recv_timeout(crate::harness::LIMIT)
        .unwrap();
}

#[test]
fn absent_and_refusing_collectors_cause_one_warning() {
    let script = json!({"session/prompt": [[say("answer"), end("end_turn")]]});
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let absent = format!("--otlp=http://{}", unused.local_addr().unwrap());
    drop(unused);
    let refusing = Endpoint::new(vec![response("404 Not Found", "", &json!({})); 16]);
    for option in [absent, option(&refusing)] {
        let outcome = Run::new(&["run", &option, "hello"])
            .script(&script)
            .go()
            .expect(0);
        assert_eq!(outcome.text(), "answer\n");
        assert_eq!(
            outcome.stderr.matches("cannot send traces").count(),
            1,
            "{}",
            outcome.show()
        );
        assert!(outcome.stderr.contains("spans=2"), "{}", outcome.show());
    }
}

#[test]
fn only_the_option_turns_telemetry_on() {
    let collector = collector();
    let script = json!({"session/prompt": [[say("answer"), end("end_turn")]]});
    let run = |args: &[&str], name: &str, value: &str| {
        let run = Run::new(&[&["run"], args, &["hello"]].concat());
        run.env(name, value).script(&script).go().expect(0);
    };
    run(&[], "OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url());
    run(&[&option(&collector)], "OTEL_SDK_DISABLED", "true");
    assert!(collector.requests.try_recv().is_err());
    run(&["--otlp"], "OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url());
    assert!(collector.requests.try_recv().is_ok());
    let refused = Run::new(&["run", "--daemon", "--otlp", "hello"])
        .go()
        .expect(2);
    assert!(
        refused.stderr.contains("acpipe daemon start"),
        "{}",
        refused.show()
    );
    let wrong = Run::new(&["run", "--otlp=localhost:4318", "hello"])
        .go()
        .expect(2);
    assert!(
        wrong.stderr.contains("--otlp: the address must"),
        "{}",
        wrong.show()
    );
}
