//! A client of the daemon on its socket.

use acpipe_core::fold::Fold;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time after which a message that does not arrive fails a test.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    stream: BufReader<UnixStream>,
    last_id: u64,
    /// Chunks by session: number, turn and chunk, in the order of their arrival.
    pub chunks: BTreeMap<String, Vec<(u64, Option<String>, Value)>>,
    /// Other messages that no call has claimed.
    pub others: Vec<Value>,
    /// First line of the daemon.
    pub welcome: Value,
}

impl Client {
    pub fn connect(socket: &Path, cwd: &Path, options: &[&str]) -> Self {
        Self::try_connect(socket, cwd, options).unwrap()
    }

    /// Connects; fails if the daemon has gone meanwhile.
    pub fn try_connect(socket: &Path, cwd: &Path, options: &[&str]) -> std::io::Result<Self> {
        let args = [&["serve"], options].concat();
        let hello = json!({
            "socketVersion": 2,
            "acpipe": "test",
            "purpose": "client",
            "cwd": cwd,
            "args": args,
            "files": Self::files(cwd, options),
        });
        Self::greet(socket, &hello)
    }

    /// Returns the files of options, as acpipe sends them for its command line.
    fn files(cwd: &Path, options: &[&str]) -> Value {
        let of = |name: &str| {
            let at = options.iter().position(|option| *option == name)?;
            let path = options[at + 1];
            Some((path, std::fs::read_to_string(path).unwrap()))
        };
        let (file, text) = of("--config").unzip();
        let file = file.map(|path| json!({"path": path, "isNamed": true}));
        json!({
            "config": {"userFile": file, "userText": text, "project": null, "foreign": [], "home": cwd},
            "mcpConfig": of("--mcp-config").map(|(_, text)| text),
        })
    }

    pub fn greet(socket: &Path, hello: &Value) -> std::io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        writeln!(stream, "{hello}")?;
        let mut client = Self {
            stream: BufReader::new(stream),
            last_id: 0,
            chunks: BTreeMap::new(),
            others: Vec::new(),
            welcome: Value::Null,
        };
        client.welcome = client.read().ok_or(std::io::ErrorKind::ConnectionReset)?;
        Ok(client)
    }

    pub fn initialize(&mut self) -> Value {
        let capabilities = json!({"permissions": true, "questions": true});
        self.initialize_with(&capabilities)
    }

    pub fn initialize_with(&mut self, capabilities: &Value) -> Value {
        self.call(
            "initialize",
            &json!({
                "protocolVersion": 1,
                "clientInfo": {"name": "test"},
                "capabilities": capabilities,
            }),
        )
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Writes a message; the end of the connection is found by reading.
    pub fn write(&mut self, message: &Value) {
        let _ = writeln!(self.stream.get_mut(), "{message}");
    }

    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.try_call(method, params).expect("the connection ended");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Returns the error of a call that must fail.
    #[track_caller]
    pub fn error(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.try_call(method, params).expect("the connection ended");
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// Returns the response to a call; `None` if the connection ends before it.
    pub fn try_call(&mut self, method: &str, params: &Value) -> Option<Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Waits for the response to a request.
    pub fn answer(&mut self, id: u64) -> Option<Value> {
        self.next_where(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for the response to a request, and answers the requests of acpipe until then.
    pub fn answer_with(
        &mut self,
        id: u64,
        mut result: impl FnMut(&Value) -> Value,
    ) -> Option<Value> {
        loop {
            let is_response = |message: &Value| message.get("method").is_none();
            let message = self.next_where(|message| {
                message.get("id").is_some() && (!is_response(message) || message["id"] == id)
            })?;
            if is_response(&message) {
                return Some(message);
            }
            self.respond(&message, &result(&message));
        }
    }

    /// Waits for the next notification or request of a method, and returns the message.
    #[track_caller]
    pub fn next(&mut self, method: &str) -> Value {
        let found = self.next_where(|message| message["method"] == method);
        found.unwrap_or_else(|| panic!("the connection ended before {method}"))
    }

    /// Waits for a message, which may have arrived before.
    fn next_where(&mut self, is: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(at) = self.others.iter().position(&is) {
            return Some(self.others.remove(at));
        }
        loop {
            let message = self.read()?;
            if is(&message) {
                return Some(message);
            }
            if message["method"] != "session/chunk" {
                self.others.push(message);
            }
        }
    }

    /// Reads the next message; keeps chunks.
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        let is_late = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(
            !is_late,
            "no message arrived in time; unclaimed: {:?}",
            self.others
        );
        if !line.ends_with('\n') {
            // A killed daemon may leave part of a line.
            return None;
        }
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        if message["method"] == "session/chunk" {
            let params = &message["params"];
            let session = params["sessionId"].as_str().unwrap().to_owned();
            let chunks = self.chunks.entry(session).or_default();
            let seq = params["seq"].as_u64().unwrap();
            let turn = params["turnId"].as_str().map(str::to_owned);
            chunks.push((seq, turn, params["chunk"].clone()));
        }
        Some(message)
    }

    /// Waits until a chunk of a session has arrived.
    #[track_caller]
    pub fn await_chunk(&mut self, session: &str, is: impl Fn(&Value) -> bool) {
        let has = |client: &Self| {
            let mut chunks = client.chunks.get(session).into_iter().flatten();
            chunks.any(|(_, _, chunk)| is(chunk))
        };
        while !has(self) {
            let message = self.read().expect("the connection ended before the chunk");
            if message["method"] != "session/chunk" {
                self.others.push(message);
            }
        }
    }

    /// Reads everything until the daemon ends the connection.
    pub fn read_to_end(&mut self) {
        while let Some(message) = self.read() {
            if message["method"] != "session/chunk" {
                self.others.push(message);
            }
        }
    }

    /// Number of the last chunk of a session that arrived; 0 without any.
    pub fn last_seq(&self, session: &str) -> u64 {
        let last = self.chunks.get(session).and_then(|chunks| chunks.last());
        last.map_or(0, |(seq, ..)| *seq)
    }

    /// Creates the connected agent and the session.
    pub fn ensure(&mut self, session: &str) -> Value {
        self.call("agent/connect", &json!({}));
        self.call("session/ensure", &json!({"sessionId": session}))
    }

    /// Prompts a session with "go"; returns the summary.
    #[track_caller]
    pub fn prompt(&mut self, session: &str) -> Value {
        let params = json!({"sessionId": session, "message": "go"});
        self.call("session/prompt", &params)
    }

    /// Answers a request of acpipe.
    pub fn respond(&mut self, request: &Value, result: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }
}

/// Folds the chunks of each turn to its message.
pub fn folded(chunks: &[(u64, Option<String>, Value)]) -> BTreeMap<String, Value> {
    let mut folds: BTreeMap<String, Fold> = BTreeMap::new();
    for (_, turn, chunk) in chunks {
        if let Some(turn) = turn {
            folds.entry(turn.clone()).or_default().push(chunk);
        }
    }
    let message = |(turn, fold): (String, Fold)| (turn, fold.message());
    folds.into_iter().map(message).collect()
}

/// Returns all chunks of a session from its log.
pub fn logged(client: &mut Client, session: &str) -> Vec<(u64, Option<String>, Value)> {
    let mut chunks = Vec::new();
    let mut after = json!(0);
    while !after.is_null() {
        let page = client.call(
            "session/replay",
            &json!({"sessionId": session, "afterSeq": after}),
        );
        for entry in page["entries"].as_array().unwrap() {
            let turn = entry["turnId"].as_str().map(str::to_owned);
            chunks.push((entry["seq"].as_u64().unwrap(), turn, entry["chunk"].clone()));
        }
        after = page["next"].clone();
    }
    chunks
}
