//! HTTP server whose responses are scripts: bytes, pauses until the test continues, and breaks.

use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Step of a response.
#[derive(Debug, Clone)]
pub enum Step {
    /// Writes these bytes.
    Bytes(Vec<u8>),
    /// Writes these bytes one by one, each as a packet of its own.
    Trickle(Vec<u8>),
    /// Waits until the client closes the connection, and reports it.
    AwaitClose,
    /// Resets the connection.
    Reset,
}

/// Request that the server received.
#[derive(Debug)]
pub struct Request {
    /// First line and headers in lower case, one a line.
    pub head: String,
    pub body: Value,
}

/// The server. It serves each connection in a thread, and each request with the next script.
pub struct Endpoint {
    port: u16,
    pub requests: Receiver<Request>,
    /// A message for each connection that the client closed during [`Step::AwaitClose`].
    pub closed: Receiver<()>,
}

#[derive(Clone)]
struct Shared {
    scripts: Arc<Mutex<VecDeque<Vec<Step>>>>,
    requests: Sender<Request>,
    closed: Sender<()>,
}

impl Endpoint {
    pub fn new(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, received) = channel();
        let (closed, is_closed) = channel();
        let shared = Shared {
            scripts: Arc::new(Mutex::new(scripts.into())),
            requests,
            closed,
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self {
            port,
            requests: received,
            closed: is_closed,
        }
    }

    /// A server with one response for each of these bodies of event streams.
    pub fn of_streams(bodies: &[&str]) -> Self {
        let scripts = bodies.iter().map(|body| vec![stream(body.as_bytes())]);
        Self::new(scripts.collect())
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// Serves one request: each response has its own connection, so that its end is plain.
fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    if let Some(request) = read(&mut reader) {
        let script = shared.scripts.lock().unwrap().pop_front();
        let _ = shared.requests.send(request);
        for step in script.unwrap_or_default() {
            let written = match step {
                Step::Bytes(bytes) => stream.write_all(&bytes),
                Step::Trickle(bytes) => {
                    let _ = stream.set_nodelay(true);
                    bytes.iter().try_for_each(|byte| stream.write_all(&[*byte]))
                }
                Step::AwaitClose => {
                    let mut rest = Vec::new();
                    let _ = reader.read_to_end(&mut rest);
                    let _ = shared.closed.send(());
                    return;
                }
                Step::Reset => {
                    let zero = Some(std::time::Duration::ZERO);
                    let _ = rustix::net::sockopt::set_socket_linger(&stream, zero);
                    return;
                }
            };
            if written.is_err() {
                let _ = shared.closed.send(());
                return;
            }
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Request { head, body })
}

/// A head with this status and these headers, without a length: the body ends with the connection.
pub fn head(status: &str, headers: &str) -> Step {
    Step::Bytes(format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n").into())
}

/// The head of an event stream.
pub fn stream_head() -> Step {
    head(
        "200 OK",
        "content-type: text/event-stream; charset=utf-8\r\n",
    )
}

/// A whole event stream.
pub fn stream(body: &[u8]) -> Step {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Step::Bytes([head.as_bytes(), body].concat())
}

/// A JSON response with this status.
pub fn json(status: &str, headers: &str, body: &Value) -> Vec<Step> {
    let headers = format!("content-type: application/json\r\n{headers}");
    vec![head(status, &headers), Step::Bytes(body.to_string().into())]
}

/// The head of a chunked event stream, whose body is complete only with its last chunk.
pub fn chunked_head() -> Step {
    head(
        "200 OK",
        "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n",
    )
}

/// A chunk of a chunked body.
pub fn chunk(body: &str) -> Step {
    Step::Bytes(format!("{:x}\r\n{body}\r\n", body.len()).into())
}
