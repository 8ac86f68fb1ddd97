//! A plain HTTP client: one request for each connection.

use super::Server;
use super::chat::{submit, user};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Time after which a read counts as hung.
const LIMIT: Duration = Duration::from_secs(30);

pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
}

impl Server {
    /// Sends a request with the full token.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let token = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", token.as_str()),
            ("content-type", "application/json"),
        ];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.send_raw(method, path, &headers, body.as_bytes())
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, &Value::Null)
    }

    /// Posts a chat's message of the user and reads the whole answer.
    pub fn chat(&self, id: &str, text: &str) -> Vec<Value> {
        self.post_chat(id, text).chunks()
    }

    /// Posts a chat's message of the user.
    pub fn post_chat(&self, id: &str, text: &str) -> Response {
        let body = submit(&[user(id, text)]);
        self.send("POST", "/api/chat", &body)
    }

    /// Sends a request with these headers; `host` is that of the server if there is none.
    pub fn send_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.extend(["host: ", &self.address.to_string(), "\r\n"]);
        }
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.extend(["content-length: ", &body.len().to_string(), "\r\n\r\n"]);
        let mut stream = self.connect();
        stream.write_all(head.as_bytes()).unwrap();
        // A refused body need not be read.
        let _ = stream.write_all(body);
        Response::read(stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }
}

impl Response {
    fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let first = line(&mut reader);
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = line(&mut reader);
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Self {
            status,
            headers,
            reader,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads the whole body.
    pub fn text(mut self) -> String {
        let mut body = Vec::new();
        if self.header("transfer-encoding").is_some() {
            loop {
                let length = usize::from_str_radix(&line(&mut self.reader), 16).unwrap();
                let mut chunk = vec![0; length];
                self.reader.read_exact(&mut chunk).unwrap();
                line(&mut self.reader);
                if length == 0 {
                    break;
                }
                body.extend(chunk);
            }
        } else {
            self.reader.read_to_end(&mut body).unwrap();
        }
        String::from_utf8(body).unwrap()
    }

    pub fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }

    /// Reads all chunks of an event stream, which must end with `[DONE]`.
    #[track_caller]
    pub fn chunks(self) -> Vec<Value> {
        let status = self.status;
        let kind = self.header("content-type").map(str::to_owned);
        let version = self
            .header("x-vercel-ai-ui-message-stream")
            .map(str::to_owned);
        let text = self.text();
        assert_eq!(status, 200, "{text}");
        assert_eq!(kind.as_deref(), Some("text/event-stream"));
        assert_eq!(version.as_deref(), Some("v1"));
        let mut data: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        assert_eq!(data.pop(), Some("[DONE]"), "{text}");
        data.into_iter()
            .map(|chunk| serde_json::from_str(chunk).unwrap())
            .collect()
    }

    /// Reads all chunks, and shows each one when it comes.
    pub fn chunks_with(mut self, mut see: impl FnMut(&Value)) -> Vec<Value> {
        let mut chunks = Vec::new();
        loop {
            let line = self.read_until("data: ");
            let data = line.strip_prefix("data: ").unwrap();
            if data == "[DONE]" {
                return chunks;
            }
            let chunk = serde_json::from_str(data).unwrap();
            see(&chunk);
            chunks.push(chunk);
        }
    }

    /// Sends the status, and the data of the events as they come; at the end `[DONE]`, or a line that says that the connection
    /// was closed.
    pub fn pass_lines(mut self, lines: &Sender<String>) {
        // A receiver that does not read to the end needs no more lines.
        let _ = lines.send(self.status.to_string());
        if self.status != 200 {
            let _ = lines.send(self.text());
            return;
        }
        loop {
            let mut line = String::new();
            if !matches!(self.reader.read_line(&mut line), Ok(1..)) {
                let _ = lines.send("the connection is closed".to_owned());
                return;
            }
            let Some(data) = line.trim_end().strip_prefix("data: ") else {
                continue;
            };
            if lines.send(data.to_owned()).is_err() || data == "[DONE]" {
                return;
            }
        }
    }

    /// Reads until a line with this text, and returns it.
    pub fn read_until(&mut self, text: &str) -> String {
        loop {
            let line = line(&mut self.reader);
            if line.contains(text) {
                return line;
            }
        }
    }
}

fn line(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    assert_ne!(
        reader.read_line(&mut line).unwrap(),
        0,
        "the connection was closed"
    );
    line.trim_end().to_owned()
}
